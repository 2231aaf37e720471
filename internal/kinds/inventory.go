// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"github.com/fluxcd/cli-utils/pkg/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// Made is an object that Helm has made for a release.
type Made struct {
	objects.ID
	// Version in which Helm has written it.
	Version string
	// Entry is what the release's status says of it.
	Entry any
}

// InventoryOf returns what Helm has made for a HelmRelease, in the order in which its status
// lists it. Entries that name no object are left out.
func InventoryOf(release *unstructured.Unstructured) []Made {
	value, _, _ := unstructured.NestedFieldNoCopy(release.Object, "status", "inventory", "entries")
	entries, _ := value.([]any)
	made := make([]Made, 0, len(entries))
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		written, _ := fields["id"].(string)
		version, _ := fields["v"].(string)
		id, err := object.ParseObjMetadata(written)
		if err != nil || id.GroupKind.Kind == "" || id.Name == "" {
			continue
		}
		made = append(made, Made{
			ID:      objects.ID{Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name},
			Version: version, Entry: entry,
		})
	}
	return made
}
