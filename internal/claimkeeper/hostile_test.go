// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What one namespace claims gives it nothing of another: no Secret that is not the claim's is
// read, none is overwritten, and no kind of Strata's own is made.
func TestHostileClaimsAndProviders(t *testing.T) {
	f := newFixture(t)
	for _, text := range []string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: foreign, namespace: SHOP}\nstringData: {app: precious}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: named-users, namespace: SHOP}\nstringData: {app: precious}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: labelled-users, namespace: SHOP, labels: {kraan.io/claim: somebody}}\nstringData: {app: precious}\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: elsewhere, namespace: SYSTEM}\nstringData: {app: precious}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unseen-server, namespace: SHOP}\ndata: {size: precious}\n",
	} {
		f.create(text)
	}
	f.provider("a", instance)
	f.provider("reads", `
  parameters: {schema: {type: object, properties: {secret: {type: string}, namespace: {type: string, default: SHOP}}}}
  publishes: [{key: password, secretKeyRef: {name: "${parameters.secret}", namespace: "${parameters.namespace}", key: app}}]
`)
	f.provider("owns", `
  objects:
  - {id: layer, template: {apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, metadata: {name: evil}, spec: {}}}
  - {id: named, template: {apiVersion: v1, kind: "${parameters.kind}", metadata: {name: evil}}}
`)
	f.provider("writes", `
  objects: [{id: elsewhere, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: SYSTEM}}}]
`)
	f.provider("leaks", `
  passwords: [{name: app}]
  objects: [{id: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: leak}, data: {password: "${passwords.app}"}}}]
`)
	f.provider("account", "  objects: [{id: map, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"of-${claim.name}\"}}}]\n")
	f.start(0)
	named := func(provider string) string { return "  provider: SHOP-" + provider + "\n" }
	for _, each := range []struct{ claim, spec, reason, words string }{
		{"reads-foreign", named("reads") + "  parameters: {secret: foreign}\n", v1alpha1.ReasonAccessDenied, "is neither an object of the claim nor owned by one"},
		{"reads-elsewhere", named("reads") + "  parameters: {secret: elsewhere, namespace: SYSTEM}\n", v1alpha1.ReasonAccessDenied, "is neither an object of the claim nor owned by one"},
		{"reads-wrong", named("reads") + "  parameters: {secret: ../foreign}\n", v1alpha1.ReasonInvalidTemplate, "is no name"},
		{"named", named("a"), v1alpha1.ReasonObjectFailed, "there already"},
		{"unseen", named("a"), v1alpha1.ReasonObjectFailed, "ConfigMap " + f.shop + "/unseen-server is there already, and somebody else's, and is left alone"},
		{"labelled", named("a"), v1alpha1.ReasonObjectFailed, "another one's (kraan.io/claim=somebody)"},
		{"owns", named("owns"), v1alpha1.ReasonNoProvider, "has mistakes in its specification"},
		{"leaks", named("leaks"), v1alpha1.ReasonNoProvider, "has mistakes in its specification"},
		{"writes", named("writes"), v1alpha1.ReasonObjectFailed, fmt.Sprintf(`as ServiceAccount %s/databases: it may not create resource "configmaps" in API group "" in the namespace %q`, f.system, f.system)},
		{"ambiguous", "", v1alpha1.ReasonAmbiguous, "providers of database/" + f.shop + " fit"},
		{"nobody", "  provider: gone\n", v1alpha1.ReasonNoProvider, "is not gone, which is named"},
		{"parameters", named("a") + "  parameters: {size: huge, more: 1}\n", v1alpha1.ReasonNoProvider, "there is no parameter more"},
	} {
		f.claims(each.claim, each.spec)
		f.says(each.claim, each.reason, each.words)
	}
	for name, want := range map[string]string{"foreign": "precious", "named-users": "precious", "labelled-users": "precious"} {
		if got := f.secret(name).Data["app"]; string(got) != want {
			t.Errorf("Secret %s has %q", name, got)
		}
	}
	unseen := &corev1.ConfigMap{}
	f.must(f.client.Get(f.ctx, f.key("unseen-server"), unseen))
	if unseen.Data["size"] != "precious" || len(unseen.Labels) > 0 {
		t.Errorf("what no watch shows was taken over: %+v", unseen)
	}
	owns := &v1alpha1.CapabilityProvider{}
	f.eventually("the provider says what is wrong with it", func() error {
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-owns"}, owns))
		if len(owns.Status.Problems) != 2 || !strings.Contains(owns.Status.Problems[0], "no provider makes objects of kraan.io") ||
			!strings.Contains(owns.Status.Problems[1], "apiVersion and kind must stand there") {
			return fmt.Errorf("it says %q", owns.Status.Problems)
		}
		return nil
	})
	f.eventually("the other one, too", func() error {
		leaks := &v1alpha1.CapabilityProvider{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.shop + "-leaks"}, leaks))
		if ready := meta.FindStatusCondition(leaks.Status.Conditions, v1alpha1.ReadyCondition); ready == nil || ready.Status != metav1.ConditionFalse ||
			!strings.Contains(ready.Message, "spec.objects[map].template: reads passwords, which only Secrets may hold") {
			return fmt.Errorf("it says %+v", ready)
		}
		return nil
	})

	t.Log("an account that was deleted acts no more")
	f.claims("account", named("account"))
	f.says("account", v1alpha1.ReasonBound)
	late := f.accountGoes(named("account"))
	f.says(late, v1alpha1.ReasonServiceAccountNotFound, "there is no ServiceAccount "+f.system+"/databases")
}

