package chart

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/signalbox-io/signalbox/internal/benchmark"
)

// panels are the plots of what was measured.
func panels(r *benchmark.Report) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	var errs []error
	add := func(measured bool, panel func(*benchmark.Report) (*plot.Plot, error)) {
		if measured {
			p, err := panel(r)
			panels, errs = append(panels, p), append(errs, err)
		}
	}
	add(len(r.Locks) > 0, locks)
	add(len(r.Pipelining) > 0, pipelining)
	add(len(r.Commands) > 0, commands)
	add(len(r.Semaphores) > 0, semaphores)
	if len(panels) == 0 {
		return nil, errors.New("chart: the report is empty")
	}
	return panels, errors.Join(errs...)
}

// newPlot is an empty panel.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font = sans(12)
	p.Title.Padding = 8
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sans(10)
		axis.Label.Padding = 4
		axis.Tick.Label.Font = sans(9)
		axis.Color, axis.Tick.Color = grey, grey
	}
	p.Legend.TextStyle.Font = sans(9)
	p.Legend.ThumbnailWidth = 24
	p.Legend.Padding = 2
	return p
}

// sans is the typeface of all texts.
func sans(size font.Length) font.Font {
	return font.Font{Typeface: plot.DefaultFont.Typeface, Variant: "Sans", Size: size}
}

// withGrid adds lines across the panel at the ticks of its value axis.
func withGrid(p *plot.Plot, vertical bool) {
	grid := plotter.NewGrid()
	grid.Vertical.Width, grid.Horizontal.Width = 0, vg.Points(0.4)
	if vertical {
		grid.Vertical.Width, grid.Horizontal.Width = vg.Points(0.4), 0
	}
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale
	p.Add(grid)
}

// locks has a line for each kind of lock: acquires solid, tries dashed.
func locks(r *benchmark.Report) (*plot.Plot, error) {
	p := newPlot("Locks: acquires (solid) and tries (dashed) per second")
	p.X.Label.Text, p.Y.Label.Text = "clients that compete for one lock", "per second"
	p.Y.Min, p.Y.Tick.Marker = 0, thousandTicks{}
	withGrid(p, false)
	kinds, clients := distinct(r.Locks, func(row *benchmark.LockRow) string { return row.Lock }),
		distinct(r.Locks, func(row *benchmark.LockRow) string { return strconv.Itoa(row.Clients) })
	for i, kind := range kinds {
		var acquires, tries plotter.XYs
		for _, row := range r.Locks {
			if row.Lock == kind {
				x := float64(slices.Index(clients, strconv.Itoa(row.Clients)))
				acquires = append(acquires, plotter.XY{X: x, Y: row.AcquiresPerSecond})
				tries = append(tries, plotter.XY{X: x, Y: row.TriesPerSecond})
			}
		}
		if err := addLines(p, i, kind, acquires, tries); err != nil {
			return nil, err
		}
	}
	p.NominalX(clients...)
	p.X.Padding = 12
	legendAbove(p)
	return p, nil
}

// shapes tell series apart without colours.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}}

func addLines(p *plot.Plot, i int, name string, solid, dashed plotter.XYs) error {
	line, points, err := plotter.NewLinePoints(solid)
	if err != nil {
		return err
	}
	thin, err := plotter.NewLine(dashed)
	if err != nil {
		return err
	}
	line.Color, thin.Color, points.Color = colour(i), colour(i), colour(i)
	line.Width, thin.Width = vg.Points(2), vg.Points(1.2)
	thin.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	points.Shape, points.Radius = shapes[i%len(shapes)], vg.Points(4)
	p.Add(thin, line, points)
	p.Legend.Add(name, line, points)
	return nil
}

// legendAbove puts the legend into the upper right corner, and makes room for it above the data.
func legendAbove(p *plot.Plot) {
	p.Legend.Top = true
	p.Y.Max *= 1.3
}

