package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/signalbox-io/signalbox"
)

// callsAtOnce is how many calls of one account may be in flight.
const callsAtOnce = 5

// limited lets each account have callsAtOnce calls in flight over all servers
// that share the box. It holds a permit for as long as next runs, and cancels
// the request if the permit is lost, which is before anybody else gets it.
func limited(box *signalbox.Box, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := r.Header.Get("X-Account")
		if account == "" {
			http.Error(w, "say who you are: set the X-Account header", http.StatusUnauthorized)
			return
		}
		permits := box.Semaphore("marketplace:account:"+account, callsAtOnce)
		lease, err := permits.TryAcquire(r.Context(), signalbox.TTL(10*time.Second))
		var busy *signalbox.BusyError
		switch {
		case errors.As(err, &busy):
			tooMany(w, busy)
			return
		case err != nil:
			http.Error(w, "cannot say how many calls you have in flight: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer release(r.Context(), lease)
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// tooMany answers 429. A permit frees when one of the account's calls ends,
// which is soon; it takes as long as the earliest lease only if that caller
// has crashed.
func tooMany(w http.ResponseWriter, busy *signalbox.BusyError) {
	const usual = time.Second
	wait := min(busy.RetryAfter, usual)
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
	http.Error(w, fmt.Sprintf("you have %d calls in flight, the most there may be", busy.Held), http.StatusTooManyRequests)
}

// release gives the permit back. If that fails the lease expires by itself.
func release(ctx context.Context, lease *signalbox.Lease) {
	if err := lease.Release(ctx); err != nil {
		fmt.Println("marketplace: releasing a permit of", lease.Resource()+":", err)
	}
}
