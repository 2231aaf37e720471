// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Each layer of a chain is begun within a second of the one before it, and not
// before that is Deployed. Their interval of an hour is no help. The test
// measures time, so nothing runs beside it.
func TestEachLayerOfAChainFollowsAtOnce(t *testing.T) {
	f := newSerialFixture(t)
	const length = 6
	files := map[string]string{}
	for i := range length {
		name := fmt.Sprintf("layer%d", i)
		files[name+"/release.yaml"] = f.configMapRelease(name, "x")
	}
	revision := f.push(files)
	w := f.witness()
	for i := length - 1; i > 0; i-- {
		f.layer(fmt.Sprintf("layer%d", i), f.dependsOn(fmt.Sprintf("layer%d@1.0.0", i-1)))
	}
	f.state("layer1", v1alpha1.StateApplyPending, "there is no layer "+f.name("layer0"))
	f.layer("layer0")
	for i := range length - 1 {
		before := w.firstDeployed(fmt.Sprintf("layer%d", i), "1.0.0", revision)
		next := fmt.Sprintf("layer%d", i+1)
		w.follows(w.created(next), before, next+" is begun")
	}
	f.deployed(fmt.Sprintf("layer%d", length-1), revision)
}

// Releases of one layer that depend on each other are applied one by one, each
// within a second of the one before it being Ready. Flux, which polls, is not
// asked to order them.
func TestEachReleaseOfALayerFollowsAtOnce(t *testing.T) {
	f := newSerialFixture(t)
	const length = 5
	files := map[string]string{"chain/r0.yaml": f.configMapRelease("r0", "x")}
	for i := 1; i < length; i++ {
		name := fmt.Sprintf("r%d", i)
		files["chain/"+name+".yaml"] = f.releaseDependingOn(name, "x", fmt.Sprintf("r%d", i-1))
	}
	revision := f.push(files)
	w := f.witness()
	f.layer("chain")
	for i := range length - 1 {
		before := w.ready(fmt.Sprintf("r%d", i))
		next := fmt.Sprintf("r%d", i+1)
		w.follows(w.created(next), before, "release "+next+" is begun")
		if dependsOn := f.release(next).Spec.DependsOn; len(dependsOn) > 0 {
			t.Errorf("release %s leaves its order to Flux: %v", next, dependsOn)
		}
	}
	f.deployed("chain", revision)
}

// An upgrade of releases that depend on each other keeps their order, too.
func TestUpgradeOfReleasesThatDependOnEachOtherKeepsTheOrder(t *testing.T) {
	f := newFixture(t)
	files := func(value string) map[string]string {
		return map[string]string{
			"chain/one.yaml": f.configMapRelease("one", value),
			"chain/two.yaml": f.releaseDependingOn("two", value, "one"),
		}
	}
	f.layer("chain")
	f.deployed("chain", f.push(files("first")))
	w := f.witness()
	revision := f.push(files("second"))
	f.deployed("chain", revision)
	upgraded := w.firstRelease("one", "is upgraded", func(release *helmv2.HelmRelease) bool {
		latest := release.Status.History.Latest()
		return latest != nil && latest.Version == 2 && release.Status.ObservedGeneration == release.Generation
	})
	w.after(w.holds("two", "second"), upgraded, "the second release is upgraded")
}

func TestWaitsForALayerThatIsMissing(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	w := f.witness()
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.reason("apps", v1alpha1.ReasonDependencyNotFound, "waits for "+f.name("base")+"@1.0.0: there is no layer "+f.name("base"))
	f.state("apps", v1alpha1.StateApplyPending)
	f.layer("base")
	w.follows(w.created("apps"), w.firstDeployed("base", "1.0.0", revision), "apps is begun")
	f.deployed("apps", revision)
}

func TestWaitsForTheVersionAskedFor(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	w := f.witness()
	f.layer("base")
	f.deployed("base", revision)
	f.layer("apps", f.dependsOn("base@2.0.0"))
	f.reason("apps", v1alpha1.ReasonDependencyVersion,
		"waits for "+f.name("base")+"@2.0.0: "+f.name("base")+" is at 1.0.0, Deployed")
	f.state("apps", v1alpha1.StateApplyPending)
	if !f.absent(&helmv2.HelmRelease{}, "apps") {
		t.Error("apps was applied over a dependency of another version")
	}
	f.edit("base", `{"spec":{"version":"2.0.0"}}`)
	w.follows(w.created("apps"), w.firstDeployed("base", "2.0.0", revision), "apps is begun")
	f.deployed("apps", revision)
}

func TestWaitsForALayerThatIsNotDeployedYet(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{
		"base/release.yaml": f.releaseWithoutChart("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	w := f.witness()
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.state("apps", v1alpha1.StateApplyPending,
		"waits for "+f.name("base")+"@1.0.0: "+f.name("base")+" has deployed no version yet, Applying", "HelmRelease "+f.prefix+"/base")
	if !f.absent(&helmv2.HelmRelease{}, "apps") {
		t.Error("apps was applied before its dependency was deployed")
	}
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "x")})
	w.follows(w.created("apps"), w.firstDeployed("base", "1.0.0", revision), "apps is begun")
	f.deployed("apps", revision)
}

