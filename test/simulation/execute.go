// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

var errUnavailable = apierrors.NewServiceUnavailable("the API server is not there")

// executor carries out plans as apply.Executor does, one action after another:
// an object that is not as the plan has seen it is left alone.
type executor struct {
	*hands
	o *layers.Observation
	// versions of what this plan has changed.
	versions map[string]string
}

// Carry carries out a plan when it has been recorded. A preparation that fails ends it, and a write that
// fails ends the writes of later stages; removals are tried all the same.
func (e *executor) Carry(ctx context.Context, owner string, plan dependents.Plan, record func(context.Context) error) ([]dependents.Result, error) {
	if err := record(ctx); err != nil {
		return nil, err
	}
	e.versions = map[string]string{}
	var results []dependents.Result
	failedStage := -1
	for _, action := range plan.Actions {
		write := action.Verb == dependents.VerbWrite
		if write && failedStage >= 0 && action.Stage != failedStage {
			continue
		}
		if e.hasFailed(results, action.ID) {
			continue
		}
		result := e.do(owner, action)
		results = append(results, result)
		if result.Err == nil && !result.Outdated {
			continue
		}
		switch {
		case write:
			failedStage = action.Stage
		case !slices.Contains([]dependents.Verb{dependents.VerbMark, dependents.VerbRelease, dependents.VerbDelete}, action.Verb):
			return results, nil
		}
	}
	return results, nil
}

// hasFailed tells whether an earlier action on an object has.
func (e *executor) hasFailed(results []dependents.Result, id objects.ID) bool {
	return slices.ContainsFunc(results, func(r dependents.Result) bool {
		return r.Action.ID == id && (r.Err != nil || r.Outdated)
	})
}

func (e *executor) do(owner string, action dependents.Action) dependents.Result {
	result := dependents.Result{Action: action}
	name := nameOf(action.ID)
	before, changed := e.versions[name]
	if !changed {
		before = action.ResourceVersion
	}
	var live *unstructured.Unstructured
	err := e.write(name, func() (err error) {
		live, err = e.dispatch(owner, action, before)
		if err == nil && live != nil {
			e.note("%s: %s %s", owner, action.Verb, name)
		}
		return err
	})
	switch {
	case err == nil && live == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err) && action.Verb != dependents.VerbWrite:
		result.Outdated = true
	case err != nil:
		result.Err = err
	default:
		result.UID, result.Generation, result.ResourceVersion = live.GetUID(), live.GetGeneration(), live.GetResourceVersion()
		result.Changed = before == "" || before != result.ResourceVersion
		e.versions[name] = result.ResourceVersion
	}
	return result
}

// dispatch returns the object afterwards; nil where it is not as it was seen.
func (e *executor) dispatch(owner string, action dependents.Action, version string) (*unstructured.Unstructured, error) {
	store, err := e.writesTo(action.ID.Cluster)
	if err != nil {
		return nil, err
	}
	e.judgeIdentity(action.ID.Cluster, store)
	name := keyOf(action.ID)
	live := store.release(name)
	switch {
	case action.Verb == dependents.VerbWrite:
		return e.apply(store, owner, action)
	case action.UID == "":
		return nil, nil
	case live == nil:
		return nil, notFound(releaseResource, name)
	case live.GetUID() != action.UID || live.GetResourceVersion() != version:
		return nil, conflict(releaseResource, name)
	}
	e.judge(e.o, action)
	e.count(live, action)
	if action.Verb == dependents.VerbDelete {
		e.deletedBy[live.GetUID()] = owner
		store.deleteRelease(name, metav1.NewTime(e.Now()))
		return live, nil
	}
	return store.changeRelease(name, func(r *unstructured.Unstructured) { mark(r, owner, action) }), nil
}

// mark changes what says where an object stands.
func mark(r *unstructured.Unstructured, owner string, action dependents.Action) {
	switch action.Verb {
	case dependents.VerbSuspend:
		annotate(r, action.Mark, "true")
		suspend(r, true)
	case dependents.VerbResume:
		annotate(r, v1alpha1.SuspendedByHoldAnnotation, "")
		annotate(r, v1alpha1.SuspendedByLossAnnotation, "")
		annotate(r, v1alpha1.SupersededByAnnotation, "")
		suspend(r, false)
	case dependents.VerbUnmark:
		label(r, v1alpha1.OrphanedLabel, "")
	case dependents.VerbAdopt:
		label(r, v1alpha1.LayerLabel, owner)
		label(r, v1alpha1.OrphanedLabel, "")
	case dependents.VerbSupersede:
		label(r, v1alpha1.LayerLabel, owner)
		label(r, v1alpha1.OrphanedLabel, "")
		annotate(r, v1alpha1.SupersededByAnnotation, action.Successor.Key().String())
		suspend(r, true)
	case dependents.VerbMark:
		label(r, v1alpha1.OrphanedLabel, action.OrphanedValue())
	case dependents.VerbRequest:
		annotate(r, v1alpha1.ReconcileRequestAnnotation, action.Moment.UTC().Format(time.RFC3339Nano))
	case dependents.VerbRelease:
		label(r, v1alpha1.LayerLabel, "")
		label(r, v1alpha1.OrphanedLabel, "")
		annotate(r, v1alpha1.CreatedForAnnotation, "")
	default:
		panic("unknown verb " + action.Verb)
	}
}

