// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// deleteLayer asks for a layer's deletion.
func (f *fixture) deleteLayer(name string, opts ...client.DeleteOption) {
	f.Helper()
	f.must(stack.client.Delete(f.ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name(name)}}, opts...))
}

// layerGone waits until a layer does not exist any more.
func (f *fixture) layerGone(name string) {
	f.Helper()
	f.eventually("layer "+name+" is gone", func() error {
		layer := &v1alpha1.AddonsLayer{}
		if err := stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, layer); err != nil {
			return client.IgnoreNotFound(err)
		}
		return fmt.Errorf("it is %s: %s", layer.Status.State, readyMessage(layer))
	})
}

// uninstalled fails the test unless nothing of a release is left.
func (f *fixture) uninstalled(names ...string) {
	f.Helper()
	for _, name := range names {
		if !f.absent(&helmv2.HelmRelease{}, name) {
			f.Errorf("HelmRelease %s is left", name)
		}
		if revisions := f.helmRevisions(name); revisions > 0 {
			f.Errorf("%d Helm revisions of %s are left", revisions, name)
		}
		if !f.absent(&corev1.ConfigMap{}, name) {
			f.Errorf("what release %s had installed is left", name)
		}
	}
}

// installed fails the test unless a release's objects are all there, under the
// UID it had.
func (f *fixture) installed(name string, uid types.UID) {
	f.Helper()
	release := f.release(name)
	if release.UID != uid || !release.DeletionTimestamp.IsZero() {
		f.Errorf("HelmRelease %s has UID %s after %s, deleted %v", name, release.UID, uid, release.DeletionTimestamp)
	}
	if f.helmRevisions(name) != 1 || f.absent(&corev1.ConfigMap{}, name) {
		f.Errorf("what release %s had installed is not as it was", name)
	}
}

// baseAndApps deploys base with two releases, the second of which depends on the
// first, and apps on top of it.
func (f *fixture) baseAndApps() (revision string) {
	f.Helper()
	revision = f.push(map[string]string{
		"base/first.yaml":   f.configMapRelease("first", "x"),
		"base/second.yaml":  f.releaseDependingOn("second", "x", "first"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("apps", revision)
	return revision
}

// A layer stays as it is while another one depends on it, and goes at once when
// that has gone: releases in reverse order, and nothing is left.
func TestDeletionWaitsForDependantsAndGoesInReverseOrder(t *testing.T) {
	f := newFixture(t)
	f.baseAndApps()
	w := f.witness()
	before := f.versions()
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked, "while layer "+f.name("apps")+" depends on it", "kraan.io/force-delete")
	f.unwritten(before)
	f.deleteLayer("apps")
	w.layerGone("base")
	w.after(w.deleting("second"), w.gone("apps"), "base goes after apps")
	w.after(w.deleting("first"), w.gone("second"), "the first release goes after the one that depends on it")
	marked := w.firstRelease("second", "is marked as an orphan", func(release *helmv2.HelmRelease) bool {
		return release.Labels[v1alpha1.OrphanedLabel] != ""
	})
	w.follows(marked, w.layerGone("apps"), "base begins to go")
	f.uninstalled("apps", "first", "second")
}

func TestDeletionOfBothLayersAtOnceKeepsTheOrder(t *testing.T) {
	f := newFixture(t)
	f.baseAndApps()
	w := f.witness()
	f.deleteLayer("base")
	f.deleteLayer("apps")
	w.layerGone("base")
	w.after(w.deleting("second"), w.layerGone("apps"), "base goes after apps")
	f.uninstalled("apps", "first", "second")
}

func TestForcedDeletionDoesNotWaitForDependants(t *testing.T) {
	f := newFixture(t)
	f.baseAndApps()
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked)
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/force-delete":"true"}}}`)
	f.layerGone("base")
	f.uninstalled("first", "second")
	f.state("apps", v1alpha1.StateApplyPending, "there is no layer "+f.name("base"))
	f.installed("apps", f.release("apps").UID)
}

func TestDeletionWithPolicyOrphanKeepsTheReleases(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "x")})
	f.layer("apps", func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	f.deployed("apps", revision)
	uid := f.release("apps").UID
	f.deleteLayer("apps")
	f.layerGone("apps")
	f.installed("apps", uid)
	for _, label := range []string{v1alpha1.LayerLabel, v1alpha1.OrphanedLabel} {
		if value, found := f.release("apps").Labels[label]; found {
			t.Errorf("the release has an owner still: %s=%s", label, value)
		}
	}
}

// Foreground deletion changes nothing of the order and the grace: the garbage
// collector finds nothing of a layer's that it could delete by itself.
func TestForegroundDeletionKeepsOrderAndGrace(t *testing.T) {
	f := newFixture(t)
	const grace = 4 * time.Second
	revision := f.push(map[string]string{
		"base/first.yaml":  f.configMapRelease("first", "x"),
		"base/second.yaml": f.releaseDependingOn("second", "x", "first"),
	})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{Duration: grace} })
	f.deployed("base", revision)
	w := f.witness()
	asked := time.Now()
	f.deleteLayer("base", client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.layerGone("base")
	if early := w.deleting("second").at.Sub(asked); early < grace {
		t.Errorf("a release was deleted %s after the layer, sooner than its grace of %s", early, grace)
	}
	w.after(w.deleting("first"), w.gone("second"), "the first release goes after the one that depends on it")
	f.uninstalled("first", "second")
}

