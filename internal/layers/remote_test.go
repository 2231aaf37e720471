// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

// remoteCluster returns the RemoteCluster fleet/prod, of which Ready and Reachable
// say something since a while.
func remoteCluster(ready, reachable metav1.ConditionStatus, since time.Duration) *v1alpha1.RemoteCluster {
	cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	at := metav1.NewTime(testNow.Add(-since).Truncate(time.Second))
	cluster.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: ready, Reason: "Any", Message: "connection refused", LastTransitionTime: at},
		{Type: v1alpha1.ReachableCondition, Status: reachable, Reason: "Any", Message: "connection refused", LastTransitionTime: at},
	}
	return cluster
}

// onProd puts a layer, and what it lists, on a RemoteCluster.
func onProd(cluster *v1alpha1.RemoteCluster, changes ...func(*Observation)) func(*Observation) {
	return func(o *Observation) {
		o.Layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: "fleet", Name: "prod"}
		o.Remote = &Remote{Name: types.NamespacedName{Namespace: "fleet", Name: "prod"}, Object: cluster, Connected: true}
		placed, err := prod.Put(o.Directory)
		if err != nil {
			panic(err)
		}
		o.Directory = placed
		for _, m := range placed.Manifests {
			o.Scopes[m.ID().ServedKind()] = objects.ScopeNamespaced
			if m.Object.GetKind() == "Namespace" {
				o.Scopes[m.ID().ServedKind()] = objects.ScopeCluster
			}
		}
		for _, change := range changes {
			change(o)
		}
	}
}

func TestClusterGate(t *testing.T) {
	well := remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)
	for name, test := range map[string]struct {
		change  func(*Observation)
		state   v1alpha1.State
		reason  string
		message string
		cause   string
	}{
		"well": {onProd(well), v1alpha1.StateApplying, v1alpha1.ReasonApplying, "", ""},
		"no such cluster": {
			onProd(nil), v1alpha1.StatePending, v1alpha1.ReasonClusterNotFound, "waits for RemoteCluster fleet/prod, which does not exist",
			"RemoteCluster fleet/prod ClusterNotFound: waits for RemoteCluster fleet/prod, which does not exist",
		},
		"not connected": {
			onProd(remoteCluster(metav1.ConditionUnknown, metav1.ConditionUnknown, 0), func(o *Observation) { o.Remote.Connected = false }),
			v1alpha1.StatePending, v1alpha1.ReasonClusterNotReady, "waits for RemoteCluster fleet/prod: connection refused",
			"RemoteCluster fleet/prod Any: connection refused",
		},
		"something cannot be read": {
			onProd(well, func(o *Observation) { o.Remote.Err = errors.New("no route to host") }),
			v1alpha1.StatePending, v1alpha1.ReasonClusterNotReady, "no route to host",
			"RemoteCluster fleet/prod ClusterNotReady: waits for RemoteCluster fleet/prod: no route to host",
		},
		"away for a moment": {
			onProd(remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, time.Minute)), v1alpha1.StateApplying, v1alpha1.ReasonApplying, "", "",
		},
		"away for long": {
			onProd(remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, 3*time.Minute)),
			v1alpha1.StateUnknown, v1alpha1.ReasonClusterUnreachable, "has not answered since 2026-01-02T03:01:05Z: connection refused",
			"RemoteCluster fleet/prod Any: connection refused",
		},
		"away for as long as it says": {
			onProd(remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, 3*time.Minute), func(o *Observation) {
				o.Remote.Object.Spec.Unreachable.After = &metav1.Duration{Duration: time.Hour}
			}), v1alpha1.StateApplying, v1alpha1.ReasonApplying, "", "",
		},
		"another version": {
			onProd(well, func(o *Observation) { o.Layer.Spec.Prereqs.K8sVersion, o.ClusterVersion = "1.40", "v1.30.1" }),
			v1alpha1.StateK8sVersion, v1alpha1.ReasonK8sVersion, "the cluster is at v1.30.1",
			"RemoteCluster fleet/prod K8sVersion: waits for Kubernetes 1.40: the cluster is at v1.30.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), test.change))
			if d.State != test.state || d.Reason != test.reason || !strings.Contains(d.Message, test.message) {
				t.Errorf("it is %s (%s): %s", d.State, d.Reason, d.Message)
			}
			if writes := d.Plan.Of(dependents.VerbWrite); (len(writes) > 0) != (test.state == v1alpha1.StateApplying) {
				t.Errorf("it writes %v", writes)
			}
			o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), test.change)
			if test.cause != "" {
				if diff := cmp.Diff([]string{test.cause}, causeLines(causesOf(o, d, nil))); diff != "" {
					t.Errorf("what stands in its way (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Of a layer of another cluster its account writes what is there, and what Flux
// installs from the controller; the true one is named where it fails.
func TestFailureNamesWhoActed(t *testing.T) {
	well := remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)
	o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), onProd(well), func(o *Observation) { o.Layer.Spec.ServiceAccountName = "deployer" })
	here := objects.ID{Kind: "Secret", Namespace: "fleet", Name: "copy"}
	there := objects.ID{Cluster: "fleet/prod", Kind: "ConfigMap", Namespace: "default", Name: "settings"}
	missing := &accounts.MissingError{Account: types.NamespacedName{Namespace: "fleet", Name: "deployer"}}
	for _, test := range []struct {
		name    string
		id      objects.ID
		err     error
		message string
		cause   v1alpha1.Cause
	}{
		{"here", here, errors.New("no"), "cannot apply Secret fleet/copy: no", v1alpha1.Cause{Kind: "Secret", Namespace: "fleet", Name: "copy", Reason: "ApplyFailed", Message: "no"}},
		{
			"there", there, errors.New("no"), "cannot apply ConfigMap default/settings on fleet/prod as ServiceAccount fleet/deployer: no",
			v1alpha1.Cause{Kind: "ConfigMap", Cluster: "fleet/prod", Namespace: "default", Name: "settings", Reason: "ApplyFailed", Message: "no"},
		},
		{
			"no such account", here, missing, "cannot apply Secret fleet/copy as ServiceAccount fleet/deployer: that account does not exist",
			v1alpha1.Cause{Kind: "ServiceAccount", Cluster: "fleet/prod", Namespace: "fleet", Name: "deployer", Reason: "ServiceAccountNotFound", Message: "that account does not exist"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			results := []dependents.Result{{Action: dependents.Action{Verb: dependents.VerbWrite, ID: test.id}, Err: test.err}}
			_, d := Report(o, Decide(o), results)
			if d.Message != test.message {
				t.Errorf("it says %q, want %q", d.Message, test.message)
			}
			if diff := cmp.Diff([]v1alpha1.Cause{test.cause}, causesOf(o, d, results)); diff != "" {
				t.Errorf("what stands in its way (-want +got):\n%s", diff)
			}
		})
	}
}

