// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// fleetLayers are the layers of a bundle that makes a cluster and fills it, with
// another cluster in it; %[1]s is the version of its applications.
const fleetLayers = `
  inputs:
  - {name: extra, type: Boolean, default: true}
  - {name: text, default: none}
  layers:
  - name: provision
    applications:
    - {name: outer, application: PREFIX-cluster, version: 1.0.0, ready: Applied, values: {name: outer}}
  - name: register
    dependsOn: [provision]
    remoteCluster: {kubeConfig: {secretRef: {name: outer-kubeconfig, namespace: PREFIX}}, interval: 1s}
  - name: system
    onClusterOf: register
    deleteBefore:
    - {apiVersion: v1, kind: Service, namespace: PREFIX, where: "object.spec.type == 'LoadBalancer'", timeout: 1m}
    applications:
    - {name: network, application: PREFIX-app, version: %[1]s, values: {data: {endpoint: "${cluster.host}:${cluster.port}", text: "${inputs.text}"}}}
    - {name: cloud, application: PREFIX-app, version: %[1]s}
  - name: extra
    onClusterOf: register
    when: inputs.extra
    dependsOn: [system]
    applications:
    - {name: extra, application: PREFIX-app, version: %[1]s}
  - name: apps
    onClusterOf: register
    dependsOn: [extra]
    applications:
    - {name: one, application: PREFIX-app, version: %[1]s}
    - {name: two, application: PREFIX-app, version: %[1]s, parameters: [{name: data.count, value: "3"}]}
    - {name: inner, application: PREFIX-cluster, version: 1.0.0, ready: Applied, values: {name: inner}}
  - name: inner
    onClusterOf: register
    dependsOn: [apps]
    remoteCluster: {kubeConfig: {secretRef: {name: inner-kubeconfig, namespace: PREFIX}}, interval: 1s}
  - name: inside
    onClusterOf: inner
    applications:
    - {name: inside, application: PREFIX-app, version: %[1]s, values: {data: {instance: "${instance.name}", outer: "${clusters.register.endpoint}"}}}
`

