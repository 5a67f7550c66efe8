//go:build unix

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
)

// Commands of the scripts for what `bench` writes:
//
//	report FILE PART…   the file is a report in JSON, with these parts and no others
//	picture SVG         the file is a picture

func checkReport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: report file part…")
	}
	decoder := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	decoder.DisallowUnknownFields()
	var r benchmark.Report
	ts.Check(decoder.Decode(&r))
	rows := map[string]int{
		"locks": len(r.Locks), "pipelining": len(r.Pipelining), "commands": len(r.Commands), "semaphores": len(r.Semaphores),
	}
	for _, part := range args[1:] {
		if rows[part] == 0 {
			ts.Fatalf("%s has no rows", part)
		}
		delete(rows, part)
	}
	for part, n := range rows {
		if n > 0 {
			ts.Fatalf("%s has %d rows and was not asked for", part, n)
		}
	}
}

func checkPicture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: picture svg")
	}
	decoder := xml.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	for elements := 0; ; elements++ {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) && elements > 100 {
			return
		}
		ts.Check(err)
	}
}
