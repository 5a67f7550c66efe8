package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The subcommand durability: the engine beside Redis while both keep their data in a folder. Every part measures a pair
// in a round, one server after the other on the same core, and the other one first in the next round; what is compared
// stood side by side in time. A new part is a type with measure and section, and a line in durableParts.

// durabilityPlan is how much is measured.
type durabilityPlan struct {
	Pairs   int
	Seconds float64 // of a run of writes, roughly
	Keys    int     // of a snapshot
	Idle    time.Duration
}

var (
	fullDurability  = durabilityPlan{Pairs: 5, Seconds: 1.5, Keys: 2_000_000, Idle: 3 * time.Second}
	quickDurability = durabilityPlan{Pairs: 3, Seconds: 0.4, Keys: 200_000, Idle: time.Second}
)

// durableValueBytes makes 2 million keys a snapshot of 400 MB.
const durableValueBytes = 180

// durableBench is one run.
type durableBench struct {
	plan   durabilityPlan
	cores  cores
	folder string
	begin  time.Time
}

// durablePart is one table.
type durablePart interface {
	name() string
	// measure does it once on a server. The order is that of the pair.
	measure(ctx context.Context, b *durableBench, server string) error
	section() *section
}

func durableParts(b *durableBench) []durablePart {
	return []durablePart{newWrites(), newSnapshots(), newLoads(b)}
}

func runDurability(ctx context.Context, args []string) error {
	flags := newRunFlags("durability", durabilityPage, "fewer and shorter rounds, and a tenth of the keys, two minutes")
	flags.profiled("every engine")
	only := flags.String("only", "", "measure these parts, separated by commas: writes, snapshot, load")
	disk := flags.String("disk", "", "keep the data in a new folder in `folder`, on the disk that is to be measured; the system's for such things if it is empty")
	if _, err := flags.parse(args); err != nil {
		return err
	}
	b := &durableBench{plan: fullDurability, cores: availableCores(), begin: time.Now()}
	if flags.quick {
		b.plan = quickDurability
	}
	r, err := b.run(ctx, *disk, *only)
	if err != nil {
		return err
	}
	return flags.deliver(r, "make bench-durability", args, "Durability, measured")
}

func (b *durableBench) run(ctx context.Context, disk, only string) (r *report, err error) {
	if b.folder, err = os.MkdirTemp(disk, "signalbox-durability-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	parts, err := chosen(durableParts(b), only)
	if err != nil {
		return nil, err
	}
	version, err := b.redisVersion(ctx)
	if err != nil {
		return nil, err
	}
	r = &report{Machine: describeMachine(version, b.cores)}
	for _, part := range parts {
		for round := range b.plan.Pairs {
			if err := b.pair(ctx, part, round); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", part.name(), err), r.print(os.Stderr)) // what took minutes is not lost
			}
		}
		r.Sections = append(r.Sections, part.section())
	}
	r.explain(durabilityReasons)
	r.Seconds = time.Since(b.begin).Seconds()
	r.LoadAfter = loadAverage()
	return r, nil
}

// chosen are the parts that are wanted; an empty list is all.
func chosen(parts []durablePart, only string) ([]durablePart, error) {
	if only == "" {
		return parts, nil
	}
	wanted := strings.Split(only, ",")
	var some []durablePart
	for _, part := range parts {
		if i := slices.Index(wanted, part.name()); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
			some = append(some, part)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("unknown part %q", wanted[0])
	}
	return some, nil
}

// pair measures both servers, each in an empty folder.
func (b *durableBench) pair(ctx context.Context, part durablePart, round int) error {
	order := []string{redisName, engineName}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, server := range order {
		begin := time.Now()
		if err := b.anew(); err != nil {
			return err
		}
		if err := part.measure(ctx, b, server); err != nil {
			return fmt.Errorf("%s: %w", server, err)
		}
		fmt.Fprintf(os.Stderr, "%4.0fs %s, round %d of %d: %s took %.1f s\n", time.Since(b.begin).Seconds(), part.name(),
			round+1, b.plan.Pairs, server, time.Since(begin).Seconds())
	}
	return nil
}

// data is the folder of the server that is measured.
func (b *durableBench) data() string { return filepath.Join(b.folder, "data") }

func (b *durableBench) anew() error {
	return errors.Join(os.RemoveAll(b.data()), os.MkdirAll(b.data(), 0o700))
}

func (b *durableBench) redisVersion(ctx context.Context) (string, error) {
	s, err := startKeeper(ctx, redisName, b.cores.server, b.folder)
	if err != nil {
		return "", err
	}
	defer s.end()
	return s.version, nil
}

// both are the figures of a pair of servers, round by round.
type both map[string][]float64

func (v both) add(server string, value float64) { v[server] = append(v[server], value) }

// ratios divides the engine's by Redis's.
func (v both) ratios() []float64 {
	below := make([]float64, len(v[redisName]))
	for i, value := range v[redisName] {
		below[i] = max(value, 1e-9)
	}
	return ratiosOf(v[engineName], below)
}

// row is one of a table: Redis, the engine, and the engine's over Redis's.
func (v both) row(out *section, what string, digits int) {
	out.row(what, number(median(v[redisName]), digits), number(median(v[engineName]), digits), spread(v.ratios(), 2))
}
