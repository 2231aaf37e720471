// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// madeCluster are the layers of a bundle that makes a cluster and puts a network there,
// which counts as deployed once somebody says that it is up; %s is what becomes of the
// cluster.
const madeCluster = `
  layers:
  - name: provision
    applications: [{name: outer, application: PREFIX-cluster, version: 1.0.0, ready: Applied, values: {name: outer}}]
  - name: register
    dependsOn: [provision]
    remoteCluster: {kubeConfig: {secretRef: {name: outer-kubeconfig, namespace: PREFIX}}, interval: 1s, labels: {of: PREFIX}%s}
  - name: network
    onClusterOf: register
    waitFor: [{apiVersion: v1, kind: ConfigMap, namespace: PREFIX, name: network-is-up, readyExpr: "object.data.up == 'yes'"}]
    applications: [{name: network, application: PREFIX-app, version: 1.0.0}]
`

// makerAndGuest is a Platform that makes a cluster of another one, and one whose
// application is to be there as soon as it appears.
func (f *fixture) makerAndGuest(outer *farCluster, kubeconfig []byte, policy string) {
	f.Helper()
	f.must(outer.CreateNamespace(f.ctx, f.prefix))
	f.application("cluster", "cluster", "1.0.0")
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", fmt.Sprintf(madeCluster, policy))
	guest := &v1alpha1.ApplicationBundle{}
	f.written(guest, "metadata: {name: PREFIX-guest}\nspec:\n  family: PREFIX-guest\n  version: 1.0.0\n  layers:\n"+
		"  - {name: apps, applications: [{name: apps, application: PREFIX-app, version: 1.0.0}]}\n")
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, guest))) })
	f.provisions(stack.client, "outer", 100*time.Millisecond, kubeconfig)
	f.platform("guest", "  bundle: {family: PREFIX-guest}\n  clusterSelector: {namespace: PREFIX, matchLabels: {of: PREFIX}}\n")
	f.platform("maker", "  bundle: {family: PREFIX}\n")

	layer := f.guestLayer()
	f.reason(layer, v1alpha1.ReasonDependencyNotDeployed, f.name("maker-network"))
	if !f.missing(outer.client, &corev1.ConfigMap{}, "apps") {
		f.Error("the guest was installed before the network of its cluster was up")
	}
	up := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "network-is-up"}, Data: map[string]string{"up": "yes"}}
	f.must(outer.client.Create(f.ctx, up))
	f.Cleanup(func() { _ = outer.client.Delete(f.ctx, up) })
	f.platformReady("maker", "1.0.0")
	f.platformReady("guest", "1.0.0")
	if f.missing(outer.client, &corev1.ConfigMap{}, "apps") {
		f.Error("the guest is not there")
	}
}

// guestLayer waits for the only layer of the guest, and returns its name without the
// fixture's prefix.
func (f *fixture) guestLayer() string {
	f.Helper()
	layers := &v1alpha1.AddonsLayerList{}
	f.eventually("the guest has a layer", func() error {
		f.must(stack.client.List(f.ctx, layers, client.MatchingLabels{v1alpha1.PlatformLabel: f.name("guest")}))
		if len(layers.Items) != 1 {
			return fmt.Errorf("it has %d", len(layers.Items))
		}
		return nil
	})
	return layers.Items[0].Name[len(f.prefix)+1:]
}

// A cluster's own Platform comes first and goes last: it is not deleted under what
// another one has there.
func TestPlatformOfAClusterIsNotDeletedUnderAnother(t *testing.T) {
	f := newFixture(t)
	outer := f.far(0)
	f.makerAndGuest(outer, outer.kubeconfig(t), "")
	gone := f.departures()
	layer := f.guestLayer()
	f.must(stack.client.Delete(f.ctx, f.getPlatform("maker")))
	f.platformSays("maker", v1alpha1.ReadyCondition, metav1.ConditionFalse,
		"Platform "+f.name("guest")+" is on RemoteCluster "+f.prefix+"/"+f.name("maker-register"), "delete that first")
	f.throughout(2*time.Second, "the network stays under the guest", func() error {
		if f.missing(outer.client, &corev1.ConfigMap{}, "network") || f.get("maker-network").DeletionTimestamp != nil {
			return errors.New("it goes")
		}
		return nil
	})
	f.platformGone("guest")
	f.eventually("the maker follows", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("maker")}, &v1alpha1.Platform{}))
	})
	want := []string{"layer " + layer, "layer maker-network", "cluster maker-register", "layer maker-register", "layer maker-provision"}
	if got := gone(len(want)); !slices.Equal(got, want) {
		t.Errorf("they went in the order\n%q, want\n%q", got, want)
	}
}

// Where the cluster says so, what is there goes with it, from the leaves.
func TestClusterTakesAlongWhatIsThere(t *testing.T) {
	f := newFixture(t)
	outer := f.far(0)
	f.makerAndGuest(outer, outer.kubeconfig(t), ", deletionPolicy: Delete")
	gone := f.departures()
	layer := f.guestLayer()
	f.must(stack.client.Delete(f.ctx, f.getPlatform("maker")))
	want := []string{"layer " + layer, "layer maker-network", "cluster maker-register", "layer maker-register", "layer maker-provision"}
	if got := gone(len(want)); !slices.Equal(got, want) {
		t.Errorf("they went in the order\n%q, want\n%q", got, want)
	}
	for _, name := range []string{"apps", "network"} {
		if !f.missing(outer.client, &corev1.ConfigMap{}, name) {
			t.Errorf("ConfigMap %s is left", name)
		}
	}
	f.eventually("the guest has no cluster any more", func() error {
		if found := f.getPlatform("guest"); found.DeletionTimestamp != nil || found.Status.Clusters.Total != 0 {
			return fmt.Errorf("it counts %+v", found.Status.Clusters)
		}
		return nil
	})
}

// A cluster that is destroyed is not emptied first, whether it still answers or not.
func TestPlatformOfADeadClusterGoes(t *testing.T) {
	f := newFixture(t)
	outer := f.far(0)
	gateway := f.gateway(outer, "127.0.0.1:0")
	f.makerAndGuest(outer, kubeconfigOf(t, gateway.config), ", deletionPolicy: Abandon")
	gateway.sever()
	f.platformGone("maker")
	for _, name := range []string{"apps", "network"} {
		if f.missing(outer.client, &corev1.ConfigMap{}, name) {
			t.Errorf("ConfigMap %s was removed from a cluster that did not answer", name)
		}
	}
	f.platformGone("guest")
	f.nothingLeft(stack.client, "the management cluster")
}
