//go:build !linux

package main

import (
	"context"
	"errors"
)

func paceRole(context.Context, []byte) error {
	return errors.New("requests are paced by way of epoll, which this system does not have")
}
