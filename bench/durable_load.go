package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The part load: how long a server takes from its start until it has loaded what is in its folder. Both load the same
// files, which Redis has written, once as a snapshot and once as an append-only file of nothing but writes.

type loadCase struct {
	name        string
	settings    []string
	bytes       int64
	times, cpus both
}

func (c *loadCase) folder(b *durableBench) string { return filepath.Join(b.folder, "load-"+c.name) }

type loads struct {
	keys     int
	prepared bool
	cases    []*loadCase
}

func newLoads(b *durableBench) *loads {
	return &loads{keys: b.plan.Keys, cases: []*loadCase{
		{name: "snapshot", settings: []string{"appendonly=no"}, times: both{}, cpus: both{}},
		{
			name: "append-only file", times: both{}, cpus: both{},
			settings: []string{"appendonly=yes", "aof-use-rdb-preamble=no", "auto-aof-rewrite-percentage=0", "appendfsync=no"},
		},
	}}
}

func (l *loads) name() string { return "load" }

func (l *loads) measure(ctx context.Context, b *durableBench, server string) error {
	for _, c := range l.cases {
		if !l.prepared {
			if err := c.prepare(ctx, b); err != nil {
				return fmt.Errorf("preparing the %s: %w", c.name, err)
			}
		}
		if err := c.measure(ctx, b, server); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	l.prepared = true
	return nil
}

// prepare has Redis write the files.
func (c *loadCase) prepare(ctx context.Context, b *durableBench) error {
	if err := os.MkdirAll(c.folder(b), 0o700); err != nil {
		return err
	}
	s, err := startKeeper(ctx, redisName, b.cores.server, c.folder(b), c.settings...)
	if err != nil {
		return err
	}
	defer s.end()
	if _, err := drive(b.cores.client, fillOf(s, b.plan.Keys)); err != nil {
		return err
	}
	if c.name == "snapshot" {
		if _, err := s.save(ctx, 50*time.Millisecond, nil); err != nil {
			return err
		}
	}
	// An answer was sent after the write: what was filled in is in the file when the process is killed.
	s.end()
	return filepath.WalkDir(c.folder(b), func(_ string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			c.bytes += info.Size()
		}
		return err
	})
}

func (c *loadCase) measure(ctx context.Context, b *durableBench, server string) error {
	if err := copyFolder(c.folder(b), b.data()); err != nil {
		return err
	}
	begin := time.Now()
	s, err := startKeeper(ctx, server, b.cores.server, b.data(), append(c.settings, "save=")...)
	if err != nil {
		return err
	}
	defer s.end()
	took, cpu := time.Since(begin), s.process.cpu()
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	keys, err := client.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	if keys != int64(b.plan.Keys) {
		return fmt.Errorf("%d of %d keys were loaded", keys, b.plan.Keys)
	}
	c.times.add(server, took.Seconds())
	c.cpus.add(server, cpu.Seconds())
	return nil
}

func (l *loads) section() *section {
	out := &section{
		Title: fmt.Sprintf("Loading %d keys at the start", l.keys),
		Note: "From the start of the process until commands are answered. Both load the same files, which Redis has written " +
			"and which the system has in memory. CPU is the server's until then, user and system.",
		Columns: []string{"what", "Redis", "engine", "ratio"},
	}
	for _, c := range l.cases {
		what := fmt.Sprintf("%s of %d MB", c.name, c.bytes/1e6)
		c.times.row(out, what+", s", 2)
		c.cpus.row(out, what+", CPU, s", 2)
		speeds := both{redisName: c.times[engineName], engineName: c.times[redisName]}
		out.atLeast("loading the "+c.name+": speed, x Redis", 0.8, speeds.ratios())
	}
	return out
}
