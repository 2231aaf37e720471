// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Two layers that swap releases in one commit wait for each other to let go,
// and both get there: nothing is uninstalled, and no interval rescues them.
func TestLayersThatSwapReleases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// depends makes apps depend on base.
		depends bool
		grace   time.Duration
	}{
		{"independent", false, time.Second},
		{"one depends on the other", true, time.Second},
		{"a long grace", true, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			one, two := f.configMapRelease("one", "one"), f.configMapRelease("two", "two")
			revision := f.push(map[string]string{
				"base/own.yaml": f.configMapRelease("base-own", "1"), "apps/own.yaml": f.configMapRelease("apps-own", "1"),
				"base/one.yaml": one, "apps/two.yaml": two,
			})
			f.layer("base", orphanGrace(test.grace))
			options := []func(*v1alpha1.AddonsLayer){orphanGrace(test.grace)}
			if test.depends {
				options = append(options, f.dependsOn("base@1.0.0"))
			}
			f.layer("apps", options...)
			f.deployed("base", revision)
			f.deployed("apps", revision)
			first, second := f.watchRelease("one"), f.watchRelease("two")

			revision = f.rewrite(map[string]string{"base/one.yaml": "", "apps/two.yaml": "", "base/two.yaml": two, "apps/one.yaml": one})
			f.deployed("base", revision)
			f.deployed("apps", revision)
			first.adoptedBy("apps")
			second.adoptedBy("base")
		})
	}
}

// The same with other names for the same two Helm releases: each HelmRelease is
// renamed while it moves.
func TestLayersThatSwapAndRenameReleases(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{
		"base/one.yaml": f.namedRelease("one", "shop", "1"), "apps/two.yaml": f.namedRelease("two", "bank", "1"),
	})
	f.layer("base")
	f.layer("apps", f.dependsOn("base@1.0.0"))
	f.deployed("base", revision)
	f.deployed("apps", revision)
	shop, bank := f.helmHistory("shop")[0], f.helmHistory("bank")[0]
	c := f.helmChronicle()

	revision = f.rewrite(map[string]string{
		"base/one.yaml": "", "apps/two.yaml": "",
		"apps/uno.yaml": f.namedRelease("uno", "shop", "2"), "base/due.yaml": f.namedRelease("due", "bank", "2"),
	})
	f.deployed("base", revision)
	f.deployed("apps", revision)
	f.eventually("the former HelmReleases go", func() error {
		if !f.absent(&helmv2.HelmRelease{}, "one") || !f.absent(&helmv2.HelmRelease{}, "two") {
			return errStillThere
		}
		return nil
	})
	c.neverUninstalled("shop", shop)
	c.neverUninstalled("bank", bank)
	for name, layer := range map[string]string{"uno": "apps", "due": "base"} {
		if owner := f.release(name).Labels[v1alpha1.LayerLabel]; owner != f.name(layer) {
			t.Errorf("release %s belongs to %s", name, owner)
		}
	}
}

// Somebody deletes a release while it changes hands: at last its new layer has
// it, installed once more, and the former one has forgotten it.
func TestReleaseDeletedWhileItIsAdopted(t *testing.T) {
	for _, test := range []struct{ name, from, to string }{
		{"to the layer that depends on its own", "base", "apps"},
		{"to the layer that its own depends on", "apps", "base"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			content := f.configMapRelease("moved", "one")
			f.twoLayers(test.from+"/moved.yaml", content)
			before := f.release("moved")
			f.edit(test.to, `{"spec":{"hold":true}}`)
			f.state(test.to, v1alpha1.StateHold)
			c := f.helmChronicle()

			revision := f.rewrite(map[string]string{test.from + "/moved.yaml": "", test.to + "/moved.yaml": content})
			c.marked("HelmRelease", "moved", time.Time{})
			f.edit(test.to, `{"spec":{"hold":false}}`)
			f.must(stack.client.Delete(f.ctx, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "moved"}}))
			f.deployed(test.from, revision)
			f.deployed(test.to, revision)
			f.eventually("it is installed again, for its new layer", func() error {
				if f.absent(&helmv2.HelmRelease{}, "moved") {
					return errors.New("it is gone")
				}
				now := f.release("moved")
				switch {
				case now.UID == before.UID:
					return errors.New("it is still the former one")
				case now.Labels[v1alpha1.LayerLabel] != f.name(test.to) || now.Labels[v1alpha1.OrphanedLabel] != "":
					return errors.New("it has other labels")
				case f.configMap("moved") == nil:
					return errors.New("it has not installed anything")
				case f.resource(test.from, "moved") != "" || f.resource(test.to, "moved") != "Deployed":
					return errors.New("the layers do not say so")
				}
				return nil
			})
		})
	}
}
