// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// withoutHealth are kinds that are well as soon as they exist, and groups of such kinds.
var (
	withoutHealth = map[schema.GroupKind]bool{
		{Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true, {Kind: "LimitRange"}: true,
		{Kind: "ResourceQuota"}: true, {Kind: "Endpoints"}: true,
	}
	groupsWithoutHealth = map[string]bool{
		"rbac.authorization.k8s.io": true, "apiextensions.k8s.io": true, "admissionregistration.k8s.io": true, "scheduling.k8s.io": true,
		"storage.k8s.io": true, "node.k8s.io": true, "apiregistration.k8s.io": true, "flowcontrol.apiserver.k8s.io": true,
	}
)

// HasHealth tells whether objects of a kind may be well or not once they exist.
func HasHealth(gk schema.GroupKind) bool { return !withoutHealth[gk] && !groupsWithoutHealth[gk.Group] }
