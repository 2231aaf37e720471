// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/primaries"
)

// ClusterBindingID is the ID of the binding for workloads of another cluster. No provider has
// an object of that ID.
const ClusterBindingID = "cluster-binding"

// ClusterOf returns the cluster of the application that claims, as IDs have it: empty for the
// one that Strata runs in.
func ClusterOf(claim *v1alpha1.CapabilityClaim) string {
	if claim.Spec.Cluster == "" {
		return ""
	}
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Spec.Cluster}.String()
}

// namespaceThere returns the namespace of a claim on its cluster.
func namespaceThere(claim *v1alpha1.CapabilityClaim) string {
	if claim.Spec.Cluster == "" {
		return claim.Namespace
	}
	return cmp.Or(claim.Spec.ClusterNamespace, claim.Namespace)
}

// Place returns where the objects of a provider are that a claim has: the cluster, as IDs have
// it, and the namespace of those that name none. controller is the namespace of providers that
// name none.
func Place(spec v1alpha1.CapabilityProviderSpec, claim *v1alpha1.CapabilityClaim, controller string) (cluster, namespace string) {
	of := NamespaceOf(spec, controller)
	switch spec.Placement {
	case v1alpha1.PlacementHome:
		return "", of
	case v1alpha1.PlacementCluster:
		return types.NamespacedName{Namespace: of, Name: spec.Cluster}.String(), of
	default:
		return ClusterOf(claim), namespaceThere(claim)
	}
}

// ClusterBinding returns the Secret with the connection details on the cluster of a claim, as
// the claim's binding has them; false where none is wanted.
func ClusterBinding(claim *v1alpha1.CapabilityClaim, binding primaries.Object) (primaries.Object, bool) {
	if !hasClusterBinding(claim) {
		return primaries.Object{}, false
	}
	made := binding
	made.ID, made.Cluster = ClusterBindingID, ClusterOf(claim)
	if made.Waits == "" {
		made.Object = binding.Object.DeepCopy()
		made.Object.SetNamespace(namespaceThere(claim))
		made.Object.SetName(claim.Spec.ClusterBinding)
		made.Object.SetAnnotations(nil)
	}
	return made, true
}

func hasClusterBinding(claim *v1alpha1.CapabilityClaim) bool {
	return claim.Spec.Cluster != "" && claim.Spec.ClusterBinding != ""
}

// IsOn tells whether a claim is of a cluster, or has something there.
func IsOn(claim *v1alpha1.CapabilityClaim, cluster string) bool {
	return ClusterOf(claim) == cluster ||
		slices.ContainsFunc(claim.Status.Objects, func(known v1alpha1.Dependent) bool { return known.Cluster == cluster })
}

// WaitsForCluster tells whether a claim says that it waits for a cluster.
func WaitsForCluster(claim *v1alpha1.CapabilityClaim) bool {
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ReadyCondition)
	return ready != nil && slices.Contains([]string{
		v1alpha1.ReasonClusterNotFound, v1alpha1.ReasonClusterNotReady, v1alpha1.ReasonClusterUnreachable,
	}, ready.Reason)
}
