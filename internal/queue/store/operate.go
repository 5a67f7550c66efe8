package store

import (
	"context"
	"time"
)

// Change cancels, deletes or retries jobs, at most MostChanges, if they are in one of the states, "" for any. It returns an
// outcome for each, see change.lua.
func (s *Store) Change(ctx context.Context, verb, text, states string, ids []string) ([]string, error) {
	args := []any{verb, seed(time.Now().UnixNano()), text, states}
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.run(ctx, verb, changeScript, args)
	if err != nil {
		return nil, err
	}
	outcomes, ok := texts(reply)
	if !ok || len(outcomes) != len(ids) {
		return nil, s.unexpected(verb, reply)
	}
	return outcomes, nil
}

// Configure sets what is given. A value of "" takes a setting away.
func (s *Store) Configure(ctx context.Context, fields ...string) error {
	args := []any{seed(time.Now().UnixNano()), ""}
	for _, field := range fields {
		args = append(args, field)
	}
	for {
		reply, err := s.run(ctx, "configure", configureScript, args)
		if err != nil {
			return err
		}
		place, ok := texts(reply)
		if !ok || len(place) != 1 {
			return s.unexpected("configure", reply)
		}
		if place[0] == "" {
			return nil
		}
		args = []any{args[0], place[0]} // there are more lanes to look at
	}
}

func pairs(value any) (map[string]string, bool) {
	list, ok := texts(value)
	if !ok || len(list)%2 != 0 {
		return nil, false
	}
	out := make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = list[i+1]
	}
	return out, true
}
