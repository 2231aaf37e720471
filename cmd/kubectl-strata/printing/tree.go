// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/answers/tree"
	"github.com/strata-project/strata/internal/terminal"
)

// Tree returns a layer as lines: depth 0 is its own, 1 has gates and releases
// below it, 2 what Helm has made and what dependencies depend on, and so on.
// Objects of releases are counted by kind unless each is to be shown.
func Tree(l tree.Layer, depth int, each bool) Node {
	node := Node{Spans: []Span{
		{l.Name + "@" + l.Version, terminal.Strong}, {l.State, terminal.RoleOf(summary.Standing(l.State))},
	}}
	if l.Ready != "-" {
		node.Spans = append(node.Spans, Span{l.Ready + " ready", terminal.Plain})
	}
	if l.Cluster != "" {
		node.Spans = append(node.Spans, Span{"on " + l.Cluster, terminal.Dim})
	}
	if l.Message != "" {
		node.Spans = append(node.Spans, Span{l.Message, terminal.Plain})
	}
	if depth <= 0 {
		return node
	}
	for _, gate := range l.Gates {
		node.Children = append(node.Children, gateNode(gate, depth-1))
	}
	for _, claim := range l.Claims {
		node.Children = append(node.Children, claimNode(claim, depth-1, each))
	}
	for _, release := range l.Releases {
		node.Children = append(node.Children, releaseNode(release, depth-1, each))
	}
	for _, object := range l.Objects {
		node.Children = append(node.Children, objectNode(object))
	}
	return node
}

// sayings are how the kinds of gates begin.
var sayings = map[string]string{
	tree.GateHold: "held:", tree.GateSource: "comes from", tree.GateCluster: "belongs on", tree.GateKubernetes: "needs Kubernetes",
	tree.GateDependency: "needs", tree.GateWaitFor: "waits for",
}

// gateStates are how the states of gates are told.
var gateStates = map[string]Span{
	tree.Open: {"ok", terminal.Good}, tree.Closed: {"closed", terminal.Bad}, tree.Unseen: {"unknown", terminal.Warning},
}

func gateNode(g tree.Gate, depth int) Node {
	if g.Kind == tree.GateHold {
		node := Node{Spans: []Span{{strings.TrimSpace("held: " + g.Seen), terminal.Warning}}}
		if g.Until != "" {
			node.Spans = append(node.Spans, Span{"until " + g.Until, terminal.Warning})
		}
		return node
	}
	node := Node{Spans: []Span{{sayings[g.Kind] + " " + g.Wants, terminal.Plain}, gateStates[g.State]}}
	if g.Seen != "" {
		node.Spans = append(node.Spans, Span{g.Seen, terminal.Dim})
	}
	if depth > 0 {
		for _, need := range g.Needs {
			node.Children = append(node.Children, gateNode(need, depth-1))
		}
	}
	return node
}

func claimNode(c tree.Claim, depth int, each bool) Node {
	node := Node{Spans: []Span{{v1alpha1.CapabilityClaimKind + " " + snapshot.Named(c.Namespace, c.Name), terminal.Plain}}}
	if by := strings.TrimSpace(c.Provider + " " + c.Version); by != "" {
		node.Spans = append(node.Spans, Span{"by " + by, terminal.Plain})
	} else if c.Capability != "" {
		node.Spans = append(node.Spans, Span{c.Capability, terminal.Plain})
	}
	node.Spans = append(node.Spans, Span{c.State, terminal.RoleOf(summary.Standing(c.State))})
	if c.Message != "" {
		node.Spans = append(node.Spans, Span{c.Message, terminal.Plain})
	}
	if depth > 0 {
		node.Children = objectNodes(c.Objects, each)
	}
	return node
}

// objectNodes returns objects as lines, or as one that counts them.
func objectNodes(objects []tree.Object, each bool) []Node {
	switch {
	case len(objects) == 0:
		return nil
	case !each:
		return []Node{{Spans: []Span{{countByKind(objects), terminal.Plain}}}}
	}
	nodes := make([]Node, 0, len(objects))
	for _, object := range objects {
		nodes = append(nodes, objectNode(object))
	}
	return nodes
}

func releaseNode(r tree.Release, depth int, each bool) Node {
	node := Node{Spans: []Span{{"HelmRelease " + snapshot.Named(r.Namespace, r.Name), terminal.Plain}}}
	if r.Version != "" {
		node.Spans = append(node.Spans, Span{r.Version, terminal.Plain})
	}
	node.Spans = append(node.Spans, Span{r.State, terminal.RoleOf(summary.Standing(r.State))})
	if r.Message != "" {
		node.Spans = append(node.Spans, Span{r.Message, terminal.Plain})
	}
	switch {
	case depth <= 0 || len(r.Objects) == 0:
	case r.Cluster != "":
		node.Children = []Node{{Spans: []Span{{countByKind(r.Objects), terminal.Plain}, {"on " + r.Cluster + ", which is not asked", terminal.Dim}}}}
	default:
		node.Children = objectNodes(r.Objects, each)
	}
	return node
}

func objectNode(o tree.Object) Node {
	node := Node{Spans: []Span{{o.Kind + " " + snapshot.Named(o.Namespace, o.Name), terminal.Plain}}}
	if o.State != "" {
		node.Spans = append(node.Spans, Span{o.State, terminal.RoleOf(summary.Standing(o.State))})
	}
	if o.Message != "" {
		node.Spans = append(node.Spans, Span{o.Message, terminal.Dim})
	}
	return node
}

// countByKind says how many objects there are, and of which kinds: "3 objects: 2
// Deployment, 1 Service".
func countByKind(objects []tree.Object) string {
	counts := map[string]int{}
	for _, object := range objects {
		counts[object.Kind]++
	}
	kinds := make([]string, 0, len(counts))
	for kind := range counts {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	noun := "objects"
	if len(objects) == 1 {
		noun = "object"
	}
	return fmt.Sprintf("%d %s: %s", len(objects), noun, strings.Join(kinds, ", "))
}
