// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

const (
	refused = "stays at 1.0.0, because 2.0.0 is outside of what its dependants take: "
	mend    = `; change what they depend on, or set the annotation kraan.io/allow-break to "true"`
)

// wants makes a layer that is deployed ask for another version.
func wants(version string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Version = version; l.Generation++ }
}

func dependant(name string, changes ...layerChange) Other {
	return Other{Layer: layer(append([]layerChange{named(name), isDeployed(oldDir)}, changes...)...)}
}

func TestDecideBreak(t *testing.T) {
	moving := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{isDeployed(oldDir), wants("2.0.0")}, changes...)...)
	}
	// The new directory adds b, the old one is what is deployed of it.
	seen := func(l *v1alpha1.AddonsLayer, list ...Other) Observation {
		return observation(l, newDir, lives(live("a", drifted)), others(list...), func(o *Observation) { o.Deployed = oldDir })
	}
	stays := func(reason, who string, in Observation) decideCase {
		return decideCase{reason, in, decided{
			v1alpha1.StateApplyPending, "Write a", waitingFor("WouldBreakDependants"), status.InProgressStatus, refused + who + mend,
		}}
	}
	goes := func(reason string, in Observation) decideCase {
		return decideCase{reason, in, decided{
			v1alpha1.StateApplying, "Write a, Write b", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied",
		}}
	}
	attempt := func(version, digest string) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.Attempt = &v1alpha1.Attempt{Version: version, Digest: digest, StartTime: longAgo}
		}
	}
	newcomer := Other{Layer: layer(named("apps"), needs("base@<2"))}
	// A layer that waits has what it will apply in its inventory.
	waiting := Other{Layer: layer(named("apps"), needs("base@<2"), func(l *v1alpha1.AddonsLayer) {
		l.Status.State, l.Status.ObservedGeneration = v1alpha1.StateApplyPending, 1
		l.Status.Resources = []v1alpha1.Resource{{Kind: "helmreleases.helm.toolkit.fluxcd.io", Namespace: "default", Name: "a", Status: "NotDeployed"}}
	})}
	cases := map[string]decideCase{
		"in the way":        stays("the dependant is named with its range; drift of what is deployed is repaired", "apps (base@<2)", seen(moving(), dependant("apps", needs("base@<2")))),
		"all are named":     stays("in order", "apps (base@<2), web (base@~1.0)", seen(moving(), dependant("web", needs("dns", "base@~1.0")), dependant("apps", needs("base@<2")))),
		"more than one":     stays("what a dependant asks for together counts", "apps (base@>=1, base@<2)", seen(moving(), dependant("apps", needs("base@>=1", "base@<2")))),
		"held dependant":    stays("what it says counts, held as it is", "apps (base@<2)", seen(moving(), dependant("apps", needs("base@<2"), func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true }))),
		"waiting dependant": stays("it has something deployed, whatever its state", "apps (base@<2)", seen(moving(), dependant("apps", needs("base@<2"), inState(v1alpha1.StateFailed, "False")))),
		"first roll-out of a dependant": stays("objects are on the cluster before it is deployed", "apps (base@<2)", seen(moving(), dependant("apps", needs("base@<2"), func(l *v1alpha1.AddonsLayer) {
			l.Status.Version, l.Status.Revision, l.Status.Digest = "", "", ""
		}))),
		"annotation of another value":    stays("only the word that the message gives", "apps (base@<2)", seen(moving(annotation(v1alpha1.AllowBreakAnnotation, "yes")), dependant("apps", needs("base@<2")))),
		"another roll-out has begun":     stays("what was begun was another content", "apps (base@<2)", seen(moving(attempt("2.0.0", "older")), dependant("apps", needs("base@<2")))),
		"another version has begun":      stays("or another version", "apps (base@<2)", seen(moving(attempt("1.5.0", newDir.Digest)), dependant("apps", needs("base@<2")))),
		"allowed":                        goes("somebody said so", seen(moving(annotation(v1alpha1.AllowBreakAnnotation, "true")), dependant("apps", needs("base@<2")))),
		"begun":                          goes("a roll-out is not stopped half way by a range that narrows", seen(moving(attempt("2.0.0", newDir.Digest)), dependant("apps", needs("base@<2")))),
		"in the range":                   goes("nobody is in the way", seen(moving(), dependant("apps", needs("base@>=1 <3")))),
		"widened":                        goes("the present specification counts, and it does not take what is deployed either", seen(moving(), dependant("apps", needs("base@^2"), wants("2.0.0")))),
		"exact version":                  goes("the layer goes ahead and the dependant waits", seen(moving(), dependant("apps", needs("base@1.0.0")))),
		"bare name":                      goes("any version will do", seen(moving(), dependant("apps", needs("base")))),
		"never deployed":                 goes("what has nothing loses nothing", seen(moving(), newcomer)),
		"waiting for its first roll-out": goes("it has nothing on the cluster yet", seen(moving(), waiting)),
		"being deleted":                  goes("it goes anyway", seen(moving(), dependant("apps", needs("base@<2"), deleted))),
		"broken already":                 goes("it takes neither version", seen(moving(), dependant("apps", needs("base@>=1.5 <2")))),
		"range of another layer":         goes("names are whole", seen(moving(), dependant("apps", needs("base-1@<2", "bas@<2")))),
		"range that is none":             goes("the dependant is told so itself", seen(moving(), dependant("apps", needs("base@<two")))),
		"not there":                      goes("a name without a layer", seen(moving(), Other{Layer: layer(named("other"))})),
	}
	runDecideCases(t, cases)
}