// What a Platform is for: its bundle makes a cluster, fills it as soon as it can be
// reached, and another one in that; it is moved from version to version, and taken
// down in reverse.
func TestPlatformMakesClustersAndFillsThem(t *testing.T) {
	f := newFixture(t)
	outer, inner := f.far(0), f.far(1)
	f.application("cluster", "cluster", "1.0.0")
	f.application("app", "configmap", "1.0.0", "2.0.0")
	first := f.bundle("1.0.0", fmt.Sprintf(fleetLayers, "1.0.0"))
	f.provisions(stack.client, "outer", 3*time.Second, outer.kubeconfig(f.T))
	f.provisions(outer.client, "inner", time.Second, inner.kubeconfig(f.T))

	f.platform("fleet", "  bundle: {family: PREFIX}\n  inputs: {text: hello}\n")
	platform := f.platformReady("fleet", "1.0.0")
	if got := platform.Status.Layers; got != (v1alpha1.LayerCount{Deployed: 7, Total: 7}) {
		t.Errorf("it counts layers %+v", got)
	}
	if got := platform.Status.Clusters; got.Total != 1 || got.Ready != 1 {
		t.Errorf("it counts clusters %+v", got)
	}
	nodes := &appsv1.Deployment{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "outer-nodes"}, nodes))
	if nodes.Status.AvailableReplicas != 0 {
		t.Errorf("the cluster was healthy, so that nothing is shown")
	}
	holds := func(on client.Client, name, key, want string) {
		t.Helper()
		if data, err := f.configMapOn(on, f.prefix, name); err != nil || data[key] != want {
			t.Errorf("ConfigMap %s has %v, %v, want %s to be %q", name, data, err, key, want)
		}
	}
	registered := &v1alpha1.RemoteCluster{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: f.name("fleet-register")}, registered))
	holds(outer.client, "network", "endpoint", endpointOf(registered))
	holds(outer.client, "network", "text", "hello")
	holds(outer.client, "two", "count", "3")
	holds(inner.client, "inside", "instance", f.name("fleet"))
	holds(inner.client, "inside", "outer", registered.Status.Endpoint)

	f.platformTold("fleet", corev1.EventTypeNormal, platform.Status.Conditions)

	t.Log("a layer is turned off and on again")
	f.edit("fleet-extra", `{"spec":{"orphanGrace":"1s"}}`) // which is people's to say
	f.editPlatform("fleet", `{"spec":{"inputs":{"extra":false}}}`)
	f.eventually("the layer is gone", func() error {
		if !f.missing(outer.client, &corev1.ConfigMap{}, "extra") {
			return fmt.Errorf("it is there")
		}
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("fleet-extra")}, &v1alpha1.AddonsLayer{}))
	})
	f.platformReady("fleet", "1.0.0")
	if got := f.get("fleet-apps").Spec.Prereqs.DependsOn; !slices.Contains(got, f.name("fleet-system")+"@1.0.0") || slices.Contains(got, f.name("fleet-extra")+"@1.0.0") {
		t.Errorf("what came after the layer depends on %v", got)
	}
	f.editPlatform("fleet", `{"spec":{"inputs":{"extra":true}}}`)
	f.eventually("the layer is there again", func() error {
		_, err := f.configMapOn(outer.client, f.prefix, "extra")
		return err
	})
	f.platformReady("fleet", "1.0.0")

	t.Log("it is moved over two versions")
	f.bundle("1.1.0", "  upgradesFrom: [\">=1.0 <1.1\"]\n"+fmt.Sprintf(fleetLayers, "1.0.0"))
	f.bundle("1.2.0", "  upgradesFrom: [\">=1.1 <1.2\"]\n"+fmt.Sprintf(fleetLayers, "2.0.0"))
	versions := f.versionsOf("fleet-inside")
	f.editPlatform("fleet", `{"spec":{"bundle":{"version":"1.2.0"}}}`)
	f.platformReady("fleet", "1.2.0")
	holds(inner.client, "inside", "chartVersion", "2.0.0")
	holds(outer.client, "one", "chartVersion", "2.0.0")
	if got, want := versions("1.2.0"), []string{"1.0.0", "1.1.0", "1.2.0"}; !slices.Equal(got, want) {
		t.Errorf("the last layer was deployed at %v, want %v", got, want)
	}

	t.Log("it is taken down, when the bundle that it began with and an application are gone")
	f.must(stack.client.Delete(f.ctx, first))
	balancer := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "balancer", Finalizers: []string{"cloud.example/balancer"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	f.must(outer.client.Create(f.ctx, balancer))
	gone := f.departures()
	f.must(stack.client.Delete(f.ctx, &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: f.name("fleet")}}))
	f.eventually("the balancer is to go", func() error {
		f.must(outer.client.Get(f.ctx, client.ObjectKeyFromObject(balancer), balancer))
		if balancer.DeletionTimestamp == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	f.eventually("the platform says what it waits for", func() error {
		platform := &v1alpha1.Platform{}
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("fleet")}, platform))
		for _, trouble := range platform.Status.Worst {
			if contains(trouble.Reason, "balancer") {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", platform.Status.Worst)
	})
	if f.missing(outer.client, &corev1.ConfigMap{}, "network") || f.missing(outer.client, &corev1.ConfigMap{}, "cloud") {
		t.Error("something of its layer went before the balancer")
	}
	balancer.Finalizers = nil
	f.must(outer.client.Update(f.ctx, balancer))
	f.eventually("the platform is gone", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("fleet")}, &v1alpha1.Platform{}))
	})
	want := []string{
		"layer fleet-inside", "cluster fleet-inner", "layer fleet-inner", "layer fleet-apps", "layer fleet-extra",
		"layer fleet-system", "cluster fleet-register", "layer fleet-register", "layer fleet-provision",
	}
	if got := gone(len(want)); !slices.Equal(got, want) {
		t.Errorf("they went in the order\n%q, want\n%q", got, want)
	}
	f.nothingLeft(outer.client, "the outer cluster")
	f.nothingLeft(inner.client, "the inner cluster")
	f.nothingLeft(stack.client, "the management cluster")
}
