// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/versions"
)

// situations are those in which some annotation makes a difference. Each says
// which annotation opens what, and what tells that it is open.
var situations = []struct {
	name, annotation string
	words            []string
	see              func() Observation
	open             func(Decision) bool
}{
	{
		"an empty directory", v1alpha1.AllowEmptyAnnotation,
		[]string{v1alpha1.AllowNext, newRevision},
		func() Observation { return observation(layer(isDeployed(oldDir)), directoriestest.Of(newRevision)) },
		func(d Decision) bool { return d.Reason != v1alpha1.ReasonEmptyDirectory },
	},
	{
		"most releases go", v1alpha1.AllowPruneAnnotation,
		[]string{v1alpha1.AllowNext, newRevision},
		func() Observation {
			before, objects := many(oldRevision, 0, 6)
			after, _ := many(newRevision, 0, 1)
			return observation(layer(isDeployed(before)), after, lives(objects...))
		},
		func(d Decision) bool { return d.Reason != v1alpha1.ReasonMassPrune },
	},
	{
		"a dependant is left", v1alpha1.ForceDeleteAnnotation,
		[]string{"true"},
		func() Observation {
			return observation(layer(isDeployed(oldDir), deleted), oldDir, lives(live("a")), others(Other{Layer: layer(named("apps"), isDeployed(oldDir), needs("base@1.0.0"))}))
		},
		func(d Decision) bool { return d.Reason != v1alpha1.ReasonDeletionBlocked },
	},
	{
		"custom resources are left", v1alpha1.ConfirmDeletionAnnotation,
		[]string{"true"},
		func() Observation {
			o := observation(layer(isDeployed(oldDir), deleted), oldDir, lives(live("a")))
			o.Blockers = []Blocker{{Resource: schema.GroupResource{Group: "x.io", Resource: "widgets"}, Count: 3, Fate: FateDeleted}}
			return o
		},
		func(d Decision) bool { return d.Reason != v1alpha1.ReasonDeletionBlocked },
	},
	{
		"a dependant would break", v1alpha1.AllowBreakAnnotation,
		[]string{"true"},
		func() Observation {
			l := layer(isDeployed(oldDir))
			l.Spec.Version, l.Generation = "2.0.0", 2
			return observation(l, newDir, lives(live("a")), others(Other{Layer: layer(named("apps"), isDeployed(oldDir), needs("base@^1"))}))
		},
		func(d Decision) bool { return d.Reason != v1alpha1.ReasonWouldBreakDependants },
	},
}

// Annotations are written by hand. Only the very words open something, whatever
// else an annotation says; the decision is the same each time, and the status
// is one that the API server takes.
func FuzzAnnotations(f *testing.F) {
	for i, one := range situations {
		for _, word := range append(slices.Clone(one.words), "", "TRUE", "true ", "next,", "no", "\x00", strings.Repeat("ä", 5000)) {
			f.Add(uint8(i), word, "freeze", "1")
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, value, hold, id string) {
		if !utf8.ValidString(value) || !utf8.ValidString(hold) || !utf8.ValidString(id) {
			return // the API server hands on no such thing
		}
		one := situations[int(at)%len(situations)]
		o := one.see()
		metav1.SetMetaDataAnnotation(&o.Layer.ObjectMeta, one.annotation, value)
		d := decidedSoundly(t, o)
		if want := slices.Contains(one.words, value); one.open(d) != want {
			t.Fatalf("%s: the annotation %s with %q: opened %t, want %t (%s: %s)", one.name, one.annotation, value, !want, want, d.Reason, d.Message)
		}

		o.Layer.Annotations = map[string]string{
			v1alpha1.HoldAnnotation: hold, v1alpha1.HoldUntilAnnotation: value, v1alpha1.HoldReleasesAnnotation: value, v1alpha1.AbandonAnnotation: value,
			v1alpha1.RollbackToAnnotation: id, reconcileRequest: value, "kraan.io/" + value: id,
		}
		held := decidedSoundly(t, o)
		if !isDeleting(o.Layer) && HoldOf(o.Layer, o.Now).Active != (held.State == v1alpha1.StateHold) {
			t.Fatalf("held: %t, and the state is %s", held.State != v1alpha1.StateHold, held.State)
		}

		o = observation(layer(isDeployed(newDir), withHistory(entry("1", "1.0.0", oldDir, v1alpha1.ResultDeployed), entry("2", "1.0.0", newDir, v1alpha1.ResultDeployed))), newDir, restored(oldDir))
		o.Layer.Annotations = map[string]string{v1alpha1.RollbackToAnnotation: id}
		back := decidedSoundly(t, o)
		if goes := back.Rollback != nil; goes != (id == "1") || goes && back.Rollback.To != id {
			t.Fatalf("asked to go back to %q: %+v", id, back.Rollback)
		}
	})
}

