package main

import (
	"encoding/json"
	"time"
)

// What `run --json` and `elect --json` tell on standard error, one object a line: standard output is the command's. Nothing is
// told while the command runs: a reader who stands still must not keep the command from being ended in time.
//
// An error that ends another command under --json is such a line as well, without an event and a time.

// eventJSON is a line.
type eventJSON struct {
	Event    string    `json:"event,omitempty"`
	Time     time.Time `json:"time,omitzero"`
	Resource string    `json:"resource,omitempty"`
	Place    int       `json:"place,omitempty"` // in the queue
	Token    int64     `json:"token,omitempty"`
	ID       string    `json:"id,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Status   *int      `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
}

const eventsHelp = `
JSON: events on standard error, one object a line, between what the command says there:
{event, time, resource, place} waiting, at the start and when the place changes;
{resource, token, id} acquired; {status} exited, of the command; before it
{resource, reason} lost: forced, not renewed or folder removed, at that time;
{resource} released; {error, status} failed, if it ends otherwise than by the command;
{resource, error} unreachable, while the server is tried again;
{error} warning, what else is to be known.`

// tell writes an event, if they are wanted.
func (a *app) tell(e eventJSON) {
	if !a.events {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	a.line(e)
}

// line writes a line of JSON to standard error.
func (a *app) line(e eventJSON) {
	encoder := json.NewEncoder(a.stderr)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(e) // nobody reads it any more
}

// toldFailed tells an error as an event, where those are wanted: then nothing is left to be said.
func (a *app) toldFailed(err error) error {
	if err == nil || !a.events || err.Error() == "" {
		return err
	}
	code := status(err)
	a.tell(eventJSON{Event: "failed", Error: err.Error(), Status: &code})
	return &exitError{code, nil}
}
