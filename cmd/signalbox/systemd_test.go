//go:build unix

package main

import (
	"net"
	"path/filepath"
	"testing"
)

func TestTheServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	if err := tellSystemd("READY=1"); err == nil {
		t.Error("nobody listens, and nothing is said")
	}
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := manager.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := tellSystemd("READY=1"); err != nil {
		t.Fatal(err)
	}
	told := make([]byte, 100)
	n, err := manager.Read(told)
	if err != nil || string(told[:n]) != "READY=1" {
		t.Errorf("told %q, %v", told[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := tellSystemd("READY=1"); err != nil {
		t.Errorf("nobody asks to be told: %v", err)
	}
}