// accountGoes deletes the account of the providers, and waits until a new claim says so, of which
// it returns the name: for a moment an account counts as there that was.
func (f *fixture) accountGoes(spec string) string {
	f.Helper()
	f.must(f.client.Delete(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.system, Name: "databases"}}))
	name := "late"
	f.eventually("it is known that the account has gone", func() error {
		name += "x"
		f.claims(name, spec)
		said := ""
		f.eventually(name+" says something", func() error {
			ready := meta.FindStatusCondition(f.get(name).Status.Conditions, v1alpha1.ReadyCondition)
			if ready == nil {
				return errors.New("it says nothing")
			}
			said = ready.Reason
			return nil
		})
		if said != v1alpha1.ReasonServiceAccountNotFound {
			return errors.New(said)
		}
		return nil
	})
	return name
}

// A status that somebody has forged makes nobody act as another account, with other
// templates, or on the objects of others.
func TestForgedStatusOfAClaim(t *testing.T) {
	f := newFixture(t)
	f.create("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: SHOP}\ndata: {a: b}\n")
	f.provider("a", instance)
	claim := f.claims("db", "")
	f.start(0)
	f.says("db", v1alpha1.ReasonBound)
	f.serves("db")
	forged := f.get("db")
	forged.Status.Provider, forged.Status.Version = "evil", "9"
	forged.Status.Objects = append(forged.Status.Objects, v1alpha1.Dependent{
		ID: "theirs", Of: f.shop + "-a", Kind: "ConfigMap", Namespace: f.shop, Name: "theirs", Digest: "x", Status: "Deployed",
	})
	f.must(f.client.Status().Update(f.ctx, forged))
	f.annotate(f.get("db"), "look", "again")
	f.eventually("the status is true again", func() error {
		if claim := f.get("db"); claim.Status.Provider != f.shop+"-a" || claim.Status.Version != "2.0" {
			return fmt.Errorf("it is of %s %s", claim.Status.Provider, claim.Status.Version)
		}
		return nil
	})
	f.annotate(f.get("db"), v1alpha1.ConfirmDeletionAnnotation, "true")
	f.must(f.client.Delete(f.ctx, claim))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.shop, Name: "theirs"}, &corev1.ConfigMap{}))
}
