// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// store holds objects as the API servers would.
type store struct {
	objects map[objects.ID]*unstructured.Unstructured
	// identities of the HelmReleases, and formerly what refers to layers of Kraan.
	identities map[objects.ID]string
	byIdentity map[string][]objects.ID
	formerly   map[string][]objects.ID
	scopes     map[objects.ServedKind]objects.Scope
	unserved   map[objects.ServedVersion]bool
	// dirty holds what Flux, or another controller, has yet to look at.
	dirty    map[objects.ID]bool
	complete func(*unstructured.Unstructured)
	refuses  func(*unstructured.Unstructured) error
	version  int
}

func newStore(w World) *store {
	s := &store{
		objects: make(map[objects.ID]*unstructured.Unstructured, len(w.Objects)), identities: map[objects.ID]string{}, byIdentity: map[string][]objects.ID{},
		formerly: map[string][]objects.ID{}, scopes: maps.Clone(w.Scopes), unserved: maps.Clone(w.Unserved), dirty: map[objects.ID]bool{},
	}
	if s.complete = w.Complete; s.complete == nil {
		s.complete = func(*unstructured.Unstructured) {}
	}
	if s.refuses = w.Refuses; s.refuses == nil {
		s.refuses = func(*unstructured.Unstructured) error { return nil }
	}
	if s.scopes == nil {
		s.scopes = map[objects.ServedKind]objects.Scope{}
	}
	for id, obj := range w.Objects {
		s.set(id, obj)
		if owner := nameOfFormerOwner(obj); owner != "" && (id.GroupKind() == kinds.HelmReleaseKind || id.GroupKind() == kinds.HelmRepositoryKind) {
			s.formerly[owner] = append(s.formerly[owner], id)
		}
	}
	for _, ids := range s.formerly {
		objects.SortIDs(ids)
	}
	return s
}

// set puts an object in the place of what is there; nil removes it.
func (s *store) set(id objects.ID, obj *unstructured.Unstructured) {
	if identity := s.identities[id]; identity != "" {
		s.byIdentity[identity] = slices.DeleteFunc(s.byIdentity[identity], func(other objects.ID) bool { return other == id })
		delete(s.identities, id)
	}
	if obj == nil {
		delete(s.objects, id)
		return
	}
	s.objects[id] = obj
	if id.GroupKind() == kinds.HelmReleaseKind && id.Cluster == "" {
		identity := kinds.HelmReleaseIdentity(obj)
		s.identities[id] = identity
		s.byIdentity[identity] = append(s.byIdentity[identity], id)
	}
}

// standingFor returns the releases that stand for a Helm release, sorted.
func (s *store) standingFor(identity string) []objects.ID {
	return objects.SortIDs(slices.Clone(s.byIdentity[identity]))
}

// do carries out one action.
func (s *store) do(owner string, action dependents.Action) dependents.Result {
	result := dependents.Result{Action: action}
	live := s.objects[action.ID]
	var done *unstructured.Unstructured
	switch {
	case action.Verb == dependents.VerbWrite:
		if result.Err = s.refused(action); result.Err != nil {
			return result
		}
		done = s.write(owner, action, live)
	case live == nil:
		result.Outdated = true
		return result
	case action.Verb == dependents.VerbDelete:
		s.set(action.ID, nil)
		result.UID, result.Changed = live.GetUID(), true
		return result
	default:
		done = live.DeepCopy()
		mark(done, owner, action)
	}
	if done == nil {
		result.Outdated = true
		return result
	}
	if live == nil || !equality.Semantic.DeepEqual(live.Object, done.Object) {
		s.version++
		done.SetResourceVersion("forecast-" + strconv.Itoa(s.version))
		// The controller of an object looks again when the content has changed.
		s.dirty[action.ID] = s.dirty[action.ID] || live == nil || !sameContent(live, done)
		if live != nil && done.GetGeneration() != 0 && !sameContent(live, done) {
			done.SetGeneration(live.GetGeneration() + 1)
		}
		s.set(action.ID, done)
		result.Changed = true
	}
	result.UID, result.Generation, result.ResourceVersion = done.GetUID(), done.GetGeneration(), done.GetResourceVersion()
	return result
}

