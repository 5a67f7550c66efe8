package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Replication. What is measured is one side: the other one is always a redis-server, on the clients' cores.
//
//	a primary with replicas   its rate and its processor's time at SET
//	a replica                 how fast it takes a stream of SETs that has gathered while it was stopped
//	a full synchronisation    until the replica has it; the primary's memory and answers meanwhile
//	the backlog               the memory that it takes, beside what it is configured to

// followers are redis-servers that follow each of a pair.
type followers struct {
	folder string
	all    []*server
}

func (f *followers) stop() {
	for _, s := range f.all {
		s.process.kill()
	}
	_ = os.RemoveAll(f.folder) // what is left is in the system's folder for such things
}

// patientPrimary makes a server begin full synchronisations at once, and wait for replicas however far they are behind.
func patientPrimary(ctx context.Context, s *server) error {
	return s.do(ctx, "CONFIG", "SET", "repl-diskless-sync-delay", "0", "client-output-buffer-limit", "replica 0 0 0")
}

// named is one of the two.
func (s *servers) named(name string) *server {
	if name == redisName {
		return s.redis
	}
	return s.engine
}

// follow starts n that follow a server, and waits until they do.
func (f *followers) follow(ctx context.Context, b *engineBench, primary *server, n int) (err error) {
	if f.folder == "" {
		if f.folder, err = os.MkdirTemp("", "signalbox-bench-"); err != nil {
			return err
		}
	}
	if err := patientPrimary(ctx, primary); err != nil {
		return err
	}
	for range n {
		s, err := startRedis(ctx, b.cores.client, f.folder)
		if err != nil {
			return err
		}
		f.all = append(f.all, s)
		if err := s.follows(ctx, primary); err != nil {
			return err
		}
	}
	return nil
}

// follows makes a server follow another one, and waits until it does.
func (s *server) follows(ctx context.Context, primary *server) error {
	if err := s.do(ctx, "REPLICAOF", "127.0.0.1", primary.port()); err != nil {
		return err
	}
	return s.await(ctx, "master_link_status:", func(status string) bool { return status == "up" })
}

// await asks for a field of INFO replication until it is as wanted.
func (s *server) await(ctx context.Context, field string, ok func(string) bool) error {
	const patience = 2 * time.Minute
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		info, err := client.Info(ctx, "replication").Result()
		if err == nil && ok(infoField(info, field)) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s of %s is %q after %v: %w", field, s.name, infoField(info, field), patience, err)
		}
	}
}

// replicatedGroup is a primary with so many replicas.
func replicatedGroup(b *engineBench, replicas int) *engineGroup {
	g := &engineGroup{}
	var pair *servers
	var others followers
	stop := stopPair(&pair)
	g.close = func() {
		others.stop()
		stop()
	}
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err != nil {
			return err
		}
		return errors.Join(others.follow(ctx, b, pair.redis, replicas), others.follow(ctx, b, pair.engine, replicas))
	}
	for i, pipeline := range pipelines {
		t := &engineTest{name: fmt.Sprintf("SET -P %d, replicas: %d", pipeline, replicas)}
		rate, cpu := t.row(t.name, "op/s", 0, ratioAtLeast(1)), t.row(t.name, "µs CPU", 2, ratioAtMost(1))
		set := &command{name: "SET", args: []string{"-t", "set"}, keys: loadRange, rates: [2]float64{60e3, 250e3}}
		t.measure = func(ctx context.Context, b *engineBench, server string) error {
			on := pair.named(server)
			n := b.operations(set.rates[i])
			before := on.process.ran()
			result, err := (benchmarkRun{b.cores.client, loadConnections, pipeline, n, set.keys, set.args}).on(on)
			if err != nil {
				return err
			}
			rate.add(server, result.rate)
			err = on.do(ctx, "WAIT", fmt.Sprint(replicas), "0") // what the replicas have yet to be sent belongs to it
			cpu.add(server, float64((on.process.ran()-before).Microseconds())/float64(n))
			return err
		}
		g.tests = append(g.tests, t)
	}
	return g
}

// applyGroup is a replica that takes what has gathered.
func applyGroup(b *engineBench) *engineGroup {
	t := &engineTest{name: "SETs that a replica takes"}
	rate, cpu := t.row(t.name, "op/s", 0, ratioAtLeast(1)), t.row(t.name, "µs CPU", 2, ratioAtMost(1))
	g := &engineGroup{tests: []*engineTest{t}}
	var pair *servers
	var primary *server
	stop := stopPair(&pair)
	g.close = func() {
		if primary != nil {
			primary.process.kill()
		}
		stop()
	}
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err == nil {
			primary, err = startRedis(ctx, b.cores.client, pair.folder)
		}
		return err
	}
	t.measure = func(ctx context.Context, b *engineBench, server string) error {
		replica := pair.named(server)
		if err := errors.Join(patientPrimary(ctx, primary), replica.follows(ctx, primary)); err != nil {
			return err
		}
		n := b.operations(600e3)
		if err := replica.process.command.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		_, err := (benchmarkRun{b.cores.client, loadConnections, 16, n, loadRange, []string{"-t", "set"}}).on(primary)
		before, begin := replica.process.ran(), time.Now()
		if err := errors.Join(err, replica.process.command.Process.Signal(syscall.SIGCONT)); err != nil {
			return err
		}
		if err := primary.do(ctx, "WAIT", "1", "0"); err != nil {
			return err
		}
		rate.add(server, float64(n)/time.Since(begin).Seconds())
		cpu.add(server, float64((replica.process.ran()-before).Microseconds())/float64(n))
		return replica.do(ctx, "REPLICAOF", "NO", "ONE")
	}
	return g
}

