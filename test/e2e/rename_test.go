// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// A HelmRelease that gets another name, but stands for the same Helm release,
// is succeeded by the new one: Helm upgrades what runs and uninstalls nothing.
func TestRenamedReleaseKeepsItsHelmRelease(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, from, to string }{
		{"within one layer", "base", "base"},
		{"moved to the layer that its own depends on", "apps", "base"},
		{"moved to the layer that depends on its own", "base", "apps"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.twoLayers(test.from+"/web.yaml", f.namedRelease("web", "shop", "one"))
			history := f.helmHistory("shop")
			if len(history) != 1 {
				t.Fatalf("Helm's history begins with %v", history)
			}
			made := &corev1.ConfigMap{}
			f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shop"}, made))
			c := f.helmChronicle()

			revision := f.rewrite(map[string]string{
				test.from + "/web.yaml": "", test.to + "/store.yaml": f.namedRelease("store", "shop", "two"),
			})
			f.deployed("base", revision)
			f.deployed("apps", revision)
			f.eventually("the former HelmRelease goes", func() error {
				if !f.absent(&helmv2.HelmRelease{}, "web") {
					return errStillThere
				}
				return nil
			})

			c.neverUninstalled("shop", history[0])
			if now := f.helmHistory("shop"); now[len(now)-1].status != "deployed" {
				t.Errorf("Helm's history is %v", now)
			} else {
				t.Logf("Helm's history is %v", now)
			}
			after := &corev1.ConfigMap{}
			f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "shop"}, after))
			if after.UID != made.UID || after.Data["value"] != "two" {
				t.Errorf("what it installed has UID %s and value %q, before %s", after.UID, after.Data["value"], made.UID)
			}
			// Flux leaves alone what a suspended HelmRelease installed.
			last := c.of("HelmRelease", "web")
			if deleted := last[len(last)-1].object.(*helmv2.HelmRelease); !deleted.Spec.Suspend {
				t.Error("the former HelmRelease was not suspended when it went")
			}
			store := f.release("store")
			if store.Labels[v1alpha1.LayerLabel] != f.name(test.to) || store.Spec.Suspend {
				t.Errorf("the new HelmRelease has labels %v, suspended %v", store.Labels, store.Spec.Suspend)
			}
			if got := f.resource(test.from, "web"); got != "" {
				t.Errorf("layer %s still shows the former one as %s", test.from, got)
			}
			if got := f.resource(test.to, "store"); got != "Deployed" {
				t.Errorf("layer %s shows the new one as %q", test.to, got)
			}
		})
	}
}
