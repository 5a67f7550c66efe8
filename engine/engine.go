package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/signalbox-io/signalbox/engine/internal/disk"
	"github.com/signalbox-io/signalbox/engine/internal/exec"
	"github.com/signalbox-io/signalbox/engine/internal/resp"
	"github.com/signalbox-io/signalbox/engine/internal/server"
)

// ErrClosed is returned by calls on an engine that has been closed.
var ErrClosed = server.ErrClosed

// RedisVersion is the version of Redis whose behaviour the engine has.
const RedisVersion = exec.RedisVersion

// Options configure an engine. The zero value is a good engine: no password,
// and connections from this machine only.
type Options struct {
	// Password that clients must give with AUTH or HELLO. Without one, only
	// connections from the loopback interface, Unix sockets and this process
	// are accepted, unless Config says protected-mode no.
	Password string
	// MaxClients bounds the open connections; 0 means what Config says, which is
	// 10,000 by default.
	MaxClients int
	// Port and UnixPath are where the caller will listen. They are only told
	// to clients (INFO, CONFIG GET).
	Port     int
	UnixPath string
	// Bind are the addresses of the caller's listeners, as redis.conf writes them, such
	// as "127.0.0.1 ::1", for CONFIG GET; "" leaves it to Config.
	Bind string
	// Config are the parameters of a redis.conf and the like; nil for Redis's
	// defaults. Password, MaxClients, Port and UnixPath come before it.
	Config *Config
	// Dir is the folder to keep the data in, which is made if it is not there; ""
	// keeps it in memory only. What is kept when is said by the parameters
	// appendonly, appendfsync and save of Config. Without them it is an append-only file,
	// on disk within a second, and snapshots now and then. The files are those of
	// Redis 7. One engine at a time can use a folder.
	Dir string
	// LoadInBackground makes Open return before the data in Dir is loaded: clients
	// are answered LOADING until then, and Loaded waits for it.
	LoadInBackground bool
	// Loading is told now and then how far the loading is. It must return quickly. May
	// be nil.
	Loading func(LoadProgress)
	// Log takes the messages of the engine and of scripts (redis.log) with their level,
	// from 0 for debug to 3 for warning. It must return quickly. May be nil.
	Log func(level int, message string)
}

// LoadProgress tells how far the loading of the data is.
type LoadProgress = server.Progress

// ErrNotSafe is for a call whose effect may not be on disk, with appendfsync always. It
// may have happened, and may be lost with the next crash.
var ErrNotSafe = server.ErrNotSafe

// InUseError is for a Dir that another engine uses. PID is that of its process, 0 if it is
// not known.
type InUseError = disk.LockedError

// Engine is a running engine. Its methods may be called from any goroutine.
type Engine struct {
	server *server.Server
	loaded chan struct{}
	err    error // of the loading
}

// Open starts an engine that listens nowhere yet, with what Dir holds, if it is given. The
// error says what is wrong with the options, the folder, or a file in it; nothing is
// changed there then.
func Open(options Options) (*Engine, error) {
	switch {
	case options.MaxClients < 0 || int64(options.MaxClients) > math.MaxUint32:
		return nil, fmt.Errorf("engine: MaxClients is %d: give 0 for the default, or a positive number", options.MaxClients)
	case options.Port < 0 || options.Port > math.MaxUint16:
		return nil, fmt.Errorf("engine: Port is %d: give the port on which you listen, or 0", options.Port)
	}
	o := server.Options{
		Password:   options.Password,
		MaxClients: options.MaxClients,
		Port:       options.Port,
		UnixPath:   options.UnixPath,
		Bind:       options.Bind,
		Log:        options.Log,
	}
	if options.Config != nil {
		o.Settings, o.ConfigFile = options.Config.settings, options.Config.path
	}
	if err := keepIn(&o, options.Dir, options.Config); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	e := &Engine{server: server.New(o), loaded: make(chan struct{})}
	err := e.server.LoadUsers()
	if err == nil && options.Dir != "" {
		err = e.server.Keep(disk.At(options.Dir))
	}
	switch {
	case err != nil:
	case options.Dir == "":
		e.server.Follow()
		close(e.loaded)
	case options.LoadInBackground:
		go e.load(options.Loading)
	default:
		e.load(options.Loading)
		err = e.err
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("engine: %w", err), e.server.Close())
	}
	return e, nil
}

