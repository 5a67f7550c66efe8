package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/engine"
)

// Servers that keep their data in a folder. Each is started anew for a round, with the same settings on both sides.

const (
	redisName  = "Redis"
	engineName = "engine"
	// startPatience is how long a server may load.
	startPatience = 2 * time.Minute
)

// keepConfig is what the role keep is told.
type keepConfig struct {
	Dir      string
	Settings []string // name=value
}

// startKeeper starts a server of this name in a folder, and returns when it has loaded what is there.
func startKeeper(ctx context.Context, name string, on []int, folder string, settings ...string) (*server, error) {
	if name == redisName {
		return startRedisIn(ctx, on, folder, settings)
	}
	s := &server{name: engineName}
	var err error
	if s.process, err = startRole(on, "keep", keepConfig{Dir: folder, Settings: settings}); err != nil {
		return nil, err
	}
	if err := s.process.hear(&s.addr); err != nil {
		s.process.stop()
		return nil, err
	}
	return s, nil
}

func startRedisIn(ctx context.Context, on []int, folder string, settings []string) (*server, error) {
	var args []string
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		args = append(args, "--"+name, value)
	}
	s, err := startRedis(ctx, on, folder, args...)
	if err != nil {
		return nil, err
	}
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	for giveUp := time.Now().Add(startPatience); ; time.Sleep(2 * time.Millisecond) {
		err := client.DBSize(ctx).Err()
		if err == nil {
			return s, nil
		}
		if !redis.HasErrorPrefix(err, "LOADING") || time.Now().After(giveUp) {
			s.process.kill()
			return nil, fmt.Errorf("redis-server does not load %s: %w", folder, err)
		}
	}
}

// keepRole is the engine as a server that keeps its data.
func keepRole(ctx context.Context, config []byte) error {
	go engine.AdjustCollector(ctx) // as signalbox serve does; it ends with the process
	var c keepConfig
	if err := decode(config, &c); err != nil {
		return err
	}
	settings, err := engine.ReadConfig("", c.Settings...)
	if err != nil {
		return err
	}
	e, err := engine.Open(engine.Options{Dir: c.Dir, Config: settings})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, e.Close())
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve(listener) }()
	if err := say(listener.Addr().String()); err != nil {
		return err
	}
	dismissed()
	return errors.Join(e.Close(), <-served)
}

// end ends a server whose data is of no more use.
func (s *server) end() {
	if s.name == redisName {
		s.process.kill()
		return
	}
	s.process.stop()
}

// do sends one command on a connection of its own.
func (s *server) do(ctx context.Context, args ...any) error {
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	return client.Do(ctx, args...).Err()
}

// save has the server write dump.rdb in the background, and calls meanwhile, if it is not nil, now and then until
// that has ended. The duration is as exact as every.
func (s *server) save(ctx context.Context, every time.Duration, meanwhile func()) (time.Duration, error) {
	client := backend{Addr: s.addr}.client()
	defer shut(client)
	begin := time.Now()
	if err := client.BgSave(ctx).Err(); err != nil {
		return 0, err
	}
	for {
		time.Sleep(every)
		took := time.Since(begin)
		info, err := client.Info(ctx, "persistence").Result()
		if err != nil {
			return 0, err
		}
		if meanwhile != nil {
			meanwhile()
		}
		if infoField(info, "rdb_bgsave_in_progress:") != "0" {
			continue
		}
		if status := infoField(info, "rdb_last_bgsave_status:"); status != "ok" {
			return 0, fmt.Errorf("BGSAVE on %s ended with %q", s.name, status)
		}
		return took, nil
	}
}

// copyFolder copies what a server has written for another one to load, and has it written to the disk: the engine makes
// sure of that at its start, and what the copy has left to the system is not its business.
func copyFolder(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	// The lock and the log of the other server are its own.
	for _, name := range []string{"signalbox.lock", "redis.log"} {
		if err := os.Remove(filepath.Join(to, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
