package outbox

import (
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

// row is a job in the outbox.
type row struct {
	id  int64
	job []byte
	age time.Duration
}

// database is a connection of the relay that leads.
type database struct{ conn *pgx.Conn }

// position is how far the relay is: the rows of the call that is to be made, and its number.
type position struct {
	sequence string
	number   int64
	rows     []row
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
		p.rows, err = d.rows(ctx, `select o.id, o.job, signalbox_outbox_age(o.enqueued) from signalbox_outbox_state s
			join signalbox_outbox o on o.id = any (s.batch) where s.number = $1 order by o.id`, p.number)
	}
	if err != nil {
		return p, explain("read the outbox", err)
	}
	return p, nil
}

// next takes the rows of a call away, and returns those of the call after it, if there are any.
func (d database) next(ctx context.Context, number int64, most int) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	rows, err := d.rows(ctx, "select id, job, age_ms from signalbox_outbox_next($1, $2, $3)", number, most, batchBytes)
	if err != nil {
		return nil, explain("take the next jobs from the outbox", err)
	}
	return rows, nil
}

func (d database) rows(ctx context.Context, query string, arguments ...any) ([]row, error) {
	found, err := d.conn.Query(ctx, query, arguments...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(r pgx.CollectableRow) (one row, err error) {
		var ageMs int64
		err = r.Scan(&one.id, &one.job, &ageMs)
		one.age = time.Duration(ageMs) * time.Millisecond
		return one, err
	})
}

// refuse keeps copies of jobs that the queue does not take; next takes the rows themselves away.
func (d database) refuse(ctx context.Context, refused map[int64]error) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var ids []int64
	var reasons []string
	for id, reason := range refused {
		text := strconv.QuoteToASCII(strings.ToValidUTF8(reason.Error(), "?")) // any database can keep it
		ids, reasons = append(ids, id), append(reasons, text[1:len(text)-1])
	}
	_, err := d.conn.Exec(ctx, `insert into signalbox_outbox_refused (id, enqueued, job, reason)
		select o.id, o.enqueued, o.job, r.reason from unnest($1::bigint[], $2::text[]) r(id, reason)
		join signalbox_outbox o on o.id = r.id on conflict do nothing`, ids, reasons)
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
