// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestWrongRequires(t *testing.T) {
	content := v1alpha1.ApplicationContent{
		Requires: []v1alpha1.CapabilityRequirement{
			{Name: "fine", Capability: "database/postgresql", Version: ">=15"},
			{
				Name: "nothing", Version: "newest",
				ProviderSelector:  &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Wrong"}}},
				AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "!"}},
			},
		},
		ValuesFrom: []v1alpha1.BindingValue{{Capability: "fine"}, {Capability: "other"}},
	}
	got := strings.Join(wrongRequires(content), "\n")
	for _, want := range []string{
		"requires[nothing].capability: is missing", `requires[nothing].version: "newest" is no version`, "requires[nothing].providerSelector: ", "requires[nothing].allowedNamespaces: ",
		"valuesFrom[1].capability: nothing is required as other",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q, but %q", want, got)
		}
	}
	if strings.Contains(got, "fine") || strings.Contains(got, "valuesFrom[0]") {
		t.Errorf("it says %q", got)
	}
}
