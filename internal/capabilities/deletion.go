// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// isPlain tells kinds that hold no data that cannot be made again.
func isPlain(known v1alpha1.Dependent) bool {
	return known.Group == "" && (known.Kind == "Secret" || known.Kind == "ConfigMap" || known.Kind == "Service" || known.Kind == "ServiceAccount")
}

// kindOf returns the kind of an object of a provider.
func kindOf(object v1alpha1.CapabilityObject) (schema.GroupKind, error) {
	template := &metav1.TypeMeta{}
	err := json.Unmarshal(object.Template.Raw, template)
	return template.GroupVersionKind().GroupKind(), err
}

// KeepsFromGoing says what keeps the objects of a claim that is being deleted; nil for
// nothing. known are its objects, and users are who reads its binding, with their kinds.
func KeepsFromGoing(
	claim *v1alpha1.CapabilityClaim,
	bound *Bound,
	known []v1alpha1.Dependent,
	live map[objects.ID]*unstructured.Unstructured,
	users []string,
) *Problem {
	if len(users) > 0 {
		slices.Sort(users)
		return &Problem{Reason: v1alpha1.ReasonInUse, Message: "is needed by " + told(users) + ", which reads its binding: it goes after that"}
	}
	if claim.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" {
		return nil
	}
	holds, holdsKind := map[string]bool{}, map[schema.GroupKind]bool{}
	for _, object := range bound.Spec.Objects {
		holds[object.ID] = object.HoldsData
		if gk, err := kindOf(object); err == nil && object.HoldsData {
			holdsKind[gk] = true
		}
	}
	var data []string
	for _, known := range known {
		id := primaries.IdentityOf(known)
		mayHold := holds[known.ID]
		if known.Of != bound.Provider || bound.Spec.Plugin != nil { // by a move, by a plug-in, or found by its label, and it is not known any more what is said of it
			mayHold = !isPlain(known) || holdsKind[id.GroupKind()]
		}
		if live[id] != nil && live[id].GetAnnotations()[v1alpha1.HoldsDataAnnotation] == "true" { // as a plug-in has said
			mayHold = true
		}
		if !mayHold || live[id] == nil || live[id].GetDeletionTimestamp() != nil {
			continue
		}
		if deletion, _ := kinds.DeletionOf(id.GroupKind(), live[id]); deletion == dependents.DeletionDelete {
			data = append(data, id.String())
		}
	}
	if len(data) == 0 {
		return nil
	}
	return &Problem{
		Reason: v1alpha1.ReasonDeletionBlocked, Stalled: true,
		Message: fmt.Sprintf("data would go with %s: confirm that with the annotation %s: \"true\", or keep it with %s: disabled on the object",
			strings.Join(data, ", "), v1alpha1.ConfirmDeletionAnnotation, v1alpha1.PruneAnnotation),
	}
}
