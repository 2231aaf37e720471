// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// write brings an object about. One that is not there is created, so that of
// two who want it at the same moment only one succeeds; one that is there is
// claimed by a patch with its resourceVersion, and then applied, in the same
// way. A UID alone would not do: the API server calls an object of another UID
// invalid, as if its author had to mend it.
func (r *clusterRun) write(ctx context.Context, action dependents.Action) (written, error) {
	made, done, err := r.direct(ctx, action)
	if !done {
		made, err = r.writeClaimed(ctx, action)
	}
	if err != nil && action.UID != "" && isRefused(err) {
		err = r.refused(ctx, action, made.before, err)
	}
	switch {
	case err != nil || made.live == nil:
		r.Known.forget(action.ID)
	case r.strict(action.ID):
		r.Known.remember(action.ID, made.live, action.Wanted.Manifest())
	}
	return made, err
}

// written is what a write has made of an object.
type written struct {
	// live is the object afterwards; nil where it is not as it was seen.
	live *unstructured.Unstructured
	// before is the object as it was read; nil where there was none.
	before *unstructured.Unstructured
}

func (r *clusterRun) writeClaimed(ctx context.Context, action dependents.Action) (written, error) {
	wanted := action.Wanted
	if action.UID == "" {
		created := wanted.Created(r.owner, r.Keys)
		if r.Refuses != nil {
			if err := r.Refuses(created); err != nil {
				return written{}, err
			}
		}
		err := call(ctx, func(ctx context.Context) error {
			return r.Client.Create(ctx, created, strictly, client.FieldOwner(dependents.FieldManager))
		})
		if err == nil {
			return written{live: created}, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return written{}, err
		}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.Manifest().GroupVersionKind())
	switch err := r.read(ctx, live, wanted.ID); {
	case apierrors.IsNotFound(err) && action.UID != "":
		action.UID = ""
		return r.writeClaimed(ctx, action)
	case apierrors.IsNotFound(err):
		return written{}, nil // it was there a moment ago
	case err != nil:
		return written{}, err
	}
	if live.GetDeletionTimestamp() != nil && action.UID == "" {
		return written{}, errTerminating
	}
	if wanted.Shared {
		return written{live: live, before: live}, nil
	}
	if r.Reserved != nil {
		if why := r.Reserved(r.owner, live); why != "" {
			return written{}, &LeftAloneError{why}
		}
	}
	if live.GetDeletionTimestamp() != nil || !r.mayTake(live, action) {
		return written{}, nil
	}
	claimed, err := r.claim(ctx, live, action)
	switch {
	case apierrors.IsNotFound(err):
		return written{}, nil
	case err != nil || wanted.Mode == dependents.ModeCreateOnce:
		return written{live: claimed, before: live}, err
	}
	applied, err := r.apply(ctx, wanted.Applied(claimed, r.Keys), claimed.GetUID(), claimed.GetResourceVersion())
	return written{live: applied, before: live}, err
}

// strictly has the API server refuse a new object for what it refuses in one that is
// applied: fields that its kind does not have, and fields that are there twice.
const strictly = client.FieldValidation(metav1.FieldValidationStrict)

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

// claim makes an object the primary's, and its fields the applier's, as claims says. Where its
// role grants more than who writes it has, the API server refuses whatever leaves the rules as
// they are, labels, too: then what is wanted is applied first, with its rules and its label.
func (r *clusterRun) claim(ctx context.Context, live *unstructured.Unstructured, action dependents.Action) (*unstructured.Unstructured, error) {
	meta, err := r.claims(live, live.GetManagedFields(), action)
	if err != nil || len(meta) == 0 {
		return live, err
	}
	claimed, err := r.patchMeta(ctx, live, meta)
	if !dependents.IsEscalation(err) || action.Wanted.Mode == dependents.ModeCreateOnce {
		return claimed, err
	}
	applied, err := r.apply(ctx, action.Wanted.Applied(live, r.Keys), live.GetUID(), live.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	if meta, err = r.claims(live, applied.GetManagedFields(), action); err != nil || len(meta) == 0 {
		return applied, err
	}
	return r.patchMeta(ctx, applied, meta)
}

// claims returns what claiming an object changes of its metadata: the label
// of ownership, no orphaned label, no reference to a former owner, no word of its
// origin where nobody has owned it, and among its managedFields the fields of others
// that are taken over, so that applying takes back what is not wanted.
func (r *clusterRun) claims(live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, action dependents.Action) (map[string]any, error) {
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
	if action.Wanted.Mode != dependents.ModeCreateOnce {
		folded, changed, err := r.rule(live, action).Fold(live.GetAPIVersion(), entries)
		if err != nil {
			return nil, err
		}
		if changed {
			meta["managedFields"] = folded
		}
	}
	return meta, nil
}

// rule says which fields of a live object are taken over before what is wanted is applied.
func (r *clusterRun) rule(live *unstructured.Unstructured, action dependents.Action) fields.Rule {
	rule := action.Wanted.Takes(live, r.Keys)
	rule.Strict, rule.Again = r.strict(action.ID), action.Again
	return rule
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
	if r.Removing != nil && action.ID.Cluster == "" {
		if err := call(ctx, func(ctx context.Context) error { return r.Removing(ctx, action.ID, uid) }); err != nil {
			return nil, err
		}
	}
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
