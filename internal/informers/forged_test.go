// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// Whatever somebody has written into the fields of a definition's status of which nothing is to
// follow, its kind counts as served, or not, as it did. Its conditions would be found if they were
// among them.
func TestForgedStatusOfADefinition(t *testing.T) {
	serves := false
	for _, status := range []string{"True", "False"} {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"storedVersions": []any{"v1"}, "conditions": []any{map[string]any{"type": "Established", "status": status}},
		}}}
		honest := isEstablished(obj)
		if honest != (status == "True") {
			t.Fatalf("a definition that is established: %s counts as: %t", status, honest)
		}
		for _, forgery := range forged.EachForeign(t, "CustomResourceDefinition", obj) {
			if isEstablished(forgery.Object) != honest {
				t.Errorf("%s: its kind is served: %t", forgery.Name, !honest)
			}
		}
		for _, forgery := range forged.OfForeign(t, "conditions", obj) {
			serves = serves || isEstablished(forgery.Object) != honest
		}
	}
	if class := v1alpha1.ForeignStatusFields("CustomResourceDefinition")["conditions"]; serves != class.IsBelieved() {
		t.Errorf("forged conditions say whether a kind is served: %t", serves)
	}
}