// refused says why the API server would take no such object.
func (s *store) refused(action dependents.Action) error {
	wanted, written := action.Wanted.Object.Get()
	if !written || action.Wanted.Shared {
		return nil
	}
	err := s.refuses(wanted)
	if err == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Message: err.Error()}}
}

// write returns the object after it was applied; nil where somebody else has it.
func (s *store) write(owner string, action dependents.Action, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		created := action.Wanted.Created(owner, layers.Keys)
		s.complete(created)
		s.version++
		created.SetUID(types.UID(fmt.Sprintf("%08x-forecast", s.version)))
		if hasGeneration(action.ID) {
			created.SetGeneration(1)
		}
		return created
	}
	if action.Wanted.Shared {
		return live
	}
	has := live.GetLabels()[v1alpha1.LayerLabel]
	if has != "" && has != owner && !slices.Contains(action.From, has) {
		return nil
	}
	claimed := live.DeepCopy()
	if layers.Keys.IsForgotten(live) {
		annotate(claimed, v1alpha1.CreatedForAnnotation, "")
	}
	label(claimed, v1alpha1.LayerLabel, owner)
	label(claimed, v1alpha1.OrphanedLabel, "")
	annotate(claimed, v1alpha1.SupersededByAnnotation, "")
	disown(claimed)
	if action.Wanted.Mode == dependents.ModeCreateOnce {
		return claimed
	}
	rule := action.Wanted.Takes(live, layers.Keys)
	rule.Again = action.Again
	applied := Applied(claimed, action.Wanted.Applied(claimed, layers.Keys), rule)
	defaultReplicas(claimed, applied)
	s.complete(applied)
	return applied
}

// mark changes what says where an object stands.
func mark(obj *unstructured.Unstructured, owner string, action dependents.Action) {
	if action.Verb == dependents.VerbDisown {
		disown(obj)
		return
	}
	merge(obj.Object, action.Patch(owner, layers.Keys))
}

// merge applies a JSON merge patch, and leaves no empty field that it made.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case !is:
			into[key] = value
		default:
			has, found := into[key].(map[string]any)
			if !found {
				has = map[string]any{}
			}
			merge(has, inner)
			if found || len(has) > 0 {
				into[key] = has
			}
		}
	}
}

func disown(obj *unstructured.Unstructured) {
	if !dependents.HasOwner(obj, layers.Keys) {
		return
	}
	obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(ref ownerReference) bool {
		single := &unstructured.Unstructured{Object: map[string]any{}}
		single.SetOwnerReferences([]ownerReference{ref})
		return dependents.HasOwner(single, layers.Keys)
	}))
}

func label(obj *unstructured.Unstructured, key, value string) {
	labels := obj.GetLabels()
	if labels[key] == value {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	if value == "" {
		delete(labels, key)
	}
	obj.SetLabels(labels)
}

func annotate(obj *unstructured.Unstructured, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations[key] == value {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
}

// hasGeneration tells kinds whose specification the API server counts.
func hasGeneration(id objects.ID) bool {
	if id.Group != "" {
		return id.Group != "rbac.authorization.k8s.io"
	}
	return id.Kind == "Pod" || id.Kind == "ReplicationController"
}

// sameContent tells whether two objects differ in metadata and status alone.
func sameContent(a, b *unstructured.Unstructured) bool {
	for _, keys := range [][2]map[string]any{{a.Object, b.Object}, {b.Object, a.Object}} {
		for key, value := range keys[0] {
			if key != "metadata" && key != "status" && !equality.Semantic.DeepEqual(value, keys[1][key]) {
				return false
			}
		}
	}
	return true
}

// nameOfFormerOwner returns the layer of Kraan that an object refers to.
func nameOfFormerOwner(obj *unstructured.Unstructured) string {
	for _, ref := range obj.GetOwnerReferences() {
		single := &unstructured.Unstructured{Object: map[string]any{}}
		single.SetOwnerReferences([]metav1.OwnerReference{ref})
		if dependents.HasOwner(single, layers.Keys) {
			return ref.Name
		}
	}
	return ""
}
