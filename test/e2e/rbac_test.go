// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/strata"
)

// manifest reads an object.
func (f *fixture) manifest(text string) *unstructured.Unstructured {
	f.Helper()
	obj := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}

// grant gives the controller rights on a resource until the test ends.
func (f *fixture) grant(group, resource string, verbs ...string) {
	f.Helper()
	name := fmt.Sprintf("%s-%s-%s", f.prefix, resource, verbs[0])
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: strata.Namespace, Name: "strata"}},
	}
	for _, obj := range []client.Object{role, binding} {
		f.must(stack.client.Create(f.ctx, obj))
		f.Cleanup(func() { _ = stack.client.Delete(f.ctx, obj) })
	}
}

// lacks waits until a layer is Failed because the controller lacks a right,
// and checks that it goes on trying.
func (f *fixture) lacks(layer, verb, resource string, words ...string) {
	f.Helper()
	found := f.state(layer, v1alpha1.StateFailed, append(words, verb, fmt.Sprintf("%q", resource), "forbidden")...)
	if !meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ReconcilingCondition) {
		f.Errorf("layer %s does not go on: %v", layer, found.Status.Conditions)
	}
}

func (f *fixture) networkPolicy() string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: closed, namespace: %s}\nspec: {podSelector: {}}\n", f.prefix)
}

// A kind that the controller may not even look at fails the layer before
// anything changes; once the right is granted the layer heals by itself.
func TestKindThatMayNotBeListedFailsTheLayerUntilItMay(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base")
	f.deployed("base", revision)
	before := f.footprints()

	revision = f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "two"),
		"base/policy.yaml":  f.networkPolicy(),
	})
	f.lacks("base", "cannot list resource", "networkpolicies", "the controller lacks rights", "networking.k8s.io")
	f.untouched(before)

	f.grant("networking.k8s.io", "networkpolicies", "get", "list", "watch", "create", "patch", "update", "delete")
	f.deployed("base", revision)
	if f.absent(&networkingv1.NetworkPolicy{}, "closed") || f.configMap("base")["value"] != "two" {
		t.Error("not all of the commit was applied")
	}
	f.removedWhileAllowed("base", "base/policy.yaml", &networkingv1.NetworkPolicy{}, "closed")
}

// removedWhileAllowed removes from a layer an object of a kind whose rights end with
// the test. A layer that still had it then could never be deleted.
func (f *fixture) removedWhileAllowed(layer, file string, obj client.Object, name string) {
	f.Helper()
	f.deployed(layer, f.remove(file))
	f.eventually(file+" is removed", func() error {
		if !f.absent(obj, name) {
			return errStillThere
		}
		return nil
	})
}

// A kind that the controller may read but not write fails when it is written;
// the rights come one by one, and each that is still missing is named.
func TestKindThatMayNotBeCreatedFailsTheLayerUntilItMay(t *testing.T) {
	f := newFixture(t)
	f.grant("", "limitranges", "get", "list", "watch")
	revision := f.push(map[string]string{
		"base/limits.yaml": fmt.Sprintf("apiVersion: v1\nkind: LimitRange\nmetadata: {name: limits, namespace: %s}\n"+
			"spec: {limits: [{type: Pod, max: {cpu: '100'}}]}\n", f.prefix),
		"base/release.yaml": f.configMapRelease("base", "one"),
	})
	f.layer("base")
	f.lacks("base", "cannot create resource", "limitranges", "LimitRange "+f.prefix+"/limits", "base/limits.yaml")
	if message := readyMessage(f.get("base")); strings.Contains(message, "HelmRelease") {
		t.Errorf("the message speaks of what is not to blame: %s", message)
	}
	f.grant("", "limitranges", "create")
	f.deployed("base", revision)
	f.grant("", "limitranges", "patch", "update", "delete")
	f.removedWhileAllowed("base", "base/limits.yaml", &corev1.LimitRange{}, "limits")
}

// A kind that may be listed but not watched is one more right that is named.
func TestKindThatMayNotBeWatchedFailsTheLayerUntilItMay(t *testing.T) {
	f := newFixture(t)
	f.grant("", "podtemplates", "get", "list", "create", "patch", "update", "delete")
	revision := f.push(map[string]string{
		"base/template.yaml": fmt.Sprintf("apiVersion: v1\nkind: PodTemplate\nmetadata: {name: template, namespace: %s}\n"+
			"template: {spec: {containers: [{name: main, image: 'example.invalid/main:1'}]}}\n", f.prefix),
	})
	f.layer("base")
	f.lacks("base", "cannot watch resource", "podtemplates", "the controller lacks rights")
	f.grant("", "podtemplates", "watch")
	f.deployed("base", revision)
	f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.removedWhileAllowed("base", "base/template.yaml", &corev1.PodTemplate{}, "template")
}
