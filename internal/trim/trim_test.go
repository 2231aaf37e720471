// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
)

func TestObject(t *testing.T) {
	release := newRelease()
	release.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	release.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"})
	release.Object["status"] = map[string]any{"history": []any{"x"}, "inventory": map[string]any{"entries": []any{}}, "observedGeneration": int64(1)}
	want := newRelease()
	want.SetAnnotations(map[string]string{"kept": "yes"})
	want.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	checkStripped(t, release, want)

	// Of the inventory stays what may be well or not.
	inventoried := func(ids ...string) *unstructured.Unstructured {
		var entries []any
		for _, id := range ids {
			entries = append(entries, map[string]any{"id": id, "v": "v1"})
		}
		made := newRelease()
		made.Object["status"] = map[string]any{"inventory": map[string]any{"entries": entries}}
		return made
	}
	checkStripped(t, inventoried(
		"ns_web_apps_Deployment", "ns_settings__ConfigMap", "ns_s__Secret", "_a__b_rbac.authorization.k8s.io_ClusterRole", "ns_data__PersistentVolumeClaim",
		"ns_tls_cert-manager.io_Certificate", "_x.example.dev_apiextensions.k8s.io_CustomResourceDefinition",
	), inventoried("ns_web_apps_Deployment", "ns_data__PersistentVolumeClaim", "ns_tls_cert-manager.io_Certificate"))
	many := make([]string, mostInventory+1)
	for i := range many {
		many[i] = fmt.Sprintf("ns_w%d_apps_Deployment", i)
	}
	checkStripped(t, inventoried(many...), inventoried(many[:mostInventory]...))

	// Only a HelmRelease has Helm's history; a status of another kind is its own.
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Widget", "status": map[string]any{"history": []any{"x"}},
	}}
	checkStripped(t, widget.DeepCopy(), widget)

	layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	checkStripped(t, layer, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base"}})

	if got, err := Object("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("Object returns %v, %v for what is no object", got, err)
	}
}

func checkStripped(t *testing.T, in, want client.Object) {
	t.Helper()
	got, err := Object(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("stripped (-want +got):\n%s", diff)
	}
}

// newRelease returns a HelmRelease.
func newRelease() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseName": "podinfo"}}}
	obj.SetGroupVersionKind(kinds.HelmReleaseKind.WithVersion("v2"))
	obj.SetNamespace("default")
	obj.SetName("podinfo")
	return obj
}
