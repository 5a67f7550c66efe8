package engine_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
)

// authority makes certificates for one test.
type authority struct {
	t      *testing.T
	dir    string
	parent *x509.Certificate
	key    *ecdsa.PrivateKey
	pool   *x509.CertPool
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.parent, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pool.AddCert(a.parent)
	return a
}

// path is the file of a certificate; with the suffix .key, that of its key.
func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate, writes it and its key to files, and returns both.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template.SerialNumber, template.Subject = big.NewInt(a.serial), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	parent, signer := a.parent, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{a.path(name): {Type: "CERTIFICATE", Bytes: der}, a.path(name) + ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

// client is how a client trusts the server, and shows the certificate of this
// name, if any.
func (a *authority) client(name string) *tls.Config {
	a.t.Helper()
	config := &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(a.path(name), a.path(name)+".key")
		if err != nil {
			a.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// listenTLS serves a new engine with a certificate named server.
func listenTLS(t *testing.T, a *authority, settings ...string) (string, *engine.Engine) {
	t.Helper()
	a.issue("server", &x509.Certificate{})
	config, err := engine.ReadConfig("", append(settings, "tls-cert-file="+a.path("server"), "tls-key-file="+a.path("server")+".key")...)
	if err != nil {
		t.Fatal(err)
	}
	return serveTLS(t, engine.Options{Config: config})
}

// serveTLS serves a new engine.
func serveTLS(t *testing.T, options engine.Options) (string, *engine.Engine) {
	t.Helper()
	e, err := engine.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.ServeTLS(l) }()
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), e
}

func TestGoRedisOverTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	addr, _ := listenTLS(t, a, "tls-auth-clients=no", "requirepass=secret")
	options, err := redis.ParseURL("rediss://:secret@" + addr)
	if err != nil {
		t.Fatal(err)
	}
	options.TLSConfig, options.ReadTimeout = a.client(""), time.Minute
	client, ctx := openGoRedis(t, options), t.Context()

	large := strings.Repeat("x", 2<<20) // more than a socket takes at once
	if err := client.Set(ctx, "large", large, 0).Err(); err != nil {
		t.Fatal(err)
	}
	got, err := client.Get(ctx, "large").Result()
	check(t, "GET", large, got, err)
	pipe := client.Pipeline()
	for range 4 {
		pipe.Get(ctx, "large")
	}
	replies, err := pipe.Exec(ctx)
	check(t, "replies", 4, len(replies), err)

	// Blocked, and woken by another connection.
	popped := make(chan error, 1)
	go func() {
		values, err := client.BLPop(ctx, 0, "list").Result()
		if err == nil && values[1] != "v" {
			err = errors.New(values[1])
		}
		popped <- err
	}()
	for !strings.Contains(client.Info(ctx, "clients").Val(), "blocked_clients:1") {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.RPush(ctx, "list", "v").Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-popped; err != nil {
		t.Fatal(err)
	}

	// Messages, pushed while nothing is asked for.
	sub := client.Subscribe(ctx, "channel")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if n, err := client.Publish(ctx, "channel", "m").Result(); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		message, err := sub.ReceiveMessage(ctx)
		check(t, "message", "m", message.Payload, err)
	}
}

// recorded keeps the bytes that arrive.
type recorded struct {
	net.Conn
	bytes bytes.Buffer
}

func (r *recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.bytes.Write(b[:n])
	return n, err
}

// TestTLSConnectionIsEndedPolitely: the end of a connection must not look as
// if somebody had cut it.
func TestTLSConnectionIsEndedPolitely(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	addr, _ := listenTLS(t, a, "tls-auth-clients=no")
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	wire := &recorded{Conn: nc}
	config := a.client("")
	config.ServerName, config.MaxVersion = "127.0.0.1", tls.VersionTLS12 // later versions encrypt the kind of a record
	conn := tls.Client(wire, config)
	if _, err := conn.Write([]byte("QUIT\r\n")); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	if all.String() != "+OK\r\n" {
		t.Errorf("%q", all.String())
	}
	const alert = 21
	last := byte(0)
	for rest := wire.bytes.Bytes(); len(rest) >= 5; rest = rest[5+int(rest[3])<<8+int(rest[4]):] {
		last = rest[0]
	}
	if last != alert {
		t.Errorf("the last record is of kind %d, want a goodbye (%d)", last, alert)
	}
}

func TestClientsShowCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	stranger := newAuthority(t)
	stranger.issue("client", &x509.Certificate{})
	ping := func(addr string, config *tls.Config) error {
		config.RootCAs = a.pool
		client := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config, MaxRetries: -1})
		defer client.Close()
		return client.Ping(context.Background()).Err()
	}
	for _, c := range []struct {
		auth                    string
		none, known, strangerOK bool
	}{
		{"yes", false, true, false},
		{"optional", true, true, false},
		{"no", true, true, true},
	} {
		addr, _ := listenTLS(t, a, "tls-auth-clients="+c.auth, "tls-ca-cert-file="+a.path("ca"))
		for who, want := range map[string]bool{"none": c.none, "known": c.known, "stranger": c.strangerOK} {
			config := map[string]*tls.Config{"none": a.client(""), "known": a.client("client"), "stranger": stranger.client("client")}[who]
			if err := ping(addr, config); (err == nil) != want {
				t.Errorf("tls-auth-clients %s, %s: %v", c.auth, who, err)
			}
		}
	}
}