// A status that speaks of an older generation says nothing about the layer as
// it is now, as while the controller is away.
func TestWaitsForALayerWhoseStatusIsOfAnOldGeneration(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	w := f.witness()
	f.layer("base")
	f.deployed("base", revision)
	// A layer that is left to another controller is seen, and not looked after.
	f.edit("base", fmt.Sprintf(`{"metadata":{"labels":{%q:"nobody"}},"spec":{"timeout":"20m"}}`, ownController))

	f.layer("apps", f.dependsOn("base"))
	f.reason("apps", v1alpha1.ReasonDependencyNotDeployed, "waits for "+f.name("base")+": ", "generation 2, seen 1")
	f.state("apps", v1alpha1.StateApplyPending)
	if !f.absent(&helmv2.HelmRelease{}, "apps") {
		t.Error("apps was applied over a dependency that has not been looked at")
	}
	f.edit("base", fmt.Sprintf(`{"metadata":{"labels":{%q:null},"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`, ownController))
	looked := w.firstLayer("base", "is looked at again", func(layer *v1alpha1.AddonsLayer) bool {
		return layer.Status.ObservedGeneration == 2 && layer.Status.LastHandledReconcileAt == "now"
	})
	w.follows(w.created("apps"), looked, "apps is begun")
	f.deployed("apps", revision)
}

// A commit that changes a dependency and its dependants reaches the dependency
// first, although its status still says Deployed when the commit arrives.
func TestWaitsForTheNewDirectoryOfADependency(t *testing.T) {
	f := newFixture(t)
	const dependants = 3
	files := func(value string) map[string]string {
		files := map[string]string{"base/release.yaml": f.configMapRelease("base", value)}
		for i := range dependants {
			files[fmt.Sprintf("apps%d/release.yaml", i)] = f.configMapRelease(fmt.Sprintf("apps%d", i), value)
		}
		return files
	}
	first := f.push(files("first"))
	f.layer("base")
	for i := range dependants {
		f.layer(fmt.Sprintf("apps%d", i), f.dependsOn("base@1.0.0"))
	}
	for i := range dependants {
		f.deployed(fmt.Sprintf("apps%d", i), first)
	}
	w := f.witness()
	broken := files("second")
	broken["base/release.yaml"] = f.releaseWithoutChart("base", "second")
	f.push(broken)
	for i := range dependants {
		f.state(fmt.Sprintf("apps%d", i), v1alpha1.StateApplyPending,
			"waits for "+f.name("base")+"@1.0.0: "+f.name("base")+" is at 1.0.0, Applying: HelmRelease "+f.prefix+"/base")
	}
	// Another version of the chart wakes helm-controller, which would look for
	// the one it has had after half a minute only.
	broken["base/release.yaml"] = strings.Replace(f.configMapRelease("base", "second"), "version: 1.0.0", "version: 2.0.0", 1)
	mended := f.push(broken)
	deployed := w.firstDeployed("base", "1.0.0", mended)
	for i := range dependants {
		name := fmt.Sprintf("apps%d", i)
		w.follows(w.holds(name, "second"), deployed, name+" is changed")
		f.deployed(name, mended)
	}
}

func TestCommitThatDoesNotTouchADependencyWaitsForNobody(t *testing.T) {
	f := newFixture(t)
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	first := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "x"),
		"apps/release.yaml": f.configMapRelease("apps", "first"),
	})
	f.deployed("apps", first)
	base := f.release("base")
	w := f.witness()
	second := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "second")})
	f.deployed("apps", second)
	f.deployed("base", second)
	for _, layer := range []string{"base", "apps"} {
		for _, status := range w.statuses(layer) {
			if status.State == v1alpha1.StateApplyPending || layer == "base" && status.State != v1alpha1.StateDeployed {
				t.Errorf("layer %s was %s: %v", layer, status.State, status.Conditions)
			}
		}
	}
	if before, now := written(base), written(f.release("base")); now != before {
		t.Errorf("base's release was written: %s, then %s", before, now)
	}
}

func TestHeldDependencyCountsAsWhatItHasDeployed(t *testing.T) {
	f := newFixture(t)
	f.layer("base")
	f.deployed("base", f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "first")}))
	f.edit("base", `{"spec":{"hold":true}}`)
	f.state("base", v1alpha1.StateHold)
	w := f.witness()
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "second"),
		"apps/release.yaml": f.configMapRelease("apps", "x"),
	})
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("apps", revision)
	for _, status := range w.statuses("apps") {
		if status.State == v1alpha1.StateApplyPending {
			t.Errorf("apps waited for a held layer that is deployed: %v", status.Conditions)
		}
	}
	f.state("base", v1alpha1.StateHold)
}
