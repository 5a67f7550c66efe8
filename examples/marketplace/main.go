// Command marketplace is the HTTP API of a game's marketplace. Players trade
// through programs of their own, some of them greedy, so each account may have
// five calls in flight at once, over all servers of the company together.
// A sixth call is answered at once with 429 Too Many Requests and Retry-After.
//
//	go run ./examples/marketplace                      a server, load on it, and what came of it
//	go run ./examples/marketplace serve                the server alone, on 127.0.0.1:8080
//	go run ./examples/marketplace load --to URL        the load alone
//	… serve --metrics --log                            what happens to permits, on /metrics and as log records
//	… --url redis://localhost:6379                     permits on Redis: start as many servers as you like
//
// Files: limit.go is what this example is about; market.go the trade itself;
// load.go the greedy players; watch.go metrics and logs.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "marketplace:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var url, listen string
	var watch watching
	load := defaultLoad()
	root := &cobra.Command{
		Use:   "marketplace",
		Short: "A marketplace API that allows each account five calls at once",
		Args:  cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd, url, &watch, load) },
	}
	root.PersistentFlags().StringVar(&url, "url", os.Getenv("SIGNALBOX_URL"), "Redis that keeps the permits; without it they are kept in this process")
	watch.flags(root)
	load.flags(root)
	serve := &cobra.Command{
		Use: "serve", Short: "Serve the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "marketplace on http://%s, five calls at once per account\n", listener.Addr())
			return serve(cmd.Context(), url, &watch, listener)
		},
	}
	serve.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address to listen on")
	var to string
	only := &cobra.Command{
		Use: "load", Short: "Put load on a server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return load.report(cmd.OutOrStdout(), load.run(cmd.Context(), to))
		},
	}
	only.Flags().StringVar(&to, "to", "http://127.0.0.1:8080", "the server")
	load.flags(only)
	root.AddCommand(serve, only)
	return root
}

// openBox connects to the Redis at url, or starts an engine in this process.
func openBox(
	ctx context.Context, url string, options ...signalbox.Option,
) (box *signalbox.Box, closeBox func() error, err error) {
	if url != "" {
		box, err = signalbox.Open(ctx, url, options...)
		if err != nil {
			return nil, nil, err
		}
		return box, box.Close, nil
	}
	local, err := embedded.Open("", options...)
	if err != nil {
		return nil, nil, err
	}
	return local.Box, local.Close, nil
}

// serve answers calls from listener until ctx ends.
func serve(ctx context.Context, url string, watch *watching, listener net.Listener) (err error) {
	options, handler, err := watch.start()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	box, closeBox, err := openBox(ctx, url, options...)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, closeBox()) }()
	server := &http.Server{Handler: handler(newAPI(box)), ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// demo serves on a free port, puts load on it, and reports.
func demo(cmd *cobra.Command, url string, watch *watching, load *load) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, url, watch, listener) }()
	where := "in this process"
	if url != "" {
		where = "on Redis"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "marketplace on http://%s, permits %s; %d accounts × %d greedy callers for %v …\n\n",
		listener.Addr(), where, load.accounts, load.callers, load.duration)
	result := load.run(ctx, "http://"+listener.Addr().String())
	stop()
	return errors.Join(load.report(cmd.OutOrStdout(), result), <-served)
}
