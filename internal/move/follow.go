package move

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// errCannotFollow is for a target that does not become a replica of the source, and has what it had.
var errCannotFollow = errors.New("the target cannot follow the source")

const (
	// patience is how long nothing may be seen of a replica that is to come.
	patience = 10 * time.Second
	// mostCopies is how often it may begin to copy.
	mostCopies = 3
)

// following has the target be a replica of the source.
type following struct {
	*mover
	began  bool              // REPLICAOF was said, by us
	parole map[string]string // parameters of the target as they were
}

// cannotFollow says why it is of no use to try; "" if it is.
func (m *mover) cannotFollow(ctx context.Context) string {
	from, to := m.From.Client.Options(), m.To.Client.Options()
	host, _, err := net.SplitHostPort(from.Addr)
	switch {
	case m.followed:
		return ""
	case m.Match != "":
		return "--match"
	case from.Network != "tcp" || err != nil:
		return "the URL of the source is none by which it reaches it"
	case from.TLSConfig != nil && !m.followsByTLS(ctx):
		return "the source speaks TLS, and tls-replication is not set there"
	case from.TLSConfig == nil && m.followsByTLS(ctx):
		return "its tls-replication is set, and the URL of the source is not rediss://"
	case isLoopback(host) && !m.To.Local && to.Network != "unix" && !isLoopbackAddr(to.Addr):
		return "the source's URL is good on this machine only"
	}
	return ""
}

// followsByTLS reports whether the target would speak TLS with a source, as far as it tells.
func (m *mover) followsByTLS(ctx context.Context) bool {
	told, err := m.To.Client.ConfigGet(ctx, "tls-replication").Result()
	return err == nil && told["tls-replication"] == "yes"
}

func isLoopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (f *following) start(ctx context.Context) error {
	if !f.followed {
		if err := f.follow(ctx); err != nil {
			return err
		}
	}
	target, source := f.To.Client, f.From.Client
	before := int64(-1) // full synchronisations of the source
	for seen := time.Now(); ; {
		to, err := ask(ctx, target, "replication")
		if err != nil {
			return fmt.Errorf("watch the target %s follow: %w", f.To.Place, err)
		}
		from, err := ask(ctx, source, "replication", "stats")
		if err != nil {
			return fmt.Errorf("watch the source %s: %w", f.From.Place, err)
		}
		if before < 0 {
			before = from.number("sync_full")
		}
		switch {
		case to["master_link_status"] == "up" && to["master_replid"] != from["master_replid"]:
			return fmt.Errorf("move: %w: the target follows another server, which it finds at %s", ErrDiverged, f.From.Client.Options().Addr)
		case to["master_link_status"] == "up":
			return nil
		case from.number("sync_full") > before+mostCopies:
			return fmt.Errorf("%w: it begins to copy again and again, as when its disk is full, or client-output-buffer-limit replica of the source "+
				"is too little; its log says why", errCannotFollow)
		case to["master_sync_in_progress"] == "1" || isPreparing(from):
			seen = time.Now()
		case time.Since(seen) > patience:
			return fmt.Errorf("%w: %s", errCannotFollow, linkError(to))
		}
		read := to.number("master_sync_read_bytes")
		f.tell(Event{Step: StepCopy, By: ByReplicaOf, Bytes: read, Of: max(0, to.number("master_sync_total_bytes"))})
		if err := pass(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// isPreparing reports whether a server makes a snapshot for a replica, or sends one.
func isPreparing(from facts) bool {
	for name, value := range from {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=") && !strings.Contains(value, "state=online") {
			return true
		}
	}
	return false
}

func linkError(to facts) string {
	if why := to["master_link_error"]; why != "" {
		return why
	}
	return "the link stays down; its log says why"
}

// follow makes the target a replica, with the source's password.
func (f *following) follow(ctx context.Context) error {
	options := f.From.Client.Options()
	host, port, err := net.SplitHostPort(options.Addr)
	if err != nil {
		return fmt.Errorf("%w: %w", errCannotFollow, err)
	}
	f.parole = map[string]string{}
	for _, p := range [][2]string{{"masteruser", options.Username}, {"masterauth", options.Password}} {
		old, err := f.To.Client.ConfigGet(ctx, p[0]).Result()
		if err == nil && old[p[0]] == p[1] {
			continue
		}
		if err == nil {
			err = f.To.Client.ConfigSet(ctx, p[0], p[1]).Err()
		}
		if err != nil && options.Password != "" {
			return fmt.Errorf("%w: it cannot be given the source's password: %w", errCannotFollow, err)
		}
		if err == nil {
			f.parole[p[0]] = old[p[0]]
		}
	}
	if err := f.To.Client.ReplicaOf(ctx, host, port).Err(); err != nil {
		return fmt.Errorf("%w: %w", errCannotFollow, err)
	}
	f.began = true
	return nil
}

func (f *following) lag(ctx context.Context, offset int64) (int64, error) {
	to, err := ask(ctx, f.To.Client, "replication")
	switch {
	case err != nil:
		return 0, fmt.Errorf("ask the target %s for its offset: %w", f.To.Place, err)
	case to["role"] != "slave":
		return 0, fmt.Errorf("move: %w: somebody made the target a primary", ErrDiverged)
	case to["master_link_status"] != "up":
		return max(1, offset-to.number("slave_repl_offset")), nil
	}
	return max(0, offset-to.number("slave_repl_offset")), nil
}

func (f *following) finish(ctx context.Context, offset int64) (int, error) {
	for {
		switch lag, err := f.lag(ctx, offset); {
		case err != nil:
			return 0, err
		case lag == 0:
			return 0, f.leave(ctx)
		}
		if err := pass(ctx, 500*time.Microsecond); err != nil {
			return 0, err
		}
	}
}

// leave makes the target a primary.
func (f *following) leave(ctx context.Context) error {
	if err := f.To.Client.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("make the target a primary: %w", err)
	}
	f.began = false
	return nil
}

func (f *following) stop() error {
	ctx, done := context.WithTimeout(context.Background(), cleanUp)
	defer done()
	var err error
	if f.began {
		err = f.leave(ctx)
	}
	for name, value := range f.parole {
		err = errors.Join(err, f.To.Client.ConfigSet(ctx, name, value).Err())
	}
	f.parole = nil
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}
