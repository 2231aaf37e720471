// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/standin"
)

// treeManager are the layers of a bundle that makes a cluster with Cluster API, registers
// it, and fills it with what makes further clusters; %[1]s is what becomes of what is on it
// when it goes.
const treeManager = `
  layers:
  - name: provision
    objects:
    - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: manager, namespace: PREFIX}, spec: {clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}}}}
    waitFor:
    - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: PREFIX, name: manager, readyExpr: "object.?status.?phase.orValue('') == 'Provisioned'", as: manager}
  - name: register
    dependsOn: [provision]
    remoteCluster: {kubeConfig: {secretRef: {name: manager-kubeconfig, namespace: PREFIX}}, interval: 1s, labels: {of: PREFIX-manager}%[1]s}
  - name: system
    onClusterOf: register
    waitFor: [{apiVersion: v1, kind: Node, name: stand-in, readyExpr: "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"}]
    applications:
    - {name: network, application: PREFIX-app, version: 1.0.0, values: {labels: {standin.example.dev/network: "yes"}}}
    - {name: cluster-api, application: PREFIX-app, version: 1.0.0, values: {data: {of: "${cluster.host}"}}}
`

// treeTenant are the layers of a bundle that makes a cluster on another one, and fills it:
// the network while its nodes are not ready, then autoscaling and storage side by side,
// then what may be switched off, then what people came for. %[1]s is what becomes of what
// is on it, and %[2]s the version of its applications.
const treeTenant = `
  inputs: [{name: monitoring, type: Boolean, default: true}]
  layers:
  - name: provision
    objects:
    - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: inner, namespace: PREFIX}, spec: {clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}}}}
    waitFor:
    - {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, namespace: PREFIX, name: inner, readyExpr: "object.?status.?phase.orValue('') == 'Provisioned'"}
  - name: register
    dependsOn: [provision]
    remoteCluster: {kubeConfig: {secretRef: {name: inner-kubeconfig, namespace: PREFIX}}, interval: 1s, labels: {of: PREFIX-inner}%[1]s}
  - name: network
    onClusterOf: register
    waitFor: [{apiVersion: v1, kind: Node, name: stand-in, readyExpr: "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", as: node}]
    applications: [{name: network, application: PREFIX-app, version: %[2]s, values: {labels: {standin.example.dev/network: "yes"}}}]
  - name: autoscaling
    onClusterOf: register
    dependsOn: [network]
    applications: [{name: autoscaling, application: PREFIX-app, version: %[2]s, values: {data: {node: "${objects.node.metadata.name}"}}}]
  - name: storage
    onClusterOf: register
    dependsOn: [network]
    applications: [{name: storage, application: PREFIX-app, version: %[2]s, values: {data: {endpoint: "${clusters.register.endpoint}"}}}]
  - name: monitoring
    when: inputs.monitoring
    onClusterOf: register
    dependsOn: [storage]
    applications: [{name: monitoring, application: PREFIX-app, version: %[2]s}]
  - name: workloads
    onClusterOf: register
    dependsOn: [autoscaling, monitoring]
    applications: [{name: workloads, application: PREFIX-app, version: %[2]s}]
`

// tree is a manager that a bundle makes, a cluster that another one makes on it, and an
// application that is picked on top.
type tree struct {
	*fixture
	home, there *standin.Maker
	policy      string
}

// published publishes a version of one of the bundles.
func (f *tree) published(name, version, text string) {
	f.Helper()
	bundle := &v1alpha1.ApplicationBundle{}
	f.written(bundle, fmt.Sprintf("metadata: {name: PREFIX-%[1]s-%[2]s}\nspec:\n  family: PREFIX-%[1]s\n  version: %[2]s\n%[3]s", name, version, text))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, bundle))) })
}

// tenant publishes a version of the bundle of the cluster on the manager.
func (f *tree) tenant(version, from, applications string) {
	f.Helper()
	f.published("tenant", version, "  upgradesFrom: [\""+from+"\"]\n"+fmt.Sprintf(treeTenant, f.policy, applications))
}

