// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// aWhile is how long something is looked at that must not change. Strata does in a
// fraction of it what it does at once.
const aWhile = 2 * time.Second

// gracePassed fails the test unless an object was deleted one grace after it
// had been marked: not sooner, and not much later. It was deleted because the grace was over: without a
// cause the layers of the tests are looked at once an hour.
func (f *fixture) gracePassed(marked, deleted happening, grace time.Duration) {
	f.Helper()
	waited := deleted.at.Sub(marked.at)
	f.Logf("%s was deleted %s after it was marked, with a grace of %s", marked.object.GetName(), waited.Round(time.Millisecond), grace)
	if latest := grace + time.Second + promptly; waited > latest {
		f.Errorf("deleted %s after it was marked, with a grace of %s", waited, grace)
	}
	value := marked.object.GetLabels()[v1alpha1.OrphanedLabel]
	moment, err := time.Parse(time.RFC3339, strings.ReplaceAll(value, ".", ":"))
	// The seconds are cut off, so the mark was made up to one later than it says;
	// and what is deleted is seen later than it happens, never sooner.
	if since := deleted.at.Sub(moment); since < grace+time.Second {
		f.Errorf("deleted %s after the moment that its mark says, perhaps sooner than the grace of %s", since, grace)
	}
	// What is marked is seen when it happens or, on a busy machine, later.
	if since := marked.at.Sub(moment); err != nil || since < 0 || since > promptly || !strings.HasSuffix(value, "Z") {
		f.Errorf("the orphaned label says %q at %s (%v)", value, marked.at.UTC(), err)
	}
}

// A release that is removed from git is marked at once, uninstalled when its
// grace is over, and the others do not notice.
func TestRemovedReleaseIsUninstalledAfterItsGrace(t *testing.T) {
	f := newFixture(t)
	const grace = 3 * time.Second
	revision := f.push(map[string]string{
		"base/goes.yaml":  f.configMapRelease("goes", "one"),
		"base/stays.yaml": f.configMapRelease("stays", "one"),
	})
	f.layer("base", orphanGrace(grace))
	f.deployed("base", revision)
	stays := f.release("stays")

	c := f.helmChronicle()
	revision = f.remove("base/goes.yaml")
	removed := time.Now()
	marked := c.marked("HelmRelease", "goes", time.Time{})
	t.Logf("marked %s after the artifact was seen", marked.at.Sub(removed).Round(time.Millisecond))
	f.state("base", v1alpha1.StatePruning, "goes", "waits until")
	if got := f.resource("base", "goes"); got != "Orphaned" {
		t.Errorf("status.resources shows it as %q", got)
	}
	f.gracePassed(marked, c.deleted("HelmRelease", "goes", time.Time{}), grace)

	f.deployed("base", revision)
	if !f.absent(&helmv2.HelmRelease{}, "goes") || !f.absent(&corev1.ConfigMap{}, "goes") || len(f.helmHistory("goes")) > 0 {
		t.Errorf("it is not uninstalled: Helm's history is %v", f.helmHistory("goes"))
	}
	if got := f.resource("base", "goes"); got != "" {
		t.Errorf("status.resources still shows it as %q", got)
	}
	if got := f.release("stays"); got.Generation != stays.Generation || got.UID != stays.UID || len(f.helmHistory("stays")) != 1 {
		t.Errorf("the other release has generation %d and Helm's history %v", got.Generation, f.helmHistory("stays"))
	}
	f.told("base", v1alpha1.ReasonOrphaned, "goes")
	f.told("base", v1alpha1.ReasonPruned, "goes")
}

// A release that is listed again within its grace loses the mark at once, and
// the whole grace counts again when it is removed a second time.
func TestReleaseListedAgainWithinItsGraceGetsAllOfItAgain(t *testing.T) {
	f := newFixture(t)
	const grace = 4 * time.Second
	goes := f.configMapRelease("goes", "one")
	revision := f.push(map[string]string{"base/goes.yaml": goes, "base/stays.yaml": f.configMapRelease("stays", "one")})
	f.layer("base", orphanGrace(grace))
	f.deployed("base", revision)
	uid := f.release("goes").UID

	c := f.helmChronicle()
	f.remove("base/goes.yaml")
	c.marked("HelmRelease", "goes", time.Time{})
	revision = f.push(map[string]string{"base/goes.yaml": goes})
	listed := time.Now()
	unmarked := c.when("HelmRelease", "goes", "is unmarked", time.Time{}, func(h happening) bool {
		return h.object.GetLabels()[v1alpha1.OrphanedLabel] == "" && slices.ContainsFunc(c.of("HelmRelease", "goes"), func(before happening) bool {
			return before.at.Before(h.at) && before.object.GetLabels()[v1alpha1.OrphanedLabel] != ""
		})
	})
	t.Logf("unmarked %s after the artifact was seen", unmarked.at.Sub(listed).Round(time.Millisecond))
	f.deployed("base", revision)
	// The two marks are so far apart that the first one's grace would show.
	f.throughout(aWhile, "it stays unmarked", func() error {
		if value, found := f.release("goes").Labels[v1alpha1.OrphanedLabel]; found {
			return fmt.Errorf("it is marked %q", value)
		}
		return nil
	})

	again := time.Now()
	f.remove("base/goes.yaml")
	f.gracePassed(c.marked("HelmRelease", "goes", again), c.deleted("HelmRelease", "goes", again), grace)
	if c.of("HelmRelease", "goes")[0].object.GetUID() != uid {
		t.Error("it was created again")
	}
}

