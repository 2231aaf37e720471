// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

func valuesFile(namespace, name, values string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"values.yaml": values}}
}

// What releases of another cluster take their values from is copied to where Flux
// looks for it, and followed: from the directory, from that cluster, and from this
// one.
func TestValuesOnRemoteCluster(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("values", far)
	release := strings.Replace(f.configMapRelease("base", "one"), "  values:", `  valuesFrom:
  - {kind: ConfigMap, name: listed}
  - {kind: ConfigMap, name: there}
  - {kind: Secret, name: beside}
  values:`, 1)
	listed := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: listed, namespace: %s}\ndata: {values.yaml: 'data: {listed: %s}'}\n", f.prefix, value)
	}
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	f.must(far.client.Create(f.ctx, valuesFile(f.prefix, "there", "data: {there: one}")))
	f.push(map[string]string{"base/release.yaml": release, "base/listed.yaml": listed("one")})
	f.layer("base", on(cluster))
	f.state("base", v1alpha1.StateApplying, "is not given without leave: kubectl --namespace "+f.prefix+" annotate --field-manager=strata-cli secret beside kraan.io/share-with=remotecluster/"+cluster.String())

	shared := map[string]string{v1alpha1.ShareWithAnnotation: v1alpha1.ShareWithClusters}
	beside := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "beside", Annotations: shared}, StringData: map[string]string{"values.yaml": "data: {beside: one}"}}
	f.must(stack.client.Create(f.ctx, beside))
	installs := func(listed, there, beside string) {
		t.Helper()
		f.eventually(fmt.Sprintf("it is installed with the values %s, %s and %s", listed, there, beside), func() error {
			data, err := f.configMapOn(far.client, f.prefix, "base")
			if err == nil && (data["listed"] != listed || data["there"] != there || data["beside"] != beside || data["value"] != "one") {
				err = fmt.Errorf("it has %v", data)
			}
			return err
		})
	}
	installs("one", "one", "one")
	f.patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "beside"}}, `{"stringData":{"values.yaml":"data: {beside: two}"}}`)
	installs("one", "one", "two")
	f.must(far.client.Update(f.ctx, valuesFile(f.prefix, "there", "data: {there: two}")))
	installs("one", "two", "two")
	f.must(stack.client.Create(f.ctx, valuesFile(f.prefix, "there", "data: {there: here}")))
	f.must(far.client.Delete(f.ctx, valuesFile(f.prefix, "there", "")))
	installs("one", "here", "two")
	f.push(map[string]string{"base/listed.yaml": listed("two")})
	installs("two", "here", "two")
	secrets := &corev1.SecretList{}
	f.must(far.client.List(f.ctx, secrets, client.InNamespace(f.prefix)))
	for _, secret := range secrets.Items {
		if secret.Type != "helm.sh/release.v1" {
			t.Errorf("Secret %s has come to the other cluster", secret.Name)
		}
	}
}

