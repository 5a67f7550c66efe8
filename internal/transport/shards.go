package transport

import (
	"context"
	"sync"
	"time"
)

// A message by plain PUBLISH is carried to every node of a Cluster. One by SPUBLISH stays with the node that has the slot of
// its channel. So in a Cluster an inbox is one channel in each slot in which its process waits for something, and Shards
// keeps it subscribed to those, over one connection to each server that has some of them.
//
// A slot may move, and a server may be replaced: then the old one says that the channel is not there any more, answers MOVED,
// or goes away. What a connection knew is forgotten, and its channels are asked for at the servers that have them now.
// Whenever a channel is heard (again), that is told: messages may have gone by.

// Clustered is a transport that may lead to a Cluster.
type Clustered interface {
	// Sharded says whether it does.
	Sharded() bool
	// Ear is a way to hear at the server that has a channel. Nothing is opened before the first Join.
	Ear(ctx context.Context, channel string) (Ear, error)
}

// Ear is a connection to one server, for sharded channels. Join is called once before Hear, and then both may be called while that
// is at work; what comes of them is an Event.
type Ear interface {
	Server() string
	Join(ctx context.Context, channel string) error
	Leave(ctx context.Context, channel string) error
	// Hear calls hear with what comes, as Listen does, until ctx ends or the connection is lost, and closes it.
	Hear(ctx context.Context, hear func(Event)) error
}

// linger is for how long a channel is kept that nobody wants: who waits somewhere soon waits there again.
const linger = 5 * time.Second

// Shards may be used by any number of goroutines. Want and Drop do not wait.
type Shards struct {
	transport Clustered
	hear      func(Event)
	bell      chan struct{}

	mu       sync.Mutex
	channels map[string]*shard
	unheard  map[string]bool // those of them that are wanted, and are to be joined
	idle     []farewell      // those that nobody wanted any more, the earliest first
	ears     map[string]Ear  // by server
	shaken   bool            // something was lost since Run last looked: servers change, and are not to be hurried
	tasks    sync.WaitGroup
}

// shard is a channel that is wanted, or was a moment ago.
type shard struct {
	users int
	since time.Time // when it was dropped last
	at    Ear       // where it is heard, or is to be; nil if nowhere
}

// farewell is that a channel was dropped, and when.
type farewell struct {
	channel string
	since   time.Time
}

// NewShards returns a Shards that hears of nothing until it runs. hear is told of messages and of channels that are heard
// (again).
func NewShards(t Clustered, hear func(Event)) *Shards {
	return &Shards{
		transport: t, hear: hear, bell: make(chan struct{}, 1), channels: map[string]*shard{}, unheard: map[string]bool{},
		ears: map[string]Ear{},
	}
}

// Want has a channel heard until as many have dropped it as wanted it.
func (s *Shards) Want(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.channels[channel]
	if known == nil {
		known = &shard{}
		s.channels[channel] = known
	}
	if known.users++; known.at == nil && !s.unheard[channel] {
		s.unheard[channel] = true
		s.ring()
	}
}

// Drop takes a Want back.
func (s *Shards) Drop(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.channels[channel]; known != nil {
		if known.users--; known.users == 0 {
			known.since = time.Now()
			s.idle = append(s.idle, farewell{channel, known.since})
		}
	}
}

func (s *Shards) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// Run keeps what is wanted subscribed until ctx ends, and returns when no goroutine is left. pause is how long to wait after
// so many failures in a row.
func (s *Shards) Run(ctx context.Context, pause func(failures int) time.Duration) {
	defer s.tasks.Wait()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for failures := 0; ctx.Err() == nil; {
		next := linger
		if !s.wasShaken() && s.settle(ctx) {
			failures = 0
		} else {
			failures++
			next = pause(failures)
		}
		timer.Reset(next)
		if failures > 0 { // what is wanted besides waits as well: it may be the same server
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-timer.C:
		case <-s.bell:
		case <-ctx.Done():
		}
	}
}

func (s *Shards) wasShaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.shaken
	s.shaken = false
	return was
}

// settle joins what is wanted and not heard, and leaves what nobody wants any more. It reports whether all went well.
func (s *Shards) settle(ctx context.Context) bool {
	join, leave := s.unsettled()
	for channel, ear := range leave {
		_ = ear.Leave(ctx, channel) // an ear that failed is closed by who hears by it
	}
	well := true
	for _, channel := range join {
		well = s.join(ctx, channel) && well
	}
	return well
}

func (s *Shards) unsettled() (join []string, leave map[string]Ear) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 && time.Since(s.idle[0].since) >= linger {
		f := s.idle[0]
		s.idle = s.idle[1:]
		known := s.channels[f.channel]
		if known == nil || known.users > 0 || known.since != f.since {
			continue // it was wanted again
		}
		if known.at != nil {
			if leave == nil {
				leave = map[string]Ear{}
			}
			leave[f.channel] = known.at
		}
		delete(s.channels, f.channel)
		delete(s.unheard, f.channel)
	}
	for channel := range s.unheard {
		join = append(join, channel)
	}
	return join, leave
}

// join asks the server for a channel that has it. The ear is entered first: it may be lost at once.
func (s *Shards) join(ctx context.Context, channel string) bool {
	ear, err := s.transport.Ear(ctx, channel)
	if err != nil {
		return false
	}
	s.mu.Lock()
	open := s.ears[ear.Server()]
	if open == nil {
		open = ear
		s.ears[ear.Server()] = ear
	}
	if known := s.channels[channel]; known != nil {
		known.at = open
		delete(s.unheard, channel)
	}
	s.mu.Unlock()
	err = open.Join(ctx, channel)
	if open == ear {
		s.tasks.Go(func() { s.listen(ctx, ear) })
	}
	if err != nil {
		s.lost(channel)
	}
	return err == nil
}

// listen hears by an ear until it is lost, and has its channels asked for elsewhere then.
func (s *Shards) listen(ctx context.Context, ear Ear) {
	_ = ear.Hear(ctx, func(e Event) { // what ended it makes no difference
		if e.Gone {
			s.lost(e.Channel)
		} else {
			s.hear(e)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ears, ear.Server())
	for channel, known := range s.channels {
		if known.at == ear {
			s.unhear(channel, known)
		}
	}
	s.shaken = true
	s.ring()
}

// lost is told of a channel that is not heard any more.
func (s *Shards) lost(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.channels[channel]; known != nil {
		s.unhear(channel, known)
		s.shaken = true
		s.ring()
	}
}

// unhear notes that a channel is heard nowhere. Called with mu held.
func (s *Shards) unhear(channel string, known *shard) {
	known.at = nil
	if known.users > 0 {
		s.unheard[channel] = true
	}
}