// grow makes the whole tree, and returns when all of it is well.
func (f *tree) grow(manager string) {
	f.Helper()
	arrived := f.arrivals()
	// The three are written at once: each waits for what it stands on.
	f.platform("shop", "  applications: [{name: PREFIX-shop}]\n  clusterSelector: {namespace: PREFIX, matchLabels: {of: PREFIX-inner}}\n")
	f.platform("tenant", "  bundle: {family: PREFIX-tenant, version: 1.0.0}\n  clusterSelector: {namespace: PREFIX, matchLabels: {of: PREFIX-manager}}\n")
	f.platform("manager", "  bundle: {family: PREFIX-manager}\n")
	f.platformReady("manager", manager)
	f.Log("the manager is made, registered and filled")

	// What the application cluster-api would bring.
	plane := f.home.Plane("manager")
	f.must(standin.InstallCRDs(f.ctx, plane))
	there, err := standin.Start(f.ctx, plane.Config(), f.prefix, f.Logf)
	f.must(err)
	f.there = there
	f.platformReady("tenant", "1.0.0")
	f.eventually("the application is picked on top", func() error {
		platform := f.getPlatform("shop")
		if platform.Status.Clusters.Ready != 1 {
			return fmt.Errorf("it counts %+v", platform.Status.Clusters)
		}
		return nil
	})
	f.inOrder(arrived(), "deployed", "manager-provision", "manager-register", "manager-system", "tenant*-provision", "tenant*-register",
		"tenant*-network", "tenant*-storage", "tenant*-monitoring", "tenant*-workloads", "shop*")
	f.inOrder(arrived(), "deployed", "tenant*-network", "tenant*-autoscaling", "tenant*-workloads")
	f.Log("the cluster on it is made and filled, the network first, and the application is on top")
}

// arrivals watches layers from now on, and returns what tells in which order they were
// deployed for the first time.
func (f *fixture) arrivals() func() []string {
	f.Helper()
	watch, err := stack.client.Watch(f.ctx, &v1alpha1.AddonsLayerList{})
	f.must(err)
	f.Cleanup(watch.Stop)
	found := make(chan string, 1000)
	go func() {
		seen := map[types.UID]bool{}
		for event := range watch.ResultChan() {
			layer, ok := event.Object.(*v1alpha1.AddonsLayer)
			if ok && strings.HasPrefix(layer.Name, f.prefix+"-") && layer.Status.State == v1alpha1.StateDeployed && !seen[layer.UID] {
				seen[layer.UID] = true
				found <- strings.TrimPrefix(layer.Name, f.prefix+"-")
			}
		}
	}()
	var order []string
	return func() []string {
		for len(found) > 0 {
			order = append(order, <-found)
		}
		return order
	}
}

// inOrder checks that of what happened one came after the other. A word is a beginning and
// an end of a name, with a star between.
func (f *fixture) inOrder(happened []string, what string, words ...string) {
	f.Helper()
	last := -1
	for _, word := range words {
		begin, end, _ := strings.Cut(word, "*")
		at := slices.IndexFunc(happened, func(one string) bool { return strings.HasPrefix(one, begin) && strings.HasSuffix(one, end) })
		if at <= last {
			f.Errorf("they were %s in the order\n%q: %s is not where it belongs in\n%q", what, happened, word, words)
			return
		}
		last = at
	}
}

// inner returns the RemoteCluster of the cluster on the manager.
func (f *tree) inner() *v1alpha1.RemoteCluster {
	f.Helper()
	list := &v1alpha1.RemoteClusterList{}
	f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix), client.MatchingLabels{"of": f.prefix + "-inner"}))
	if len(list.Items) != 1 {
		f.Fatalf("%d RemoteClusters", len(list.Items))
	}
	return &list.Items[0]
}

// on returns a client of a cluster that a stand-in has made.
func (f *tree) on(plane *controlplane.ControlPlane) client.Client {
	f.Helper()
	made, err := client.New(plane.Config(), client.Options{Scheme: stack.client.Scheme()})
	f.must(err)
	return made
}

// has waits until a ConfigMap of a cluster has a value.
func (f *tree) has(on client.Client, name, key, want string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%s of %s is %s", key, name, want), func() error {
		data, err := f.configMapOn(on, f.prefix, name)
		if err == nil && data[key] != want {
			err = fmt.Errorf("it is %q", data[key])
		}
		return err
	})
}

