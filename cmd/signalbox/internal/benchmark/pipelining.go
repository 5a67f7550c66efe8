package benchmark

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-io/signalbox/classic"
)

// Table 4.4 of the book: one client calls update_token, five commands, as often as it can; one round trip for each
// command, or one for all.

// PipelineRow is update_token over one link, in one of the two ways.
type PipelineRow struct {
	Link string `json:"link"`
	// RoundTripWanted is what is emulated, 0 on a real link; RoundTrip is the median of empty round trips.
	RoundTripWanted time.Duration `json:"round_trip_wanted_ns"`
	RoundTrip       time.Duration `json:"round_trip_ns"`
	Pipelined       bool          `json:"pipelined"`
	Calls           int64         `json:"calls"`
	CallsPerSecond  float64       `json:"calls_per_second"`
}

func (b *Bench) pipelineCells(links []*link) []cell[PipelineRow] {
	var cells []cell[PipelineRow]
	for _, l := range links {
		for _, pipelined := range []bool{false, true} {
			label := l.name + ", one by one"
			if pipelined {
				label = l.name + ", pipelined"
			}
			cells = append(cells, cell[PipelineRow]{label, func(ctx context.Context) (PipelineRow, error) {
				return b.pipelineCell(ctx, l, pipelined)
			}})
		}
	}
	return cells
}

func (b *Bench) pipelineCell(ctx context.Context, l *link, pipelined bool) (row PipelineRow, err error) {
	const token, user, item = "token", "user", "item"
	row = PipelineRow{Link: l.name, RoundTripWanted: l.wanted, RoundTrip: l.roundTrip, Pipelined: pipelined}
	prefix := b.server.name("pipelining") + ":"
	b.server.owns(slices.Values([]string{prefix + "login:", prefix + "recent:", prefix + "viewed:", prefix + "viewed:" + token}))
	client := b.server.client(l)
	defer func() { err = errors.Join(err, client.Close()) }()
	logins := classic.Logins{Client: classic.Client{Redis: client}, Prefix: prefix}
	update := logins.UpdateToken
	if pipelined {
		update = logins.UpdateTokenPipelined
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return row, err
	}
	begun := time.Now()
	// A call that has begun is finished, so that no part of it is left out of the time.
	for time.Since(begun) < b.settings.Duration && ctx.Err() == nil {
		if err := update(ctx, token, user, item); err != nil {
			return row, err
		}
		row.Calls++
	}
	row.CallsPerSecond = perSecond(row.Calls, time.Since(begun))
	return row, nil
}

func mergePipelines(rows []PipelineRow) PipelineRow {
	row := rows[0]
	row.Calls = medianOf(rows, func(r *PipelineRow) int64 { return r.Calls })
	row.CallsPerSecond = medianRate(rows, func(r *PipelineRow) float64 { return r.CallsPerSecond })
	return row
}
