package main

import (
	"errors"
	"os"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark/chart"
)

// benchChart is the file that the chart goes to, if one was asked for. It is opened before anything is measured, so that
// a wrong path is known at once.
type benchChart struct {
	file *os.File // nil: none was asked for
	made bool     // by us: it was not there before
}

func openChart(path string) (*benchChart, error) {
	if path == "" {
		return &benchChart{}, nil
	}
	_, missing := os.Stat(path)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, usage("--svg: %w", err)
	}
	return &benchChart{file, missing != nil}, nil
}

// draw draws the report into the file.
func (c *benchChart) draw(report *benchmark.Report) error {
	if c.file == nil {
		return nil
	}
	err := c.file.Truncate(0)
	if err == nil {
		err = chart.Draw(c.file, report)
	}
	return errors.Join(err, c.file.Close())
}

// abandon leaves the file as it was.
func (c *benchChart) abandon() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	if c.made {
		err = errors.Join(err, os.Remove(c.file.Name()))
	}
	return err
}
