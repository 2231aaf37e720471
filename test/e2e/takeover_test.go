// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// kraan is the field manager of Kraan's controller.
const kraan = client.FieldOwner("kraan-controller")

// ownedByKraan creates an object in the way in which Kraan writes it: whole, by
// create, with its label and its controller reference.
func (f *fixture) ownedByKraan(layer, manifest string, obj client.Object, labels map[string]string) {
	f.Helper()
	owner := f.get(layer)
	f.must(yaml.Unmarshal([]byte(manifest), obj))
	yes := true
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "kraan.io/v1alpha1", Kind: "AddonsLayer", Name: owner.Name, UID: owner.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}})
	obj.SetLabels(map[string]string{v1alpha1.LayerLabel: owner.Name})
	for key, value := range labels {
		obj.GetLabels()[key] = value
	}
	f.must(stack.client.Create(f.ctx, obj, kraan))
}

// installedByKraan is ownedByKraan for releases, and waits until Helm has
// installed them.
func (f *fixture) installedByKraan(layer string, manifests ...string) {
	f.Helper()
	for _, manifest := range manifests {
		release := &helmv2.HelmRelease{}
		f.ownedByKraan(layer, manifest, release, nil)
		f.eventually("release "+release.Name+" is installed", func() error {
			now := f.release(release.Name)
			if now.Status.ObservedGeneration != now.Generation || !meta.IsStatusConditionTrue(now.Status.Conditions, "Ready") {
				return fmt.Errorf("its conditions are %v", now.Status.Conditions)
			}
			return nil
		})
	}
}

// kraanStatus gives a layer the status that Kraan writes for a deployed one:
// one condition, whose type and reason are the state.
func (f *fixture) kraanStatus(layer, revision string, releases ...string) {
	f.Helper()
	now := metav1.Now().Rfc3339Copy()
	resources := []any{}
	for _, release := range releases {
		resources = append(resources, map[string]any{
			"namespace": f.prefix, "name": release, "kind": "helmreleases.helm.toolkit.fluxcd.io",
			"lastTransitionTime": now, "status": "Deployed",
		})
	}
	found := f.get(layer)
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"state": "Deployed", "version": found.Spec.Version, "revision": revision, "observedGeneration": found.Generation,
		"conditions": []any{map[string]any{
			"type": "Deployed", "reason": "Deployed", "status": "True", "observedGeneration": found.Generation,
			"message": "All HelmReleases deployed", "lastTransitionTime": now,
		}},
		"resources": resources,
	}})
	f.must(err)
	f.must(stack.client.Status().Patch(f.ctx, found, client.RawPatch(types.MergePatchType, status), kraan))
}

// kraanLayer creates a layer with Kraan's finalizer.
func (f *fixture) kraanLayer(name string, options ...func(*v1alpha1.AddonsLayer)) {
	f.Helper()
	f.layer(name, append(options, func(layer *v1alpha1.AddonsLayer) {
		layer.Finalizers = []string{v1alpha1.Finalizer}
	})...)
}

// disowned fails the test where an object still has an owner in Kraan's way.
func (f *fixture) disowned(obj client.Object, name string) {
	f.Helper()
	if f.absent(obj, name) {
		f.Fatalf("%s is gone", name)
	}
	if refs := obj.GetOwnerReferences(); len(refs) > 0 {
		f.Errorf("%s still has the ownerReferences %v", name, refs)
	}
}

// as returns the fixture for a subtest.
func (f *fixture) as(t *testing.T) *fixture {
	sub := *f
	sub.T = t
	return &sub
}

// asKraanWrites returns a manifest with durations as Kraan writes them to the
// cluster.
func asKraanWrites(manifest string) string {
	return strings.ReplaceAll(manifest, "interval: 1h", "interval: 1h0m0s")
}

