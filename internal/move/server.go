package move

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// facts are what a server says of itself in INFO.
type facts map[string]string

func ask(ctx context.Context, client redis.Cmdable, sections ...string) (facts, error) {
	// One section after the other: servers before 7.0 know only one.
	all := facts{}
	for _, section := range sections {
		text, err := client.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		all.read(text)
	}
	return all, nil
}

func (f facts) read(text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
}

func (f facts) number(name string) int64 {
	n, err := strconv.ParseInt(f[name], 10, 64)
	if err != nil {
		return 0 // what is not told
	}
	return n
}

// keys is how many keys there are, in all databases.
func (f facts) keys() (n int64) {
	for name, value := range f {
		if !strings.HasPrefix(name, "db") || !strings.HasPrefix(value, "keys=") {
			continue
		}
		digits, _, _ := strings.Cut(value[len("keys="):], ",")
		if some, err := strconv.ParseInt(digits, 10, 64); err == nil {
			n += some
		}
	}
	return n
}

// databases are those that have keys.
func (f facts) databases() (found []int) {
	for name, value := range f {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "db")); err == nil && strings.HasPrefix(value, "keys=") {
			found = append(found, n)
		}
	}
	return found
}

func refused(format string, args ...any) error {
	return fmt.Errorf("move: %w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// examine looks at both servers, and changes nothing.
func (m *mover) examine(ctx context.Context) (err error) {
	for _, end := range []struct {
		Server
		what string
		told *facts
	}{{m.From, "source", &m.from}, {m.To, "target", &m.to}} {
		if *end.told, err = ask(ctx, end.Client, "server", "replication", "cluster", "keyspace", "persistence", "memory"); err != nil {
			return unreachable(end.what, end.Place, err)
		}
		told := *end.told
		switch {
		case told["redis_mode"] == "sentinel":
			return refused("the %s %s is a Sentinel: give the server that it watches", end.what, end.Place)
		case told["cluster_enabled"] == "1":
			return refused("the %s %s is a node of a Cluster: move its slots by the Cluster's own tools (redis-cli --cluster reshard, import)",
				end.what, end.Place)
		case told["loading"] == "1":
			return refused("the %s %s is loading its data: try again when it has", end.what, end.Place)
		}
	}
	if id := m.from["run_id"]; id != "" && id == m.to["run_id"] { // some services do not tell it
		return refused("%s and %s are the same server", m.From.Place, m.To.Place)
	}
	if policy := m.to["maxmemory_policy"]; m.to.number("maxmemory") > 0 && policy != "noeviction" {
		m.note("the target removes keys when its memory is full (maxmemory-policy %s), leases and jobs too: CONFIG SET maxmemory-policy noeviction", policy)
	}
	if err := m.examineRoles(ctx); err != nil {
		return err
	}
	if err := m.examineSource(ctx); err != nil {
		return err
	}
	if err := m.examineCallers(ctx); err != nil {
		return err
	}
	return m.examineClocks(ctx)
}

// examineSource refuses a source that is itself the target of a move which has not come to its end.
func (m *mover) examineSource(ctx context.Context) error {
	mark, err := m.From.Client.Get(ctx, markKey).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return fmt.Errorf("look into the source: %w", err)
	}
	origin, _, _ := strings.Cut(mark, " ")
	return refused("the source %s has a part of %s only, by a move that has not come to its end: end or undo that one first", m.From.Place, origin)
}

func unreachable(what, place string, err error) error {
	advice := "check that it runs, and the URL"
	for begin, text := range map[string]string{
		"NOAUTH": "give user and password in the URL", "WRONGPASS": "the URL has a wrong user or password",
		"NOPERM": "the account needs the rights of an operator (docs/move.md)", "DENIED": "its protected mode lets in no stranger: set a password",
	} {
		if strings.Contains(err.Error(), begin) {
			advice = text
		}
	}
	return fmt.Errorf("reach the %s %s: %w; %s", what, place, err, advice)
}

// examineRoles looks at who follows whom.
func (m *mover) examineRoles(ctx context.Context) error {
	if m.from["role"] != "master" {
		if isClosed(m.from) {
			return refused("the source %s was closed by a move that came to its end; it can be opened again with REPLICAOF NO ONE "+
				"and CONFIG REWRITE, which gives it what it had then", m.From.Place)
		}
		return refused("the source %s is a replica: give its primary %s", m.From.Place,
			net.JoinHostPort(m.from["master_host"], m.from["master_port"]))
	}
	watched, err := m.From.Client.PubSubNumSub(ctx, "__sentinel__:hello").Result()
	if err == nil && watched["__sentinel__:hello"] > 0 && !m.LeaveOpen {
		return refused("Sentinels watch the source %s, and would make it a primary again: let them forget it first (SENTINEL REMOVE)", m.From.Place)
	}
	if m.to["role"] == "master" {
		return nil
	}
	switch {
	case m.to["master_replid"] == m.from["master_replid"] && m.Match == "" && m.By != ByRestore && !isClosed(m.to):
		m.followed = true
		m.note("the target follows the source already: this goes on from there")
	case !m.Replace:
		return refused("the target %s is a replica of %s: --replace makes it a server of its own, and deletes what it has",
			m.To.Place, net.JoinHostPort(m.to["master_host"], m.to["master_port"]))
	}
	return nil
}

// examineClocks measures the clocks of both: ends of leases are times of the server's clock.
func (m *mover) examineClocks(ctx context.Context) error {
	var ahead, doubt [2]time.Duration
	for i, end := range []Server{m.From, m.To} {
		doubt[i] = time.Hour
		for range 5 {
			before := time.Now()
			told, err := end.Client.Time(ctx).Result()
			if err != nil {
				return unreachable("clock of", end.Place, err)
			}
			trip := time.Since(before)
			if trip/2 < doubt[i] {
				doubt[i], ahead[i] = trip/2, told.Sub(before.Add(trip/2))
			}
		}
	}
	m.skew = ahead[1]
	return agree(ahead[1]-ahead[0], doubt[0]+doubt[1], m.MaxSkew)
}

// agree refuses clocks that surely differ by more than a bound.
func agree(apart, doubt, bound time.Duration) error {
	if size := max(apart, -apart); size-doubt > bound {
		return refused("the target's clock is %v %s the source's, more than --max-skew %v: leases would end that much earlier or later; "+
			"set the clocks by NTP", size.Round(time.Millisecond), earlier(apart), bound)
	}
	return nil
}

func earlier(apart time.Duration) string {
	if apart > 0 {
		return "ahead of"
	}
	return "behind"
}

// isClosed reports whether a server was closed by a move: it is a replica of itself.
func isClosed(f facts) bool {
	return f["role"] == "slave" && f["master_host"] == closedHost && f["master_port"] == closedPort(f)
}

// prepare empties the target, if that is allowed.
func (m *mover) prepare(ctx context.Context) error {
	// What a move that was killed has left would lead callers astray if this one announces nothing.
	stale, err := m.From.Client.Exists(ctx, address.MovedKey).Result()
	if err == nil && stale > 0 {
		err = m.From.Client.Del(ctx, address.MovedKey).Err()
	}
	if err != nil {
		return fmt.Errorf("look what a move of before has left in the source: %w", err)
	}
	if m.followed {
		return nil
	}
	left, err := m.unfinished(ctx)
	if err != nil {
		return err
	}
	found, err := m.foundInTarget(ctx)
	switch {
	case err != nil:
		return err
	case found && !left && !m.Replace:
		return refused("the target %s is not empty: --replace deletes what it has%s", m.To.Place, m.ofMatch())
	}
	if m.to["role"] != "master" {
		if err := m.To.Client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
			return fmt.Errorf("make the target a primary: %w", err)
		}
	}
	if found || left {
		return m.empty(ctx)
	}
	return nil
}

