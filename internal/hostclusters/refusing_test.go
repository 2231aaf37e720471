// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

func TestRefusing(t *testing.T) {
	layer := func(name, wanted string) v1alpha1.AddonsLayer {
		return v1alpha1.AddonsLayer{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.AddonsLayerSpec{Prereqs: v1alpha1.PrereqsSpec{K8sVersion: wanted}},
		}
	}
	elsewhere := layer("elsewhere", "<1.36")
	elsewhere.Spec.Cluster = &v1alpha1.ClusterReference{Name: "other"}
	leaving := layer("leaving", "<1.36")
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	got := hostclusters.Refusing([]v1alpha1.AddonsLayer{
		layer("web", ">=1.30 <1.36"), layer("base", "1.37"), layer("any", ""), layer("minimum", "1.36"), layer("broken", "no range"), elsewhere, leaving,
	}, "v1.36.3")
	want := []string{
		"layer base is for Kubernetes 1.37, and v1.36.3 is not: change spec.prereqs.k8sVersion of the layer first",
		"layer web is for Kubernetes >=1.30 <1.36, and v1.36.3 is not: change spec.prereqs.k8sVersion of the layer first",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
