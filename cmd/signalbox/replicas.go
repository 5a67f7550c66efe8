package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// replicationJSON is a server in the output of `replicas --json`.
type replicationJSON struct {
	Server   string        `json:"server"`
	Role     string        `json:"role"`
	ID       string        `json:"replication_id"`
	Offset   int64         `json:"offset"`
	Primary  *primaryJSON  `json:"primary,omitempty"` // of a replica
	Replicas []replicaJSON `json:"replicas"`
}

type primaryJSON struct {
	Address      string `json:"address"`
	Link         string `json:"link"`
	Syncing      bool   `json:"syncing"`
	HeardSeconds int64  `json:"heard_seconds"` // ago; -1: never, or not while the link is down
	DownSeconds  int64  `json:"down_seconds"`  // -1: never up
	Error        string `json:"error,omitempty"`
}

type replicaJSON struct {
	Address    string `json:"address"`
	State      string `json:"state"`
	Offset     int64  `json:"offset"`
	LagBytes   int64  `json:"lag_bytes"`
	LagSeconds int64  `json:"lag_seconds"`
}

func (a *app) replicasCommand() *cobra.Command {
	return &cobra.Command{
		Use: "replicas", Short: "Show who follows a server, and how far behind", Args: exactly(),
		Long: `Show a server's role, replication id and offset, and the replicas that follow it: how
many bytes of its changes each has not acknowledged, and how long ago it was last heard.
Of a replica, whom it follows and whether the link is up; it may have replicas itself.
Behind Sentinels it is the primary, of a Cluster every primary.

JSON: a list of {server, role, replication_id, offset, primary: {address, link, syncing,
heard_seconds, down_seconds, error}, replicas: [{address, state, offset, lag_bytes,
lag_seconds}]}; role is primary or replica, link is up or down, -1 seconds are unknown.
The lag counts for a replica whose state is online.`,
		Example: `  signalbox replicas --url redis://10.0.0.5:6379`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var found []replicationJSON
			err := a.eachServer(cmd.Context(), func(ctx context.Context, server *redis.Client, _ checked) error {
				info, err := askInfo(ctx, server, "replication")
				if err != nil {
					return fmt.Errorf("ask %s for its replicas: %w", addressOf(ctx, server), err)
				}
				found = append(found, replicationOf(addressOf(ctx, server), info))
				return nil
			})
			if err != nil {
				return err
			}
			return a.printReplicas(found)
		},
	}
}

// replicationOf reads INFO replication.
func replicationOf(server string, info told) replicationJSON {
	found := replicationJSON{
		Server: server, Role: "primary", ID: info["master_replid"], Offset: info.number("master_repl_offset"),
		Replicas: []replicaJSON{},
	}
	if info["role"] == "slave" {
		found.Role = "replica"
		found.Offset = info.number("slave_repl_offset")
		found.Primary = &primaryJSON{
			Address: net.JoinHostPort(info["master_host"], info["master_port"]), Link: info["master_link_status"],
			Syncing: info["master_sync_in_progress"] == "1", HeardSeconds: info.number("master_last_io_seconds_ago"),
			DownSeconds: info.number("master_link_down_since_seconds"), Error: info["master_link_error"],
		}
	}
	for i := 0; ; i++ {
		line, ok := info["slave"+strconv.Itoa(i)]
		if !ok {
			return found
		}
		r := make(told)
		for field := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(field, "=")
			r[name] = value
		}
		found.Replicas = append(found.Replicas, replicaJSON{
			Address: net.JoinHostPort(r["ip"], r["port"]), State: r["state"], Offset: r.number("offset"),
			LagBytes: max(0, found.Offset-r.number("offset")), LagSeconds: r.number("lag"),
		})
	}
}

// number is the number in a field, 0 if there is none.
func (t told) number(name string) int64 {
	n, _ := strconv.ParseInt(t[name], 10, 64)
	return n
}

func (a *app) printReplicas(found []replicationJSON) error {
	if a.json {
		return a.printJSON(found)
	}
	for i, server := range found {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := a.printReplication(server); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printReplication(server replicationJSON) error {
	who := "a primary"
	if p := server.Primary; p != nil {
		who = "a replica of " + printable(p.Address) + ": " + p.String()
	}
	fmt.Fprintf(a.stdout, "%s is %s\n  replication id %s, offset %d\n", printable(server.Server), who, server.ID, server.Offset)
	if len(server.Replicas) == 0 {
		_, err := fmt.Fprintln(a.stdout, "  no replica follows it")
		return err
	}
	t := newTable("REPLICA", "STATE", ">OFFSET", ">LAG BYTES", ">HEARD")
	for _, r := range server.Replicas {
		offset, bytes, heard := "", "", ""
		if r.State == "online" {
			offset, bytes, heard = strconv.FormatInt(r.Offset, 10), strconv.FormatInt(r.LagBytes, 10), seconds(r.LagSeconds)+" ago"
		}
		t.add(printable(r.Address), printable(r.State), offset, bytes, heard)
	}
	fmt.Fprintln(a.stdout)
	return t.print(a.stdout)
}

// String says how the link is.
func (p *primaryJSON) String() string {
	switch {
	case p.Link == "up":
		return "link up, heard " + seconds(p.HeardSeconds) + " ago"
	case p.Syncing:
		return "link down, taking all data"
	case p.Error != "":
		return "link down: " + printable(p.Error)
	case p.DownSeconds < 0:
		return "link not up yet"
	}
	return "link down since " + seconds(p.DownSeconds)
}

// seconds is a span of whole seconds.
func seconds(n int64) string {
	if n == 0 {
		return "0s" // span would say milliseconds, which nobody has measured
	}
	return span(time.Duration(n) * time.Second)
}
