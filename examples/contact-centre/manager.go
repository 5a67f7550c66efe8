package main

import (
	"context"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
)

// The manager decides what only somebody with a view of the whole can decide: when callers wait too long, new e-mails wait
// until they do not, since an agent needs most of his attention free for a call, and e-mails would take it bit by bit.
//
// Any number of managers run, and one leads. What it has decided is on the server, so when it dies the next one goes on from
// there. No contact goes through it: without any manager the centre works on, with the last decision.

const election = "contact-centre:manager"

// manage campaigns, leads, and campaigns again, until ctx ends.
func manage(ctx context.Context, box *signalbox.Box, q *queue.Queue, p pace) {
	for ctx.Err() == nil {
		term, err := box.Election(election).Campaign(ctx, signalbox.TTL(2*time.Second))
		if err != nil {
			pause(ctx, 200*time.Millisecond) // the server is away: leading has to wait
			continue
		}
		lead(term.Context(), q, p)
		resign, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = term.Resign(resign) // if it cannot be told, the term ends by itself
		cancel()
	}
}

// lead decides anew several times a second, until its term is over. What it cannot do now it does the next time.
func lead(ctx context.Context, q *queue.Queue, p pace) {
	emails := queue.OfKind("email")
	for pause(ctx, 250*time.Millisecond) {
		stats, err := q.Stats(ctx)
		if err != nil {
			continue
		}
		waited := p.centre(longest(stats, "call"))
		switch target := channelOf("call").target; {
		case waited > target:
			_ = q.Configure(ctx, queue.Pause(emails))
		case waited < target/2:
			_ = q.Configure(ctx, queue.Resume(emails))
		}
	}
}

// longest is how long the next contact of a channel has waited.
func longest(stats *queue.Stats, name string) time.Duration {
	for _, kind := range stats.Kinds {
		if kind.Kind == name && !kind.Oldest.IsZero() {
			return stats.Now.Sub(kind.Oldest)
		}
	}
	return 0
}
