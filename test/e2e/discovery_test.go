// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/standin"
)

// discovery makes the ClusterDiscovery name of the fixture's namespace.
func (f *fixture) discovery(name, spec string) *v1alpha1.ClusterDiscovery {
	f.Helper()
	discovery := &v1alpha1.ClusterDiscovery{}
	f.written(discovery, fmt.Sprintf("metadata: {namespace: PREFIX, name: %s}\nspec:\n%s", name, spec))
	f.Cleanup(func() {
		if f.Failed() {
			_ = stack.client.Get(f.ctx, client.ObjectKeyFromObject(discovery), discovery)
			f.Logf("ClusterDiscovery %s: %+v", name, discovery.Status)
		}
		f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, discovery)))
	})
	return discovery
}

// discoverySays waits until a ClusterDiscovery is ready or not, for a reason, with a
// message that has all of the words.
func (f *fixture) discoverySays(discovery *v1alpha1.ClusterDiscovery, status metav1.ConditionStatus, reason string, words ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("ClusterDiscovery %s is Ready=%s %s %q", discovery.Name, status, reason, words), func() error {
		f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(discovery), discovery))
		ready := meta.FindStatusCondition(discovery.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Status != status || ready.Reason != reason {
			return fmt.Errorf("it says %+v", ready)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, ready.Message)
			}
		}
		return nil
	})
}

// standIn makes clusters of the Clusters on the cluster that Strata runs in.
func (f *fixture) standIn() *standin.Maker {
	f.Helper()
	f.must(standin.InstallCRDs(f.ctx, stack.plane))
	maker, err := standin.Start(f.ctx, stack.plane.Config(), f.prefix, f.Logf)
	f.must(err)
	f.Cleanup(func() {
		if err := maker.Close(); err != nil {
			f.Error(err)
		}
	})
	return maker
}