// decidedSoundly decides and reports twice, and checks what every report must
// be.
func decidedSoundly(t *testing.T, o Observation) Decision {
	t.Helper()
	before := o.Layer.DeepCopy()
	d := Decide(o)
	report, d := Report(o, d, nil)
	again, _ := Report(o, Decide(o), nil)
	if diff := cmp.Diff(report, again); diff != "" {
		t.Fatalf("reported twice:\n%s", diff)
	}
	if diff := cmp.Diff(before, o.Layer); diff != "" {
		t.Fatalf("the layer that was seen is changed:\n%s", diff)
	}
	types := map[string]bool{}
	for _, c := range report.Conditions {
		if types[c.Type] || c.Reason == "" || len(c.Message) > maxMessage || !utf8.ValidString(c.Message) {
			t.Fatalf("the API server does not take the condition %+v", c)
		}
		types[c.Type] = true
	}
	if len(report.BlockedBy) > maxCauses {
		t.Fatalf("%d causes", len(report.BlockedBy))
	}
	for _, cause := range report.BlockedBy {
		if len(cause.Message) > maxOwnCause || !utf8.ValidString(cause.Message) || cause.Reason == "" || cause.Kind == "" {
			t.Fatalf("the API server does not take the cause %+v", cause)
		}
	}
	ids := map[string]bool{}
	for _, entry := range report.History {
		if ids[entry.ID] && !slices.ContainsFunc(o.Layer.Status.History, func(e v1alpha1.HistoryEntry) bool { return e.ID == entry.ID }) {
			t.Fatalf("two deployments have the id %s", entry.ID)
		}
		ids[entry.ID] = true
	}
	return d
}