func (m *mover) ofMatch() string {
	if m.Match == "" {
		return ""
	}
	return " that begins with " + m.Match
}

// foundInTarget reports whether the target has something that is in the way.
func (m *mover) foundInTarget(ctx context.Context) (found bool, err error) {
	if m.Match == "" {
		return m.to.keys() > 0, nil
	}
	errFound := errors.New("found")
	err = m.scan(ctx, m.To, m.to, func(context.Context, *redis.Client, int, []string) error { return errFound })
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// visitor is given some keys of a database, and a client that works there.
type visitor func(ctx context.Context, in *redis.Client, db int, keys []string) error

// scan visits the keys that are meant, some at a time, in all databases.
func (m *mover) scan(ctx context.Context, end Server, told facts, visit visitor) error {
	for _, db := range told.databases() {
		if err := m.scanDB(ctx, end, db, visit); err != nil {
			return fmt.Errorf("scan database %d of %s: %w", db, end.Place, err)
		}
	}
	return nil
}

const scanCount = 1000

func (m *mover) scanDB(ctx context.Context, end Server, db int, visit visitor) (err error) {
	client := within(end.Client, db)
	defer func() { err = errors.Join(err, client.Close()) }()
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = client.Scan(ctx, cursor, m.pattern(), scanCount).Result(); err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := visit(ctx, client, db, keys); err != nil {
				return err
			}
		}
		if cursor == 0 {
			return nil
		}
	}
}

// pattern is what SCAN is to look for.
func (m *mover) pattern() string { return m.Match + "*" }

// within is a client like another one that works in a database.
func within(client *redis.Client, db int) *redis.Client {
	options := *client.Options()
	options.DB = db
	return redis.NewClient(&options)
}

// offset is how long the source's stream is.
func (m *mover) offset(ctx context.Context) (int64, error) {
	told, err := ask(ctx, m.From.Client, "replication")
	if err != nil {
		return 0, fmt.Errorf("ask the source %s for its offset: %w", m.From.Place, err)
	}
	if told["role"] != "master" {
		return 0, fmt.Errorf("move: %w: the source became a replica meanwhile", ErrDiverged)
	}
	return told.number("master_repl_offset"), nil
}