// A cluster that Cluster API makes becomes a RemoteCluster with its labels, is filled by
// the Platforms that select it, goes with its Cluster, and is another one when it is made
// again.
func TestClustersOfClusterAPIAreDiscovered(t *testing.T) {
	f := newFixture(t)
	f.standIn()
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", "  layers:\n  - {name: apps, applications: [{name: apps, application: PREFIX-app, version: 1.0.0}]}\n")
	f.platform("addons", "  bundle: {family: PREFIX}\n  clusterSelector: {namespace: PREFIX, matchLabels: {site: east}}\n")
	discovery := f.discovery("all", "  kind: Cluster\n  selector: {matchLabels: {env: prod}}\n  template: {interval: 1s}\n")
	f.discoverySays(discovery, metav1.ConditionTrue, v1alpha1.ReasonDiscovered, "0 of 0")

	edge := types.NamespacedName{Namespace: f.prefix, Name: "edge"}
	filled := func() *v1alpha1.RemoteCluster {
		t.Helper()
		cluster := standin.NewCluster(edge.Namespace, edge.Name)
		cluster.SetLabels(map[string]string{"env": "prod", "site": "east", v1alpha1.LayerLabel: "forged"})
		f.must(stack.client.Create(f.ctx, cluster))
		found := f.clusterSays(edge, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
		if found.Labels["site"] != "east" || found.Labels[v1alpha1.LayerLabel] != "" || found.Annotations[v1alpha1.DiscoveredUIDAnnotation] != string(cluster.GetUID()) {
			t.Errorf("the RemoteCluster has the labels %v and the annotations %v", found.Labels, found.Annotations)
		}
		f.clusterHas(edge, v1alpha1.LayerCount{Deployed: 1, Total: 1})
		f.discoverySays(discovery, metav1.ConditionTrue, v1alpha1.ReasonDiscovered, "1 of 1")
		return found
	}
	goes := func() {
		t.Helper()
		f.must(stack.client.Delete(f.ctx, standin.NewCluster(edge.Namespace, edge.Name)))
		f.eventually("Cluster and RemoteCluster are gone", func() error {
			if err := isGone(stack.client.Get(f.ctx, edge, standin.NewCluster("", ""))); err != nil {
				return err
			}
			return isGone(stack.client.Get(f.ctx, edge, &v1alpha1.RemoteCluster{}))
		})
		f.eventually("the layer of the cluster is gone", func() error {
			layers := &v1alpha1.AddonsLayerList{}
			f.must(stack.client.List(f.ctx, layers, client.MatchingLabels{v1alpha1.PlatformLabel: f.name("addons")}))
			if len(layers.Items) > 0 {
				return fmt.Errorf("it is there")
			}
			return nil
		})
	}
	first := filled()
	shown, err := f.kubectl("--namespace", f.prefix, "get", "clusterdiscoveries").CombinedOutput()
	f.must(err)
	if lines := strings.Split(string(shown), "\n"); strings.Join(strings.Fields(lines[0]), " ") != "NAME KIND SELECTED CLUSTERS READY STATUS MESSAGE" ||
		strings.Join(strings.Fields(lines[1]), " ") != "all Cluster 1 1 1 Discovered 1 of 1 RemoteClusters are ready" {
		t.Errorf("kubectl shows\n%s", shown)
	}
	goes()
	t.Log("another cluster of the same name")
	second := filled()
	if first.Status.ClusterUID == second.Status.ClusterUID || first.Status.Endpoint == second.Status.Endpoint {
		t.Errorf("it is the same cluster: %s at %s", second.Status.ClusterUID, second.Status.Endpoint)
	}

	t.Log("what a discovery has made stays when it goes")
	f.must(stack.client.Delete(f.ctx, discovery))
	f.eventually("the discovery is gone", func() error { return isGone(stack.client.Get(f.ctx, client.ObjectKeyFromObject(discovery), discovery)) })
	left := &v1alpha1.RemoteCluster{}
	f.must(stack.client.Get(f.ctx, edge, left))
	if !left.DeletionTimestamp.IsZero() {
		t.Error("the RemoteCluster goes with the discovery")
	}
	discovery = f.discovery("all", "  kind: Cluster\n  selector: {matchLabels: {env: prod}}\n  template: {interval: 1s}\n")
	f.discoverySays(discovery, metav1.ConditionTrue, v1alpha1.ReasonDiscovered, "1 of 1")
	goes()
}

// A ClusterProfile becomes a RemoteCluster with its labels and what its properties say. It
// waits, and says so, until a Secret that names the profile lies beside it.
func TestClusterProfilesAreDiscovered(t *testing.T) {
	f := newFixture(t)
	discovery := f.discovery("inventory", "  kind: ClusterProfile\n  selector: {}\n  template: {interval: 1s, labels: {team: PREFIX}}\n")
	f.discoverySays(discovery, metav1.ConditionFalse, v1alpha1.ReasonKindNotServed, "ClusterProfile.multicluster.x-k8s.io")
	f.must(stack.plane.InstallCRDs(f.ctx, "../standin/inventory"))
	f.Cleanup(func() {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusterprofiles.multicluster.x-k8s.io"}}
		f.must(stack.client.Delete(f.ctx, definition))
	})
	f.discoverySays(discovery, metav1.ConditionTrue, v1alpha1.ReasonDiscovered, "0 of 0")

	profile := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": f.prefix, "name": "west", "labels": map[string]any{"x-k8s.io/cluster-manager": "fleet"}},
		"spec":     map[string]any{"clusterManager": map[string]any{"name": "fleet"}},
	}}
	f.must(stack.client.Create(f.ctx, profile))
	profile.Object["status"] = map[string]any{
		"version": map[string]any{"kubernetes": "v1.36.0"}, "properties": []any{map[string]any{"name": "location", "value": "west-1"}},
	}
	f.must(stack.client.Status().Update(f.ctx, profile))
	west := types.NamespacedName{Namespace: f.prefix, Name: "west"}
	f.clusterSays(west, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "west-kubeconfig")
	f.discoverySays(discovery, metav1.ConditionTrue, v1alpha1.ReasonDiscovered, "0 of 1")
	f.must(stack.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "credentials", Labels: map[string]string{"x-k8s.io/cluster-profile": "west"}},
		Data:       map[string][]byte{"Config": f.far(0).kubeconfig(t)},
	}))
	found := f.clusterSays(west, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	f.eventually("the RemoteCluster has what the profile says", func() error {
		f.must(stack.client.Get(f.ctx, west, found))
		if found.Labels["location"] != "west-1" || found.Labels["x-k8s.io/cluster-manager"] != "fleet" || found.Labels["team"] != f.prefix ||
			found.Annotations[v1alpha1.ReportedVersionAnnotation] != "v1.36.0" {
			return fmt.Errorf("it has the labels %v and the annotations %v", found.Labels, found.Annotations)
		}
		return nil
	})
	f.must(stack.client.Delete(f.ctx, profile))
	f.eventually("the RemoteCluster goes with the profile", func() error { return isGone(stack.client.Get(f.ctx, west, &v1alpha1.RemoteCluster{})) })
}
