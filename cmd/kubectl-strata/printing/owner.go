// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/owner"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

// Owner returns who has an object as lines that fit the screen.
func Owner(screen terminal.Screen, o owner.Answer) string {
	var names []string
	for _, each := range o.Chain {
		text := each.Kind + " " + snapshot.Named(each.Namespace, each.Name)
		switch {
		case each.Version != "" && each.Kind == v1alpha1.AddonsLayerKind:
			text += "@" + each.Version
		case each.Version != "":
			text += " " + each.Version
		}
		names = append(names, text)
	}
	var text strings.Builder
	Node{Spans: []Span{{strings.Join(names, " -> "), terminal.Strong}}}.draw(screen, &text, "", "")
	say := func(line string, role terminal.Role) {
		Node{Spans: []Span{{line, role}}}.draw(screen, &text, "  ", "  ")
	}
	if o.Owned {
		line := o.File + " of " + o.Source
		if o.Revision != "" {
			line += " at " + o.Revision
		}
		say(line, terminal.Plain)
		if o.Platform != "" {
			say("of platform "+o.Platform, terminal.Plain)
		}
	} else {
		say("no layer has it", terminal.Warning)
	}
	for _, other := range o.Others {
		say("it seems to belong to "+other, terminal.Plain)
	}
	return text.String()
}
