// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// content is Content with the digests that a status may have.
func (o Observation) content(dir *directories.Directory, version string) ([]dependents.Dependent, error) {
	wanted, err := Content(dir, o.Layer.Name, version, o.Scopes)
	checks, _ := hooks.ChecksOf(o.Layer) // a gate says what is wrong
	for i := range wanted {
		o.rollOut(&wanted[i], checks)
		if obj, written := wanted[i].Object.Get(); written && wanted[i].Digest != "" && (wanted[i].Confidential || digests.IsSecret(obj)) {
			wanted[i].Digest = o.Settings.DigestKey.OfObject(obj, wanted[i].Confidential)
		}
	}
	return wanted, err
}

// rollOut adds what the layer says of how its objects are applied and judged.
func (o Observation) rollOut(d *dependents.Dependent, checks hooks.Checks) {
	gk := d.ID.GroupKind()
	if gk == kinds.VolumeClaimKind && d.Mode != dependents.ModeObserve {
		cluster := d.ID.Cluster
		d.Ready = func(live *unstructured.Unstructured) objects.Standing { return o.volumeClaimStanding(cluster, live) }
	}
	d.Recreate = d.Recreate || o.Layer.Spec.Force && kinds.MayRecreate(gk)
	switch {
	case d.Mode == dependents.ModeObserve || d.Shared:
	case !o.Layer.Spec.Waits() && d.Stage > kinds.StageFoundation:
		d.Judge = func(live *unstructured.Unstructured) objects.Standing {
			return objects.AssessObject(objects.AssessExistence, live)
		}
	case checks[gk] != nil:
		d.Judge = checks.Standing
	}
}

// DigestIn returns the digest by which a status knows what a directory of an artifact
// holds; empty where it does not know.
func DigestIn(status v1alpha1.AddonsLayerStatus, artifact, path string) string {
	is := func(ref *v1alpha1.ArtifactReference) bool {
		return ref != nil && artifact != "" && ref.Digest == artifact && ref.Path == path
	}
	if status.Attempt != nil && is(status.Attempt.Artifact) {
		return status.Attempt.Digest
	}
	for _, entry := range status.History {
		if is(entry.Artifact) {
			return entry.Digest
		}
	}
	return ""
}

// Recognised returns a layer whose status knows its source's directory by the digest
// that this has now: with another key, or with the first one, the digest of the very
// same content is another, and nothing else has changed. Other contents stay as they
// are known. What it goes by is a status, which others may write: it opens no guard,
// and holds no content back that was not gone back from.
func Recognised(layer *v1alpha1.AddonsLayer, source *Source, dir *directories.Directory) *v1alpha1.AddonsLayer {
	if source == nil || dir == nil {
		return layer
	}
	was := DigestIn(layer.Status, source.Digest, layer.Spec.Source.Path)
	if was == "" || was == dir.Digest || !digests.IsKeyed(was) && !digests.IsKeyed(dir.Digest) {
		return layer
	}
	known := layer.DeepCopy()
	status := &known.Status
	renew := func(digest *string) {
		if *digest == was {
			*digest = dir.Digest
		}
	}
	renew(&status.Digest)
	if attempt := status.Attempt; attempt != nil && attempt.Digest == was {
		attempt.Digest, attempt.Allowed, attempt.Refused = dir.Digest, nil, false
	}
	if back := status.Rollback; back != nil && back.Revision == dir.Revision {
		renew(&back.Digest)
	}
	for i := range status.History {
		if entry := &status.History[i]; entry.Digest == was {
			// What is kept of it has a name of the digest that it had.
			entry.Digest, entry.Kept = dir.Digest, false
		}
	}
	return known
}