// What else is wrong with a layer is said first; and a layer that has deployed
// nothing, or does not move, breaks nobody.
func TestDecideBreakComesLast(t *testing.T) {
	apps := others(dependant("apps", needs("base@<2")))
	fresh := observation(layer(wants("2.0.0")), newDir, apps)
	if d := Decide(fresh); d.State != v1alpha1.StateApplying {
		t.Errorf("a layer that has deployed nothing is %s: %s", d.State, d.Message)
	}
	same := observation(layer(isDeployed(oldDir)), newDir, apps, lives(live("a")))
	if d := Decide(same); d.State != v1alpha1.StateApplying {
		t.Errorf("new content of the same version is %s: %s", d.State, d.Message)
	}
	cyclic := observation(layer(isDeployed(oldDir), wants("2.0.0"), needs("apps")), newDir, apps)
	if d := Decide(cyclic); d.Reason != v1alpha1.ReasonDependencyCycle {
		t.Errorf("a cycle is %s: %s", d.Reason, d.Message)
	}
	waits := observation(layer(isDeployed(oldDir), wants("2.0.0"), needs("dns")), newDir, apps)
	if d := Decide(waits); d.Reason != v1alpha1.ReasonWouldBreakDependants {
		t.Errorf("a layer that waits for others as well is %s: %s", d.Reason, d.Message)
	}
}

// A revision that is refused removes, adopts and empties nothing, and uses up
// no permission.
func TestRefusedRevisionChangesNoHands(t *testing.T) {
	was := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
	base := layer(isDeployed(was), wants("2.0.0"), annotation(v1alpha1.AllowEmptyAnnotation, v1alpha1.AllowNext))
	apps := others(dependant("apps", needs("base@<2")))
	for name, dir := range map[string]*directories.Directory{
		"prune": directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), "adopt": directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"), directoriestest.HelmRelease("c")),
		"empty": {Revision: newRevision, Digest: "empty"}, "gone": {Revision: newRevision, Digest: "gone", Missing: true},
	} {
		o := observation(base, dir, lives(live("a"), live("b"), live("c", marked, of("apps"))), apps, func(o *Observation) { o.Deployed = was })
		d, report, _ := decide(t, o)
		if d.Reason != v1alpha1.ReasonWouldBreakDependants || len(d.Plan.Actions) > 0 || len(d.ConsumeFirst) > 0 {
			t.Errorf("%s: %s, %s, uses up %v", name, d.Reason, verbs(d.Plan), d.ConsumeFirst)
		}
		if diff := cmp.Diff(base.Status.Attempt, report.Attempt); diff != "" {
			t.Errorf("%s: a roll-out is recorded (-want +got):\n%s", name, diff)
		}
		if report.Version != "1.0.0" || report.Digest != was.Digest || len(report.Resources) != 2 {
			t.Errorf("%s: the status forgets what is deployed: %+v", name, report)
		}
	}
}

