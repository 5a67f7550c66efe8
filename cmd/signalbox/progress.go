package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress tells a person how far something is that takes long: on a terminal in one
// line that is written over and taken away in the end, elsewhere in a line now and then.
type progress struct {
	to    io.Writer
	live  bool // the line can be written over
	began time.Time
	said  time.Time // when something was said last; zero if nothing was
}

// silentFor is how long nothing is said: what takes less is not worth a word.
const silentFor = 2 * time.Second

func (a *app) newProgress() *progress {
	return &progress{to: a.stderr, live: isTerminal(a.stderr) && os.Getenv("TERM") != "dumb", began: time.Now()}
}

// say tells how far it is, in at most one line of 80 columns, and not too often. So
// text is a function: it is asked for only if it is said.
func (p *progress) say(text func() string) {
	now := time.Now()
	pause := 5 * time.Second
	if p.live {
		pause = 200 * time.Millisecond
	}
	if now.Sub(p.began) < silentFor || now.Sub(p.said) < pause {
		return
	}
	p.said = now
	if p.live {
		fmt.Fprintf(p.to, "\r%s\x1b[K", text())
		return
	}
	p.line(text())
}

// line says something at once, for the log that this is where there is no terminal.
func (p *progress) line(text string) {
	if !p.live {
		fmt.Fprintf(p.to, "signalbox: %s\n", text)
	}
}

// clear takes the line away again.
func (p *progress) clear() {
	if p.live && !p.said.IsZero() {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
