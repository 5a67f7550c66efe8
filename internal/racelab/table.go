package racelab

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A schedule is shown as a person follows it with a finger: one row a step, a
// column for each client, the time at the left. In a cell stand what is sent,
// behind an arrow what comes back, and in capitals what the client believes then.

// Mark is how a part of a table stands out.
type Mark int

// The marks.
const (
	Plain Mark = iota
	Heading
	Misfortune
	Holding
)

const (
	timeWidth   = 9
	columnLeast = 24
)

// Table is the schedule as lines of at most about width columns. paint is given
// each piece of text, padded, with how it is to stand out.
func (f *Finding) Table(width int, paint func(Mark, string) string) []string {
	clients := f.names()
	column := max(columnLeast, (width-timeWidth)/len(clients)-2)
	t := table{clients: clients, column: column, paint: paint}
	t.heading()
	for _, row := range merged(f.Rows) {
		t.row(row)
	}
	return t.lines
}

// names are the clients that take part.
func (f *Finding) names() (names []string) {
	for _, row := range f.Rows {
		if row.Client != "" && !slices.Contains(names, row.Client) {
			names = append(names, row.Client)
		}
	}
	slices.Sort(names)
	return names
}

// merged puts a call that begins and its first request into one row, if nothing
// happens in between.
func merged(rows []Row) (all []Row) {
	for _, row := range rows {
		last := len(all) - 1
		begun := last >= 0 && all[last].Call != "" && all[last].Sent == "" && all[last].Event == "" && all[last].Believes == ""
		if begun && all[last].Client == row.Client && row.Call == "" && row.Sent != "" {
			row.Call = all[last].Call
			all[last] = row
			continue
		}
		all = append(all, row)
	}
	return all
}

type table struct {
	clients []string
	column  int
	paint   func(Mark, string) string
	lines   []string
}

func (t *table) heading() {
	line := pad("time", timeWidth)
	for _, name := range t.clients {
		line += "  " + pad(name, t.column)
	}
	t.lines = append(t.lines, t.paint(Heading, strings.TrimRight(line, " ")))
}

// piece is a line of a cell.
type piece struct {
	mark Mark
	text string
}

func (t *table) row(row Row) {
	at := pad(clockTime(row.AtUs), timeWidth)
	if row.Client == "" {
		t.lines = append(t.lines, at+"  "+t.paint(Misfortune, "··· "+row.Event+" ···"))
		return
	}
	before := strings.Repeat(" ", (t.column+2)*max(0, slices.Index(t.clients, row.Client))+2)
	for _, p := range t.cell(row) {
		t.lines = append(t.lines, at+before+t.paint(p.mark, p.text))
		at = pad("", timeWidth)
	}
}

// cell is what stands in the column of a client.
func (t *table) cell(row Row) (pieces []piece) {
	add := func(mark Mark, indent, text string) {
		for i, line := range wrap(text, t.column-utf8.RuneCountInString(indent)) {
			if i > 0 {
				line = strings.Repeat(" ", utf8.RuneCountInString(indent)) + line
			} else {
				line = indent + line
			}
			pieces = append(pieces, piece{mark, line})
		}
	}
	switch {
	case row.Call != "" && row.Sent == "":
		add(Plain, "", row.Call+": begins")
	case row.Call != "":
		add(Plain, "", row.Call+":")
	}
	fault := row.Event
	if fault != "" && !row.Fault {
		add(Plain, "", "("+fault+")")
		fault = ""
	}
	for _, command := range strings.Split(row.Sent, "; ") {
		if command != "" {
			add(Plain, "", command)
		}
	}
	if row.Got != "" {
		add(Plain, "→ ", row.Got)
	}
	if fault != "" {
		add(Misfortune, "✗ ", fault)
	}
	mark := Plain
	switch {
	case strings.HasPrefix(row.Believes, "HOLDS"):
		mark = Holding
	case row.Believes == "LOST":
		mark = Misfortune
	}
	if row.Believes != "" {
		add(mark, "= ", row.Believes)
	}
	return pieces
}

// wrap breaks a text at spaces; a word that is too long is broken anywhere.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), "  "+word
			if utf8.RuneCountInString(line) > width {
				line = word
			}
		}
	}
	return append(lines, line)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func clockTime(us int64) string {
	return fmt.Sprintf("%.3fs", (time.Duration(us) * time.Microsecond).Seconds())
}
