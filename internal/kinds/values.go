// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// WatchLabel with the value WatchEnabled is the label of ConfigMaps and Secrets whose
// changes Flux's controllers see at once, by their flag --watch-configs-label-selector.
const (
	WatchLabel   = "reconcile.fluxcd.io/watch"
	WatchEnabled = "Enabled"
)

// ValuesOf returns the ConfigMaps and Secrets that a HelmRelease takes values from, as it
// lists them.
func ValuesOf(release *unstructured.Unstructured) []objects.ID {
	references, _, _ := unstructured.NestedFieldNoCopy(release.Object, "spec", "valuesFrom")
	list, _ := references.([]any)
	var found []objects.ID
	for _, item := range list {
		fields, _ := item.(map[string]any)
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		if name != "" && (kind == "ConfigMap" || kind == "Secret") {
			found = append(found, objects.ID{Kind: kind, Namespace: release.GetNamespace(), Name: name})
		}
	}
	return found
}
