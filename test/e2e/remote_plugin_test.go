// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// kubectl get shows RemoteClusters under each of their names, none of which
// Kubernetes has for something else, and the cluster of a layer where there is
// room.
func TestKubectlShowsRemoteClusters(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("shown", far)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	found := f.clusterHas(cluster, v1alpha1.LayerCount{Deployed: 1, Total: 1})
	show := func(args ...string) (header, line string) {
		t.Helper()
		output, err := f.kubectl(append([]string{"get", "-n", f.prefix}, args...)...).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		if err != nil || len(lines) != 2 {
			t.Fatalf("kubectl get %s: %v\n%s", args, err, output)
		}
		return strings.Join(strings.Fields(lines[0]), " "), strings.Join(strings.Fields(lines[1]), " ")
	}
	for _, name := range []string{"rcluster", "remotecluster", "remoteclusters", "remoteclusters.kraan.io"} {
		header, line := show(name, "shown")
		if want := "NAME READY VERSION DEPLOYED LAYERS MESSAGE"; header != want {
			t.Errorf("kubectl get %s has the columns %q, want %q", name, header, want)
		}
		if want := "shown True " + found.Status.Version + " 1 1 the API server at " + found.Status.Endpoint + " answers"; !strings.HasPrefix(line, want) {
			t.Errorf("kubectl get %s shows %q, want %q", name, line, want)
		}
	}
	header, line := show("rcluster", "shown", "-o", "wide")
	if want := "NAME READY VERSION DEPLOYED LAYERS MESSAGE REACHABLE IDENTIFIED UID ENDPOINT EXPIRES AGE"; header != want || !strings.Contains(line, " True True "+found.Status.ClusterUID+" "+found.Status.Endpoint) {
		t.Errorf("kubectl get -o wide has the columns %q, want %q, and shows %q", header, want, line)
	}
	if header, line := show("al", f.name("base"), "-o", "wide"); !strings.Contains(header, " CLUSTER ") || !strings.Contains(line, " shown ") {
		t.Errorf("kubectl get al -o wide shows %q\n%q", header, line)
	}
}

// The plug-in shows the clusters and which layers belong there, to whoever may view
// them, without asking those clusters: also while one is away.
func TestThePluginShowsRemoteClusters(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	far := f.mortalFar()
	cluster := f.joined("mortal", far, func(c *v1alpha1.RemoteCluster) {
		c.Spec.Unreachable.After = &metav1.Duration{Duration: time.Second}
	})
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one"),
		"apps/release.yaml": f.configMapRelease("apps", "one"),
	})
	f.layer("base", on(cluster))
	f.layer("apps")
	f.deployed("base", revision)
	f.deployed("apps", revision)
	base, apps := f.name("base"), f.name("apps")

	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	viewer.expect(0, []string{"NAME VERSION STATE READY CLUSTER REVISION SINCE", base + " 1.0.0 Deployed 1/1 " + cluster.String() + " main@sha1:", apps + " 1.0.0 Deployed 1/1 - main@sha1:"}, "get", base, apps)
	found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	viewer.expect(0, []string{"NAME READY REACHABLE VERSION LAYERS EXPIRES LAST SEEN", cluster.String() + " True True " + found.Status.Version + " 1/1 ", " now"}, "clusters", cluster.String())
	viewer.expect(0, []string{found.Status.Endpoint, f.prefix + "/mortal"}, "clusters", "mortal", "-n", f.prefix, "-o", "wide")
	viewer.expect(1, []string{"there is no RemoteCluster " + f.prefix + "/mortals; did you mean " + cluster.String()}, "clusters", f.prefix+"/mortals")
	_, output := viewer.run("clusters", cluster.String(), "-o", "json")
	shown := &v1alpha1.RemoteCluster{}
	if err := json.Unmarshal([]byte(output), shown); err != nil || shown.Name != "mortal" || shown.Kind != v1alpha1.RemoteClusterKind || shown.Status.Layers.Total != 1 {
		t.Errorf("as JSON it is %v:\n%s", err, output)
	}
	layer := &v1alpha1.AddonsLayer{}
	if _, output := viewer.run("get", base, "-o", "json"); json.Unmarshal([]byte(output), layer) != nil || layer.Spec.Cluster == nil || layer.Status.Cluster != cluster.String() {
		t.Errorf("as JSON the layer is\n%s", output)
	}

	// A user who may view one namespace sees the clusters there, and is told what is
	// missing for the others.
	tenant := plugin{fixture: f, path: path}.of("tenant")
	f.must(stack.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "strata-view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.prefix + "-tenant"}},
	}))
	tenant.expect(0, []string{cluster.String() + " True True"}, "clusters", "-n", f.prefix)
	tenant.expect(1, []string{"get, list and watch on remoteclusters.kraan.io"}, "clusters")

	later := f.remoteCluster("later")
	viewer.expect(2, []string{later.String() + " Unknown Unknown - 0/0 - -", "waits for Secret " + later.String()}, "clusters", "--namespace", f.prefix)
	viewer.expect(0, nil, "clusters", cluster.String())

	f.must(far.KillComponent(controlplane.APIServer))
	f.clusterSays(types.NamespacedName{Namespace: f.prefix, Name: "mortal"}, v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable)
	viewer.expect(2, []string{cluster.String() + " False False " + found.Status.Version + " 1/1", "the cluster cannot be reached"}, "clusters", cluster.String())
	viewer.expect(2, []string{base + " 1.0.0 Unknown - " + cluster.String(), "RemoteCluster " + cluster.String() + " has not answered since"}, "get", base)
	viewer.expect(0, []string{apps + " 1.0.0 Deployed"}, "get", apps)
	f.must(far.StartComponent(f.ctx, controlplane.APIServer))
	f.deployed("base", revision)
	viewer.expect(0, []string{cluster.String() + " True True"}, "clusters", cluster.String())
}

