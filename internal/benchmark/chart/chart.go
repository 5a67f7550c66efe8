// Package chart draws a report of package benchmark, as one picture with a panel for each part that was measured.
//
// Each panel is a plot of gonum.org/v1/plot with axes that name their units (panels.go); Draw lays them out beside each
// other under a line that says what was measured and where. Colours are those of Okabe and Ito, which people tell apart
// who see few; what differs in colour differs in shape, dash or place as well.
//
// To add a panel: a function that returns a plot for its rows, and a line in panels.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/signalbox-io/signalbox/internal/benchmark"
)

// Format is the kind of file that a picture is written as.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// Measures of a picture.
const (
	panelWidth   = 6.4 * vg.Inch
	panelHeight  = 4.4 * vg.Inch
	headerHeight = 0.4 * vg.Inch
	margin       = 0.15 * vg.Inch
	dpi          = 120
)

// palette is Okabe and Ito's, without the colours that are faint on white.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, // blue
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, // orange
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, // green
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, // vermilion
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, // purple
	color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, // sky
}

func colour(i int) color.Color { return palette[i%len(palette)] }

// grey and pale are for what is not data.
var (
	grey = color.Gray{Y: 0x60}
	pale = color.Gray{Y: 0xc8}
)

// Draw writes the picture of a report.
func Draw(w io.Writer, report *benchmark.Report, format Format) error {
	panels, err := panels(report)
	if err != nil {
		return err
	}
	columns := min(2, len(panels))
	rows := (len(panels) + columns - 1) / columns
	width, height := vg.Length(columns)*panelWidth, vg.Length(rows)*panelHeight+headerHeight
	switch format {
	case SVG:
		canvas := vgsvg.New(width, height)
		lay(draw.New(canvas), report, panels, columns, rows)
		return writeSVG(w, canvas)
	case PNG:
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		lay(draw.New(canvas), report, panels, columns, rows)
		_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	}
	return fmt.Errorf("chart: there is no format %q", format)
}

// writeSVG names fonts of the same widths beside the one that the picture was laid out with: an SVG holds texts, not
// their shapes, and few machines have that one.
func writeSVG(w io.Writer, canvas *vgsvg.Canvas) error {
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(text.Bytes(),
		[]byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

// lay draws the panels, left to right and top to bottom, under the header.
func lay(page draw.Canvas, report *benchmark.Report, panels []*plot.Plot, columns, rows int) {
	page.SetColor(color.White)
	page.Fill(page.Path())
	style := draw.TextStyle{
		Color: color.Black, Font: sans(10), Handler: plot.DefaultTextHandler,
		XAlign: draw.XCenter, YAlign: draw.YCenter,
	}
	middle := vg.Point{X: page.Center().X, Y: page.Max.Y - headerHeight/2}
	page.FillText(style, middle, header(report))
	grid := draw.Tiles{
		Cols: columns, Rows: rows, PadTop: headerHeight, PadX: margin, PadY: margin,
		PadLeft: margin, PadRight: margin, PadBottom: margin,
	}
	for i, p := range panels {
		p.Draw(grid.At(page, i%columns, i/columns))
	}
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
