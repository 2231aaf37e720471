// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

const (
	// helmPrefix begins the names of Helm's records.
	helmPrefix = "sh.helm.release.v1."
	// bootstrapPrefix begins the names of the tokens by which nodes join.
	bootstrapPrefix = "bootstrap-token-"
)

// What keeps something for itself, as messages say it.
const (
	keptKubeConfig = "Strata's own copy of a kubeconfig"
	keptForCluster = "what Strata has made for a RemoteCluster"
	keptCopy       = "a copy that Strata makes for releases of another cluster"
	keptRevision   = "what Strata keeps of a deployment"
	keptHelm       = "what Helm keeps of a release"
	keptToken      = "a token of a ServiceAccount, which the cluster itself makes" //nolint:gosec // words
	keptBootstrap  = "a token by which nodes join the cluster"
)

// reservedSecret says what a Secret or a ConfigMap of a name is kept for.
func reservedSecret(id dependents.ID) string {
	isSecret := id.Kind == "Secret"
	switch {
	case !isSecret && id.Kind != "ConfigMap":
	case strings.HasPrefix(id.Name, helmPrefix):
		return keptHelm
	case !isSecret:
	case strings.HasPrefix(id.Name, KubeConfigName("")):
		return keptKubeConfig
	case id.Namespace == "kube-system" && strings.HasPrefix(id.Name, bootstrapPrefix):
		return keptBootstrap
	}
	return ""
}

// reservedObject says what an object is kept for by its labels, annotations,
// finalizers and type, as far as they are known.
func reservedObject(gk schema.GroupKind, obj *unstructured.Unstructured) string {
	isSecret := gk == schema.GroupKind{Kind: "Secret"}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	finalizers, _ := metadata["finalizers"].([]any)
	has := func(texts map[string]any, key string) bool { _, found := texts[key]; return found }
	switch {
	case slices.Contains(finalizers, any(v1alpha1.KubeConfigFinalizer)):
		return keptKubeConfig
	case has(labels, v1alpha1.ClusterLabel):
		return keptForCluster
	case has(labels, v1alpha1.RevisionOfLabel):
		return keptRevision
	case has(annotations, v1alpha1.CopyOfAnnotation):
		return keptCopy
	case (isSecret || gk == schema.GroupKind{Kind: "ConfigMap"}) && labels["owner"] == "helm" && has(labels, "name") && has(labels, "version"):
		return keptHelm
	case isSecret && has(annotations, "kubernetes.io/service-account.name"):
		return keptToken
	case !isSecret:
		return ""
	}
	switch kind, _ := obj.Object["type"].(string); kind {
	case "kubernetes.io/service-account-token":
		return keptToken
	case "bootstrap.kubernetes.io/token":
		return keptBootstrap
	case "helm.sh/release.v1":
		return keptHelm
	case v1alpha1.RevisionType:
		return keptRevision
	}
	return ""
}
