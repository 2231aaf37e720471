// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
)

// forgeOnly changes the status of a layer, and nothing has it looked at but the change.
func (f *fixture) forgeOnly(layer string, change func(*v1alpha1.AddonsLayerStatus)) {
	f.Helper()
	f.eventually("the status is forged", func() error {
		before := f.get(layer)
		forged := before.DeepCopy()
		change(&forged.Status)
		return f.client.Status().Patch(f.ctx, forged, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner("dashboard"))
	})
}

// A user who may write only the status of a layer lets no other layer go on: neither by a status that
// says Deployed, nor by one that the controller has written for another layer.
func TestForgedStatusLetsNoOtherLayerGoOn(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{
		"base/a.yaml": f.release("a"), "apps/b.yaml": f.release("b"), "other/c.yaml": f.release("c"),
	})
	f.layer("base")
	f.layer("other")
	f.layer("apps", "base")
	f.ready("c")
	f.deployed("other", "main@sha1:1")
	f.reason("apps", v1alpha1.ReasonDependencyNotDeployed)
	f.settle()
	digest, _, err := f.reconciler.Artifacts.Digest(f.ctx, f.artifact(), "./base", builds.Build{})
	f.must(err)
	honest := f.get("base").Status
	deployed := func(s *v1alpha1.AddonsLayerStatus) {
		s.State, s.Version, s.Revision, s.Digest, s.Attempt = v1alpha1.StateDeployed, "1.0.0", "main@sha1:1", digest, nil
		s.Conditions = slices.Clone(f.get("other").Status.Conditions)
	}
	for reason, change := range map[string]func(*v1alpha1.AddonsLayerStatus){
		"with the MAC that was there":   deployed,
		"without a MAC":                 func(s *v1alpha1.AddonsLayerStatus) { deployed(s); s.MAC = "" },
		"with the MAC of another layer": func(s *v1alpha1.AddonsLayerStatus) { deployed(s); s.MAC = f.get("other").Status.MAC },
		"as all of another layer's":     func(s *v1alpha1.AddonsLayerStatus) { *s = f.get("other").Status },
	} {
		f.forgeOnly("base", change)
		f.eventually(reason+": the status says again what is so", func() error {
			if status := f.get("base").Status; status.State == v1alpha1.StateDeployed || status.MAC == "" {
				return fmt.Errorf("it is %+v", status)
			}
			return nil
		})
		f.settle()
		if f.hasRelease("b") {
			t.Fatalf("%s: the layer that waits has gone on", reason)
		}
		f.reason("apps", v1alpha1.ReasonDependencyNotDeployed)
		if status := f.get("base").Status; status.State != honest.State || status.Version != "" || status.Digest != "" || len(status.Resources) != 1 {
			t.Errorf("%s: the status is %+v", reason, status)
		}
	}
	f.eventually("it is told", func() error {
		if told := f.eventsOf("base"); !strings.Contains(told, v1alpha1.ReasonForeignStatus) || !strings.Contains(told, "dashboard") {
			return fmt.Errorf("the events are %s", told)
		}
		return nil
	})
	f.ready("a")
	f.ready("b")
	f.deployed("apps", "main@sha1:1")
}

// A layer that is being deleted does not go while it has anything, whatever its status lists.
func TestForgedInventoryLeavesNothingBehind(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	release := &helmv2.HelmRelease{}
	name := types.NamespacedName{Namespace: f.namespace, Name: "a"}
	keep := func(finalizers ...string) {
		f.Helper()
		f.eventually("the release is patched", func() error {
			if err := f.client.Get(f.ctx, name, release); err != nil {
				return err
			}
			before := release.DeepCopy()
			release.Finalizers = finalizers
			return f.client.Patch(f.ctx, release, client.MergeFrom(before))
		})
	}
	keep("test.example/stays")
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.eventually("the release is being deleted", func() error {
		if err := f.client.Get(f.ctx, name, release); err != nil || release.DeletionTimestamp == nil {
			return fmt.Errorf("%w: %v", err, release.DeletionTimestamp)
		}
		return nil
	})
	for _, change := range []func(*v1alpha1.AddonsLayerStatus){
		func(s *v1alpha1.AddonsLayerStatus) { s.Resources, s.Cluster, s.Attempt = nil, "", nil },
		func(s *v1alpha1.AddonsLayerStatus) { *s = v1alpha1.AddonsLayerStatus{} },
		func(s *v1alpha1.AddonsLayerStatus) { *s = v1alpha1.AddonsLayerStatus{ObservedGeneration: -1} },
	} {
		f.forgeOnly("base", change)
		f.settle()
		if listed := f.get("base").Status.Resources; len(listed) != 1 {
			t.Fatalf("the layer lists %v", listed)
		}
	}
	keep()
	f.eventually("the layer is gone", func() error {
		err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, &v1alpha1.AddonsLayer{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	if f.hasRelease("a") {
		t.Error("the release is there")
	}
}

// The controller writes a status again that something else has written, whole.
func TestForeignStatusOfEachKindIsWrittenAgain(t *testing.T) {
	f := newBareFixture(t)
	f.startCatalogue()
	f.application("app", func(*v1alpha1.HelmApplicationVersion) {})
	app := &v1alpha1.HelmApplication{}
	published := func() error {
		if err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name("app")}, app); err != nil {
			return err
		}
		if len(app.Status.Published) != 1 || app.Status.Published[0].Digest == "sha256:forged" || app.Status.MAC == "" {
			return fmt.Errorf("it is %+v", app.Status)
		}
		return nil
	}
	f.eventually("a version is published", published)
	app.Status.Published[0].Digest = "sha256:forged"
	app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{
		Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.Now(),
	})
	f.must(f.client.Status().Update(f.ctx, app))
	f.eventually("the status is written again", published)
	f.settle()
	if len(app.Status.Conditions) != 1 {
		t.Errorf("what was forged beside is still there: %+v", app.Status.Conditions)
	}
}

// A layer that is held does not find out what is deployed: when its status was forged it says so,
// whatever was forged, and is as it was once it is resumed.
func TestForgedStatusOfAHeldLayer(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a"), "apps/b.yaml": f.release("b")})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.annotate("base", v1alpha1.HoldAnnotation, "not now")
	f.reason("base", v1alpha1.ReasonHold)
	f.settle()
	f.layerWith("apps", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Prereqs.DependsOn = []string{f.name("base") + "@2.0.0"}
	})
	f.reason("apps", v1alpha1.ReasonDependencyVersion)
	f.forgeOnly("base", func(s *v1alpha1.AddonsLayerStatus) { s.Version = "2.0.0" })
	f.reason("apps", v1alpha1.ReasonDependencyNotDeployed)
	f.settle()
	if status := f.get("base").Status; status.Version != "" || status.State != v1alpha1.StateHold || len(status.Resources) != 1 {
		t.Errorf("the held layer says %+v", status)
	}
	if f.hasRelease("b") {
		t.Error("the layer that waits has gone on")
	}
	before := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "a"}, before))
	resume := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.HoldAnnotation)
	f.must(f.client.Patch(f.ctx, f.get("base"), client.RawPatch(types.MergePatchType, []byte(resume))))
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.reason("apps", v1alpha1.ReasonDependencyVersion)
	after := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "a"}, after))
	if after.UID != before.UID || after.Generation > before.Generation+1 { // it is not suspended any more
		t.Errorf("the release was deployed anew: %+v", after.ObjectMeta)
	}
}