// fullSyncGroup is a full synchronisation of a fifth of the keys of a large table.
func fullSyncGroup(b *engineBench) *engineGroup {
	keys := b.plan.Keys / 5
	t := &engineTest{name: fmt.Sprintf("full synchronisation of %d keys", keys)}
	took, memory := t.row(t.name, "s", 2, ratioAtMost(1)), t.row(t.name, "% memory more", 1, ownAtMost(10, "%"))
	worst := t.row(t.name, "ms, worst PING beside", 1, ownAtMost(10, "ms"))
	cost := &engineTest{name: "backlog of 64 MB"}
	backlog := cost.row(cost.name, "bytes a byte", 2, ownAtMost(1.1, ""))
	g := &engineGroup{tests: []*engineTest{t, cost}}
	var pair *servers
	var ping pacers
	var others followers
	stop := stopPair(&pair)
	g.close = func() {
		ping.stop()
		others.stop()
		stop()
	}
	g.open = func(ctx context.Context, b *engineBench) (err error) {
		if pair, err = startEnginePair(ctx, b.cores); err != nil {
			return err
		}
		for _, s := range []*server{pair.redis, pair.engine} {
			if _, err := fill(b.cores.client, fillConfig{Addr: s.addr, Kind: kindStrings, Count: keys}); err != nil {
				return err
			}
		}
		ping, err = besidePing(b, pair)
		return err
	}
	t.measure = func(ctx context.Context, b *engineBench, server string) error {
		on := pair.named(server)
		synced := make(chan error, 1)
		var seconds, share float64
		go func() {
			var err error
			seconds, share, err = others.synchronise(ctx, b, on)
			synced <- err
		}()
		p, err := ping[server].window(paceWindow{Seconds: 2 + 4*float64(keys)/1e6})
		if err := errors.Join(err, <-synced); err != nil {
			return err
		}
		b.paced(p)
		took.add(server, seconds)
		memory.add(server, max(share, 0.01))
		worst.add(server, p.Worst)
		return nil
	}
	cost.measure = func(ctx context.Context, b *engineBench, server string) error {
		others.stop()
		others = followers{}
		if err := others.follow(ctx, b, pair.named(server), 1); err != nil {
			return err
		}
		bytes, err := backlogBytes(ctx, b, pair.named(server))
		backlog.add(server, bytes)
		return err
	}
	return g
}

// backlogBytes is what a byte of the backlog costs a primary that has a replica.
func backlogBytes(ctx context.Context, b *engineBench, on *server) (float64, error) {
	const size = 64 << 20
	// The keys are there before.
	if _, err := (benchmarkRun{b.cores.client, loadConnections, 16, 10 * keysFilled / 5, loadRange, []string{"-t", "set"}}).on(on); err != nil {
		return 0, err
	}
	before, _, err := on.process.resident()
	if err != nil {
		return 0, err
	}
	if err := on.do(ctx, "CONFIG", "SET", "repl-backlog-size", fmt.Sprint(size)); err != nil {
		return 0, err
	}
	const perSet = 100 // bytes of the stream, at least
	if _, err := (benchmarkRun{b.cores.client, loadConnections, 16, size / perSet, loadRange, []string{"-t", "set"}}).on(on); err != nil {
		return 0, err
	}
	after, _, err := on.process.resident()
	return max(after-before, 1) / size, errors.Join(err, on.do(ctx, "CONFIG", "SET", "repl-backlog-size", "1mb"))
}

// synchronise has a new replica follow a primary, and says how long it took, and how much memory the primary had more
// meanwhile, beside what it had. That of Redis's child is what it has copied.
func (f *followers) synchronise(ctx context.Context, b *engineBench, primary *server) (seconds, percent float64, err error) {
	f.stop()
	*f = followers{}
	before, _, err := primary.process.resident()
	if err != nil {
		return 0, 0, err
	}
	most, over, ended := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
			}
			most = max(most, residentSum([]*process{primary.process}))
		}
	}()
	begin := time.Now()
	err = f.follow(ctx, b, primary, 1)
	seconds = time.Since(begin).Seconds()
	close(over)
	<-ended
	if err != nil {
		return 0, 0, err
	}
	client := backend{Addr: primary.addr}.client()
	defer shut(client)
	info, err := client.Info(ctx, "persistence").Result()
	var copied float64
	if primary.name == redisName {
		_, _ = fmt.Sscan(infoField(info, "rdb_last_cow_size:"), &copied) // none if it does not say so
	}
	return seconds, 100 * (most - before + copied) / before, err
}
