package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"github.com/spf13/cobra"
)

// Profiles of a running engine: `serve --debug-listen 127.0.0.1:PORT` answers what `go tool pprof` asks. A profile tells
// names of keys in its command line and costs time to make, so it is off by default, on loopback addresses only, and
// not for pages that a browser on this machine was led to by another name.

const (
	mutexSample  = 100                   // one of so many waits for a lock is noted
	blockSample  = 10 * time.Microsecond // of time spent waiting, one note
	headPatience = 5 * time.Second
)

// debugDoor serves profiles until it is closed.
type debugDoor struct {
	listener net.Listener
	server   *http.Server
	ended    chan error
}

// addDebugListen gives a command the flag, and serves profiles while it runs.
func (a *app) addDebugListen(cmd *cobra.Command) {
	var address string
	cmd.Flags().StringVar(&address, "debug-listen", "",
		"loopback TCP address on which to serve profiles to go tool pprof; they slow the engine a little")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if address == "" {
			return run(cmd, args)
		}
		d, err := openDebugDoor(address)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "signalbox: profiles on http://%s/debug/pprof/ for everybody on this machine\n", d.listener.Addr())
		return errors.Join(run(cmd, args), d.close())
	}
}

func openDebugDoor(address string) (*debugDoor, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err == nil && !resolved.IP.IsLoopback() {
		return nil, usage("--debug-listen %s: profiles are for this machine only; give a loopback address such as 127.0.0.1:6060", address)
	}
	// What does not resolve is told as for the other listeners. A name may mean another address the next time.
	if err == nil {
		address = resolved.String()
	}
	listener, err := listenTCP("--debug-listen", address)
	if err != nil {
		return nil, err
	}
	runtime.SetMutexProfileFraction(mutexSample)
	runtime.SetBlockProfileRate(int(blockSample.Nanoseconds()))
	d := &debugDoor{
		listener: listener, ended: make(chan error, 1),
		server: &http.Server{Handler: forThisMachine(profiles()), ReadHeaderTimeout: headPatience},
	}
	go func() { d.ended <- d.server.Serve(listener) }()
	return d, nil
}

func (d *debugDoor) close() error {
	err := d.server.Close()
	if served := <-d.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	runtime.SetMutexProfileFraction(0)
	runtime.SetBlockProfileRate(0)
	return err
}

// profiles are those of the runtime: its index serves heap, allocs, goroutine, block, mutex and threadcreate.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	return mux
}

// forThisMachine refuses requests that name another host: a page from elsewhere whose name leads here.
func forThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "profiles are for this machine only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
