// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/strata"
)

// settingsProvider makes a Secret with a password, and a ConfigMap after it.
const settingsProvider = `
metadata: {name: PREFIX-settings, labels: {e2e.kraan.io/controller: PREFIX}}
spec:
  capability: settings/map-PREFIX
  namespace: PREFIX
  serviceAccountName: databases
  passwords: [{name: app}]
  objects:
  - id: credentials
    template: {apiVersion: v1, kind: Secret, metadata: {name: "${claim.name}-server"}, stringData: {password: "${passwords.app}"}}
  - id: settings
    dependsOn: [credentials]
    holdsData: true
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${claim.name}-settings"}, data: {of: "${claim.name}"}}
  publishes:
  - {key: password, secretKeyRef: {name: "${claim.name}-server", key: password}}
`

// stepsOfAClaim are what can be seen of a claim that is being served, in their order.
var stepsOfAClaim = []struct {
	what string
	seen func(*fixture, *v1alpha1.CapabilityClaim) bool
}{
	{"its finalizer", func(_ *fixture, c *v1alpha1.CapabilityClaim) bool { return len(c.Finalizers) > 0 }},
	{"the record of its binding", func(f *fixture, c *v1alpha1.CapabilityClaim) bool { return f.recordsOf(c) > 0 }},
	{"its list of objects", func(_ *fixture, c *v1alpha1.CapabilityClaim) bool { return len(c.Status.Objects) > 0 }},
	{"its passwords", func(f *fixture, c *v1alpha1.CapabilityClaim) bool {
		return !f.absent(&corev1.Secret{}, c.Name+"-passwords")
	}},
	{"its first object", func(f *fixture, c *v1alpha1.CapabilityClaim) bool {
		return !f.absent(&corev1.Secret{}, c.Name+"-server")
	}},
	{"its last object", func(f *fixture, c *v1alpha1.CapabilityClaim) bool {
		return !f.absent(&corev1.ConfigMap{}, c.Name+"-settings")
	}},
	{"its binding", func(f *fixture, c *v1alpha1.CapabilityClaim) bool {
		return !f.absent(&corev1.Secret{}, c.Name+"-binding")
	}},
	{"that it is ready", func(_ *fixture, c *v1alpha1.CapabilityClaim) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ReadyCondition)
	}},
}

// recordsOf counts the records of a claim's binding.
func (f *fixture) recordsOf(claim *v1alpha1.CapabilityClaim) int {
	f.Helper()
	records := &appsv1.ControllerRevisionList{}
	f.must(stack.client.List(f.ctx, records, client.InNamespace(strata.Namespace), client.MatchingLabels{v1alpha1.ClaimLabel: string(claim.UID)}))
	return len(records.Items)
}

// madeFor returns the identities of what was made for a claim, by their names.
func (f *fixture) madeFor(claim string) map[string]types.UID {
	f.Helper()
	found := map[string]types.UID{}
	for _, of := range []struct {
		object client.Object
		suffix string
	}{{&corev1.Secret{}, "-passwords"}, {&corev1.Secret{}, "-server"}, {&corev1.ConfigMap{}, "-settings"}, {&corev1.Secret{}, "-binding"}} {
		if !f.absent(of.object, claim+of.suffix) {
			found[claim+of.suffix] = of.object.GetUID()
		}
	}
	return found
}

// soon waits until something is so, and looks without a pause: who waits for a step that is
// gone in a moment would miss it otherwise.
func (f *fixture) soon(what string, is func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			f.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// A controller that is killed at each step of serving a claim, and of deleting one, goes on
// where it was: nothing is made twice, no password changes, and nothing is left.
func TestKilledControllerGoesOnWithClaims(t *testing.T) {
	f := newCapabilityFixture(t)
	f.bind("settings", f.prefix, f.accountKey(databases), mayOn("", "configmaps", "get", "create", "patch", "delete"))
	f.provider(settingsProvider)
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	early := 0
	for i, step := range stepsOfAClaim {
		claim := &v1alpha1.CapabilityClaim{}
		f.written(claim, fmt.Sprintf("metadata: {name: db%d, namespace: PREFIX, labels: {e2e.kraan.io/controller: PREFIX}}\nspec: {capability: settings/map-PREFIX}\n", i))
		f.soon(claim.Name+" has "+step.what, func() bool { return !f.absent(claim, claim.Name) && step.seen(f, claim) })
		f.must(controller.Kill())
		if !f.absent(claim, claim.Name) && !meta.IsStatusConditionTrue(claim.Status.Conditions, v1alpha1.ReadyCondition) {
			early++
		}
		before := f.madeFor(claim.Name)
		f.must(controller.Start(f.ctx))
		f.claimSays(claim.Name, metav1.ConditionTrue, v1alpha1.ReasonBound)
		after := f.madeFor(claim.Name)
		for name, uid := range before {
			if after[name] != uid {
				t.Errorf("killed at %s: %s was %s and is %s", step.what, name, uid, after[name])
			}
		}
		passwords, binding := &corev1.Secret{}, &corev1.Secret{}
		if f.absent(passwords, claim.Name+"-passwords") || f.absent(binding, claim.Name+"-binding") || len(after) != 4 || f.recordsOf(claim) != 1 {
			t.Fatalf("killed at %s: there are %v and %d records", step.what, after, f.recordsOf(claim))
		}
		if want, got := string(passwords.Data["app"]), string(binding.Data["password"]); want == "" || got != want {
			t.Errorf("killed at %s: the binding has another password than was made", step.what)
		}
	}
	if early == 0 {
		t.Errorf("of %d controllers none was killed before its work was done", len(stepsOfAClaim))
	}

	// The other way round: killed when as many objects have gone.
	for i := range 4 {
		claim := &v1alpha1.CapabilityClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: fmt.Sprint("db", i)}}
		f.patch(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.ConfirmDeletionAnnotation))
		f.must(stack.client.Delete(f.ctx, claim))
		f.soon(fmt.Sprintf("%s has %d objects left", claim.Name, 4-i), func() bool { return len(f.madeFor(claim.Name)) <= 4-i })
		f.crash(controller)
		f.eventually(claim.Name+" goes", func() error {
			if !f.absent(&v1alpha1.CapabilityClaim{}, claim.Name) {
				return errors.New("it is there")
			}
			return nil
		})
		if left := f.madeFor(claim.Name); len(left) > 0 || f.recordsOf(claim) > 0 {
			t.Errorf("killed when %d had gone: %v are left, and %d records", i, left, f.recordsOf(claim))
		}
	}
}
