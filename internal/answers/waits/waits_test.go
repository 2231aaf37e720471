// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

// layer has releases, each as NAME, or NAME of those that it depends on: NAME<OTHER.
func layer(name string, dependsOn []string, releases ...string) Layer {
	made := Layer{AddonsLayer: &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	made.Spec.Prereqs.DependsOn = dependsOn
	for _, release := range releases {
		name, other, depends := strings.Cut(release, "<")
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": name, "namespace": "shop"},
		}}
		if depends {
			object.Object["spec"] = map[string]any{"dependsOn": []any{map[string]any{"name": other}}}
		}
		made.Manifests = append(made.Manifests, directories.Manifest{Object: object})
	}
	return made
}

func withoutWait(l Layer, checks ...string) Layer {
	no := false
	l.Spec.Wait = &no
	for _, name := range checks {
		l.Spec.HealthChecks = append(l.Spec.HealthChecks, v1alpha1.HealthCheck{
			APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Name: name, Namespace: "shop",
		})
	}
	return l
}

func TestCircle(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		layers []Layer
		want   []string
	}{
		"none": {"each waits for what does not wait for it", []Layer{layer("a", nil, "web<db"), layer("b", nil, "db")}, nil},
		"through a release": {
			"web is not ready before db, which comes after a",
			[]Layer{layer("a", nil, "web<db"), layer("b", []string{"a"}, "db")},
			[]string{"layer a", "HelmRelease shop/web", "HelmRelease shop/db", "layer a"},
		},
		"without wait": {
			"a is deployed before web is ready", []Layer{withoutWait(layer("a", nil, "web<db")), layer("b", []string{"a"}, "db")}, nil,
		},
		"through a health check": {
			"a looks at the health of db, which comes after a",
			[]Layer{withoutWait(layer("a", nil), "db"), layer("b", []string{"a"}, "db")},
			[]string{"layer a", "HelmRelease shop/db", "layer a"},
		},
		"a health check that nothing reads": {"where all is waited for, health checks are left alone", []Layer{
			func() Layer { l := withoutWait(layer("a", nil), "db"); l.Spec.Wait = nil; return l }(), layer("b", []string{"a"}, "db"),
		}, nil},
		"of layers alone": {"the controller says that itself", []Layer{layer("a", []string{"b"}, "web<db"), layer("b", []string{"a"}, "db")}, nil},
		"in one layer":    {"releases of one layer are ordered by the controller", []Layer{layer("a", nil, "web<db", "db")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, way := GraphOf(test.layers).Circle("a")
			if diff := cmp.Diff(test.want, way); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}
