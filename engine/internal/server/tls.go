package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
)

// TLS is the usual kind of Redis: a listener of its own, certificates from
// files, client certificates if wanted. A handshake reads the configuration of
// the moment, so CONFIG SET can renew a certificate while the engine runs.
//
// A TLS connection has no way to write what the socket takes at once: all its
// output goes by the connection's goroutine, bounded as that of a slow reader.

// ServeTLS is Serve for clients that speak TLS. The settings must name a
// certificate and its key.
func (s *Server) ServeTLS(l net.Listener) error {
	s.mu.Lock()
	err := s.loadTLS()
	s.mu.Unlock()
	if err != nil {
		return errors.Join(fmt.Errorf("engine: TLS: %w", err), l.Close())
	}
	return s.Serve(tls.NewListener(l, &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.tls.Load(), nil },
	}))
}

// loadTLS makes handshakes use what the settings say now. The lock is held.
func (s *Server) loadTLS() error {
	config, err := tlsConfig(s.machine.Settings())
	if err == nil {
		s.tls.Store(config)
	}
	return err
}

// applyTLS is called by the machine when a setting has changed.
func (s *Server) applyTLS() error {
	if s.tls.Load() == nil {
		return nil // TLS is not in use
	}
	if err := s.loadTLS(); err != nil {
		s.warn("TLS: %v", err)
		return conf.Error("Unable to update TLS configuration. Check server logs.")
	}
	return nil
}

func tlsConfig(settings *conf.Settings) (*tls.Config, error) {
	certificate, key := settings.Text("tls-cert-file"), settings.Text("tls-key-file")
	if certificate == "" || key == "" {
		return nil, errors.New("no certificate: give tls-cert-file and tls-key-file")
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("tls-cert-file %s and tls-key-file %s: %w", certificate, key, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if config.MinVersion, config.MaxVersion, err = tlsVersions(settings.Text("tls-protocols")); err != nil {
		return nil, err
	}
	if config.ClientCAs, err = authorities(settings.Text("tls-ca-cert-file"), settings.Text("tls-ca-cert-dir")); err != nil {
		return nil, err
	}
	switch settings.Text("tls-auth-clients") {
	case "no":
		return config, nil
	case "optional":
		config.ClientAuth = tls.VerifyClientCertIfGiven
	default:
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	if config.ClientCAs == nil {
		return nil, errors.New("clients have to show a certificate, but nobody can say which are good: " +
			"give tls-ca-cert-file or tls-ca-cert-dir, or set tls-auth-clients to no")
	}
	return config, nil
}

// authorities reads the certificates by which clients are known; nil if none
// are named.
func authorities(file, dir string) (*x509.CertPool, error) {
	var paths []string
	if file != "" {
		paths = append(paths, file)
	}
	if dir != "" {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-dir: %w", err)
		}
		for _, entry := range entries {
			if !entry.IsDir() {
				paths = append(paths, filepath.Join(dir, entry.Name()))
			}
		}
	}
	if paths == nil {
		return nil, nil
	}
	pool := x509.NewCertPool()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("tls-ca-cert-file: %w", err)
		}
		if !pool.AppendCertsFromPEM(text) && path == file {
			return nil, fmt.Errorf("tls-ca-cert-file %s: it holds no certificate", path)
		}
	}
	return pool, nil
}

var tlsNames = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

// tlsVersions reads tls-protocols: the versions that are spoken, which must be
// neighbours. By default they are 1.2 and 1.3.
func tlsVersions(protocols string) (lowest, highest uint16, err error) {
	words := strings.Fields(protocols)
	if len(words) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	chosen := make([]int, len(words))
	for i, word := range words {
		chosen[i] = slices.IndexFunc(tlsNames, func(name string) bool { return strings.EqualFold(name, word) })
		if chosen[i] < 0 {
			return 0, 0, fmt.Errorf("tls-protocols: %s is none of %s", word, strings.Join(tlsNames, ", "))
		}
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	first, last := chosen[0], chosen[len(chosen)-1]
	if last-first != len(chosen)-1 {
		return 0, 0, fmt.Errorf("tls-protocols: %s leaves out a version in between, which cannot be done", protocols)
	}
	return tls.VersionTLS10 + uint16(first), tls.VersionTLS10 + uint16(last), nil
}
