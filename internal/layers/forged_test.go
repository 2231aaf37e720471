// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/test/forged"
)

// decisionsOf returns what a decision brings about: writes and deletions of objects, and that the
// layer goes.
func decisionsOf(d Decision) []string {
	all := []string{}
	for _, action := range d.Plan.Actions {
		all = append(all, string(action.Verb)+" "+action.ID.String())
	}
	if d.Finalized {
		all = append(all, "goes")
	}
	return all
}

func copied(status v1alpha1.AddonsLayerStatus) v1alpha1.AddonsLayerStatus { return *status.DeepCopy() }

// plausible are texts that others wait for: those that a forger would write.
func plausible(o Observation) []string {
	values := []string{string(v1alpha1.StateDeployed), o.Layer.Spec.Version}
	if o.Directory != nil {
		values = append(values, o.Directory.Digest)
	}
	for _, other := range o.Layers {
		if other.Layer != nil {
			values = append(values, other.Layer.Spec.Version, other.Digest)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// forgeries calls each with what is decided although one field of the layer's status, or of
// that of another layer, was forged.
func forgeries(o Observation, of func(v1alpha1.AddonsLayerStatus) []forged.Forgery[v1alpha1.AddonsLayerStatus], each func(name string, done []string)) {
	for _, forgery := range of(o.Layer.Status) {
		changed := o
		stored := o.Layer.DeepCopy()
		stored.Status = forgery.Status
		changed.Layer = Trusted(stored, decisions.Seal{})
		each(forgery.Name, decisionsOf(Decide(changed)))
	}
	for name, other := range o.Layers {
		if other.Layer == nil {
			continue
		}
		for _, forgery := range of(other.Layer.Status) {
			changed := o
			changed.Layers = maps.Clone(o.Layers)
			with := other
			with.Layer = other.Layer.DeepCopy()
			with.Layer.Status = forgery.Status
			changed.Layers[name] = with
			each("the status of "+name+", "+forgery.Name, decisionsOf(Decide(changed)))
		}
	}
}

// oneShort returns observations of a layer that waits for another one, by the one field of the
// other's status that is not yet as it should be.
func oneShort(t testing.TB) map[string]Observation {
	t.Helper()
	mesh := directoriestest.Of(newRevision, directoriestest.HelmRelease("mesh"))
	found := map[string]Observation{}
	for path, unmake := range map[string]func(*v1alpha1.AddonsLayer){
		"version":            func(l *v1alpha1.AddonsLayer) { l.Status.Version = "0.9.0" },
		"digest":             func(l *v1alpha1.AddonsLayer) { l.Status.Digest = "sha256:older" },
		"observedGeneration": func(l *v1alpha1.AddonsLayer) { l.Generation = 99 },
		"conditions": func(l *v1alpha1.AddonsLayer) {
			for i := range l.Status.Conditions {
				l.Status.Conditions[i].Status = metav1.ConditionFalse
			}
		},
	} {
		other := layer(isDeployed(mesh))
		other.Name = "mesh"
		whole := observation(layer(needs("mesh@1.0.0")), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), others(Other{Layer: other, SameSource: true, Digest: mesh.Digest}))
		if len(decisionsOf(Decide(whole))) == 0 {
			t.Fatalf("the layer waits although all is well: %s", Decide(whole).Message)
		}
		short := other.DeepCopy()
		unmake(short)
		o := whole
		o.Layers = map[string]Other{"mesh": {Layer: short, SameSource: true, Digest: mesh.Digest}}
		found[path] = o
	}
	return found
}

// Whatever somebody has written into the fields of a layer's status of which nothing is to follow,
// and into those of others, nothing is written, deleted or let go that would not have been.
func TestForgedStatusBringsNothingAbout(t *testing.T) {
	brings := 0
	check := func(t testing.TB, o Observation, fail func(string, ...any)) {
		honest := decisionsOf(Decide(o))
		brings += len(honest)
		forgeries(o, func(status v1alpha1.AddonsLayerStatus) []forged.Forgery[v1alpha1.AddonsLayerStatus] {
			return forged.Each(t, v1alpha1.AddonsLayerKind, status, copied, plausible(o)...)
		}, func(name string, done []string) {
			for _, one := range done {
				if !slices.Contains(honest, one) {
					fail("%s: %s, and not only %v", name, one, honest)
				}
			}
		})
	}
	for _, o := range oneShort(t) {
		check(t, o, t.Fatalf)
	}
	rapid.Check(t, func(r *rapid.T) {
		o := drawObservation(r)
		o.Layer = Trusted(o.Layer, decisions.Seal{})
		check(t, o, r.Fatalf)
	})
	if brings == 0 {
		t.Error("nothing was brought about")
	}
}

// A field that is acted on would be found if it were in a class of which nothing follows: the
// same forgeries, of fields that are signed, bring something about.
func TestForgeriesFindWhatIsActedOn(t *testing.T) {
	acted := map[string]bool{"version": false, "digest": false, "observedGeneration": false, "conditions": false, "resources[].status": false}
	for path := range acted {
		if v1alpha1.StatusFields(v1alpha1.AddonsLayerKind)[path] != v1alpha1.Signed {
			t.Errorf("%s is not signed", path)
		}
	}
	try := func(path string, o Observation) {
		honest := decisionsOf(Decide(o))
		forgeries(o, func(status v1alpha1.AddonsLayerStatus) []forged.Forgery[v1alpha1.AddonsLayerStatus] {
			return forged.Of(t, v1alpha1.AddonsLayerKind, path, status, copied, plausible(o)...)
		}, func(_ string, done []string) {
			acted[path] = acted[path] || slices.ContainsFunc(done, func(one string) bool { return !slices.Contains(honest, one) })
		})
	}
	for path, o := range oneShort(t) {
		try(path, o)
	}
	for range 20 { // what is drawn at random has it not each time
		if acted["resources[].status"] {
			break
		}
		rapid.Check(t, func(r *rapid.T) {
			o := drawObservation(r)
			o.Layer = Trusted(o.Layer, decisions.Seal{})
			try("resources[].status", o)
		})
	}
	for path, found := range acted {
		if !found {
			t.Errorf("a forged %s brings nothing about in any of the situations", path)
		}
	}
}
