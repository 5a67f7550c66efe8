// Crawler fetches pages politely: at most one request at a time to a host, and so long between two, over all workers and
// all machines that use the same server.
//
// Both rules are one acquisition: a semaphore per host says how many at once, its Pace says how fast. A worker that dies
// gives its permit back with its lease.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/signalbox-io/signalbox"
)

// Crawler fetches with a fixed politeness. Its fields do not change while Crawl runs.
type Crawler struct {
	Box     *signalbox.Box
	Client  *http.Client
	Workers int            // pages under way at once, over all hosts
	AtOnce  int            // requests to one host at once
	Rate    signalbox.Rate // of requests to one host
}

// Crawl fetches every page once and returns the errors of those that failed.
func (c *Crawler) Crawl(ctx context.Context, pages []string) error {
	work := make(chan string)
	var workers sync.WaitGroup
	errs := make([]error, c.Workers)
	for i := range c.Workers {
		workers.Go(func() {
			for page := range work {
				if err := c.fetch(ctx, page); err != nil {
					errs[i] = errors.Join(errs[i], fmt.Errorf("%s: %w", page, err))
				}
			}
		})
	}
	for _, page := range pages {
		work <- page
	}
	close(work)
	workers.Wait()
	return errors.Join(errs...)
}

func (c *Crawler) fetch(ctx context.Context, page string) error {
	target, err := url.Parse(page)
	if err != nil {
		return err
	}
	host := c.Box.Semaphore("host:"+target.Host, c.AtOnce)
	return host.Do(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			return err
		}
		response, err := c.Client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return errors.Join(err, response.Body.Close())
	}, signalbox.Pace(c.Rate, 1))
}
