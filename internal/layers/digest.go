// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

// content is Content with the digests that a status may have.
func (o Observation) content(dir *directories.Directory, version string) ([]dependents.Dependent, error) {
	wanted, err := Content(dir, o.Layer.Name, version, o.Scopes)
	for i := range wanted {
		if obj := wanted[i].Object; obj != nil && wanted[i].Digest != "" && digests.IsSecret(obj) {
			wanted[i].Digest = o.Settings.DigestKey.OfObject(obj)
		}
	}
	return wanted, err
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
