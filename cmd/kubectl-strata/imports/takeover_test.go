// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
)

// Whatever the order of the names, a layer that another one waits for is made before it.
func TestOrderOfAHandOver(t *testing.T) {
	of := func(name, parent string, dependsOn ...string) kustomizations.Conversion {
		c := kustomizations.Conversion{Of: types.NamespacedName{Name: name}, Layer: &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		c.Parent.Name, c.Layer.Spec.Prereqs.DependsOn = parent, dependsOn
		return c
	}
	for name, test := range map[string]struct {
		reason string
		all    []kustomizations.Conversion
		want   []string
	}{
		"parents": {"what applies others comes first", []kustomizations.Conversion{of("leaf", "middle"), of("middle", "top"), of("top", "")}, []string{"top", "middle", "leaf"}},
		"a child that is waited for": {
			"a brother of its parent waits for it", []kustomizations.Conversion{of("a", "", "leaf"), of("b", ""), of("leaf", "b")}, []string{"b", "leaf", "a"},
		},
		"a parent that waits for its child": {
			"the layer of the parent could not be deployed before", []kustomizations.Conversion{of("top", "", "leaf"), of("leaf", "top")}, []string{"leaf", "top"},
		},
		"what is not named": {"it is there already, or refused elsewhere", []kustomizations.Conversion{of("a", "gone", "other")}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range inOrder(test.all) {
				got = append(got, c.Of.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}
