package main

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// tellSystemd tells the service manager how things stand, if the unit asks to be told (Type=notify); see sd_notify(3).
func tellSystemd(state string) (err error) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path) // a path that begins with @ is abstract, to package net as well
	if err == nil {
		_, err = conn.Write([]byte(state))
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return fmt.Errorf("tell the service manager: %w", err)
	}
	return nil
}
