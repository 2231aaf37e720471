// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What a layer waits for is read as its account may, and an account that may not
// read it learns nothing of it.
func TestWaitForReadsAsTheAccount(t *testing.T) {
	f := newFixture(t, nil)
	f.account("nobody", rbacv1.PolicyRule{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}, Verbs: []string{"*"}})
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "settings"}, Data: map[string]string{"password": "hunter2"}}))
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) {
		l.Spec.ServiceAccountName = "nobody"
		l.Spec.WaitFor = []v1alpha1.WaitFor{{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "settings", ReadyExpr: "object.data.password.startsWith('hunter')",
		}}
	})
	f.ready("a")
	f.says("base", "ServiceAccount "+f.namespace+"/nobody may not get, list and watch it")
	f.settle()
	if state := f.get("base").Status.State; state == v1alpha1.StateDeployed {
		t.Error("what the account may not read has been waited for")
	}
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "reads-settings"}
	f.must(f.client.Create(f.ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"settings"}, Verbs: []string{"get", "list", "watch"},
	}}}))
	f.must(f.client.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "nobody"}},
	}))
	f.deployed("base", "main@sha1:1")
}

// Conditions do not see what a Secret keeps, whoever may read it, and no message has
// a value that a condition has read: neither as what is missing nor as an error.
func TestWaitForTellsNoSecret(t *testing.T) {
	f := newFixture(t, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db"}, StringData: map[string]string{"password": "hunter2"}}
	applied, err := json.Marshal(map[string]any{"data": map[string]string{"password": "hunter2"}})
	f.must(err)
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)}
	f.must(f.client.Create(f.ctx, secret))
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db"}, Data: map[string]string{"password": "hunter2"}}))
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layer("base")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	last := corev1.LastAppliedConfigAnnotation
	for i, tc := range []struct{ kind, condition string }{
		{"Secret", "{'a': true}[string(base64.decode(object.data.password))]"},
		{"Secret", "string(base64.decode(object.data.password)).startsWith('hunter')"},
		{"Secret", "has(object.data)"},
		{"Secret", "object.metadata.annotations['" + last + "'].contains('hunter')"},
		{"ConfigMap", "{'a': true}[object.data.password]"},
		{"ConfigMap", "'x'.matches('(' + object.data.password)"},
		{"ConfigMap", "int(object.data.password) > 1"},
		{"ConfigMap", "duration(object.data.password) > duration('1s')"},
		{"ConfigMap", "timestamp(object.data.password) > timestamp('2026-01-01T00:00:00Z')"},
		{"ConfigMap", "object.data[object.data.password] == 'x'"},
		{"ConfigMap", "object.data.password.substring(100) == 'x'"},
		{"ConfigMap", "[1, 2][size(object.data.password)] == 1"},
		{"ConfigMap", "string(base64.decode(object.data.password)) == 'x'"},
		{"ConfigMap", "object.data.password"},
	} {
		layer := f.get("base")
		layer.Spec.WaitFor = []v1alpha1.WaitFor{{APIVersion: "v1", Kind: tc.kind, Namespace: f.namespace, Name: "db", ReadyExpr: tc.condition}}
		f.must(f.client.Update(f.ctx, layer))
		message := ""
		f.eventually(fmt.Sprintf("condition %d is looked at", i), func() error {
			found := f.get("base")
			message = readyMessageOf(found)
			if found.Status.ObservedGeneration != found.Generation || !strings.Contains(message, "is waited for until") {
				return fmt.Errorf("%s says %s: %s", tc.condition, found.Status.State, message)
			}
			return nil
		})
		if _, behind, _ := strings.Cut(message, tc.condition); strings.Contains(behind, "hunter") {
			t.Errorf("the condition %s has the layer say: %s", tc.condition, message)
		}
		all, err := json.Marshal(f.get("base").Status)
		f.must(err)
		if strings.Contains(string(all), "hunter2") {
			t.Errorf("the status has the value: %s", all)
		}
	}
}
