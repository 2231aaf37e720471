// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ChartSource says where a chart comes from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.repository), has(self.oci), has(self.git)].filter(x, x).size() == 1",message="chart must have exactly one of repository, oci and git"
type ChartSource struct {
	// Repository is a Helm repository over HTTP.
	// +optional
	Repository *ChartRepository `json:"repository,omitempty"`
	// OCI is a chart in an OCI registry.
	// +optional
	OCI *ChartOCI `json:"oci,omitempty"`
	// Git is a chart in a git repository.
	// +optional
	Git *ChartGit `json:"git,omitempty"`
}

// ChartRepository names a chart of a Helm repository.
type ChartRepository struct {
	// URL of the repository.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://')",message="url must begin with https:// or http://"
	// +required
	URL string `json:"url"`
	// Chart is the name of the chart.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Chart string `json:"chart"`
	// Version of the chart, exactly. Defaults to the application's version.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// SecretRef names the Secret with the credentials of the repository, in the
	// namespace that its HelmRepository is put in.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// ChartOCI names a chart in an OCI registry.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.tag) && has(self.digest))",message="oci must have a tag or a digest, not both"
type ChartOCI struct {
	// URL of the chart, without its tag.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('oci://')",message="url must begin with oci://"
	// +required
	URL string `json:"url"`
	// Tag of the chart. Defaults to the application's version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tag string `json:"tag,omitempty"`
	// Digest of the chart, as sha256:hex.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +optional
	Digest string `json:"digest,omitempty"`
	// Insecure allows a registry without TLS.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// SecretRef names the Secret with the credentials of the registry, in the
	// namespace that its OCIRepository is put in.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// ChartGit names a chart in a git repository.
//
// +kubebuilder:validation:XValidation:rule="has(self.tag) != has(self.commit)",message="git must have a tag or a commit: a branch would change what is published"
type ChartGit struct {
	// URL of the repository.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('https://') || self.startsWith('http://') || self.startsWith('ssh://')",message="url must begin with https://, http:// or ssh://"
	// +required
	URL string `json:"url"`
	// Path of the chart in the repository.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.startsWith('./') && !(self + '/').contains('/../')",message="path must begin with ./ and stay in the repository"
	// +required
	Path string `json:"path"`
	// Tag of the repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Tag string `json:"tag,omitempty"`
	// Commit of the repository.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}|[0-9a-f]{64})$`
	// +optional
	Commit string `json:"commit,omitempty"`
	// SecretRef names the Secret with the credentials of the repository, in the
	// namespace that its GitRepository is put in.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}
