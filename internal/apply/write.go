// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

// write brings an object about. One that is not there is created, so that of
// two who want it at the same moment only one succeeds; one that is there is
// claimed by a patch with its resourceVersion, and then applied, in the same
// way. A UID alone would not do: the API server calls an object of another UID
// invalid, as if its author had to mend it.
func (r *clusterRun) write(ctx context.Context, action dependents.Action) (*unstructured.Unstructured, error) {
	live, done, err := r.direct(ctx, action)
	if !done {
		live, err = r.writeClaimed(ctx, action)
	}
	if err != nil && action.Wanted.Recreate && action.UID != "" && isImmutable(err) {
		err = r.recreate(ctx, action, err)
	}
	switch {
	case err != nil || live == nil:
		r.Known.forget(action.ID)
	case r.strict(action.ID):
		r.Known.remember(action.ID, live, action.Wanted.Manifest())
	}
	return live, err
}

func (r *clusterRun) writeClaimed(ctx context.Context, action dependents.Action) (*unstructured.Unstructured, error) {
	wanted := action.Wanted
	if action.UID == "" {
		created := wanted.Created(r.owner, r.Keys)
		err := call(ctx, func(ctx context.Context) error {
			return r.Client.Create(ctx, created, client.FieldOwner(dependents.FieldManager))
		})
		if err == nil {
			return created, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.Manifest().GroupVersionKind())
	switch err := r.read(ctx, live, wanted.ID); {
	case apierrors.IsNotFound(err) && action.UID != "":
		action.UID = ""
		return r.writeClaimed(ctx, action)
	case apierrors.IsNotFound(err):
		return nil, nil // it was there a moment ago
	case err != nil:
		return nil, err
	}
	if live.GetDeletionTimestamp() != nil && action.UID == "" {
		return nil, errTerminating
	}
	if wanted.Shared {
		return live, nil
	}
	if r.Reserved != nil {
		if why := r.Reserved(r.owner, live); why != "" {
			return nil, &LeftAloneError{why}
		}
	}
	if live.GetDeletionTimestamp() != nil || !r.mayTake(live, action) {
		return nil, nil
	}
	live, err := r.claim(ctx, live, wanted)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil || wanted.Mode == dependents.ModeCreateOnce:
		return live, err
	}
	return r.apply(ctx, wanted.Applied(live, r.Keys), live.GetUID(), live.GetResourceVersion())
}

// isImmutable tells whether the API server may refuse an object because of a field that
// cannot be changed. It says the same of a field that is wrong.
func isImmutable(err error) bool {
	return apierrors.IsInvalid(err) || strings.Contains(err.Error(), "immutable")
}

