// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/layers"
)

// forge changes the status of a layer alone, as who may write nothing else does, and
// has the layer looked at again, as its interval does.
func (f *fixture) forge(layer string, change func(*v1alpha1.AddonsLayerStatus)) {
	f.Helper()
	f.eventually("the status is forged", func() error {
		before := f.get(layer)
		forged := before.DeepCopy()
		change(&forged.Status)
		return f.client.Status().Patch(f.ctx, forged, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	f.annotate(layer, fluxmeta.ReconcileRequestAnnotation, time.Now().String())
	f.settle()
}

// annotate sets an annotation of a layer, as who may write the layer does.
func (f *fixture) annotate(layer, key, value string) {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	f.must(err)
	f.must(f.client.Patch(f.ctx, f.get(layer), client.RawPatch(types.MergePatchType, patch)))
}

func (f *fixture) hasRelease(name string) bool {
	f.Helper()
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, &helmv2.HelmRelease{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return err == nil
}

// Whoever may write the status of a layer, and nothing else, has nothing deployed,
// fetched or deleted: not by a roll-back that nobody asked for, and not by a history
// that others go back to.
func TestForgedStatusDeploysNothing(t *testing.T) {
	f := newFixture(t, nil)
	var asked atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { asked.Add(1); f.serve(w, req) }))
	t.Cleanup(evil.Close)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a"), "other/evil.yaml": f.release("evil")})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	// Another layer of the same source has what is forged below in memory.
	f.layerWith("other", func(l *v1alpha1.AddonsLayer) { l.Annotations = map[string]string{v1alpha1.HoldAnnotation: "not yet"} })
	var digest string
	f.eventually("the other layer is read", func() error {
		var err error
		digest, _, err = f.reconciler.Artifacts.Digest(f.ctx, f.artifact(), "./other", builds.Build{})
		return err
	})
	archive, _ := f.pack("/evil.tar.gz", map[string]string{"x/evil.yaml": f.release("evil")})

	rollback := func(entry v1alpha1.HistoryEntry) func(*v1alpha1.AddonsLayerStatus) {
		entry.ID, entry.Version, entry.Result, entry.Started = "99", "1.0.0", v1alpha1.ResultDeployed, metav1.Now()
		return func(s *v1alpha1.AddonsLayerStatus) {
			s.History = slices.DeleteFunc(s.History, func(e v1alpha1.HistoryEntry) bool { return e.ID == entry.ID })
			s.History = append(s.History, entry)
			s.Rollback = &v1alpha1.Rollback{To: "99", Version: "1.0.0", Digest: s.Digest, Generation: s.ObservedGeneration}
		}
	}
	cases := map[string]v1alpha1.HistoryEntry{
		"an address of the author's": {Digest: digest, Artifact: &v1alpha1.ArtifactReference{URL: evil.URL + "/evil.tar.gz", Digest: archive, Path: "./x"}},
		"what another layer has":     {Digest: digest},
		"kept, as it says":           {Digest: digest, Kept: true},
	}
	for name, entry := range cases {
		f.forge("base", rollback(entry))
		if f.hasRelease("evil") {
			t.Fatalf("%s: a patch of the status alone has deployed something", name)
		}
		if back := f.get("base").Status.Rollback; back != nil {
			t.Errorf("%s: the status still says that the layer has gone back: %+v", name, back)
		}
	}
	// Somebody goes back in good faith to what the history says.
	f.forge("base", rollback(cases["an address of the author's"]))
	f.annotate("base", v1alpha1.RollbackToAnnotation, "99")
	f.reason("base", v1alpha1.ReasonRollbackNotPossible, "it did not come from where the source has its present artifact", "spec.rollback")
	if f.hasRelease("evil") {
		t.Error("a forged history has deployed something")
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("an address of the status was asked %d times", n)
	}
}

// What a layer has gone back to stays deployed, whatever its status says.
func TestForgedStatusEndsNoRollback(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = true })
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.publish("main@sha1:2", map[string]string{"base/a.yaml": f.release("a"), "base/b.yaml": f.release("b")})
	f.ready("b")
	f.deployed("base", "main@sha1:2")
	f.annotate("base", v1alpha1.RollbackToAnnotation, f.get("base").Status.History[1].ID)
	gone := func() error {
		if f.hasRelease("b") {
			return fmt.Errorf("release b is there: %s", f.get("base").Annotations[v1alpha1.DecidedAnnotation])
		}
		return nil
	}
	f.eventually("the layer has gone back", gone)
	f.reason("base", v1alpha1.ReasonRolledBack)
	f.settle()
	f.forge("base", func(s *v1alpha1.AddonsLayerStatus) { s.Rollback, s.History = nil, nil })
	f.eventually("the status says again what is so", func() error {
		if f.get("base").Status.Rollback == nil {
			return fmt.Errorf("it does not: %+v", f.get("base").Status)
		}
		return nil
	})
	f.settle()
	f.must(gone())
	f.reason("base", v1alpha1.ReasonRolledBack)
	if f.get("base").Annotations[v1alpha1.RollbackToAnnotation] != "" {
		t.Error("the request is still there")
	}
	f.publish("main@sha1:3", map[string]string{"base/a.yaml": f.release("a"), "base/c.yaml": f.release("c")})
	f.ready("c")
	f.deployed("base", "main@sha1:3")
	f.eventually("nothing is decided any more", func() error {
		if text := f.get("base").Annotations[v1alpha1.DecidedAnnotation]; text != "" {
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
}

// A user who may write only the status removes nothing that waits to be allowed.
func TestForgedStatusOpensNoGuard(t *testing.T) {
	f := newFixture(t, nil)
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files["base/"+name+".yaml"] = f.release(name)
	}
	f.publish("main@sha1:1", files)
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{} })
	for name := range files {
		f.ready(name[len("base/") : len("base/")+1])
	}
	f.deployed("base", "main@sha1:1")
	f.publish("main@sha1:2", map[string]string{"base/a.yaml": f.release("a")})
	f.reason("base", v1alpha1.ReasonMassPrune)
	f.settle()
	digest, _, err := f.reconciler.Artifacts.Digest(f.ctx, f.artifact(), "./base", builds.Build{})
	f.must(err)
	f.forge("base", func(s *v1alpha1.AddonsLayerStatus) {
		s.Attempt = &v1alpha1.Attempt{Version: "1.0.0", Digest: digest, Allowed: []string{"Empty", "Prune"}, StartTime: metav1.Now()}
		for i := range s.Resources {
			s.Resources[i].Status = "Orphaned"
		}
		for i := range 100 {
			s.Resources = append(s.Resources, v1alpha1.Resource{Kind: "helmreleases.helm.toolkit.fluxcd.io", Namespace: f.namespace, Name: fmt.Sprintf("x%d", i), Status: "Deployed"})
		}
	})
	f.reason("base", v1alpha1.ReasonMassPrune)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if !f.hasRelease(name) {
			t.Errorf("release %s is gone", name)
		}
	}
}

// A process that has recorded that a guard is open, and has died before its annotation
// said so, leaves a status that its successor would write just so: it counts, though
// nothing is written.
func TestStatusThatIsThereAlreadyIsActedOn(t *testing.T) {
	stored := &v1alpha1.AddonsLayer{Status: v1alpha1.AddonsLayerStatus{Attempt: &v1alpha1.Attempt{Version: "1.0.0", Digest: "sha256:1", Allowed: []string{"Empty"}}}}
	o := &layers.Observation{Layer: layers.Trusted(stored, decisions.Seal{})}
	if o.Layer.Status.Attempt.Allowed != nil {
		t.Fatal("the status is believed before it was decided anew")
	}
	h := &hands{r: &AddonsLayerReconciler{Process: &Process{}}, stored: stored}
	if err := h.Persist(t.Context(), o, *stored.Status.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if layers.Decided(o.Layer, decisions.Seal{}) == "" {
		t.Error("what was decided does not reach the annotation")
	}
}
