package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine/check"
)

// checkAOFFlags are what check-aof is asked for.
type checkAOFFlags struct {
	fix, yes  bool
	timestamp int64
}

// checkAOFJSON is the output of `check-aof --json`.
type checkAOFJSON struct {
	*check.AOFReport
	OK      bool        `json:"ok"`
	Discard *check.Tail `json:"discard,omitempty"` // what is behind the whole part of the damaged file
	Trimmed bool        `json:"trimmed"`
}

func (a *app) checkAOFCommand() *cobra.Command {
	var f checkAOFFlags
	cmd := &cobra.Command{
		Use: "check-aof FILE|DIR|MANIFEST", Short: "Look for damage in an append-only file, and cut it off", Args: exactly("FILE, DIR or MANIFEST"),
		Long: `Look for damage in the append-only file of an engine or of Redis: a set with a
manifest, found in its folder or the one above, or a single file. The server must
not be running.

With --fix the file is cut off where the damage begins, at the end of the last
whole request or transaction. Only the last file of a set can be cut. With
--truncate-to-timestamp what was done after that second (of the Unix epoch) is cut
off, where the server has noted the time (aof-timestamp-enabled).

The exit status is 0 if everything is whole, or was made so, and else 1.

JSON: {manifest, files: [{file, type, last, size_bytes, ok_up_to, at, requests, rdb,
problem, torn}], problem, ok, discard: {bytes, requests, lines}, trimmed}.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if f.timestamp < 0 {
				return usage("--truncate-to-timestamp must be seconds since 1970, not %d", f.timestamp)
			}
			return a.checkAOF(args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.fix, "fix", false, "cut the damage off")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	cmd.Flags().Int64Var(&f.timestamp, "truncate-to-timestamp", 0, "cut off what was done after this second")
	return cmd
}

func (a *app) checkAOF(path string, f checkAOFFlags) error {
	progress := a.newProgress()
	report, err := check.AOF(path, f.timestamp, progress.reading)
	progress.clear()
	if err != nil {
		return absent(err, path, "the folder of signalbox serve --dir, or an append-only file")
	}
	out := checkAOFJSON{AOFReport: report, OK: report.OK()}
	if !a.json {
		a.printAOF(report)
	}
	file, size, err := whatToCut(report, f)
	if file != nil && err == nil {
		var tail check.Tail
		if tail, err = check.TailOf(file.File, size); err == nil {
			out.Discard = &tail
			err = a.cutAOF(&out, file.File, size, f)
		}
	}
	if a.json {
		err = errors.Join(a.printJSON(out), err)
	}
	if err == nil && !out.OK && !out.Trimmed {
		return &exitError{status: exitFailure} // it has been said
	}
	return err
}

// whatToCut is the file that could be cut, and where; nil if none.
func whatToCut(report *check.AOFReport, f checkAOFFlags) (*check.AOFFile, int64, error) {
	if report.Problem != "" {
		return nil, 0, nil
	}
	if bad := report.Damaged(); bad != nil {
		switch {
		case f.timestamp != 0:
			return bad, bad.OKUpTo, fmt.Errorf("%s is damaged: repair it with --fix before it is cut to a time", printable(bad.File))
		case f.fix && !bad.Last:
			return bad, bad.OKUpTo, fmt.Errorf("%s is not the last file of its set, and cannot be cut: what follows in the others would be out of order", printable(bad.File))
		case f.fix && bad.RDB != nil && bad.RDB.Problem != "":
			return bad, bad.OKUpTo, fmt.Errorf("%s: its RDB part is damaged, which cannot be repaired", printable(bad.File))
		}
		return bad, bad.OKUpTo, nil
	}
	for i := range report.Files {
		file := &report.Files[i]
		switch {
		case f.timestamp == 0 || file.Later < 0:
		case !file.Last:
			return file, file.Later, fmt.Errorf("%s is not the last file of its set, and cannot be cut", printable(file.File))
		case file.Later == 0:
			return file, file.Later, fmt.Errorf("%s has nothing before that time", printable(file.File))
		default:
			return file, file.Later, nil
		}
	}
	return nil, 0, nil
}

// cutAOF shows what would go, asks, and cuts.
func (a *app) cutAOF(out *checkAOFJSON, path string, size int64, f checkAOFFlags) error {
	if !a.json {
		a.printTail(path, size, out.Discard)
	}
	if !f.fix && f.timestamp == 0 {
		if !a.json {
			fmt.Fprintln(a.stdout, "\nTo cut that off: signalbox check-aof --fix "+printable(path))
		}
		return nil
	}
	if !f.yes {
		if err := a.consent(printable(path), fmt.Sprintf("cut off %d bytes for good?", out.Discard.Bytes), ""); err != nil {
			return err
		}
	}
	if err := check.Trim(path, size); err != nil {
		return err
	}
	out.Trimmed = true
	if !a.json {
		fmt.Fprintf(a.stdout, "\n%s: cut to %d bytes\n", printable(path), size)
	}
	return nil
}

func (a *app) printAOF(report *check.AOFReport) {
	if report.Manifest != "" {
		verdict := count(len(report.Files), "file")
		if report.Problem != "" {
			verdict = report.Problem
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", printable(report.Manifest), verdict)
	}
	for _, file := range report.Files {
		before := ""
		if file.RDB != nil {
			before = fmt.Sprintf("%s as RDB, ", count(keysOf(file.RDB), "key"))
		}
		if file.Problem == "" {
			fmt.Fprintf(a.stdout, "%s (%s): whole: %s%s, %d bytes\n", printable(file.File), file.Type, before, count(file.Requests, "request"), file.SizeBytes)
			continue
		}
		fmt.Fprintf(a.stdout, "%s (%s): damaged at byte %d: %s\n", printable(file.File), file.Type, file.At, file.Problem)
		fmt.Fprintf(a.stdout, "  whole up to byte %d of %d: %s%s\n", file.OKUpTo, file.SizeBytes, before, count(file.Requests, "request"))
	}
}

func (a *app) printTail(path string, size int64, tail *check.Tail) {
	fmt.Fprintf(a.stdout, "\nBehind byte %d of %s are %d bytes, with %s that may begin there:\n", size, printable(path), tail.Bytes, count(tail.Requests, "request"))
	for _, line := range tail.Lines {
		fmt.Fprintf(a.stdout, "  %q\n", line)
	}
}

// reading tells how far the reading of a file is.
func (p *progress) reading(read, size int64) {
	p.say(func() string { return fmt.Sprintf("%d%% of %d MiB", read*100/max(size, 1), size>>20) })
}
