// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Releases of another cluster that have names with the short hash of before are
// taken over under the names of today, all of them at one look: suspended and
// succeeded, and never uninstalled.
func TestReleasesWithShortNamesAreTakenOver(t *testing.T) {
	const releases = 6
	var manifests []directories.Manifest
	for i := range releases {
		manifests = append(manifests, directoriestest.HelmRelease(fmt.Sprintf("r%d", i)))
	}
	dir := directoriestest.Of(newRevision, manifests...)
	o := observation(layer(), dir, onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
	l := o.Layer
	l.Status.State, l.Status.ObservedGeneration, l.Status.Version, l.Status.Cluster = v1alpha1.StateDeployed, l.Generation, "1.0.0", "fleet/prod"
	l.Status.Revision, l.Status.Digest = o.Directory.Revision, o.Directory.Digest
	l.Status.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Revision: o.Directory.Revision, Digest: o.Directory.Digest, StartTime: longAgo}
	wanted := map[objects.ID]bool{}
	for _, m := range o.Directory.Manifests {
		if m.ID().GroupKind() != kinds.HelmReleaseKind {
			continue
		}
		wanted[m.ID()] = true
		old := m.Object.DeepCopy()
		old.SetName(old.GetName()[:len("prod-r0-")] + "0123abcd")
		old.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
		old.SetGeneration(1)
		old.SetUID("uid-of-before")
		old.SetResourceVersion("7")
		old.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		lives(old)(&o)
		identity := kinds.HelmReleaseIdentity(old)
		o.Exclusive[identity] = append(o.Exclusive[identity], objects.IDOf(old))
		l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{
			Kind: kinds.ResourceKind(kinds.HelmReleaseKind), Namespace: "fleet", Name: old.GetName(), Status: objects.StatusReady, Digest: "x", Generation: 1, LastTransitionTime: longAgo,
		})
	}
	d := Decide(o)
	if d.State != v1alpha1.StateApplying {
		t.Fatalf("it is %s (%s): %s", d.State, d.Reason, d.Message)
	}
	for id := range wanted {
		if !slices.ContainsFunc(d.Plan.Of(dependents.VerbWrite), func(a dependents.Action) bool { return a.ID == id }) {
			t.Errorf("%s is not written", id)
		}
	}
	if superseded := d.Plan.Of(dependents.VerbSupersede); len(superseded) != releases {
		t.Errorf("%d releases are superseded, want %d: %s", len(superseded), releases, verbs(d.Plan))
	}
	for _, verb := range []dependents.Verb{dependents.VerbMark, dependents.VerbDelete, dependents.VerbRelease} {
		for _, action := range d.Plan.Of(verb) {
			t.Errorf("%s %s", verb, action.ID)
		}
	}
}
