package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/queue"
)

// settings are what the flags say.
type settings struct {
	place
	dir, listen     string
	agents          int
	perMin          map[string]*float64
	seed            uint64
	offerFor        time.Duration
	chaos           bool
	every, duration time.Duration
}

// centre is one that is open.
type centre struct {
	*settings
	out       io.Writer
	box       *signalbox.Box
	q         *queue.Queue
	account   *account
	chronicle *chronicle
	customers *customers
	server    sync.WaitGroup // its process
	staffed   sync.WaitGroup // those of agents and managers
	victims   [][]*process
}

// run opens a centre, has it work until ctx ends or the duration is over, and checks that nothing is lost.
func (s *settings) run(ctx context.Context, out io.Writer) (err error) {
	if err := s.check(); err != nil {
		return err
	}
	// What lasts longest ends last: first no customer comes any more, then agents and pages end, and the server after them.
	serving, endServer := context.WithCancel(context.WithoutCancel(ctx))
	defer endServer()
	c := &centre{settings: s, out: out, account: newAccount()}
	c.chronicle = &chronicle{print: func(text string) { fmt.Fprintln(out, text) }}
	removed, err := c.startServer(serving)
	if err != nil {
		return err
	}
	defer func() { // after the server has ended
		endServer()
		c.server.Wait()
		err = errors.Join(err, removed())
	}()
	open, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if c.box, c.q, err = c.open(open); err != nil {
		return fmt.Errorf("open the centre: %w", err)
	}
	defer func() { err = errors.Join(err, c.q.Close(), c.box.Close()) }()
	return c.day(ctx)
}

func (s *settings) check() error {
	switch {
	case s.speed <= 0 || s.speed > 1000:
		return fmt.Errorf("a speed of %v: more than 0, at most 1000", s.speed)
	case s.agents < 0 || s.agents > 10_000:
		return fmt.Errorf("%d agents: from 0 to 10000", s.agents)
	case s.offerFor < 100*time.Millisecond:
		return fmt.Errorf("offers for %v: nobody can accept so fast", s.offerFor)
	case s.every < 100*time.Millisecond:
		return fmt.Errorf("chaos every %v: at least 100ms", s.every)
	}
	for name, n := range s.perMin {
		if *n < 0 || *n > 100_000 {
			return fmt.Errorf("%v %ss a minute: from 0 to 100000", *n, name)
		}
	}
	return nil
}

// startServer starts the embedded engine in a process of its own, unless there is a server, and returns what removes its
// folder if that is a temporary one.
func (c *centre) startServer(ctx context.Context) (remove func() error, err error) {
	remove = func() error { return nil }
	if c.url != "" {
		return remove, nil
	}
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "contact-centre-"); err != nil {
			return nil, err
		}
		remove = func() error { return os.RemoveAll(c.dir) }
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, err
	}
	// The server comes back to where it was, so its port is chosen here.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, errors.Join(err, remove())
	}
	c.url = "redis://" + address
	server := c.start(ctx, &c.server, "the server", "engine", "--dir", c.dir, "--listen", address)
	c.victims = append(c.victims, []*process{server})
	return remove, nil
}

func (c *centre) start(ctx context.Context, running *sync.WaitGroup, what string, args ...string) *process {
	p := &process{what: what, args: args}
	running.Go(func() {
		p.keep(ctx, func(err error) {
			c.account.note(err.Error())
			c.chronicle.tell(err.Error())
		})
	})
	return p
}

