package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/address"
)

// The Sentinels of a URL are asked one by one: a failover needs most of them, of one opinion.

// sentinelView is what one Sentinel says.
type sentinelView struct {
	addr     string
	err      error  // why it says nothing
	primary  string // its address
	down     bool   // it does not hear of the primary
	all      int    // Sentinels that it knows, with itself
	quorum   int
	replicas int
}

// readSentinels asks those that the URL names.
func (r *reading) readSentinels(ctx context.Context, url string) error {
	if !strings.Contains(url, "+sentinel:") {
		return nil
	}
	all, master, err := address.Sentinels(url)
	if err != nil {
		return err
	}
	for _, options := range all {
		client := redis.NewSentinelClient(options)
		said, err := client.Master(ctx, master).Result()
		r.sentinels = append(r.sentinels, viewOf(options.Addr, said, err))
		if err := client.Close(); err != nil {
			return err
		}
	}
	return nil
}

func viewOf(addr string, said map[string]string, err error) sentinelView {
	v := sentinelView{addr: addr, err: err, primary: net.JoinHostPort(said["ip"], said["port"]), down: strings.Contains(said["flags"], "_down")}
	for name, to := range map[string]*int{"num-other-sentinels": &v.all, "quorum": &v.quorum, "num-slaves": &v.replicas} {
		if v.err != nil {
			break
		}
		if *to, err = strconv.Atoi(said[name]); err != nil {
			v.err = errors.New("it does not tell " + name)
		}
	}
	v.all++
	return v
}

func lookAtSentinels(r *reading) finding {
	var heard []sentinelView
	var silent, primaries []string
	all := 0
	for _, v := range r.sentinels {
		if v.err != nil {
			silent = append(silent, v.addr+" ("+v.err.Error()+")")
			continue
		}
		heard = append(heard, v)
		all = max(all, v.all)
		if !slices.Contains(primaries, v.primary) {
			primaries = append(primaries, v.primary)
		}
	}
	least := all/2 + 1
	switch {
	case r.sentinels == nil && r.info == nil:
		return hidden("INFO is refused")
	case r.sentinels == nil:
		return ok("the URL names none")
	case len(heard) == 0:
		return hidden("none of them answers: %s", strings.Join(silent, ", "))
	case len(primaries) > 1:
		return finding{
			Level: levelDanger, What: "they name different primaries, " + strings.Join(primaries, " and ") + ": both may grant",
			Do: "a failover takes seconds; if this stays, SENTINEL MASTERS on each shows who is cut off, or was told another primary",
		}
	case slices.ContainsFunc(heard, func(v sentinelView) bool { return v.down }):
		return finding{Level: levelDanger, What: "they do not hear of the primary " + primaries[0], Do: "see the log of the Sentinels, and whether they reach it"}
	case heard[0].quorum > all:
		return finding{
			Level: levelDanger, What: fmt.Sprintf("quorum is %d, and there are %d of them: there will never be a failover", heard[0].quorum, all),
			Do: fmt.Sprintf("SENTINEL SET NAME quorum %d on each", least),
		}
	case len(silent) > 0 && len(r.sentinels)-len(silent) < least:
		return finding{
			Level: levelDanger, What: fmt.Sprintf("%d of %d answer, and a failover needs %d: %s", len(heard), all, least, strings.Join(silent, ", ")),
			Do: "start the others",
		}
	}
	return lookAtSpareSentinels(heard, silent, all)
}

// lookAtSpareSentinels looks at what there is to lose.
func lookAtSpareSentinels(heard []sentinelView, silent []string, all int) finding {
	const few = 3
	first := heard[0]
	switch {
	case len(silent) > 0:
		return finding{Level: levelWarning, What: "some do not answer: " + strings.Join(silent, ", "), Do: "start them, or take them out of the URL"}
	case all < few:
		return finding{Level: levelWarning, What: fmt.Sprintf("there are %d: without one of them there is no failover", all), Do: "run three, on three machines"}
	case slices.ContainsFunc(heard, func(v sentinelView) bool { return v.quorum != first.quorum || v.all != first.all }):
		return finding{
			Level: levelWarning, What: "they do not agree on the quorum, or on how many they are",
			Do: "SENTINEL SET NAME quorum on each; SENTINEL RESET forgets Sentinels that are gone",
		}
	case first.replicas == 0:
		return finding{Level: levelWarning, What: "they know no replica of " + first.primary + ": there is nothing to fail over to", Do: "signalbox serve --replicaof on another machine"}
	}
	return ok("%d agree on %s, quorum %d, %s", all, first.primary, first.quorum, count(first.replicas, "replica"))
}
