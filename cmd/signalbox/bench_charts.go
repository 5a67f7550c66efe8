package main

import (
	"errors"
	"os"

	"github.com/signalbox-io/signalbox/internal/benchmark"
	"github.com/signalbox-io/signalbox/internal/benchmark/chart"
)

// benchCharts are the files that charts go to. They are opened before anything is measured, so that a wrong path is
// known at once.
type benchCharts struct {
	files   []*os.File
	formats []chart.Format
	made    []bool // by us: it was not there before
}

func openCharts(svg, png string) (*benchCharts, error) {
	c := &benchCharts{}
	for _, wanted := range []struct {
		path   string
		format chart.Format
	}{{svg, chart.SVG}, {png, chart.PNG}} {
		if wanted.path == "" {
			continue
		}
		_, missing := os.Stat(wanted.path)
		file, err := os.OpenFile(wanted.path, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, errors.Join(usage("--%s: %w", wanted.format, err), c.abandon())
		}
		c.files, c.formats, c.made = append(c.files, file), append(c.formats, wanted.format), append(c.made, missing != nil)
	}
	return c, nil
}

// draw draws the report into all files.
func (c *benchCharts) draw(report *benchmark.Report) error {
	var errs []error
	for i, file := range c.files {
		err := file.Truncate(0)
		if err == nil {
			err = chart.Draw(file, report, c.formats[i])
		}
		errs = append(errs, err, file.Close())
	}
	return errors.Join(errs...)
}

// abandon leaves the files as they were.
func (c *benchCharts) abandon() error {
	var errs []error
	for i, file := range c.files {
		errs = append(errs, file.Close())
		if c.made[i] {
			errs = append(errs, os.Remove(file.Name()))
		}
	}
	return errors.Join(errs...)
}
