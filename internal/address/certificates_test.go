package address_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestCertificatesOfURLs: files that the query names are trusted and shown, to one server, Sentinels and a Cluster.
func TestCertificatesOfURLs(t *testing.T) {
	certificate, key := difftest.Certificate(t, t.TempDir(), "client")
	query := "?" + url.Values{"cacert": {certificate}, "cert": {certificate}, "key": {key}}.Encode()
	for _, rawURL := range []string{"rediss://h:1/0", "rediss+sentinel://h:1,i:2/master", "rediss+cluster://h:1,i:2"} {
		client, place, err := address.Dial(rawURL + query)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if place != rawURL {
			t.Errorf("it is told as %s", place)
		}
	}
	client, _, err := address.One("rediss://h:1" + query)
	if err != nil {
		t.Fatal(err)
	}
	if config := client.Options().TLSConfig; config.RootCAs == nil || len(config.Certificates) != 1 || config.ServerName != "h" {
		t.Errorf("TLS is made as %+v", config)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestCertificatesOfURLsThatMakeNoSense(t *testing.T) {
	certificate, key := difftest.Certificate(t, t.TempDir(), "client")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scheme, name, value, want string }{
		{"redis", "cacert", certificate, "the scheme is rediss://"},
		{"rediss", "cacert", "/nowhere", "no such file"},
		{"rediss", "cacert", empty, "has no certificate"},
		{"rediss", "cert", certificate, "go together"},
		{"rediss", "key", key, "go together"},
	} {
		_, _, err := address.Dial(c.scheme + "://:geheim@h:1?" + url.Values{c.name: {c.value}}.Encode())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestCertificatesStayWhenDataMoves: who is told of another server over TLS takes along what it trusts.
func TestCertificatesStayWhenDataMoves(t *testing.T) {
	certificate, key := difftest.Certificate(t, t.TempDir(), "server")
	var servers [2]*redis.Client
	var urls [2]string
	for i := range servers {
		port := difftest.FreePort(t)
		difftest.Redis(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file", certificate)
		urls[i] = "rediss://127.0.0.1:" + port
		servers[i] = dial(t, urls[i]+"?cacert="+url.QueryEscape(certificate))
	}
	moved(t, dial(t, urls[0]+"?cacert="+url.QueryEscape(certificate)), urls[1])
	if err := servers[0].Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatalf("the new server answers %v", err)
	}
	if got := servers[1].Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("the new server has %q", got)
	}
}
