// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/strata-project/strata/api/v1alpha1"
)

// conflicting waits until a layer is Stalled with an OwnershipConflict that
// says all of the words.
func (f *fixture) conflicting(layer string, words ...string) {
	f.Helper()
	found := f.reason(layer, v1alpha1.ReasonOwnershipConflict, words...)
	if found.Status.State != v1alpha1.StateFailed || !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.StalledCondition) {
		f.Errorf("layer %s is %s and not stalled: %v", layer, found.Status.State, found.Status.Conditions)
	}
}

// independentLayers deploys the layers base and apps, each with a release of
// its own; neither depends on the other.
func (f *fixture) independentLayers() {
	f.Helper()
	revision := f.push(map[string]string{
		"base/own.yaml": f.configMapRelease("base-own", "one"),
		"apps/own.yaml": f.configMapRelease("apps-own", "one"),
	})
	f.layer("base")
	f.layer("apps")
	f.deployed("base", revision)
	f.deployed("apps", revision)
}

// A layer that lists what another one has is refused and changes nothing, until
// one of the two listings goes.
func TestReleaseListedByASecondLayerIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		remove string
		owner  string
	}{
		{"until the second listing goes", "apps/copy.yaml", "base"},
		{"until the first listing goes, and then adopted", "base/shared.yaml", "apps"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.independentLayers()
			f.deployed("base", f.push(map[string]string{"base/shared.yaml": f.configMapRelease("shared", "base")}))
			shared := f.watchRelease("shared")

			revision := f.push(map[string]string{
				"apps/copy.yaml":  f.configMapRelease("shared", "apps"),
				"apps/other.yaml": f.configMapRelease("other", "one"),
			})
			f.conflicting("apps", "HelmRelease "+f.prefix+"/shared", f.name("apps"), "apps/copy.yaml", f.name("base"), "base/shared.yaml")
			f.deployed("base", revision)
			if !f.absent(&helmv2.HelmRelease{}, "other") {
				t.Error("a layer with a conflict has applied something")
			}
			f.told("apps", string(v1alpha1.StateFailed), "shared")
			shared.adoptedBy("base")

			revision = f.rewrite(map[string]string{test.remove: ""})
			f.deployed("base", revision)
			f.deployed("apps", revision)
			if test.owner == "base" {
				shared.adoptedBy("base")
			} else {
				shared.neverDeleted("HelmRelease", "shared")
				shared.neverUninstalled("shared", shared.history[0])
				if got := f.configMap("shared")["value"]; got != "apps" {
					t.Errorf("the new owner's value is not there but %q", got)
				}
			}
			if got := f.release("shared"); got.Labels[v1alpha1.LayerLabel] != f.name(test.owner) || got.UID != shared.release.UID {
				t.Errorf("it has labels %v and UID %s, before %s", got.Labels, got.UID, shared.release.UID)
			}
		})
	}
}

// Two layers that begin to list one new object at the same moment cannot both
// win: it is created once, written once, and never changes its owner.
func TestTwoLayersThatListANewReleaseAtOnceCannotBothWin(t *testing.T) {
	f := newFixture(t)
	f.independentLayers()
	c := f.helmChronicle()
	const rounds = 3
	for round := range rounds {
		name := fmt.Sprintf("new-%d", round)
		revision := f.push(map[string]string{
			"base/new.yaml": f.configMapRelease(name, "base"),
			"apps/new.yaml": f.configMapRelease(name, "apps"),
		})
		winner, loser := f.onlyWinner(name, revision)
		f.conflicting(loser, name, f.name("base"), "base/new.yaml", f.name("apps"), "apps/new.yaml")
		release := f.release(name)
		if release.Generation != 1 || c.count("HelmRelease", name, watch.Added) != 1 {
			t.Errorf("it has generation %d and was created %d times", release.Generation, c.count("HelmRelease", name, watch.Added))
		}
		for _, h := range c.of("HelmRelease", name) {
			if owner := h.object.GetLabels()[v1alpha1.LayerLabel]; owner != f.name(winner) {
				t.Errorf("its owner was %q at one time, though %s has won", owner, winner)
			}
		}
		if got := f.configMap(name)["value"]; got != winner {
			t.Errorf("layer %s has won with the value %q", winner, got)
		}
		t.Logf("layer %s has won", winner)

		revision = f.rewrite(map[string]string{loser + "/new.yaml": ""})
		f.deployed("base", revision)
		f.deployed("apps", revision)
		revision = f.rewrite(map[string]string{winner + "/new.yaml": ""})
		f.deployed("base", revision)
		f.deployed("apps", revision)
	}
}

