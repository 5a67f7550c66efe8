//go:build !unix

package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
)

// The private local engine rests on Unix sockets and file locks.
var errNoPrivate = errors.New("there is no private local engine on this system: run signalbox serve and give its address with --url")

const maxSocketPath = 103

func isNobody(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func isFull(error) bool { return false }

func ownFolder(string) error { return errNoPrivate }

func listenUnix(string) (net.Listener, error) { return nil, errNoPrivate }

func detach(*exec.Cmd) {}

func leash(*exec.Cmd) {}

func withoutExtras(start func() error) error { return start() }

func terminateProcess(int) error { return errNoPrivate }

var terminationSignals = []os.Signal{os.Interrupt}

var hangup []os.Signal

// secret cannot tell from the mode here.
func secret(fs.FileInfo) error { return nil }

type fileLock struct{}

func tryLock(string) (*fileLock, error) { return nil, errNoPrivate }

func (l *fileLock) write(string) error { return errNoPrivate }
func (l *fileLock) isAt(string) bool   { return true }
func (l *fileLock) release()           {}
