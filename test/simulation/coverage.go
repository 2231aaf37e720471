// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
)

// cell is an event that happens to a layer in a state.
type cell struct{ event, state string }

// coverage counts what has happened in which state.
type coverage map[cell]int

func (c coverage) add(event, state string) { c[cell{event, state}]++ }

func (c coverage) merge(other coverage) {
	for at, count := range other {
		c[at] += count
	}
}

// String is the table of events and states.
func (c coverage) String() string {
	table := &strings.Builder{}
	fmt.Fprintf(table, "%-28s", "event")
	for _, state := range states {
		fmt.Fprintf(table, "%13s", state)
	}
	for _, e := range events {
		fmt.Fprintf(table, "\n%-28s", e.name)
		for _, state := range states {
			switch count := c[cell{e.name, state}]; {
			case count > 0:
				fmt.Fprintf(table, "%13d", count)
			case impossible(e.name, state) != "":
				fmt.Fprintf(table, "%13s", "-")
			default:
				fmt.Fprintf(table, "%13s", "EMPTY")
			}
		}
	}
	for _, outcome := range outcomes {
		fmt.Fprintf(table, "\n%-50s%d", outcome, c[cell{outcome, ""}])
	}
	return table.String()
}

// outcomes are what events of several kinds lead to together, and what has to
// happen for the rules of other clusters to be tried.
const (
	suspendedByLoss  = "release suspended because its cluster is away"
	resumedAfterLoss = "release resumed when its cluster is back"
	leftWhileAway    = "layer moved off a cluster that is away"
	uninstallWaits   = "uninstallation waits for a cluster"
	releaseForsaken  = "release of a cluster that was given up deleted"
	objectForsaken   = "object of a cluster that was given up forgotten"
	copyMadeAnew     = "copy of a kubeconfig made anew"
	copyKept         = "deleted copy kept for an uninstallation"
	copyRefreshed    = "deleted copy follows the Secret"
	remoteWaits      = "deleted RemoteCluster waits for layers"
	remoteGone       = "RemoteCluster gone"
	clusterMistaken  = "another cluster answers than before"
	spaceDeleted     = "Namespace deleted with what lists it"
	spaceKept        = "Namespace let go that was there before"
	lookedPast       = "object looked for past the cache of its cluster"
)

var outcomes = []string{
	suspendedByLoss, resumedAfterLoss, leftWhileAway, uninstallWaits, releaseForsaken, objectForsaken, copyMadeAnew, copyKept, copyRefreshed,
	remoteWaits, remoteGone, clusterMistaken, spaceDeleted, spaceKept, lookedPast,
}

// saw counts an outcome.
func (c coverage) saw(outcome string) { c.add(outcome, "") }

// problems lists the cells that are empty without a reason, and the reasons that
// do not hold.
func (c coverage) problems() []string {
	var found []string
	for _, outcome := range outcomes {
		if c[cell{outcome, ""}] == 0 {
			found = append(found, fmt.Sprintf("never seen: %s", outcome))
		}
	}
	for _, e := range events {
		for _, state := range states {
			reason := impossible(e.name, state)
			switch count := c[cell{e.name, state}]; {
			case count == 0 && reason == "" && !isRare(e.name, state):
				found = append(found, fmt.Sprintf("%q never happened to a layer that is %s", e.name, state))
			case count > 0 && reason != "":
				found = append(found, fmt.Sprintf("%q happened to a layer that is %s, although %s", e.name, state, reason))
			}
		}
	}
	return found
}

// impossible says why an event cannot happen in a state; "" where it can.
func impossible(event, state string) string {
	edits := slices.Contains(editsOfLayers, event)
	switch {
	case state == "absent" && edits:
		return "there is no layer to change"
	case state != "absent" && event == "layer created again":
		return "the layer is there"
	case state == "Deleting" && event == "layer deleted":
		return "it is being deleted already"
	case state == "new" && slices.Contains(editsOfObjects, event):
		return "" // on a cluster that was given up something of a former layer of the name is left
	case (state == "absent" || state == "new") && (slices.Contains(editsOfReleases, event) || slices.Contains(editsOfObjects, event)):
		return "a layer that is not there, or was never looked at, has no releases"
	}
	return ""
}

// isRare tells whether an event may not happen in a state although it can: a copy of
// a kubeconfig is there before a layer is looked at first only where that layer came
// late, and an object only where a former layer of the name has left it behind.
func isRare(event, state string) bool {
	return state == "new" && (event == "copy deleted by hand" || event == "credentials swapped" || slices.Contains(editsOfObjects, event))
}

// editsOfLayers want a layer that is there.
var editsOfLayers = []string{
	"version and content", "version", "prereqs", "prereqs in a circle", "prereqs of the cluster",
	"hold by annotation", "hold until", "hold by spec", "hold with releases", "hold ends", "interval", "grace",
	"rollback enabled", "rollback asked for", "allow-empty", "allow-prune", "allow-break", "force-delete", "layer deleted",
	"layer moved to a cluster", "layer flees its cluster", "layer abandoned", "foreign Namespace listed",
}

// editsOfReleases want a release that belongs to the layer.
var editsOfReleases = []string{
	"release drifts", "release deleted by hand", "release suspended by hand", "release resumed by hand",
	"label taken off", "orphaned label forged", "release fails", "release heals",
}

// editsOfObjects want an object that belongs to the layer and is no release.
var editsOfObjects = []string{"object drifts", "object deleted by hand", "Namespace loses its label"}
