// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/strata-project/strata/internal/printable"
)

const fonts = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

// SVG returns the graph as a picture that refers to nothing outside it, and has a
// background of its own. What layers wait for shows where the pointer rests.
func (g Graph) SVG() string {
	l := g.lay()
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="%s" font-size="%d">`+"\n",
		l.width, l.height, l.width, l.height, fonts, fontSize)
	text.WriteString("<title>Layers of Strata</title>\n")
	fmt.Fprintf(&text, `<rect width="%.0f" height="%.0f" rx="6" fill="#ffffff"/>`+"\n", l.width, l.height)
	for _, lane := range l.lanes {
		if lane.cluster == "" {
			continue
		}
		fmt.Fprintf(&text, `<g class="cluster"><rect x="%d" y="%.0f" width="%.0f" height="%.0f" rx="6" fill="#f6f8fa" stroke="#6e7781" stroke-dasharray="4 4"/>`,
			margin/2, lane.top, l.width-margin, lane.height)
		fmt.Fprintf(&text, `<text x="%d" y="%.0f" fill="#24292f">cluster %s</text></g>`+"\n", margin, lane.top+lineHeight, escape(lane.cluster))
	}
	for _, edge := range g.Edges {
		l.edge(&text, edge)
	}
	for _, node := range g.Nodes {
		l.node(&text, node)
	}
	text.WriteString("</svg>\n")
	return text.String()
}

func (l layout) node(text *strings.Builder, node Node) {
	at, paint, dashes := l.spots[node.Name], node.colours(), ""
	if node.Missing {
		dashes = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(text, `<g class="node"><title>%s</title>`, escape(node.tip()))
	fmt.Fprintf(text, `<rect x="%.0f" y="%.0f" width="%.0f" height="%d" rx="6" fill="%s" stroke="%s" stroke-width="1.5"%s/>`,
		at.x, at.y, l.nodeWidth, nodeHeight, paint.fill, paint.line, dashes)
	for i, line := range node.lines() {
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(text, `<text x="%.0f" y="%.0f" fill="%s"%s>%s</text>`,
			at.x+10, at.y+float64((i+1)*lineHeight)+2, paint.text, weight, escape(printable.Clip(line, longest)))
	}
	text.WriteString("</g>\n")
}

// edge leads from what is depended on to who depends on it.
func (l layout) edge(text *strings.Builder, edge Edge) {
	from, to := l.spots[edge.DependsOn], l.spots[edge.Layer]
	x1, y1, x2, y2 := from.x+l.nodeWidth, from.y+nodeHeight/2, to.x, to.y+nodeHeight/2
	bend, arrow, labelY := columnGap/2.0, -8.0, (y1+y2)/2-4
	middleX := (x1 + x2) / 2
	if to.x <= from.x {
		// On a cycle, both are in one column: the edge leaves and comes in on the right.
		x2, arrow = to.x+l.nodeWidth, 8.0
		middleX = x1 + bend/2
		y1, y2 = y1+6, y2-6
		if to.y > from.y {
			labelY += lineHeight // below that of the edge back
		}
	}
	into := x2 - bend
	if arrow > 0 {
		into = x2 + bend
	}
	dashes := ""
	if edge.Cycle || edge.Missing {
		dashes = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(text, `<g class="edge"><title>%s</title>`, escape(strings.TrimSpace(edge.Layer+" waits for "+edge.DependsOn+" "+edge.label())))
	fmt.Fprintf(text, `<path d="M%.0f,%.0f C%.0f,%.0f %.0f,%.0f %.0f,%.0f" fill="none" stroke="%s" stroke-width="1.5"%s/>`,
		x1, y1, x1+bend, y1, into, y2, x2+arrow, y2, edge.colour(), dashes)
	fmt.Fprintf(text, `<path d="M%.0f,%.0f l%.0f,-4 v8 z" fill="%s"/>`, x2, y2, arrow, edge.colour())
	if label := edge.label(); label != "" {
		fmt.Fprintf(text, `<text x="%.0f" y="%.0f" text-anchor="middle" font-size="%d" fill="%s" stroke="#ffffff" stroke-width="3" paint-order="stroke">%s</text>`,
			middleX, labelY, fontSize-2, edge.colour(), escape(printable.Clip(label, longest/2)))
	}
	text.WriteString("</g>\n")
}

// escape returns a text as XML. What no XML may hold is replaced.
func escape(text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder takes everything
	return escaped.String()
}
