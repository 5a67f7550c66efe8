package address

import (
	"context"
	"net"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// MovedKey is where `signalbox move` leaves the URL of the new server, in database 0 of the old one.
const MovedKey = "signalbox:moved"

// A follower is behind a client of one server. When the server answers READONLY, which a server that was moved away does, it
// looks for the URL there; then all connections are closed, and what the client opens from then on goes to the new
// server. What the old one refused was not done, and is sent again; of a pipeline its callers send it again. Without the URL
// nothing happens.
//
// The URL may leave out user and password, or certificates: then they stay what they were.
type follower struct {
	old redis.Options // as it was asked for

	mu      sync.Mutex
	current *redis.Options
	open    map[*followed]struct{}
	looking bool
}

// followed is a connection that is closed when its server has moved.
type followed struct {
	net.Conn
	to *follower
}

// Close is part of net.Conn.
func (c *followed) Close() error {
	c.to.mu.Lock()
	_, open := c.to.open[c]
	delete(c.to.open, c)
	c.to.mu.Unlock()
	if !open { // hear has closed it
		return nil
	}
	return c.Conn.Close()
}

// socket is a followed connection without TLS. A client looks at it before it uses it again, and so does not send on one that
// the server has closed meanwhile.
type socket struct {
	*followed
	raw syscall.Conn
}

// SyscallConn is part of syscall.Conn.
func (s *socket) SyscallConn() (syscall.RawConn, error) { return s.raw.SyscallConn() }

// following is a client of one server that goes where the server's data goes.
func following(options *redis.Options) *redis.Client {
	f := &follower{old: *options, current: options, open: map[*followed]struct{}{}}
	own := *options
	own.Dialer = f.dial
	own.TLSConfig = nil // dial sees to that
	own.Username, own.Password = "", ""
	own.CredentialsProvider = func() (user, password string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.current.Username, f.current.Password
	}
	client := redis.NewClient(&own)
	client.AddHook(f)
	return client
}

func (f *follower) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	to := f.current
	f.mu.Unlock()
	nc, err := redis.NewDialer(to)(ctx, to.Network, to.Addr)
	if err != nil {
		return nil, err
	}
	c := &followed{nc, f}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[c] = struct{}{}
	if raw, ok := nc.(syscall.Conn); ok {
		return &socket{c, raw}, nil
	}
	return c, nil
}

// DialHook is part of redis.Hook.
func (f *follower) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is part of redis.Hook.
func (f *follower) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if _, moved := f.hear(ctx, err); moved {
			err = next(ctx, cmd)
		}
		return err
	}
}

// ProcessPipelineHook is part of redis.Hook.
func (f *follower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if refused, _ := f.hear(ctx, cmd.Err()); refused {
				break
			}
		}
		return err
	}
}

// hear looks for the new server when the old one does not take writes any more. It reports whether it does not, and whether the
// new one was found.
func (f *follower) hear(ctx context.Context, err error) (refused, moved bool) {
	if err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
		return false, false
	}
	f.mu.Lock()
	from, busy := f.current, f.looking
	f.looking = true
	f.mu.Unlock()
	if busy { // somebody looks already
		return true, false
	}
	to := f.look(ctx, from)
	f.mu.Lock()
	f.looking = false
	if to == nil {
		f.mu.Unlock()
		return true, false
	}
	f.current = to
	open := f.open
	f.open = map[*followed]struct{}{}
	f.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // who reads or writes it sees that
	}
	return true, true
}

// look asks a server where it has moved to; nil if it does not say.
func (f *follower) look(ctx context.Context, from *redis.Options) *redis.Options {
	ask := *from
	ask.DB, ask.PoolSize = 0, 1
	client := redis.NewClient(&ask)
	text, err := client.Get(ctx, MovedKey).Result()
	if closing := client.Close(); err != nil || closing != nil {
		return nil
	}
	t, err := parseTarget(text)
	if err != nil || t.topology != "" || len(t.hosts) != 1 {
		return nil
	}
	to, err := t.options()
	if err != nil || to.Network == from.Network && to.Addr == from.Addr {
		return nil
	}
	if to.Username == "" && to.Password == "" {
		to.Username, to.Password = f.old.Username, f.old.Password
	}
	// Certificates, too, unless it names its own.
	if c := to.TLSConfig; c != nil && f.old.TLSConfig != nil && c.RootCAs == nil && c.Certificates == nil {
		config := f.old.TLSConfig.Clone()
		config.ServerName = to.TLSConfig.ServerName
		to.TLSConfig = config
	}
	to.DialTimeout, to.MaintNotificationsConfig = f.old.DialTimeout, f.old.MaintNotificationsConfig
	to.MaxRetries, to.ContextTimeoutEnabled = f.old.MaxRetries, f.old.ContextTimeoutEnabled
	return to
}
