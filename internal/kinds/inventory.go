// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"

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
		if id, named := ParseEntry(written); named {
			made = append(made, Made{ID: id, Version: version, Entry: entry})
		}
	}
	return made
}

// ParseEntry returns the object that an entry of an inventory of Flux names, as
// namespace_name_group_kind; false for one that names none. A colon in the name, which kinds of
// RBAC may have, is written as two underscores. The library that writes it links kustomize and
// clients, which nothing that decides has a use for.
func ParseEntry(entry string) (objects.ID, bool) {
	namespace, rest, found := strings.Cut(entry, "_")
	rest, kind, found2 := cutLast(rest)
	name, group, found3 := cutLast(rest)
	if !found || !found2 || !found3 || kind == "" || name == "" {
		return objects.ID{}, false
	}
	return objects.ID{Group: group, Kind: kind, Namespace: namespace, Name: strings.ReplaceAll(name, "__", ":")}, true
}

// cutLast cuts a text at its last underscore.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, '_')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
