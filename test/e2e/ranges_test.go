// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// atVersion makes a layer have another version than 1.0.0.
func atVersion(version string) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) { layer.Spec.Version = version }
}

// oneRelease returns the files of layers with a release of their name each.
func (f *fixture) oneRelease(value string, layers ...string) map[string]string {
	files := map[string]string{}
	for _, layer := range layers {
		files[layer+"/release.yaml"] = f.configMapRelease(layer, value)
	}
	return files
}

// asks changes what a layer depends on.
func (f *fixture) asks(layer string, others ...string) {
	f.Helper()
	quoted := make([]string, 0, len(others))
	for _, other := range others {
		quoted = append(quoted, fmt.Sprintf("%q", f.name(other)))
	}
	f.edit(layer, fmt.Sprintf(`{"spec":{"prereqs":{"dependsOn":[%s]}}}`, strings.Join(quoted, ",")))
}

// moves changes a layer's version.
func (f *fixture) moves(layer, version string) {
	f.Helper()
	f.edit(layer, fmt.Sprintf(`{"spec":{"version":%q}}`, version))
}

// changed waits for the event of the layer's present specification.
func (w *witness) changed(layer string) sighting {
	w.Helper()
	generation := w.get(layer).Generation
	return w.firstLayer(layer, "is changed", func(l *v1alpha1.AddonsLayer) bool { return l.Generation == generation })
}

// asTheyWere checks for a while that releases are not written, not even their
// metadata.
func (f *fixture) asTheyWere(before map[string]string, releases ...string) {
	f.Helper()
	f.throughout(2*time.Second, "nothing is written", func() error {
		now := f.versions()
		for _, release := range releases {
			if now[release] != before[release] {
				return fmt.Errorf("release %s was %s and is %s", release, before[release], now[release])
			}
		}
		return nil
	})
}

// What a layer asks for may be a range, an exact version that is no semantic
// one, or any version.
func TestDependenciesThatHold(t *testing.T) {
	f := newFixture(t)
	asks := map[string]string{
		"range": "base@>=1.1 <2", "tilde": "base@~1.4", "caret": "base@^1", "wildcard": "base@1.x", "either": "base@^3 || ~1.4.1",
		"any": "base", "exact": "base@1.4.2", "zeros": "odd@0.1.01",
	}
	files := f.oneRelease("x", "base", "odd")
	for name := range asks {
		files[name+"/release.yaml"] = f.configMapRelease(name, "x")
	}
	revision := f.push(files)
	w := f.witness()
	for name, ask := range asks {
		f.layer(name, f.dependsOn(ask), func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = ">=1.29 <1.99" })
	}
	f.layer("base", atVersion("1.4.2"))
	f.layer("odd", atVersion("0.1.01"))
	for name, ask := range asks {
		f.deployed(name, revision)
		base, version := "base", "1.4.2"
		if name == "zeros" {
			base, version = "odd", "0.1.01"
		}
		w.after(w.created(name), w.firstDeployed(base, version, revision), name+" with "+ask+" is begun")
	}
}

// A layer waits for a version in its range, and begins at once when it comes.
// Pre-releases, and what is no semantic version, are in no such range.
func TestWaitsForAVersionInTheRange(t *testing.T) {
	f := newFixture(t)
	revision := f.push(f.oneRelease("x", "base", "apps"))
	w := f.witness()
	f.layer("base")
	f.deployed("base", revision)
	f.layer("apps", f.dependsOn("base@>=1.1 <2"))
	for _, step := range []struct{ version, said string }{
		{"1.0.0", "base is at 1.0.0, Deployed"},
		{"1.1.0-rc.1", "base is at 1.1.0-rc.1, Deployed, a pre-release, which is taken only by a range that names one"},
		{"1.1.01", "base is at 1.1.01, Deployed, which is no semantic version, so that no range takes it"},
		{"2.0.0", "base is at 2.0.0, Deployed"},
	} {
		f.moves("base", step.version)
		f.state("base", v1alpha1.StateDeployed)
		f.reason("apps", v1alpha1.ReasonDependencyVersion, "waits for "+f.name("base")+"@>=1.1 <2: "+f.prefix+"-"+step.said)
		f.state("apps", v1alpha1.StateApplyPending)
	}
	f.moves("base", "1.2.0")
	w.follows(w.created("apps"), w.firstDeployed("base", "1.2.0", revision), "apps is begun")
	f.deployed("apps", revision)
}

