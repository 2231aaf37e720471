// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func TestCompare(t *testing.T) {
	of := func(name, spec string) Found {
		object := &unstructured.Unstructured{}
		text := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\nspec: {" + spec + "}\n"
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		found, err := Live(object)
		if err != nil {
			t.Fatal(err)
		}
		found.File = "ks.yaml"
		return found
	}
	const plain = "interval: 60m, prune: true, path: ./a, sourceRef: {kind: GitRepository, name: flux-system}"
	key := types.NamespacedName{Namespace: "flux-system", Name: "a"}
	handed := map[types.NamespacedName]string{key: "a"}
	for name, test := range map[string]struct {
		reason      string
		found, live []Found
		handed      map[types.NamespacedName]string
		want        Comparison
	}{
		"alike": {
			"defaults, and ways to write a path, an interval and a namespace, are no difference",
			[]Found{of("a", plain)},
			[]Found{of("a", "interval: 1h, prune: true, force: false, path: a/, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}")},
			nil,
			Comparison{Same: 1},
		},
		"another path": {
			"what was changed by hand, or not applied yet, is told by its fields",
			[]Found{of("a", plain)},
			[]Found{of("a", "interval: 1h, prune: true, path: ./b, suspend: true, sourceRef: {kind: GitRepository, name: flux-system}")},
			nil,
			Comparison{Differences: []Difference{{Of: key, File: "ks.yaml", Fields: []string{"path", "suspend"}}}},
		},
		"not applied":  {"the cluster lacks it", []Found{of("a", plain)}, nil, nil, Comparison{Differences: []Difference{{Of: key, Only: InRepository, File: "ks.yaml"}}}},
		"not found":    {"something else made it", nil, []Found{of("a", plain)}, nil, Comparison{Differences: []Difference{{Of: key, Only: OnCluster}}}},
		"handed over":  {"its layer is on the cluster", []Found{of("a", plain)}, nil, handed, Comparison{Same: 1}},
		"Flux itself":  {"a tool makes it, and where it begins is what counts", []Found{of(bootstrap, plain)}, []Found{of(bootstrap, plain+", wait: true")}, nil, Comparison{Same: 1}},
		"nothing here": {"there is nothing to compare", nil, nil, nil, Comparison{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Compare(test.found, test.live, test.handed)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}
