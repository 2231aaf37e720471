// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The words that specifications had before stay in their schemas: the API server prunes
// what it does not know, and what was meant would be lost in silence. An object that has
// one is Stalled and names the word of now; new objects are refused with it.

// OldVersionWords are words that the versions of HelmApplications had before.
type OldVersionWords struct {
	// OldDependencies is now dependsOn.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="false",message="dependencies is now dependsOn: write that"
	// +listType=map
	// +listMapKey=name
	// +optional
	OldDependencies []ApplicationRequirement `json:"dependencies,omitempty"`
	// OldRecommendations is now recommends.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="false",message="recommendations is now recommends: write that"
	// +listType=map
	// +listMapKey=name
	// +optional
	OldRecommendations []ApplicationRequirement `json:"recommendations,omitempty"`
	// OldKubernetes is now kubeVersion.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="false",message="kubernetes is now kubeVersion: write that"
	// +optional
	OldKubernetes string `json:"kubernetes,omitempty"`
}

// OldBundleWords are words that ApplicationBundles had before.
type OldBundleWords struct {
	// OldKubernetes is now kubeVersion.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="false",message="kubernetes is now kubeVersion: write that"
	// +optional
	OldKubernetes string `json:"kubernetes,omitempty"`
}

// OldApplicationWords are words that HelmApplications had before.
type OldApplicationWords struct {
	// OldLicence is now license.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="false",message="licence is now license: write that"
	// +optional
	OldLicence string `json:"licence,omitempty"`
}

// OldUpgradeWords are words that upgrade of a Platform had before.
type OldUpgradeWords struct {
	// OldSemver is now maxStep.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="false",message="semver is now maxStep: write that"
	// +optional
	OldSemver UpgradeBound `json:"semver,omitempty"`
	// OldWindows is now maintenanceWindows.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="false",message="windows is now maintenanceWindows: write that"
	// +listType=atomic
	// +optional
	OldWindows []UpgradeWindow `json:"windows,omitempty"`
}

// OldClusterWords are words that RemoteClusters had before.
type OldClusterWords struct {
	// OldVia is now kubeConfig.clusterRef and kubeConfig.secretRef.namespace.
	// +kubebuilder:validation:XValidation:rule="false",message="via is now kubeConfig.clusterRef, and its namespace kubeConfig.secretRef.namespace: write that"
	// +optional
	OldVia *OldViaReference `json:"via,omitempty"`
}

// OldViaReference named the cluster on which a Secret lies.
type OldViaReference struct {
	// Name of the RemoteCluster.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace of the Secret.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// OldBundleClusterWords are words that clusters of bundles had before.
type OldBundleClusterWords struct {
	// OldSecretRef is now kubeConfig.secretRef.
	// +kubebuilder:validation:XValidation:rule="false",message="secretRef is now kubeConfig.secretRef: write that"
	// +optional
	OldSecretRef *OldSecretKey `json:"secretRef,omitempty"`
	// OldNamespace is now kubeConfig.secretRef.namespace.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="false",message="namespace is now kubeConfig.secretRef.namespace: write that"
	// +optional
	OldNamespace string `json:"namespace,omitempty"`
}

// OldSecretKey named the Secret of a cluster of a bundle.
type OldSecretKey struct {
	// Name of the Secret.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Name string `json:"name"`
	// Key of its data.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// OldLayerWords are words that AddonsLayers had before.
type OldLayerWords struct {
	// OldDeleteAfter is now teardownAfter.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="false",message="deleteAfter is now teardownAfter: write that"
	// +listType=set
	// +optional
	OldDeleteAfter []string `json:"deleteAfter,omitempty"`
}

// OldBundleLayerWords are words that layers of bundles had before.
type OldBundleLayerWords struct {
	// OldTeardown is now teardownAfter.
	// +kubebuilder:validation:XValidation:rule="false",message="teardown.after is now teardownAfter: write that"
	// +optional
	OldTeardown *OldTeardown `json:"teardown,omitempty"`
}

// OldTeardown said what goes before a layer of a bundle.
type OldTeardown struct {
	// After named the layers.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	After []string `json:"after"`
}

// OldWaitWords are words that waitFor had before.
type OldWaitWords struct {
	// OldCondition is now readyExpr.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="false",message="condition is now readyExpr: write that"
	// +optional
	OldCondition string `json:"condition,omitempty"`
}
