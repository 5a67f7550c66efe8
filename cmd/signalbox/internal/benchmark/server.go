package benchmark

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Prefix is in every key that a run makes, with what tells the run from others behind it.
const Prefix = "signalbox-bench:"

// ErrURL is returned for a URL that no single server can be reached by.
var ErrURL = errors.New("the URL is of no single server: give redis://host:port, rediss://host:port or unix:///path")

// ServerInfo is what a server says of itself.
type ServerInfo struct {
	Name    string `json:"name"` // redis, valkey, signalbox
	Version string `json:"version"`
	Address string `json:"address"` // without user and password
}

// String is the name with its version.
func (i ServerInfo) String() string {
	if i.Name == "signalbox" {
		return "signalbox engine, as Redis " + i.Version
	}
	return i.Name + " " + i.Version
}

// Server is the one that is measured. It is for one goroutine at a time; the clients that it makes are for any.
type Server struct {
	Info    ServerInfo
	options redis.Options
	admin   *redis.Client
	run     string // tells the run from others
	id      string // the server's own for its life
	keys    []iter.Seq[string]
}

// Connect finds the server behind a URL. The caller closes it.
func Connect(ctx context.Context, rawURL string) (*Server, error) {
	scheme, _, _ := strings.Cut(rawURL, "://")
	if scheme != "redis" && scheme != "rediss" && scheme != "unix" {
		return nil, ErrURL
	}
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, ErrURL // its own words hold the password
	}
	s := &Server{options: *options, run: strings.ToLower(rand.Text()[:10])}
	s.admin = s.client(nil)
	if err := s.identify(ctx); err != nil {
		return nil, errors.Join(err, s.admin.Close())
	}
	return s, nil
}

// identify reads what the server says of itself.
func (s *Server) identify(ctx context.Context) error {
	info, err := serverInfo(ctx, s.admin)
	if err != nil {
		return err
	}
	s.id = info["run_id"]
	s.Info = ServerInfo{Name: "redis", Version: info["redis_version"], Address: s.options.Addr}
	switch name := info["server_name"]; {
	case info["valkey_version"] != "":
		s.Info.Name, s.Info.Version = "valkey", info["valkey_version"]
	case name != "":
		s.Info.Name = name
	}
	return nil
}

// serverInfo is the server's part of INFO.
func serverInfo(ctx context.Context, client *redis.Client) (map[string]string, error) {
	text, err := client.Info(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// client makes one client with one connection, as a process of its own would have, over a link; nil for the way that
// the URL says.
func (s *Server) client(over *link) *redis.Client {
	options := s.options
	if over != nil {
		options.Network, options.Addr, options.TLSConfig = over.network, over.addr, over.tls
	}
	options.PoolSize, options.MaxRetries = 1, -1
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&options)
}

// boxClient makes a client for a Box, which has a connection for messages besides.
func (s *Server) boxClient() *redis.Client {
	options := s.options
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&options)
}

// dial opens a bare connection, ready for commands.
func (s *Server) dial(ctx context.Context) (*conn, error) {
	o := s.admin.Options()
	socket, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	c := newConn(socket)
	if o.Password != "" {
		words := []string{"AUTH", o.Username, o.Password}
		if o.Username == "" {
			words = []string{"AUTH", o.Password}
		}
		err = c.do(words...)
	}
	if err == nil && o.DB != 0 {
		err = c.do("SELECT", fmt.Sprint(o.DB))
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// name is a name of this run's own.
func (s *Server) name(parts ...string) string {
	return Prefix + s.run + ":" + strings.Join(parts, ":")
}

// owns notes keys that are to be removed.
func (s *Server) owns(keys iter.Seq[string]) { s.keys = append(s.keys, keys) }

const (
	removeBatch  = 500
	removeWithin = time.Minute // millions of keys
)

// removeKeys removes what the run has made, also when its context has ended.
func (s *Server) removeKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	batch := make([]string, 0, removeBatch)
	remove := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := s.admin.Unlink(ctx, batch...).Err()
		batch = batch[:0]
		return err
	}
	for _, keys := range s.keys {
		for key := range keys {
			if batch = append(batch, key); len(batch) < removeBatch {
				continue
			}
			if err := remove(); err != nil {
				return s.left(err)
			}
		}
	}
	if err := remove(); err != nil {
		return s.left(err)
	}
	s.keys = nil
	return nil
}

func (s *Server) left(err error) error {
	return fmt.Errorf("keys with %s in their names are left on the server: %w", s.name(), err)
}

// Close ends the connection. The keys were removed by Run.
func (s *Server) Close() error { return s.admin.Close() }

// isLocal reports whether a host is this machine.
func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
