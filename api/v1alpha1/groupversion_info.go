// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of the group kraan.io: AddonsLayer, its
// condition types and reasons, and the labels and annotations that people set.
//
// +kubebuilder:object:generate=true
// +groupName=kraan.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "kraan.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &AddonsLayer{}, &AddonsLayerList{}, &RemoteCluster{}, &RemoteClusterList{}, &HelmApplication{}, &HelmApplicationList{},
		&ApplicationBundle{}, &ApplicationBundleList{}, &Platform{}, &PlatformList{}, &ClusterDiscovery{}, &ClusterDiscoveryList{}, &HostCluster{}, &HostClusterList{},
		&CapabilityProvider{}, &CapabilityProviderList{}, &CapabilityClaim{}, &CapabilityClaimList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
