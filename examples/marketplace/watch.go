package main

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/logging"
	"github.com/signalbox-io/signalbox/metrics"
)

// watching is what is to be seen of the permits.
type watching struct {
	metrics, log bool
}

func (w *watching) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().BoolVar(&w.metrics, "metrics", false, "serve Prometheus metrics of the permits at /metrics")
	cmd.PersistentFlags().BoolVar(&w.log, "log", false, "log to standard error what happens to permits, refusals included")
}

// start returns the options for the box, and what makes the server's handler of the API: /metrics is not behind the limit.
func (w *watching) start() (options []signalbox.Option, handler func(http.Handler) http.Handler, err error) {
	handler = func(api http.Handler) http.Handler { return api }
	if w.log {
		logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
		options = append(options, logging.Observer(logger, logging.Level(signalbox.Refused, slog.LevelInfo)))
	}
	if !w.metrics {
		return options, handler, nil
	}
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry)
	if err != nil {
		return nil, nil, err
	}
	handler = func(api http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		mux.Handle("/", api)
		return mux
	}
	return append(options, measured), handler, nil
}