// day is the time for which the centre is open.
func (c *centre) day(ctx context.Context) (err error) {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	var rest sync.WaitGroup
	defer c.staffed.Wait()
	defer rest.Wait()
	defer end()
	err = c.q.Configure(ctx, queue.Step(c.pace().real(time.Minute)), queue.Crashes(1_000_000), queue.Placement(queue.LeastBusy))
	if err != nil {
		return err
	}
	perMin := map[string]float64{}
	for name, n := range c.perMin {
		perMin[name] = *n
	}
	c.customers = &customers{
		q: c.q, pace: c.pace(), account: c.account, seed: c.seed, perMin: perMin, run: strconv.FormatInt(time.Now().UnixMilli(), 36),
	}
	adopted, err := c.customers.adopt(ctx, working)
	if err != nil {
		return err
	}
	stopPages, err := c.servePages(working)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopPages()) }()
	if adopted > 0 {
		fmt.Fprintf(c.out, "%d contacts were waiting from an earlier run.\n", adopted)
	}
	c.staff(working)

	coming, stop := context.WithCancel(ctx)
	defer stop()
	if c.duration > 0 {
		coming, stop = context.WithTimeout(ctx, c.duration)
		defer stop()
	}
	for _, through := range channels {
		rest.Go(func() { c.customers.come(coming, working, through) })
	}
	if c.chaos {
		rest.Go(func() { wreak(coming, c.every, c.victims, c.chronicle, c.sayAccount) })
	}
	<-coming.Done()
	err = c.close()
	end()
	c.customers.wait.Wait()
	return err
}

func (c *centre) pace() pace { return pace(c.speed) }

// staff starts two managers, of whom one leads, and the agents, in up to three processes.
func (c *centre) staff(ctx context.Context) {
	var managers, floors []*process
	for i := range 2 {
		managers = append(managers, c.start(ctx, &c.staffed, fmt.Sprint("manager ", i+1), append([]string{"manager"}, c.args()...)...))
	}
	for first, floor := 0, 1; first < c.agents; floor++ {
		count := (c.agents - first) / (4 - min(floor, 3))
		args := []string{
			"agents", "--first", strconv.Itoa(first), "--count", strconv.Itoa(max(count, 1)),
			"--seed", strconv.FormatUint(c.seed, 10), "--offer-for", c.offerFor.String(),
		}
		what := fmt.Sprintf("floor %d with %d agents", floor, max(count, 1))
		floors = append(floors, c.start(ctx, &c.staffed, what, append(args, c.args()...)...))
		first += max(count, 1)
	}
	if len(floors) > 0 {
		c.victims = append([][]*process{floors}, c.victims...)
	}
	c.victims = append(c.victims, managers)
}

// sayAccount is the account in a line, as far as it can be known now.
func (c *centre) sayAccount() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	t, err := c.check(ctx)
	if err != nil {
		return err.Error()
	}
	return t.String()
}

// close lets those in who are at the door, and checks the account. The server may have been killed a moment ago.
func (c *centre) close() error {
	c.customers.arrival.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	t, err := c.check(ctx)
	if err != nil {
		return fmt.Errorf("the account at the end: %w", err)
	}
	_, all := c.chronicle.recent()
	_, err = fmt.Fprintf(c.out, "\n%v. Nothing is lost, after %s.\n", t, plural(all, "incident"))
	return err
}

// check checks the account as soon as there is a server to ask.
func (c *centre) check(ctx context.Context) (totals, error) {
	for {
		t, err := c.account.check(ctx, c.q)
		if !errors.Is(err, queue.ErrUnavailable) || !pause(ctx, 100*time.Millisecond) {
			return t, err
		}
	}
}

// servePages serves the pages until ctx ends; stop waits for that.
func (c *centre) servePages(ctx context.Context) (stop func() error, err error) {
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return nil, fmt.Errorf("serve the pages: %w; choose another address with --listen", err)
	}
	pages := newPages(ctx, c)
	server := &http.Server{
		Handler: pages.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 14,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(c.out, "The contact centre is open: http://%s for agents, http://%s/supervisor to watch. One second here is %v there. Ctrl-C closes it.\n",
		listener.Addr(), listener.Addr(), c.pace().centre(time.Second).Round(time.Second))
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		pages.close()
		return err
	}, nil
}