// Causes are followed into another cluster for whoever may read the Secret that leads
// there, to addresses that they allow, and everybody else is told what is missing.
func TestThePluginFollowsCausesToOtherClusters(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	far := f.farWith(controlplane.KubernetesOnly()...)
	cluster := f.joined("deep", far)
	f.push(map[string]string{"edge/release.yaml": f.deploymentRelease("edge", true)})
	f.layer("edge", on(cluster))
	edge, secret := f.name("edge"), "strata-kubeconfig-deep"
	viewer := plugin{fixture: f, path: path}.of("viewer", "view", f.fluxView())

	f.eventually("a Pod there waits for a node", func() error {
		pods := &corev1.PodList{}
		if err := far.client.List(f.ctx, pods); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if strings.HasPrefix(pod.Name, "edge-") && len(pod.Status.Conditions) > 0 {
				return nil
			}
		}
		return errors.New("there is none")
	})
	chain := edge + " <- HelmRelease " + f.prefix + "/deep-edge-"
	denied := "you may not read Secret " + cluster.Namespace + "/" + secret + ", which leads there"
	f.eventually("the layer waits for its release", func() error {
		if _, output := viewer.run("why", edge); !strings.Contains(output, denied) {
			return errors.New(output)
		}
		return nil
	})
	viewer.expect(2, []string{"of " + cluster.String() + ": " + denied, "kubectl --context CONTEXT-OF-" + cluster.String() + " get pods,events"}, "why", edge)

	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "deep"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}},
	}
	f.must(stack.client.Create(f.ctx, role))
	f.must(stack.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "deep"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.prefix + "-viewer"}},
	}))
	f.eventually("the right counts", func() error {
		if _, output := viewer.run("why", edge); strings.Contains(output, denied) {
			return errors.New(output)
		}
		return nil
	})
	viewer.expect(2, []string{"is a loopback address", "--allowed-cluster-ranges"}, "why", edge)
	viewer.expect(2, []string{"other clusters are not asked"}, "why", edge, "--remote=false")
	viewer.expect(1, []string{"--allowed-cluster-ranges", "is no range of addresses"}, "why", edge, "--allowed-cluster-ranges", "home")
	allowed := []string{"why", edge, "--allowed-cluster-ranges", "127.0.0.0/8"}
	viewer.expect(2, []string{
		chain, " <- Pod " + f.prefix + "/edge-", " on " + cluster.String(), "Unschedulable", "0/1 nodes are available",
		"try: kubectl --context CONTEXT-OF-" + cluster.String() + " get nodes",
		"try: kubectl --context CONTEXT-OF-" + cluster.String() + " --namespace " + f.prefix + " describe pod edge-",
	}, allowed...)
	viewer.expect(2, []string{`"kind": "ReplicaSet"`, `"cluster": "` + cluster.String() + `"`, `"reason": "FailedScheduling"`}, append(allowed, "-o", "json")...)

	f.must(far.KillComponent(controlplane.APIServer))
	viewer.expect(2, []string{"of " + cluster.String() + ": ", "connection refused"}, allowed...)
	f.must(far.StartComponent(f.ctx, controlplane.APIServer))
}