// pipelining has, for each link, one by one and pipelined calls above each other on a logarithmic scale.
func pipelining(r *benchmark.Report) (*plot.Plot, error) {
	p := newPlot("Pipelining: update_token, five commands a call, one client")
	p.X.Label.Text, p.Y.Label.Text = "link (median empty round trip)", "calls per second, logarithmic"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decadeTicks{}
	withGrid(p, false)
	var links []string
	for i, pipelined := range []bool{false, true} {
		var values plotter.XYs
		var texts []string
		links = links[:0]
		for _, row := range r.Pipelining {
			if row.Pipelined == pipelined {
				values = append(values, plotter.XY{X: float64(len(links)), Y: max(row.CallsPerSecond, 0.1)})
				texts = append(texts, short(row.CallsPerSecond))
				links = append(links, fmt.Sprintf("%s\n%.2g ms", row.Link, row.RoundTrip.Seconds()*1000))
			}
		}
		points, err := plotter.NewScatter(values)
		if err != nil {
			return nil, err
		}
		points.Color, points.Shape, points.Radius = colour(i), shapes[i], vg.Points(5)
		p.Add(points)
		p.Legend.Add([]string{"one command at a time", "pipelined"}[i], points)
		beside, align := vg.Point{X: -9}, draw.XRight
		if pipelined {
			beside, align = vg.Point{X: 9}, draw.XLeft
		}
		if err := addLabels(p, values, texts, beside, align); err != nil {
			return nil, err
		}
	}
	p.NominalX(links...)
	p.X.Min, p.X.Max = -0.5, float64(len(links))-0.5
	p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
	p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max*2)))
	p.Legend.Top = true
	return p, nil
}

// middle puts the middle of the digits, not of the whole line, beside a point.
const middle = -0.35

// addLabels writes texts beside points.
func addLabels(p *plot.Plot, at plotter.XYs, texts []string, offset vg.Point, align draw.XAlignment) error {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: at, Labels: texts})
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font = sans(8)
		labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = align, middle
	}
	labels.Offset = offset
	p.Add(labels)
	return nil
}

// commands has a bar for each, the first on top.
func commands(r *benchmark.Report) (*plot.Plot, error) {
	p := newPlot("Commands")
	p.X.Label.Text = "requests per second"
	p.X.Min, p.X.Tick.Marker = 0, thousandTicks{}
	withGrid(p, true)
	n := len(r.Commands)
	values, names := make(plotter.Values, n), make([]string, n)
	ends, texts := make(plotter.XYs, n), make([]string, n)
	for i, row := range r.Commands {
		place := n - 1 - i
		values[place], names[place] = row.RequestsPerSecond, row.Command
		ends[place] = plotter.XY{X: row.RequestsPerSecond, Y: float64(place)}
		texts[place] = short(row.RequestsPerSecond)
	}
	bars, err := plotter.NewBarChart(values, min(vg.Points(14), (panelHeight-vg.Inch)/vg.Length(n)*0.7))
	if err != nil {
		return nil, err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, colour(0), 0
	p.Add(bars)
	if err := addLabels(p, ends, texts, vg.Point{X: 4}, draw.XLeft); err != nil {
		return nil, err
	}
	p.NominalY(names...)
	p.Y.Tick.Label.Font = sans(8)
	p.X.Max *= 1.08
	return p, nil
}

// semaphores has a group of bars for each kind, a bar for each skew.
func semaphores(r *benchmark.Report) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("Semaphores: grants over the limit of %d, %d clients", r.Semaphores[0].Limit, r.Semaphores[0].Clients))
	p.Y.Label.Text = "% of all grants"
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, 10, thousandTicks{}
	withGrid(p, false)
	kinds := distinct(r.Semaphores, func(row *benchmark.SemaphoreRow) string { return row.Semaphore })
	skews := distinct(r.Semaphores, func(row *benchmark.SemaphoreRow) string { return row.Skew.String() })
	width := vg.Points(min(18, 60/float64(len(skews))))
	for i, skew := range skews {
		values := make(plotter.Values, len(kinds))
		ends, texts := make(plotter.XYs, len(kinds)), make([]string, len(kinds))
		for _, row := range r.Semaphores {
			if row.Skew.String() != skew {
				continue
			}
			k := slices.Index(kinds, row.Semaphore)
			values[k], ends[k], texts[k] = row.PercentOver(), plotter.XY{X: float64(k), Y: row.PercentOver()}, percent(&row)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = colour(i), 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(skews)-1)/2)
		p.Add(bars)
		p.Legend.Add("clocks differ by "+skew, bars)
		if err := addLabels(p, ends, texts, vg.Point{X: bars.Offset, Y: 6}, draw.XCenter); err != nil {
			return nil, err
		}
	}
	p.NominalX(kinds...)
	p.X.Min, p.X.Max = -0.5, float64(len(kinds))-0.5
	p.X.Tick.Label.Font = sans(8)
	legendAbove(p)
	return p, nil
}

// percent tells none from few.
func percent(row *benchmark.SemaphoreRow) string {
	switch p := row.PercentOver(); {
	case row.OverLimit == 0:
		return "0"
	case p < 1:
		return "<1"
	default:
		return fmt.Sprintf("%.0f", p)
	}
}

// distinct are the values of a field, in the order in which they come first.
func distinct[R any](rows []R, field func(*R) string) []string {
	var values []string
	for i := range rows {
		if value := field(&rows[i]); !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}
