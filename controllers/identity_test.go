// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/reserved"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
)

// clusterSays waits until a condition of a RemoteCluster has a status and a reason,
// and a message with all words.
func (f *fixture) clusterSays(name, condition string, status metav1.ConditionStatus, reason string, words ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("RemoteCluster %s is %s=%s, %s", name, condition, status, reason), func() error {
		found := meta.FindStatusCondition(f.clusterStatus(name).Conditions, condition)
		if found == nil || found.Status != status || found.Reason != reason {
			return fmt.Errorf("it is %+v", found)
		}
		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, found.Message)
			}
		}
		return nil
	})
}

// layerSays is as clusterSays, of a layer's condition Ready.
func (f *fixture) layerSays(name, reason string, words ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("layer %s says %s", name, reason), func() error {
		found := meta.FindStatusCondition(f.get(name).Status.Conditions, v1alpha1.ReadyCondition)
		if found == nil || found.Reason != reason {
			return fmt.Errorf("it is %+v", found)
		}
		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, found.Message)
			}
		}
		return nil
	})
}

// annotateCluster has somebody annotate a RemoteCluster.
func (f *fixture) annotateCluster(name, key, value string) {
	f.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	f.must(f.client.Patch(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (f *fixture) hasNoAnnotation(name, key string) {
	f.Helper()
	f.eventually("the annotation "+key+" is used up", func() error {
		found := &v1alpha1.RemoteCluster{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found); err != nil {
			return err
		}
		if value, is := found.Annotations[key]; is {
			return fmt.Errorf("it is %s", value)
		}
		return nil
	})
}

// onCluster puts a layer on a RemoteCluster of the fixture.
func (f *fixture) onCluster(name string) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: f.namespace, Name: name}
		layer.Spec.OrphanGrace = &metav1.Duration{}
	}
}

func (f *fixture) configMap(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {value: one}\n", f.namespace, name)
}

// helmReleases returns the HelmReleases of the fixture's namespace.
func (f *fixture) helmReleases() []helmv2.HelmRelease {
	f.Helper()
	list := &helmv2.HelmReleaseList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
	return list.Items
}

// readyOne plays helm-controller for the one HelmRelease that there is to be.
func (f *fixture) readyOne() helmv2.HelmRelease {
	f.Helper()
	f.eventually("there is a HelmRelease", func() error {
		if found := f.helmReleases(); len(found) != 1 {
			return fmt.Errorf("there are %d", len(found))
		}
		return nil
	})
	found := f.helmReleases()[0]
	f.ready(found.Name)
	return found
}

// copied returns Strata's own copy of a kubeconfig.
func (f *fixture) copied(cluster string) *corev1.Secret {
	f.Helper()
	found := &corev1.Secret{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: reserved.KubeConfigName(cluster)}, found))
	return found
}

