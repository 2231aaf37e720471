// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/forged"
)

// handedOver returns what a hand-over takes from a Kustomization, and what it would be made into
// again.
func handedOver(t *testing.T, live *unstructured.Unstructured) string {
	t.Helper()
	text, err := RecordOf(live)
	if err != nil {
		t.Fatal(err)
	}
	record, err := ReadRecord(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := record.Kustomization("base")
	if err != nil {
		t.Fatal(err)
	}
	all, err := InventoryOf(record.Inventory)
	return fmt.Sprint(again.Object, all, err)
}

// Whatever somebody has written into the fields of a Kustomization's status of which nothing is to
// follow, the same objects are handed over, and the same Kustomization is made again. Its inventory
// would be found if it were among them.
func TestForgedStatusOfAKustomization(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "base", "namespace": "flux-system"},
		"spec": map[string]any{"interval": "1m", "path": "./base", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"}},
		"status": map[string]any{
			"lastAppliedRevision": "main@sha1:1", "inventory": map[string]any{"entries": []any{map[string]any{"id": "default_a_apps_Deployment", "v": "v1"}}},
		},
	}}
	honest := handedOver(t, live)
	for _, forgery := range forged.EachForeign(t, "Kustomization", live, "main@sha1:2") {
		if diff := cmp.Diff(honest, handedOver(t, forgery.Object)); diff != "" {
			t.Errorf("%s: %s", forgery.Name, diff)
		}
	}
	found := false
	for _, forgery := range forged.OfForeign(t, "inventory.entries", live) {
		found = found || handedOver(t, forgery.Object) != honest
	}
	if class := v1alpha1.ForeignStatusFields("Kustomization")["inventory.entries"]; found != class.IsVerified() {
		t.Errorf("a forged inventory says what is handed over: %t", found)
	}
}
