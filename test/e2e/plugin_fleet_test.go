// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// contextOf writes a kubeconfig with the context it, which reaches a cluster.
func contextOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, kubeconfigOf(t, config), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A context of somebody's kubeconfig becomes a cluster that a layer is put on; its
// token is replaced; and it is forgotten when nothing is there any more.
func TestThePluginAddsAndForgetsClusters(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	far := f.far(0)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	name, account := f.prefix+"/added", "strata-"+f.prefix+"-added"
	from := []string{"--from-context", "it", "--kubeconfig-of", contextOf(t, far.Config())}
	add := func(args ...string) string {
		t.Helper()
		code, output := admin.run(append(append([]string{"cluster", "add", name}, from...), args...)...)
		if code != 0 || !contains(output, "RemoteCluster "+name+" is ready: Kubernetes v1.") {
			t.Fatalf("exit code %d: %s", code, output)
		}
		secret := &corev1.Secret{}
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "added-kubeconfig"}, secret))
		return string(secret.Data["value"])
	}
	first := add("--token-duration", "24h", "-l", "region=eu")
	cluster := types.NamespacedName{Namespace: f.prefix, Name: "added"}
	found := f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	if found.Labels["region"] != "eu" || found.Status.CredentialsExpire == nil {
		t.Errorf("it has the labels %v, and its credentials end at %v", found.Labels, found.Status.CredentialsExpire)
	}
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", on(cluster))
	f.deployed("base", revision)

	if second := add("--token-duration", "24h"); second == first {
		t.Error("the token was not replaced")
	}
	accounts := &corev1.ServiceAccountList{}
	f.must(far.client.List(f.ctx, accounts, client.MatchingLabels{"kraan.io/joined": account}))
	if len(accounts.Items) != 1 {
		t.Errorf("there are %d accounts", len(accounts.Items))
	}
	admin.expect(0, []string{name + " True True"}, "cluster", "list", name)

	admin.expect(2, []string{"is not deleted while something is there:", "AddonsLayer " + f.name("base")}, "cluster", "forget", name, "--plan")
	admin.expect(2, []string{"AddonsLayer " + f.name("base")}, "cluster", "forget", name)
	f.must(stack.client.Delete(f.ctx, f.get("base")))
	f.eventually("the layer is gone", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, &v1alpha1.AddonsLayer{}))
	})
	admin.expect(0, []string{"would delete RemoteCluster " + name, "would delete Secret " + name + "-kubeconfig"}, append([]string{"cluster", "forget", name, "--plan"}, from...)...)
	code, output := admin.run(append([]string{"cluster", "forget", name}, from...)...)
	if code != 0 || !contains(output, "RemoteCluster "+name+" is deleted", "Secret "+name+"-kubeconfig is deleted", "ServiceAccount strata-system/"+account) {
		t.Errorf("exit code %d: %s", code, output)
	}
	for _, left := range []struct {
		obj client.Object
		key types.NamespacedName
	}{
		{&corev1.ServiceAccount{}, types.NamespacedName{Namespace: "strata-system", Name: account}},
		{&rbacv1.ClusterRoleBinding{}, types.NamespacedName{Name: account}},
	} {
		if err := isGone(far.client.Get(f.ctx, left.key, left.obj)); err != nil {
			t.Errorf("%T %s is left: %v", left.obj, left.key, err)
		}
	}
}

// Where a controller manager is, the account gets a token that does not end, and
// keeps one only.
func TestThePluginAddsAClusterWithALastingToken(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	name, file := f.prefix+"/self", contextOf(t, stack.plane.Config())
	for range 2 {
		code, output := admin.run("cluster", "add", name, "--from-context", "it", "--kubeconfig-of", file, "--account-namespace", f.prefix)
		if code != 0 || !contains(output, "RemoteCluster "+name+" is ready") {
			t.Fatalf("exit code %d: %s", code, output)
		}
	}
	tokens := &corev1.SecretList{}
	f.must(stack.client.List(f.ctx, tokens, client.InNamespace(f.prefix), client.MatchingLabels{"kraan.io/joined": "strata-" + f.prefix + "-self"}))
	var kinds []string
	for _, secret := range tokens.Items {
		kinds = append(kinds, string(secret.Type))
	}
	slices.Sort(kinds)
	if !slices.Equal(kinds, []string{"Opaque", "kubernetes.io/service-account-token"}) {
		t.Errorf("there are Secrets of the types %v", kinds)
	}
	if found := f.clusterSays(types.NamespacedName{Namespace: f.prefix, Name: "self"}, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable); found.Status.CredentialsExpire != nil {
		t.Errorf("its credentials end at %s", found.Status.CredentialsExpire)
	}
	code, output := admin.run("cluster", "forget", name, "--from-context", "it", "--kubeconfig-of", file, "--account-namespace", f.prefix)
	if code != 0 {
		t.Errorf("exit code %d: %s", code, output)
	}
}

