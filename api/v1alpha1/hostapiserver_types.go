// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// HostAPIServer has settings of the API servers of a cluster of hosts.
type HostAPIServer struct {
	// Audit has requests written down on each host of the control plane.
	// +optional
	Audit *HostAudit `json:"audit,omitempty"`
	// OIDC lets people in who have a token of an issuer of OpenID Connect.
	// +optional
	OIDC *HostOIDC `json:"oidc,omitempty"`
	// Encryption has Secrets encrypted in etcd. They are in clear there where it is not
	// given.
	// +optional
	Encryption *HostEncryption `json:"encryption,omitempty"`
}

// HostEncryption says how Secrets are encrypted in etcd: with secretbox (XSalsa20 and
// Poly1305), and a key that Strata makes and that hosts of the control plane alone have.
type HostEncryption struct {
	// KeyGeneration is the number of the key; 1 where it is not given. Another number has
	// another key be made, and all Secrets be written with it.
	// +kubebuilder:validation:Minimum=1
	// +optional
	KeyGeneration int32 `json:"keyGeneration,omitempty"`
}

// HostAudit says which requests an API server writes down, and where.
type HostAudit struct {
	// Policy is a Policy of audit.k8s.io/v1.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Policy string `json:"policy"`
	// Directory of the host for the log, audit.log; /var/log/kubernetes/audit where it is
	// not given.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[0-9A-Za-z._-]+)+$`
	// +optional
	Directory string `json:"directory,omitempty"`
	// MaxAge is for how many days a log is kept; 30 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	// +optional
	MaxAge int32 `json:"maxAge,omitempty"`
	// MaxBackups is how many old logs are kept; 10 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxBackups int32 `json:"maxBackups,omitempty"`
	// MaxSize is how long a log becomes, in megabytes; 100 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxSize int32 `json:"maxSize,omitempty"`
}

// HostOIDC says whose tokens an API server takes, and for whom.
type HostOIDC struct {
	// IssuerURL as it is in the tokens.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https://[0-9A-Za-z]\S*$`
	// +required
	IssuerURL string `json:"issuerURL"`
	// ClientID for which the tokens are.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +required
	ClientID string `json:"clientID"`
	// UsernameClaim has the name of who has the token; sub where it is not given.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +optional
	UsernameClaim string `json:"usernameClaim,omitempty"`
	// UsernamePrefix is put before the name, such as oidc:. Where it is not given, it is the
	// URL of the issuer, unless the claim is email; - stands for none.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +optional
	UsernamePrefix string `json:"usernamePrefix,omitempty"`
	// GroupsClaim has the groups; there are none where it is not given.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +optional
	GroupsClaim string `json:"groupsClaim,omitempty"`
	// GroupsPrefix is put before each group, so that none of them is one of Kubernetes' own.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\S+$`
	// +optional
	GroupsPrefix string `json:"groupsPrefix,omitempty"`
	// RequiredClaims must be in a token, with these values.
	// +kubebuilder:validation:MaxProperties=20
	// +optional
	RequiredClaims map[string]string `json:"requiredClaims,omitempty"`
	// CertificateAuthority of the issuer's server, as PEM; those of the host where it is not
	// given.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
}