// Taking the finalizer off by force removes the layer, and nothing
// else; a layer that is made again finds everything as it was.
func TestForcedRemovalOfTheFinalizerDeletesNothing(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "x")})
	longGrace := func(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{Duration: time.Hour} }
	f.layer("apps", longGrace)
	f.deployed("apps", revision)
	uid := f.release("apps").UID

	f.edit("apps", `{"metadata":{"finalizers":null}}`)
	f.within(promptly, "the finalizer of a layer that stays comes back", func() error {
		if finalizers := f.get("apps").Finalizers; !slices.Contains(finalizers, v1alpha1.Finalizer) {
			return fmt.Errorf("the finalizers are %v", finalizers)
		}
		return nil
	})

	f.deleteLayer("apps")
	f.eventually("the release is an orphan", func() error {
		if labels := f.release("apps").Labels; labels[v1alpha1.OrphanedLabel] == "" {
			return fmt.Errorf("the labels are %v", labels)
		}
		return nil
	})
	f.edit("apps", `{"metadata":{"finalizers":null}}`)
	f.layerGone("apps")
	f.throughout(2*time.Second, "the release stays", func() error {
		if f.absent(&helmv2.HelmRelease{}, "apps") {
			return fmt.Errorf("it is gone")
		}
		return nil
	})
	f.installed("apps", uid)

	f.layer("apps", longGrace)
	f.deployed("apps", revision)
	f.installed("apps", uid)
	if orphaned, found := f.release("apps").Labels[v1alpha1.OrphanedLabel]; found {
		t.Errorf("the release is an orphan still: %s", orphaned)
	}
}

func TestHeldLayerIsDeletedWithWhatItsHoldSuspended(t *testing.T) {
	t.Parallel()
	for name, annotations := range map[string]string{
		"hold":         `{"kraan.io/hold":"freeze"}`,
		"releases too": `{"kraan.io/hold":"freeze","kraan.io/hold-releases":"true"}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.layer("apps")
			f.deployed("apps", f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "x")}))
			f.edit("apps", `{"metadata":{"annotations":`+annotations+`}}`)
			f.held("apps", "freeze")
			f.deleteLayer("apps")
			f.layerGone("apps")
			f.uninstalled("apps")
		})
	}
}

// Layers of a cycle would wait for each other for ever; deleted together they
// go.
func TestLayersOfACycleAreDeletedTogether(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"one/release.yaml": f.configMapRelease("one", "x"),
		"two/release.yaml": f.configMapRelease("two", "x"),
	})
	f.layer("one")
	f.layer("two", f.dependsOn("one"))
	f.deployed("two", revision)
	f.edit("one", fmt.Sprintf(`{"spec":{"prereqs":{"dependsOn":[%q]}}}`, f.name("two")))
	for _, name := range []string{"one", "two"} {
		layer := f.reason(name, v1alpha1.ReasonDependencyCycle, f.name("one")+" -> "+f.name("two"))
		if layer.Status.State != v1alpha1.StateFailed || condition(layer, v1alpha1.StalledCondition).Status != metav1.ConditionTrue {
			t.Errorf("layer %s is %s: %v", name, layer.Status.State, layer.Status.Conditions)
		}
	}
	f.deleteLayer("one")
	f.deleteLayer("two")
	f.layerGone("one")
	f.layerGone("two")
	f.uninstalled("one", "two")
}

// Flux drops a suspended release without uninstalling it. One that somebody
// suspended by hand is therefore in the way until it is resumed.
func TestDeletionWaitsForAReleaseSuspendedByHand(t *testing.T) {
	f := newFixture(t)
	f.deploySuspended()
	f.deleteLayer("apps")
	f.reason("apps", v1alpha1.ReasonSuspendedRelease, "HelmRelease "+f.prefix+"/byhand is suspended", v1alpha1.AbandonAnnotation)
	f.throughout(2*time.Second, "the suspended release stays", func() error {
		if release := f.release("byhand"); !release.DeletionTimestamp.IsZero() {
			return fmt.Errorf("it is being deleted")
		}
		return nil
	})
	f.patch(f.release("byhand"), `{"spec":{"suspend":false}}`)
	f.layerGone("apps")
	f.uninstalled("byhand", "other")
}

func TestDeletionAbandonsASuspendedReleaseWhereItMay(t *testing.T) {
	f := newFixture(t)
	f.deploySuspended()
	f.deleteLayer("apps")
	f.reason("apps", v1alpha1.ReasonSuspendedRelease)
	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/abandon":"true"}}}`)
	f.layerGone("apps")
	f.uninstalled("other")
	if !f.absent(&helmv2.HelmRelease{}, "byhand") {
		t.Error("the suspended HelmRelease is left")
	}
	if f.helmRevisions("byhand") != 1 || f.absent(&corev1.ConfigMap{}, "byhand") {
		t.Error("what the suspended release had installed is gone")
	}
}

// deploySuspended deploys a layer with a release that is suspended by hand.
func (f *fixture) deploySuspended() {
	f.Helper()
	revision := f.push(map[string]string{
		"apps/byhand.yaml": f.configMapRelease("byhand", "x"),
		"apps/other.yaml":  f.configMapRelease("other", "x"),
	})
	f.layer("apps")
	f.deployed("apps", revision)
	f.patch(f.release("byhand"), `{"spec":{"suspend":true}}`)
	f.state("apps", v1alpha1.StateDeployed, "1 of them suspended")
}
