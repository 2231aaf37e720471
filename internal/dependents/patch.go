// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import "time"

// Patch returns the merge patch of an action that changes marks, for the primary named
// owner: nil for a verb that does something else, and without any change for
// VerbDisown, which takes off references.
func (a Action) Patch(owner string, keys Keys) map[string]any {
	labels := map[string]any{}
	annotations := map[string]any{}
	var spec map[string]any
	switch a.Verb {
	case VerbDisown:
	case VerbSuspend:
		annotations[a.Mark] = "true"
		spec = map[string]any{"suspend": true}
	case VerbResume:
		annotations[keys.SuspendedByHold] = nil
		if keys.SuspendedByLoss != "" {
			annotations[keys.SuspendedByLoss] = nil
		}
		annotations[keys.SupersededBy] = nil
		spec = map[string]any{"suspend": nil}
	case VerbUnmark:
		labels[keys.Orphaned] = nil
	case VerbAdopt:
		labels[keys.Owner], labels[keys.Orphaned] = owner, nil
	case VerbSupersede:
		labels[keys.Owner], labels[keys.Orphaned] = owner, nil
		annotations[keys.SupersededBy] = a.Successor.Key().String()
		spec = map[string]any{"suspend": true}
	case VerbMark:
		labels[keys.Orphaned] = a.OrphanedValue()
	case VerbRelease:
		labels[keys.Owner], labels[keys.Orphaned] = nil, nil
		if keys.CreatedFor != "" {
			annotations[keys.CreatedFor] = nil
		}
	case VerbRequest:
		annotations[keys.Requested] = a.Moment.UTC().Format(time.RFC3339Nano)
	default:
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}}
	if spec != nil {
		patch["spec"] = spec
	}
	return patch
}
