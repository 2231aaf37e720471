// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"fmt"
	"strings"

	"github.com/emicklei/dot"
)

// DOT returns the graph in the language of Graphviz.
func (g Graph) DOT() string {
	drawn := dot.NewGraph(dot.Directed)
	for name, value := range map[string]string{"rankdir": "LR", "bgcolor": "white", "fontname": "sans-serif"} {
		drawn.Attr(name, value)
	}
	groups := map[string]*dot.Graph{"": drawn}
	for _, cluster := range g.clusters() {
		if cluster != "" {
			groups[cluster] = drawn.Subgraph("cluster "+cluster, dot.ClusterOption{})
			groups[cluster].Attr("style", "dashed")
		}
	}
	nodes := map[string]dot.Node{}
	for _, node := range g.Nodes {
		nodes[node.Name] = dotNode(groups[node.Cluster], node)
	}
	for _, edge := range g.Edges {
		arrow := drawn.Edge(nodes[edge.DependsOn], nodes[edge.Layer])
		arrow.Attr("color", edge.colour()).Attr("fontname", "sans-serif").Attr("fontsize", "10")
		if label := edge.label(); label != "" {
			arrow.Attr("label", label)
		}
		if edge.Missing || edge.Cycle {
			arrow.Attr("style", "dashed")
		}
	}
	return drawn.String()
}

func dotNode(in *dot.Graph, node Node) dot.Node {
	style, paint := "rounded,filled", node.colours()
	if node.Missing {
		style += ",dashed"
	}
	drawn := in.Node(node.Name)
	for name, value := range map[string]string{
		"label": strings.Join(node.lines(), "\n"), "shape": "box", "style": style, "color": paint.line,
		"fillcolor": paint.fill, "fontcolor": paint.text, "fontname": "sans-serif", "tooltip": node.tip(),
	} {
		drawn.Attr(name, value)
	}
	return drawn
}

// Mermaid returns the graph in the language of Mermaid, which GitHub and GitLab
// draw in Markdown.
func (g Graph) Mermaid() string {
	var text strings.Builder
	text.WriteString("flowchart LR\n")
	ids := map[string]string{}
	for i, node := range g.Nodes {
		ids[node.Name] = fmt.Sprintf("n%d", i+1)
	}
	for i, cluster := range g.clusters() {
		if cluster != "" {
			fmt.Fprintf(&text, "  subgraph c%d[\"cluster %s\"]\n", i, mermaidText(cluster))
		}
		for _, node := range g.Nodes {
			if node.Cluster == cluster {
				g.mermaidNode(&text, ids[node.Name], node)
			}
		}
		if cluster != "" {
			text.WriteString("  end\n")
		}
	}
	for i, edge := range g.Edges {
		arrow := "-->"
		if edge.Missing || edge.Cycle {
			arrow = "-.->"
		}
		if label := edge.label(); label != "" {
			arrow += `|"` + mermaidText(label) + `"|`
		}
		fmt.Fprintf(&text, "  %s %s %s\n", ids[edge.DependsOn], arrow, ids[edge.Layer])
		if edge.Missing || edge.Cycle {
			fmt.Fprintf(&text, "  linkStyle %d stroke:%s\n", i, edge.colour())
		}
	}
	return text.String()
}

func (g Graph) mermaidNode(text *strings.Builder, id string, node Node) {
	lines := make([]string, 0, len(node.lines()))
	for _, line := range node.lines() {
		lines = append(lines, mermaidText(line))
	}
	fmt.Fprintf(text, "    %s[\"%s\"]\n", id, strings.Join(lines, "<br/>"))
	paint, dashes := node.colours(), ""
	if node.Missing {
		dashes = ",stroke-dasharray:5 5"
	}
	fmt.Fprintf(text, "    style %s fill:%s,stroke:%s,color:%s%s\n", id, paint.fill, paint.line, paint.text, dashes)
}

// mermaidText writes everything but letters, digits and harmless marks as Mermaid's
// own entities, so that it is neither HTML, nor Markdown, nor an end of a label.
func mermaidText(text string) string {
	var escaped strings.Builder
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" .-/(),:+@", r) {
			escaped.WriteRune(r)
		} else {
			fmt.Fprintf(&escaped, "#%d;", r)
		}
	}
	return escaped.String()
}
