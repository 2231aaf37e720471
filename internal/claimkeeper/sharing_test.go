// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// has waits until two Secrets hold the same.
func (f *fixture) same(a, b string) {
	f.Helper()
	f.eventually(a+" holds what "+b+" does", func() error {
		one, two := &corev1.Secret{}, f.secret(b)
		if err := f.client.Get(f.ctx, f.key(a), one); err != nil {
			return err
		}
		if len(one.Data) != len(two.Data) || one.Type != two.Type {
			return fmt.Errorf("it has %d keys", len(one.Data))
		}
		for key, value := range two.Data {
			if !bytes.Equal(one.Data[key], value) {
				return fmt.Errorf("its key %s is another one", key)
			}
		}
		return nil
	})
}

// An instance serves claims of other namespaces where its own claim allows it, and nobody
// gets at it otherwise: neither by its name, nor by a status or a Secret that says so.
func TestSharedInstance(t *testing.T) {
	f := newFixture(t)
	reports := f.shop + "-reports"
	f.must(plane.CreateNamespace(f.ctx, reports))
	f.grant(reports, "secrets")
	f.provider("a", rotating)
	f.claims("db", "")
	f.start(0)
	f.alters("db-0b")
	f.says("db", v1alpha1.ReasonBound)

	t.Log("nobody has allowed it")
	mine, bound := reports+"/db", "  boundTo: {namespace: SHOP, name: db}\n"
	f.claims(mine, bound)
	nothing := fmt.Sprintf("there is no CapabilityClaim %s/db that a claim of the namespace %s may be bound to", f.shop, reports)
	f.says(mine, v1alpha1.ReasonNotShared, nothing)
	f.claims(reports+"/blind", "  boundTo: {namespace: SHOP, name: secret}\n")
	f.says(reports+"/blind", v1alpha1.ReasonNotShared, fmt.Sprintf("there is no CapabilityClaim %s/secret that a claim of", f.shop))
	forged := f.get(mine)
	forged.Status.Provider, forged.Status.BoundTo = f.shop+"-a", &v1alpha1.CapabilityClaimReference{Namespace: f.shop, Name: "db"}
	f.must(f.client.Status().Update(f.ctx, forged))
	f.annotate(f.get(mine), "look", "again")
	f.says(mine, v1alpha1.ReasonNotShared, nothing)
	f.gone(&corev1.Secret{}, mine+"-binding")

	t.Log("it is allowed, and kept while it is used")
	f.patch(f.get("db"), fmt.Sprintf(`{"spec":{"allowedNamespaces":{"matchLabels":{"kubernetes.io/metadata.name":%q}}}}`, reports))
	f.says(mine, v1alpha1.ReasonBound, "is served by "+f.shop+"-a 1.2, by the instance of CapabilityClaim "+f.shop+"/db")
	f.same(mine+"-binding", "db-binding")
	claim := f.get(mine)
	if len(claim.Status.Objects) != 1 || claim.Status.BoundTo == nil || claim.Status.BoundTo.Name != "db" {
		t.Errorf("its status is %+v", claim.Status)
	}
	app := f.release(reports+"/app", "db-binding", "password")
	f.installs(app, "sha256:one", "True")

	t.Log("the next passwords reach it, and those of before are valid until its release has them")
	first := string(f.secret("db-binding").Data["password"])
	f.patch(f.get("db"), `{"spec":{"rotation":{"number":1,"keepPrevious":"0s"}}}`)
	f.alters("db-1a")
	f.condition(mine, v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits for HelmRelease app, which has yet to take them")
	f.same(mine+"-binding", "db-binding")
	f.condition("db", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits for CapabilityClaim "+mine)
	if before := f.secret("db-users").Data["before"]; string(before) != first {
		t.Error("the password of before has gone")
	}
	f.patch(f.get(mine), `{"spec":{"version":"<1"}}`)
	f.installs(app, "sha256:two", "True")
	f.condition("db", v1alpha1.RotatingCondition, v1alpha1.ReasonPreviousValid, "waits for CapabilityClaim "+mine)
	f.must(f.client.Delete(f.ctx, app))

	t.Log("it is withdrawn: what is there stays, and nothing new comes")
	f.patch(f.get("db"), `{"spec":{"allowedNamespaces":null}}`)
	f.alters("db-1b")
	f.condition(mine, v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "CapabilityClaim "+f.shop+"/db is not for this namespace any more")
	f.says(mine, v1alpha1.ReasonBound)
	f.same(mine+"-binding", "db-binding")
	f.eventually("the rotation is over", func() error {
		if claim := f.get("db"); meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.RotatingCondition) != nil {
			return fmt.Errorf("it says %+v", claim.Status.Conditions)
		}
		return nil
	})
	f.patch(f.get("db"), `{"spec":{"rotation":{"number":2}}}`)
	f.alters("db-2a")
	f.alters("db-2b")
	f.eventually("the claim has the next password", func() error {
		if claim := f.get("db"); claim.Status.Rotation != 2 {
			return fmt.Errorf("it has that of %d", claim.Status.Rotation)
		}
		return f.isReady("db")
	})
	f.says(mine, v1alpha1.ReasonBound)
	if bytes.Equal(f.secret(mine + "-binding").Data["password"], f.secret("db-binding").Data["password"]) {
		t.Error("who may not have it has the next password")
	}

	t.Log("it is kept where it is shared, and nobody follows a claim of the same name")
	f.patch(f.get("db"), fmt.Sprintf(`{"spec":{"allowedNamespaces":{"matchLabels":{"kubernetes.io/metadata.name":%q}}}}`, reports))
	f.same(mine+"-binding", "db-binding")
	f.must(f.client.Delete(f.ctx, f.get("db")))
	f.says("db", v1alpha1.ReasonInUse, "is needed by CapabilityClaim "+mine)
	f.patch(f.get("db"), `{"spec":{"allowedNamespaces":null}}`)
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	anew := func() client.Object {
		made := f.claims("db", fmt.Sprintf("  allowedNamespaces: {matchLabels: {kubernetes.io/metadata.name: %s}}\n", reports))
		f.alters("db-0b")
		f.says("db", v1alpha1.ReasonBound)
		return made
	}
	f.must(f.client.Delete(f.ctx, anew()))
	f.gone(&v1alpha1.CapabilityClaim{}, "db")
	anew()
	f.condition(mine, v1alpha1.BindingOutdatedCondition, v1alpha1.ReasonProviderChanged, "CapabilityClaim "+f.shop+"/db has gone")
	f.patch(f.get(mine), `{"spec":{"version":null}}`)
	f.annotate(f.get(mine), v1alpha1.RebindAnnotation, f.shop+"-a")
	f.says(mine, v1alpha1.ReasonBound)
	f.same(mine+"-binding", "db-binding")
	f.must(f.client.Delete(f.ctx, f.get(mine)))
	f.gone(&v1alpha1.CapabilityClaim{}, mine)
	f.gone(&corev1.Secret{}, mine+"-binding")
	f.secret("db-binding")

	t.Log("what is given twice is refused")
	both, err := f.parse("apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: both, namespace: SHOP}\nspec:\n" +
		"  capability: a/b\n  boundTo: {name: db}\n  parameters: {size: large}\n")
	f.must(err)
	if err := f.client.Create(f.ctx, both); err == nil {
		t.Error("a claim that is bound to another one may have parameters")
	}
}
