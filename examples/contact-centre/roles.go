package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/engine"
	"github.com/signalbox-io/signalbox/queue"
)

// roles are what the processes do that the centre starts: each can be killed, and the centre goes on.
func roles() *cobra.Command {
	root := &cobra.Command{Use: "role", Hidden: true, Short: "A part of the centre, with a process of its own"}
	root.AddCommand(engineRole(), managerRole(), agentsRole())
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		signal.Ignore(os.Interrupt) // the terminal's goes to all processes: the parent ends this one in its turn
		cmd.SetContext(child(context.WithoutCancel(cmd.Context()), os.Stdin))
	}
	return root
}

// engineRole serves the embedded engine. With appendfsync always, what it has answered is on the disk.
func engineRole() *cobra.Command {
	var dir, address string
	cmd := &cobra.Command{Use: "engine", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		config, err := engine.ReadConfig("", "appendonly=yes", "appendfsync=always")
		if err != nil {
			return err
		}
		e, err := engine.Open(engine.Options{Dir: dir, Config: config})
		if err != nil {
			return err
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return errors.Join(err, e.Close())
		}
		served := make(chan error, 1)
		go func() { served <- e.Serve(listener) }()
		<-cmd.Context().Done()
		return errors.Join(e.Close(), <-served)
	}}
	cmd.Flags().StringVar(&dir, "dir", "", "")
	cmd.Flags().StringVar(&address, "listen", "", "")
	return cmd
}

func managerRole() *cobra.Command {
	var where place
	cmd := &cobra.Command{Use: "manager", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		box, q, err := where.open(ctx)
		if err != nil {
			return unlessOver(ctx, err)
		}
		manage(ctx, box, q, pace(where.speed))
		return errors.Join(q.Close(), box.Close())
	}}
	where.flags(cmd)
	return cmd
}

func agentsRole() *cobra.Command {
	var where place
	var a agents
	cmd := &cobra.Command{Use: "agents", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		box, q, err := where.open(cmd.Context())
		if err != nil {
			return unlessOver(cmd.Context(), err)
		}
		a.q, a.pace = q, pace(where.speed)
		return errors.Join(a.work(cmd.Context()), q.Close(), box.Close())
	}}
	where.flags(cmd)
	cmd.Flags().Uint64Var(&a.seed, "seed", 1, "")
	cmd.Flags().IntVar(&a.first, "first", 0, "")
	cmd.Flags().IntVar(&a.count, "count", 1, "")
	cmd.Flags().DurationVar(&a.offerFor, "offer-for", 15*time.Second, "")
	return cmd
}

// unlessOver is an error, unless the process was told to end: then it is none.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// place is where the centre is: a queue on a server, at a pace.
type place struct {
	url, name string
	speed     float64
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.url, "url", "", "")
	cmd.Flags().StringVar(&p.name, "name", "", "")
	cmd.Flags().Float64Var(&p.speed, "speed", 1, "")
}

// open connects, and tries again while the server cannot be reached: it may just have been killed.
func (p *place) open(ctx context.Context) (*signalbox.Box, *queue.Queue, error) {
	for {
		box, q, err := p.try(ctx)
		if !errors.Is(err, signalbox.ErrUnavailable) && !errors.Is(err, queue.ErrUnavailable) {
			return box, q, err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil, nil, err
		}
	}
}

// lease is for how long the server believes in an agent that it does not hear of: then his tasks are others'.
const lease = 2 * time.Second

func (p *place) try(ctx context.Context) (*signalbox.Box, *queue.Queue, error) {
	box, err := signalbox.Open(ctx, p.url)
	if err != nil {
		return nil, nil, err
	}
	q, err := queue.Open(ctx, p.url, p.name, queue.Lease(lease))
	if err != nil {
		return nil, nil, errors.Join(err, box.Close())
	}
	return box, q, nil
}

func (p *place) args() []string {
	return []string{"--url", p.url, "--name", p.name, "--speed", strconv.FormatFloat(p.speed, 'g', -1, 64)}
}
