package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
)

// whyJSON is why a waiter waits. What is free and what it wants are of the head of the queue, for which all wait.
type whyJSON struct {
	Resource string   `json:"resource"`
	ID       string   `json:"id"`
	Place    int      `json:"place"`
	Reason   string   `json:"reason"`
	Text     []string `json:"text"`
}

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why NAME [ID]", Short: "Say why somebody waits for a resource", ValidArgsFunction: a.completed(1, idsOf),
		Long: `Say in sentences why a waiter waits: its place, who holds the permits and since when,
whose lease was not renewed, which permits rest, what limit an operator has set, and
what pace or which other resources it waits for. Without an ID it is the first in the
queue, whom the others wait behind; signalbox inspect NAME shows the ids of all. If
nobody is in the queue, it is who waits at the barrier or the latch of that name, and
until when its rate is in use.

Of a job that does not run, signalbox queue why says the same.

JSON: {resource, id, place, reason, text: [sentence]}; reason is "behind", "held",
"pace", "group", "in turn", "barrier", "latch", "rate", or "not waiting".

Exit status: 0, or 1 if the id neither waits nor holds.`,
		Example: `  signalbox why downloads
  signalbox why downloads 7a0f3c:12`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return exactly("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd.Context(), func(box *signalbox.Box) (err error) {
				state := signalbox.State{Resource: args[0]}
				if box != nil {
					if state, err = box.Inspect(cmd.Context(), args[0]); err != nil {
						return err
					}
				}
				why, err := whyOf(&state, args[1:])
				if err != nil || why.Reason == "not waiting" && why.ID == "" {
					beside, failed := a.besideOf(cmd.Context(), args[0])
					if failed != nil {
						return failed
					}
					if instead, found := whyBeside(args[0], &beside, strings.Join(args[1:], "")); found {
						why, err = instead, nil
					}
				}
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(why)
				}
				_, err = fmt.Fprintf(a.stdout, "%s: %s\n", printable(args[0]), strings.Join(why.Text, "\n  "))
				return err
			})
		},
	}
}

// whyOf says why the waiter of an id waits, or the first if none is given.
func whyOf(s *signalbox.State, id []string) (whyJSON, error) {
	why := whyJSON{Resource: s.Resource, Reason: "not waiting"}
	if len(id) == 0 && len(s.Queue) == 0 {
		why.Text = []string{"nobody waits; " + describe(*s, s.Now) + "."}
		if s.Leases == 0 {
			why.Text = []string{"nobody waits, and nobody holds it."}
		}
		return why, nil
	}
	for i := range s.Queue {
		w := &s.Queue[i]
		if len(id) > 0 && w.ID != id[0] {
			continue
		}
		why.ID, why.Place, why.Reason = w.ID, i+1, "behind"
		why.Text = []string{fmt.Sprintf("%s has waited for %s for %s, and is %s in the queue.",
			who(w.Owner, w.Label), span(s.Now.Sub(w.Since)), wanted(w.Weight), ordinal(i+1))}
		reason, text := whyHead(s)
		if i == 0 {
			why.Reason = reason
		} else {
			why.Text = append(why.Text, fmt.Sprintf("Nobody passes the queue: it comes after %s, the first of them %s, which wants %s.",
				count(i, "other"), who(s.Queue[0].Owner, s.Queue[0].Label), wanted(s.Queue[0].Weight)))
		}
		why.Text = append(why.Text, text...)
		return why, nil
	}
	for i := range s.Holders {
		if h := &s.Holders[i]; h.ID == id[0] && !h.Resting {
			why.ID = h.ID
			why.Text = []string{fmt.Sprintf("%s does not wait: it has held %s for %s.", who(h.Owner, h.Label), wanted(h.Weight), span(s.Now.Sub(h.Since)))}
			return why, nil
		}
	}
	return why, fmt.Errorf("%s: nobody with the id %q waits; see signalbox inspect %s", printable(s.Resource), id[0], printable(s.Resource))
}

// wanted is "1 permit", "3 permits", "all permits".
func wanted(weight int) string {
	if weight == signalbox.MaxReaders {
		return "all permits"
	}
	return count(weight, "permit")
}

// whyHead is why the first in the queue waits.
func whyHead(s *signalbox.State) (reason string, text []string) {
	head := &s.Queue[0]
	limit := head.Limit
	if s.Operator > 0 {
		limit = s.Operator
	}
	switch {
	case s.Held+head.Weight > limit:
		return "held", whyHeld(s, limit)
	case head.Pace > 0:
		return "pace", []string{fmt.Sprintf("There is room, but the first in the queue wants %v between two grants; the last was %s ago.",
			head.Pace, span(s.Now.Sub(time.UnixMicro(s.Token))))}
	case head.Group:
		return "group", []string{"There is room, but the first in the queue wants other resources with it, and waits until all are free."}
	}
	return "in turn", []string{fmt.Sprintf("There is room: the first in the queue has its turn now, or if its process is silent loses its place in %s.",
		span(head.Claim.Sub(s.Now)))}
}

// whyHeld is who holds what the first in the queue waits for.
func whyHeld(s *signalbox.State, limit int) (text []string) {
	const most = 5
	how := fmt.Sprintf("%d of %s held", s.Held, permits(limit))
	if isReadWrite(s) {
		how = usageOf(s)
	}
	text = append(text, fmt.Sprintf("%s%s.", strings.ToUpper(how[:1]), how[1:]))
	if s.Operator > 0 {
		text = append(text, fmt.Sprintf("The limit of %d is an operator's; signalbox resize %s --clear takes it back.", s.Operator, printable(s.Resource)))
	}
	if s.Held > limit && !isReadWrite(s) {
		text = append(text, fmt.Sprintf("That is more than the limit, which has become smaller: the next grant comes when %s been given back.",
			have(s.Held-limit+s.Queue[0].Weight)))
	}
	for i := range s.Holders {
		if i == most {
			return append(text, fmt.Sprintf("%s more hold the rest; see signalbox inspect %s.", fmt.Sprint(s.Leases-most), printable(s.Resource)))
		}
		text = append(text, whyHolder(s, &s.Holders[i]))
	}
	return text
}

// have is "1 permit has", "2 permits have".
func have(n int) string {
	if n == 1 {
		return "1 permit has"
	}
	return count(n, "permit") + " have"
}

// whyHolder is what a holder holds, and whether it is alive: a lease is renewed when a third of its ttl is over.
func whyHolder(s *signalbox.State, h *signalbox.Holder) string {
	left := h.Expires.Sub(s.Now)
	switch {
	case h.Resting:
		return fmt.Sprintf("%s after %s (lock delay or minimum hold), for another %s; signalbox release %s --all frees it.",
			rests(h.Weight), who(h.Owner, h.Label), span(left), printable(s.Resource))
	case left < h.TTL/2:
		return fmt.Sprintf("%s has held %s for %s, and was not heard of for %s: if it is dead, they are free in %s.",
			who(h.Owner, h.Label), wanted(h.Weight), span(s.Now.Sub(h.Since)), span(h.TTL-left), span(left))
	}
	return fmt.Sprintf("%s has held %s for %s.", who(h.Owner, h.Label), wanted(h.Weight), span(s.Now.Sub(h.Since)))
}

// rests is "1 permit rests", "2 permits rest".
func rests(weight int) string {
	if weight == 1 {
		return "1 permit rests"
	}
	return wanted(weight) + " rest"
}