// isRefused gives a layer the status of one that is refused a new version.
func isRefused(l *v1alpha1.AddonsLayer) {
	inState(v1alpha1.StateApplyPending, "Unknown")(l)
	l.Status.ObservedGeneration = l.Generation
	l.Status.Conditions[0].Reason = v1alpha1.ReasonWouldBreakDependants
}

// isRolledBack gives a layer the status of one that has gone back.
func isRolledBack(l *v1alpha1.AddonsLayer) {
	inState(v1alpha1.StateDeployed, "False")(l)
	l.Status.ObservedGeneration = l.Generation
	l.Status.Conditions[0].Reason = v1alpha1.ReasonRolledBack
	l.Status.Rollback = &v1alpha1.Rollback{Generation: l.Generation, Version: l.Spec.Version}
}

// A layer that stays at what it has deployed counts as that for those who
// depend on it, and no longer than it stays.
func TestDependencyThatStays(t *testing.T) {
	const yes, no = "Applying", "DependencyNotDeployed"
	half := func(l *v1alpha1.AddonsLayer) { l.Status.Attempt.Version = "1.5.0" }
	guarded := needs("mesh@<2")
	cases := map[string]struct {
		reason string
		mesh   []layerChange
		more   []Other
		needs  layerChange
		want   string
	}{
		"refused for this layer": {"the range is its own", []layerChange{wants("2.0.0"), isRefused}, nil, guarded, yes},
		"refused for another": {
			"it stays as long as the other wants it",
			[]layerChange{wants("2.0.0"), isRefused},
			[]Other{dependant("apps", guarded)},
			needs("mesh@>=1"), yes,
		},
		"refused, at the wrong version":  {"it counts as what it has, not as what it asks for", []layerChange{wants("2.0.0"), isRefused}, nil, needs("mesh@2.0.0"), "DependencyVersion"},
		"no longer refused":              {"it moves as soon as it sees that the range is wider", []layerChange{wants("2.0.0"), isRefused}, nil, needs("mesh@>=1"), no},
		"refused, but now allowed":       {"it moves as soon as it sees the annotation", []layerChange{wants("2.0.0"), isRefused, annotation(v1alpha1.AllowBreakAnnotation, "true")}, nil, guarded, no},
		"refused at an older generation": {"what it wants now is another thing", []layerChange{wants("2.0.0"), isRefused, wants("2.1.0")}, nil, guarded, no},
		"refused half way":               {"what it has is not whole", []layerChange{wants("2.0.0"), isRefused, half}, nil, guarded, no},
		"refused, of another content": {"what it has is not whole", []layerChange{wants("2.0.0"), isRefused, func(l *v1alpha1.AddonsLayer) {
			l.Status.Attempt.Digest = "other"
		}}, nil, guarded, no},
		"refused, of Kraan's": {"no roll-out is known", []layerChange{wants("2.0.0"), isRefused, func(l *v1alpha1.AddonsLayer) {
			l.Status.Attempt = nil
		}}, nil, guarded, yes},
		"waits for something else": {"that passes", []layerChange{wants("2.0.0"), isRefused, func(l *v1alpha1.AddonsLayer) {
			l.Status.Conditions[0].Reason = v1alpha1.ReasonDependencyNotFound
		}}, nil, guarded, no},
		"rolled back":            {"it stays there", []layerChange{wants("2.0.0"), isRolledBack}, nil, needs("mesh@1.0.0"), yes},
		"rolled back, then more": {"it is tried again", []layerChange{wants("2.0.0"), isRolledBack, wants("2.1.0")}, nil, needs("mesh@1.0.0"), no},
		"rolled back from an older generation": {"it is tried again", []layerChange{wants("2.0.0"), isRolledBack, func(l *v1alpha1.AddonsLayer) {
			l.Status.Rollback.Generation--
		}}, nil, needs("mesh@1.0.0"), no},
		"rolling back":               {"not there yet", []layerChange{wants("2.0.0"), isRolledBack, half}, nil, needs("mesh@1.0.0"), no},
		"rolled back and being gone": {"what goes does not count", []layerChange{wants("2.0.0"), isRolledBack, deleted}, nil, needs("mesh@1.0.0"), no},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mesh := dependant("mesh", tc.mesh...)
			mesh.SameSource, mesh.Digest = true, "what the new revision holds"
			list := append([]Other{mesh}, tc.more...)
			// The layer has something deployed, of another content.
			d := Decide(observation(layer(isDeployed(oldDir), tc.needs), newDir, lives(live("a")), others(list...)))
			if d.Reason != tc.want {
				t.Errorf("%s: %s %s: %s", tc.reason, d.State, d.Reason, d.Message)
			}
		})
	}
}

