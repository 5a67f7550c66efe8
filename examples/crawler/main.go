package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run crawls ten pages of a server of its own with eight workers: they come one at a time, five a second.
func run() error {
	begun := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("%5.2fs %s\n", time.Since(begun).Seconds(), r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	box, err := embedded.Open("")
	if err != nil {
		return err
	}
	var pages []string
	for i := range 10 {
		pages = append(pages, fmt.Sprintf("%s/page/%d", server.URL, i))
	}
	crawler := Crawler{Box: box.Box, Client: server.Client(), Workers: 8, AtOnce: 1, Rate: signalbox.PerSecond(5)}
	err = crawler.Crawl(context.Background(), pages)
	if closed := box.Close(); err == nil {
		err = closed
	}
	return err
}