// A layer that asks for an exact version does not hold up the other, and keeps
// what it has as it is while the other is elsewhere: it says so and waits.
func TestExactVersionLetsTheOtherGoAndWaits(t *testing.T) {
	f := newFixture(t)
	first := f.push(f.oneRelease("first", "base", "apps"))
	f.layer("base", atVersion("1.0.1"))
	f.layer("apps", f.dependsOn("base@1.0.1"))
	f.deployed("apps", first)
	before := f.versions()

	f.moves("base", "1.1.0")
	second := f.push(f.oneRelease("second", "base", "apps"))
	base := f.deployed("base", second)
	if base.Status.Version != "1.1.0" {
		t.Errorf("base is at %s", base.Status.Version)
	}
	f.reason("apps", v1alpha1.ReasonDependencyVersion, "waits for "+f.name("base")+"@1.0.1: "+f.name("base")+" is at 1.1.0, Deployed")
	apps := f.state("apps", v1alpha1.StateApplyPending)
	if apps.Status.Version != "1.0.0" || apps.Status.Revision != first {
		t.Errorf("apps is said to have %s of %s", apps.Status.Version, apps.Status.Revision)
	}
	f.asTheyWere(before, "apps")

	// What it has is repaired all the same.
	f.patch(f.release("apps"), `{"spec":{"values":{"data":{"value":"drifted"}}}}`)
	f.within(promptly, "drift is repaired", func() error {
		if values := string(f.release("apps").Spec.Values.Raw); !strings.Contains(values, `"first"`) {
			return fmt.Errorf("the values are %s", values)
		}
		return nil
	})
	f.asks("apps", "base@1.1.0")
	f.deployed("apps", second)
}

// What cannot be understood stalls the layer, says what to write, leaves what
// is deployed as it is, and goes on when it is mended.
func TestDependencyThatCannotBeUnderstoodIsStalled(t *testing.T) {
	f := newFixture(t)
	first := f.push(f.oneRelease("first", "base", "apps"))
	f.layer("base")
	f.layer("apps", f.dependsOn("base@^1"))
	f.deployed("apps", first)
	before := f.footprints()
	for _, bad := range []struct{ ask, reason, words string }{
		{"base@>=two", "a range of words", "asks for a range that cannot be understood: write one such as " + f.name("base") + "@>=1.1 <2"},
		{"base@^1 ||", "half a range", "asks for a range that cannot be understood"},
		{"base@1.0.0 1.1.0", "two versions", "has blanks or commas in its version: write name@version with one exact version, or a range"},
	} {
		f.asks("apps", "base@^1", bad.ask)
		f.stalled("apps", v1alpha1.ReasonInvalidSpec, `spec.prereqs.dependsOn[1]: "`+f.name(bad.ask)+`" `, bad.words)
		f.untouched(before)
		if t.Failed() {
			t.Log(bad.reason)
		}
	}
	second := f.push(f.oneRelease("second", "base", "apps"))
	f.deployed("base", second)
	f.asks("apps", "base@^1")
	f.deployed("apps", second)
}

// What can be seen to be wrong without understanding ranges is refused by the
// API server.
func TestAPIRefusesDependenciesThatNameNothing(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct{ ask, reason, message string }{
		{"Base@1.0.0", "capitals", "must begin with the name of a layer, which has no capitals: write name@version, name@range or name"},
		{"@1.0.0", "no name", "must begin with the name of a layer"},
		{"base@", "no version", "must have a version or a range behind the @: write name@version, or the name alone for any version"},
		{"base@ ", "a blank for a version", "must have a version or a range behind the @"},
	} {
		layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name("refused")}}
		layer.Spec.Version, layer.Spec.Source = "1.0.0", v1alpha1.SourceSpec{Name: "addons", Path: "./apps"}
		layer.Spec.Prereqs.DependsOn = []string{test.ask}
		if err := stack.client.Create(f.ctx, layer); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s (%s) is refused with %v, want %q", test.ask, test.reason, err, test.message)
		}
	}
}