// recreate deletes an object that cannot be changed into what is wanted, so that the next
// look creates it. It first asks whether it could be created: an object that is wrong would
// be missing otherwise. The API server looks at what an object holds before it looks
// whether there is one.
func (r *clusterRun) recreate(ctx context.Context, action dependents.Action, refused error) error {
	created := action.Wanted.Created(r.owner, r.Keys)
	err := call(ctx, func(ctx context.Context) error {
		return r.Client.Create(ctx, created, client.DryRunAll, client.FieldOwner(dependents.FieldManager))
	})
	if !apierrors.IsAlreadyExists(err) {
		return refused
	}
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(action.Wanted.Manifest().GroupVersionKind())
	stub.SetNamespace(action.ID.Namespace)
	stub.SetName(action.ID.Name)
	return call(ctx, func(ctx context.Context) error {
		return r.Client.Delete(ctx, stub, client.Preconditions{UID: &action.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
}

// apply applies an object as long as it is at a version, and returns what the
// API server has made of it.
func (r *clusterRun) apply(ctx context.Context, wanted *unstructured.Unstructured, uid types.UID, version string) (*unstructured.Unstructured, error) {
	applied := wanted.DeepCopy()
	applied.SetUID(uid)
	applied.SetResourceVersion(version)
	err := call(ctx, func(ctx context.Context) error {
		return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(dependents.FieldManager), client.ForceOwnership)
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// read reads an object as it is now.
func (r *clusterRun) read(ctx context.Context, live *unstructured.Unstructured, id objects.ID) error {
	return call(ctx, func(ctx context.Context) error { return r.Reader.Get(ctx, id.Key(), live) })
}

// errTerminating says that an object that no cache shows is on its way out, for
// as long as that takes.
var errTerminating = errors.New("it is being deleted by somebody else, and can be created when it has gone")

// LeftAloneError says that there is something in the place of a wanted object that others keep
// for themselves. No cache has shown it.
type LeftAloneError struct {
	// Why says what it is.
	Why string
}

// Error says what is there.
func (e *LeftAloneError) Error() string { return "is " + e.Why + ", and is left alone" }

// mayTake tells whether an object is nobody's, the primary's own, or of an
// owner that the plan takes it from.
func (r *clusterRun) mayTake(live *unstructured.Unstructured, action dependents.Action) bool {
	owner := live.GetLabels()[r.Keys.Owner]
	return owner == "" || owner == r.owner || slices.Contains(action.From, owner)
}

// claim makes an object the primary's, and its fields the applier's: the label
// of ownership, no orphaned label, no reference to a former owner, no word of its
// origin where nobody has owned it, and what others wrote into the spec of a strict
// kind, so that applying takes it back.
// It writes only where something is to change.
func (r *clusterRun) claim(ctx context.Context, live *unstructured.Unstructured, wanted *dependents.Dependent) (*unstructured.Unstructured, error) {
	meta := map[string]any{}
	labels := map[string]any{}
	if live.GetLabels()[r.Keys.Owner] != r.owner {
		labels[r.Keys.Owner] = r.owner
	}
	if _, orphaned := live.GetLabels()[r.Keys.Orphaned]; orphaned {
		labels[r.Keys.Orphaned] = nil
	}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	annotations := map[string]any{}
	if _, superseded := live.GetAnnotations()[r.Keys.SupersededBy]; superseded {
		annotations[r.Keys.SupersededBy] = nil
	}
	if r.Keys.IsForgotten(live) {
		annotations[r.Keys.CreatedFor] = nil
	}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	if dependents.HasOwner(live, r.Keys) {
		meta["ownerReferences"] = otherOwners(live, r.Keys)
	}
	if wanted.Mode != dependents.ModeCreateOnce {
		fields, changed, err := foldManagedFields(live, r.Strict != nil && r.Strict(wanted.ID.GroupKind()))
		if err != nil {
			return nil, err
		}
		if changed {
			meta["managedFields"] = fields
		}
	}
	if len(meta) == 0 {
		return live, nil
	}
	return r.patchMeta(ctx, live, meta)
}

// patchMeta patches the metadata of an object as it was read.
func (r *clusterRun) patchMeta(ctx context.Context, live *unstructured.Unstructured, meta map[string]any) (*unstructured.Unstructured, error) {
	meta["uid"], meta["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	return r.merge(ctx, live, map[string]any{"metadata": meta})
}

// disown takes the former owner's references off an object as the plan saw it,
// leaving others in place.
func (r *clusterRun) disown(ctx context.Context, action dependents.Action, version string) (*unstructured.Unstructured, error) {
	live, err := r.stub(action.ID)
	if err != nil {
		return nil, err
	}
	if err := r.read(ctx, live, action.ID); err != nil {
		return nil, err
	}
	if live.GetUID() != action.UID || live.GetResourceVersion() != version {
		return nil, nil
	}
	return r.patchMeta(ctx, live, map[string]any{"ownerReferences": otherOwners(live, r.Keys)})
}

// patch carries out a change of marks on an object as the plan saw it.
func (r *clusterRun) patch(ctx context.Context, action dependents.Action, version string, patch map[string]any) (*unstructured.Unstructured, error) {
	stub, err := r.stub(action.ID)
	if err != nil {
		return nil, err
	}
	meta, _ := patch["metadata"].(map[string]any)
	meta["uid"], meta["resourceVersion"] = string(action.UID), version
	return r.merge(ctx, stub, patch)
}

func (r *clusterRun) merge(ctx context.Context, obj *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("cannot write the patch: %w", err)
	}
	patched := obj.DeepCopy()
	err = call(ctx, func(ctx context.Context) error {
		return r.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data), client.FieldOwner(dependents.MarksManager))
	})
	if err != nil {
		return nil, err
	}
	return patched, nil
}

// delete deletes the very object that the plan saw.
func (r *clusterRun) delete(ctx context.Context, action dependents.Action, version string) (*unstructured.Unstructured, error) {
	stub, err := r.stub(action.ID)
	if err != nil {
		return nil, err
	}
	uid := action.UID
	err = call(ctx, func(ctx context.Context) error {
		return r.Client.Delete(ctx, stub, client.Preconditions{UID: &uid, ResourceVersion: &version},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	if err != nil {
		return nil, err
	}
	return stub, nil
}

// stub returns an object with nothing but its identity, in the version that is
// known to be served, or that the cluster prefers.
func (r *clusterRun) stub(id objects.ID) (*unstructured.Unstructured, error) {
	gvk, err := r.kindVersion(id.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("cannot find kind %s: %w", id.GroupKind(), err)
	}
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(gvk)
	stub.SetNamespace(id.Namespace)
	stub.SetName(id.Name)
	return stub, nil
}

func (r *clusterRun) kindVersion(gk schema.GroupKind) (schema.GroupVersionKind, error) {
	if r.Version != nil {
		if gvk, known := r.Version(gk); known {
			return gvk, nil
		}
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(gk)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return mapping.GroupVersionKind, nil
}

// otherOwners returns the ownerReferences that stay, as a patch wants them.
func otherOwners(live *unstructured.Unstructured, keys dependents.Keys) any {
	kept := []metav1.OwnerReference{}
	for _, ref := range live.GetOwnerReferences() {
		single := &unstructured.Unstructured{Object: map[string]any{}}
		single.SetOwnerReferences([]metav1.OwnerReference{ref})
		if !dependents.HasOwner(single, keys) {
			kept = append(kept, ref)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}
