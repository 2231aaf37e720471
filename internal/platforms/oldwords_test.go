// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What a bundle with an old word means is not guessed: its layers stay as they are, it is
// given to nobody, and the Platform names it. Everything goes on when it is mended.
func TestBundleWithAnOldWord(t *testing.T) {
	w := fleet(t, 2, "1.0.0")
	w.Bundles[0].Spec.KubeVersion = ">=1.20"
	w.settle(t)
	before := w.names()
	w.Bundles[0].Spec.KubeVersion, w.Bundles[0].Spec.OldKubernetes = "", ">=1.20"
	w.Platform.Spec.ServiceAccountName = "other"
	d := w.settle(t)
	if got := w.names(); got != before || w.Layers[0].Spec.Prereqs.K8sVersion != ">=1.20" || w.Layers[0].Spec.ServiceAccountName != "" {
		t.Errorf("there are %s, with %+v", got, w.Layers[0].Spec)
	}
	want := "ApplicationBundle " + w.Bundles[0].Name + ": kubernetes is now kubeVersion: write that"
	if !strings.Contains(said(d.Status), want) || !strings.Contains(conditionsOf(d.Status), "Stalled=True/InvalidSpec") {
		t.Errorf("it says %s, %s", said(d.Status), conditionsOf(d.Status))
	}
	w.Bundles[0].Spec.KubeVersion, w.Bundles[0].Spec.OldKubernetes = ">=1.20", ""
	w.settle(t)
	if got := w.Layers[0].Spec.ServiceAccountName; got != "other" {
		t.Errorf("mended, its layer has the account %q", got)
	}
}

// What an application with an old word needs is not known: what was chosen stays.
func TestPickWithAnOldWord(t *testing.T) {
	w := newWorld(platform("p", ""))
	w.Platform.Spec.Bundle, w.Platform.Spec.Applications = nil, []v1alpha1.PlatformApplication{{Name: "shop"}}
	shop := application("shop", "1.0.0 db@^1")
	w.Catalogue = map[string]*v1alpha1.HelmApplication{"shop": shop, "db": application("db", "1.0.0")}
	chosen := func(d Decision) string {
		var names []string
		for _, locked := range d.Status.Lock.Applications {
			names = append(names, locked.Name)
		}
		return w.names() + " of " + strings.Join(names, ", ")
	}
	before := chosen(w.settle(t))
	if !strings.Contains(before, "db, shop") {
		t.Fatalf("there are %s", before)
	}
	needs := shop.Spec.Versions[0].DependsOn
	shop.Spec.Versions[0].DependsOn, shop.Spec.Versions[0].OldKubernetes = nil, ">=1.20"
	w.Platform.Spec.Applications[0].Version = ">=1"
	d := w.settle(t)
	if got := chosen(d); got != before || !strings.Contains(said(d.Status), "HelmApplication shop: versions[1.0.0].kubernetes is now kubeVersion") {
		t.Errorf("there are %s, and it says %s", got, said(d.Status))
	}
	shop.Spec.Versions[0].DependsOn, shop.Spec.Versions[0].OldKubernetes = needs, ""
	d = w.settle(t)
	if got := chosen(d); !strings.HasSuffix(got, "of db, shop") || !strings.Contains(conditionsOf(d.Status), "Ready=True") {
		t.Errorf("mended, there are %s: %s", got, said(d.Status))
	}
}