// A status may have been written by an older version, by Kraan or by hand. What
// the directory lists never goes because of it, and the report settles.
func FuzzStoredStatus(f *testing.F) {
	written := layer(isDeployed(oldDir)).Status
	written.History = []v1alpha1.HistoryEntry{entry("1", "1.0.0", oldDir, v1alpha1.ResultDeployed)}
	current, err := json.Marshal(written)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(current, int64(1))
	for _, seed := range []string{
		"{}", `{"state":"Deployed","version":"0.1.01","resources":[{"namespace":"default","name":"a","kind":"helmreleases.helm.toolkit.fluxcd.io","status":"Deployed","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`,
		`{"state":"Applying","conditions":[{"type":"Applying","status":"True","reason":"","message":"","lastTransitionTime":null},{"type":"Applying","status":"False"}]}`,
		`{"state":"Failed","attempt":{"digest":"x","startTime":"0001-01-01T00:00:00Z"},"rollback":{"to":"9223372036854775807"},"history":[{"id":"9223372036854775807","result":"Deployed","started":null,"duration":"1s"}]}`,
		`{"resources":[{"name":"a","kind":"","status":"Orphaned"},{"name":"a/b/c","kind":"HelmRelease.helm.toolkit.fluxcd.io","namespace":"default","status":"x","dependsOn":["/","a","x/a",""]}]}`,
		`{"state":"Rolling","blockedBy":[{"depth":-1,"kind":"","reason":""},{"depth":2147483647,"kind":"AddonsLayer","name":"base","reason":"x"}],"observedGeneration":-1}`,
	} {
		f.Add([]byte(seed), int64(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, generation int64) {
		l := layer()
		if len(data) > 50_000 || json.Unmarshal(data, &l.Status) != nil || !utf8.Valid(data) {
			return // the API server hands on no such thing
		}
		l.Generation = generation
		dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b", "dependsOn", []any{map[string]any{"name": "a"}}))
		for _, deletes := range []bool{false, true} {
			if deletes {
				deleted(l)
			}
			o := observation(l, dir, lives(live("a"), live("b", marked)), restored(oldDir))
			o.Layer.Spec.Rollback = true
			d := decidedSoundly(t, o)
			listed := map[objects.ID]bool{releaseID("a"): true, releaseID("b"): true}
			for _, action := range d.Plan.Actions {
				removal := action.Verb == dependents.VerbDelete || action.Verb == dependents.VerbMark
				if removal && listed[action.ID] && !deletes && d.Rollback == nil {
					t.Fatalf("%s %s, which the directory lists", action.Verb, action.ID)
				}
			}
			settles(t, o)
		}
		inventory := Resources(Inventory(l.Status.Resources, nil))
		if diff := cmp.Diff(inventory, Resources(Inventory(inventory, nil)), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("an inventory that is read and written changes:\n%s", diff)
		}
	})
}

// settles fails where a status goes on changing although nothing else does.
func settles(t *testing.T, o Observation) {
	t.Helper()
	var last v1alpha1.AddonsLayerStatus
	for range 4 {
		last, _ = Report(o, Decide(o), nil)
		o.Layer = withStatus(o.Layer, last)
	}
	next, _ := Report(o, Decide(o), nil)
	if diff := cmp.Diff(last, next); diff != "" {
		t.Fatalf("a status is written although nothing has changed (-last +next):\n%s", diff)
	}
}

// A HelmRelease out of a repository may be of any shape. It becomes what is
// applied, as a copy that has the layer's label, or a mistake with its place.
func FuzzContent(f *testing.F) {
	for _, seed := range []string{
		`{"spec":{"interval":"1m","values":{"a":1}}}`, `{"spec":{"dependsOn":[{"name":"b"},{"name":"c","namespace":"x","readyExpr":"true"},7,null]}}`, `{"spec":{"dependsOn":[{"name":"a"}]}}`,
		`{"spec":[]}`, `{"spec":null}`, `{"spec":{"values":[]},"metadata":{"name":"a","namespace":"default","annotations":{"kraan.updateVersion":"true"}}}`,
		`{"spec":{"releaseName":"` + strings.Repeat("x", 60) + `","targetNamespace":"t","storageNamespace":7,"kubeConfig":{"secretRef":{"name":"k"}},"timeout":"2562047h","chart":{"spec":{"sourceRef":{"namespace":"other"}}}}}`,
		`{"metadata":{"name":"a","namespace":"default","labels":{"kraan/layer":"other","orphaned":"x"},"annotations":{"kraan.io/prune":"disabled"}}}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, versioned bool) {
		var fields map[string]any
		if len(data) > 20_000 || utiljson.Unmarshal(data, &fields) != nil || fields == nil {
			return
		}
		object := directoriestest.HelmRelease("a").Object
		for key, value := range fields {
			if key != "apiVersion" && key != "kind" && key != "metadata" {
				object.Object[key] = value
			}
		}
		if labels, found, err := unstructured.NestedStringMap(fields, "metadata", "labels"); found && err == nil {
			object.SetLabels(labels)
		}
		if versioned {
			object.SetAnnotations(map[string]string{v1alpha1.UpdateVersionAnnotation: "true"})
		}
		before := object.DeepCopy()
		dir := directoriestest.Of(newRevision, directories.Manifest{File: "base/a.yaml", Line: 1, Object: object}, directoriestest.HelmRelease("b"))
		got, err := Content(dir, "base", "1.0.0", observation(layer(), dir).Scopes)
		ListingOf(dir)
		placement.ForeignReference(object)
		if !cmp.Equal(before, object) {
			t.Fatal("what others read is changed")
		}
		if err != nil {
			if mistake, ok := err.(*directories.ContentError); !ok || mistake.File == "" || mistake.Field == "" || mistake.Message == "" { //nolint:errorlint // the very error
				t.Fatalf("a mistake without a place: %v", err)
			}
			return
		}
		d := got[slices.IndexFunc(got, func(d dependents.Dependent) bool { return d.ID == releaseID("a") })]
		if labels := d.Manifest().GetLabels(); labels[v1alpha1.LayerLabel] != "base" || labels[v1alpha1.OrphanedLabel] != "" {
			t.Fatalf("labelled %v", labels)
		}
		if name := d.Exclusive[strings.LastIndex(d.Exclusive, "/")+1:]; len(name) > 53 || d.Digest == "" {
			t.Fatalf("stands for %q, digest %q", d.Exclusive, d.Digest)
		}
		if values, _, err := unstructured.NestedString(d.Manifest().Object, "spec", "values", "kraanVersion"); versioned && (err != nil || values != "1.0.0") {
			t.Fatalf("the version is %q: %v", values, err)
		}
		if timeout := timeoutOf(layer(), 90, got); timeout < dependents.TimeoutOf(&unstructured.Unstructured{}) {
			t.Fatalf("%s is less than Flux gives the other release", timeout)
		}
	})
}

// A range takes no version that it should not: semantic versions alone, and
// pre-releases only where it names one. What an exact version takes is itself.
func FuzzAccepts(f *testing.F) {
	for _, seed := range [][2]string{
		{">=1.1 <2", "1.5.0"}, {"^1", "1.0.0-rc.1"}, {">=1.0.0-0", "1.0.0-rc.1"}, {"1.x", "v1.2"}, {"*", ""}, {"1.0.0", "1.0.0"}, {"~1.2 || ^3", "0.1.01"}, {"!=1", "1.0.0+x"}, {"1 - 2", "99999999999999999999.0.0"}, {">1", "1.0.0\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, wanted, version string) {
		if len(wanted)+len(version) > 700 {
			return // more than the API server takes
		}
		dependency, err := dependencies.Parse("base@" + wanted)
		if err != nil {
			return
		}
		takes := dependency.Accepts(version)
		switch {
		case !dependency.Range && takes != (version == wanted):
			t.Fatalf("%q takes %q: %t", wanted, version, takes)
		case dependency.Range && takes && versions.Semantic(version) == nil:
			t.Fatalf("%q takes %q, which is no semantic version", wanted, version)
		case dependency.Range && takes && versions.Semantic(version).Prerelease() != "" && !strings.Contains(wanted, "-"):
			t.Fatalf("%q takes the pre-release %q", wanted, version)
		case takes && dependency.Range && dependency.Accepts(strings.TrimPrefix(version, "v")) != takes:
			t.Fatalf("%q takes %q only with its v", wanted, version)
		}
	})
}
