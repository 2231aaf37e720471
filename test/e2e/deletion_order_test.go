// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/strata-project/strata/api/v1alpha1"
)

// The interval of the layers is an hour, so it is watches that wake them.

// diamond deploys base, left and right on top of it, and top on both, each with
// one release of its name.
func (f *fixture) diamond() (revision string) {
	f.Helper()
	files := map[string]string{}
	for _, name := range []string{"base", "left", "right", "top"} {
		files[name+"/release.yaml"] = f.configMapRelease(name, "x")
	}
	revision = f.push(files)
	f.layer("base")
	f.layer("left", f.dependsOn("base@1.0.0"))
	f.layer("right", f.dependsOn("base@1.0.0"))
	f.layer("top", f.dependsOn("left@1.0.0", "right"))
	f.deployed("top", revision)
	return revision
}

// diamondEdges names what goes before what.
var diamondEdges = [][2]string{{"top", "left"}, {"top", "right"}, {"left", "base"}, {"right", "base"}}

// goneInOrder fails the test unless the first layer of each pair was gone
// before anything of the second one was touched, and that followed promptly.
func (w *witness) goneInOrder(edges [][2]string) {
	w.Helper()
	last := map[string]sighting{}
	for _, edge := range edges {
		upper, lower := edge[0], edge[1]
		gone := w.layerGone(upper)
		if before, known := last[lower]; !known || gone.revision() > before.revision() {
			last[lower] = gone
		}
		w.after(w.marked(lower), gone, fmt.Sprintf("%s begins to go after %s has gone", lower, upper))
	}
	for lower, gone := range last {
		took := w.marked(lower).at.Sub(gone.at)
		w.Logf("%s begins to go %s after the last layer on top of it", lower, took.Round(time.Millisecond))
		if took > promptly {
			w.Errorf("%s begins to go %s after the last layer on top of it", lower, took)
		}
	}
}

// marked waits for the first event that shows a release as an orphan.
func (w *witness) marked(release string) sighting {
	w.Helper()
	return w.firstRelease(release, "is marked as an orphan", func(r *helmv2.HelmRelease) bool {
		return r.Labels[v1alpha1.OrphanedLabel] != ""
	})
}

// deleteTogether asks for the deletion of layers at the same moment.
func (f *fixture) deleteTogether(names ...string) {
	f.Helper()
	var asking sync.WaitGroup
	for _, name := range names {
		asking.Go(func() {
			if err := stack.client.Delete(f.ctx, f.get(name)); err != nil {
				f.Error(err)
			}
		})
	}
	asking.Wait()
}

func TestLayersDeletedTogetherGoInReverseOrder(t *testing.T) {
	t.Parallel()
	all := []string{"base", "left", "right", "top"}
	one := func(f *fixture, names ...string) {
		for _, name := range names {
			f.deleteLayer(name)
		}
	}
	cases := map[string]struct {
		reason string
		ask    func(f *fixture)
	}{
		"bottom first": {"kubectl deletes in the order of its arguments", func(f *fixture) { one(f, "base", "right", "left", "top") }},
		"top first":    {"the order in which they go anyway", func(f *fixture) { one(f, "top", "left", "right", "base") }},
		"middle last":  {"neither end comes last", func(f *fixture) { one(f, "top", "base", "left", "right") }},
		"all at once":  {"nobody waits for an answer", func(f *fixture) { f.deleteTogether(all...) }},
		"bottom before": {"the bottom says what it waits for, and goes on when that has gone", func(f *fixture) {
			one(f, "base")
			f.reason("base", v1alpha1.ReasonDeletionBlocked, f.name("left")+", "+f.name("right"), "depends on it")
			one(f, "left", "right")
			f.reason("left", v1alpha1.ReasonDeletionBlocked, f.name("top"))
			one(f, "top")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.diamond()
			w := f.witness()
			tc.ask(f)
			w.layerGone("base")
			t.Log(tc.reason)
			w.goneInOrder(diamondEdges)
			f.uninstalled(all...)
		})
	}
}

