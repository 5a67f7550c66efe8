package goredis

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/signalbox-io/signalbox/internal/transport"
)

// neutral tells an error of go-redis in the words of package transport. An error that is told already stays as it is.
func neutral(err error) error {
	if err == nil {
		return nil
	}
	var told *transport.ServerError
	var answer redis.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, redis.Nil):
		// Not the nil of a reply, which is no error here: no Sentinel knows the primary.
		return transport.As(transport.ErrUnsent, err)
	case errors.As(err, &answer):
		return &transport.ServerError{Text: answer.Error(), Err: err}
	case errors.Is(err, redis.ErrClosed):
		return transport.As(transport.ErrClosed, err)
	}
	return err
}

// result is the reply to a command, or its error.
func result(cmd *redis.Cmd) (any, error) {
	value, err := cmd.Result()
	if err == redis.Nil { //nolint:errorlint // wrapped, it is something else: see neutral
		return nil, nil
	}
	return value, neutral(err)
}
