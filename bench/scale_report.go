package main

import (
	"fmt"
	"time"

	"github.com/signalbox-io/signalbox"
)

var (
	nameVerbs   = []string{"acquire", "renew", "release"}
	waiterVerbs = []string{"wait", "hand over", "heartbeat of an id", "heartbeat of a process"}
)

func last(of []census) census { return of[len(of)-1] }

// each is what one transition costs, at the largest size.
func (b *scaleBench) each() *section {
	out := &section{
		Title: "What one transition costs the server",
		Note: fmt.Sprintf("With %d names held, or %d waiters of one name. Each transition is one script call. Socket: what a "+
			"command costs besides, measured with PING of 50 clients, if it is sent alone; in a pipeline it is a tenth of that.",
			last(b.names).size, last(b.waiters).size),
		Columns: []string{"transition", "script µs", "socket µs", "commands in it", "messages", "bytes on the wire"},
	}
	for _, part := range []struct {
		verbs []string
		at    census
	}{{nameVerbs, last(b.names)}, {waiterVerbs, last(b.waiters)}} {
		for _, verb := range part.verbs {
			c := part.at.costs[verb]
			out.row(verb, number(c.scriptUs, 1), number(b.socketUs, 1), number(c.commands, 1), number(c.messages, 2), count(c.bytes))
		}
	}
	return out
}

// growth is the script µs of each transition, size by size.
func growth(title, note, what string, verbs []string, sizes []census) *section {
	out := &section{Title: title, Note: note, Columns: append([]string{what}, verbs...)}
	for _, c := range sizes {
		cells := []string{fmt.Sprint(c.size)}
		for _, verb := range verbs {
			cells = append(cells, number(c.costs[verb].scriptUs, 1))
		}
		out.row(cells...)
	}
	return out
}

func (b *scaleBench) byNames() *section {
	return growth("As names grow", "Script µs of each transition when so many names are held.", "names", nameVerbs, b.names)
}

func (b *scaleBench) byWaiters() *section {
	return growth("As waiters of one name grow",
		"Script µs of each transition when so many wait, a hundred of each process, or ten. The heartbeat of an id has a share of its process's.",
		"waiters", waiterVerbs, b.waiters)
}

// memories are what things take of the server's memory.
func (b *scaleBench) memories() *section {
	out := &section{
		Title: "Memory",
		Note: "Of the server, for each, by used_memory. Names of 16 bytes. An idle name remembers its token for an hour, or " +
			"its ttl; then nothing of it is left.",
		Columns: []string{"what", "bytes"},
	}
	n, w := last(b.names), last(b.waiters)
	out.row("a mutex held", count(n.bytes["held"]))
	for _, kind := range []string{redislockKind, redsyncKind} {
		out.row("a mutex held, "+kind, count(b.peers[kind]))
	}
	out.row("a name that is idle", count(n.bytes["idle"]))
	out.row("a waiter", count(w.bytes["waiter"]))
	out.atMost("a mutex held, beside redislock's", 1.5, []float64{n.bytes["held"] / b.peers[redislockKind]})
	return out
}

// laws fits a·n^b to each.
func (b *scaleBench) laws() *section {
	out := &section{
		Title: "The law of growth",
		Note: "b of a·n^b, fitted to the figures above: 0 is no growth, 1 would be in proportion. A sorted set's logarithm " +
			"is about 0.1 over these decades.",
		Columns: []string{"transition", "grows with", "b"},
	}
	for _, part := range []struct {
		verbs []string
		with  string
		sizes []census
	}{{nameVerbs, "names", b.names}, {waiterVerbs, "waiters", b.waiters}} {
		for _, verb := range part.verbs {
			if verb == "heartbeat of an id" {
				continue // the fewer ids, the larger the share
			}
			law := exponent(part.sizes, func(c census) float64 { return c.costs[verb].scriptUs })
			out.row(verb, part.with, number(law, 2))
			out.atMost(verb+": b", 0.2, []float64{law})
		}
	}
	return out
}

// systems is what large ones come to.
func (b *scaleBench) systems() *section {
	out := &section{
		Title: "What large systems need",
		Note: fmt.Sprintf("Reckoned from the figures above, at the ttl of %v and the claim time of %v that are the defaults: a lease is "+
			"renewed each third of its ttl, a process says each third of the claim time that its waiters of a name are there. A "+
			"server runs scripts on one core. In a Cluster names spread over the nodes, and so does all of this: a message stays with the "+
			"node that has its name.",
			signalbox.DefaultTTL, signalbox.DefaultClaim),
		Columns: []string{"system", "cores of a server", "memory", "the first limit"},
	}
	n, w := last(b.names), last(b.waiters)
	alone := func(c cost) float64 { return c.scriptUs + b.socketUs }
	piped := func(c cost) float64 { return c.scriptUs + b.socketUs/10 }
	cores := func(perSecond, us float64) string { return number(perSecond*us/1e6, 2) }
	gigabytes := func(names, bytes float64) string { return number(names*bytes/(1<<30), 2) + " GB" }
	third := func(d time.Duration) float64 { return 3 / d.Seconds() }

	cycle := alone(n.costs["acquire"]) + alone(n.costs["release"])
	turn := alone(w.costs["wait"]) + alone(w.costs["hand over"])
	out.row(fmt.Sprintf("uncontended: %s cycles a second", count(1e6/cycle)), "1.00", "", "the core")
	out.row(fmt.Sprintf("contended: %s handoffs a second", count(1e6/turn)), "1.00", "", "the core")
	out.row("10,000 processes, each holds 10 leases of its own", cores(100_000*third(signalbox.DefaultTTL), piped(n.costs["renew"])),
		gigabytes(100_000, n.bytes["held"]), "renewals; a ttl twice as long halves them")
	out.row("10,000,000 names held", cores(10_000_000*third(signalbox.DefaultTTL), piped(n.costs["renew"])),
		gigabytes(10_000_000, n.bytes["held"]), "renewals")
	out.row("10,000,000 names used within an hour, idle", "0.00", gigabytes(10_000_000, n.bytes["idle"]), "memory, until the token is forgotten")
	out.row("1,000,000 waiters of 1,000 names, 10,000 processes with 100 waiters of one name each",
		cores(10_000*third(signalbox.DefaultClaim), alone(w.costs["heartbeat of a process"])),
		gigabytes(1_000_000, w.bytes["waiter"]), "heartbeats, one for each process and name")
	out.row("1,000,000 waiters of 1,000 names, 10,000 processes with 100 waiters of as many names each",
		cores(1_000_000*third(signalbox.DefaultClaim), piped(w.costs["heartbeat of a process"])),
		gigabytes(1_000_000, w.bytes["waiter"]), "heartbeats: more than a server has; spread the names over a Cluster, or ask for fewer names at once")
	return out
}
