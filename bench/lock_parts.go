package main

import (
	"fmt"
	"time"
)

// What is matched with what. The aims are in lock_aims.go.

const (
	semaphoreLimit   = 5
	semaphoreClients = 50
	crowdSize        = 100
	waiters          = 20
)

// match makes one with what all have in common.
func (b *lockBench) match(kind string, on *server, squad *squad, clients int) *match {
	m := &match{
		name: kind, kind: kind, where: "engine in process", server: on, squad: squad, clients: clients,
		window: b.plan.Window, settle: settleTime,
	}
	if on != nil {
		m.where = on.name
	}
	return m
}

// uncontendedPart is one client alone, with the server on another core and on the same.
func uncontendedPart(b *lockBench) *lockPart {
	p := &lockPart{name: "uncontended", rounds: b.plan.Short}
	add := func(on *server, squad *squad, suffix string, kinds ...string) {
		for _, kind := range kinds {
			m := b.match(kind, on, squad, 1)
			m.where, m.window = m.where+suffix, b.plan.ShortWindow
			p.matches = append(p.matches, m)
		}
	}
	peers := []string{
		bareKind, signalboxKind, redsyncKind, redislockLinearKind, rueidislockKind, bookKind, bookLuaKind,
	}
	add(b.servers.redis, b.apart, twoCores, peers...)
	add(b.servers.engine, b.apart, twoCores, bareKind, signalboxKind)
	add(b.servers.redis, b.beside, sameCore, peers...)
	add(b.servers.engine, b.beside, sameCore, bareKind, signalboxKind)
	add(nil, b.inside, "", bareKind, signalboxKind)
	p.sections = func() []*section {
		out := matchTable("Uncontended: one client acquires and releases",
			"Two bare EVALSHA are the floor: the same client, two scripts that do nothing. On one core the round trip is a "+
				"third of what it is across two, so what the client and the server compute weighs three times as much.",
			p.matches)
		uncontendedAims(out, p.matches)
		return []*section{out}
	}
	return p
}

const (
	twoCores = ", two cores"
	sameCore = ", same core"
)

// mutexPart is one lock and more and more processes that want it.
func mutexPart(b *lockBench) *lockPart {
	p := &lockPart{name: "mutex", rounds: b.plan.Rounds}
	peers := []string{
		signalboxKind, redsyncKind, redislockLinearKind, redislockExpoKind, rueidislockKind, bookKind, bookLuaKind,
	}
	holds := []time.Duration{0, time.Millisecond, 10 * time.Millisecond}
	for _, hold := range holds {
		for _, clients := range b.plan.Clients {
			for i, kind := range append(peers, signalboxKind) {
				on := b.servers.redis
				if i == len(peers) {
					on = b.servers.engine
				}
				m := b.match(kind, on, b.apart, clients)
				m.hold = hold
				// A hold takes a little longer than asked for, and a handoff takes a round trip.
				if hold > 0 {
					rotation := time.Duration(clients) * (hold + 400*time.Microsecond)
					m.window = max(m.window, time.Duration(b.plan.Rotations)*rotation)
				}
				p.matches = append(p.matches, m)
			}
		}
	}
	p.sections = func() []*section {
		var sections []*section
		for _, hold := range holds {
			var of []*match
			for _, m := range p.matches {
				if m.hold == hold {
					of = append(of, m)
				}
			}
			out := matchTable(fmt.Sprintf("One lock, held %v, a process for each client", hold), mutexNote, of)
			mutexAims(out, of)
			sections = append(sections, out)
		}
		return sections
	}
	return p
}

const mutexNote = "Acquires per second alone reward unfairness: who releases takes the lock again before anybody else has " +
	"woken up. Read them with the longest wait and the shares. redsync polls every 50 to 250 ms, redislock every 10 ms or " +
	"from 1 ms (in fact 2) doubling to 100 ms, the book every 1 ms; rueidislock is told by the server, and all wake up."

// semaphorePart is a semaphore with ten times as many clients as permits.
func semaphorePart(b *lockBench) *lockPart {
	p := &lockPart{name: "semaphore", rounds: b.plan.Rounds}
	add := func(kind string, on *server, clients int) {
		m := b.match(kind, on, b.apart, clients)
		m.window = 2 * b.plan.Window
		if kind != bareKind {
			m.hold, m.limit = time.Millisecond, semaphoreLimit
		}
		p.matches = append(p.matches, m)
	}
	add(bareKind, b.servers.redis, 1)
	add(signalboxSemaphore, b.servers.redis, semaphoreClients)
	add(fairKind, b.servers.redis, semaphoreClients)
	add(fairLockedKind, b.servers.redis, semaphoreClients)
	add(bareKind, b.servers.engine, 1)
	add(signalboxSemaphore, b.servers.engine, semaphoreClients)
	p.sections = func() []*section {
		out := matchTable(fmt.Sprintf("A semaphore of %d, held 1ms, a process for each client", semaphoreLimit),
			"Holders count themselves in another key, after the grant and before the release, so that a hold has two round "+
				"trips more; these are not among the commands. Broken: acquires that found more holders than the limit, and the "+
				"most at once.", p.matches)
		semaphoreAims(out, p.matches)
		return []*section{out}
	}
	return p
}

// crowdPart is many goroutines of one process, with one client library.
func crowdPart(b *lockBench) *lockPart {
	p := &lockPart{name: "crowd", rounds: b.plan.Rounds}
	add := func(kind string, on *server) {
		m := b.match(kind, on, b.apart, crowdSize)
		m.together = true
		p.matches = append(p.matches, m)
	}
	for _, kind := range []string{
		signalboxHandoff, signalboxKind, redsyncKind, redislockLinearKind, rueidislockKind, bookLuaKind,
	} {
		add(kind, b.servers.redis)
	}
	add(signalboxHandoff, b.servers.engine)
	p.sections = func() []*section {
		out := matchTable(fmt.Sprintf("One lock, held 0s, %d goroutines of one process", crowdSize),
			fmt.Sprintf("One client library for all. LocalHandoff(%d): as many turns on one grant as there are goroutines.",
				handoffs), p.matches)
		crowdAims(out, p.matches)
		return []*section{out}
	}
	return p
}

// waitingPart is a lock that one holds all the time, and others that wait.
func waitingPart(b *lockBench) *lockPart {
	p := &lockPart{name: "waiting", rounds: 1}
	add := func(kind string, on *server) {
		m := b.match(kind, on, b.apart, waiters+1)
		m.window, m.settle = b.plan.Patience, time.Second
		m.hold = m.window + 2*m.settle // it ends with the window
		p.matches = append(p.matches, m)
	}
	for _, kind := range []string{
		signalboxKind, redsyncKind, redislockLinearKind, redislockExpoKind, rueidislockKind, bookKind, bookLuaKind,
	} {
		add(kind, b.servers.redis)
	}
	add(signalboxKind, b.servers.engine)
	p.sections = func() []*section {
		out := waitingTable(p.matches, b.plan.Patience)
		patienceAims(out, p.matches, b.plan.Patience)
		return []*section{out}
	}
	return p
}
