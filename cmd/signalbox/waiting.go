package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
)

// A waitingDisplay tells on stderr what is waited for: who holds the permits, and the place in the queue. On a terminal
// it is one line that is written over every second; elsewhere a line at the start, another when the place has changed, at
// most every ten seconds, so that logs stay short, and one a minute, so that who watches over the log takes it for alive.

const (
	quietFor   = 10 * time.Second // between two lines in a log
	speakAfter = time.Minute      // though nothing has changed
	lookEvery  = 10 * time.Second // the holders may change while the place does not
	lookWithin = 2 * time.Second
)

type waitingDisplay struct {
	app     *app
	ctx     context.Context
	box     *signalbox.Box
	names   []string
	weight  int
	live    bool
	places  chan int
	stop    chan struct{}
	running sync.WaitGroup
	once    sync.Once

	began  time.Time
	state  signalbox.State // as it was at the last look
	known  bool
	looked time.Time
}

func (a *app) newWaitingDisplay(ctx context.Context, box *signalbox.Box, names []string, weight int) *waitingDisplay {
	return &waitingDisplay{
		app: a, ctx: ctx, box: box, names: names, weight: weight, live: isTerminal(a.stderr) && os.Getenv("TERM") != "dumb" && !a.events,
		places: make(chan int, 1), stop: make(chan struct{}), began: time.Now(),
	}
}

// changed is told the place in the queue. It never waits: the goroutine that acquires calls it.
func (d *waitingDisplay) changed(w signalbox.Waiting) {
	select {
	case <-d.places:
	default:
	}
	d.places <- w.Ahead + 1
	d.once.Do(func() {
		for held := range strings.Lines(os.Getenv("SIGNALBOX_RESOURCE")) {
			if name := strings.TrimSuffix(held, "\n"); slices.Contains(d.names, name) {
				d.app.warn(fmt.Sprintf("what waits here runs under a lease of %s itself, and waits for itself if there is no room beside it", printable(name)))
			}
		}
		d.running.Go(d.run)
	})
}

// close ends the display and clears its line.
func (d *waitingDisplay) close() {
	close(d.stop)
	d.running.Wait()
}

func (d *waitingDisplay) run() {
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	go func() {
		select {
		case <-d.stop:
			cancel() // a look at the server must not keep the command waiting
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	place, told := -1, -1 // none yet
	var spoken time.Time
	for {
		select {
		case place = <-d.places:
			d.look(ctx)
		case <-tick.C:
		case <-d.stop:
			if d.live {
				fmt.Fprint(d.app.stderr, "\r\x1b[K")
			}
			return
		}
		waited := time.Since(d.began).Truncate(time.Second)
		switch {
		case ctx.Err() != nil || place < 0:
		case d.app.events:
			if place != told {
				d.tell(place)
				told = place
			}
		case d.live:
			if time.Since(d.looked) > lookEvery {
				d.look(ctx)
			}
			fmt.Fprint(d.app.stderr, "\r"+d.fit(fmt.Sprintf("waiting %v for %s", waited, d.line(place)))+"\x1b[K")
		case told < 0:
			fmt.Fprintln(d.app.stderr, "signalbox: waiting for", d.line(place))
			told, spoken = place, time.Now()
		case place != told && time.Since(spoken) >= quietFor || time.Since(spoken) >= speakAfter:
			d.look(ctx)
			fmt.Fprintf(d.app.stderr, "signalbox: waiting %v for %s\n", waited, d.line(place))
			told, spoken = place, time.Now()
		}
	}
}

// tell is the line for programs. Of several resources there is no place: there is one in each queue.
func (d *waitingDisplay) tell(place int) {
	if len(d.names) > 1 {
		place = 0
	}
	for _, name := range d.names {
		d.app.tell(eventJSON{Event: "waiting", Resource: name, Place: place})
	}
}

func (d *waitingDisplay) look(ctx context.Context) {
	state, err := inTheWay(ctx, d.box, d.names, d.weight)
	d.state, d.known, d.looked = state, err == nil, time.Now()
}

func (d *waitingDisplay) line(place int) string {
	holders := "held by others"
	if d.known {
		holders = describe(d.state, d.state.Now.Add(time.Since(d.looked)))
	}
	switch {
	case len(d.names) == 1:
		holders = ordinal(place) + " in the queue, " + holders
	case d.known:
		holders = printable(d.state.Resource) + ", " + holders
	}
	return listed(d.names) + ": " + holders
}

// fit cuts a line to the width of the terminal: one that wraps could not be written over. There is room left for the ^C
// that the terminal writes.
func (d *waitingDisplay) fit(line string) string {
	if width := widthOf(d.app.stderr); width > 4 {
		return cut(line, width-3)
	}
	return line
}

// heldBy says who holds a resource, of several the one that is in the way.
func heldBy(ctx context.Context, box *signalbox.Box, names []string, weight int) string {
	state, err := inTheWay(ctx, box, names, weight)
	switch {
	case err != nil:
		return "held by others"
	case len(names) > 1:
		return printable(state.Resource) + ", " + describe(state, state.Now)
	}
	return describe(state, state.Now)
}

// inTheWay looks at the first resource that has no room for a weight; at the last if all have.
func inTheWay(ctx context.Context, box *signalbox.Box, names []string, weight int) (state signalbox.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	for _, name := range names {
		state, err = box.Inspect(ctx, name)
		if err != nil || state.Held > 0 && state.Held+weight > state.Limit {
			break
		}
	}
	return state, err
}

// describe is "2 of 2 held by web1:42 wget (12s) and web2:7 curl (3s), 4 waiting".
func describe(state signalbox.State, now time.Time) string {
	const most = 3
	text := usageOf(&state)
	var holders []string
	for i := range state.Holders {
		if i == most {
			holders = append(holders, fmt.Sprintf("%d more", state.Leases-most))
			break
		}
		holders = append(holders, held(&state.Holders[i], now))
	}
	by := " by "
	if isReadWrite(&state) { // then by whom is said already
		by = ": "
	}
	switch n := len(holders); {
	case n == 1:
		text += by + holders[0]
	case n > 1:
		text += by + strings.Join(holders[:n-1], ", ") + " and " + holders[n-1]
	}
	if state.Waiters > 0 {
		text += fmt.Sprintf(", %d waiting", state.Waiters)
	}
	return text
}
