package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// benchEngine is the engine that `bench` measures when no server is given: one of its own, in another process, so that
// neither the private local engine is held up nor the measuring and the measured share a scheduler. It listens on
// loopback and on a Unix socket, in a folder that is removed with it.
type benchEngine struct {
	url    string
	folder string
	cmd    *exec.Cmd
	ended  chan error // has one value when the process has ended
}

func startBenchEngine(ctx context.Context) (*benchEngine, error) {
	folder, err := os.MkdirTemp("", "signalbox-bench-")
	if err != nil {
		return nil, err
	}
	e := &benchEngine{folder: folder, ended: make(chan error, 1)}
	if err := e.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), os.RemoveAll(folder))
		}
		return nil, errors.Join(&exitError{exitUnavailable, fmt.Errorf("the engine could not be started: %w", err)}, os.RemoveAll(folder))
	}
	return e, nil
}

// start runs the engine, and waits until it says where it is reached.
func (e *benchEngine) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	e.cmd = exec.Command(program)
	e.cmd.Args = []string{"signalbox", "serve", "--json", "--listen", "127.0.0.1:0"}
	if socket := filepath.Join(e.folder, "engine.sock"); runtime.GOOS != "windows" && len(socket) <= maxSocketPath {
		e.cmd.Args = append(e.cmd.Args, "--unix", socket)
	}
	e.cmd.Stderr = os.Stderr
	leash(e.cmd) // Ctrl-C is for us: the keys are removed first
	said, output := io.Pipe()
	e.cmd.Stdout = output
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the process ends with the thread that started it
		defer runtime.UnlockOSThread()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			err = e.cmd.Wait()
			_ = output.CloseWithError(errors.New("it ended at once")) // it never fails
			e.ended <- err
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	err = e.await(ctx, said)
	if err != nil {
		_ = e.end() // how it ends matters no more
	}
	return err
}

// await reads where the engine is reached.
func (e *benchEngine) await(ctx context.Context, said *io.PipeReader) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = said.CloseWithError(context.Cause(ctx)) })()
	var doors struct {
		TCP string `json:"tcp"`
	}
	if err := json.NewDecoder(said).Decode(&doors); err != nil {
		return err
	}
	e.url = (&url.URL{Scheme: "redis", Host: doors.TCP}).String()
	return nil
}

// stop ends the engine and removes its folder.
func (e *benchEngine) stop() error { return errors.Join(e.end(), os.RemoveAll(e.folder)) }

// end ends the process and waits for it.
func (e *benchEngine) end() error {
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		_ = e.cmd.Process.Kill() // there is no such signal here, or it has ended
	}
	patience := time.NewTimer(stopWithin)
	defer patience.Stop()
	select {
	case err := <-e.ended:
		return err
	case <-patience.C:
		return errors.Join(fmt.Errorf("the engine did not end within %v", stopWithin), e.cmd.Process.Kill())
	}
}