func TestTLSProtocolsAreKept(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	addr, _ := listenTLS(t, a, "tls-auth-clients=no", "tls-protocols=TLSv1.2")
	conn, err := tls.Dial("tcp", addr, a.client(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if v := conn.ConnectionState().Version; v != tls.VersionTLS12 {
		t.Errorf("speaks %s", tls.VersionName(v))
	}
	only13 := a.client("")
	only13.MinVersion = tls.VersionTLS13
	if conn, err := tls.Dial("tcp", addr, only13); err == nil {
		conn.Close()
		t.Error("speaks a version that is not wanted")
	}
}

// TestCertificateIsRenewed changes the certificate while the engine runs. What
// does not work out changes nothing.
func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	addr, e := listenTLS(t, a, "tls-auth-clients=no")
	serial := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", addr, a.client(""))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	before := serial()
	next, _ := a.issue("next", &x509.Certificate{})
	_, err := e.Do(t.Context(), "CONFIG", "SET", "tls-cert-file", a.path("next"))
	if want := "ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable to update TLS configuration. Check server logs."; err == nil || err.Error() != want {
		t.Errorf("a certificate without its key: %v", err)
	}
	if got := serial(); got != before {
		t.Errorf("certificate %d, want %d as before", got, before)
	}
	if _, err := e.Do(t.Context(), "CONFIG", "SET", "tls-cert-file", a.path("next"), "tls-key-file", a.path("next")+".key"); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != next.SerialNumber.Int64() {
		t.Errorf("certificate %d, want %v", got, next.SerialNumber)
	}
}

// TestSlowTLSReaderHoldsNobodyUp: a subscriber that does not read is dropped in
// the end, and everybody else is served meanwhile.
func TestSlowTLSReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	addr, e := listenTLS(t, a, "tls-auth-clients=no")
	slow, err := tls.Dial("tcp", addr, a.client(""))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write([]byte("SUBSCRIBE c\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	message := strings.Repeat("x", 1<<20)
	for range 200 {
		received, err := e.Do(t.Context(), "PUBLISH", "c", message)
		if err != nil {
			t.Fatal(err)
		}
		if received.Int() == 0 {
			return
		}
	}
	t.Error("a subscriber who never reads is still there after 200 MB")
}

func TestServeTLSNeedsACertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{nil, "give tls-cert-file and tls-key-file"},
		{[]string{"tls-cert-file=nowhere", "tls-key-file=nowhere"}, "nowhere: no such file"},
		{[]string{"tls-cert-file=" + a.path("ca"), "tls-key-file=" + a.path("ca") + ".key"}, "set tls-auth-clients to no"},
		{[]string{"tls-cert-file=" + a.path("ca"), "tls-key-file=" + a.path("ca") + ".key", "tls-ca-cert-file=" + a.path("ca") + ".key"}, "it holds no certificate"},
		{[]string{"tls-cert-file=" + a.path("ca"), "tls-key-file=" + a.path("ca") + ".key", "tls-auth-clients=no", "tls-protocols=SSLv3"}, "SSLv3 is none of"},
		{[]string{"tls-cert-file=" + a.path("ca"), "tls-key-file=" + a.path("ca") + ".key", "tls-auth-clients=no", "tls-protocols=TLSv1.1 TLSv1.3"}, "leaves out a version"},
	} {
		config, err := engine.ReadConfig("", c.settings...)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.Open(engine.Options{Config: config})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.ServeTLS(l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.settings, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRedisCLIOverTLS needs a redis-cli that was built with TLS, as Debian's is.
func TestRedisCLIOverTLS(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("redis-cli is not on PATH: install redis-tools")
	}
	a := newAuthority(t)
	a.issue("client", &x509.Certificate{})
	addr, _ := listenTLS(t, a, "tls-ca-cert-file="+a.path("ca"))
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cli := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-h", host, "-p", port, "--tls", "--cacert", a.path("ca")}, args...)...)
		output, err := cmd.CombinedOutput()
		if err != nil {
			output = append(output, err.Error()...)
		}
		return string(output)
	}
	if output := cli("--cert", a.path("client"), "--key", a.path("client")+".key", "SET", "k", "v"); output != "OK\n" {
		t.Errorf("with a certificate: %s", output)
	}
	if output := cli("GET", "k"); strings.Contains(output, "v\n") {
		t.Errorf("without a certificate: %s", output)
	}
}

// TestPlainBytesOnTheTLSPortAreReported: without a word in the log nobody would find out
// why a client without TLS gets nothing.
func TestPlainBytesOnTheTLSPortAreReported(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server", &x509.Certificate{})
	config, err := engine.ReadConfig("", "tls-auth-clients=no", "tls-cert-file="+a.path("server"), "tls-key-file="+a.path("server")+".key")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 10)
	addr, _ := serveTLS(t, engine.Options{Config: config, Log: func(_ int, line string) { told <- line }})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := <-told; !strings.Contains(got, conn.LocalAddr().String()) || !strings.Contains(got, `does not speak TLS`) {
		t.Errorf("the log says %q", got)
	}
}
