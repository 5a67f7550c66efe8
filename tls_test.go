package signalbox_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// selfSigned writes a certificate for this machine's loopback address, and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return certificate, key
}

// TestTLS: locks over TLS, and an error that says what is wrong with a certificate nobody knows.
func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, key := selfSigned(t)
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

	_, err = signalbox.Open(t.Context(), "rediss://"+addr)
	says(t, err, signalbox.ErrUnavailable, addr, "certificate")
}
