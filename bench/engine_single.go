package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

// One client with one connection, and thousands that say nothing.

func singleGroup(*engineBench) *engineGroup {
	g := &engineGroup{}
	for _, placement := range []string{twoCores, sameCore} {
		for _, c := range []struct {
			name string
			fill []string
		}{{name: "set"}, {"get", []string{"-t", "set"}}} {
			t := &engineTest{name: "one client, " + c.name + placement}
			rate := t.row(t.name, "op/s", 0, ratioAtLeast(0.95))
			cpu := t.row(t.name, "µs CPU", 2, justKnow)
			n := 0
			t.measure = func(ctx context.Context, b *engineBench, server string) error {
				on, cores := b.on(server), b.cores.client
				if placement == sameCore {
					cores = b.cores.server
				}
				if err := flush(ctx, on); err != nil {
					return err
				}
				if rate.isPaired() {
					n = b.operations(25e3)
				}
				if c.fill != nil {
					if _, err := (benchmarkRun{b.cores.client, loadConnections, 16, keysFilled, loadRange, c.fill}).on(on); err != nil {
						return err
					}
				}
				used := on.process.ran()
				result, err := benchmarkRun{cores, 1, 1, n, loadRange, []string{"-t", c.name}}.on(on)
				if err != nil {
					return err
				}
				rate.add(server, result.rate)
				cpu.add(server, max(float64((on.process.ran()-used).Microseconds())/float64(n), 0.001))
				return nil
			}
			g.tests = append(g.tests, t)
		}
	}
	return g
}

// idleConfig is what the role idle is told: to open so many connections, to ask once on each, and to stay.
type idleConfig struct {
	Addr        string
	Connections int
}

func idleRole(_ context.Context, config []byte) error {
	var c idleConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	answers := make([]byte, 0, 64)
	for i := range c.Connections {
		conn, err := net.Dial("tcp", c.Addr)
		if err != nil {
			return say(fmt.Sprintf("connection %d: %v", i+1, err))
		}
		defer shut(conn)
		if answers, err = exchange(conn, []byte("*1\r\n$4\r\nPING\r\n"), answers[:0], 1); err != nil || string(answers) != "+PONG\r\n" {
			return say(fmt.Sprintf("connection %d: %q, %v", i+1, answers, err))
		}
	}
	if err := say(""); err != nil {
		return err
	}
	dismissed()
	return nil
}

// idleGroup measures memory on servers that are new for each pair.
func idleGroup(b *engineBench) *engineGroup {
	t := &engineTest{name: fmt.Sprintf("%d idle connections", b.plan.Idle)}
	each := t.row(t.name, "KB each", 1, ownAtMost(20, "KB"))
	t.measure = func(ctx context.Context, b *engineBench, server string) error {
		s, err := startMeasured(ctx, server, b.cores, b.pair.folder)
		if err != nil {
			return err
		}
		defer s.end()
		before, _, err := s.process.resident()
		if err != nil {
			return err
		}
		p, err := startRole(b.cores.client, "idle", idleConfig{s.addr, b.plan.Idle})
		if err != nil {
			return err
		}
		defer p.stop()
		var fault string
		if err := p.hear(&fault); err != nil {
			return err
		}
		if fault != "" {
			return fmt.Errorf("idle: %s", fault)
		}
		time.Sleep(time.Second)
		after, _, err := s.process.resident()
		if err != nil {
			return err
		}
		each.add(server, (after-before)/1e3/float64(b.plan.Idle))
		return nil
	}
	return &engineGroup{tests: []*engineTest{t}}
}
