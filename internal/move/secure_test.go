//go:build unix

package move_test

import (
	"cmp"
	"errors"
	"fmt"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/difftest"
	"github.com/signalbox-io/signalbox/internal/faults"
	"github.com/signalbox-io/signalbox/internal/move"
)

// Passwords of bytes that mean something in URLs, files, shells and the protocol; the source's is given to a user, whose name
// is of that kind as well.
const (
	oddUser     = `us:er@%/\"'é`
	oddPassword = "p\"a'ß \\\t:/?#[]@%25&=+$*\xff{}<>~"
	oddTarget   = "#the \"other\" one@127.0.0.1:1/?x=y%"
)

// quoted writes a word of a configuration file that is any bytes.
func quoted(word string) string {
	var text strings.Builder
	for _, b := range []byte(word) {
		fmt.Fprintf(&text, `\x%02x`, b)
	}
	return `"` + text.String() + `"`
}

// urlOf is the URL of a server for a user.
func urlOf(scheme, addr, user, password, query string) string {
	escaped := func(word string) string { return strings.ReplaceAll(neturl.QueryEscape(word), "+", "%20") }
	return scheme + "://" + escaped(user) + ":" + escaped(password) + "@" + addr + query
}

// secured are the URLs of two servers that let nobody in without a password, and where the second keeps its configuration.
type secured struct{ from, to, config string }

// secure starts them; over TLS they want to see a certificate as well.
func secure(t *testing.T, fromKind, toKind string, overTLS bool) secured {
	t.Helper()
	dir := t.TempDir()
	server, serverKey := difftest.Certificate(t, dir, "server")
	client, clientKey := difftest.Certificate(t, dir, "client")
	both := filepath.Join(dir, "both.pem")
	var trusted []byte
	for _, path := range []string{server, client} {
		text, err := os.ReadFile(path)
		must(t, err)
		trusted = append(trusted, text...)
	}
	must(t, os.WriteFile(both, trusted, 0o600))
	serve := func(kind string, settings ...string) (plain, addr, config string) {
		if overTLS {
			addr = "127.0.0.1:" + difftest.FreePort(t)
			settings = append(settings, "tls-port "+addr[len("127.0.0.1:"):], "tls-replication yes", "tls-cert-file "+server, "tls-key-file "+serverKey,
				"tls-ca-cert-file "+both)
		}
		s, config := startConfigured(t, kind, settings...)
		return s.Addr, cmp.Or(addr, s.Addr), config
	}
	plain, from, _ := serve(fromKind)
	source := dial(t, plain)
	must(t, source.Do(t.Context(), "ACL", "SETUSER", oddUser, "on", ">"+oddPassword, "~*", "&*", "+@all").Err())
	must(t, source.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">first").Err())
	_, to, config := serve(toKind, "requirepass "+quoted(oddTarget), "masterauth before")
	scheme, query := "redis", ""
	if overTLS {
		scheme = "rediss"
		query = "?cacert=" + neturl.QueryEscape(server) + "&cert=" + neturl.QueryEscape(client) + "&key=" + neturl.QueryEscape(clientKey)
	}
	return secured{urlOf(scheme, from, oddUser, oddPassword, query), urlOf(scheme, to, "", oddTarget, query), config}
}

// at is a client of the one server that a URL names.
func at(t *testing.T, url string) *redis.Client {
	t.Helper()
	client, _, err := address.One(url)
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	return client
}

// TestPasswordsAndTLS: each way takes the users, the passwords and the certificates of the URLs. A target that had followed
// another server follows nobody when it is started again, and its configuration has not learnt the source's password.
func TestPasswordsAndTLS(t *testing.T) {
	for _, overTLS := range []bool{false, true} {
		for _, kind := range kinds[:4] {
			t.Run(fmt.Sprintf("%s-%s-%s-tls-%v", kind.from, kind.to, kind.by, overTLS), func(t *testing.T) {
				pair := secure(t, kind.from, kind.to, overTLS)
				from, to := at(t, pair.from), at(t, pair.to)
				must(t, from.Set(t.Context(), "k", "v", 0).Err())
				must(t, to.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
				must(t, to.ConfigRewrite(t.Context()).Err())

				o := options(pair.from, pair.to, kind.by)
				o.Announce = ""
				must(t, run(t.Context(), o))
				if got := to.Get(t.Context(), "k").Val(); got != "v" {
					t.Errorf("the target has %q", got)
				}
				if err := from.Set(t.Context(), "k", "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
					t.Errorf("the source answers %v", err)
				}
				for name, want := range map[string]string{"masterauth": "before", "masteruser": ""} {
					if got := to.ConfigGet(t.Context(), name).Val()[name]; got != want {
						t.Errorf("the target's %s is %q", name, got)
					}
				}
				text, err := os.ReadFile(pair.config)
				must(t, err)
				for line := range strings.Lines(string(text)) {
					if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "replicaof" || name == "masteruser" && value != `""` ||
						name == "masterauth" && strings.Trim(value, `"`) != "before" {
						t.Errorf("the target's configuration has the line %s", line)
					}
				}
			})
		}
	}
}

// TestWhoIsNotLetIn: an error says what is wrong with which URL, and no password.
func TestWhoIsNotLetIn(t *testing.T) {
	pair := secure(t, "redis", "engine", true)
	_, place, _ := strings.Cut(pair.from, "@")
	untrusted, _, _ := strings.Cut(pair.from, "?")
	for url, want := range map[string]string{
		urlOf("rediss", place, "", "wrong pass", ""): "WRONGPASS",
		untrusted: "certificate",
		strings.Replace(pair.from, "rediss://", "redis://", 1): "the scheme is rediss://",
	} {
		client, place, err := address.One(url)
		if err == nil {
			o := options(pair.from, pair.to, move.ByAny)
			must(t, o.From.Client.Close())
			o.From.Client, o.From.Place = client, place
			err = run(t.Context(), o)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, "wrong pass") || strings.Contains(text, oddPassword) {
			t.Errorf("it says %s, want %s", text, want)
		}
	}
}

// TestCallersAreLetIn: a move after which callers would stand before a closed door is refused before anything is done.
func TestCallersAreLetIn(t *testing.T) {
	from, to := start(t, "engine"), start(t, "redis", "requirepass secret")
	box, err := signalbox.Open(t.Context(), url(from))
	must(t, err)
	defer func() { must(t, box.Close()) }()
	lease, err := box.Mutex("m").Acquire(t.Context())
	must(t, err)

	target := urlOf("redis", to.Addr, "", "secret", "")
	o := options(url(from), target, move.ByAny)
	o.Announce = url(to)
	if err := run(t.Context(), o); !errors.Is(err, move.ErrRefused) || !strings.Contains(err.Error(), "callers at the source are default, and the target does not let them in") {
		t.Errorf("ended with %v", err)
	}
	must(t, run(t.Context(), options(url(from), target, move.ByAny))) // it tells them the password
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	faults.Await(t, "the lock at the target", func() bool {
		lease, err := box.Mutex("m").TryAcquire(t.Context())
		return err == nil && lease.Release(t.Context()) == nil
	})
}
