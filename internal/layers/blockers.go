// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// blockersPeriod is how soon a deletion is looked at again that waits for
// objects which nothing watches.
const blockersPeriod = 30 * time.Second

// maxBlockers bounds how many resources a message names.
const maxBlockers = 8

// Fate is what becomes of objects of others when a layer is deleted.
type Fate string

const (
	// FateDeleted objects are deleted with the layer.
	FateDeleted Fate = "would be deleted with it"
	// FateUnattended objects stay, without the controller that looks after
	// them, so that their finalizers may keep them for ever.
	FateUnattended Fate = "would be left without a controller"
	// FateKept objects stay.
	FateKept Fate = "would be left behind"
)

// Blocker is a resource of which there are objects that are not the layer's and
// that its deletion concerns.
type Blocker struct {
	Resource schema.GroupResource
	Fate     Fate
	// Count of the objects; 0 with Unknown.
	Count int64
	// Namespaces of the objects, sorted; empty where they live in none.
	Namespaces []string
	// MoreNamespaces is true where not all objects were looked at.
	MoreNamespaces bool
	// Unknown says why it is not known whether there are objects; empty where
	// it is.
	Unknown string
}

// AsksForBlockers tells whether Decide needs to know what stands in the way of
// the layer's deletion: from the moment at which nothing else does, until it
// has begun.
func (o Observation) AsksForBlockers() bool {
	return o.mayBegin() && o.Layer.Annotations[v1alpha1.ConfirmDeletionAnnotation] != "true"
}

// mayBegin tells whether the layer's deletion would begin now, as far as
// other layers are concerned.
func (o Observation) mayBegin() bool {
	return isDeleting(o.Layer) && !hasBegun(o.Layer) && o.KindError == nil &&
		o.Layer.Spec.OnDeletion() == v1alpha1.DeletionPolicyDelete &&
		o.blockingLayersMessage() == ""
}

// Departing returns, in order, the HelmReleases that the layer's deletion would
// have uninstalled from its cluster, and the definitions of the layer that it
// would delete.
func (o Observation) Departing() []objects.ID {
	var ids []objects.ID
	for _, entry := range o.inventory() {
		live := o.Live[entry.ID]
		if live == nil || live.GetLabels()[v1alpha1.LayerLabel] != o.Layer.Name ||
			entry.Deletion == dependents.DeletionOrphan || !live.GetDeletionTimestamp().IsZero() || o.isClaimed(entry.ID, live) {
			continue
		}
		switch entry.ID.GroupKind() {
		case kinds.HelmReleaseKind:
			if o.isUninstalled(live) {
				ids = append(ids, entry.ID)
			}
		case kinds.DefinitionKind:
			ids = append(ids, entry.ID)
		}
	}
	return objects.SortIDs(ids)
}

// isUninstalled tells whether deleting a HelmRelease uninstalls something on the
// layer's cluster.
func (o Observation) isUninstalled(live *unstructured.Unstructured) bool {
	elsewhere, _, _ := unstructured.NestedMap(live.Object, "spec", "kubeConfig")
	abandoned := o.Layer.Annotations[v1alpha1.AbandonAnnotation] == "true" && objects.IsSuspended(live) &&
		live.GetAnnotations()[v1alpha1.SuspendedByHoldAnnotation] == ""
	return (len(elsewhere) == 0 || o.Remote != nil && TargetOf(live) == o.cluster()) && !abandoned
}

// isClaimed tells whether another layer will have an object.
func (o Observation) isClaimed(id objects.ID, live *unstructured.Unstructured) bool {
	return len(o.Others.Listed[id]) > 0 ||
		id.GroupKind() == kinds.HelmReleaseKind && len(o.Others.Exclusive[kinds.HelmReleaseIdentity(live)]) > 0
}

// hasBegun tells whether the deletion of a layer's objects has begun. Nothing
// that appears later stops it half way.
func hasBegun(layer *v1alpha1.AddonsLayer) bool {
	return isDeleting(layer) && meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeletingCondition)
}

// blockersMessage says what stands in the way of a deletion; "" where nothing
// does. The order of the blockers does not matter.
func blockersMessage(blockers []Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	blockers = slices.Clone(blockers)
	slices.SortFunc(blockers, func(a, b Blocker) int {
		return cmp.Or(cmp.Compare(fateOrder(a), fateOrder(b)), strings.Compare(a.Resource.String(), b.Resource.String()))
	})
	var parts []string
	counted, unknown := false, false
	for i, blocker := range blockers {
		if i == maxBlockers {
			parts = append(parts, fmt.Sprintf("the same goes for %d more resources", len(blockers)-maxBlockers))
			break
		}
		parts = append(parts, blocker.String())
		counted = counted || blocker.Unknown == ""
		unknown = unknown || blocker.Unknown != ""
	}
	var remedies []string
	if counted {
		remedies = append(remedies, "delete them first")
	}
	if unknown {
		remedies = append(remedies, "let the controller list them")
	}
	return fmt.Sprintf("is not deleted while %s: %s, or set the annotation %s to \"true\"",
		strings.Join(parts, ", and "), strings.Join(remedies, ", "), v1alpha1.ConfirmDeletionAnnotation)
}

func fateOrder(b Blocker) int {
	order := slices.Index([]Fate{FateDeleted, FateUnattended, FateKept}, b.Fate)
	if b.Unknown != "" {
		order += 3
	}
	return order
}

// String says how many objects there are, where, and what becomes of them.
func (b Blocker) String() string {
	if b.Unknown != "" {
		return fmt.Sprintf("it is not known whether there are %s, which %s (%s)", b.Resource, b.Fate, b.Unknown)
	}
	where := ""
	switch {
	case b.MoreNamespaces && len(b.Namespaces) > 0:
		where = fmt.Sprintf(" in %d or more namespaces", len(b.Namespaces))
	case len(b.Namespaces) == 1:
		where = " in namespace " + b.Namespaces[0]
	case len(b.Namespaces) > 1:
		where = fmt.Sprintf(" in %d namespaces", len(b.Namespaces))
	}
	return fmt.Sprintf("%d %s%s %s", b.Count, b.Resource, where, b.Fate)
}
