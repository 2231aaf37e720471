// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"slices"

	"github.com/strata-project/strata/internal/address"
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
