// Fencing shows two stores outside Redis that refuse a holder whose lease is over: a SQL table, and an HTTP service.
//
// Both keep the newest token beside the data, and compare and write in one step. A separate read of the token would leave
// a gap for a newer holder between check and write.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // pure Go: nothing to install
)

// ErrStale says that a newer holder has been seen: this one has lost its lease and must stop.
var ErrStale = errors.New("stale token")

// Store is a table of accounts.
type Store struct{ db *sql.DB }

// OpenStore opens a database in a file, made if it is not there.
func OpenStore(ctx context.Context, path string) (*Store, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one writer is what SQLite has
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS account (
		id TEXT PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER NOT NULL)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db}, nil
}

// Create makes an account that no holder has seen yet, unless it is there.
func (s *Store) Create(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO account VALUES (?, 0, 0) ON CONFLICT DO NOTHING`, id)
	return err
}

// Read returns the balance, and refuses older tokens from now on: what is computed from it cannot be overwritten by a
// former holder. It wraps ErrStale if this token is itself an older one.
func (s *Store) Read(ctx context.Context, id string, token int64) (balance int64, err error) {
	err = s.db.QueryRowContext(ctx,
		`UPDATE account SET token = ?1 WHERE id = ?2 AND token <= ?1 RETURNING balance`, token, id).Scan(&balance)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read %s: %w", id, ErrStale)
	}
	return balance, err
}

// Write sets the balance. It wraps ErrStale if a newer token has been seen; then nothing is changed.
func (s *Store) Write(ctx context.Context, id string, token, balance int64) error {
	result, err := s.db.ExecContext(ctx,
		`UPDATE account SET balance = ?3, token = ?1 WHERE id = ?2 AND token <= ?1`, token, id, balance)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 0 {
		err = fmt.Errorf("write %s: %w", id, ErrStale)
	}
	return err
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }
