package sqlsink

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-io/signalbox/queue/history"
)

// Dialect is a kind of database.
type Dialect struct {
	name, id, bytes string
	parameter       string // before its number
	durable         string // what the update of the position returns
	options         sql.TxOptions
}

// The databases that a history can be kept in.
var (
	// PostgreSQL is version 12 or newer, and what speaks as it does.
	PostgreSQL = Dialect{
		name: "PostgreSQL", id: "bigint generated always as identity primary key", bytes: "bytea", parameter: "$",
		// A commit has to be on disk, whatever the session's setting is.
		durable: "case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end",
		options: sql.TxOptions{Isolation: sql.LevelReadCommitted}, // the update has to see who was first
	}
	// SQLite is version 3.35 or newer.
	SQLite = Dialect{name: "SQLite", id: "integer primary key", bytes: "blob", parameter: "?", durable: "null"}
)

// ErrSchema: the database has no tables for histories, or others.
var ErrSchema = errors.New("the tables of the history are not as they should be")

const (
	version       = 1
	defaultPrefix = "signalbox_history"
)

var validPrefix = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}(\.[a-z_][a-z0-9_]{0,39})?$`)

// Schema is the SQL that makes the tables. It may be run again. The options are those of Open.
func Schema(dialect Dialect, options ...Option) (string, error) {
	c, err := configure(dialect, options)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`-- The histories of queues: github.com/signalbox-io/signalbox/queue/history/sqlsink, version %d.
create table if not exists %[2]s_queues (
	id %[3]s,
	queue text not null unique,
	version integer not null,
	ms bigint not null,      -- the last entry's ID, in two parts
	seq bigint not null,
	entries bigint not null  -- the number of the last entry
);
create table if not exists %[2]s_entries (
	queue bigint not null references %[2]s_queues (id),
	ms bigint not null,
	seq bigint not null,
	number bigint not null,  -- from 1 on, without holes. Of ms 0, seq 0 it is that of the last entry that was pruned
	data %[4]s not null,
	primary key (queue, ms, seq)
);
`, version, c.prefix, dialect.id, dialect.bytes), nil
}

// Option is a setting of Open and Schema.
type Option func(*config)

// Prefix is what the names of the tables begin with, "signalbox_history" if it is not said: lower-case letters, digits and
// underscores, at most 40. It may be in another schema, as "audit.signalbox_history".
func Prefix(prefix string) Option { return func(c *config) { c.prefix = prefix } }

// Salvage has Read go on behind entries that are missing; each hole is told to report, by those who read.
func Salvage(report func(*Missing)) Option { return func(c *config) { c.salvage = report } }

type config struct {
	Dialect
	prefix  string
	salvage func(*Missing)
}

func configure(dialect Dialect, options []Option) (config, error) {
	c := config{Dialect: dialect, prefix: defaultPrefix}
	for _, option := range options {
		option(&c)
	}
	if c.name == "" {
		return c, errors.New("no dialect: give sqlsink.PostgreSQL or sqlsink.SQLite")
	}
	if !validPrefix.MatchString(c.prefix) {
		return c, fmt.Errorf("tables cannot begin with %.60q (lower-case letters, digits and underscores, at most 40)", c.prefix)
	}
	return c, nil
}

// statement has the tables' names for {queues} and {entries}, and the database's own parameters for $1, $2 ….
func (c config) statement(text string) string {
	text = strings.NewReplacer("{queues}", c.prefix+"_queues", "{entries}", c.prefix+"_entries", "{durable}", c.durable).Replace(text)
	return strings.ReplaceAll(text, "$", c.parameter)
}

// insert is the statement for so many entries. Its first parameter is the queue.
func (c config) insert(entries int) string {
	var b strings.Builder
	b.WriteString("insert into {entries} (queue, ms, seq, number, data) values ")
	for i := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("($1")
		for column := range 4 {
			b.WriteString(",$")
			b.WriteString(strconv.Itoa(4*i + column + 2))
		}
		b.WriteByte(')')
	}
	return c.statement(b.String())
}

// explain says more of errors that mean that the tables are not there, or that the database is not.
func (c config) explain(err error) error {
	var coded interface{ SQLState() string } // of PostgreSQL's drivers
	state := ""
	if errors.As(err, &coded) {
		state = coded.SQLState()
	}
	switch {
	case slices.Contains(noSuchThing, state), strings.Contains(err.Error(), "no such table"), strings.Contains(err.Error(), "no such column"):
		return fmt.Errorf("%w: run what sqlsink.Schema prints for %s, with the prefix %q: %w", ErrSchema, c.name, c.prefix, err)
	case outOfReach(err, state):
		return fmt.Errorf("%w: call again when the database answers: %w", history.ErrUnavailable, err)
	}
	return err
}

// noSuchThing are PostgreSQL's codes for a table, a column or a schema that is not there.
var noSuchThing = []string{"42P01", "42703", "3F000"}

// away begins PostgreSQL's codes for what passes: connections, a server that ends, starts, is full, or only a replica for now.
var away = regexp.MustCompile(`^(08|53|57P0[1-3]|25006)`)

func outOfReach(err error, state string) bool {
	if state != "" {
		return away.MatchString(state)
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		strings.Contains(err.Error(), "SQLITE_BUSY")
}
