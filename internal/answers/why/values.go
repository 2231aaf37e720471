// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// Values returns the ConfigMaps and Secrets that releases of a layer on the cluster that
// Strata runs in take values from, with one of these releases each, sorted. What is given
// to releases of other clusters Strata has labelled itself.
func Values(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) ([]objects.ID, map[objects.ID]*unstructured.Unstructured) {
	by := map[objects.ID]*unstructured.Unstructured{}
	for _, release := range s.Of(snapshot.Releases) {
		if release.GetLabels()[v1alpha1.LayerLabel] != layer.Name || layers.TargetOf(release) != "" {
			continue
		}
		for _, id := range kinds.ValuesOf(release) {
			if by[id] == nil {
				by[id] = release
			}
		}
	}
	var all []objects.ID
	for id := range by {
		all = append(all, id)
	}
	slices.SortFunc(all, objects.ID.Compare)
	return all, by
}

// Unwatched adds of which ConfigMaps and Secrets Flux does not see changes at once. labels
// are those of what could be read.
func (w Answer) Unwatched(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, labels map[objects.ID]map[string]string) Answer {
	all, by := Values(s, layer)
	for _, id := range all {
		of, read := labels[id]
		if !read || of[kinds.WatchLabel] == kinds.WatchEnabled {
			continue
		}
		interval, _, _ := unstructured.NestedString(by[id].Object, "spec", "interval")
		w.Notes = append(w.Notes, fmt.Sprintf("a change of %s reaches %s within its interval of %s, not at once: label it %s=%s",
			id, objects.IDOf(by[id]), interval, kinds.WatchLabel, kinds.WatchEnabled))
	}
	return w
}
