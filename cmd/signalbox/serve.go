package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine"
)

// serveFlags are the flags of `serve`.
type serveFlags struct {
	listen, unix, dir, passwordFile string
	stop, private                   bool
	idleExit                        time.Duration
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the engine to any Redis client", Args: exactly(),
		Long: `Serve the engine: a server that speaks Redis's protocol, for signalbox, redis-cli,
and any Redis client. Data is kept in memory only and is gone when it ends.

It listens for this machine alone. To listen for others, give a password in a file
that only you can read; there is no TLS.

With --stop, end the private local engine that commands without --url meet in.

JSON, when it is ready: {tcp, unix, pid}.`,
		Example: `  signalbox serve
  signalbox serve --listen :7379 --requirepass-file ~/.signalbox-password
  signalbox serve --stop`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.stop:
				return a.stopPrivate(cmd.Context())
			case f.private:
				return a.servePrivate(cmd.Context(), f.idleExit)
			}
			return a.serve(cmd.Context(), f, cmd.Flags().Changed("listen"))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7379", "TCP address to listen on")
	flags.StringVar(&f.unix, "unix", "", "Unix socket to listen on; without --listen instead of TCP")
	flags.StringVar(&f.dir, "dir", "", "folder to keep data in: not possible yet")
	flags.StringVar(&f.passwordFile, "requirepass-file", "", "file with the password that clients must give")
	flags.BoolVar(&f.stop, "stop", false, "end the private local engine")
	flags.BoolVar(&f.private, "private", false, "be the private local engine")
	flags.DurationVar(&f.idleExit, "idle-exit", idleExit, "how long the private local engine stays without work")
	for _, name := range []string{"private", "idle-exit"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // a name above is misspelt
		}
	}
	return cmd
}

func (a *app) stopPrivate(ctx context.Context) error {
	p, err := findPrivate()
	if err != nil {
		return err
	}
	text := "The private local engine has ended."
	switch err := p.stop(ctx); {
	case errors.Is(err, errNotRunning):
		text = "The private local engine does not run."
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(a.stdout, text)
	return err
}

func (a *app) serve(ctx context.Context, f serveFlags, tcp bool) error {
	if f.dir != "" {
		return usage("--dir %s: the engine cannot keep data on disk yet; leave --dir out to keep it in memory", f.dir)
	}
	password, err := readPassword(f.passwordFile)
	if err != nil {
		return err
	}
	if f.unix == "" || tcp {
		tcp = true
		if err := checkListen(f.listen, password); err != nil {
			return err
		}
	}
	listeners, err := listen(f, tcp)
	if err != nil {
		return err
	}
	options := engine.Options{Password: password, UnixPath: f.unix}
	if address, ok := listeners[0].Addr().(*net.TCPAddr); ok {
		options.Port = address.Port
	}
	e, err := engine.Open(options)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(ctx, terminationSignals...)
	defer cancel()
	if err := a.announce(listeners, password != ""); err != nil {
		return err
	}
	return serveUntil(ctx, e, listeners)
}

// readPassword reads the first line of the password file.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err == nil {
		err = secret(info)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return "", usage("the password file %s: %w", path, err)
	}
	password, _, _ := strings.Cut(string(text), "\n")
	if password = strings.TrimSuffix(password, "\r"); password == "" {
		return "", usage("the password file %s: its first line is empty", path)
	}
	return password, nil
}

// checkListen refuses to let the network in without a password.
func checkListen(address, password string) error {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return usage("--listen %s: %w; give HOST:PORT such as 127.0.0.1:7379", address, err)
	}
	if password == "" && !resolved.IP.IsLoopback() {
		return usage("--listen %s would let everybody on the network in: give a password with --requirepass-file, or listen on 127.0.0.1:%d", address, resolved.Port)
	}
	return nil
}

