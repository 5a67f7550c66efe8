package main

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// stopwatch is a hook that notes how long each EVALSHA of a client takes.
type stopwatch struct {
	mu sync.Mutex
	ms []float64
}

func (s *stopwatch) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *stopwatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *stopwatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ms = append(s.ms, time.Since(begun).Seconds()*1e3)
		}
		return err
	}
}