// A layer whose cluster is away is looked at when the time has come to say so.
func TestUnreachableIsLookedAtInTime(t *testing.T) {
	d := Decide(observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")), onProd(remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, time.Minute))))
	if want := testNow.Add(-time.Minute).Truncate(time.Second).Add(defaultUnreachableAfter); !d.Until.Equal(want) {
		t.Errorf("it is looked at again at %v, want %v", d.Until, want)
	}
}

// What a layer leaves on the cluster that it moves from does not have to be
// allowed, as what leaves its directory has to.
func TestMovesAreNoMassPrune(t *testing.T) {
	var manifests []directories.Manifest
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		manifests = append(manifests, directoriestest.HelmRelease(name))
	}
	dir := directoriestest.Of(newRevision, manifests...)
	base := layer(isDeployed(dir))
	o := observation(base, dir, lives(live("a"), live("b"), live("c"), live("d"), live("e")), onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)))
	d := Decide(o)
	if d.Reason == v1alpha1.ReasonMassPrune {
		t.Fatalf("it is refused: %s", d.Message)
	}
	if marked := d.Plan.Of(dependents.VerbMark); len(marked) != 5 {
		t.Errorf("%d of 5 releases leave", len(marked))
	}
	status, _ := Report(o, d, nil)
	if status.Cluster != "" {
		t.Errorf("it says that it is deployed on %s", status.Cluster)
	}
}

// through has a release install on a cluster of the namespace fleet.
func through(cluster string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		obj.SetNamespace("fleet")
		obj.SetName(cluster + "-" + obj.GetName() + "-12345678")
		_ = unstructured.SetNestedField(obj.Object, reserved.KubeConfigName(cluster), "spec", "kubeConfig", "secretRef", "name")
	}
}

// has puts live objects into the inventory of a layer.
func has(objs ...*unstructured.Unstructured) layerChange {
	return func(l *v1alpha1.AddonsLayer) {
		var entries []dependents.Entry
		for _, obj := range objs {
			entries = append(entries, dependents.Entry{ID: objects.IDOf(obj), Digest: "x", Generation: 1, Status: objects.StatusReady, Since: longAgo.Time})
		}
		l.Status.Resources = append(l.Status.Resources, Resources(entries)...)
	}
}

