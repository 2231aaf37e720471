// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// RevisionPrefix begins the names of Secrets that keep what layers have
	// deployed.
	RevisionPrefix = "strata-revision."
	// CopyPrefix begins the names of copies beside a RemoteCluster.
	CopyPrefix = "strata-copy-"
	// LeaseName ends the names of the controller's Leases.
	LeaseName = "strata.kraan.io"
	// helmPrefix begins the names of Helm's records.
	helmPrefix = "sh.helm.release.v1."
	// bootstrapPrefix begins the names of the tokens by which nodes join.
	bootstrapPrefix = "bootstrap-token-"
	// FluxLease ends the names of the Leases of Flux's controllers.
	FluxLease = "-controller-leader-election"
)

// What keeps something for itself, as messages say it.
const (
	KeptKubeConfig = "Strata's own copy of a kubeconfig"
	KeptCredential = "the kubeconfig with which somebody joined a RemoteCluster" //nolint:gosec // words
	KeptSource     = "what a RemoteCluster has its kubeconfig from"
	KeptForCluster = "what Strata has made for a RemoteCluster"
	KeptCopy       = "a copy that Strata makes for releases of another cluster"
	KeptRevision   = "what Strata keeps of a deployment"
	KeptDigestKey  = "the key by which Strata knows Secrets again"
	KeptSigned     = "Strata's note that all decisions are signed"
	KeptHelm       = "what Helm keeps of a release"
	KeptToken      = "a token of a ServiceAccount, which the cluster itself makes" //nolint:gosec // words
	KeptBootstrap  = "a token by which nodes join the cluster"
	KeptLease      = "the Lease of a controller"
	KeptOwn        = "the controller's own, made by its chart"
)

// ReservedSecret says what a Secret or a ConfigMap of a name is kept for.
func ReservedSecret(id objects.ID) string {
	isSecret := id.Kind == "Secret"
	switch {
	case !isSecret && id.Kind != "ConfigMap":
	case strings.HasPrefix(id.Name, CopyPrefix):
		return KeptCopy
	case strings.HasPrefix(id.Name, helmPrefix):
		return KeptHelm
	case !isSecret:
	case strings.HasPrefix(id.Name, KubeConfigName("")):
		return KeptKubeConfig
	case strings.HasPrefix(id.Name, RevisionPrefix):
		return KeptRevision
	case id.Name == v1alpha1.DigestKeyName:
		return KeptDigestKey
	case id.Name == v1alpha1.DecisionsSignedName:
		return KeptSigned
	case id.Namespace == "kube-system" && strings.HasPrefix(id.Name, bootstrapPrefix):
		return KeptBootstrap
	}
	return ""
}

// ReservedObject says what an object is kept for by its labels, annotations,
// finalizers and type, as far as they are known.
func ReservedObject(gk schema.GroupKind, obj *unstructured.Unstructured) string {
	isSecret := gk == schema.GroupKind{Kind: "Secret"}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	finalizers, _ := metadata["finalizers"].([]any)
	has := func(texts map[string]any, key string) bool { _, found := texts[key]; return found }
	switch {
	case slices.Contains(finalizers, any(v1alpha1.KubeConfigFinalizer)):
		return KeptKubeConfig
	case has(labels, v1alpha1.ClusterLabel):
		return KeptForCluster
	case has(labels, v1alpha1.RevisionOfLabel):
		return KeptRevision
	case has(annotations, v1alpha1.CopyOfAnnotation):
		return KeptCopy
	case isSecret && has(labels, v1alpha1.JoinedLabel):
		return KeptCredential
	case (isSecret || gk == schema.GroupKind{Kind: "ConfigMap"}) && labels["owner"] == "helm" && has(labels, "name") && has(labels, "version"):
		return KeptHelm
	case isSecret && has(annotations, "kubernetes.io/service-account.name"):
		return KeptToken
	case !isSecret:
		return ""
	}
	switch kind, _ := obj.Object["type"].(string); kind {
	case "kubernetes.io/service-account-token":
		return KeptToken
	case "bootstrap.kubernetes.io/token":
		return KeptBootstrap
	case "helm.sh/release.v1":
		return KeptHelm
	case v1alpha1.RevisionType:
		return KeptRevision
	case v1alpha1.DigestKeyType:
		return KeptDigestKey
	case v1alpha1.DecisionsSignedType:
		return KeptSigned
	}
	return ""
}

// KubeConfigName returns the name of Strata's own copy of a RemoteCluster's
// kubeconfig, in the namespace of the RemoteCluster.
func KubeConfigName(cluster string) string { return "strata-kubeconfig-" + cluster }
