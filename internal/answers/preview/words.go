// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Heading says what the plan is of, with the address of the cluster where only those
// see it who know that.
func (p *Plan) Heading(withAddress bool) string {
	text := "Plan of " + p.From
	if p.Revision != "" && !strings.Contains(p.From, p.Revision) {
		text += " (" + p.Revision + ")"
	}
	if p.Cluster != "" {
		text += ", for Kubernetes " + cmp.Or(p.Kubernetes, "of an unknown version")
		if withAddress {
			text += " at " + p.Cluster
		}
		return text
	}
	text += ", for an empty cluster"
	if p.Kubernetes != "" {
		text += " of Kubernetes " + p.Kubernetes
	}
	return text
}

// Versions says which version of the chart becomes which.
func (a Action) Versions() string {
	switch {
	case a.From == "" || a.Action == Install:
		return a.To
	case a.To == "":
		return a.From + " -> -"
	}
	return a.From + " -> " + a.To
}

// Remark says what there is to know beside the columns.
func (a Action) Remark() string {
	note := a.Note
	if a.After != "" {
		note = joined(strings.ReplaceAll(note, "after its grace", "after its grace of "+a.After), "")
		if !strings.Contains(note, a.After) {
			note = joined(note, "after "+a.After)
		}
	}
	switch {
	case a.Unknown != "":
		note = joined(note, "objects not known")
	case a.Object.Kind == "HelmRelease":
		made := slices.DeleteFunc(slices.Clone(a.Changes), func(change ObjectChange) bool { return change.Object == a.Object })
		if len(made) > 0 {
			note = joined(note, Count(made))
		}
	}
	return note
}

// Count says how many objects change, and how.
func Count(changes []ObjectChange) string {
	counts := map[string]int{}
	for _, change := range changes {
		counts[change.Verb]++
	}
	var parts []string
	for _, verb := range []string{"create", "change", "delete"} {
		if count := counts[verb]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, map[string]string{"create": "created", "change": "changed", "delete": "deleted"}[verb]))
		}
	}
	noun := "objects"
	if len(changes) == 1 {
		noun = "object"
	}
	return noun + ": " + strings.Join(parts, ", ")
}

// HasDetails tells whether there is more to show than that the object comes or goes.
func (a Action) HasDetails() bool {
	for _, change := range a.Changes {
		if change.Object != a.Object || change.Verb == "change" {
			return true
		}
	}
	return false
}
