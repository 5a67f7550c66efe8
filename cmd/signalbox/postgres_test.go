//go:build unix

package main

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/signalbox-io/signalbox/internal/postgrestest"
)

// postgresOf is under which name a script has its PostgreSQL.
const postgresOf = "postgres"

// database is a script's PostgreSQL.
type database struct{ server *postgrestest.Server }

func withPostgres(env *testscript.Env) {
	d := &database{}
	env.Values[postgresOf] = d
	env.Defer(func() {
		if d.server != nil {
			d.server.Close()
		}
	})
}

func postgres(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		d := ts.Value(postgresOf).(*database)
		switch fmt.Sprint(args) {
		case "[start]":
			var err error
			d.server, err = postgrestest.Start()
			ts.Check(err)
			var folder, name string
			_, err = fmt.Sscanf(d.server.Database(t), "host=%s user=test dbname=%s", &folder, &name)
			ts.Check(err)
			ts.Setenv("POSTGRES", "postgres://test@/"+name+"?host="+folder)
		case "[kill]":
			d.server.Kill()
		case "[restart]":
			ts.Check(d.server.Restart())
		default:
			ts.Fatalf("usage: postgres start|kill|restart")
		}
	}
}
