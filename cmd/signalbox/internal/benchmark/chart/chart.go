// Package chart draws a report of package benchmark as one SVG picture.
//
// Each part that was measured is a table whose cells are bars (panels.go): a row for each thing measured, a column for
// each measure, so that how evenly a lock was shared, how long somebody waited for it and how many were let in too many
// stand beside the rates. Every bar has its figure written beside it. So there are no axes, and nothing depends on the
// widths of letters: the texts are the reader's own font.
//
// To add a panel: a function that returns one for its rows, and a line in panels.
package chart

import (
	"errors"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/signalbox-io/signalbox/cmd/signalbox/internal/benchmark"
)

// Measures of a picture, in the pixels of a screen.
const (
	pictureWidth = 920
	margin       = 16
	labelWidth   = 270 // of the first column
	figureWidth  = 100 // what is kept free for the figure beside the longest bar
	rowHeight    = 18
	barHeight    = 11
	headHeight   = 58 // of a panel, above its first row
	gap          = 22 // below its last
)

// palette is Okabe and Ito's, which people tell apart who see few colours, without those that are faint on white.
var palette = []string{"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"}

// panel is a table of bars.
type panel struct {
	title   string
	labels  string // what the rows are
	columns []column
	rows    []row
}

// column is one measure of all rows.
type column struct {
	title string
	// length is how long the bar of a value is, given the largest; nil is in proportion.
	length func(value, largest float64) float64
}

// row is what was measured of one thing. Rows of one colour belong together.
type row struct {
	label  string
	colour int
	cells  []cell
}

// cell is a bar and the figure beside it.
type cell struct {
	value  float64
	figure string
}

// Draw writes the picture of a report.
func Draw(w io.Writer, report *benchmark.Report) error {
	panels := panels(report)
	if len(panels) == 0 {
		return errors.New("chart: the report is empty")
	}
	height := 2*margin + rowHeight
	for i := range panels {
		height += panels[i].height()
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="Liberation Sans, Arial, Helvetica, sans-serif" font-size="11">`+"\n",
		pictureWidth, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(header(report)))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	text(&out, margin, margin+barHeight, `fill="#606060"`, header(report))
	y := margin + rowHeight + gap/2
	for i := range panels {
		panels[i].draw(&out, y)
		y += panels[i].height()
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

func (p *panel) height() int { return headHeight + len(p.rows)*rowHeight + gap }

// draw draws the panel with its upper edge at y.
func (p *panel) draw(out *strings.Builder, y int) {
	width := (pictureWidth - 2*margin - labelWidth) / len(p.columns)
	text(out, margin, y+14, `font-size="14" font-weight="bold"`, p.title)
	text(out, margin, y+38, `fill="#606060"`, p.labels)
	for c := range p.columns {
		text(out, margin+labelWidth+c*width, y+38, `fill="#606060"`, p.columns[c].title)
	}
	line(out, y+46)
	for r, row := range p.rows {
		top := y + headHeight + r*rowHeight
		if r > 0 && row.colour != p.rows[r-1].colour {
			line(out, top-(rowHeight-barHeight)/2)
		}
		text(out, margin, top+barHeight-1, "", row.label)
		for c, cell := range row.cells {
			left := margin + labelWidth + c*width
			length := p.length(c, cell.value) * float64(width-figureWidth)
			fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
				left, top, length, barHeight, palette[row.colour%len(palette)])
			text(out, left+int(length)+5, top+barHeight-1, "", cell.figure)
		}
	}
}

// length is how long a bar is, from 0 to 1.
func (p *panel) length(c int, value float64) float64 {
	largest := 0.0
	for _, row := range p.rows {
		largest = max(largest, row.cells[c].value)
	}
	switch {
	case value <= 0:
		return 0
	case p.columns[c].length != nil:
		return p.columns[c].length(value, largest)
	}
	return value / largest
}

// text writes a text whose baseline is at y.
func text(out *strings.Builder, x, y int, attributes, what string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	fmt.Fprintf(out, `<text x="%d" y="%d"%s>%s</text>`+"\n", x, y, attributes, html.EscapeString(what))
}

// line draws a line from side to side.
func line(out *strings.Builder, y int) {
	fmt.Fprintf(out, `<path d="M%d %dH%d" stroke="#c8c8c8"/>`+"\n", margin, y, pictureWidth-margin)
}

// header says what was measured, where, how and when.
func header(r *benchmark.Report) string {
	cpu := r.Machine.CPU
	if cpu == "" {
		cpu = r.Machine.OS + "/" + r.Machine.Arch
	}
	rounds := ""
	if r.Rounds > 1 {
		rounds = fmt.Sprintf(", %d rounds", r.Rounds)
	}
	return fmt.Sprintf("%s · %s, %d cores · cells of %v%s · %s",
		r.Server, cpu, r.Machine.Cores, r.Duration, rounds, r.Started.Format("2006-01-02"))
}
