// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/providers/providerstest"
	"github.com/strata-project/strata/test/forged"
)

// forgeProviders puts each forgery into a provider of templates, and into one whose plug-in does
// not serve.
func (f *fixture) forgeProviders(plausible ...string) (count int) {
	f.Helper()
	of := func(name string, i int) (refused bool) {
		provider := &v1alpha1.CapabilityProvider{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Name: fmt.Sprintf("%s-%s%d", f.shop, name, i)}, provider))
		return !f.forgeAll(provider, forgeriesOf(f, provider.Status, plausible...)[i].Status)
	}
	refused := 0
	all := forgeriesOf(f, v1alpha1.CapabilityProviderStatus{}, plausible...)
	for i := range all {
		for _, name := range []string{"t", "p"} {
			if of(name, i) {
				refused++
			}
		}
	}
	if refused > 4 { // a text that is no digest
		f.Errorf("%d of %d forgeries are refused", refused, 2*len(all))
	}
	return len(all)
}

func forgeriesOf(f *fixture, status v1alpha1.CapabilityProviderStatus, plausible ...string) []forged.Forgery[v1alpha1.CapabilityProviderStatus] {
	f.Helper()
	return forged.Each(f, v1alpha1.CapabilityProviderKind, status, func(s v1alpha1.CapabilityProviderStatus) v1alpha1.CapabilityProviderStatus {
		return *s.DeepCopy()
	}, plausible...)
}

// Whatever somebody has written into a field of a provider's status, nothing is made, moved or
// started by it: not for a claim that it serves, not for one that waits for its plug-in, and not
// by a controller that begins.
func TestForgedFieldsOfAProvider(t *testing.T) {
	f := newFixture(t)
	f.plugins = f.TempDir()
	program := providerstest.Naughty(f, f.plugins)
	count := len(forgeriesOf(f, v1alpha1.CapabilityProviderStatus{}, program))
	for i := range count {
		f.provider(fmt.Sprintf("t%d", i), instance)
		f.offered(fmt.Sprintf("p%d", i), fmt.Sprintf("  plugin: {digest: %q, run: Process, kinds: [{apiVersion: v1, kind: ConfigMap}]}\n", "sha256:"+strings.Repeat("a", 64)))
		f.claims(fmt.Sprintf("c%d", i), fmt.Sprintf("  provider: SHOP-t%d\n", i))
	}
	f.start(0)
	for i := range count {
		f.says(fmt.Sprintf("c%d", i), v1alpha1.ReasonBound)
		f.providerSays(fmt.Sprintf("p%d", i), "there is no file")
	}
	f.wants("waits", "")
	f.says("waits", v1alpha1.ReasonNoProvider)
	f.settled()
	look := func(when string) {
		for i := range count {
			f.annotateProvider(fmt.Sprintf("t%d", i), "look", when)
			f.annotateProvider(fmt.Sprintf("p%d", i), "look", when)
			f.annotate(f.get(fmt.Sprintf("c%d", i)), "look", when)
		}
		f.annotate(f.get("waits"), "look", when)
		if asked := writesBeside(f.settled()); len(asked) > 0 {
			t.Errorf("%s: forged statuses have it ask for %v", when, asked)
		}
		f.says("waits", v1alpha1.ReasonNoProvider)
		if f.host.Knows(program) {
			t.Errorf("%s: a program that only a status names was asked", when)
		}
		records := &appsv1.ControllerRevisionList{}
		f.must(f.client.List(f.ctx, records, client.InNamespace(f.system), client.HasLabels{v1alpha1.ProviderLabel}))
		if len(records.Items) > 0 {
			t.Errorf("%s: it is recorded that %d plug-ins have served", when, len(records.Items))
		}
		for i := range count {
			if claim := f.get(fmt.Sprintf("c%d", i)); claim.Status.Provider != fmt.Sprintf("%s-t%d", f.shop, i) || claim.Status.Version != "2.0" {
				t.Errorf("%s: claim %d is bound to %s at %s", when, i, claim.Status.Provider, claim.Status.Version)
			}
			if of := f.providerSays(fmt.Sprintf("p%d", i), "there is no file").Status.Plugin; of != nil {
				t.Errorf("%s: the status of a provider still names %+v", when, of)
			}
		}
	}
	f.forgeProviders(program)
	look("at rest")
	f.end()
	f.forgeProviders(program)
	f.start(0)
	look("at a start")
}
