// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/test/forged"
)

// broughtAbout returns what a decision brings about, here and for those who wait for the layer,
// and the workloads that are read for it.
func broughtAbout(o Observation) []string {
	d := Decide(o)
	all := decisionsOf(d)
	if d.State == v1alpha1.StateDeployed {
		all = append(all, "is deployed")
	}
	if d.Rollback != nil && o.Layer.Status.Rollback == nil {
		all = append(all, "goes back")
	}
	workloads, _ := o.WatchedWorkloads()
	for _, workload := range workloads {
		all = append(all, "reads "+workload.ID.String())
	}
	return all
}

// situation returns the observation of a layer whose directory was applied, with its objects as
// they are.
func situation(dir *directories.Directory, objs ...*unstructured.Unstructured) Observation {
	o := observation(layer(isDeployed(dir)), dir)
	o.Layer.Status.State = v1alpha1.StateApplying
	for _, obj := range objs {
		o.Live[objects.IDOf(obj)] = obj
	}
	return o
}

// listedObject returns an object as a directory has it, and as it is once it was applied.
func listedObject(apiVersion, kind string) (directories.Manifest, *unstructured.Unstructured) {
	manifest := directoriestest.Any(apiVersion, kind, "default", "it")
	obj := live("it")
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	failing(obj)
	return manifest, obj
}

// ofReleases returns situations in which the status of a release matters.
func ofReleases() map[string]Observation {
	chart := directoriestest.HelmRelease("a", "chart", map[string]any{"spec": map[string]any{
		"chart": "a", "version": "2.0.0", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"},
	}})
	older := live("a")
	older.Object["spec"] = chart.Object.DeepCopy().Object["spec"]
	older.Object["status"].(map[string]any)["lastAttemptedRevision"] = "1.0.0"
	one := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	watching := situation(one, live("a"))
	watching.Layer.Spec.WatchHealth = &v1alpha1.HealthWatch{}
	going := situation(one, live("a"), live("b", acting))
	going.Layer.Status.Resources = append(going.Layer.Status.Resources, resourceOf("b"))
	all := map[string]Observation{
		"not ready": situation(one, live("a", failing)),
		"at another one": situation(one, live("a", func(obj *unstructured.Unstructured) {
			obj.Object["status"].(map[string]any)["observedGeneration"] = int64(7)
		})),
		"has the chart before": situation(directoriestest.Of(newRevision, chart), older),
		"watches health":       watching,
		"goes while Helm acts": going,
	}
	observed := func(obj *unstructured.Unstructured) {
		acting(obj)
		obj.Object["status"].(map[string]any)["observedGeneration"] = obj.GetGeneration()
	}
	for name, change := range map[string]func(*unstructured.Unstructured){"rolls out": failing, "is at work": acting, "is at work on it": observed} {
		rolling := observation(failingLayer(2*time.Hour), secondDir, restored(firstDir))
		for _, release := range []string{"a", "b", "c"} {
			obj := live(release)
			if release == "c" || name == "rolls out" {
				change(obj)
			}
			rolling.Live[objects.IDOf(obj)] = obj
		}
		all[name] = rolling
	}
	return all
}

// resourceOf is what the inventory says of a release.
func resourceOf(name string) v1alpha1.Resource {
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease(name))
	return layer(isDeployed(dir)).Status.Resources[0]
}

// withObject returns an observation with a live object in the place of the one of its name.
func withObject(o Observation, obj *unstructured.Unstructured) Observation {
	o.Live = maps.Clone(o.Live)
	o.Live[objects.IDOf(obj)] = obj
	return o
}

// news returns what was brought about and would not have been.
func news(honest, done []string) []string {
	return slices.DeleteFunc(slices.Clone(done), func(one string) bool { return slices.Contains(honest, one) })
}

