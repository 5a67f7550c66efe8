package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

// effort is how long each part measures.
type effort struct {
	Rounds         int
	Block          time.Duration // of one subject, uncontended
	Blocks         int
	Window         time.Duration // of one contended case
	Wait           time.Duration
	LoadRounds     int
	LoadSeconds    float64 // of one run of redis-benchmark on Redis, roughly
	profiles, only string
	cores          cores
}

var (
	fullEffort = effort{
		Rounds: 5, Block: 150 * time.Millisecond, Blocks: 11, Window: 2 * time.Second, Wait: 5 * time.Second,
		LoadRounds: 5, LoadSeconds: 0.8,
	}
	quickEffort = effort{
		Rounds: 1, Block: 60 * time.Millisecond, Blocks: 5, Window: 700 * time.Millisecond, Wait: 4 * time.Second,
		LoadRounds: 1, LoadSeconds: 0.4,
	}
)

// roles are what a child process can be. A role reads its config, prints one line when it is ready, and its result as
// another; it ends when its standard input does.
var roles = map[string]func(ctx context.Context, config []byte) error{
	"serve":       serveRole,
	"uncontended": uncontendedRole,
	"contended":   contendedRole,
	"waiting":     waitingRole,
	"cycles":      cyclesRole,
	"keep":        keepRole,
	"drive":       driveRole,
	"measured":    measuredRole,
	"idle":        idleRole,
	"inside":      insideRole,
	"fill":        fillRole,
	"pace":        paceRole,
	"many":        manyRole,
	"pipelined":   pipelinedRole,
	"holding":     holdingRole,
	"queue":       queueRole,
	"move":        moveRole,
}

// parts are the subcommands, each with a page of its own.
var parts = map[string]func(ctx context.Context, args []string) error{
	"locks": runLocks, "durability": runDurability, "engine": runEngine, "scale": runScale, "queue": runQueue,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx := context.Background()
	if len(os.Args) == 4 && os.Args[1] == "role" {
		return playRole(ctx, os.Args[2], []byte(os.Args[3]))
	}
	if len(os.Args) > 1 && parts[os.Args[1]] != nil {
		return parts[os.Args[1]](ctx, os.Args[2:])
	}
	quick := flag.Bool("quick", false, "one short round, less than a minute: for a first look")
	only := flag.String("only", "", "measure one part: `locks` or engine")
	asJSON := flag.Bool("json", false, "print the report as JSON")
	profiles := flag.String("profiles", "", "write a CPU profile of every child process into `folder`")
	flag.Parse()
	if flag.NArg() > 0 || (*only != "" && *only != "locks" && *only != "engine") {
		flag.Usage()
		return errors.New("unknown arguments")
	}
	e := fullEffort
	if *quick {
		e = quickEffort
	}
	e.only, e.cores = *only, availableCores()
	if *profiles != "" {
		var err error
		if e.profiles, err = filepath.Abs(*profiles); err != nil {
			return err
		}
		if err := os.Setenv(profilesVariable, e.profiles); err != nil {
			return err
		}
	}
	report, err := measure(ctx, e)
	if err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(os.Stdout)
}

// measure runs every part on one pair of servers.
func measure(ctx context.Context, e effort) (*report, error) {
	begin := time.Now()
	pair, err := startServers(ctx, e.cores)
	if err != nil {
		return nil, err
	}
	defer pair.stop()
	r := &report{Machine: describeMachine(pair.redis.version, e.cores)}
	parts := []struct {
		group   string
		measure func(context.Context, effort, *servers) (*section, error)
	}{
		{"locks", measureUncontended},
		{"locks", measureContended},
		{"locks", measureWaiting},
		{"engine", measureLoad},
	}
	for _, part := range parts {
		if e.only != "" && e.only != part.group {
			continue
		}
		section, err := part.measure(ctx, e, pair)
		if err != nil {
			return nil, err
		}
		r.Sections = append(r.Sections, section)
	}
	r.Seconds = time.Since(begin).Seconds()
	r.LoadAfter = loadAverage()
	return r, nil
}

const profilesVariable = "SIGNALBOX_BENCH_PROFILES"

func playRole(ctx context.Context, name string, config []byte) error {
	role, ok := roles[name]
	if !ok {
		return fmt.Errorf("unknown role %q", name)
	}
	folder := os.Getenv(profilesVariable)
	if folder == "" {
		return role(ctx, config)
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%d.pprof", name, os.Getpid())))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = role(ctx, config)
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