// The guard asks about what leaves the directory, and not about what a layer leaves
// behind because it moves, whether or not it was ever deployed.
func TestGuardOfAMove(t *testing.T) {
	var manifests []directories.Manifest
	var old, there []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		manifests = append(manifests, directoriestest.HelmRelease(name))
		old, there = append(old, live(name, through("old"))), append(there, live(name, through("prod")))
	}
	well := onProd(remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour))
	for name, test := range map[string]struct {
		layer  *v1alpha1.AddonsLayer
		dir    *directories.Directory
		lives  []*unstructured.Unstructured
		reason string
	}{
		"never deployed": {layer(has(old...)), directoriestest.Of(newRevision, manifests...), old, v1alpha1.ReasonApplying},
		"loses most on its new cluster": {
			layer(has(there...), isAt("fleet/old")), directoriestest.Of(newRevision, manifests[0]), there, v1alpha1.ReasonMassPrune,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := Decide(observation(test.layer, test.dir, lives(test.lives...), well)); d.Reason != test.reason {
				t.Errorf("it is %s: %s", d.Reason, d.Message)
			}
		})
	}
}

// isAt has something be deployed on a cluster.
func isAt(cluster string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Status.Digest, l.Status.Cluster = "sha256:other", cluster }
}

func TestForsakenClusters(t *testing.T) {
	gone := func(c *v1alpha1.RemoteCluster) {
		moment := metav1.NewTime(testNow)
		c.DeletionTimestamp = &moment
	}
	cluster := func(changes ...func(*v1alpha1.RemoteCluster)) *v1alpha1.RemoteCluster {
		c := remoteCluster(metav1.ConditionTrue, metav1.ConditionTrue, time.Hour)
		for _, change := range changes {
			change(c)
		}
		return c
	}
	byPolicy := func(c *v1alpha1.RemoteCluster) { c.Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon }
	byWord := func(c *v1alpha1.RemoteCluster) {
		c.Annotations = map[string]string{v1alpha1.AbandonAnnotation: "true"}
	}
	abandons := annotation(v1alpha1.AbandonAnnotation, "true")
	for name, test := range map[string]struct {
		layer   *v1alpha1.AddonsLayer
		cluster *v1alpha1.RemoteCluster
		want    bool
	}{
		"nobody says so":                        {layer(), cluster(), false},
		"a policy, of one that stays":           {layer(), cluster(byPolicy), false},
		"a policy":                              {layer(), cluster(byPolicy, gone), true},
		"an annotation":                         {layer(), cluster(byWord, gone), true},
		"one that is deleted and waits":         {layer(), cluster(gone), false},
		"a deleted layer of one that answers":   {layer(deleted, abandons), cluster(), false},
		"a deleted layer of one that is away":   {layer(deleted, abandons), remoteCluster(metav1.ConditionFalse, metav1.ConditionFalse, 0), true},
		"a deleted layer of none":               {layer(deleted, abandons), nil, true},
		"a deleted layer that does not give up": {layer(deleted), nil, false},
		"a layer that stays, of none":           {layer(abandons), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsForsaken(test.layer, test.cluster); got != test.want {
				t.Errorf("it is given up: %t", got)
			}
		})
	}
}

func TestClustersLeft(t *testing.T) {
	l := layer()
	l.Status.Cluster = "fleet/old"
	l.Status.Resources = []v1alpha1.Resource{{Name: "a"}, {Name: "b", Cluster: "fleet/old"}, {Name: "c", Cluster: "fleet/older"}}
	want := []types.NamespacedName{{Namespace: "fleet", Name: "old"}, {Namespace: "fleet", Name: "older"}}
	if diff := cmp.Diff(want, ClustersLeft(l)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A RemoteCluster that has gone is not made again by a layer that is being deleted and has to
// wait: the new one would not know that its cluster is given up. A layer that stays makes it
// again, as what it lists says, and a RemoteCluster that is there is still repaired.
func TestClusterIsNotMadeAgainByALayerThatGoes(t *testing.T) {
	made := directoriestest.Any(v1alpha1.GroupVersion.String(), v1alpha1.RemoteClusterKind, "fleet", "prod")
	dir := directoriestest.Of(oldRevision, made, directoriestest.HelmRelease("a"))
	repaired := made.Object.DeepCopy()
	repaired.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	repaired.SetUID("uid-prod")
	repaired.SetGeneration(2)
	dependant := others(Other{Layer: layer(named("apps"), needs("base@1.0.0"), isDeployed(oldDir))})
	for name, test := range map[string]struct {
		layer *v1alpha1.AddonsLayer
		lives func(*Observation)
		want  string
	}{
		"it stays":                     {layer(isDeployed(dir)), lives(live("a")), "Write prod"},
		"it goes":                      {layer(isDeployed(dir), deleted), lives(live("a")), ""},
		"it goes, and another is gone": {layer(isDeployed(dir), deleted), lives(), "Write a"},
		"it goes, and one was edited":  {layer(isDeployed(dir), deleted), lives(live("a"), repaired), "Write prod"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(observation(test.layer, dir, dependant, test.lives, func(o *Observation) {
				o.Deployed = dir
				o.Scopes[made.ID().ServedKind()] = objects.ScopeNamespaced
			}))
			if got := verbs(d.Plan); got != test.want {
				t.Errorf("it does %q, want %q: %s", got, test.want, d.Message)
			}
		})
	}
}
