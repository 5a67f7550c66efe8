// Package outboxschema is the text of the tables of queue/outbox, by itself: the program prints it, and needs no PostgreSQL
// for that.
package outboxschema

import _ "embed"

// Version is what the text says of itself.
const Version = 2

// Text creates the tables and functions. It may be run again.
//
//go:embed schema.sql
var Text string
