// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// plausible are texts that a forger would write into the status of a Platform or a RemoteCluster.
var plausible = []string{"1.0.0", "1.1.0", "first", "base-1-0-0", "v1.20.0"}

// eachStep calls each with what Platforms see at each step: of a roll-out in stages, of one that
// picks applications while the catalogue changes, and of one whose bundles are gone.
func eachStep(t *testing.T, each func(Observation)) {
	t.Helper()
	rollsOut := sized(t)
	rollsOut.Platform.Spec.Bundle.Version = "1.1.0"
	picks := picked(picks("shop"))
	picks.settle(t)
	picks.Catalogue["db"] = application("db", "1.0.0", "1.2.0")
	picks.Platform.Spec.Applications[0].Values = jsonOf(`{"b": 2}`)
	gone := sized(t)
	gone.Bundles = nil
	narrow := newWorld(platform("p", "1.x"), bundle("1.0.0", "", "base"), needsKubernetes(bundle("1.1.0", "1.0.x", "base"), ">=1.31"))
	narrow.cluster("c0", nil)
	on("c0")(narrow.Platform)
	after := newWorld(platform("p", "1.0.0"), bundle("1.0.0", "", "base"))
	after.Platform.Spec.DependsOn = []v1alpha1.PlatformDependency{{Name: "first"}}
	first := platform("first", "1.0.0", on("far"))
	first.Generation, first.Status.ObservedGeneration = 1, 1
	first.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonProgressing}}
	after.Platforms = map[string]*v1alpha1.Platform{"p": after.Platform, "first": first}
	for _, w := range []*world{rollsOut, picks, gone, narrow, after} {
		for range 4 {
			each(w.Observation)
			w.apply(t)
			w.engine()
		}
	}
}

// needsKubernetes has a bundle run on some versions of Kubernetes alone.
func needsKubernetes(b *v1alpha1.ApplicationBundle, versions string) *v1alpha1.ApplicationBundle {
	b.Spec.KubeVersion = versions
	return b
}

// stepForgeries calls each with what a Platform writes although one field of its status, or of
// that of another Platform or a RemoteCluster, was forged.
func stepForgeries(
	o Observation,
	ofPlatform func(v1alpha1.PlatformStatus) []forged.Forgery[v1alpha1.PlatformStatus],
	ofCluster func(v1alpha1.RemoteClusterStatus) []forged.Forgery[v1alpha1.RemoteClusterStatus],
	each func(name string, done any),
) {
	for _, forgery := range ofPlatform(o.Platform.Status) {
		changed := o
		changed.Platform = o.Platform.DeepCopy()
		changed.Platform.Status = forgery.Status
		each(forgery.Name, writesOf(Decide(changed)))
	}
	for name, other := range o.Platforms {
		if name == o.Platform.Name {
			continue
		}
		for _, forgery := range ofPlatform(other.Status) {
			changed := o
			changed.Platforms = maps.Clone(o.Platforms)
			changed.Platforms[name] = other.DeepCopy()
			changed.Platforms[name].Status = forgery.Status
			each("Platform "+name+", "+forgery.Name, writesOf(Decide(changed)))
		}
	}
	for name, cluster := range o.Clusters {
		for _, forgery := range ofCluster(cluster.Status) {
			changed := o
			changed.Clusters = maps.Clone(o.Clusters)
			changed.Clusters[name] = cluster.DeepCopy()
			changed.Clusters[name].Status = forgery.Status
			each(name.String()+", "+forgery.Name, writesOf(Decide(changed)))
		}
	}
}

func copiedPlatform(s v1alpha1.PlatformStatus) v1alpha1.PlatformStatus { return *s.DeepCopy() }

func copiedCluster(s v1alpha1.RemoteClusterStatus) v1alpha1.RemoteClusterStatus {
	return *s.DeepCopy()
}

// Whatever somebody has written into the fields of the status of a Platform, or of a RemoteCluster,
// of which nothing is to follow, and be it what others wait for, the Platform writes the same.
func TestForgedStatusAtEachStep(t *testing.T) {
	eachStep(t, func(o Observation) {
		honest := writesOf(Decide(o))
		stepForgeries(o, func(s v1alpha1.PlatformStatus) []forged.Forgery[v1alpha1.PlatformStatus] {
			return forged.Each(t, v1alpha1.PlatformKind, s, copiedPlatform, plausible...)
		}, func(s v1alpha1.RemoteClusterStatus) []forged.Forgery[v1alpha1.RemoteClusterStatus] {
			return forged.Each(t, v1alpha1.RemoteClusterKind, s, copiedCluster, plausible...)
		}, func(name string, done any) {
			if !equality.Semantic.DeepEqual(honest, done) {
				t.Fatalf("%s: %s", name, cmp.Diff(honest, done))
			}
		})
	})
}

// A field that is acted on would be found if it were in a class of which nothing follows: the same
// forgeries of these fields have a Platform write something else.
func TestForgeriesFindWhatIsActedOnOfPlatforms(t *testing.T) {
	acted := map[string]map[string]bool{
		v1alpha1.PlatformKind:      {"lock.applications[].version": false, "rollout.target": false, "rollout.rolledBack": false, "conditions": false},
		v1alpha1.RemoteClusterKind: {"version": false, "conditions": false},
	}
	eachStep(t, func(o Observation) {
		honest := writesOf(Decide(o))
		for kind, paths := range acted {
			for path := range paths {
				stepForgeries(o, func(s v1alpha1.PlatformStatus) []forged.Forgery[v1alpha1.PlatformStatus] {
					if kind != v1alpha1.PlatformKind {
						return nil
					}
					return forged.Of(t, kind, path, s, copiedPlatform, plausible...)
				}, func(s v1alpha1.RemoteClusterStatus) []forged.Forgery[v1alpha1.RemoteClusterStatus] {
					if kind != v1alpha1.RemoteClusterKind {
						return nil
					}
					return forged.Of(t, kind, path, s, copiedCluster, plausible...)
				}, func(_ string, done any) { paths[path] = paths[path] || !equality.Semantic.DeepEqual(honest, done) })
			}
		}
	})
	for kind, paths := range acted {
		for path, found := range paths {
			if !found {
				t.Errorf("a forged %s of a %s has a Platform write nothing else", path, kind)
			}
			if v1alpha1.StatusFields(kind)[path].IsForgeable() {
				t.Errorf("%s of a %s is in a class of which nothing follows", path, kind)
			}
		}
	}
}
