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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine"
)

// serveFlags are the flags of `serve`.
type serveFlags struct {
	listen, unix, dir, passwordFile   string
	config, replicaOf                 string
	set                               []string
	tlsListen, tlsCert, tlsKey, tlsCA string
	memory, stop, private             bool
	idleExit, shutdownTimeout         time.Duration
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the engine to any Redis client", Args: exactly(),
		Long: `Serve the engine: a server that speaks Redis's protocol, for signalbox, redis-cli,
and any Redis client.

Data is kept in --dir, by default in the folder signalbox-data here: in an append-only
file that is on disk within a second, and in a snapshot now and then. How much is safe
is up to appendonly, appendfsync and save, as in Redis. One engine at a time can use a
folder; its files are those of Redis 7. With --memory nothing is kept. When it is ended
(SIGTERM, SIGINT) it saves; a second signal ends it at once, without that.

It listens for this machine alone. To listen for others, give --listen, and a password
in a file that only you can read: without a password, only this machine is let in
(protected mode). With --tls-listen clients speak TLS; with --tls-ca they have to show a
certificate, too.

With --replicaof it is a replica: it takes the data of another server, and follows what
changes there until REPLICAOF NO ONE; see docs/replication.md.

A redis.conf can be taken as it is; what in it means nothing here is listed. Single
parameters are set with --set, such as --set timeout=300.

With --stop, end the private local engine that commands without --url meet in (with
--socket the one behind that socket).

JSON, when it is ready: {tcp, tls, unix, pid, dir}.`,
		Example: `  signalbox serve
  signalbox serve --listen :7379 --requirepass-file ~/.signalbox-password
  signalbox serve --dir /var/lib/signalbox --set appendfsync=always
  signalbox serve --tls-listen :7380 --tls-cert cert.pem --tls-key key.pem --requirepass-file secret
  signalbox serve --replicaof "10.0.0.5 6379"
  signalbox serve --config /etc/redis/redis.conf --set port=7379
  signalbox serve --stop`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveAs(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7379", "TCP address to listen on")
	flags.StringVar(&f.unix, "unix", "", "Unix socket to listen on; without --listen instead of TCP")
	flags.StringVar(&f.dir, "dir", "", "folder to keep the data in (default that of the configuration, else signalbox-data)")
	flags.BoolVar(&f.memory, "memory", false, "keep the data in memory only: it is gone at the end")
	flags.DurationVar(&f.shutdownTimeout, "shutdown-timeout", 10*time.Second, "how long the last snapshot may take at the end")
	flags.StringVar(&f.passwordFile, "requirepass-file", "", "file with the password that clients must give")
	flags.StringVar(&f.config, "config", "", "redis.conf to take the parameters from")
	flags.StringVar(&f.replicaOf, "replicaof", "", "\"HOST PORT\" of a server to be a replica of; it may be a Redis or a Valkey")
	flags.StringArrayVar(&f.set, "set", nil, "set one parameter of redis.conf, as name=value; may be repeated")
	flags.StringVar(&f.tlsListen, "tls-listen", "", "TCP address to listen on for TLS; without --listen instead of plain TCP")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "file with the certificate for TLS, PEM")
	flags.StringVar(&f.tlsKey, "tls-key", "", "file with the certificate's key")
	flags.StringVar(&f.tlsCA, "tls-ca", "", "file with the certificates by which clients are known; without it they need none")
	flags.BoolVar(&f.stop, "stop", false, "end the private local engine")
	flags.BoolVar(&f.private, "private", false, "be the private local engine")
	flags.DurationVar(&f.idleExit, "idle-exit", idleExit, "how long the private local engine stays without work")
	for _, name := range []string{"private", "idle-exit"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // a name above is misspelt
		}
	}
	a.addDebugListen(cmd)
	return cmd
}

// serveAs serves, or does what is asked for in its place.
func (a *app) serveAs(cmd *cobra.Command, f serveFlags) error {
	switch {
	case f.stop:
		return a.stopPrivate(cmd.Context())
	case f.private:
		return a.servePrivate(cmd.Context(), f.idleExit)
	}
	if a.socket != "" {
		return usage("--socket names the private local engine; to serve on a socket give --unix %s", printable(a.socket))
	}
	if cmd.Flags().Changed("dir") && f.dir == "" {
		return usage("--dir must name a folder; --memory keeps nothing on disk")
	}
	return a.serve(cmd.Context(), f, cmd.Flags().Changed("listen"))
}