// crdManifest returns a CustomResourceDefinition of a group of its own.
func (f *fixture) crdManifest(plural, annotations string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s.example.dev, annotations: {%[3]s}}
spec:
  group: %[2]s.example.dev
  scope: Namespaced
  names: {kind: %[4]s, plural: %[1]s}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, plural, f.prefix, annotations, strings.ToUpper(plural[:1])+plural[1:])
}

// What holds other people's data stays when its file goes, without owner and
// with an event; unless Strata has created it and it says itself that it may go.
// Anything else can say that it must stay.
func TestObjectsThatHoldDataAreReleasedWhenTheirFilesGo(t *testing.T) {
	f := newFixture(t)
	namespace := func(name, annotations string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-%s, annotations: {%s}}\n", f.prefix, name, annotations)
	}
	configMap := func(name, annotations string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {%s}}\n", name, f.prefix, annotations)
	}
	const enabled, disabled = `kraan.io/prune: enabled`, `kraan.io/prune: disabled`
	cases := []struct {
		name     string
		manifest string
		object   client.Object
		key      types.NamespacedName
		stays    bool
		// there is made before the layer is.
		there bool
	}{
		{"a Namespace stays", namespace("stays", ""), &corev1.Namespace{}, types.NamespacedName{Name: f.prefix + "-stays"}, true, false},
		{"a CustomResourceDefinition stays", f.crdManifest("stays", ""), &apiextensionsv1.CustomResourceDefinition{}, types.NamespacedName{Name: "stays." + f.prefix + ".example.dev"}, true, false},
		{"a ConfigMap that must not be pruned stays", configMap("stays", disabled), &corev1.ConfigMap{}, types.NamespacedName{Namespace: f.prefix, Name: "stays"}, true, false},
		{"a Namespace that may be pruned goes", namespace("goes", enabled), &corev1.Namespace{}, types.NamespacedName{Name: f.prefix + "-goes"}, false, false},
		{"a CustomResourceDefinition that may be pruned goes", f.crdManifest("goes", enabled), &apiextensionsv1.CustomResourceDefinition{}, types.NamespacedName{Name: "goes." + f.prefix + ".example.dev"}, false, false},
		{"a Namespace that was there stays", namespace("there", enabled), &corev1.Namespace{}, types.NamespacedName{Name: f.prefix + "-there"}, true, true},
		{"a CustomResourceDefinition that was there stays", f.crdManifest("there", enabled), &apiextensionsv1.CustomResourceDefinition{}, types.NamespacedName{Name: "there." + f.prefix + ".example.dev"}, true, true},
		{"a ConfigMap goes", configMap("goes", ""), &corev1.ConfigMap{}, types.NamespacedName{Namespace: f.prefix, Name: "goes"}, false, false},
	}
	files := map[string]string{"base/release.yaml": f.configMapRelease("release", "one")}
	var removed []string
	for i, c := range cases {
		file := fmt.Sprintf("base/object-%d.yaml", i)
		files[file] = c.manifest
		removed = append(removed, file)
		if c.there {
			f.must(stack.client.Create(f.ctx, f.manifest(c.manifest)))
		}
	}
	revision := f.push(files)
	f.layer("base")
	f.deployed("base", revision)
	t.Cleanup(func() {
		for _, c := range cases {
			f.must(client.IgnoreNotFound(stack.client.Get(f.ctx, c.key, c.object)))
			c.object.SetNamespace(c.key.Namespace)
			c.object.SetName(c.key.Name)
			f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, c.object)))
		}
	})

	revision = f.remove(removed...)
	layer := f.deployed("base", revision)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := stack.client.Get(f.ctx, c.key, c.object)
			if !c.stays {
				if err == nil && c.object.GetDeletionTimestamp().IsZero() || client.IgnoreNotFound(err) != nil {
					t.Errorf("it is still there (%v): %v", err, c.object.GetLabels())
				}
				return
			}
			if err != nil || !c.object.GetDeletionTimestamp().IsZero() {
				t.Fatalf("it is gone: %v", err)
			}
			for _, label := range []string{v1alpha1.LayerLabel, v1alpha1.OrphanedLabel} {
				if value, found := c.object.GetLabels()[label]; found {
					t.Errorf("it still has the label %s: %s", label, value)
				}
			}
			words := []string{c.key.Name}
			if c.there {
				words = append(words, "Strata has not created it")
			}
			(&fixture{T: t, ctx: f.ctx, prefix: f.prefix}).told("base", v1alpha1.ReasonReleased, words...)
		})
	}
	if len(layer.Status.Resources) != 1 {
		t.Errorf("status.resources lists %v", layer.Status.Resources)
	}
}

