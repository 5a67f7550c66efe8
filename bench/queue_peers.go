package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Peers that need more than a module: PostgreSQL, for River, and Node with BullMQ. Both live in a temporary folder. Where they
// are not to be had, their rows say why.

// postgres is a server of its own, behind a socket in a folder.
type postgres struct {
	addr, version string
	process       *process
}

// postgresPlaces are where Debian and others have its programs.
var postgresPlaces = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/bin", "/usr/bin"}

func postgresPrograms() (string, error) {
	for _, pattern := range postgresPlaces {
		found, err := filepath.Glob(pattern + "/initdb")
		if err == nil && len(found) > 0 {
			return filepath.Dir(slices.Max(found)), nil
		}
	}
	return "", errors.New("PostgreSQL is not here: apt-get install postgresql")
}

// startPostgres starts one as the user postgres if this is root, whom it refuses. It keeps its data as it does by default.
func startPostgres(ctx context.Context, on []int, folder string) (*postgres, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	var as []string
	if os.Geteuid() == 0 {
		if as, err = postgresOwner(folder, data); err != nil {
			return nil, err
		}
	}
	command := func(words ...string) []string { return append(slices.Clone(as), words...) }
	init := command(programs+"/initdb", "--pgdata", data, "--auth", "trust", "--username", "bench", "--no-sync")
	if said, err := exec.CommandContext(ctx, init[0], init[1:]...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	serve := command(programs+"/postgres", "-D", data, "-k", data, "-c", "listen_addresses=", "-c", "logging_collector=off",
		"-c", "log_min_messages=fatal")
	p := &postgres{addr: "host=" + data + " user=bench dbname=postgres"}
	if p.process, err = start(on, serve[0], serve[1:]...); err != nil {
		return nil, err
	}
	for giveUp := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = p.greet(ctx); err == nil {
			return p, nil
		}
		if time.Now().After(giveUp) {
			p.stop()
			return nil, fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// postgresOwner gives the folder to the user postgres, and returns the words that run a program as that user.
func postgresOwner(folder, data string) ([]string, error) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, errUser := strconv.Atoi(owner.Uid)
	gid, errGroup := strconv.Atoi(owner.Gid)
	if err := errors.Join(errUser, errGroup, os.Chmod(folder, 0o711), os.Chown(data, uid, gid)); err != nil {
		return nil, err
	}
	return []string{"setpriv", "--reuid", owner.Uid, "--regid", owner.Gid, "--clear-groups"}, nil
}

func (p *postgres) greet(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.addr)
	if err != nil {
		return err
	}
	p.version = conn.PgConn().ParameterStatus("server_version")
	return conn.Close(ctx)
}

// empty takes the jobs of earlier rounds away.
func (p *postgres) empty(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.addr)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "truncate river_job")
	return errors.Join(err, conn.Close(ctx))
}

// stop ends it, its children first: it does that when it is asked to end at once.
func (p *postgres) stop() {
	_ = p.process.command.Process.Signal(syscall.SIGQUIT) // it may have ended already
	select {
	case <-p.process.ended:
	case <-time.After(stopPatience):
		p.process.kill()
	}
}

//go:embed bullmq.js
var bullScript string

// bull is a folder with BullMQ in it.
type bull struct{ node, script, version string }

// installBull has npm install BullMQ in a folder.
func installBull(ctx context.Context, folder string) (*bull, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not on PATH")
	}
	in := filepath.Join(folder, "bullmq")
	b := &bull{node: node, script: filepath.Join(in, "bench.js")}
	if err := errors.Join(os.Mkdir(in, 0o755), os.WriteFile(b.script, []byte(bullScript), 0o600)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--prefix", in, "bullmq", "ioredis")
	if said, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm install bullmq: %w: %.300s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(in, "node_modules", "bullmq", "package.json"))
	var about struct{ Version string }
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	b.version = about.Version
	return b, err
}

func (b *bull) start(on []int, t *queueTask) (*process, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return start(on, b.node, b.script, string(encoded))
}