// A layer that nothing could be deployed for holds nobody up, wherever it
// stands; one that has something does, although it is held.
func TestDependantsThatHaveNothingHoldNobodyUp(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml":  f.configMapRelease("base", "x"),
		"held/release.yaml":  f.configMapRelease("held", "x"),
		"never/release.yaml": f.configMapRelease("never", "x"),
		"later/release.yaml": f.configMapRelease("later", "x"),
	})
	f.layer("base")
	f.layer("held", f.dependsOn("base@1.0.0"))
	f.layer("never", f.dependsOn("base@2.0.0"))
	f.layer("later", f.dependsOn("base"), func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = "9.9" })
	f.deployed("held", revision)
	f.state("never", v1alpha1.StateApplyPending)
	f.state("later", v1alpha1.StateK8sVersion)
	f.edit("held", `{"metadata":{"annotations":{"kraan.io/hold":"freeze"}}}`)
	f.held("held", "freeze")

	w := f.witness()
	f.deleteLayer("base")
	layer := f.reason("base", v1alpha1.ReasonDeletionBlocked, "while layer "+f.name("held")+" depends on it")
	for _, other := range []string{"never", "later"} {
		if strings.Contains(readyMessage(layer), f.name(other)) {
			t.Errorf("%s is in the way: %s", other, readyMessage(layer))
		}
	}
	f.deleteLayer("held")
	w.layerGone("base")
	w.goneInOrder([][2]string{{"held", "base"}})
	f.uninstalled("held", "base")
	// Those that stay are told, and go without further ado.
	f.state("never", v1alpha1.StateApplyPending, "there is no layer "+f.name("base"))
	f.deleteTogether("never", "later")
	f.layerGone("never")
	f.layerGone("later")
}

// One layer that cannot go keeps what it stands on, and nothing else; when it
// can, all go in order.
func TestSuspendedReleaseKeepsTheLayersBelowIt(t *testing.T) {
	f := newFixture(t)
	f.diamond()
	f.suspend("left", true)
	f.state("left", v1alpha1.StateDeployed, "1 of them suspended")
	base := f.release("base")
	w := f.witness()
	f.deleteTogether("base", "left", "right", "top")
	w.layerGone("top")
	w.layerGone("right")
	f.reason("left", v1alpha1.ReasonSuspendedRelease, "HelmRelease "+f.prefix+"/left is suspended")
	f.reason("base", v1alpha1.ReasonDeletionBlocked, "while layer "+f.name("left")+" depends on it")
	f.throughout(2*time.Second, "base stays as it is", func() error {
		if now := f.release("base"); written(now) != written(base) {
			return fmt.Errorf("it was written: %s", written(now))
		}
		return nil
	})
	f.suspend("left", false)
	w.layerGone("base")
	w.goneInOrder(diamondEdges)
	f.uninstalled("base", "left", "right", "top")
}

// Those that go leave what they have to others that list it, also while all is
// being deleted; and a layer that keeps its releases is out of the way at once.
func TestLayersThatKeepTheirReleasesAreOutOfTheWay(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	f.layer("base")
	f.layer("apps", f.dependsOn("base"), func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	f.deployed("apps", revision)
	uid := f.release("apps").UID
	w := f.witness()
	f.deleteTogether("base", "apps")
	w.layerGone("base")
	w.goneInOrder([][2]string{{"apps", "base"}})
	f.uninstalled("base")
	f.installed("apps", uid)
}

// A chain of many layers goes from its end, one after the other, and none waits
// for a timer.
func TestChainOfLayersGoesFromItsEnd(t *testing.T) {
	f := newFixture(t)
	const length = 6
	files := map[string]string{}
	var names []string
	var edges [][2]string
	for i := range length {
		name := fmt.Sprintf("l%d", i)
		names = append(names, name)
		files[name+"/release.yaml"] = f.configMapRelease(name, "x")
		if i > 0 {
			edges = append(edges, [2]string{name, names[i-1]})
		}
	}
	revision := f.push(files)
	for i, name := range names {
		if i == 0 {
			f.layer(name)
			continue
		}
		f.layer(name, f.dependsOn(names[i-1]+"@1.0.0"))
	}
	f.deployed(names[length-1], revision)
	w := f.witness()
	began := time.Now()
	f.deleteTogether(names...)
	w.layerGone(names[0])
	t.Logf("%d layers went in %s, %s of which are their graces", length, time.Since(began).Round(time.Millisecond), length*2*time.Second)
	slices.Reverse(edges)
	w.goneInOrder(edges)
	f.uninstalled(names...)
}
