package topology

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/leak"
)

// Main runs the tests of a package that works on such servers, and then looks for goroutines that are left. The client's
// own log has a line for every connection of a Sentinel group and for each that breaks, hundreds of them, in which a
// failure would go under; so it is kept out of the output.
func Main(m *testing.M, except ...string) {
	redis.SetLogger(silence{})
	leak.Main(m, except...)
}

type silence struct{}

// Printf is what go-redis writes its log with.
func (silence) Printf(context.Context, string, ...any) {}