// A cluster that Kraan has run is taken over in place: its layers, labels and
// finalizers are Strata's, its ownerReferences go, and nobody notices.
func TestClusterOfKraanIsTakenOver(t *testing.T) {
	same, changed, orphan := newSerialFixture(t), newSerialFixture(t), newSerialFixture(t)
	f := same
	f.must(stack.controller.Stop(30 * time.Second))
	stopped := true
	start := func() {
		if stopped {
			stopped = false
			f.must(stack.controller.Start(f.ctx))
		}
	}
	defer start()

	// Two layers in order, and nothing differs.
	sameFiles := map[string]string{
		"base/repository.yaml": asKraanWrites(f.repository("own")),
		"base/one.yaml":        asKraanWrites(f.releaseFrom("own", "one", "one")),
		"base/two.yaml":        asKraanWrites(f.releaseFrom("own", "two", "two")),
		"apps/three.yaml":      asKraanWrites(f.configMapRelease("three", "three")),
	}
	sameRevision := f.push(sameFiles)
	f.kraanLayer("base")
	f.kraanLayer("apps", f.dependsOn("base@1.0.0"))
	repository := &sourcev1.HelmRepository{}
	f.ownedByKraan("base", sameFiles["base/repository.yaml"], repository, nil)
	f.installedByKraan("base", sameFiles["base/one.yaml"], sameFiles["base/two.yaml"])
	f.installedByKraan("apps", sameFiles["apps/three.yaml"])
	f.kraanStatus("base", sameRevision, "one", "two")
	f.kraanStatus("apps", sameRevision, "three")
	watched := map[string]bystander{"base/one": f.watchRelease("one"), "base/two": f.watchRelease("two"), "apps/three": f.watchRelease("three")}

	// One layer with a release that has changed in git while nobody looked, and
	// one that git writes in other words.
	f = changed
	changedRevision := f.push(map[string]string{
		"base/one.yaml": f.configMapRelease("one", "new"), "base/words.yaml": f.configMapRelease("words", "same"),
	})
	f.kraanLayer("base")
	f.installedByKraan("base", f.configMapRelease("one", "old"), f.configMapRelease("words", "same"))
	f.kraanStatus("base", changedRevision, "one", "words")
	upgraded := f.watchRelease("one")

	// One layer with a release that has left git: Kraan has marked it long
	// ago, and did not live to remove it.
	f = orphan
	orphanRevision := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "one")})
	f.kraanLayer("base", orphanGrace(2*time.Second))
	f.installedByKraan("base", f.configMapRelease("one", "one"), f.configMapRelease("left", "one"))
	f.patch(f.release("left"), `{"metadata":{"labels":{"orphaned":"2021-02-25T10.31.11Z"}}}`)
	f.kraanStatus("base", orphanRevision, "one")
	left := f.watchRelease("left")

	started := time.Now()
	start()
	t.Run("nothing is written to what is as git says", func(t *testing.T) {
		f := same.as(t)
		f.takenOver("base", sameRevision)
		f.takenOver("apps", sameRevision)
		for place, release := range watched {
			layer, name := place[:4], place[5:]
			release.fixture = f
			release.adoptedBy(layer)
			f.disowned(&helmv2.HelmRelease{}, name)
		}
		after := &sourcev1.HelmRepository{}
		f.disowned(after, "own")
		if after.UID != repository.UID || after.Generation != repository.Generation || after.Labels[v1alpha1.LayerLabel] != f.name("base") {
			t.Errorf("the HelmRepository has UID %s, generation %d and labels %v", after.UID, after.Generation, after.Labels)
		}
		if found := f.get("base"); len(found.Status.Resources) != 3 || found.Generation != 1 {
			t.Errorf("base has generation %d and lists %v", found.Generation, found.Status.Resources)
		}
	})
	t.Run("what has changed in git is upgraded and not installed again", func(t *testing.T) {
		f := changed.as(t)
		f.takenOver("base", changedRevision)
		upgraded.fixture = f
		upgraded.neverDeleted("HelmRelease", "one")
		upgraded.neverUninstalled("one", upgraded.history[0])
		f.disowned(&helmv2.HelmRelease{}, "one")
		if history := f.helmHistory("one"); len(history) != 2 || f.configMap("one")["value"] != "new" {
			t.Errorf("Helm's history is %v and the value %v", history, f.configMap("one"))
		}
		if now := f.release("one"); now.UID != upgraded.release.UID {
			t.Error("it was created again")
		}
		if history := f.helmHistory("words"); len(history) != 1 {
			t.Errorf("Helm has upgraded what git only writes in other words: %v", history)
		}
	})
	t.Run("what has left git gets a grace of Strata's own and is uninstalled", func(t *testing.T) {
		f := orphan.as(t)
		f.takenOver("base", orphanRevision)
		left.fixture = f
		deleted := left.deleted("HelmRelease", "left", started)
		if waited := deleted.at.Sub(started); waited < 2*time.Second {
			t.Errorf("it was deleted after %s, sooner than the grace", waited)
		}
		if !f.absent(&helmv2.HelmRelease{}, "left") || !f.absent(&corev1.ConfigMap{}, "left") {
			t.Error("it is not uninstalled")
		}
		if slices.ContainsFunc(left.of("HelmRelease", "left"), func(h happening) bool {
			return !h.object.GetDeletionTimestamp().IsZero() && len(h.object.GetOwnerReferences()) > 0
		}) {
			t.Error("it went with Kraan's ownerReference")
		}
	})
	t.Run("the reference is gone, so that no garbage collector follows it", func(t *testing.T) {
		f := same.as(t)
		three := bystander{chronicle: f.helmChronicle(), release: f.release("three"), history: f.helmHistory("three")}
		f.discard("apps")
		f.edit("apps", `{"metadata":{"finalizers":null}}`)
		f.discarded("apps")
		three.keptFor(aWhile)
	})
}

// takenOver waits until a layer is deployed with a status of Strata's form.
func (f *fixture) takenOver(layer, revision string) {
	f.Helper()
	f.eventually("layer "+layer+" is taken over", func() error {
		found := f.get(layer)
		if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ReadyCondition) {
			return errors.New(readyMessage(found))
		}
		return nil
	})
	f.deployed(layer, revision)
}
