package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-io/signalbox/internal/outboxschema"
)

const (
	// answerWithin is for how long the database may take over a statement.
	answerWithin = 30 * time.Second
	// batchBytes is when a batch is full that has fewer rows than it may have.
	batchBytes = 1 << 20
)

// errDeposed: another relay has gone on. Either this one has slept past its term, and does not know it yet, or they are not in
// the same election.
var errDeposed = errors.New("another relay has gone on (all relays of an outbox have to campaign in the same election)")

// job is one in the outbox.
type job struct {
	place
	text []byte
	age  time.Duration
}

// place is where it is: a row, and its line there, from 1 on.
type place struct {
	row  int64
	line int32
}

// database is a connection of the relay that leads.
type database struct{ conn *pgx.Conn }

// position is how far the relay is: the jobs of the call that is to be made, and its number.
type position struct {
	sequence string
	number   int64
	jobs     []job
}

// small reports whether there is room for as much again in a call of so many jobs.
func (p position) small(most int) bool {
	size := 0
	for _, j := range p.jobs {
		size += len(j.text)
	}
	return 2*len(p.jobs) <= most && 2*size <= batchBytes
}

// position reads it.
func (d database) position(ctx context.Context) (p position, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var version int
	err = d.conn.QueryRow(ctx, "select version, outbox, number from signalbox_outbox_state").Scan(&version, &p.sequence, &p.number)
	if err == nil && version != outboxschema.Version {
		return p, fmt.Errorf("read the outbox: %w: they have version %d, this program needs %d", ErrSchema, version, outboxschema.Version)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return p, fmt.Errorf("read the outbox: %w: the only row of signalbox_outbox_state is missing; run the schema again", ErrSchema)
	}
	if err == nil {
		p.jobs, err = d.jobs(ctx, `select o.id, o.job, o.jobs, signalbox_outbox_age(o.enqueued) from signalbox_outbox_state s
			join signalbox_outbox o on o.id = any (s.batch) where s.number = $1 order by o.id`, p.number)
	}
	if err != nil {
		return p, explain("read the outbox", err)
	}
	return p, nil
}

// next takes the jobs of a call away, and returns those of the call after it, if there are any.
func (d database) next(ctx context.Context, number int64, most int) ([]job, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	jobs, err := d.jobs(ctx, "select id, job, jobs, age_ms from signalbox_outbox_next($1, $2, $3, $4)",
		outboxschema.Version, number, most, batchBytes)
	if err != nil {
		return nil, explain("take the next jobs from the outbox", err)
	}
	return jobs, nil
}

// jobs are those of the rows that a query finds. A row that has not as many lines as it says is one
// job: somebody wrote it by hand.
func (d database) jobs(ctx context.Context, query string, arguments ...any) (found []job, err error) {
	rows, err := d.conn.Query(ctx, query, arguments...)
	if err != nil {
		return nil, err
	}
	var id, ageMs int64
	var text []byte
	var count int
	_, err = pgx.ForEachRow(rows, []any{&id, &text, &count, &ageMs}, func() error {
		lines := [][]byte{text}
		if count > 1 {
			if lines = bytes.Split(text, []byte{'\n'}); len(lines) != count {
				lines = [][]byte{text}
			}
		}
		for i, line := range lines {
			found = append(found, job{place{id, int32(i) + 1}, line, time.Duration(ageMs) * time.Millisecond})
		}
		return nil
	})
	return found, err
}

// refuse keeps copies of jobs that the queue does not take; next takes the rows themselves away.
func (d database) refuse(ctx context.Context, refused []refusal) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var ids []int64
	var lines []int32
	var texts [][]byte
	var reasons []string
	for _, r := range refused {
		ids, lines, texts = append(ids, r.row), append(lines, r.line), append(texts, r.text)
		reason := strconv.QuoteToASCII(strings.ToValidUTF8(r.reason.Error(), "?")) // any database can keep it
		reasons = append(reasons, reason[1:len(reason)-1])
	}
	_, err := d.conn.Exec(ctx, `insert into signalbox_outbox_refused (id, place, enqueued, job, reason)
		select o.id, r.place, o.enqueued, r.job, r.reason from unnest($1::bigint[], $2::integer[], $3::bytea[], $4::text[]) r(id, place, job, reason)
		join signalbox_outbox o on o.id = r.id on conflict do nothing`, ids, lines, texts, reasons)
	if err != nil {
		return explain("put refused jobs of the outbox aside", err)
	}
	return nil
}

// renumber has the call that is to be made come after another. It reports false if another relay has gone on.
func (d database) renumber(ctx context.Context, number, after int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	tag, err := d.conn.Exec(ctx, "update signalbox_outbox_state set number = $2 + 1 where number = $1", number, after)
	if err != nil {
		return false, explain("renumber the outbox", err)
	}
	return tag.RowsAffected() == 1, nil
}
