package goredis_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/topology"
	"github.com/signalbox-io/signalbox/internal/transport"
	"github.com/signalbox-io/signalbox/internal/transport/goredis"
)

// lossy loses the next reply to INCR after the server has run it.
type lossy struct{ armed atomic.Bool }

func (l *lossy) lose(cmd redis.Cmder, err error) error {
	if cmd.Name() == "incr" && l.armed.CompareAndSwap(true, false) {
		cmd.SetErr(io.ErrUnexpectedEOF)
		return io.ErrUnexpectedEOF
	}
	return err
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return l.lose(cmd, next(ctx, cmd)) }
}

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestNothingIsSentAgain: the client of a Cluster repeats by itself what got no answer, unless it is told not to.
func TestNothingIsSentAgain(t *testing.T) {
	servers := topology.StartCluster(t, topology.ClusterOptions{Replicas: -1})
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(strings.TrimPrefix(servers.URL(), "redis+cluster://"), ","),
	})
	t.Cleanup(func() { client.Close() })
	var fault lossy
	client.OnNewNode(func(node *redis.Client) { node.AddHook(&fault) })
	fault.armed.Store(true)
	_, err := goredis.New(client).Do(t.Context(), transport.Command{Words: []any{"incr", "n"}, Key: 1})
	if n := client.Get(t.Context(), "n").Val(); err == nil || n != "1" {
		t.Errorf("the command ran %s times, and the error is %v", n, err)
	}
}