func label(r *unstructured.Unstructured, key, value string) {
	labels := r.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	if value == "" {
		delete(labels, key)
	}
	r.SetLabels(labels)
}

func annotate(r *unstructured.Unstructured, key, value string) {
	annotations := r.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	r.SetAnnotations(annotations)
}

func suspend(r *unstructured.Unstructured, yes bool) {
	if !yes {
		unstructured.RemoveNestedField(r.Object, "spec", "suspend")
		return
	}
	_ = unstructured.SetNestedField(r.Object, true, "spec", "suspend")
}

// apply creates an object, or claims it and applies it: two writes, between
// which anything may happen.
func (e *executor) apply(store *cluster, owner string, action dependents.Action) (*unstructured.Unstructured, error) {
	name, wanted := keyOf(action.ID), action.Wanted.Manifest()
	live := store.release(name)
	defer func() { e.applied(action, store.release(name)) }()
	if action.Wanted.Shared {
		if live == nil {
			live = store.createRelease(wanted.DeepCopy())
		}
		return live, nil
	}
	if live == nil {
		if valueOf(wanted, "quality") == int64(refused) {
			return nil, invalid(name)
		}
		e.judge(e.o, action)
		live = store.createRelease(action.Wanted.Created(owner, layers.Keys))
		e.evidence.created[live.GetUID()] = true
		return live, nil
	}
	has := live.GetLabels()[v1alpha1.LayerLabel]
	switch mine := has == "" || has == owner || slices.Contains(action.From, has); {
	case live.GetDeletionTimestamp() != nil && action.UID == "":
		return nil, errors.New("it is being deleted by somebody else")
	case live.GetDeletionTimestamp() != nil, !mine:
		return nil, nil
	}
	if forgotten := layers.Keys.IsForgotten(
		live,
	); forgotten || has != owner || live.GetLabels()[v1alpha1.OrphanedLabel] != "" ||
		live.GetAnnotations()[v1alpha1.SupersededByAnnotation] != "" {
		e.judge(e.o, action)
		live = store.changeRelease(name, func(r *unstructured.Unstructured) {
			label(r, v1alpha1.LayerLabel, owner)
			label(r, v1alpha1.OrphanedLabel, "")
			annotate(r, v1alpha1.SupersededByAnnotation, "")
			if forgotten {
				annotate(r, v1alpha1.CreatedForAnnotation, "")
			}
		})
		e.note("%s: claims %s", owner, name)
		e.pause()
		if stored := store.release(name); stored == nil {
			return nil, notFound(releaseResource, name)
		} else if stored.GetResourceVersion() != live.GetResourceVersion() {
			return nil, conflict(releaseResource, name)
		}
	}
	if valueOf(wanted, "quality") == int64(refused) {
		return nil, invalid(name)
	}
	e.judge(e.o, action)
	applied := live.DeepCopy()
	applyTo(applied, wanted)
	if sameValue(applied.Object, live.Object) {
		return live, nil
	}
	return store.changeRelease(name, func(r *unstructured.Unstructured) { r.Object = applied.Object }), nil
}

// applied remembers which value an object has had that is ready by being there.
func (e *executor) applied(action dependents.Action, live *unstructured.Unstructured) {
	value := valueOf(action.Wanted.Manifest(), "value")
	if action.ID.GroupKind() == kinds.HelmReleaseKind || live == nil || valueOf(live, "value") != value {
		return
	}
	if e.wasReady[live.GetUID()] == nil {
		e.wasReady[live.GetUID()] = map[int64]bool{}
	}
	e.wasReady[live.GetUID()][value] = true
}

// applyTo makes the specification, or the data, what is wanted, but for a suspension that
// somebody else has set.
func applyTo(live, wanted *unstructured.Unstructured) {
	suspended := isSuspended(live)
	for _, field := range []string{"spec", "data"} {
		if value, found := wanted.DeepCopy().Object[field]; found {
			live.Object[field] = value
		}
	}
	if suspended {
		suspend(live, true)
	}
	for key, value := range wanted.GetLabels() {
		label(live, key, value)
	}
	for key, value := range wanted.GetAnnotations() {
		annotate(live, key, value)
	}
}

func invalid(name string) error {
	return apierrors.NewInvalid(kinds.HelmReleaseKind, name, nil)
}
