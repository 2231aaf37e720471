// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/strata-project/strata/test/bench/report"
)

// ErrNothing is returned when there is no result to draw.
var ErrNothing = errors.New("there is no result to draw")

// panel is one of the diagrams of the curve.
type panel struct{ figure, unit, title string }

var panels = []panel{
	{report.AllDeployed, report.Seconds, "until all layers are Deployed"},
	{report.CPU, report.Seconds, "CPU time of the system"},
	{report.RSS, report.Bytes, "peak memory of the system"},
}

// series are the values of one system by the number of layers.
type series struct {
	system string
	layers []int
	values []float64
}

// Curve draws the cost of each system over the number of layers. Both axes are
// logarithmic, so that cost that grows with the layers is a straight line as
// steep as the dashed one.
func Curve(results []report.Result) ([]byte, error) {
	groups := slices.DeleteFunc(report.Groups(results), func(g report.Group) bool { return g.Scenario != report.Curve })
	if len(groups) == 0 {
		return nil, fmt.Errorf("cannot draw the curve: %w", ErrNothing)
	}
	const width, height, left, top, plotWidth, plotHeight = 940, 366, 62, 72, 228, 230
	c := &canvas{width: width, height: height}
	var systems []string
	drawn := 0
	for i, p := range panels {
		all := seriesOf(groups, p.figure)
		if len(all) == 0 {
			continue
		}
		drawn++
		for _, s := range all {
			if !slices.Contains(systems, s.system) {
				systems = append(systems, s.system)
			}
		}
		x := left + float64(i)*(plotWidth+left+16)
		c.panel(p, all, point{x, top}, plotWidth, plotHeight)
	}
	if drawn == 0 {
		return nil, fmt.Errorf("cannot draw the curve: %w", ErrNothing)
	}
	c.legend(left, 18, inLegend(systems))
	c.text(left, height-8, "start", "small", "Logarithmic axes. The dashed line grows as the number of layers does.")
	title := fmt.Sprintf("Cost over the number of layers, of %d releases each", groups[0].Sizes.Releases)
	return c.bytes(title, "Three diagrams with logarithmic axes: time, CPU time and memory of each system by the number of layers. "+
		"The dashed line shows what grows as the number of layers does."), nil
}

// seriesOf returns the values of a figure of all systems that have it, by
// growing number of layers. What cannot be on a logarithmic axis is left out.
func seriesOf(groups []report.Group, figure string) []series {
	var all []series
	for _, g := range groups {
		for _, s := range g.Systems {
			value, ok := s.Measured(figure)
			if !ok || value <= 0 {
				continue
			}
			i := slices.IndexFunc(all, func(known series) bool { return known.system == s.System })
			if i < 0 {
				all = append(all, series{system: s.System})
				i = len(all) - 1
			}
			all[i].layers = append(all[i].layers, g.Sizes.Layers)
			all[i].values = append(all[i].values, value)
		}
	}
	return all
}

// panel draws one diagram, whose upper left corner is at a place.
func (c *canvas) panel(p panel, all []series, at point, width, height float64) {
	var layers, values []float64
	for _, s := range all {
		values = append(values, s.values...)
		for _, n := range s.layers {
			if !slices.Contains(layers, float64(n)) {
				layers = append(layers, float64(n))
			}
		}
	}
	x := newScale(layers, at.x, at.x+width)
	y := newScale(values, at.y+height, at.y)
	c.text(at.x, at.y-14, "start", "title", p.title)
	for _, tick := range y.ticks() {
		c.line(at.x, y.at(tick), at.x+width, y.at(tick), "grid")
		c.text(at.x-8, y.at(tick)+4, "end", "small", report.Format(tick, p.unit))
	}
	for _, n := range layers {
		c.line(x.at(n), at.y, x.at(n), at.y+height, "grid")
		c.text(x.at(n), at.y+height+18, "middle", "small", report.Format(n, report.Count))
	}
	c.line(at.x, at.y+height, at.x+width, at.y+height, "axis")
	c.line(at.x, at.y, at.x, at.y+height, "axis")
	c.text(at.x+width/2, at.y+height+38, "middle", "small", "layers")
	c.guide(x, y, all)
	for _, s := range all {
		l := lookOf(s.system)
		var points []point
		for i, n := range s.layers {
			points = append(points, point{x.at(float64(n)), y.at(s.values[i])})
		}
		c.polyline(points, l.colour)
		for _, place := range points {
			c.marker(place, l)
		}
	}
}

// guide draws the line of what grows as the layers do, from Strata's first
// value on, as far as it is within the diagram.
func (c *canvas) guide(x, y scale, all []series) {
	i := slices.IndexFunc(all, func(s series) bool { return s.system == report.Strata })
	if i < 0 || len(all[i].layers) < 2 {
		return
	}
	first, last := float64(all[i].layers[0]), float64(all[i].layers[len(all[i].layers)-1])
	value := all[i].values[0]
	end := min(last, first*y.high/value)
	c.line(x.at(first), y.at(value), x.at(end), y.at(value*end/first), "guide")
}

// inLegend orders systems as they are in the legend; unknown ones come last.
func inLegend(systems []string) []string {
	var ordered []string
	for _, l := range looks {
		if slices.Contains(systems, l.system) {
			ordered = append(ordered, l.system)
		}
	}
	for _, s := range systems {
		if !slices.Contains(ordered, s) {
			ordered = append(ordered, s)
		}
	}
	return ordered
}
