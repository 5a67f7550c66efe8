package topology

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// Main runs the tests of a package that works on such servers, and then looks for goroutines that are left. The client's
// own log has a line for every connection of a Sentinel group and for each that breaks, hundreds of them, in which a
// failure would go under; so it is kept out of the output.
func Main(m *testing.M, options ...goleak.Option) {
	redis.SetLogger(silence{})
	goleak.VerifyTestMain(m, options...)
}

type silence struct{}

// Printf is what go-redis writes its log with.
func (silence) Printf(context.Context, string, ...any) {}
