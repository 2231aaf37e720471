// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Picked applications go behind those that have what they require, and behind what they
// depend on before that.
func TestPicksGoAfterProviders(t *testing.T) {
	w := picked(picks("shop", "bank"), func(p *v1alpha1.Platform) { p.Spec.Capabilities = []string{"queue/amqp"} })
	w.Catalogue["bank"] = application("bank", "1.0.0")
	w.Catalogue["bank"].Spec.Versions[0].Requires = []v1alpha1.CapabilityRequirement{{Name: "api", Capability: "HTTP/Shop"}}
	w.Catalogue["shop"].Spec.Versions[0].Provides = []v1alpha1.ProvidedCapability{{Name: "api", Capability: "http/shop"}}
	d := w.apply(t)
	if got, want := locked(d.Status), "db@1.0.0 shop@1.0.0 bank@1.0.0"; got != want {
		t.Errorf("locked are %s, not %s", got, want)
	}
	made := d.Bundles[0].Spec
	if bank := made.Layers[0].Applications[2]; len(bank.DependsOn) > 0 {
		t.Errorf("bank depends on %v: who serves it is chosen by its claim", bank.DependsOn)
	}
	if !slices.Equal(made.Capabilities, []string{"queue/amqp"}) {
		t.Errorf("the clusters are said to have %v", made.Capabilities)
	}
}

// What depends on something stays behind it, whoever provides what to whom, and nothing is
// lost.
func TestProvidersNeverBreakDependencies(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		entries := map[string]*v1alpha1.HelmApplication{}
		var chosen []v1alpha1.LockedApplication
		for i := range 12 {
			name := fmt.Sprint("app-", i)
			version := v1alpha1.HelmApplicationVersion{Version: "1.0.0"}
			if i > 0 && random.IntN(2) == 0 {
				version.DependsOn = []v1alpha1.ApplicationRequirement{{Name: fmt.Sprint("app-", random.IntN(i))}}
			}
			if random.IntN(2) == 0 {
				version.Provides = []v1alpha1.ProvidedCapability{{Name: "it", Capability: fmt.Sprint("kind/", random.IntN(3))}}
			}
			if random.IntN(2) == 0 {
				version.Requires = []v1alpha1.CapabilityRequirement{{Name: "it", Capability: fmt.Sprint("kind/", random.IntN(3))}}
			}
			entries[name] = &v1alpha1.HelmApplication{}
			entries[name].Spec.Versions = []v1alpha1.HelmApplicationVersion{version}
			chosen = append(chosen, v1alpha1.LockedApplication{Name: name, Version: "1.0.0"})
		}
		at := map[string]int{}
		for i, one := range afterProviders(chosen, entries) {
			at[one.Name] = i
		}
		if len(at) != len(chosen) {
			t.Fatalf("seed %d: of %d applications %d are left", seed, len(chosen), len(at))
		}
		for name, app := range entries {
			for _, requirement := range app.Spec.Versions[0].DependsOn {
				if at[requirement.Name] > at[name] {
					t.Errorf("seed %d: %s goes before %s, which it depends on", seed, name, requirement.Name)
				}
			}
		}
	}
}
