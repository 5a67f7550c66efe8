package main

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// Server-sent events: an event is a whole <main>, sent when it differs from the one before. A page that lost its connection
// asks again by itself, and gets the present state: so no event has to be kept.

func (p *pages) supervisorLive(w http.ResponseWriter, r *http.Request) {
	p.stream(w, r, "supervisor-main", func() (any, <-chan struct{}, bool) {
		return p.board.look(r.Context()), nil, true
	})
}

func (p *pages) agentLive(w http.ResponseWriter, r *http.Request) {
	d := p.desk(r)
	if d == nil {
		http.Error(w, "log in first", http.StatusForbidden)
		return
	}
	defer p.desks.watched(d)()
	p.stream(w, r, "agent-main", func() (any, <-chan struct{}, bool) {
		v := p.deskView(d, "")
		return v, v.changed, !v.Left
	})
}

// stream sends what look returns, each time that it says something has changed and once a second, as long as it says go on.
func (p *pages) stream(w http.ResponseWriter, r *http.Request, name string, look func() (data any, changed <-chan struct{}, goOn bool)) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	var before []byte
	for {
		data, changed, goOn := look()
		var main bytes.Buffer
		if err := templates.ExecuteTemplate(&main, name, data); err != nil {
			return // the page shows the error when it is loaded again
		}
		if !bytes.Equal(before, main.Bytes()) {
			before = main.Bytes()
			// Nobody is waited for longer than a while who does not read.
			_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(bytes.TrimSpace(before), []byte("\n"), []byte("\ndata: ")))
			if out.Flush() != nil {
				return
			}
		}
		if !goOn {
			return
		}
		tick := time.NewTimer(time.Second)
		select {
		case <-changed:
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.ctx.Done():
			return
		}
		tick.Stop()
	}
}

// clock writes a duration as people say it: 0:07, 12:30, 1:02:03.
func clock(d time.Duration) string {
	s := int(max(d, 0).Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