// A Secret that is swapped for one of another cluster: nothing is written there, by
// Strata or, through its copy, by Flux, before somebody says so, and a forged status
// says nothing.
func TestSwappedKubeconfigReachesNoOtherCluster(t *testing.T) {
	f := newBareFixture(t)
	const one, two = "11111111-aaaa", "22222222-bbbb"
	first, second := f.newGuise(one, ""), f.newGuise(two, "")
	f.publish("v1", map[string]string{"base/release.yaml": f.release("app"), "base/settings.yaml": f.configMap("settings"), "base/more.yaml": f.configMap("more")})
	f.startBoth()
	f.clusterBy("prod", first.kubeconfig())
	f.layerWith("base", f.onCluster("prod"))
	f.readyOne()
	f.deployed("base", "v1")
	if status := f.clusterStatus("prod"); status.ClusterUID != one || f.copied("prod").Annotations[v1alpha1.ClusterUIDAnnotation] != one {
		t.Fatalf("the cluster is recorded as %q, and on the copy as %v", status.ClusterUID, f.copied("prod").Annotations)
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "prod"}, Data: map[string][]byte{"value": second.kubeconfig()}}
	f.must(f.client.Update(f.ctx, secret))
	f.clusterSays("prod", v1alpha1.IdentifiedCondition, metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged, one, two)
	f.clusterSays("prod", v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged, "kraan.io/accept-cluster="+two)
	f.layerSays("base", v1alpha1.ReasonClusterMistaken, one, two, "kraan.io/accept-cluster="+two)
	f.eventually("its release is suspended", func() error {
		if found := f.helmReleases(); len(found) != 1 || !found[0].Spec.Suspend {
			return errors.New("it is not")
		}
		return nil
	})
	// Nor what is removed meanwhile, or changed by hand, or said in the status.
	f.publish("v2", map[string]string{"base/release.yaml": f.release("app"), "base/settings.yaml": f.configMap("settings")})
	f.must(f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "settings"}}))
	forged := `{"status":{"clusterUID":"` + two + `","conditions":[{"type":"Identified","status":"True","reason":"Identified","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"},` +
		`{"type":"Ready","status":"True","reason":"Reachable","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`
	cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "prod"}}
	f.must(f.client.Status().Patch(f.ctx, cluster, client.RawPatch(types.MergePatchType, []byte(forged))))
	f.annotateCluster("prod", "test/look", "again")
	f.clusterSays("prod", v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIdentityChanged)
	f.annotateCluster("prod", v1alpha1.AcceptClusterAnnotation, "33333333-cccc")
	f.settle()
	if written := second.written(); len(written) > 0 {
		t.Errorf("the other cluster was written to: %v", written)
	}
	if copied := f.copied("prod"); !bytes.Equal(copied.Data["value"], first.kubeconfig()) || copied.Annotations[v1alpha1.ClusterUIDAnnotation] != one {
		t.Errorf("Flux would write to the other cluster, which is recorded as %v", copied.Annotations)
	}

	f.annotateCluster("prod", v1alpha1.AcceptClusterAnnotation, two)
	f.hasNoAnnotation("prod", v1alpha1.AcceptClusterAnnotation)
	f.eventually("its release goes on", func() error {
		if found := f.helmReleases(); len(found) != 1 || found[0].Spec.Suspend {
			return errors.New("it does not")
		}
		return nil
	})
	f.readyOne()
	f.deployed("base", "v2")
	if written := second.written(); len(written) < 2 || !strings.HasPrefix(written[0], "claims for ") {
		t.Errorf("it is claimed first, and then written to, and this was written: %v", written)
	}
	if copied := f.copied("prod"); !bytes.Equal(copied.Data["value"], second.kubeconfig()) || copied.Annotations[v1alpha1.ClusterUIDAnnotation] != two {
		t.Errorf("the copy says %v", copied.Annotations)
	}
}

// Two RemoteClusters of one cluster, as teams may have with credentials of their own,
// install one Helm release once: the second layer is refused, with both names.
func TestOneHelmReleaseThroughTwoRemoteClusters(t *testing.T) {
	f := newBareFixture(t)
	shared := f.newGuise("44444444-dddd", "")
	f.publish("v1", map[string]string{
		"one/release.yaml": f.release("app"), "one/settings.yaml": f.configMap("settings"),
		"two/release.yaml": f.release("app"), "three/settings.yaml": f.configMap("settings"),
	})
	f.startBoth()
	f.clusterBy("red", shared.kubeconfig())
	f.layerWith("one", f.onCluster("red"))
	before := f.readyOne()
	f.deployed("one", "v1")

	f.clusterBy("blue", shared.kubeconfig())
	red, blue := f.namespace+"/red", f.namespace+"/blue"
	f.clusterSays("blue", v1alpha1.IdentifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonClusterShared, red)
	f.clusterSays("red", v1alpha1.IdentifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonClusterShared, blue)
	f.layerWith("two", f.onCluster("blue"))
	f.layerSays("two", v1alpha1.ReasonOwnershipConflict, red, blue, "layer "+f.name("one"))
	f.layerWith("three", f.onCluster("blue"))
	f.layerSays("three", v1alpha1.ReasonOwnershipConflict, red, blue, "layer "+f.name("one"))
	f.deployed("one", "v1")
	if after := f.helmReleases(); len(after) != 1 || after[0].UID != before.UID || after[0].Spec.Suspend {
		t.Errorf("there are %d HelmReleases", len(after))
	}
	// What one has let go is not taken over by name of another cluster, either.
	f.publish("v2", map[string]string{"one/other.yaml": f.configMap("other"), "three/settings.yaml": f.configMap("settings"), "two/release.yaml": f.release("app")})
	f.settle()
	f.layerSays("three", v1alpha1.ReasonOwnershipConflict, red, blue)
	if after := f.helmReleases(); len(after) != 1 || after[0].UID != before.UID {
		t.Errorf("there are %d HelmReleases", len(after))
	}
}

