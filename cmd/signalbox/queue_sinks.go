package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/signalbox-io/signalbox/queue/history"
	"github.com/signalbox-io/signalbox/queue/history/files"
	"github.com/signalbox-io/signalbox/queue/history/sqlsink"
)

// Where the history of a queue is kept: a folder, or tables of a PostgreSQL, by its URL.

const placesHelp = `PLACE is a folder, or a PostgreSQL as postgres://user@host/database, with the tables of
signalbox queue history schema, for the histories of any number of queues. Its password
belongs in ~/.pgpass or PGPASSWORD, where no list of processes shows it.`

// place is what an argument names.
type place struct {
	folder string
	url    string // of a database; "": it is a folder
}

func placeOf(text string) (place, error) {
	scheme, _, isURL := strings.Cut(text, "://")
	switch {
	case scheme == "postgres" && isURL, scheme == "postgresql" && isURL:
		return place{url: text}, nil
	case isURL, strings.HasPrefix(text, "sqlite:"):
		return place{}, usage("a history is kept in a folder or in PostgreSQL (postgres://user@host/database), not in %s: for other databases "+
			"see docs/queue/history-sinks.md", place{url: text})
	}
	return place{folder: text}, nil
}

// String is what people are shown: without a password.
func (p place) String() string {
	if p.url == "" {
		return printable(p.folder)
	}
	if u, err := url.Parse(p.url); err == nil {
		return printable(u.Redacted())
	}
	return "the database"
}

// keptHistory is a history that is open.
type keptHistory struct {
	history.Sink
	place
	db *sql.DB // nil: a folder
}

func (h *keptHistory) Close() error {
	err := h.Sink.Close()
	if h.db != nil {
		err = errors.Join(err, h.db.Close())
	}
	return err
}

// prune removes the entries up to an ID.
func (h *keptHistory) prune(ctx context.Context, upto string) error {
	if sink, is := h.Sink.(*sqlsink.Sink); is {
		return sink.Prune(ctx, upto)
	}
	return files.Prune(h.folder, upto)
}

func (a *app) openDatabase(ctx context.Context, p place) (*keptHistory, error) {
	config, err := pgx.ParseConfig(p.url)
	if err != nil {
		return nil, usage("%s is no address of a PostgreSQL: %w", p, err)
	}
	db := stdlib.OpenDB(*config)
	sink, err := sqlsink.Open(ctx, db, sqlsink.PostgreSQL, a.queue)
	if errors.Is(err, sqlsink.ErrSchema) {
		err = fmt.Errorf("%w; to make the tables: signalbox queue history schema | psql '%s' --set ON_ERROR_STOP=1", err, p)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &keptHistory{sink, p, db}, nil
}

// openHistory opens a history to add to it.
func (a *app) openHistory(ctx context.Context, text string) (*keptHistory, error) {
	p, err := placeOf(text)
	if err != nil {
		return nil, err
	}
	if p.url != "" {
		return a.openDatabase(ctx, p)
	}
	sink, err := files.Open(p.folder)
	if err != nil {
		return nil, err
	}
	if torn := sink.Repaired(); torn != nil {
		fmt.Fprintln(a.stderr, "signalbox:", torn)
	}
	return &keptHistory{sink, p, nil}, nil
}

// readHistory opens a history that is there, and may be recorded meanwhile.
func (a *app) readHistory(ctx context.Context, text string, use func(*keptHistory) error) error {
	const instead = "the place into which signalbox queue history record copies"
	p, err := placeOf(text)
	if err != nil {
		return err
	}
	var h *keptHistory
	if p.url != "" {
		h, err = a.openDatabase(ctx, p)
	} else {
		var sink *files.Sink
		sink, err = files.Open(p.folder, files.ReadOnly())
		h, err = &keptHistory{sink, p, nil}, absent(err, p.folder, instead)
	}
	if err != nil {
		return err
	}
	name, err := h.Queue(ctx)
	switch {
	case err != nil:
	case name != "":
		err = use(h)
	case h.db != nil:
		err = a.notThere(ctx, h)
	default:
		err = fmt.Errorf("%s: there is no history in it: give %s", p, instead)
	}
	return errors.Join(err, h.Close())
}

// notThere says which queues a database has histories of.
func (a *app) notThere(ctx context.Context, h *keptHistory) error {
	names, err := sqlsink.Queues(ctx, h.db, sqlsink.PostgreSQL)
	if err != nil {
		return err
	}
	for i, name := range names {
		names[i] = printable(name)
	}
	there := "there is none of any queue"
	if len(names) > 0 {
		there = "there are those of " + strings.Join(names, ", ") + ": name one with --queue"
	}
	return fmt.Errorf("%s: there is no history of queue %s in it; %s", h.place, printable(a.queue), there)
}
