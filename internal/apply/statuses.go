// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/printable"
)

// MaxShortened bounds each text of a status that was refused, in bytes. All names
// that a status holds are shorter.
const MaxShortened = 512

// PatchLocked writes what differs of an object from what was read, unless somebody
// else has written it since. The status is not part of it.
func PatchLocked(ctx context.Context, c client.Client, patched, before client.Object) error {
	return c.Patch(ctx, patched, LockedPatch(before), client.FieldOwner(dependents.FieldManager))
}

// LockedPatch is what differs from what was read, for the version that was read.
func LockedPatch(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// PatchStatus writes the status of an object that differs in nothing else from what
// was read. One that the API server refuses as invalid is written with its texts
// shortened; where that is refused, too, its conditions are, so that they never go on
// to say what has long changed, and the error is returned all the same.
func PatchStatus(ctx context.Context, c client.Client, patched, before client.Object) error {
	write := func(obj client.Object) error {
		return c.Status().Patch(ctx, obj, LockedPatch(before), client.FieldOwner(dependents.FieldManager))
	}
	refused := write(patched)
	if !apierrors.IsInvalid(refused) {
		return refused
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if err != nil {
		return fmt.Errorf("cannot shorten the status: %w", err)
	}
	shortened := printable.Texts(content["status"], MaxShortened)
	if err := setStatus(patched, content, shortened); err != nil {
		return err
	}
	if err := write(patched); !apierrors.IsInvalid(err) {
		return err
	}
	last, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return fmt.Errorf("cannot shorten the status: %w", err)
	}
	status, _ := last["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	status["conditions"] = shortened.(map[string]any)["conditions"]
	only := before.DeepCopyObject().(client.Object)
	if err := setStatus(only, last, status); err != nil {
		return err
	}
	if err := write(only); err != nil {
		return err
	}
	return refused
}

// setStatus gives an object, whose content is known, a status.
func setStatus(obj client.Object, content map[string]any, status any) error {
	content["status"] = status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj); err != nil {
		return fmt.Errorf("cannot shorten the status: %w", err)
	}
	return nil
}
