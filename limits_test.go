package signalbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/difftest"
)

// The server counts a rate in us, exactly up to 2^53: whatever is allowed must stay below, or a burst that was used up
// would be there again.
func TestTheLongestRatesAreKept(t *testing.T) {
	t.Parallel()
	box := openBox(t, difftest.Redis(t).Addr)
	ctx := t.Context()
	for _, rate := range []struct {
		every time.Duration
		burst int
	}{
		{signalbox.MaxTTL, signalbox.MaxBurst},
		{signalbox.MaxTTL, 101},
		{signalbox.MaxTTL, 100},
		{time.Hour, signalbox.MaxBurst},
		{time.Microsecond, signalbox.MaxBurst},
	} {
		limiter := box.Limiter(fmt.Sprint(rate), signalbox.Every(rate.every), signalbox.Burst(rate.burst))
		err := limiter.Allow(ctx, rate.burst)
		if errors.Is(err, signalbox.ErrInvalid) {
			_, err = box.Mutex("m").Acquire(ctx, signalbox.Pace(signalbox.Every(rate.every), rate.burst))
			if !errors.Is(err, signalbox.ErrInvalid) {
				t.Errorf("a pace of %d each %v: %v", rate.burst, rate.every, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d each %v: %v", rate.burst, rate.every, err)
		}
		var late *signalbox.RateError
		err = limiter.Allow(ctx, rate.burst)
		if whole := time.Duration(rate.burst) * rate.every; !errors.As(err, &late) || late.RetryAfter > whole ||
			late.RetryAfter < whole-patience {
			t.Errorf("%d each %v, twice: %v", rate.burst, rate.every, err)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		if err := limiter.Wait(ctx, signalbox.MaxBurst); err == nil && rate.every > time.Second {
			t.Errorf("%d units after a burst of %d each %v", signalbox.MaxBurst, rate.burst, rate.every)
		}
		cancel()
	}
}

// patience is how long a test may take between two looks at a clock.
const patience = 20 * time.Second // less than the default ttl
