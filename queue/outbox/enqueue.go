package outbox

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/signalbox-io/signalbox/internal/outboxschema"
	"github.com/signalbox-io/signalbox/queue"
)

// ErrSchema: the database has no outbox, or one of another version. See Schema.
var ErrSchema = errors.New("the outbox's tables are not as this program needs them")

// Tx is a transaction of pgx: a pgx.Tx, or any connection that is in one. See SQL for database/sql.
type Tx interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}

// SQL has a transaction of database/sql take part, with any driver for PostgreSQL.
func SQL(tx *sql.Tx) Tx { return sqlTx{tx} }

type sqlTx struct{ tx *sql.Tx }

// Exec gives lists as text, which every driver can.
func (s sqlTx) Exec(ctx context.Context, query string, arguments ...any) (pgconn.CommandTag, error) {
	for i, argument := range arguments {
		switch list := argument.(type) {
		case []int32:
			arguments[i] = literal(list, func(n int32) string { return strconv.Itoa(int(n)) })
		case [][]byte:
			arguments[i] = literal(list, func(b []byte) string { return `"\\x` + hex.EncodeToString(b) + `"` })
		}
	}
	_, err := s.tx.ExecContext(ctx, query, arguments...)
	return pgconn.CommandTag{}, err
}

func literal[T any](list []T, text func(T) string) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = text(v)
	}
	return "{" + strings.Join(words, ",") + "}"
}

// Enqueue has a job enqueued when the transaction commits, and returns the id that it will have. Of transactions that enqueue
// jobs of the same key (queue.Key), each waits for the one before to end: that is what their order is made of. So enqueue late
// in a transaction.
//
// What the queue would refuse is refused here. An error of the database ends the transaction, as any other does.
func Enqueue[A, R any](ctx context.Context, tx Tx, kind queue.Kind[A, R], args A, options ...queue.Option) (id string, err error) {
	ids, err := EnqueueMany(ctx, tx, kind.With(args, options...))
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// EnqueueMany is Enqueue for several jobs, in one statement. It takes all of them or, with an error, none.
func EnqueueMany(ctx context.Context, tx Tx, requests ...queue.Request) (ids []string, err error) {
	if len(requests) == 0 {
		return nil, nil
	}
	ids = make([]string, len(requests))
	rows := make([][]byte, 0, 1+len(requests)/10)
	counts := make([]int32, 0, cap(rows))
	keys := []int32{}
	for i, r := range requests {
		var job []byte
		if ids[i], job, err = r.Encode(); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		if r.Key() != "" {
			keys = append(keys, lockOf(r.Key()))
		}
		if last := len(rows) - 1; last >= 0 && len(rows[last])+1+len(job) <= rowBytes {
			rows[last] = append(append(rows[last], '\n'), job...)
			counts[last]++
		} else {
			rows, counts = append(rows, job), append(counts, 1)
		}
	}
	_, err = tx.Exec(ctx, "select signalbox_outbox_add($1, $2, $3, $4)", int32(outboxschema.Version), keys, counts, rows)
	if err != nil {
		return nil, explain("enqueue in the outbox", err)
	}
	return ids, nil
}

// rowBytes is when a row is full that has several jobs. A row of PostgreSQL that has more than 2 kB is compressed, and kept in
// pieces.
const rowBytes = 1900

// keyLocks is how many locks there are for keys: see signalbox_outbox_add. All programs have to have the same number.
const keyLocks = 2047

// lockOf is the number of a key's lock.
func lockOf(key string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it never fails
	return int32(h.Sum32()%keyLocks) + 1
}

// State codes of PostgreSQL, and of the functions in the schema.
const (
	codeDeposed           = "SB001"
	codeVersion           = "SB002"
	codeUndefinedTable    = "42P01"
	codeUndefinedColumn   = "42703"
	codeUndefinedFunction = "42883"
)

// explain says what an error of the database means.
func explain(doing string, err error) error {
	switch stateOf(err) {
	case codeVersion, codeUndefinedTable, codeUndefinedColumn, codeUndefinedFunction:
		return fmt.Errorf("%s: %w: run what `signalbox queue outbox schema` prints, on this database and in a schema of its search_path: %w",
			doing, ErrSchema, err)
	case codeDeposed:
		return fmt.Errorf("%s: %w: %w", doing, errDeposed, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// stateOf is the code in an error of any driver that has one.
func stateOf(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}
