// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// KeepsFromGoing says what keeps the objects of a claim that is being deleted; nil for
// nothing. users are who reads its binding, with their kinds.
func KeepsFromGoing(claim *v1alpha1.CapabilityClaim, bound *Bound, live map[objects.ID]*unstructured.Unstructured, users []string) *Problem {
	if len(users) > 0 {
		slices.Sort(users)
		return &Problem{Reason: v1alpha1.ReasonInUse, Message: "is needed by " + told(users) + ", which reads its binding: it goes after that"}
	}
	if claim.Annotations[v1alpha1.ConfirmDeletionAnnotation] == "true" {
		return nil
	}
	holds := map[string]bool{}
	for _, object := range bound.Spec.Objects {
		holds[object.ID] = object.HoldsData
	}
	var data []string
	for _, known := range claim.Status.Objects {
		id := primaries.IdentityOf(known)
		mayHold := holds[known.ID]
		if known.Of != bound.Provider || bound.Spec.Plugin != nil { // by a move, or by a plug-in, and it is not known any more what is said of it
			mayHold = !isPlain(known)
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