// drawDependants returns layers that depend on base in all ways.
func drawDependants(t *rapid.T) map[string]Other {
	found := map[string]Other{}
	for _, name := range []string{"apps", "dns", "web"} {
		var asks []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			asks = append(asks, rapid.SampledFrom([]string{
				"base@<2", "base@^1", "base@>=1", "base@1.x", "base@~1.0", "base@^2", "base@*", "base", "base@1.0.0", "base@2.0.0", "other@<2", "base@<two",
			}).Draw(t, "item"))
		}
		changes := []layerChange{named(name), needs(asks...)}
		if chance(t, 70, "has something") {
			changes = append(changes, isDeployed(oldDir))
		}
		if chance(t, 20, "goes") {
			changes = append(changes, deleted)
		}
		found[name] = Other{Layer: layer(changes...)}
	}
	return found
}

// takes is the slow and obvious way to say which of the versions of this test
// a range that is drawn above holds; nil for what is no range.
func takes(item string) []string {
	return map[string][]string{
		"base@<2": {"1.0.0", "1.5.0"}, "base@^1": {"1.0.0", "1.5.0"}, "base@>=1": {"1.0.0", "1.5.0", "2.0.0"}, "base@1.x": {"1.0.0", "1.5.0"},
		"base@~1.0": {"1.0.0"}, "base@^2": {"2.0.0"}, "base@*": {"1.0.0", "1.5.0", "2.0.0"},
	}[item]
}

// A version is refused exactly where some dependant that has something, and is
// not going, takes what is deployed by every range it has, and the version by
// not every one of them.
func TestWouldBreakAgainstTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		versions := []string{"1.0.0", "1.5.0", "2.0.0", "spring", "0.1.01"}
		base := layer(isDeployed(oldDir))
		base.Status.Version = rapid.SampledFrom(append(versions, "")).Draw(t, "deployed")
		version := rapid.SampledFrom(versions).Draw(t, "wanted")
		o := observation(base, newDir)
		o.Layers = drawDependants(t)
		before := maps.Clone(o.Layers)

		var want []string
		for name, other := range o.Layers {
			took, takesIt := true, true
			for _, item := range other.Layer.Spec.Prereqs.DependsOn {
				if held := takes(item); held != nil {
					took = took && slices.Contains(held, base.Status.Version)
					takesIt = takesIt && slices.Contains(held, version)
				}
			}
			if took && !takesIt && other.Layer.Status.Revision != "" && other.Layer.DeletionTimestamp == nil && base.Status.Version != "" {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		var got []string
		for _, text := range wouldBreak(o, version) {
			name, _, _ := strings.Cut(text, " (")
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("from %q to %q with %v (-want +got):\n%s", base.Status.Version, version, o.Layers, diff)
		}
		if diff := cmp.Diff(before, o.Layers); diff != "" {
			t.Fatalf("what was seen is changed:\n%s", diff)
		}
		base.Spec.Version = version
		d := Decide(o)
		if refused := d.Reason == v1alpha1.ReasonWouldBreakDependants; refused != (len(want) > 0) {
			t.Fatalf("%s %s: %s", d.State, d.Reason, d.Message)
		}
		metav1.SetMetaDataAnnotation(&base.ObjectMeta, v1alpha1.AllowBreakAnnotation, "true")
		if d := Decide(o); d.Reason == v1alpha1.ReasonWouldBreakDependants {
			t.Fatalf("allowed, and refused: %s", d.Message)
		}
	})
}