// onlyWinner waits until one of the layers base and apps has deployed a
// revision that the other one cannot, and returns both.
func (f *fixture) onlyWinner(release, revision string) (winner, loser string) {
	f.Helper()
	f.eventually("one of the layers has deployed "+release, func() error {
		for _, names := range [][2]string{{"base", "apps"}, {"apps", "base"}} {
			layer := f.get(names[0])
			if layer.Status.State == v1alpha1.StateDeployed && layer.Status.Revision == revision {
				winner, loser = names[0], names[1]
				return nil
			}
		}
		return errors.New("none has")
	})
	return winner, loser
}

// Two HelmReleases of one layer for one Helm release would undo each other's
// work for ever; none of both is written.
func TestOneLayerThatListsAHelmReleaseTwiceIsRefused(t *testing.T) {
	f := newFixture(t)
	f.independentLayers()
	f.push(map[string]string{
		"apps/web.yaml":   f.namedRelease("web", "shop", "web"),
		"apps/store.yaml": f.namedRelease("store", "shop", "store"),
	})
	f.conflicting("apps", "web", "apps/web.yaml", "store", "apps/store.yaml", "same Helm release")
	if !f.absent(&helmv2.HelmRelease{}, "web") || !f.absent(&helmv2.HelmRelease{}, "store") || len(f.helmHistory("shop")) > 0 {
		t.Error("a layer with a conflict has applied something")
	}
	revision := f.rewrite(map[string]string{"apps/store.yaml": ""})
	f.deployed("apps", revision)
	if got := f.configMap("shop")["value"]; got != "web" {
		t.Errorf("the value is %q", got)
	}
}

// The same across layers: of two that begin to list one Helm release under two
// names at the same moment only one installs it.
func TestTwoLayersThatListAHelmReleaseUnderTwoNamesCannotBothWin(t *testing.T) {
	f := newFixture(t)
	f.independentLayers()
	c := f.helmChronicle()
	names := map[string]string{"base": "store", "apps": "web"}
	revision := f.push(map[string]string{
		"base/store.yaml": f.namedRelease("store", "shop", "base"),
		"apps/web.yaml":   f.namedRelease("web", "shop", "apps"),
	})
	winner, loser := f.onlyWinner("shop", revision)
	f.conflicting(loser, "store", "base/store.yaml", "web", "apps/web.yaml", "same Helm release")
	if created := c.count("HelmRelease", names[loser], watch.Added); created > 0 {
		t.Errorf("the HelmRelease of layer %s, which has lost, was created %d times", loser, created)
	}
	if got := f.configMap("shop")["value"]; got != winner || len(f.helmHistory("shop")) != 1 {
		t.Errorf("layer %s has won with the value %q; Helm's history is %v", winner, got, f.helmHistory("shop"))
	}
	first := f.helmHistory("shop")[0]

	// The one that has lost takes over when the other one gives up its listing.
	listing := map[string]string{"base": "base/store.yaml", "apps": "apps/web.yaml"}
	revision = f.rewrite(map[string]string{listing[winner]: ""})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	c.neverUninstalled("shop", first)
	made := &corev1.ConfigMap{}
	if f.absent(made, "shop") || made.Data["value"] != loser {
		t.Errorf("layer %s has taken over with %v", loser, made.Data)
	}
}
