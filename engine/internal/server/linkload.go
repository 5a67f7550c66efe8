package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox/engine/internal/conf"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/replication"
)

// mostLine bounds a line of a primary.
const mostLine = 4 << 10

// dial connects to the primary.
func (l *link) dial() (net.Conn, error) {
	s := l.server
	var secure *tls.Config
	err := l.locked(func() (err error) {
		settings := s.machine.Settings()
		l.timeout = time.Duration(settings.Int("repl-timeout")) * time.Second
		l.to.Enter(nowUs(), exec.LinkConnecting)
		if settings.Bool("tls-replication") {
			secure, err = linkTLS(settings)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: l.timeout}
	nc, err := d.DialContext(l.ctx, "tcp", net.JoinHostPort(l.to.Host, strconv.Itoa(l.to.Port)))
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if secure != nil {
		nc = tls.Client(nc, secure)
	}
	err = l.locked(func() error {
		l.nc = nc
		l.to.Enter(nowUs(), exec.LinkHandshake)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return nc, nil
}

// linkTLS is how to speak to a primary by TLS: with the certificate of the server, or that for its part as a client.
// As in Redis, the primary's certificate must be good, and may be for any name.
func linkTLS(settings *conf.Settings) (*tls.Config, error) {
	certificate, key := settings.Text("tls-client-cert-file"), settings.Text("tls-client-key-file")
	if certificate == "" {
		certificate, key = settings.Text("tls-cert-file"), settings.Text("tls-key-file")
	}
	config := &tls.Config{}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("tls-replication: %s and %s: %w", certificate, key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	var err error
	if config.MinVersion, config.MaxVersion, err = tlsVersions(settings.Text("tls-protocols")); err != nil {
		return nil, err
	}
	roots, err := authorities(settings.Text("tls-ca-cert-file"), settings.Text("tls-ca-cert-dir"))
	if err != nil {
		return nil, err
	}
	config.InsecureSkipVerify = true // the name; VerifyConnection looks at the rest
	config.VerifyConnection = func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(options)
		return err
	}
	return config, nil
}

// handshake speaks until the primary has said how the stream comes.
func (l *link) handshake(nc net.Conn, in *bufio.Reader) (replication.Answer, error) {
	var terms replication.Terms
	if err := l.locked(func() error {
		terms = l.to.Terms()
		return nil
	}); err != nil {
		return replication.Answer{}, err
	}
	talk, send := replication.Begin(terms)
	for {
		if err := nc.SetDeadline(time.Now().Add(l.timeout)); err != nil {
			return replication.Answer{}, lost(err)
		}
		if len(send) > 0 {
			if _, err := nc.Write(send); err != nil {
				return replication.Answer{}, lost(err)
			}
		}
		line, err := readLine(in)
		if err != nil {
			return replication.Answer{}, err
		}
		var answer replication.Answer
		if send, answer, err = talk.Hear(line); err != nil || answer.Done {
			return answer, err
		}
		if err := l.locked(func() error { return l.to.Learn(nowUs(), talk.Ancestors()) }); err != nil {
			return answer, err
		}
	}
}

// readLine reads a line, which is bounded.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > mostLine {
		return "", errors.New("the primary sends a line without end: is it a Redis at all?")
	}
	if err != nil {
		return "", lost(err)
	}
	return trimLine(string(line)), nil
}

// load reads the snapshot, puts it in the place of the data, and returns where the stream comes from.
func (l *link) load(nc net.Conn, in *bufio.Reader, answer replication.Answer) (io.Reader, error) {
	s := l.server
	began := time.Now()
	line := ""
	for line == "" { // the primary is at work, and says so
		if err := nc.SetDeadline(time.Now().Add(l.timeout)); err != nil {
			return nil, lost(err)
		}
		var err error
		if line, err = readLine(in); err != nil {
			return nil, err
		}
	}
	frame, err := replication.ParseSnapshot(line)
	if err != nil {
		return nil, err
	}
	source := &snapshotSource{link: l, nc: nc, from: in}
	from := io.Reader(source)
	if frame.Bytes >= 0 {
		from = io.LimitReader(source, frame.Bytes)
	}
	var data *exec.Replacement
	if err := l.locked(func() error {
		l.to.Enter(nowUs(), exec.LinkSync)
		data = s.machine.BeginReplacement(from)
		return nil
	}); err != nil {
		return nil, err
	}
	for err == nil {
		if err = data.Read(time.Now().UnixMilli()); err == nil {
			err = l.progress(data.Offset(), frame.Bytes)
		}
	}
	rest := data.Rest()
	if errors.Is(err, io.EOF) {
		rest, err = behind(rest, in, data, frame)
	}
	switch {
	case err == nil:
	case errors.Is(err, errOver):
		return nil, err
	case source.err != nil:
		return nil, fmt.Errorf("the snapshot broke off after %d bytes: %w", data.Offset(), lost(source.err))
	default:
		return nil, divergedError{fmt.Errorf("the snapshot of the primary cannot be taken: %w", err)}
	}
	source.done = true
	err = l.locked(func() error {
		err := l.to.Adopt(nowUs(), data, answer.ID, answer.Offset, address(nc.RemoteAddr()), address(nc.LocalAddr()))
		if err != nil {
			return divergedError{fmt.Errorf("the snapshot of the primary cannot be taken: %w", err)}
		}
		s.note("a full synchronisation with the primary %s: %d keys in %v", l.to, data.Keys(), time.Since(began).Round(time.Millisecond))
		return nil
	})
	return rest, err
}

// behind is where the stream comes from when the snapshot was read, and was framed as it should be.
func behind(rest io.Reader, in *bufio.Reader, data *exec.Replacement, frame replication.Snapshot) (io.Reader, error) {
	if frame.Bytes >= 0 {
		if data.Offset() != frame.Bytes {
			return nil, fmt.Errorf("it ends after %d of %d bytes", data.Offset(), frame.Bytes)
		}
		return in, nil
	}
	mark := make([]byte, len(frame.Mark))
	if _, err := io.ReadFull(rest, mark); err != nil {
		return nil, err
	}
	if string(mark) != frame.Mark {
		return nil, errors.New("the mark behind it is another one than was announced")
	}
	return rest, nil
}

// progress tells how far the snapshot is, now and then.
func (l *link) progress(read, total int64) error {
	const every = 100 * time.Millisecond
	if time.Since(l.silent) < every {
		return nil
	}
	l.silent = time.Now()
	return l.locked(func() error {
		l.to.Progress(nowUs(), read, total)
		return nil
	})
}

// snapshotSource reads a snapshot, and lets the primary know now and then that it does.
type snapshotSource struct {
	link  *link
	nc    net.Conn
	from  io.Reader
	alive time.Time // was told last
	done  bool      // the snapshot was read: what comes now is the stream
	err   error     // of the connection
}

func (r *snapshotSource) Read(p []byte) (int, error) {
	if now := time.Now(); !r.done && now.Sub(r.alive) >= ackEvery {
		r.alive = now
		if err := r.nc.SetDeadline(now.Add(r.link.timeout)); err != nil {
			r.err = err
			return 0, err
		}
		if _, err := r.nc.Write([]byte("\n")); err != nil {
			r.err = err
			return 0, err
		}
	}
	n, err := r.from.Read(p)
	if err != nil {
		r.err = err
	}
	return n, err
}
