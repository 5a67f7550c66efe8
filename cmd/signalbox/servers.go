package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox"
	"github.com/signalbox-io/signalbox/internal/address"
	"github.com/signalbox-io/signalbox/internal/ledger"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// checked is what the library finds out about a server before it uses it.
type checked struct {
	eviction    string // the policy by which keys are removed, "" if none are
	unsupported error  // the server is too old
}

// eachServer visits the server that was asked for, behind Sentinels the primary, in a Cluster every primary, one after the
// other. It starts none.
func (a *app) eachServer(ctx context.Context, visit func(context.Context, *redis.Client, checked) error) error {
	_, err := connect(ctx, a, false, func(url string) (struct{}, error) {
		return struct{}{}, eachServerOf(ctx, url, func(ctx context.Context, server *redis.Client) error {
			var found checked
			found.eviction, found.unsupported = ledger.New(goredis.New(server)).CheckServer(ctx)
			if err := found.unsupported; err != nil && !errors.Is(err, signalbox.ErrUnsupportedServer) {
				return err
			}
			return visit(ctx, server, found)
		})
	})
	if errors.Is(err, errNotRunning) {
		return &exitError{exitUnavailable, fmt.Errorf("%w; give a server with --url", err)}
	}
	return err
}

func eachServerOf(ctx context.Context, url string, visit func(context.Context, *redis.Client) error) (err error) {
	client, _, err := address.Dial(url)
	if err != nil {
		return fmt.Errorf("open: %w: %w", signalbox.ErrInvalid, err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	switch client := client.(type) {
	case *redis.Client:
		return visit(ctx, client)
	case *redis.ClusterClient:
		var one sync.Mutex
		return client.ForEachMaster(ctx, func(ctx context.Context, server *redis.Client) error {
			one.Lock()
			defer one.Unlock()
			return visit(ctx, server)
		})
	}
	return fmt.Errorf("open: a client of an unknown kind, %T", client)
}

// place is where the permits and the jobs are, as it may be shown.
func (a *app) place() string {
	if url := a.server(); url != "" {
		return address.Place(url)
	}
	return "the private local engine"
}

// told is what a server says in INFO, by the names of the fields.
type told map[string]string

func askInfo(ctx context.Context, server *redis.Client, sections ...string) (told, error) {
	info, err := server.InfoMap(ctx, sections...).Result()
	if err != nil {
		return nil, err
	}
	all := make(told)
	for _, section := range info {
		maps.Copy(all, section)
	}
	return all, nil
}

// addressOf is where a server is reached; of one that Sentinels have named, its end of the connection.
func addressOf(ctx context.Context, server *redis.Client) string {
	if addr := server.Options().Addr; addr != "FailoverClient" {
		return addr
	}
	line, err := server.Do(ctx, "client", "info").Text()
	if err == nil {
		for word := range strings.FieldsSeq(line) {
			if at, ok := strings.CutPrefix(word, "laddr="); ok {
				return at
			}
		}
	}
	return "the primary"
}

// isRefused says whether a server does not answer this question at all, to this account or to anybody.
func isRefused(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && !strings.HasPrefix(answer.Error(), "LOADING")
}
