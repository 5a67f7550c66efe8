package main

import (
	"fmt"
	"time"
)

// A pacer is a process that sends requests when they are due, so many a second, whatever the answers do, and notes how
// long after that moment each was answered. It is one thread that never sleeps, and makes no garbage: what it sees late
// was late. Besides, it can send one command more, on a connection of its own, and read its answer without looking at it.

// pacePatience is how long a window may last beyond its end.
const pacePatience = time.Minute

// paceConfig is what the role pace is told.
type paceConfig struct {
	Addr              string
	Connections, Rate int
	Keys              int // GET and SET in turn of keys that are there; 0: PING
}

// paceWindow asks for a window.
type paceWindow struct {
	Seconds float64
	Command []string // sent when the window has begun; the window lasts until it is answered
	Lines   bool     // the answer is an array, not a line
}

// paced is what a window showed.
type paced struct {
	Operations                   int
	P50, P99, P999, P9999, Worst float64 // ms
	CommandMs                    float64 // from the command to the last byte of its answer
	Share                        float64 // of its core that the pacer had; 1 if nobody else wanted it
	Fault                        string
}

type pacer struct{ process *process }

func startPacer(on []int, config paceConfig) (*pacer, error) {
	p, err := startRole(on, "pace", config)
	if err != nil {
		return nil, err
	}
	var ready string
	if err := p.hear(&ready); err != nil {
		p.stop()
		return nil, err
	}
	return &pacer{p}, nil
}

func (p *pacer) window(w paceWindow) (found paced, err error) {
	if err := p.process.tell(w); err != nil {
		return found, err
	}
	if err := p.process.hear(&found); err != nil {
		return found, err
	}
	if found.Fault != "" {
		return found, fmt.Errorf("%v: %s", w.Command, found.Fault)
	}
	return found, nil
}

// pacers are one for each server.
type pacers map[string]*pacer

func (p pacers) stop() {
	for _, one := range p {
		one.process.stop()
	}
}

// besidePing are the pacers that stand beside a command.
func besidePing(b *engineBench, pair *servers) (pacers, error) {
	return startPacers(b, pair, paceConfig{Connections: 2, Rate: 5000})
}

func startPacers(b *engineBench, pair *servers, config paceConfig) (pacers, error) {
	p := pacers{}
	for _, s := range []*server{pair.redis, pair.engine} {
		config.Addr = s.addr
		one, err := startPacer(b.cores.client, config)
		if err != nil {
			p.stop()
			return nil, err
		}
		name := engineName
		if s == pair.redis {
			name = redisName
		}
		p[name] = one
	}
	return p, nil
}