// eachRelease calls each for the releases of an observation.
func eachRelease(o Observation, each func(*unstructured.Unstructured)) {
	for id, obj := range o.Live {
		if obj != nil && id.GroupKind() == kinds.HelmReleaseKind {
			each(obj)
		}
	}
}

// Whatever somebody has written into the fields of a HelmRelease's status of which nothing is to
// follow, nothing is written or deleted, and no layer is deployed, that would not have been.
func TestForgedStatusOfARelease(t *testing.T) {
	brings := 0
	check := func(o Observation, fail func(string, ...any)) {
		honest := broughtAbout(o)
		brings += len(honest)
		eachRelease(o, func(obj *unstructured.Unstructured) {
			for _, forgery := range forged.EachForeign(t, "HelmRelease", obj, "1.0.0", "2.0.0") {
				if done := news(honest, broughtAbout(withObject(o, forgery.Object))); len(done) > 0 {
					fail("%s: %v, and not only %v", forgery.Name, done, honest)
				}
			}
		})
	}
	for _, o := range ofReleases() {
		check(o, t.Fatalf)
	}
	rapid.Check(t, func(r *rapid.T) {
		o := drawObservation(r)
		o.Layer = Trusted(o.Layer, decisions.Seal{})
		check(o, r.Fatalf)
	})
	if brings == 0 {
		t.Error("nothing was brought about")
	}
}

// A field that is acted on would be found if it were in a class of which nothing follows: the
// same forgeries, of fields that are believed, bring something about.
func TestForgeriesFindWhatIsActedOnOfReleases(t *testing.T) {
	for path, class := range v1alpha1.ForeignStatusFields("HelmRelease") {
		if !class.IsBelieved() || path == "lastAttemptedConfigDigest" { // which only rotations read
			continue
		}
		found := false
		for _, o := range ofReleases() {
			honest := broughtAbout(o)
			eachRelease(o, func(obj *unstructured.Unstructured) {
				for _, forgery := range forged.OfForeign(t, path, obj, "1.0.0", "2.0.0") {
					found = found || len(news(honest, broughtAbout(withObject(o, forgery.Object)))) > 0
				}
			})
		}
		if !found {
			t.Errorf("a forged %s of a release brings nothing about in any of the situations", path)
		}
	}
}

// A layer takes an object that it lists for ready as the object's status says, whatever its kind
// is: that is so for each of the fields that are in the class WhereListed, and for no other one.
func TestLayersReadStatusesOfWhatTheyList(t *testing.T) {
	for kind, status := range map[string]any{
		v1alpha1.CapabilityClaimKind:    v1alpha1.CapabilityClaimStatus{},
		v1alpha1.CapabilityProviderKind: v1alpha1.CapabilityProviderStatus{},
		v1alpha1.HelmApplicationKind:    v1alpha1.HelmApplicationStatus{},
		v1alpha1.ApplicationBundleKind:  v1alpha1.ApplicationBundleStatus{},
		v1alpha1.HostClusterKind:        v1alpha1.HostClusterStatus{},
		v1alpha1.ClusterDiscoveryKind:   v1alpha1.ClusterDiscoveryStatus{},
	} {
		manifest, obj := listedObject(v1alpha1.GroupVersion.String(), kind)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(content, obj.Object["status"].(map[string]any))
		obj.Object["status"] = content
		o := situation(directoriestest.Of(newRevision, manifest), obj)
		o.Scopes[objects.IDOf(obj).ServedKind()] = objects.ScopeNamespaced
		honest := broughtAbout(o)
		for path, class := range v1alpha1.StatusFields(kind) {
			if path == "conditions" {
				path = "conditions[Ready]"
			}
			found := false
			for _, forgery := range forged.OfForeign(t, path, obj) {
				found = found || len(news(honest, broughtAbout(withObject(o, forgery.Object)))) > 0
			}
			if path != "observedGeneration" && found != class.IsListed() {
				t.Errorf("%s: a forged %s has a layer go on: %t", kind, path, found)
			}
		}
	}
}
