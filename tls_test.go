package signalbox_test

import (
	"testing"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// TestTLS: locks over TLS, and an error that says what is wrong with a certificate nobody knows.
func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, key := difftest.Certificate(t, t.TempDir(), "server")
	port := difftest.FreePort(t)
	addr := "127.0.0.1:" + port
	difftest.Redis(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no",
		"--tls-ca-cert-file", certificate)

	box, err := signalbox.Open(t.Context(), "rediss://"+addr+"?skip_verify=true")
	must(t, err)
	t.Cleanup(func() { must(t, box.Close()) })
	lease, err := box.Mutex("r").Acquire(t.Context())
	must(t, err)
	leases, failed := acquire(box, "r")
	must(t, lease.Release(t.Context()))
	granted(t, leases, failed)
	idle(t, box, "r")

	trusting, err := signalbox.Open(t.Context(), "rediss://"+addr+"?cacert="+certificate)
	must(t, err)
	must(t, trusting.Close())

	_, err = signalbox.Open(t.Context(), "rediss://"+addr)
	says(t, err, signalbox.ErrUnavailable, addr, "certificate")
}