// A roll-out as people follow it: what there is, which way leads there, what would
// be done, what is waited for, and that somebody approves.
func TestThePluginPlansAndApprovesRollouts(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.twoStages("edge")
	viewer, admin := plugin{fixture: f, path: path}.of("viewer", "view"), plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	edge := f.name("edge")
	viewer.expect(2, []string{"canary Done 1 1", "production Active 1 0", "waits for approval: production@1.0.0"}, "platform", "get", edge)
	admin.expect(0, []string{"stage production of platform " + edge + " is approved for version 1.0.0: " + f.prefix + "/south"}, "platform", "approve", edge, "--stage", "production")
	f.platformReady("edge", "1.0.0")

	f.bundle("1.1.0", fmt.Sprintf(twoLayers, "2.0.0"))
	viewer.expect(2, []string{f.prefix + "-app 1.0.0 2.0.0 2.0.0 - 1 2 2.0.0 is newer"}, "app", "list", "--outdated")
	viewer.expect(0, []string{"LAYER AFTER APPLICATION", "base - base (" + f.prefix + "-app) 1.0.0 configmap 1.0.0", edge + " " + f.prefix + "/north 2/2"}, "bundle", "get", f.prefix+"@1.0.0")
	viewer.expect(0, []string{"1.0.0 -> 1.1.0 1"}, "bundle", "paths", f.prefix)
	viewer.expect(2, []string{"base changed application base version 1.0.0 -> 2.0.0", "apps changed application apps chart configmap 1.0.0 -> configmap 2.0.0"},
		"bundle", "diff", f.prefix+"@1.0.0", f.prefix+"@1.1.0")
	viewer.expect(0, []string{"No layer would be written or deleted."}, "platform", "plan", edge)

	code, output := viewer.run("platform", "plan", edge, "--version", "1.1.0", "-o", "json")
	var plan struct {
		Target string
		Layers []struct{ Verb, Name, Cluster, From, To string }
	}
	if err := json.Unmarshal([]byte(output), &plan); code != 2 || err != nil || plan.Target != "1.1.0" || len(plan.Layers) != 2 {
		t.Fatalf("exit code %d, %v: %s", code, err, output)
	}
	if f.getPlatform("edge").Spec.Bundle.Version != "1.0.0" {
		t.Error("the plan has changed something")
	}
	f.moveTo("edge", "1.1.0")
	f.platformSays("edge", v1alpha1.ReadyCondition, metav1.ConditionUnknown, "waits for approval: production@1.1.0")
	// What was planned, and nothing else, has come to pass.
	layers := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, layers, client.MatchingLabels{v1alpha1.PlatformLabel: edge}))
	for _, layer := range layers.Items {
		planned := false
		for _, change := range plan.Layers {
			planned = planned || change.Name == layer.Name && change.To == layer.Spec.Version
		}
		if planned != (layer.Spec.Version == "1.1.0") || planned != (layer.Spec.Cluster.Name == "north") {
			t.Errorf("layer %s on %s is at %s, and planned was %+v", layer.Name, layer.Spec.Cluster.Name, layer.Spec.Version, plan.Layers)
		}
	}
	viewer.expect(2, []string{"production Active 1 0", "waits for approval: production@1.1.0", f.prefix + "/north canary Done 1.1.0 2/2", f.prefix + "/south production Waiting 1.0.0 -> 1.1.0 2/2"},
		"platform", "get", edge, "--clusters")
	viewer.expect(1, []string{"you may not approve for platform " + edge}, "platform", "approve", edge, "--stage", "production")
	admin.expect(1, []string{"stage canary of platform " + edge + " needs no approval"}, "platform", "approve", edge, "--stage", "canary")
	admin.expect(0, []string{"is approved for version 1.1.0"}, "platform", "approve", edge, "--stage", "production", "--reason", "north is well")
	f.platformReady("edge", "1.1.0")
	if said := f.getPlatform("edge").Status.Approvals[0]; said.Approval != "production@1.1.0" || said.By != f.prefix+"-admin" || said.Reason != "north is well" {
		t.Errorf("it remembers of the approval %+v", said)
	}
	viewer.expect(0, []string{"Ready: True: " + f.prefix + " 1.1.0: 4 layers are deployed on 2 clusters", f.prefix + "-admin, north is well"}, "platform", "get", edge)
}

// What a removal would do is said in the order in which it then happens.
func TestThePluginPlansRemovals(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one"), "apps/release.yaml": f.configMapRelease("apps", "one")})
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("base", revision)
	f.deployed("apps", revision)
	base, apps := f.name("base"), f.name("apps")
	admin, viewer := plugin{fixture: f, path: path}.of("admin", "cluster-admin"), plugin{fixture: f, path: path}.of("viewer", "view")

	admin.expect(2, []string{"In the way: - " + base + ": is not deleted while layer " + apps + " depends on it"}, "deprovision", base, "--plan")
	viewer.expect(0, []string{"1 " + apps, "2 " + base, "not known:"}, "deprovision", base, apps, "--plan")
	admin.expect(0, []string{"TURN LAYER CLUSTER VERSION RELEASES AFTER", "1 " + apps + " (home) 1.0.0 " + f.prefix + "/apps 2 " + base + " (home) 1.0.0 " + f.prefix + "/base " + apps}, "deprovision", base, apps, "--plan")
	gone := f.departures()
	for _, name := range []string{"base", "apps"} {
		f.must(stack.client.Delete(f.ctx, f.get(name)))
	}
	if got := gone(2); !slices.Equal(got, []string{"layer apps", "layer base"}) {
		t.Errorf("they went in the order %v", got)
	}
}
