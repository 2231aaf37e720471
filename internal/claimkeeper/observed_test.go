// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// observing is a provider that publishes what others say in a ConfigMap that the claim names,
// and of one that this names in turn, and makes one of its own of that.
const observing = `
  parameters: {schema: {type: object, properties: {from: {type: string}, where: {type: string, default: SHOP}}}}
  objects:
  - {id: first, mode: Observe, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${parameters.from}", namespace: "${parameters.where}"}}}
  - {id: second, mode: Observe, ready: "object.data.open == 'yes'", template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${objects.first.data.next}"}}}
  - {id: made, dependsOn: [second], template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-made"}, data: {host: "${objects.second.data.host}"}}}
  publishes: [{key: host, value: "${objects.second.data.host}"}]
`

// watchers lets the account of the providers watch some ConfigMaps of the claims' namespace.
func (f *fixture) watchers(on client.Client, names ...string) {
	f.Helper()
	at := metav1.ObjectMeta{Namespace: f.shop, GenerateName: "watchers-"}
	role := &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"get", "list", "watch"}},
	}}
	f.must(on.Create(f.ctx, role))
	f.must(on.Create(f.ctx, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.system, Name: "databases"}},
	}))
}

// said creates or changes a ConfigMap that somebody else has.
func (f *fixture) said(on client.Client, name string, data map[string]string) {
	f.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.shop, Name: name}, Data: data}
	if err := on.Create(f.ctx, obj); err != nil {
		f.must(on.Update(f.ctx, obj))
	}
}

// What somebody else has is waited for, read as the provider's account, and followed, on the
// cluster that the objects are on; nobody writes or deletes it.
func TestObservedObjects(t *testing.T) {
	f := newFixture(t)
	there := f.onFar()
	f.welcome(there)
	f.provider("a", observing)
	f.start(0)
	for name, on := range map[string]client.Client{"here": f.client, "there": there} {
		spec := "  parameters: {from: first}\n"
		if name == "there" {
			spec += "  cluster: edge\n"
		}
		hosts := func(want string) {
			t.Helper()
			f.says(name, v1alpha1.ReasonBound)
			f.eventually(name+" has the host "+want, func() error {
				if got := string(f.secret(name + "-binding").Data["host"]); got != want {
					return fmt.Errorf("it has %s", got)
				}
				return nil
			})
		}
		f.watchers(on, "first", "second", "third")
		claim := f.claims(name, spec)
		f.says(name, v1alpha1.ReasonProgressing, "first", "does not exist yet")
		f.said(on, "first", map[string]string{"next": "second"})
		f.says(name, v1alpha1.ReasonProgressing, "second", "does not exist yet")
		f.said(on, "second", map[string]string{"host": "a", "open": "no"})
		f.says(name, v1alpha1.ReasonProgressing, "second", "is not ready, as ready has it")
		f.said(on, "second", map[string]string{"host": "a", "open": "yes"})
		hosts("a")
		f.said(on, "second", map[string]string{"host": "b", "open": "yes"})
		hosts("b")
		f.said(on, "third", map[string]string{"host": "c", "open": "yes"})
		f.said(on, "first", map[string]string{"next": "third"})
		hosts("c")
		if name == "there" {
			f.connect("# another")
			f.settled()
			f.said(on, "third", map[string]string{"host": "d", "open": "yes"})
			hosts("d")
		}
		f.must(f.client.Delete(f.ctx, claim))
		f.gone(&v1alpha1.CapabilityClaim{}, name)
		for _, kept := range []string{"first", "second", "third"} {
			obj := &corev1.ConfigMap{}
			f.must(on.Get(f.ctx, f.key(kept), obj))
			if len(obj.Labels) > 0 || len(obj.ManagedFields) != 1 || strings.Contains(obj.ManagedFields[0].Manager, "strata") {
				t.Errorf("%s: somebody has written to %s: %v, %v", name, kept, obj.Labels, obj.ManagedFields)
			}
		}
		f.has(name, on)
	}
}

// Whoever claims is told nothing of an object that the provider's account may not read, not even
// whether there is one; with the right it is read at once.
func TestObservedAsTheAccount(t *testing.T) {
	f := newFixture(t)
	f.said(f.client, "secretly", map[string]string{"next": "precious", "host": "precious", "open": "yes"})
	f.provider("a", observing)
	f.start(0)
	f.claims("there", "  parameters: {from: secretly}\n")
	f.claims("none", "  parameters: {from: none}\n")
	f.claims("elsewhere", "  parameters: {from: kube-root-ca.crt, where: SYSTEM}\n")
	said := func(claim, object string) string {
		message := f.says(claim, v1alpha1.ReasonProgressing, "as ServiceAccount "+f.system+"/databases").Status.Conditions[0].Message
		return strings.ReplaceAll(message, object, "X")
	}
	if a, b := said("there", "secretly"), said("none", "none"); a != b {
		t.Errorf("of one that is there it says %s, and of one that is not %s", a, b)
	}
	said("elsewhere", "kube-root-ca.crt")
	f.watchers(f.client, "secretly", "precious")
	f.says("there", v1alpha1.ReasonProgressing, "precious", "does not exist yet")
}