func (e *Engine) load(progress func(LoadProgress)) {
	defer close(e.loaded)
	e.err = e.server.Load(progress)
}

// Loaded waits until the data is loaded, and returns what went wrong with that: then the
// engine answers no command that needs data, and is to be closed.
func (e *Engine) Loaded() error {
	<-e.loaded
	if e.err != nil {
		return fmt.Errorf("engine: %w", e.err)
	}
	return nil
}

// Serve accepts connections from l and serves them until the engine is closed,
// when it returns nil, or until accepting fails. It closes l.
func (e *Engine) Serve(l net.Listener) error { return e.server.Serve(l) }

// ServeTLS is Serve for clients that speak TLS, with the certificate that the
// configuration names (tls-cert-file, tls-key-file). CONFIG SET can change it.
func (e *Engine) ServeTLS(l net.Listener) error { return e.server.ServeTLS(l) }

// ServeConn serves one connection until either end closes it. It closes conn.
func (e *Engine) ServeConn(conn net.Conn) error { return e.server.ServeConn(conn) }

// Dial returns a new connection to the engine that needs no network. It fits
// the Dialer of any client. A password is needed as on any connection.
func (e *Engine) Dial() (net.Conn, error) { return e.server.Dial() }

// Connections is how many connections are open.
func (e *Engine) Connections() int { return e.server.Connections() }

// Close closes every listener and connection and waits until all goroutines
// have ended. A script that has written has a second to end by itself. Data that is kept is on disk then, or the error
// says why it is not. It is safe to call more than once.
func (e *Engine) Close() error { return e.Shutdown(context.Background()) }

// Shutdown is Close that does not wait for a last snapshot longer than ctx. The
// append-only file is brought to the disk in any case; without one it is an error that
// wraps that of ctx, and what has changed since the last snapshot is lost.
func (e *Engine) Shutdown(ctx context.Context) error {
	err := e.server.Shutdown(ctx)
	<-e.loaded
	return err
}

// Reply is the answer to Do.
type Reply struct{ value resp.Value }

// Error is an error that a command answered with, such as WRONGTYPE.
type Error string

func (e Error) Error() string { return string(e) }

// Do runs one command in process, without a connection or parsing, and waits
// for its reply; blocking commands wait until ctx ends. An error reply is
// returned as Error. Each call stands alone: SELECT, MULTI, WATCH and
// SUBSCRIBE have no effect on later calls. No password is needed.
func (e *Engine) Do(ctx context.Context, args ...string) (Reply, error) {
	if len(args) == 0 {
		return Reply{}, errors.New("engine: Do needs a command")
	}
	value, err := e.server.Do(ctx, request(args))
	if err != nil {
		return Reply{}, err
	}
	if value.Kind == resp.Error {
		return Reply{}, Error(value.Str)
	}
	return Reply{value}, nil
}

// request copies the arguments, all into one piece of memory.
func request(args []string) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	raw, text := make([][]byte, len(args)), make([]byte, 0, size)
	for i, a := range args {
		from := len(text)
		text = append(text, a...)
		raw[i] = text[from:len(text):len(text)]
	}
	return raw
}

// Value is the reply as plain Go: an int64, a string, nil, or an []any of these.
// What RESP3 has besides comes as RESP2 has it.
func (r Reply) Value() any { return plain(&r.value) }

func plain(v *resp.Value) any {
	switch v.Kind {
	case resp.Integer:
		return v.Int
	case resp.Null:
		return nil
	case resp.Array:
		elements := make([]any, len(v.Elems))
		for i := range v.Elems {
			elements[i] = plain(&v.Elems[i])
		}
		return elements
	default:
		return v.Str
	}
}

// IsNil reports whether the reply is the null of Redis: no such key, no such
// element, or a wait that timed out.
func (r Reply) IsNil() bool { return r.value.Kind == resp.Null }

// Int is the reply of commands that answer with an integer; 0 for others.
func (r Reply) Int() int64 { return r.value.Int }

// String is the reply of commands that answer with a string; for others it is
// a readable form.
func (r Reply) String() string { return r.value.Text() }

// Len is the number of elements of an array reply; 0 for others.
func (r Reply) Len() int { return len(r.value.Elems) }

// At is the i-th element of an array reply.
func (r Reply) At(i int) Reply { return Reply{r.value.Elems[i]} }