// The cluster that Strata runs in, as its own RemoteCluster, is the same cluster.
func TestHubAsItsOwnRemoteCluster(t *testing.T) {
	f := newBareFixture(t)
	f.publish("v1", map[string]string{"home/release.yaml": f.release("app"), "away/release.yaml": f.release("app")})
	f.startBoth()
	f.layer("home")
	before := f.readyOne()
	f.deployed("home", "v1")
	f.cluster("self")
	f.clusterSays("self", v1alpha1.IdentifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonClusterShared, "the cluster that Strata runs in")
	f.layerWith("away", f.onCluster("self"))
	f.layerSays("away", v1alpha1.ReasonOwnershipConflict, f.namespace+"/self", "the cluster that Strata runs in", "layer "+f.name("home"))
	f.deployed("home", "v1")
	if after := f.helmReleases(); len(after) != 1 || after[0].UID != before.UID {
		t.Errorf("there are %d HelmReleases", len(after))
	}
}

// A layer that moves from one RemoteCluster to another one of the same cluster takes
// what it has along: nothing is deleted.
func TestLayerMovesBetweenNamesOfOneCluster(t *testing.T) {
	f := newBareFixture(t)
	shared := f.newGuise("55555555-eeee", "")
	f.publish("v1", map[string]string{"base/settings.yaml": f.configMap("settings")})
	f.startBoth()
	f.clusterBy("red", shared.kubeconfig())
	f.clusterBy("blue", shared.kubeconfig())
	f.layerWith("base", f.onCluster("red"))
	f.deployed("base", "v1")
	before := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "settings"}, before))
	layer := f.get("base")
	layer.Spec.Cluster.Name = "blue"
	f.must(f.client.Update(f.ctx, layer))
	f.eventually("it is deployed there", func() error {
		if status := f.get("base").Status; status.Cluster != f.namespace+"/blue" || status.State != v1alpha1.StateDeployed {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
	f.settle()
	after := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "settings"}, after))
	if after.UID != before.UID || after.Labels[v1alpha1.OrphanedLabel] != "" {
		t.Errorf("it was deleted, or is about to be: %v", after.Labels)
	}
	for _, write := range shared.written() {
		if strings.HasPrefix(write, http.MethodDelete) {
			t.Errorf("it was deleted: %s", write)
		}
	}
}

// A cluster that another hub has is not written to before somebody takes it over, by
// the name of that hub.
func TestSecondHubStopsBeforeItsFirstWrite(t *testing.T) {
	f := newBareFixture(t)
	const other = "88888888-hub"
	claimed := f.newGuise("66666666-ffff", other)
	f.publish("v1", map[string]string{"base/settings.yaml": f.configMap("settings")})
	f.startBoth()
	f.newCluster("prod", claimed.kubeconfig())
	f.layerWith("base", f.onCluster("prod"))
	f.clusterSays("prod", v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonClaimedByOther, other, "kraan.io/take-over-from="+other)
	f.layerSays("base", v1alpha1.ReasonClusterMistaken, other)
	f.annotateCluster("prod", v1alpha1.TakeOverAnnotation, "77777777-hub")
	f.settle()
	if written := claimed.written(); len(written) > 0 {
		t.Errorf("it was written to: %v", written)
	}
	f.annotateCluster("prod", v1alpha1.TakeOverAnnotation, other)
	f.hasNoAnnotation("prod", v1alpha1.TakeOverAnnotation)
	f.deployed("base", "v1")
	home := &corev1.Namespace{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: clusters.SystemNamespace}, home))
	if hub := claimed.claimedFor(); hub != string(home.UID) {
		t.Errorf("the claim names %q, and this hub is %s", hub, home.UID)
	}
	// Once it is taken away again, this one stops.
	claimed.mu.Lock()
	claimed.hub, claimed.writes = other, nil
	claimed.mu.Unlock()
	f.clusterSays("prod", v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonClaimedByOther, other)
	f.must(f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "settings"}}))
	f.settle()
	if written := claimed.written(); len(written) > 0 {
		t.Errorf("it was written to: %v", written)
	}
}

// The claim goes with the RemoteCluster.
func TestClaimGoesWithTheRemoteCluster(t *testing.T) {
	f := newBareFixture(t)
	shared := f.newGuise("77777777-abcd", "")
	f.startBoth()
	f.clusterBy("red", shared.kubeconfig())
	f.clusterBy("blue", shared.kubeconfig())
	for _, step := range []struct {
		name    string
		claimed bool
	}{{"red", true}, {"blue", false}} {
		cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: step.name}}
		f.must(f.client.Delete(f.ctx, cluster))
		f.eventually("RemoteCluster "+step.name+" goes", func() error {
			err := f.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), cluster)
			if err == nil {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		if got := shared.claimedFor() != ""; got != step.claimed {
			t.Errorf("without %s the cluster is claimed: %t", step.name, got)
		}
	}
}
