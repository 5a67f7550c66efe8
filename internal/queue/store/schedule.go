package store

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// SetSchedule sets what a schedule is and when its next tick is, unless it is the same already.
func (s *Store) SetSchedule(ctx context.Context, tick Tick) error {
	_, err := s.run(ctx, "schedule", scheduleScript, []any{"set", tick.Name, number(tick.Ms), tick.Text})
	return err
}

// RemoveSchedule reports whether there was one.
func (s *Store) RemoveSchedule(ctx context.Context, name string) (bool, error) {
	reply, err := s.run(ctx, "unschedule", scheduleScript, []any{"remove", name})
	return err == nil && len(reply) == 1 && reply[0] == int64(1), err
}

// Schedules lists all, with their next ticks.
func (s *Store) Schedules(ctx context.Context) ([]Tick, error) {
	reply, err := s.run(ctx, "list schedules of", scheduleScript, []any{"list"})
	if err != nil {
		return nil, err
	}
	if words, ok := texts(reply); ok {
		if ticks, ok := parseTicks(words); ok {
			return ticks, nil
		}
	}
	return nil, s.unexpected("list schedules of", reply)
}

// Time is the queue's: that of the server, which never goes back.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	const doing = "ask for the time of"
	reply, err := s.run(ctx, doing, scheduleScript, []any{"time", ""})
	if err != nil {
		return time.Time{}, err
	}
	if len(reply) == 1 {
		if ms, ok := reply[0].(int64); ok {
			return time.UnixMilli(ms), nil
		}
	}
	return time.Time{}, s.unexpected(doing, reply)
}

func parseTicks(words []string) ([]Tick, bool) {
	if len(words)%2 != 0 {
		return nil, false
	}
	var ticks []Tick
	for i := 0; i < len(words); i += 2 {
		ms, text, ok := strings.Cut(words[i+1], "\n")
		n, err := strconv.ParseInt(ms, 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		ticks = append(ticks, Tick{words[i], n, text})
	}
	return ticks, true
}
