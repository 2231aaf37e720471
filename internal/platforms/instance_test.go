// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// instances returns the names of the installations by their layers.
func (w *world) instances() string {
	var all []string
	for _, layer := range w.Layers {
		all = append(all, layer.Spec.Cluster.Name+"="+layer.Spec.Instance)
	}
	return strings.Join(sorted(all), " ")
}

// An installation is named as the Platform says, and keeps its name whatever becomes of the
// cluster's labels. Two of one name are told, and the second is not installed.
func TestInstanceName(t *testing.T) {
	w := newWorld(platform("p", "", on("eu", "us")), bundle("1.0.0", "", "base"))
	w.Platform.Spec.InstanceName = "shop-${cluster.labels.tenant}"
	eu := w.cluster("eu", map[string]string{"tenant": "red"})
	us := w.cluster("us", map[string]string{"tenant": "blue"})
	if d := w.settle(t); w.instances() != "eu=shop-red us=shop-blue" || conditionsOf(d.Status) != installed {
		t.Fatalf("there are %s: %s", w.instances(), said(d.Status))
	}
	eu.Labels, us.Labels = map[string]string{"tenant": "green"}, nil
	if d := w.settle(t); w.instances() != "eu=shop-red us=shop-blue" || conditionsOf(d.Status) != installed {
		t.Errorf("with other labels there are %s: %s", w.instances(), said(d.Status))
	}
	on("ap")(w.Platform)
	for tenant, want := range map[string]string{
		"red":  "spec.instanceName: fleet/eu and fleet/ap both come to shop-red",
		"R_D":  `spec.instanceName: "shop-R_D" is no name of small letters`,
		"none": "spec.instanceName: ${cluster.labels.tenant}: there is no tenant",
	} {
		labels := map[string]string{"tenant": tenant}
		if tenant == "none" {
			labels = nil
		}
		w.cluster("ap", labels)
		d := w.settle(t)
		if w.instances() != "eu=shop-red us=shop-blue" || !strings.Contains(said(d.Status), want) || !strings.Contains(conditionsOf(d.Status), "Stalled=True/"+v1alpha1.ReasonInvalidSpec) {
			t.Errorf("%s: there are %s: %s", tenant, w.instances(), said(d.Status))
		}
	}
	w.cluster("ap", map[string]string{"tenant": "blue2"})
	if d := w.settle(t); w.instances() != "ap=shop-blue2 eu=shop-red us=shop-blue" || conditionsOf(d.Status) != installed {
		t.Errorf("then there are %s: %s", w.instances(), said(d.Status))
	}
}
