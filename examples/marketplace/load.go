package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// load is greedy players: each account has more callers than it may have calls
// in flight, and none of them heeds Retry-After for long.
type load struct {
	accounts, callers int
	duration          time.Duration
}

func defaultLoad() *load { return &load{accounts: 4, callers: 12, duration: 3 * time.Second} }

func (l *load) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&l.accounts, "accounts", l.accounts, "how many accounts there are")
	cmd.Flags().IntVar(&l.callers, "callers", l.callers, "how many callers each account has")
	cmd.Flags().DurationVar(&l.duration, "duration", l.duration, "for how long")
}

// result is what one account saw.
type result struct {
	account            string
	ok, refused, other atomic.Int64
	withoutRetryAfter  atomic.Int64
	problem            atomic.Pointer[string] // the last answer that should not have been
}

// run puts the load on the server and returns what each account saw.
func (l *load) run(ctx context.Context, server string) []*result {
	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.accounts * l.callers}}
	defer client.CloseIdleConnections()
	results := make([]*result, l.accounts)
	var callers sync.WaitGroup
	for i := range results {
		results[i] = &result{account: fmt.Sprintf("player-%d", i+1)}
		for range l.callers {
			callers.Go(func() { results[i].call(ctx, client, server) })
		}
	}
	callers.Wait()
	return results
}

// call calls until ctx ends.
func (r *result) call(ctx context.Context, client *http.Client, server string) {
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/offers", strings.NewReader(`{"item": "ring", "price": 7}`))
		if err != nil {
			r.unexpected(ctx, err.Error())
			return
		}
		request.Header.Set("X-Account", r.account)
		response, err := client.Do(request)
		if err != nil {
			r.unexpected(ctx, err.Error())
			continue
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			r.unexpected(ctx, err.Error())
			continue
		}
		r.count(ctx, response)
	}
}

func (r *result) count(ctx context.Context, response *http.Response) {
	switch response.StatusCode {
	case http.StatusCreated:
		r.ok.Add(1)
	case http.StatusTooManyRequests:
		r.refused.Add(1)
		if response.Header.Get("Retry-After") == "" {
			r.withoutRetryAfter.Add(1)
		}
		select { // greedy: far less than was asked for
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	default:
		r.unexpected(ctx, response.Status)
	}
}

// unexpected counts what is neither served nor refused; the end of the load is
// no problem of the server.
func (r *result) unexpected(ctx context.Context, problem string) {
	if ctx.Err() == nil {
		r.other.Add(1)
		r.problem.Store(&problem)
	}
}

// report prints a table, and returns an error if the server did not hold.
func (l *load) report(w io.Writer, results []*result) error {
	// No account can have been served more than this, with five at once.
	most := int64(float64(callsAtOnce) * (l.duration + tradeTakes).Seconds() / tradeTakes.Seconds())
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "account\tserved\trefused (429)\tother\tof the most possible\t")
	var errs []error
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%.0f %%\t\n", r.account, r.ok.Load(), r.refused.Load(), r.other.Load(),
			100*float64(r.ok.Load())/float64(most))
		switch {
		case r.ok.Load() > most:
			errs = append(errs, fmt.Errorf("%s was served %d calls, where %d at once allow %d", r.account, r.ok.Load(), callsAtOnce, most))
		case r.withoutRetryAfter.Load() > 0:
			errs = append(errs, fmt.Errorf("%s got %d refusals without Retry-After", r.account, r.withoutRetryAfter.Load()))
		case r.other.Load() > 0:
			errs = append(errs, fmt.Errorf("%s got %d answers that are neither 201 nor 429, the last: %s", r.account, r.other.Load(), *r.problem.Load()))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nThe limit of %d calls at once per account held.\n", callsAtOnce)
	return err
}
