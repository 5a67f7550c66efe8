package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a person's screen or keyboard.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured reports whether colours may be used on w.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// widthOf is how wide a terminal is, in characters; 0 of anything else, and of one that does not say.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// cut is a text of at most so many characters, the last of them … if there were more.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(0, most-1)]) + "…"
	}
	return text
}

// wrapped breaks a text between words into lines of at most so many characters, unless that are too few for a text.
func wrapped(text string, most int, newline string) string {
	if most < narrowest {
		return text
	}
	var out strings.Builder
	room := most
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case length+1 > room:
			out.WriteString(newline)
			room = most
		default:
			out.WriteString(" ")
			room--
		}
		out.WriteString(word)
		room -= length
	}
	return out.String()
}

func bold(w io.Writer, text string) string {
	if !coloured(w) {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

func (a *app) printJSON(value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table is rows of cells under a heading, aligned. Numbers stand to the right.
type table struct {
	heading []string
	right   []bool
	rows    [][]string
}

func newTable(heading ...string) *table {
	t := &table{right: make([]bool, len(heading))}
	for i, h := range heading {
		t.right[i] = strings.HasPrefix(h, ">")
		t.heading = append(t.heading, strings.TrimPrefix(h, ">"))
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// narrowest is how far a column is cut that has a shorter heading.
const narrowest = 6

// fit cuts what stands in these columns, one after the other, until the table is as wide as the terminal. What goes to a file
// or a program stays whole, and so do the columns that are not named: ids, which people copy, and numbers.
func (t *table) fit(w io.Writer, columns ...string) *table {
	most := widthOf(w)
	for _, name := range columns {
		column, widths := slices.Index(t.heading, name), t.widths()
		over := 2*(len(widths)-1) - most
		for _, width := range widths {
			over += width
		}
		if most == 0 || over <= 0 {
			break
		}
		width := max(widths[column]-over, utf8.RuneCountInString(name), narrowest)
		for _, row := range t.rows {
			row[column] = cut(row[column], width)
		}
	}
	return t
}

func (t *table) print(w io.Writer) error {
	if _, err := fmt.Fprintln(w, bold(w, t.line(t.heading, t.widths()))); err != nil {
		return err
	}
	return t.printRows(w)
}

func (t *table) widths() []int {
	widths := make([]int, len(t.heading))
	for _, row := range append([][]string{t.heading}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// printRows leaves out the heading.
func (t *table) printRows(w io.Writer) error {
	widths := t.widths()
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(w, t.line(row, widths)); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) line(cells []string, widths []int) string {
	var line strings.Builder
	for i, cell := range cells {
		if i > 0 {
			line.WriteString("  ")
		}
		padding := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
		if t.right[i] {
			line.WriteString(padding + cell)
		} else {
			line.WriteString(cell + padding)
		}
	}
	return strings.TrimRight(line.String(), " ")
}

// printable makes a name fit for a screen: what could move the cursor is
// quoted.
func printable(name string) string {
	for _, r := range name {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == utf8.RuneError {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}

// absent says of a file or folder that is not there what to give instead, and leaves other errors as they are.
func absent(err error, path, instead string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("there is no %s here: give %s", printable(absolute(path)), instead)
}

// span is a duration as people say it: 350ms, 12s, 4m05s, 3h20m, 5d.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// ordinal is 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// count is "1 lease", "2 leases".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
