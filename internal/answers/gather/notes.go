// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/answers/waits"
	"github.com/strata-project/strata/internal/forecast"
)

// note is one thing that may not be so.
type note struct {
	text string
	// layers that it is about; none where it is about all.
	layers []string
}

// note notes what is about all layers.
func (g *Plan) note(format string, args ...any) { g.noteOf(nil, format, args...) }

// noteOf notes what is about some layers only.
func (g *Plan) noteOf(names []string, format string, args ...any) {
	text := address.Hide(fmt.Sprintf(format, args...))
	at := slices.IndexFunc(g.notes, func(known note) bool { return known.text == text })
	switch {
	case at < 0:
		g.notes = append(g.notes, note{text: text, layers: names})
	case len(names) == 0:
		g.notes[at].layers = nil
	case len(g.notes[at].layers) > 0:
		g.notes[at].layers = append(g.notes[at].layers, names...)
	}
}

// notesOf returns what is about the layers that are named, or about all; everything where
// none is named.
func (g *Plan) notesOf(names []string) []string {
	var texts []string
	for _, known := range g.notes {
		isOf := func(name string) bool { return slices.Contains(known.layers, name) }
		if len(names) == 0 || len(known.layers) == 0 || slices.ContainsFunc(names, isOf) {
			texts = append(texts, known.text)
		}
	}
	return texts
}

// noteWaits notes which layers of a cluster wait for each other by what is in them: none of
// them would ever be deployed.
func (g *Plan) noteWaits(w forecast.World) {
	byCluster := map[string][]waits.Layer{}
	for _, layer := range w.Layers {
		one := waits.Layer{AddonsLayer: layer}
		if content := w.Contents[layer.Name]; content.Directory != nil {
			one.Manifests = content.Directory.Manifests
		}
		where := ""
		if to := layer.Spec.Cluster; to != nil {
			where = to.Namespace + "/" + to.Name
		}
		byCluster[where] = append(byCluster[where], one)
	}
	told := map[string]bool{}
	for _, where := range slices.Sorted(maps.Keys(byCluster)) {
		of := waits.GraphOf(byCluster[where])
		for _, layer := range byCluster[where] {
			circle, way := of.Circle(layer.Name)
			if at := strings.Join(circle, " "); circle != nil && !told[at] {
				told[at] = true
				g.noteOf(layersOn(circle), "layers wait for each other through their releases, and none of them is ever deployed: %s: "+
					"remove one of the dependencies, or say wait: false where it is not needed", strings.Join(way, " -> "))
			}
		}
	}
}

// layersOn returns the layers of a circle.
func layersOn(circle []string) []string {
	var names []string
	for _, node := range circle {
		if name, is := strings.CutPrefix(node, waits.LayerPrefix); is {
			names = append(names, name)
		}
	}
	return names
}