// listen opens the listeners, TCP first.
func listen(f serveFlags, tcp bool) (listeners []net.Listener, err error) {
	if tcp {
		l, err := net.Listen("tcp", f.listen)
		if err != nil {
			return nil, &exitError{exitUnavailable, fmt.Errorf("--listen %s: %w; give another port, or end who listens there", f.listen, err)}
		}
		listeners = append(listeners, l)
	}
	if f.unix != "" {
		l, err := listenUnix(f.unix)
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			return nil, &exitError{exitUnavailable, fmt.Errorf("--unix: %w", err)}
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// announce says where the engine is reached.
func (a *app) announce(listeners []net.Listener, password bool) error {
	found := map[string]any{"pid": os.Getpid()}
	var text strings.Builder
	credentials, ask := "", ""
	if password {
		credentials, ask = ":PASSWORD@", " --askpass"
	}
	for _, l := range listeners {
		switch address := l.Addr().(type) {
		case *net.TCPAddr:
			found["tcp"] = address.String()
			host := ""
			if !address.IP.IsLoopback() {
				host = " -h HOST"
			}
			fmt.Fprintf(&text, "Serving on %s\n  redis-cli%s -p %d%s\n", address, host, address.Port, ask)
			if host == "" {
				fmt.Fprintf(&text, "  export SIGNALBOX_URL=redis://%s%s\n", credentials, address)
			} else {
				fmt.Fprintf(&text, "  export SIGNALBOX_URL=redis://%sHOST:%d\n", credentials, address.Port)
			}
		default:
			path := address.String()
			if absolute, err := filepath.Abs(path); err == nil {
				path = absolute
			}
			found["unix"] = path
			fmt.Fprintf(&text, "Serving on %s\n  redis-cli -s %s%s\n  export SIGNALBOX_URL=unix://%s%s\n", path, path, ask, credentials, (&url.URL{Path: path}).EscapedPath())
		}
	}
	if a.json {
		return a.printJSON(found)
	}
	_, err := fmt.Fprint(a.stdout, text.String(), "Data is in memory only: it is gone when this ends.\n")
	return err
}

// serveUntil serves until the context ends or a listener fails.
func serveUntil(ctx context.Context, e *engine.Engine, listeners []net.Listener) error {
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- e.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	err = errors.Join(err, e.Close())
	for range listeners {
		err = errors.Join(err, <-failed)
	}
	return err
}

// servePrivate is the private local engine. It ends when it has been without connections and without keys for a while.
func (a *app) servePrivate(ctx context.Context, idle time.Duration) error {
	p, err := findPrivate()
	if err != nil {
		return err
	}
	// The one before may be about to end.
	patience, done := context.WithTimeout(ctx, startWithin/2)
	life, err := p.lock(patience, "engine.lock")
	done()
	if err != nil {
		return fmt.Errorf("a private local engine seems to run already, out of reach; end it with signalbox serve --stop: %w", err)
	}
	defer life.release()
	if err := life.write(strconv.Itoa(os.Getpid()) + "\n"); err != nil {
		return err
	}
	l, err := listenUnix(p.socket)
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{UnixPath: p.socket})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	signal.Ignore(hangup...)
	ctx, cancel := signal.NotifyContext(ctx, terminationSignals...)
	defer cancel()
	go p.endWhenIdle(ctx, e, idle, cancel)
	return serveUntil(ctx, e, []net.Listener{l})
}

// endWhenIdle cancels when the engine has had neither a connection nor a key for the time idle. It holds the start lock
// meanwhile, so that nobody finds the engine alive who then finds it gone, but for those who had found it before.
func (p *private) endWhenIdle(ctx context.Context, e *engine.Engine, idle time.Duration, cancel func()) {
	tick := time.NewTicker(max(idle/20, time.Millisecond))
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if busy(ctx, e) {
			since = time.Now()
		}
		if time.Since(since) < idle {
			continue
		}
		starting, err := tryLock(p.file("start.lock"))
		if err != nil || starting == nil {
			since = time.Now()
			continue
		}
		if !busy(ctx, e) {
			cancel()
			<-ctx.Done()
			_ = os.Remove(p.socket) // if the engine has not done so yet: before the lock goes
			starting.release()
			return
		}
		starting.release()
	}
}

func busy(ctx context.Context, e *engine.Engine) bool {
	keys, err := e.Do(ctx, "DBSIZE")
	return err != nil || keys.Int() > 0 || e.Connections() > 0
}
