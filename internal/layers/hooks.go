// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/objects"
)

// hookGate wants hooks that can be understood: to find out when they are needed
// would be too late.
func hookGate(o Observation) *Blocked {
	for i, hook := range o.Layer.Spec.WaitFor {
		if err := hooks.Check(hook.APIVersion, hook.ReadyExpr); err != nil {
			return invalidHook("waitFor", i, err)
		}
	}
	for i, check := range o.Layer.Spec.HealthChecks {
		if err := hooks.Check(cmp.Or(check.APIVersion, "apps/v1"), ""); err != nil {
			return invalidHook("healthChecks", i, err)
		}
	}
	if _, err := hooks.ChecksOf(o.Layer); err != nil {
		return &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Message: err.Error()}
	}
	for i, hook := range o.Layer.Spec.DeleteBefore {
		if err := hooks.CheckDeleteBefore(hook); err != nil {
			return invalidHook("deleteBefore", i, err)
		}
	}
	return nil
}

func invalidHook(field string, i int, err error) *Blocked {
	return &Blocked{
		State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidSpec, Stalled: true, Message: fmt.Sprintf("spec.%s[%d].%v", field, i, err),
	}
}

// Awaited is an object of waitFor as it was seen.
type Awaited struct {
	ID objects.ID
	// Live is the object; nil where there is none.
	Live *unstructured.Unstructured
	// Unserved is true where the cluster does not serve its kind at that version.
	Unserved bool
	// Err says why it could not be read, which passes.
	Err error
}

// awaiting returns where the first object of waitFor stands that is not as it is to
// be; nil where all are. What could not be read is not.
func (o Observation) awaiting() *objects.Standing {
	for i, wait := range hooks.Waits(o.Layer, o.Settings.Namespace) {
		if i >= len(o.Awaited) {
			return &objects.Standing{Health: objects.Blocked, Status: objects.StatusProgress, Message: "has yet to be looked at"}
		}
		seen := o.Awaited[i]
		standing := objects.Standing{ID: seen.ID, Health: objects.Blocked, Status: objects.StatusProgress, Origin: wait.Field}
		switch {
		case seen.Unserved:
			standing.Status, standing.Reason = objects.StatusNotServed, objects.StatusNotServed
			standing.Message = fmt.Sprintf("is waited for, and the cluster does not serve %s %s", wait.APIVersion, wait.Kind)
		case seen.Err != nil:
			standing.Message = fmt.Sprintf("is waited for, and cannot be read: %v", seen.Err)
		case seen.Live == nil:
			standing.Status, standing.Message = objects.StatusMissing, "is waited for, and does not exist"
		default:
			if standing.Message = wait.Unmet(seen.Live); standing.Message == "" {
				continue
			}
		}
		return &standing
	}
	return nil
}