// A release of another namespace than the RemoteCluster's gets its values in each of
// the ways, with the real Flux, and of another namespace here only with leave: what is
// not given is not installed, and what is given no more is not updated.
func TestValuesOfAnotherNamespace(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("given", far)
	apps := f.prefix + "-apps"
	f.must(stack.plane.CreateNamespace(f.ctx, apps))
	f.Cleanup(func() {
		f.must(stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apps}}))
	})
	f.must(far.CreateNamespace(f.ctx, apps))
	f.account(deployer)
	f.accountOn(far, deployer, "ClusterRole", mayOn("*", "*", "*"))
	ways := []string{"listed", "there", "beside", "shared", "allowed"}
	refs := make([]string, 0, len(ways))
	for _, way := range ways {
		refs = append(refs, "  - {kind: Secret, name: "+way+"}")
	}
	release := strings.Replace(f.configMapRelease("base", "one"), "namespace: "+f.prefix+"}\nspec", "namespace: "+apps+"}\nspec", 1)
	release = strings.Replace(release, "  values:", "  valuesFrom:\n"+strings.Join(refs, "\n")+"\n  values:", 1)
	secret := func(on client.Client, namespace, name, value string, annotations map[string]string) {
		t.Helper()
		made := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
			StringData: map[string]string{"values.yaml": fmt.Sprintf("data: {%s: %s}", name, value)},
		}
		if on.Create(f.ctx, made) != nil {
			f.must(on.Update(f.ctx, made))
		}
	}
	secret(far.client, apps, "there", "one", nil)
	secret(stack.client, f.prefix, "beside", "one", map[string]string{v1alpha1.ShareWithAnnotation: v1alpha1.ShareWithClusters})
	secret(stack.client, apps, "shared", "one", nil)
	secret(stack.client, apps, "allowed", "one", nil)
	listed := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: listed, namespace: %s}\nstringData: {values.yaml: 'data: {listed: one}'}\n", apps)
	f.push(map[string]string{"base/release.yaml": release, "base/listed.yaml": listed})
	f.layer("base", on(cluster), as(deployer))

	share := "kubectl --namespace " + apps + " annotate --field-manager=strata-cli secret shared kraan.io/share-with=remotecluster/" + cluster.String()
	for name, allow := range map[string]func(){
		"allowed": func() {
			f.bind("reader", apps, f.accountKey(deployer), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"allowed"}, Verbs: []string{"get"}})
		},
		"shared": func() {
			secret(stack.client, apps, "shared", "one", map[string]string{v1alpha1.ShareWithAnnotation: "remotecluster/" + cluster.String()})
		},
	} {
		f.state("base", v1alpha1.StateApplying, "are not given without leave: kubectl --namespace "+f.prefix+" annotate --field-manager=strata-cli secret ")
		if _, err := f.configMapOn(far.client, apps, "base"); err == nil {
			t.Errorf("the release is installed without %s", name)
		}
		allow()
	}
	installs := func(shared string) {
		t.Helper()
		f.eventually("it is installed with what it is given", func() error {
			data, err := f.configMapOn(far.client, apps, "base")
			if err != nil {
				return err
			}
			for _, way := range ways {
				if want := map[bool]string{true: shared, false: "one"}[way == "shared"]; data[way] != want {
					return fmt.Errorf("of %s it has %v, want %s", way, data, want)
				}
			}
			return nil
		})
	}
	installs("one")
	secret(stack.client, apps, "shared", "two", map[string]string{v1alpha1.ShareWithAnnotation: "layer/" + f.prefix + "-base, remotecluster/" + cluster.String()})
	installs("two")
	secret(stack.client, apps, "shared", "three", nil)
	f.state("base", v1alpha1.StateApplying, share)
	f.throughout(3*time.Second, "what is installed stays as it was", func() error {
		data, err := f.configMapOn(far.client, apps, "base")
		if err == nil && data["shared"] != "two" {
			err = fmt.Errorf("it has %v", data)
		}
		return err
	})
	secret(stack.client, apps, "shared", "four", map[string]string{v1alpha1.ShareWithAnnotation: "remotecluster/" + cluster.String()})
	installs("four")
}

// A kubeconfig that may read no values there leaves those from here.
func TestValuesThatMayNotBeReadThere(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.accountOn(far, "narrow", "ClusterRole", mayOn("", "secrets", "*"), mayOn("", "namespaces", "*"),
		mayOn("", "configmaps", "get", "create", "update", "patch", "delete"), mayOn("apiextensions.k8s.io", "customresourcedefinitions", "*"))
	f.kubeconfigSecret(stack.client, f.prefix, "narrow", f.kubeconfigAs(far, "narrow"))
	cluster := f.remoteCluster("narrow")
	f.must(far.client.Create(f.ctx, valuesFile(f.prefix, "settings", "data: {from: there}")))
	f.must(stack.client.Create(f.ctx, valuesFile(f.prefix, "settings", "data: {from: here}")))
	revision := f.push(map[string]string{"base/release.yaml": strings.Replace(f.configMapRelease("base", "one"), "  values:", "  valuesFrom: [{kind: ConfigMap, name: settings}]\n  values:", 1)})
	f.layer("base", on(cluster))
	f.deployed("base", revision)
	if data, err := f.configMapOn(far.client, f.prefix, "base"); err != nil || data["from"] != "here" {
		t.Errorf("it is installed with %v, %v", data, err)
	}
}

// The account of a layer of another cluster is one of that cluster: as it the
// layer's objects are written there, and its releases installed.
func TestAccountOnRemoteCluster(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("accounts", far)
	account := f.accountKey(deployer)
	f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one"), "base/settings.yaml": settingsOf(f.prefix, "one")})
	f.layer("base", on(cluster), as(deployer))
	f.reason("base", v1alpha1.ReasonServiceAccountNotFound, "as ServiceAccount "+account.String())

	f.accountOn(far, deployer, "Role", mayOn("", "secrets", "*"))
	f.reason("base", v1alpha1.ReasonApplyFailed, "cannot apply ConfigMap "+f.prefix+"/settings on "+cluster.String(),
		lackingRight(account, "create", "configmaps", "", f.prefix))
	f.remove("base/settings.yaml")
	f.eventually("its release fails as that account", func() error {
		message := readyMessage(f.get("base"))
		if !strings.Contains(message, "system:serviceaccount:"+account.Namespace+":"+account.Name) || !strings.Contains(message, "configmaps") {
			return fmt.Errorf("it says %s", message)
		}
		return nil
	})
	f.accountOn(far, deployer, "Role", mayOn("", "configmaps", "*"))
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two"), "base/settings.yaml": settingsOf(f.prefix, "one")})
	f.deployed("base", revision)
	if data, err := f.configMapOn(far.client, f.prefix, "base"); err != nil || data["value"] != "two" {
		t.Errorf("it is installed with %v, %v", data, err)
	}
}
