package address

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// certificates are the files that the query of a URL names for TLS, as the options of redis-cli do: cacert, whom to trust
// in place of those whom the system trusts; cert and key, who we are.
type certificates struct {
	trusted *x509.CertPool
	ours    []tls.Certificate
}

// takeCertificates takes them off the query, and reads them.
func (t target) takeCertificates() (c certificates, err error) {
	ca, cert, key := t.query.Get("cacert"), t.query.Get("cert"), t.query.Get("key")
	for _, name := range []string{"cacert", "cert", "key"} {
		if t.query.Has(name) && t.scheme != "rediss" {
			return c, fmt.Errorf("%s= is for TLS: the scheme is rediss://", name)
		}
		t.query.Del(name)
	}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return c, fmt.Errorf("cacert: %w", err)
		}
		c.trusted = x509.NewCertPool()
		if !c.trusted.AppendCertsFromPEM(text) {
			return c, fmt.Errorf("cacert: %s has no certificate in PEM", ca)
		}
	}
	switch {
	case cert == "" && key == "":
		return c, nil
	case cert == "" || key == "":
		return c, errors.New("cert= and key= go together: the files of our certificate and of its key")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return c, fmt.Errorf("cert and key: %w", err)
	}
	c.ours = []tls.Certificate{pair}
	return c, nil
}

// to makes a configuration use them; it is nil without TLS.
func (c certificates) to(config *tls.Config) {
	if config != nil {
		config.RootCAs, config.Certificates = c.trusted, c.ours
	}
}
