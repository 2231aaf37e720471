// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// hosting is a Platform whose first layer holds a HostCluster, at %s, and whose last one
// fills it.
const hosting = `apiVersion: kraan.io/v1alpha1
kind: Platform
metadata: {name: edge}
spec:
  layers:
  - name: hosts
    objects:
    - apiVersion: kraan.io/v1alpha1
      kind: HostCluster
      metadata: {name: edge, namespace: fleet, labels: {site: north}}
      spec:
        version: v1.36.3
        ssh: {secretRef: {name: ssh}}
        deletionPolicy: Reset
        controlPlane: [{name: cp-0, address: %s, kubelet: {cgroupV1: true}}]
  - name: reach
    dependsOn: [hosts]
    remoteCluster: {kubeConfig: {secretRef: {name: edge-kubeconfig, namespace: fleet}}, interval: 1s}
  - name: settings
    onClusterOf: reach
    objects:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}, data: {at: "${cluster.host}"}}
`

// fill starts Strata's own controller, with the rights of the chart.
func (h *hub) fill() {
	h.Helper()
	program, err := strata.Build(h.Context(), h.TempDir())
	if err != nil {
		h.Fatal(err)
	}
	network := strings.TrimSuffix(h.lab.IP(), "1") + "0/24"
	main, err := strata.Prepare(strata.Options{
		Binary: program, Kubeconfig: h.admin.Kubeconfig, Dir: h.TempDir(), Confined: true,
		Args: []string{"--allowed-cluster-ranges", network, "--sync-period", "10s", "--layer-kinds", "hostclusters.kraan.io"},
	})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(main.Close)
	if err := main.Start(h.Context()); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		_ = main.Kill()
		if log, err := os.ReadFile(main.Log()); err == nil && h.Failed() {
			h.Logf("%s", log[max(0, len(log)-6000):])
		}
	})
}

// isReady waits until an object is Ready.
func (h *hub) isReady(obj client.Object, conditions func() []metav1.Condition) {
	h.Helper()
	err := controlplane.WaitFor(h.Context(), 3*time.Minute, func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(conditions(), v1alpha1.ReadyCondition) {
			return fmt.Errorf("%T %s: %+v", obj, obj.GetName(), conditions())
		}
		return nil
	})
	if err != nil {
		h.Fatalf("%v\n%s", err, h.log())
	}
}

// gone waits until an object is not there.
func (h *hub) gone(obj client.Object) {
	h.Helper()
	err := controlplane.WaitFor(h.Context(), 2*time.Minute, func(ctx context.Context) error {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return fmt.Errorf("%T %s is there (%w)", obj, obj.GetName(), err)
	})
	if err != nil {
		h.Fatalf("%v\n%+v\n%s", err, h.ready(), h.log())
	}
}

// A layer of a Platform holds a HostCluster, and others fill the cluster that is made of it.
// When the Platform goes, they go first, and then the RemoteCluster; the hosts are reset
// once somebody says which cluster is meant.
func TestPlatformHoldsAHostCluster(t *testing.T) {
	t.Parallel()
	h := newHub(newUser(t, 1), controlplane.SourceController, controlplane.HelmController)
	host := h.lab.Hosts()[0]
	if err := h.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.fill()
	platform := &v1alpha1.Platform{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, hosting, host.IP()), platform); err != nil {
		t.Fatal(err)
	}
	h.put(platform)
	h.isReady(platform, func() []metav1.Condition { return platform.Status.Conditions })
	if at := h.kubectl("", "get", "configmap", "hello", "-o", "jsonpath={.data.at}"); at != host.IP() {
		t.Errorf("the ConfigMap there has %q", at)
	}
	id := h.cluster().Status.ID
	if err := h.client.Delete(t.Context(), platform); err != nil {
		t.Fatal(err)
	}
	h.await(v1alpha1.ReasonDeletionBlocked, "kraan.io/confirm-deletion="+id)
	if left := h.kubectl("", "get", "configmap", "hello", "--ignore-not-found"); left != "" {
		t.Errorf("the hosts are asked for while there is %s", left)
	}
	h.annotate(v1alpha1.ConfirmDeletionAnnotation, id)
	h.gone(platform)
	if left := host.File("/etc/kubernetes/admin.conf"); left != "" {
		t.Error("the host was not reset")
	}
}

// A ClusterDiscovery makes a RemoteCluster of a HostCluster once it has a cluster, with its
// labels, and another one when the hosts become another cluster. It is not reset while a
// RemoteCluster leads there.
func TestHostClusterBecomesARemoteCluster(t *testing.T) {
	t.Parallel()
	h := newHub(newUser(t, 1), controlplane.SourceController, controlplane.HelmController)
	host := h.lab.Hosts()[0]
	h.fill()
	discovery := &v1alpha1.ClusterDiscovery{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ClusterDiscoveryKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "hosts"},
		Spec:       v1alpha1.ClusterDiscoverySpec{Kind: v1alpha1.DiscoveredHostCluster},
	}
	h.put(discovery)
	h.edit("name: edge, ", "name: edge, labels: {site: north}, ")
	h.apply("")
	h.awaitCondition(discovery, func() []metav1.Condition { return discovery.Status.Conditions }, "HostCluster edge has no cluster yet")
	if err := h.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await(v1alpha1.ReasonHostsHealthy, "1 host is healthy")
	made := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "edge"}}
	h.isReady(made, func() []metav1.Condition { return made.Status.Conditions })
	if made.Labels["site"] != "north" || made.Annotations[v1alpha1.DiscoveredUIDAnnotation] != h.cluster().Status.ID || made.Status.Version != "v1.36.3" {
		t.Errorf("%+v", made)
	}

	// The hosts become another cluster: the RemoteCluster of the one before goes.
	if err := h.keeper.Kill(); err != nil {
		t.Fatal(err)
	}
	h.must(0, []string{"reset", "--confirm", "fleet/edge"}, "cp-0: reset")
	if err := h.keeper.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := made.UID
	err := controlplane.WaitFor(t.Context(), 3*time.Minute, func(ctx context.Context) error {
		if err := h.client.Get(ctx, types.NamespacedName{Namespace: "fleet", Name: "edge"}, made); err != nil {
			return err
		}
		if made.UID == before || !meta.IsStatusConditionTrue(made.Status.Conditions, v1alpha1.ReadyCondition) {
			return fmt.Errorf("it is the same: %+v", made.Status.Conditions)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v: %+v\n%s", err, h.ready(), h.log())
	}

	// The HostCluster goes, and with it the RemoteCluster; the cluster stays.
	h.delete()
	h.gone(made)
	h.kubectl("", "get", "nodes")
	secret := &corev1.Secret{}
	if err := h.client.Get(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "edge-kubeconfig"}, secret); err != nil {
		t.Errorf("the kubeconfig of a cluster that goes on: %v", err)
	}
	if host.File("/etc/kubernetes/admin.conf") == "" {
		t.Error("the host was reset")
	}
}

// awaitCondition waits until the Ready condition of an object says a text.
func (h *hub) awaitCondition(obj client.Object, conditions func() []metav1.Condition, text string) {
	h.Helper()
	err := controlplane.WaitFor(h.Context(), time.Minute, func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if is := meta.FindStatusCondition(conditions(), v1alpha1.ReadyCondition); is == nil || !strings.Contains(is.Message, text) {
			return fmt.Errorf("want %q: %+v", text, conditions())
		}
		return nil
	})
	if err != nil {
		h.Fatal(err)
	}
}
