// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/strata-project/strata/api/v1alpha1"
)

// record is what the layers of a cluster remember of how it was moved.
type record struct {
	// before is what the cluster had before the roll-out to target first moved it.
	before, target string
	// from is what it had before it was moved last, and moved when that was; zero
	// where it never was.
	from  string
	moved time.Time
	// inputs are those that the cluster has, and inputsBefore those that it had before the
	// roll-out to target first moved it, as JSON; empty where they do not go in stages.
	inputs, inputsBefore string
}

// recordOf reads the record of a layer. What cannot be understood counts for nothing.
func recordOf(layer *v1alpha1.AddonsLayer) record {
	var r record
	r.before, r.target, _ = strings.Cut(layer.Annotations[v1alpha1.PlatformBeforeAnnotation], "@")
	from, at, _ := strings.Cut(layer.Annotations[v1alpha1.PlatformMovedAnnotation], "@")
	if moved, err := time.Parse(time.RFC3339, at); err == nil {
		r.from, r.moved = from, moved
	}
	r.inputs, r.inputsBefore = layer.Annotations[v1alpha1.PlatformInputsAnnotation], layer.Annotations[v1alpha1.PlatformInputsBeforeAnnotation]
	return r
}

// annotations returns the record as layers have it.
func (r record) annotations() map[string]string {
	annotations := map[string]string{}
	if r.target != "" {
		annotations[v1alpha1.PlatformBeforeAnnotation] = r.before + "@" + r.target
	}
	if !r.moved.IsZero() {
		annotations[v1alpha1.PlatformMovedAnnotation] = r.from + "@" + r.moved.UTC().Format(time.RFC3339)
	}
	if r.inputs != "" {
		annotations[v1alpha1.PlatformInputsAnnotation] = r.inputs
	}
	if r.inputsBefore != "" {
		annotations[v1alpha1.PlatformInputsBeforeAnnotation] = r.inputsBefore
	}
	return annotations
}

// move returns the record of a cluster that has a version and is moved in a roll-out
// to a target. Its moment is later than the last one, whatever the clock says: by it
// is told which of two versions a cluster was sent to last.
func (r record) move(has, target string, now time.Time) record {
	next := record{before: has, target: target, from: has, moved: now.UTC().Truncate(time.Second), inputsBefore: r.inputs}
	if r.target == target {
		next.before, next.inputsBefore = r.before, r.inputsBefore
	}
	if !next.moved.After(r.moved) {
		next.moved = r.moved.Add(time.Second)
	}
	return next
}

// sentTo returns the version of a family that layers were sent to last, with its
// record; empty where there are none. Those that were not moved together with the others, because
// writing them has failed or nobody can tell whether they are wanted, have another.
func sentTo(layers []*v1alpha1.AddonsLayer, family string) (version string, last record) {
	for _, layer := range layers {
		if layer.DeletionTimestamp != nil || layer.Labels[v1alpha1.PlatformFamilyLabel] != family {
			continue
		}
		r := recordOf(layer)
		if version == "" || r.moved.After(last.moved) || r.moved.Equal(last.moved) && newer(layer.Spec.Version, version) {
			version, last = layer.Spec.Version, r
		}
	}
	return version, last
}

// newer tells whether a version is newer than another; one that cannot be understood
// is older than all that can.
func newer(a, b string) bool {
	left, errLeft := semver.NewVersion(a)
	right, errRight := semver.NewVersion(b)
	if errLeft != nil || errRight != nil {
		return errLeft == nil || errRight != nil && a > b
	}
	return left.GreaterThan(right)
}
