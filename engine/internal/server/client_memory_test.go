package server_test

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// What clients make the engine keep, besides data, has bounds too.

// field is a number that INFO, or a line of CLIENT LIST, tells.
func field(t *testing.T, text, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)(?:^|[ ])` + name + `[:=](-?\d+)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %s in %q", name, text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func clientMemoryOf(t *testing.T, s *server.Server) int {
	t.Helper()
	return field(t, do(t, s, "INFO", "memory").Str, "mem_clients_normal")
}

// queue begins a transaction and queues requests of 64 KB, until one is answered something
// else, or the connection has ended. It returns how many were queued, and that answer.
func (c *client) queue(most int) (queued int, answer string) {
	c.t.Helper()
	c.send("MULTI")
	c.expect("+OK\r\n")
	for ; queued < most; queued++ {
		if _, err := c.conn.Write(resp.AppendCommand(nil, "SET", "k", strings.Repeat("v", 64<<10))); err != nil {
			return queued, ""
		}
		if line, _ := c.read.ReadString('\n'); line != "+QUEUED\r\n" { // "" is the end
			return queued, line
		}
	}
	return queued, ""
}

func TestAQueuedTransactionCountsForMaxmemory(t *testing.T) {
	s := open(t, server.Options{})
	configure(t, s, "maxmemory", "4mb")
	c := dial(t, s)
	if queued, answer := c.queue(1000); queued < 40 || queued > 64 || !strings.HasPrefix(answer, "-OOM ") {
		t.Errorf("after %d requests of 64 KB the answer is %q, want OOM after 4 MB", queued, answer)
	}
	if used := field(t, do(t, s, "INFO", "memory").Str, "used_memory"); used < 4<<20-64<<10 {
		t.Errorf("used_memory is %d", used)
	}
	c.send("EXEC")
	c.expect("-EXECABORT ")
	c.skipTo("Transaction discarded because of previous errors.\r\n")
	c.send("SET", "k", "v")
	c.expect("+OK\r\n")
	if left := clientMemoryOf(t, s); left > 64<<10 {
		t.Errorf("%d bytes are left of the transaction", left)
	}
}

func TestAQueuedTransactionCountsAsQueryBuffer(t *testing.T) {
	s := open(t, server.Options{})
	configure(t, s, "client-query-buffer-limit", "1mb")
	if queued, answer := dial(t, s).queue(1000); queued < 10 || queued > 16 || answer != "" {
		t.Errorf("after %d requests of 64 KB the answer is %q, want the end after 1 MB", queued, answer)
	}
}

// TestTheHeaviestClientIsEvicted, whatever it is that makes it heavy, and nobody else.
func TestTheHeaviestClientIsEvicted(t *testing.T) {
	const half = "*2\r\n$4\r\nECHO\r\n$33554432\r\n"
	for name, weighDown := range map[string]func(c *client){
		"a transaction": func(c *client) { c.queue(1000) },
		"half a request": func(c *client) {
			_, _ = io.WriteString(c.conn, half+strings.Repeat("v", 32<<20)) // it is not read to the end
		},
		"replies that nobody reads": func(c *client) {
			for range 16 {
				_, _ = c.conn.Write(resp.AppendCommand(nil, "GETRANGE", "long", "0", "-1"))
			}
		},
		"subscriptions": func(c *client) {
			go func() { _, _ = io.Copy(io.Discard, c.conn) }()
			for i := range 64 {
				topics := []string{"SUBSCRIBE"}
				for j := range 1000 {
					topics = append(topics, fmt.Sprintf("a topic with a long name, so that it takes memory: %d-%d", i, j))
				}
				_, _ = c.conn.Write(resp.AppendCommand(nil, topics...)) // it is gone at some time
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, server.Options{})
			do(t, s, "SETRANGE", "long", "1048575", "x")
			configure(t, s, "maxmemory-clients", "4mb")
			small, heavy := dial(t, s), dial(t, s)
			small.send("PING")
			small.expect("+PONG\r\n")
			weighDown(heavy)
			awaitConnections(t, s, 1)
			small.send("PING")
			small.expect("+PONG\r\n")
			if n := field(t, do(t, s, "INFO", "stats").Str, "evicted_clients"); n != 1 {
				t.Errorf("%d clients were evicted, want 1", n)
			}
			if left := clientMemoryOf(t, s); left > 64<<10 {
				t.Errorf("%d bytes are left of it", left)
			}
		})
	}
}

func TestNobodyIsEvictedWhoIsExempt(t *testing.T) {
	s := open(t, server.Options{})
	configure(t, s, "maxmemory", "8mb")
	configure(t, s, "maxmemory-clients", "50%")
	exempt := dial(t, s)
	exempt.send("CLIENT", "NO-EVICT", "ON")
	exempt.expect("+OK\r\n")
	if queued, answer := exempt.queue(80); queued != 80 {
		t.Errorf("after %d requests: %q", queued, answer)
	}
}

func TestClientListTellsWhatClientsHold(t *testing.T) {
	s := open(t, server.Options{})
	do(t, s, "SETRANGE", "long", "4194303", "x")
	line := func(name string) string {
		for _, line := range strings.Split(do(t, s, "CLIENT", "LIST").Str, "\n") {
			if strings.Contains(line, " name="+name+" ") {
				return line
			}
		}
		t.Fatalf("there is no client %s", name)
		return ""
	}
	named := func(name string) *client {
		c := dial(t, s)
		c.send("CLIENT", "SETNAME", name)
		c.expect("+OK\r\n")
		return c
	}
	expect := func(name string, least map[string]int) {
		t.Helper()
		text := line(name)
		for _, f := range []string{"qbuf", "qbuf-free", "argv-mem", "multi-mem", "omem", "oll", "tot-mem"} {
			got, want := field(t, text, f), least[f]
			if got < want || want == 0 && got != 0 {
				t.Errorf("%s: %s is %d, want at least %d: %s", name, f, got, want, text)
			}
		}
	}
	named("idle")
	expect("idle", map[string]int{"tot-mem": 1000})

	half := named("half")
	_, _ = io.WriteString(half.conn, "*1\r\n$70000\r\n"+strings.Repeat("x", 60000))
	for field(t, line("half"), "qbuf") < 60000 { // it arrives in pieces
		continue
	}
	expect("half", map[string]int{"qbuf": 60000, "qbuf-free": 1, "tot-mem": 61000})

	multi := named("multi")
	multi.queue(2)
	expect("multi", map[string]int{"multi-mem": 128 << 10, "tot-mem": 128<<10 + 1000})

	blocked := named("blocked")
	blocked.send("BLPOP", strings.Repeat("key", 1000), "0")
	for field(t, do(t, s, "INFO", "clients").Str, "blocked_clients") == 0 {
		continue
	}
	expect("blocked", map[string]int{"argv-mem": 3000, "tot-mem": 4000})

	slow := named("slow")
	slow.send("GETRANGE", "long", "0", "-1")
	for field(t, line("slow"), "omem") == 0 {
		continue
	}
	expect("slow", map[string]int{"omem": 1 << 20, "oll": 1, "tot-mem": 1 << 20})

	self := named("self")
	self.send("CLIENT", "INFO")
	if _, err := self.read.ReadString('\n'); err != nil { // its length
		t.Fatal(err)
	}
	text, err := self.read.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if field(t, text, "qbuf") != len("*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n") || field(t, text, "argv-mem") != len("CLIENTINFO") || field(t, text, "rbs") < 1024 {
		t.Errorf("of itself it says %s", text)
	}
}
