package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/signalbox-io/signalbox/engine/check"
)

func (a *app) checkRDBCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check-rdb FILE", Short: "Look for damage in an RDB file, and show what it holds", Args: exactly("FILE"),
		Long: `Read an RDB file of an engine, of Redis or of Valkey, show what it holds, and where
it is damaged. The exit status is 0 if it is whole and its checksum right, and else 1.

JSON: {file, size_bytes, version, aux: [{name, value}], functions, databases: [{db,
keys, volatile, expired, types}], ok_up_to, last_key, problem}.`,
		RunE: func(_ *cobra.Command, args []string) error {
			progress := a.newProgress()
			report, err := check.RDB(args[0], progress.reading)
			progress.clear()
			if err != nil {
				return absent(err, args[0], "an RDB file, as signalbox backup writes it")
			}
			if a.json {
				err = a.printJSON(report)
			} else {
				err = a.printRDB(report)
			}
			if err == nil && report.Problem != "" {
				return &exitError{status: exitFailure} // it has been said
			}
			return err
		},
	}
}

func keysOf(report *check.RDBReport) (keys int) {
	for _, db := range report.Databases {
		keys += db.Keys
	}
	return keys
}

func (a *app) printRDB(report *check.RDBReport) error {
	fmt.Fprintf(a.stdout, "%s: RDB version %d, %d bytes\n", printable(report.File), report.Version, report.SizeBytes)
	for _, aux := range report.Aux {
		fmt.Fprintf(a.stdout, "  %s = %s\n", printable(aux.Name), printable(aux.Value))
	}
	if report.Functions > 0 {
		fmt.Fprintf(a.stdout, "  functions: %d %s\n", report.Functions, plural(report.Functions, "library", "libraries"))
	}
	if len(report.Databases) > 0 {
		t := newTable(">DB", ">KEYS", ">WITH EXPIRY", ">EXPIRED", "TYPES")
		for _, db := range report.Databases {
			var types []string
			for _, name := range slices.Sorted(maps.Keys(db.Types)) {
				types = append(types, fmt.Sprintf("%d %s", db.Types[name], name))
			}
			t.add(strconv.Itoa(db.DB), strconv.Itoa(db.Keys), strconv.Itoa(db.Volatile), strconv.Itoa(db.Expired), strings.Join(types, ", "))
		}
		if err := t.print(a.stdout); err != nil {
			return err
		}
	}
	if report.Problem == "" {
		_, err := fmt.Fprintf(a.stdout, "Whole: %s, and the checksum is right.\n", count(keysOf(report), "key"))
		return err
	}
	after := ""
	if report.LastKey != "" {
		after = ", after the key " + printable(report.LastKey)
	}
	_, err := fmt.Fprintf(a.stdout, "Damaged at byte %d%s: %s\n", report.OKUpTo, after, report.Problem)
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
