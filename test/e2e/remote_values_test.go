// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
	f.state("base", v1alpha1.StateApplying, "waits for Secret "+f.prefix+"/beside, which does not exist yet")

	beside := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "beside"}, StringData: map[string]string{"values.yaml": "data: {beside: one}"}}
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
