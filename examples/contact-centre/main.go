// Command contact-centre is the system of the talk on which Signalbox's queue was built: agents who come and go as they
// like, each with skills and so much of each kind of task at once, and calls, chats and e-mails that are offered to the one
// who suits best. Nothing is lost, whatever dies.
//
//	go run ./examples/contact-centre                   a centre with simulated agents and customers, and its pages
//	go run ./examples/contact-centre --chaos           agents, managers and the server are killed in turn
//	… --dir centre                                     keep what is waiting for the next time
//	… --url redis://localhost:6379                     on a server of yours
//
// Files, in the order to read them: contact.go is what comes to the centre; desk.go how an agent works: the place where the
// queue is used; manager.go what one of many decides; account.go why we know that nothing is lost. Around them: customers.go
// and agents.go simulate people, board.go and pages.go show the centre, centre.go opens and closes it, processes.go, roles.go
// and chaos.go start its parts and kill them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

func main() {
	redis.SetLogger(silence{}) // what matters comes back as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "contact-centre:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	s := &settings{perMin: map[string]*float64{}}
	root := &cobra.Command{
		Use:   "contact-centre",
		Short: "A contact centre that loses nothing",
		Args:  cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := root.Flags()
	flags.StringVar(&s.url, "url", os.Getenv("SIGNALBOX_URL"), "Redis or Valkey that keeps the queue; without it a process of this program does")
	flags.StringVar(&s.name, "name", "contact-centre", "name of the queue")
	flags.StringVar(&s.dir, "dir", "", "folder for the data; without it a temporary one, which is removed at the end")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address of the pages; there are no passwords, so keep it on this machine")
	flags.IntVar(&s.agents, "agents", 12, "how many simulated agents there are")
	for _, c := range channels {
		s.perMin[c.name] = flags.Float64(c.name+"s", c.perMin, c.name+"s a minute")
	}
	flags.Float64Var(&s.speed, "speed", 10, "how fast the centre's clock goes")
	flags.Uint64Var(&s.seed, "seed", 1, "of all that is random: who comes when, and takes how long")
	flags.DurationVar(&s.offerFor, "offer-for", 15*time.Second, "how long an agent may look at an offer, by your clock")
	flags.BoolVar(&s.chaos, "chaos", false, "kill agents, the server and managers in turn")
	flags.DurationVar(&s.every, "chaos-every", 5*time.Second, "how long between two kills")
	flags.DurationVar(&s.duration, "duration", 0, "close after so long; 0 is until Ctrl-C")
	root.AddCommand(roles())
	return root
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
