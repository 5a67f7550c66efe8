package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Part is a table of the report.
type Part string

// The parts, in the order in which they are measured.
const (
	Locks      Part = "locks"
	Pipelining Part = "pipelining"
	Commands   Part = "commands"
	Semaphores Part = "semaphores"
)

// Settings say how to measure. DefaultSettings has what is usual.
type Settings struct {
	// Duration of each cell.
	Duration time.Duration
	// Rounds over all cells; at least 1.
	Rounds     int
	Locks      LockSettings
	Commands   CommandSettings
	Semaphores SemaphoreSettings
	// Progress is told before each cell. It may be nil.
	Progress func(Progress)
}

// DefaultSettings measure everything in about a minute.
func DefaultSettings() Settings {
	return Settings{
		Duration:   time.Second,
		Rounds:     1,
		Locks:      LockSettings{Clients: []int{1, 2, 5, 10}},
		Commands:   CommandSettings{Clients: 50, Pipeline: 1, ValueBytes: 3},
		Semaphores: SemaphoreSettings{Clients: 20, Limit: 5, Skews: []time.Duration{0, 10 * time.Millisecond, 12 * time.Second}},
	}
}

// Progress is where a run stands.
type Progress struct {
	Part Part
	Cell string
	Done int           // cells before this one, over all rounds
	All  int           // cells of the run, over all rounds
	Left time.Duration // about; 0 if it is not known
}

// Report is what was measured. Parts that were not are nil.
type Report struct {
	Started    time.Time      `json:"started"`
	Server     ServerInfo     `json:"server"`
	Machine    Machine        `json:"machine"`
	Duration   time.Duration  `json:"duration_ns"`
	Rounds     int            `json:"rounds"`
	Locks      []LockRow      `json:"locks,omitempty"`
	Pipelining []PipelineRow  `json:"pipelining,omitempty"`
	Commands   []CommandRow   `json:"commands,omitempty"`
	Semaphores []SemaphoreRow `json:"semaphores,omitempty"`
	Notes      []string       `json:"notes,omitempty"`
}

// Bench is one run.
type Bench struct {
	server   *Server
	settings Settings
	done     int
	all      int
	// commandKeys says that the keys of the commands have been noted for removal.
	commandKeys bool
}

// cell is one measurement.
type cell[R any] struct {
	label string
	run   func(ctx context.Context) (R, error)
}

// cellOverhead is about what a cell takes besides its duration: connections are made and keys removed.
const cellOverhead = 30 * time.Millisecond

// Run measures parts of what a server can do. The keys that it makes are gone when it returns, unless the server is.
func Run(ctx context.Context, server *Server, settings Settings, parts ...Part) (_ *Report, err error) {
	b := &Bench{server: server, settings: settings}
	report := &Report{
		Started: time.Now(), Server: server.Info, Machine: ThisMachine(), Duration: settings.Duration, Rounds: settings.Rounds,
	}
	defer func() { err = errors.Join(err, server.removeKeys(ctx)) }()
	links, err := b.count(ctx, parts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeLinks(links)) }()
	if slices.Contains(parts, Pipelining) {
		report.Notes = append(report.Notes, notes(links)...)
	}
	for _, part := range parts {
		err := b.measure(ctx, part, links, report)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	report.Machine.LoadAfter = loadAverage()
	return report, nil
}

// count finds out how many cells there are. For that it needs the links.
func (b *Bench) count(ctx context.Context, parts []Part) (links []*link, err error) {
	cells := 0
	for _, part := range parts {
		switch part {
		case Locks:
			cells += len(b.lockCells())
		case Pipelining:
			if links, err = b.server.links(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", part, err)
			}
			cells += len(b.pipelineCells(links))
		case Commands:
			cells += len(b.commandCells())
		case Semaphores:
			cells += len(b.semaphoreCells())
		default:
			return nil, fmt.Errorf("there is no part %q", part)
		}
	}
	b.all = cells * b.settings.Rounds
	return links, nil
}

func (b *Bench) measure(ctx context.Context, part Part, links []*link, report *Report) (err error) {
	switch part {
	case Locks:
		report.Locks, err = measure(ctx, b, part, b.lockCells(), mergeLocks)
	case Pipelining:
		report.Pipelining, err = measure(ctx, b, part, b.pipelineCells(links), mergePipelines)
	case Commands:
		report.Commands, err = measure(ctx, b, part, b.commandCells(), mergeCommands)
	case Semaphores:
		report.Semaphores, err = measure(ctx, b, part, b.semaphoreCells(), mergeSemaphores)
	}
	return errors.Join(err, b.server.removeKeys(ctx))
}

// measure runs all cells of a part in rounds, and merges what the rounds of each cell have found.
func measure[R any](ctx context.Context, b *Bench, part Part, cells []cell[R], merge func([]R) R) ([]R, error) {
	found := make([][]R, len(cells))
	for range b.settings.Rounds {
		for i, c := range cells {
			b.tell(part, c.label)
			row, err := c.run(ctx)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.label, err)
			}
			found[i] = append(found[i], row)
			b.done++
		}
	}
	rows := make([]R, len(cells))
	for i := range found {
		rows[i] = merge(found[i])
	}
	return rows, nil
}

func (b *Bench) tell(part Part, label string) {
	if b.settings.Progress != nil {
		left := time.Duration(b.all-b.done) * (b.settings.Duration + cellOverhead)
		if b.settings.Commands.Requests > 0 {
			left = 0
		}
		b.settings.Progress(Progress{part, label, b.done, b.all, left})
	}
}
