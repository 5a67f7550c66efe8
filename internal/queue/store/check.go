package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Finding is something that no transition leaves behind.
type Finding struct{ What, Where string }

// checkParts are what check.lua walks over, in an order in which what is mended first is not found again as something else.
var checkParts = []string{
	"settings", "claims", "jobs", "waiting", "lanes", "index", "links", "workers", "times", "unique", "ended", "endings", "sums",
	"schedules",
}

// Check walks over the whole state, some hundred entries a call, and mends what is torn if it is told to. Other transitions
// go on meanwhile, and each step is atomic by itself.
func (s *Store) Check(ctx context.Context, mend bool, lease time.Duration) ([]Finding, error) {
	c := &checking{store: s, mend: mend, lease: lease, held: map[string]int{}, links: map[string]int{}}
	for _, part := range checkParts {
		for cursor, first := "0", true; first || cursor != "0"; first = false {
			var err error
			if cursor, err = c.step(ctx, part, cursor); err != nil {
				return c.findings, err
			}
		}
	}
	for id, n := range c.held {
		if n > c.links[id] {
			if _, err := c.step(ctx, "orphan", fmt.Sprintf("%s\t%d\t%d", id, n, c.links[id])); err != nil {
				return c.findings, err
			}
		}
	}
	return c.findings, nil
}

// checking is a walk over the state.
type checking struct {
	store    *Store
	mend     bool
	lease    time.Duration
	findings []Finding
	held     map[string]int // for how many others a job waits
	links    map[string]int // of how many it will hear
}

func (c *checking) step(ctx context.Context, part, cursor string) (next string, err error) {
	flag := 0
	if c.mend {
		flag = 1
	}
	reply, err := c.store.run(ctx, "check", checkScript, []any{flag, part, cursor, ms(c.lease)})
	if err != nil {
		return "", err
	}
	if len(reply) != 2 {
		return "", c.store.unexpected("check", reply)
	}
	found, ok := texts(reply[1])
	next, isText := reply[0].(string)
	if !ok || !isText {
		return "", c.store.unexpected("check", reply)
	}
	for _, text := range found {
		what, where, _ := strings.Cut(text, "\t")
		switch what {
		case "held":
			id, n, _ := strings.Cut(where, "\t")
			c.held[id] = int(whole(n))
		case "child":
			c.links[where]++
		default:
			c.findings = append(c.findings, Finding{what, where})
		}
	}
	if part == "settings" && c.mend && len(found) > 0 {
		err = c.store.Configure(ctx) // counts them
	}
	return next, err
}

func (f Finding) String() string { return fmt.Sprintf("%s: %q", f.What, f.Where) }
