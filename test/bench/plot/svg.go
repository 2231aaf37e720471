// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plot draws what benchmarks measured as SVG images that are the same
// for the same results, and that can be read on a light and on a dark page.
package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"

	"github.com/strata-project/strata/test/bench/report"
)

// style are the colours of a light page, and those of a dark one where the
// viewer tells. The defaults can be read on both.
const style = `text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #6e7781 }
.title { font-size: 14px; font-weight: 600 }
.small { font-size: 11px }
.grid { stroke: #8c959f; stroke-opacity: .3; stroke-width: 1 }
.axis { stroke: #8c959f; stroke-width: 1 }
.guide { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 4; fill: none }
.line { stroke-width: 2; fill: none }
@media (prefers-color-scheme: dark) { text { fill: #b1bac4 } }
`

// look is how a system is drawn: by colour, and by a shape for those who do
// not tell the colours apart.
type look struct {
	title, colour, shape string
}

// looks are those of all known systems, in the order of the legend.
var looks = []struct {
	system string
	look
}{
	{report.Plain, look{"plain client-go, apply (the limit)", "#7d8590", "square"}},
	{report.PlainCreate, look{"plain client-go, create", "#a371b7", "cross"}},
	{report.Strata, look{"Strata", "#2f81f7", "circle"}},
	{report.KustomizeTuned, look{"kustomize-controller, tuned", "#d98200", "triangle"}},
	{report.Kustomize, look{"kustomize-controller, defaults", "#d1453b", "diamond"}},
}

// lookOf returns how a system is drawn; an unknown one has its name and a
// colour of its own.
func lookOf(system string) look {
	for _, l := range looks {
		if l.system == system {
			return l.look
		}
	}
	return look{title: system, colour: "#2da44e", shape: "circle"}
}

// canvas is an SVG image that is being drawn. Lengths are in pixels from the
// upper left corner.
type canvas struct {
	body          bytes.Buffer
	width, height float64
}

// bytes returns the image, with a title and a description for those who cannot
// see it.
func (c *canvas) bytes(title, description string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%[1]s" height="%[2]s" role="img">`+"\n",
		number(c.width), number(c.height))
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n<style>\n%s</style>\n", escape(title), escape(description), style)
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func (c *canvas) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&c.body, `<text x="%s" y="%s" text-anchor="%s"`, number(x), number(y), anchor)
	if class != "" {
		fmt.Fprintf(&c.body, ` class="%s"`, class)
	}
	fmt.Fprintf(&c.body, ">%s</text>\n", escape(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.body, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`+"\n",
		number(x1), number(y1), number(x2), number(y2), class)
}

func (c *canvas) bar(x, y, width, height float64, colour string) {
	fmt.Fprintf(&c.body, `<rect x="%s" y="%s" width="%s" height="%s" rx="2" fill="%s"/>`+"\n",
		number(x), number(y), number(width), number(height), colour)
}

// polyline draws a line through points.
func (c *canvas) polyline(points []point, colour string) {
	places := make([]string, 0, len(points))
	for _, p := range points {
		places = append(places, number(p.x)+","+number(p.y))
	}
	fmt.Fprintf(&c.body, `<polyline points="%s" class="line" stroke="%s"/>`+"\n", strings.Join(places, " "), colour)
}

// marker draws the shape of a system.
func (c *canvas) marker(at point, l look) {
	const r = 4
	x, y := at.x, at.y
	switch l.shape {
	case "square":
		c.shape(l.colour, point{x - r, y - r}, point{x + r, y - r}, point{x + r, y + r}, point{x - r, y + r})
	case "triangle":
		c.shape(l.colour, point{x, y - r - 1}, point{x + r + 1, y + r}, point{x - r - 1, y + r})
	case "diamond":
		c.shape(l.colour, point{x, y - r - 1}, point{x + r + 1, y}, point{x, y + r + 1}, point{x - r - 1, y})
	case "cross":
		c.polyline([]point{{x - r, y - r}, {x + r, y + r}}, l.colour)
		c.polyline([]point{{x - r, y + r}, {x + r, y - r}}, l.colour)
	default:
		fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="%d" fill="%s"/>`+"\n", number(x), number(y), r, l.colour)
	}
}

func (c *canvas) shape(colour string, corners ...point) {
	places := make([]string, 0, len(corners))
	for _, p := range corners {
		places = append(places, number(p.x)+","+number(p.y))
	}
	fmt.Fprintf(&c.body, `<polygon points="%s" fill="%s"/>`+"\n", strings.Join(places, " "), colour)
}

// legend draws the shapes and titles of systems in rows from a place on, and
// returns the height that it took.
func (c *canvas) legend(x, y float64, systems []string) float64 {
	const row, letter, gap = 20, 6.2, 34
	left, top := x, y
	for _, system := range systems {
		l := lookOf(system)
		width := letter*float64(len(l.title)) + gap
		if left > x && left+width > c.width {
			left, top = x, top+row
		}
		c.marker(point{left + 5, top}, l)
		c.text(left+15, top+4, "start", "", l.title)
		left += width
	}
	return top - y + row
}

type point struct{ x, y float64 }

// number writes a length with at most one digit behind the point.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	text = strings.TrimSuffix(text, ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

func escape(text string) string {
	var out bytes.Buffer
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		panic(err) // a buffer takes everything
	}
	return out.String()
}
