package simtest

import (
	"context"
	"errors"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// directTries is how often a call of the direct client is tried.
const directTries = 8

// steady is the transport of the nemesis, which no fault reaches but that CLIENT KILL and a restart leave it with
// connections that are dead already. What is sent on one of those is never run, so that it may be sent again.
type steady struct{ transport.Transport }

// Do is part of transport.Transport.
func (s *steady) Do(ctx context.Context, command transport.Command) (value any, err error) {
	for range directTries {
		if value, err = s.Transport.Do(ctx, command); answered(err) {
			break
		}
	}
	return value, err
}

// Pipeline is part of transport.Transport.
func (s *steady) Pipeline(ctx context.Context, commands []transport.Command) (replies []transport.Reply) {
	for range directTries {
		replies = s.Transport.Pipeline(ctx, commands)
		if answered(replies[0].Err) {
			break
		}
	}
	return replies
}

// answered reports whether a server answered, be it with an error.
func answered(err error) bool {
	var answer *transport.ServerError
	return err == nil || errors.As(err, &answer)
}
