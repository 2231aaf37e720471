// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds holds what Strata knows of kinds: when their objects are written and
// removed, how these are assessed, and what their deletion takes along.
package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// HelmReleaseKind is the kind that layers are made of.
var HelmReleaseKind = schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"}

// HelmRepositoryKind is the other kind that Kraan's layers own.
var HelmRepositoryKind = schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "HelmRepository"}

// DefinitionKind is the kind that defines others.
var DefinitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// ClaimKind is the kind of what releases wait for, and that goes after them.
var ClaimKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.CapabilityClaimKind}

// ProviderKind is the kind of what claims are served by.
var ProviderKind = schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.CapabilityProviderKind}

// kraanHelmRelease is how Kraan writes the kind of a release in a status.
const kraanHelmRelease = "helmreleases.helm.toolkit.fluxcd.io"

// The stages in which objects are applied. Each is written when the one before
// it has been written; custom kinds do not hold up the releases behind them, because
// what serves them may be one of those.
const (
	StageFoundation = iota // Namespaces and CustomResourceDefinitions
	StageClasses
	StageIdentity
	StageConfig
	StageOther
	StageCustom
	StageRelease
	StageWebhook
)

var stages = map[schema.GroupKind]int{
	{Kind: "Namespace"}: StageFoundation,
	DefinitionKind:      StageFoundation,

	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: StageClasses,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:       StageClasses,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:           StageClasses,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:        StageClasses,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:              StageClasses,

	{Kind: "ServiceAccount"}: StageIdentity,
	{Kind: "ResourceQuota"}:  StageIdentity,
	{Kind: "LimitRange"}:     StageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: StageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               StageIdentity,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        StageIdentity,

	{Kind: "Secret"}:                StageConfig,
	{Kind: "ConfigMap"}:             StageConfig,
	{Kind: "PersistentVolume"}:      StageConfig,
	{Kind: "PersistentVolumeClaim"}: StageConfig,

	ClaimKind: StageOther,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   StageWebhook,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: StageWebhook,
}

// StageOf returns the stage in which objects of a kind are applied.
func StageOf(gk schema.GroupKind) int {
	if stage, known := stages[gk]; known {
		return stage
	}
	switch {
	case objects.IsReleaseKind(gk):
		return StageRelease
	case isFlux(gk), isBuiltIn(gk):
		return StageOther
	default:
		return StageCustom
	}
}

// RankOf orders removals: webhooks and custom objects go while what serves
// them still runs, then the releases, then what those used.
func RankOf(gk schema.GroupKind) int {
	stage := StageOf(gk)
	if stage == StageCustom {
		return StageWebhook
	}
	return stage
}

// AssessOf says how objects are assessed. Kinds of Flux report a Ready
// condition, but for those that no controller reconciles.
func AssessOf(obj *unstructured.Unstructured) objects.Assess {
	gk := obj.GroupVersionKind().GroupKind()
	switch {
	case gk == HelmRepositoryKind:
		if kind, _, _ := unstructured.NestedString(obj.Object, "spec", "type"); kind == "oci" {
			return objects.AssessExistence
		}
		return objects.AssessCondition
	case gk.Group == "notification.toolkit.fluxcd.io" && gk.Kind != "Receiver":
		return objects.AssessExistence
	case isFlux(gk), gk == ClaimKind, gk == ProviderKind:
		return objects.AssessCondition
	case gk.Group == "" && (gk.Kind == "Secret" || gk.Kind == "ConfigMap"):
		return objects.AssessExistence
	default:
		return objects.AssessStatus
	}
}

// SparedForeign says why an object stays that was there before its layer, and what
// whoever wants it gone can do.
const SparedForeign = "Strata has not created it, or does not know that any more, so that " + v1alpha1.PruneAnnotation +
	" does not count: delete it by hand if nobody needs it"

// TakesAlong tells kinds whose deletion takes along what others have put there: the
// objects of a Namespace or of a kind, or the data of a volume.
func TakesAlong(gk schema.GroupKind) bool {
	return HoldsOthers(gk) || gk == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}

// DeletionOf says what becomes of a live object when its layer no longer wants it,
// and why where that is not what the object says itself. What takes others along is
// left alone, unless Strata has created it and it says that it may go: an author who
// lists it to adopt it does not know what lies in it.
func DeletionOf(gk schema.GroupKind, live *unstructured.Unstructured) (dependents.Deletion, string) {
	annotations := live.GetAnnotations()
	enabled := annotations[v1alpha1.PruneAnnotation] == "enabled"
	disabled := annotations[v1alpha1.PruneAnnotation] == "disabled" ||
		isDisabled(annotations[v1alpha1.FluxPruneAnnotation]) || isDisabled(annotations[v1alpha1.FluxReconcileAnnotation])
	switch {
	case disabled, !enabled && TakesAlong(gk):
		return dependents.DeletionOrphan, ""
	case TakesAlong(gk) && annotations[v1alpha1.CreatedForAnnotation] == "":
		return dependents.DeletionOrphan, SparedForeign
	}
	return dependents.DeletionDelete, ""
}

// isDisabled tells whether an annotation of Flux says so.
func isDisabled(value string) bool { return strings.EqualFold(value, "disabled") }

// LeftAlone names the annotation of Flux by which somebody has an object left as it is;
// empty where there is none.
func LeftAlone(obj *unstructured.Unstructured) string {
	annotations := obj.GetAnnotations()
	switch {
	case isDisabled(annotations[v1alpha1.FluxReconcileAnnotation]):
		return v1alpha1.FluxReconcileAnnotation + ": disabled"
	case strings.EqualFold(annotations[v1alpha1.FluxSSAAnnotation], "Ignore"):
		return v1alpha1.FluxSSAAnnotation + ": Ignore"
	default:
		return ""
	}
}

// MayRecreate tells whether an object may be deleted and created again to change what
// cannot be changed: not where that takes others along, or uninstalls what runs.
func MayRecreate(gk schema.GroupKind) bool { return !TakesAlong(gk) && !objects.IsReleaseKind(gk) }

func isFlux(gk schema.GroupKind) bool { return objects.IsStrict(gk) }

func isBuiltIn(gk schema.GroupKind) bool {
	return !strings.Contains(gk.Group, ".") || strings.HasSuffix(gk.Group, ".k8s.io")
}

// ResourceKind returns a kind as status.resources shows it, in a form that
// kubectl understands: Kraan's word for a HelmRelease, Kind.group otherwise.
func ResourceKind(gk schema.GroupKind) string {
	if gk == HelmReleaseKind {
		return kraanHelmRelease
	}
	return gk.String()
}

// ParseResourceKind reverses ResourceKind.
func ParseResourceKind(kind string) schema.GroupKind {
	if kind == kraanHelmRelease {
		return HelmReleaseKind
	}
	return schema.ParseGroupKind(kind)
}

// HoldsOthers tells kinds that are never taken back by deletion: things of
// others live in them.
func HoldsOthers(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Kind: "Namespace"} ||
		gk == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}
