// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// WatchLabel with the value WatchEnabled is the label of ConfigMaps and Secrets whose
// changes Flux's controllers see at once, by their flag --watch-configs-label-selector.
const (
	WatchLabel   = "reconcile.fluxcd.io/watch"
	WatchEnabled = "Enabled"
)

// BindingNameOf returns the name of the Secret with the connection details of the claim of a
// name.
func BindingNameOf(claim string) string { return claim + "-binding" }

// ClaimOfBinding is the reverse of BindingNameOf; false for a name that is none.
func ClaimOfBinding(name string) (claim string, is bool) {
	return strings.CutSuffix(name, BindingNameOf(""))
}

// ValueKey is a key of a ConfigMap or Secret that a HelmRelease takes values from.
type ValueKey struct {
	objects.ID
	Key string
}

// defaultValuesKey is the key that is read where none is named.
const defaultValuesKey = "values.yaml"

// ValueKeysOf returns the keys of ConfigMaps and Secrets that a HelmRelease takes values from,
// as it lists them.
func ValueKeysOf(release *unstructured.Unstructured) []ValueKey {
	references, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", "valuesFrom")
	list, _ := references.([]any)
	var found []ValueKey
	for _, item := range list {
		fields, _ := item.(map[string]any)
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		key, _ := fields["valuesKey"].(string)
		if name != "" && (kind == "ConfigMap" || kind == "Secret") {
			found = append(found, ValueKey{objects.ID{Kind: kind, Namespace: release.GetNamespace(), Name: name}, cmp.Or(key, defaultValuesKey)})
		}
	}
	return found
}

// ValuesOf returns the ConfigMaps and Secrets that a HelmRelease takes values from, as it
// lists them.
func ValuesOf(release *unstructured.Unstructured) []objects.ID {
	var found []objects.ID
	for _, of := range ValueKeysOf(release) {
		found = append(found, of.ID)
	}
	return found
}