// suspend does to a release what flux suspend and flux resume do.
func (f *fixture) suspend(release string, suspended bool) {
	f.Helper()
	f.patch(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: release}},
		fmt.Sprintf(`{"spec":{"suspend":%v}}`, suspended))
}

// removeSuspended deploys a layer, suspends one of its releases by hand and
// removes it from git, until that is what the layer waits for.
func (f *fixture) removeSuspended() (revision string) {
	f.Helper()
	revision = f.push(map[string]string{
		"base/goes.yaml":  f.configMapRelease("goes", "one"),
		"base/stays.yaml": f.configMapRelease("stays", "one"),
	})
	f.layer("base")
	f.deployed("base", revision)
	f.suspend("goes", true)
	f.eventually("the layer shows it as suspended", func() error {
		if got := f.resource("base", "goes"); got != "Suspended" {
			return fmt.Errorf("status.resources shows %q", got)
		}
		return nil
	})
	revision = f.remove("base/goes.yaml")
	f.reason("base", v1alpha1.ReasonSuspendedRelease, "goes", "resume it", v1alpha1.AbandonAnnotation)
	return revision
}

// Flux would drop a suspended release without uninstalling it, so that one is
// not deleted until it is resumed.
func TestReleaseSuspendedByHandBlocksItsRemoval(t *testing.T) {
	f := newFixture(t)
	revision := f.removeSuspended()
	if state := f.get("base").Status.State; state != v1alpha1.StatePruning {
		t.Errorf("the layer is %s", state)
	}
	f.throughout(3*time.Second, "it stays, suspended", func() error {
		if release := f.release("goes"); !release.DeletionTimestamp.IsZero() || !release.Spec.Suspend {
			return errors.New("it is deleted or resumed")
		}
		return nil
	})
	if len(f.helmHistory("goes")) != 1 {
		t.Errorf("Helm's history is %v", f.helmHistory("goes"))
	}

	f.suspend("goes", false)
	f.deployed("base", revision)
	if !f.absent(&helmv2.HelmRelease{}, "goes") || len(f.helmHistory("goes")) > 0 {
		t.Errorf("it is not uninstalled: Helm's history is %v", f.helmHistory("goes"))
	}
}

// Abandoning what a suspended release installed removes the release, and what it
// installed stays.
func TestAbandonedReleaseIsRemovedAndWhatItInstalledStays(t *testing.T) {
	f := newFixture(t)
	revision := f.removeSuspended()
	f.edit("base", fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.AbandonAnnotation))
	f.deployed("base", revision)
	if !f.absent(&helmv2.HelmRelease{}, "goes") {
		t.Error("the release is still there")
	}
	if len(f.helmHistory("goes")) != 1 || f.absent(&corev1.ConfigMap{}, "goes") {
		t.Errorf("what it installed is gone; Helm's history is %v", f.helmHistory("goes"))
	}
}

// repository returns the manifest of a HelmRepository.
func (f *fixture) repository(name string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: %s, namespace: %s}\nspec: {interval: 1h, url: %q}\n",
		name, f.prefix, stack.charts.URL())
}

// releaseFrom returns the manifest of configMapRelease with a chart from
// another HelmRepository.
func (f *fixture) releaseFrom(repository, name, value string) string {
	return strings.Replace(f.configMapRelease(name, value), "name: charts", "name: "+repository, 1)
}

// A release and the repository of its chart that go together go in that order,
// however long the release takes.
func TestHelmRepositoryGoesAfterTheReleases(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/repository.yaml": f.repository("own"),
		"base/goes.yaml":       f.releaseFrom("own", "goes", "one"),
		"base/stays.yaml":      f.configMapRelease("stays", "one"),
	})
	f.layer("base")
	f.deployed("base", revision)
	// A finalizer makes the removal of the release last.
	const slow = "example.dev/slow"
	finalizers := func(change func([]string) []string) {
		release := f.release("goes")
		patch := client.MergeFrom(release.DeepCopy())
		release.Finalizers = change(release.Finalizers)
		f.must(stack.client.Patch(f.ctx, release, patch))
	}
	drop := func(all []string) []string { return slices.DeleteFunc(all, func(s string) bool { return s == slow }) }
	finalizers(func(all []string) []string { return append(all, slow) })
	t.Cleanup(func() {
		if !f.absent(&helmv2.HelmRelease{}, "goes") {
			finalizers(drop)
		}
	})

	c := f.chronicle(&helmv2.HelmReleaseList{}, &sourcev1.HelmRepositoryList{})
	revision = f.remove("base/repository.yaml", "base/goes.yaml")
	c.deleted("HelmRelease", "goes", time.Time{})
	f.state("base", v1alpha1.StatePruning)
	f.throughout(3*time.Second, "the repository stays while the release goes", func() error {
		found := &sourcev1.HelmRepository{}
		if f.absent(found, "own") || !found.DeletionTimestamp.IsZero() {
			return errors.New("it is deleted")
		}
		return nil
	})
	finalizers(drop)
	f.deployed("base", revision)
	if !f.absent(&sourcev1.HelmRepository{}, "own") || !f.absent(&helmv2.HelmRelease{}, "goes") {
		t.Error("the repository or the release is still there")
	}
}