// layerOf returns the layer of a bundle's layer of the tenant.
func (f *tree) layerOf(of string) *v1alpha1.AddonsLayer {
	f.Helper()
	list := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, list, client.MatchingLabels{v1alpha1.PlatformLabel: f.name("tenant"), v1alpha1.PlatformLayerLabel: of}))
	if len(list.Items) != 1 {
		return nil
	}
	return &list.Items[0]
}

// outage is how long the API server of the inner cluster is away.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("STRATA_TREE_OUTAGE")
	if text == "" {
		return 10 * time.Second
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("STRATA_TREE_OUTAGE: %v", err)
	}
	return limit
}

// The whole of what people run who make clusters of clusters: three API servers, Flux, and
// a stand-in where Cluster API would make machines.
func TestReferenceTree(t *testing.T) {
	f := &tree{fixture: newFixture(t)}
	f.home = f.standIn()
	f.Cleanup(func() {
		if f.there != nil {
			f.must(f.there.Close())
		}
	})
	for _, name := range []string{"app", "shop"} {
		app := &v1alpha1.HelmApplication{}
		text := "metadata: {name: PREFIX-" + name + "}\nspec:\n  versions:\n"
		for _, version := range []string{"1.0.0", "2.0.0"} {
			text += "  - {version: " + version + ", namespace: {name: PREFIX, create: true}, chart: {repository: {url: CHARTS, chart: configmap}}}\n"
		}
		f.written(app, text)
		f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	}
	f.published("manager", "1.0.0", fmt.Sprintf(treeManager, ""))
	f.tenant("1.0.0", ">=0.1", "1.0.0")
	f.grow("1.0.0")

	manager, plane := f.on(f.home.Plane("manager")), f.there.Plane("inner")
	inner := f.on(plane)
	f.has(manager, "cluster-api", "chartVersion", "1.0.0")
	f.has(inner, "autoscaling", "node", "stand-in")
	f.has(inner, "storage", "endpoint", f.inner().Status.Endpoint)
	f.has(inner, f.name("shop"), "chartVersion", "2.0.0")

	f.Log("a part is switched off and on")
	f.editPlatform("tenant", `{"spec":{"layerTemplate":{"orphanGrace":"1s"},"inputs":{"monitoring":false}}}`)
	f.eventually("the part is gone", func() error {
		if !f.missing(inner, &corev1.ConfigMap{}, "monitoring") || f.layerOf("monitoring") != nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	f.platformReady("tenant", "1.0.0")
	f.editPlatform("tenant", `{"spec":{"inputs":{"monitoring":true}}}`)
	f.has(inner, "monitoring", "chartVersion", "1.0.0")
	f.platformReady("tenant", "1.0.0")

	f.Log("the cluster is moved from 1.0.0 to 1.2.0, over 1.1.0")
	f.tenant("1.1.0", ">=1.0 <1.1", "1.0.0")
	f.tenant("1.2.0", ">=1.1 <1.2", "2.0.0")
	versions := f.versionsOf(strings.TrimPrefix(f.layerOf("workloads").Name, f.prefix+"-"))
	f.moveTo("tenant", "1.2.0")
	f.platformReady("tenant", "1.2.0")
	f.has(inner, "workloads", "chartVersion", "2.0.0")
	if got, want := versions("1.2.0"), []string{"1.0.0", "1.1.0", "1.2.0"}; !slices.Equal(got, want) {
		t.Errorf("the last layer was deployed at %v, want %v", got, want)
	}

	f.away(plane, inner)
	f.fromTheLeaves()

	f.Log("and once more, to go from the root")
	f.policy = ", deletionPolicy: Delete"
	f.published("manager", "2.0.0", fmt.Sprintf(treeManager, f.policy))
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		f.must(stack.client.Delete(f.ctx, &v1alpha1.ApplicationBundle{ObjectMeta: metav1.ObjectMeta{Name: f.name("tenant-" + version)}}))
	}
	f.fromTheRoot()
}

// away takes the API server of the inner cluster away: its layers are Unknown, nothing of
// the tree is touched, and all goes on when it is back.
func (f *tree) away(plane *controlplane.ControlPlane, inner client.Client) {
	f.Helper()
	f.Logf("the API server of the inner cluster is killed, for %s", outage(f.T))
	layer := f.layerOf("workloads")
	f.patch(f.inner(), `{"spec":{"unreachable":{"after":"2s"}}}`)
	f.must(plane.KillComponent(controlplane.APIServer))
	f.eventually("what is on it is not known", func() error {
		if state := f.layerOf("workloads").Status.State; state != v1alpha1.StateUnknown {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	f.throughout(outage(f.T), "nothing is given up", func() error {
		if now := f.layerOf("workloads"); now == nil || now.UID != layer.UID || !now.DeletionTimestamp.IsZero() {
			return fmt.Errorf("the layer goes")
		}
		if ready := f.readyOf(f.getPlatform("manager")); ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("the manager is not well: %s", ready.Message)
		}
		return nil
	})
	f.must(plane.StartComponent(f.ctx, controlplane.APIServer))
	f.platformReady("tenant", "1.2.0")
	f.has(inner, "workloads", "chartVersion", "2.0.0")
	f.Log("it is back, and all of it is well")
}

// fromTheLeaves deletes the tree from its leaves. The root does not go before.
func (f *tree) fromTheLeaves() {
	f.Helper()
	f.Log("the tree is deleted from the leaves")
	gone := f.departures()
	f.must(stack.client.Delete(f.ctx, f.getPlatform("manager")))
	f.platformSays("manager", v1alpha1.ReadyCondition, metav1.ConditionFalse, "Platform "+f.name("tenant")+" is on RemoteCluster", "delete that first")
	f.must(stack.client.Delete(f.ctx, f.getPlatform("tenant")))
	f.platformSays("tenant", v1alpha1.ReadyCondition, metav1.ConditionFalse, "Platform "+f.name("shop")+" is on RemoteCluster", "delete that first")
	f.platformGone("shop")
	f.allGone(gone)
	for _, name := range []string{"tenant", "manager"} {
		f.eventually("platform "+name+" is gone", func() error {
			return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, &v1alpha1.Platform{}))
		})
	}
}

// allGone checks the order in which the layers and clusters of the tree went, and that
// nothing runs any more.
func (f *tree) allGone(gone func(int) []string) {
	f.Helper()
	order := gone(13)
	f.inOrder(order, "deleted", "layer shop*", "layer tenant*-workloads", "layer tenant*-monitoring", "layer tenant*-storage", "layer tenant*-network",
		"cluster tenant*-register", "layer tenant*-register", "layer tenant*-provision",
		"layer manager-system", "cluster manager-register", "layer manager-register", "layer manager-provision")
	f.inOrder(order, "deleted", "layer tenant*-workloads", "layer tenant*-autoscaling", "layer tenant*-network")
	if f.there.Plane("inner") != nil || f.home.Plane("manager") != nil {
		f.Error("an API server runs whose Cluster is gone")
	}
	f.must(f.there.Close())
	f.there = nil
	f.nothingLeft(stack.client, "the management cluster")
	f.Logf("gone in this order: %s", strings.Join(order, ", "))
}

// fromTheRoot makes the tree anew, and deletes its root, which takes the rest along.
func (f *tree) fromTheRoot() {
	f.Helper()
	f.eventually("the bundles can be published anew", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("tenant-1.0.0")}, &v1alpha1.ApplicationBundle{}))
	})
	f.tenant("1.0.0", ">=0.1", "1.0.0")
	f.grow("2.0.0")
	gone := f.departures()
	f.must(stack.client.Delete(f.ctx, f.getPlatform("manager")))
	f.allGone(gone)
	for _, name := range []string{"tenant", "shop"} {
		f.eventually("platform "+name+" has no cluster any more", func() error {
			platform := f.getPlatform(name)
			if platform.DeletionTimestamp != nil || platform.Status.Clusters.Total != 0 {
				return fmt.Errorf("it counts %+v", platform.Status.Clusters)
			}
			return nil
		})
	}
	if ready := meta.FindStatusCondition(f.getPlatform("tenant").Status.Conditions, v1alpha1.ReadyCondition); ready == nil {
		f.Error("the tenant says nothing")
	}
}
