// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// clusterScoped are the kinds of Kubernetes and of Strata that have no namespaces, by group.
var clusterScoped = map[string][]string{
	"": {"Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"kraan.io":                     {"AddonsLayer", "ApplicationBundle", "CapabilityProvider", "HelmApplication", "Platform"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

// HasNoNamespaces tells kinds of which it is known without a cluster that they have no
// namespaces. Of kinds that others define only their cluster can say.
func HasNoNamespaces(gk schema.GroupKind) bool {
	return slices.Contains(clusterScoped[gk.Group], gk.Kind)
}

// HasKnownScope tells kinds of which it is known without a cluster whether they have
// namespaces: those of Kubernetes, Strata and Flux.
func HasKnownScope(gk schema.GroupKind) bool {
	_, known := clusterScoped[gk.Group]
	return known || !strings.Contains(gk.Group, ".") || strings.HasSuffix(gk.Group, ".toolkit.fluxcd.io")
}
