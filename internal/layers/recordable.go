// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// MaxInventory bounds what the inventory of a layer takes in its status, in bytes. An
	// object with its whole status may have no more than 1.5 MiB.
	MaxInventory = 1 << 20
	// maxMoving bounds the same while other objects leave: theirs is a part of it then.
	maxMoving = MaxInventory + MaxInventory/4
	// perEntry is more than an entry has beside its texts.
	perEntry = 320
)

// CheckInventory says why the objects that a layer lists cannot be recorded; nil where they
// can. had is what it has now. What is recorded already is no reason.
func CheckInventory(layer *v1alpha1.AddonsLayer, wanted []dependents.Dependent, had []dependents.Entry) *directories.ContentError {
	entries, listed := make([]dependents.Entry, 0, len(wanted)), make(map[objects.ID]bool, len(wanted))
	for i := range wanted {
		if d := &wanted[i]; d.Mode != dependents.ModeObserve && !d.Shared {
			entries, listed[d.ID] = append(entries, recorded(d)), true
		}
	}
	had = slices.Clone(had)
	for i := range had {
		had[i] = longest(had[i])
	}
	size, current := sizeOf(layer, entries), sizeOf(layer, had)
	if size > MaxInventory && size > current {
		return tooLarge(layer, "lists %d objects, whose inventory takes %s in the status of the layer", len(entries), size, MaxInventory)
	}
	for _, entry := range had {
		if !listed[entry.ID] {
			entries = append(entries, entry)
		}
	}
	if size = sizeOf(layer, entries); size > maxMoving && size > current {
		return tooLarge(layer, "has %d objects with those that are to leave, whose inventory takes %s in the status of the layer", len(entries), size, maxMoving)
	}
	return nil
}

func tooLarge(layer *v1alpha1.AddonsLayer, format string, n, size, most int) *directories.ContentError {
	text := fmt.Sprintf(format, n, kibibytes(size))
	return &directories.ContentError{
		Reason: v1alpha1.ReasonInventoryTooLarge, File: layer.Spec.Source.Path,
		Message: fmt.Sprintf("layer %s %s, and %s are what it can have: divide the directory among several layers, or change it in several steps",
			layer.Name, text, kibibytes(most)),
	}
}

func kibibytes(size int) string { return fmt.Sprintf("%d KiB", (size+1023)/1024) }

// recorded returns what is recorded of an object that is wanted.
func recorded(d *dependents.Dependent) dependents.Entry {
	return longest(dependents.Entry{ID: d.ID, Digest: d.Digest, DependsOn: d.DependsOn, Origin: d.Origin})
}

// longest returns an entry as it is when it has most to say.
func longest(entry dependents.Entry) dependents.Entry {
	entry.UID, entry.Generation, entry.ResourceVersion, entry.Fields = "00000000", 1000, strings.Repeat("0", 12), "00000000"
	entry.Status, entry.Since = "DependencyNotReady", time.Unix(0, 0)
	entry.Completed = objects.IsJobKind(entry.ID.GroupKind())
	return entry
}

// sizeOf returns how many bytes an inventory takes in a status. One that is small by far is
// not written down for that.
func sizeOf(layer *v1alpha1.AddonsLayer, entries []dependents.Entry) int {
	rough := 0
	for i := range entries {
		rough += perEntry + lengthOf(&entries[i])
	}
	if rough < MaxInventory/2 {
		return rough
	}
	data, err := json.Marshal(shortFiles(layer, Resources(entries)))
	if err != nil {
		return rough
	}
	return len(data)
}

func lengthOf(entry *dependents.Entry) int {
	length := len(entry.ID.Cluster) + len(entry.ID.Group) + len(entry.ID.Kind) + len(entry.ID.Namespace) + len(entry.ID.Name) +
		len(entry.Digest) + len(entry.Origin)
	for _, on := range entry.DependsOn {
		length += len(on.Namespace) + len(on.Name) + 4
	}
	return length
}
