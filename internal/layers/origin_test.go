// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// What takes others along goes with a layer only where Strata has created it, whatever
// the object says else, on this cluster and on others, and why it stays is told.
func TestLayerDeletesWhatItHasCreated(t *testing.T) {
	const removed, kept = "Delete: is being removed", "Release: is released and kept"
	for reason, tc := range map[string]struct{ prune, origin, want string }{
		"it is the layer's making, and says that it may go":      {"enabled", "base", removed},
		"it was created for a layer that it has moved from":      {"enabled", "apps", removed},
		"who adopted it does not know what lies in it":           {"enabled", "", kept + ": " + kinds.SparedForeign},
		"it stays by default, and there is nothing to explain":   {"", "base", kept},
		"somebody else's stays by default, and there is nothing": {"", "", kept},
	} {
		for _, cluster := range []string{"", "fleet/prod"} {
			for when, changes := range map[string][]layerChange{"a look": nil, "a deletion": {deleted}} {
				for _, gk := range []schema.GroupKind{namespaceKind, kinds.DefinitionKind} {
					obj := directoriestest.Any(schema.GroupVersion{Group: gk.Group, Version: "v1"}.String(), gk.Kind, "", "x.io").Object.DeepCopy()
					obj.SetLabels(map[string]string{v1alpha1.LayerLabel: "base", v1alpha1.OrphanedLabel: "x"})
					obj.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: tc.prune, v1alpha1.CreatedForAnnotation: tc.origin})
					dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
					l := layer(append([]layerChange{isDeployed(dir)}, changes...)...)
					l.Status.Resources = []v1alpha1.Resource{{
						Cluster: cluster, Kind: kinds.ResourceKind(gk), Name: "x.io", Status: objects.StatusOrphaned, LastTransitionTime: longAgo,
					}}
					id := objects.IDOf(obj).On(cluster)
					d := Decide(observation(l, dir, func(o *Observation) { o.Live[id] = obj }))
					got := ""
					for _, action := range d.Plan.Actions {
						if action.ID == id {
							got += string(action.Verb)
						}
					}
					for _, standing := range d.Plan.Standings {
						if standing.ID == id {
							got += ": " + standing.Message
						}
					}
					if got != tc.want {
						t.Errorf("in %s, %s, %s: got %q, want %q", when, id, reason, got, tc.want)
					}
				}
			}
		}
	}
}

// A layer that leaves everything where it is explains nothing: its author has said so.
func TestDeletionPolicyNeedsNoReason(t *testing.T) {
	namespace := directoriestest.Any("v1", "Namespace", "", "space").Object.DeepCopy()
	namespace.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	namespace.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "enabled"})
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	l := layer(isDeployed(dir), deleted, func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	l.Status.Resources = []v1alpha1.Resource{{Kind: "Namespace", Name: "space", LastTransitionTime: longAgo}}
	for _, action := range Decide(observation(l, dir, lives(namespace))).Plan.Actions {
		if action.Verb != dependents.VerbRelease || action.Spared != "" {
			t.Errorf("%s %s because %q", action.Verb, action.ID, action.Spared)
		}
	}
}

// Which objects are to say for whom they are created follows from their kind.
func TestContentNotesOrigins(t *testing.T) {
	dir := directoriestest.Of(newRevision,
		directoriestest.HelmRelease("a"), directoriestest.Any("v1", "Namespace", "", "space"), directoriestest.Any("v1", "ConfigMap", "default", "flags"),
		directoriestest.Any("v1", "PersistentVolumeClaim", "default", "data"),
		directoriestest.Any("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.x.io"))
	ensured := directoriestest.Any("v1", "Namespace", "", "ensured")
	ensured.Ensured = true
	dir.Manifests = append(dir.Manifests, ensured)
	wanted, err := Content(dir, "base", "1.0.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, d := range wanted {
		if d.NotesOrigin {
			got[d.ID.Name] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"space": true, "data": true, "widgets.x.io": true}, got); diff != "" {
		t.Errorf("what belongs to nobody was created for nobody (-want +got):\n%s", diff)
	}
}
