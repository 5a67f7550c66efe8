package racelab

import "fmt"

// Row is a step as it is shown.
type Row struct {
	// AtUs is the time since the beginning, by the server's clock.
	AtUs int64 `json:"at_us"`
	// Client is who does something; "" if time passes.
	Client string `json:"client,omitempty"`
	// Call is what the client is about, at its beginning.
	Call string `json:"call,omitempty"`
	Sent string `json:"sent,omitempty"`
	Got  string `json:"got,omitempty"`
	// Event is what happens besides, in words.
	Event string `json:"event,omitempty"`
	// Believes is what the client thinks afterwards.
	Believes string `json:"believes,omitempty"`
	Fault    bool   `json:"fault,omitempty"`
}

// open begins the row of a step.
func (w *world) open(choice Choice) {
	if w.rows == nil {
		return
	}
	w.row = &Row{Fault: choice.IsFault()}
	if choice.Client >= 0 {
		c := w.clients[choice.Client]
		w.row.Client = c.Name
		switch {
		case choice.Kind != Go || c.stop.kind != atBegin:
		case c.led():
			w.row.Call = c.life.ops()[choice.Index]
		default:
			w.row.Call = c.stop.op
		}
	}
	w.row.Event = w.event(choice)
}

func (w *world) event(choice Choice) string {
	switch choice.Kind {
	case Ring:
		return "its alarm goes off"
	case Wish:
		return "its caller wants to " + w.clients[choice.Client].life.wishes()[choice.Index].What.String()
	case faulty(Haste):
		e, _ := w.clients[choice.Client].life.hurries()
		return "its caller does not wait: " + e.What.String()
	case faulty(Crash):
		return "crashes"
	case faulty(LoseRequest):
		return "the request is lost"
	case faulty(LoseReply):
		return "the reply is lost"
	case faulty(LoseMessage):
		return "the message is lost"
	case faulty(Skew):
		skew := w.algorithm.Skews[choice.Index]
		if skew < 0 {
			return fmt.Sprintf("its clock is %v slow", -skew)
		}
		return fmt.Sprintf("its clock is %v fast", skew)
	case faulty(Pause):
		return fmt.Sprintf("%v pass", w.algorithm.Pauses[choice.Index])
	}
	if choice.Client < 0 {
		return ""
	}
	c := w.clients[choice.Client]
	if wake := c.wake(); choice.Kind == Go && !wake.IsZero() {
		if d := wake.Sub(w.engine.Now()); d > 0 {
			return fmt.Sprintf("%v pass", d)
		}
	}
	return ""
}

// sent notes the request that is run, before its reply is taken.
func (w *world) sent(k *conn) {
	if w.row != nil && w.row.Sent == "" {
		w.row.Sent = showRequests(k.request, w.names)
	}
}

// said notes a message.
func (w *world) said(_ *Client, message string) {
	if w.row != nil {
		w.row.Got = message
	}
}

// got notes the reply, whether it is heard or not.
func (w *world) got(reply []byte) {
	if w.row != nil {
		w.row.Got = showReplies(reply)
	}
}

// believes notes what a client thinks now.
func (w *world) believes(c *Client, what string) {
	if w.row != nil && !c.dead && what != "" {
		w.row.Believes = what
	}
}

// shut ends the row of a step.
func (w *world) shut() {
	if w.row == nil {
		return
	}
	w.row.AtUs = w.engine.Now().Sub(epoch).Microseconds()
	*w.rows = append(*w.rows, *w.row)
	w.row = nil
}
