package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-io/signalbox/queue"
)

// desks are those of people: who has logged in at a page, by the cookie that his browser was given.
type desks struct {
	mu      sync.Mutex
	closed  bool
	byToken map[string]*desk
	pages   map[*desk]int         // how many pages of a desk are open
	leaving map[*desk]*time.Timer // without a page for too long, an agent has gone
}

const (
	mostDesks = 100
	// unwatched is for how long an agent may have no page open before he is logged out, and his tasks go to others.
	unwatched = time.Minute
)

func newDesks() *desks {
	return &desks{byToken: map[string]*desk{}, pages: map[*desk]int{}, leaving: map[*desk]*time.Timer{}}
}

// open logs an agent in, whose name nobody else may have at this time, and returns the token of his desk.
func (s *desks) open(ctx context.Context, q *queue.Queue, d *desk) (string, error) {
	asking, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	online, err := q.Workers(asking)
	if err != nil {
		return "", fmt.Errorf("the server cannot be asked who is here: try again in a moment (%w)", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range online {
		if w.Name == d.name && w.State != queue.Vanished {
			return "", fmt.Errorf("%s is here already: choose another name", d.name)
		}
	}
	for _, other := range s.byToken {
		if other.name == d.name {
			return "", fmt.Errorf("%s is here already: choose another name", d.name)
		}
	}
	if s.closed || len(s.byToken) >= mostDesks {
		return "", errors.New("all desks are taken: come back later")
	}
	if d, err = logIn(ctx, q, d); err != nil {
		return "", err
	}
	token := rand.Text()
	s.byToken[token] = d
	s.leaveLater(d)
	return token, nil
}

func (s *desks) find(token string) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byToken[token]
}

// shut logs an agent out.
func (s *desks) shut(d *desk) {
	s.mu.Lock()
	for token, other := range s.byToken {
		if other == d {
			delete(s.byToken, token)
		}
	}
	delete(s.pages, d)
	if timer := s.leaving[d]; timer != nil {
		timer.Stop()
		delete(s.leaving, d)
	}
	s.mu.Unlock()
	d.logOut()
}

// watched notes a page that shows a desk, until the returned function is called.
func (s *desks) watched(d *desk) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[d]++
	if timer := s.leaving[d]; timer != nil {
		timer.Stop()
		delete(s.leaving, d)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pages[d] == 0 {
			return // logged out
		}
		if s.pages[d]--; s.pages[d] == 0 {
			s.leaveLater(d)
		}
	}
}

// leaveLater is called with mu held.
func (s *desks) leaveLater(d *desk) {
	s.leaving[d] = time.AfterFunc(unwatched, func() {
		s.mu.Lock()
		stays := s.pages[d] > 0
		s.mu.Unlock()
		if !stays {
			s.shut(d)
		}
	})
}

// close logs everybody out.
func (s *desks) close() {
	s.mu.Lock()
	s.closed = true
	var all []*desk
	for _, d := range s.byToken {
		all = append(all, d)
	}
	s.mu.Unlock()
	for _, d := range all {
		s.shut(d)
	}
}
