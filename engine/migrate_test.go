package engine_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestMigrate has a dialogue that moves keys, from here and from Redis, to Redis and to here: it must be the same each time.
func TestMigrate(t *testing.T) {
	t.Parallel()
	redis := func() string { return difftest.Redis(t).Addr }
	ours := func() string { return listen(t, engine.Options{}) }
	want := migrate(t, redis(), redis())
	for name, servers := range map[string][2]func() string{"to Redis": {ours, redis}, "to another engine": {ours, ours}, "from Redis": {redis, ours}} {
		if diff := cmp.Diff(want, migrate(t, servers[0](), servers[1]())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// migrate is the dialogue with two servers.
func migrate(t *testing.T, from, to string) (replies []string) {
	t.Helper()
	connect := func(address string) *difftest.Conn {
		return connectTo(t, func() (net.Conn, error) { return net.Dial("tcp", address) })
	}
	source, target := connect(from), connect(to)
	host, port, err := net.SplitHostPort(to)
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, silentPort, _ := net.SplitHostPort(silent.Addr().String())
	for line := range strings.Lines(`s MSET a 1 b 2 c 3 d 4
		s PEXPIRE b 100000
		s RPUSH list x y z
		s MIGRATE HOST PORT a 0 1000
		s EXISTS a
		t GET a
		s MIGRATE HOST PORT b 3 1000 COPY
		s EXISTS b
		t SELECT 3
		t GET b
		t PERSIST b
		s MIGRATE HOST PORT b 3 1000
		s EXISTS b
		s MIGRATE HOST PORT b 3 1000 REPLACE
		s EXISTS b
		s MIGRATE HOST PORT b 3 1000
		s MIGRATE HOST PORT "" 0 1000 KEYS c none list
		s EXISTS c list
		t SELECT 0
		t LRANGE list 0 -1
		s SET list other
		s SET e 5
		s MIGRATE HOST PORT "" 0 1000 KEYS list e
		s MGET list e
		t GET e
		s MIGRATE HOST PORT d 99 1000
		s EXISTS d
		t CONFIG SET requirepass secret
		k CLIENT KILL TYPE normal
		s MIGRATE HOST PORT d 1 1000
		s MIGRATE HOST PORT d 1 1000 AUTH wrong
		s EXISTS d
		s MIGRATE HOST PORT d 1 1000 COPY AUTH secret
		s MIGRATE HOST PORT d 2 1000 COPY AUTH2 default secret
		s MIGRATE HOST PORT d 2 1000 AUTH2 nobody secret REPLACE
		s EXISTS d
		s MIGRATE 127.0.0.1 1 d 0 50
		s MIGRATE 127.0.0.1 SILENT d 0 50
		s EXISTS d
		s EVAL "return redis.call('MIGRATE', KEYS[1], KEYS[2], KEYS[3], 5, 1000, 'AUTH', 'secret')" 3 HOST PORT d
		s EXISTS d
		t SELECT 5
		t GET d`) {
		line = strings.TrimSpace(line)
		words, err := difftest.Words(strings.NewReplacer("HOST", host, "PORT", port, "SILENT", silentPort).Replace(line[2:]))
		if err != nil {
			t.Fatal(err)
		}
		conn := map[byte]*difftest.Conn{'s': source, 't': target, 'k': target}[line[0]]
		reply := ask(t, conn, words...)
		if line[0] == 'k' { // Redis keeps its connection for the next call, which then needs no password
			continue
		}
		if at := strings.Index(reply, " script: "); at >= 0 {
			reply = reply[:at] // the port is part of the text
		}
		replies = append(replies, fmt.Sprintf("%s: %s", line, reply))
	}
	return slices.Clip(replies)
}
