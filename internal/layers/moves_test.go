// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// givenUp has the RemoteCluster fleet/prod be deleted, and what is there be given up.
func givenUp() *v1alpha1.RemoteCluster {
	cluster := remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, time.Hour)
	moment := metav1.NewTime(testNow)
	cluster.DeletionTimestamp, cluster.Spec.DeletionPolicy = &moment, v1alpha1.ClusterDeletionAbandon
	return cluster
}

func forsakes(o *Observation) {
	o.Forsaken = map[string]bool{"fleet/prod": true}
}

// A layer that was about to move to a cluster that is given up keeps what it has
// where it is: nothing is uninstalled for the sake of a cluster that is no more.
func TestNewClusterIsGivenUp(t *testing.T) {
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
	there := live("a", through("prod"))
	base := layer(isDeployed(dir), has(there), annotation(v1alpha1.HoldAnnotation, "freeze"))
	o := observation(base, dir, lives(live("a"), live("b"), there), onProd(givenUp(), forsakes))
	d := Decide(o)
	if got, want := verbs(d.Plan), "Suspend prod-a-12345678"; got != want || d.Reason != v1alpha1.ReasonClusterAbandoned {
		t.Errorf("it is %s and does %q, want %q", d.Reason, got, want)
	}
	status, _ := Report(o, d, nil)
	if len(status.Resources) != 3 || status.Digest != dir.Digest {
		t.Errorf("it has %d objects and the digest %q", len(status.Resources), status.Digest)
	}

	there.SetDeletionTimestamp(&longAgo)
	delete(o.Live, objects.IDOf(there))
	if status, _ := Report(o, Decide(o), nil); len(status.Resources) != 2 {
		t.Errorf("when what is given up has gone it has %d objects", len(status.Resources))
	}
}

// What a layer has because of a cluster whose name begins with that of the one that
// is given up is no reason to take it away.
func TestNamesakeOfAClusterIsNotGivenUp(t *testing.T) {
	put := func(cluster string) *unstructured.Unstructured {
		place := placement.Place{Layer: "base", Cluster: types.NamespacedName{Namespace: "fleet", Name: cluster}}
		placed, err := place.Put(directoriestest.Of(newRevision, directoriestest.Any(sources.Group+"/v1", "HelmRepository", "default", "charts")))
		if err != nil {
			t.Fatal(err)
		}
		obj := placed.Manifests[0].Object
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
		return obj
	}
	gone, namesake := put("prod"), put("prod-eu")
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	o := observation(layer(isDeployed(dir), has(gone, namesake)), dir, lives(gone, namesake), onProd(givenUp(), forsakes))
	o.Scopes[objects.ServedKind{GroupKind: kinds.HelmRepositoryKind}] = objects.ScopeNamespaced
	for _, action := range Decide(o).Plan.Actions {
		if action.ID.Name == namesake.GetName() {
			t.Errorf("%s %s", action.Verb, action.ID)
		}
	}
	if got := verbs(Decide(o).Plan); got != "Mark "+gone.GetName() {
		t.Errorf("it does %q, want what is of the cluster that is given up be marked", got)
	}
}

// Where such a layer is being deleted all goes, and what it has elsewhere in time.
func TestNewClusterIsGivenUpOfDeletedLayer(t *testing.T) {
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	base := layer(isDeployed(dir), deleted)
	d := Decide(observation(base, dir, lives(live("a")), onProd(givenUp(), forsakes)))
	if got, want := verbs(d.Plan), "Mark a"; got != want || d.Finalized {
		t.Errorf("it does %q, want %q; finalized: %t", got, want, d.Finalized)
	}
}

// A layer does not go in the look in which it gives up what it has on a cluster:
// what its status names would be looked for there once more.
func TestLayerGivesUpBeforeItGoes(t *testing.T) {
	base := layer(deleted, func(l *v1alpha1.AddonsLayer) {
		l.Status.Resources = []v1alpha1.Resource{{Cluster: "fleet/prod", Namespace: "default", Name: "flags", Kind: "configmaps."}}
	})
	o := observation(base, nil, forsakes)
	d := Decide(o)
	if d.Finalized || !d.Until.Equal(o.Now) || len(d.Plan.Forsaken) != 1 {
		t.Fatalf("finalized: %t, looked at again at %v, gives up %v", d.Finalized, d.Until, d.Plan.Forsaken)
	}
	o.Layer.Status, _ = Report(o, d, nil)
	if d := Decide(o); !d.Finalized {
		t.Errorf("it does not go: %s", d.Message)
	}
}

// Only the releases of the cluster that is away are suspended, and not those that
// the layer has yet to take off another one.
func TestMovesToAClusterThatIsAway(t *testing.T) {
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	there, old := live("a", through("prod")), live("a", through("old"))
	base := layer(isDeployed(dir), has(there, old))
	d := Decide(observation(base, dir, lives(live("a"), there, old), onProd(remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, time.Hour))))
	if got, want := verbs(d.Plan), "Suspend prod-a-12345678"; got != want {
		t.Errorf("it does %q, want %q", got, want)
	}
}

func TestTargets(t *testing.T) {
	home, old, older := live("a"), live("a", through("old")), live("a", through("older"))
	o := observation(layer(has(home, older, old)), nil, lives(home, older, old), func(o *Observation) { o.Forsaken = map[string]bool{"fleet/older": false} })
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "fleet", Name: "old"}}, Targets(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMayBeThere(t *testing.T) {
	flags := directoriestest.Any("v1", "ConfigMap", "default", "flags")
	flags.Cluster = "fleet/prod"
	id := flags.ID()
	dir, empty := directoriestest.Of(newRevision, flags), directoriestest.Of(newRevision)
	hasIt := func(l *v1alpha1.AddonsLayer) { l.Status.Resources = Resources([]dependents.Entry{{ID: id}}) }
	for name, test := range map[string]struct {
		layer         *v1alpha1.AddonsLayer
		dir, restored *directories.Directory
		id            objects.ID
		want          bool
	}{
		"it is not listed any more":       {layer(hasIt), empty, nil, id, true},
		"it is listed":                    {layer(hasIt), dir, nil, id, false},
		"what is listed cannot be read":   {layer(hasIt), nil, nil, id, true},
		"what it goes back to lacks it":   {layer(hasIt), dir, empty, id, true},
		"what it goes back to lists it":   {layer(hasIt), dir, dir, id, false},
		"the layer is deleted":            {layer(hasIt, deleted), dir, nil, id, true},
		"the layer never had it":          {layer(), empty, nil, id, false},
		"an object of the same name here": {layer(hasIt), empty, nil, id.On(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MayBeThere(observation(test.layer, test.dir, func(o *Observation) { o.Restored = test.restored }), test.id); got != test.want {
				t.Errorf("it may be there: %t", got)
			}
		})
	}
}