func (a *app) stopPrivate(ctx context.Context) error {
	p, err := a.findPrivate()
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
	if err := f.check(); err != nil {
		return err
	}
	password, err := readPassword(f.passwordFile)
	if err != nil {
		return err
	}
	config, err := f.readConfig()
	if err != nil {
		return err
	}
	if ignored := config.Ignored(); len(ignored) > 0 {
		fmt.Fprintf(a.stderr, "signalbox: these parameters mean nothing to this engine: %s\n", strings.Join(ignored, ", "))
	}
	doors, err := f.open(config, tcp)
	if err != nil {
		return err
	}
	hasPassword := password != "" || config.HasPassword()
	if !hasPassword && config.Protected() && slices.ContainsFunc(doors, door.isWide) {
		fmt.Fprintln(a.stderr, "signalbox: without a password only clients on this machine are let in: give one with --requirepass-file")
	}
	h := house{doors: doors, dir: f.folder(config), shutdownTimeout: f.shutdownTimeout, progress: a.newProgress()}
	options := engine.Options{
		Password: password, Config: config, Log: a.logLine,
		Dir: h.dir, LoadInBackground: true, Loading: h.loading,
	}
	if tcp || !config.Given(doorParameters...) {
		options.Bind = bindOf(doors)
	}
	for _, d := range doors {
		switch address := d.Addr().(type) {
		case *net.TCPAddr:
			if options.Port == 0 && !d.secure {
				options.Port = address.Port
			}
		default:
			options.UnixPath = address.String()
		}
	}
	if h.engine, err = engine.Open(options); err != nil {
		return errors.Join(notOpened(err, h.dir), closeAll(doors))
	}
	return h.serve(ctx, func() error {
		err := a.announce(doors, hasPassword, keptIn(ctx, h.engine, h.dir))
		return errors.Join(err, tellSystemd("READY=1"))
	})
}

// logLine writes warnings of the engine and its scripts.
func (a *app) logLine(level int, message string) {
	const warning = 3
	if level >= warning {
		a.warn(message)
	}
}

// warn says something, in place of a line of progress that may stand there.
// warn says what does not end the command.
func (a *app) warn(message string) {
	if a.events {
		a.tell(eventJSON{Event: "warning", Error: message})
		return
	}
	if isTerminal(a.stderr) {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	fmt.Fprintln(a.stderr, "signalbox:", message)
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

// announce says where the engine is reached.
func (a *app) announce(doors []door, password bool, data keeping) error {
	found := map[string]any{"pid": os.Getpid()}
	if data.dir != "" {
		found["dir"] = data.dir
	}
	var text strings.Builder
	credentials, ask := "", ""
	if password {
		credentials, ask = ":PASSWORD@", " --askpass"
	}
	for _, d := range doors {
		address, ok := d.Addr().(*net.TCPAddr)
		if !ok {
			path := d.Addr().String()
			if absolute, err := filepath.Abs(path); err == nil {
				path = absolute
			}
			found["unix"] = path
			fmt.Fprintf(&text, "Serving on %s\n  redis-cli -s %s%s\n  export SIGNALBOX_URL=unix://%s%s\n", path, path, ask, credentials, (&url.URL{Path: path}).EscapedPath())
			continue
		}
		kind, scheme, flag, host, place := "tcp", "redis", "", "", address.String()
		if d.secure {
			kind, scheme, flag = "tls", "rediss", " --tls"
		}
		if found[kind] == nil {
			found[kind] = address.String()
		}
		if !address.IP.IsLoopback() {
			host, place = " -h HOST", fmt.Sprintf("HOST:%d", address.Port)
		}
		fmt.Fprintf(&text, "Serving on %s\n  redis-cli%s%s -p %d%s\n  export SIGNALBOX_URL=%s://%s%s\n", address, flag, host, address.Port, ask, scheme, credentials, place)
	}
	if a.json {
		return a.printJSON(found)
	}
	_, err := fmt.Fprintf(a.stdout, "%s%s\n", text.String(), data)
	return err
}

// servePrivate is the private local engine. It ends when it has been without connections and without keys for a while.
func (a *app) servePrivate(ctx context.Context, idle time.Duration) error {
	p, err := a.findPrivate()
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
	if l, ok := l.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // there may be the socket of another engine by then
	}
	e, err := engine.Open(engine.Options{UnixPath: p.socket})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	signal.Ignore(hangup...)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go p.endWhenIdle(ctx, e, idle, life, func() { cancel(nil) })
	go p.endOutOfReach(ctx, life, cancel)
	h := house{engine: e, doors: []door{{Listener: l}}, progress: a.newProgress()}
	err = h.serve(ctx, func() error { return nil })
	if life.isAt(p.file("engine.lock")) {
		_ = os.Remove(p.socket) // the next engine does so, too
	}
	err = errors.Join(err, life.write("")) // it was not killed
	if gone := context.Cause(ctx); errors.Is(gone, errOutOfReach) {
		err = errors.Join(err, gone)
	}
	return err
}

// errOutOfReach: newcomers do not find the engine, and start another.
var errOutOfReach = errors.New("the private local engine ends, and all that is held with it")

// endOutOfReach cancels when the lock of the engine is no longer where others look for it.
func (p *private) endOutOfReach(ctx context.Context, life *fileLock, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	for life.isAt(p.file("engine.lock")) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	cancel(fmt.Errorf("%s was removed or replaced, and commands that come now start another engine: %w", p.file("engine.lock"), errOutOfReach))
}

// endWhenIdle cancels when the engine has had neither a connection nor a key for the time idle. It holds the start lock
// meanwhile, so that nobody finds the engine alive who then finds it gone, but for those who had found it before.
func (p *private) endWhenIdle(ctx context.Context, e *engine.Engine, idle time.Duration, life *fileLock, cancel func()) {
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
		if !busy(ctx, e) && life.isAt(p.file("engine.lock")) {
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
