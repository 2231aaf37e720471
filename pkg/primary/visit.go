// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/round"
)

// maxRounds bounds how often a primary is asked what it wants in one look: each time it may
// see more of what it has asked for.
const maxRounds = 10

// visit is one look at a primary.
type visit[P Object] struct {
	*engine[P]
	// primary is looked at, and stored is it as the cluster has it.
	primary, stored P
	now             time.Time
	seen            Seen
}

// keep gives a primary what it wants.
func (v *visit[P]) keep(ctx context.Context) (time.Duration, error) {
	if !hasFinalizer(v.stored, v.keys.Owner) {
		patched := copyOf(v.stored)
		controllerutil.AddFinalizer(patched, v.keys.Owner)
		if err := v.patch(ctx, patched); err != nil {
			return 0, err
		}
	}
	if v.kind.Default != nil {
		v.kind.Default(v.primary)
	}
	if v.kind.Validate != nil {
		if err := v.kind.Validate(copyOf(v.primary)); err != nil {
			return safetyNet(), v.report(ctx, invalid(err), v.primary.PrimaryStatus().Objects, nil)
		}
	}
	look, problem, err := v.observe(ctx)
	switch {
	case err != nil:
		return 0, errors.Join(v.report(ctx, failed(err), v.primary.PrimaryStatus().Objects, nil), err)
	case problem != nil:
		return safetyNet(), v.report(ctx, problem, v.primary.PrimaryStatus().Objects, nil)
	}
	return v.carryOut(ctx, look, nil)
}

// observe reads what the primary has, and asks it what it wants.
func (v *visit[P]) observe(ctx context.Context) (primaries.Look, *problem, error) {
	look := v.newLook()
	look.MayPrune = !v.kind.Keeps
	if _, err := v.objects.Watch(ctx, &look, "", nil); err != nil {
		return look, nil, err
	}
	if err := v.objects.Read(ctx, &look); err != nil {
		return look, nil, err
	}
	v.seen = Seen{}
	for _, known := range look.Known {
		if live := keeping.Own(look, primaries.IdentityOf(known)); live != nil && live.GetDeletionTimestamp() == nil {
			v.seen[known.ID] = live
		}
	}
	for range maxRounds {
		wanted, err := v.kind.Wants(copyOf(v.primary), maps.Clone(v.seen))
		if err != nil {
			return look, invalid(err), nil
		}
		sees, err := v.want(ctx, &look, wanted)
		var mistake *mistakeError
		switch {
		case errors.As(err, &mistake):
			return look, invalid(err), nil
		case err != nil:
			return look, nil, err
		case maps.Equal(sees, v.seen):
			return look, nil, nil
		}
		v.seen = sees
	}
	return look, invalid(errors.New("what it wants hangs on itself: Wants never says twice the same")), nil
}

// mistakeError is one of who wrote the operator.
type mistakeError struct{ message string }

// Error says what is wrong.
func (m *mistakeError) Error() string { return m.message }

// want puts what a primary wants into a look, and returns what is seen of that.
func (v *visit[P]) want(ctx context.Context, look *primaries.Look, wanted []Dependent) (Seen, error) {
	look.Objects = look.Objects[:0]
	sees := Seen{}
	ids := map[string]bool{}
	for _, of := range wanted {
		if of.ID == "" || strings.Contains(of.ID, "/") || ids[of.ID] {
			return nil, &mistakeError{fmt.Sprintf("what it wants has the ID %q: each has one of its own, without a slash", of.ID)}
		}
		ids[of.ID] = true
		made, err := v.object(ctx, look, of)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.ID, err)
		}
		look.Objects = append(look.Objects, made)
		live := v.seen[of.ID]
		if made.Object != nil {
			if live = keeping.Own(*look, made.Identity()); of.Mode == Observe {
				live = look.Live[made.Identity()]
			}
		}
		if live != nil && live.GetDeletionTimestamp() == nil {
			sees[of.ID] = live
		}
	}
	return sees, nil
}

// object returns what is wanted as the rules have it, and reads what there is of it.
func (v *visit[P]) object(ctx context.Context, look *primaries.Look, of Dependent) (primaries.Object, error) {
	made := primaries.Object{ID: of.ID, Waits: of.Waits, DependsOn: of.DependsOn, Ready: readiness(of.Ready), Confidential: of.Confidential}
	if of.Object == nil {
		if made.Waits == "" {
			return made, &mistakeError{"it has neither Object nor Waits"}
		}
		return made, nil
	}
	made.Waits = ""
	object, err := toUnstructured(of.Object, v.mgr.GetScheme())
	if err != nil {
		return made, &mistakeError{err.Error()}
	}
	reads := v.objects
	switch of.Mode {
	case CreateOnce:
		made.Mode = dependents.ModeCreateOnce
	case Observe:
		made.Mode, reads = dependents.ModeObserve, v.observed
	}
	gvk := object.GroupVersionKind()
	made.Confidential = made.Confidential || gvk.Group == "" && gvk.Kind == "Secret"
	scopes, err := reads.Watch(ctx, &primaries.Look{NotServed: look.NotServed}, "", []schema.GroupVersionKind{gvk})
	if err != nil {
		return made, err
	}
	if scopes[gvk.GroupKind()] == objects.ScopeNamespaced && object.GetNamespace() == "" {
		object.SetNamespace(v.primary.GetNamespace())
	}
	made.Object = object
	return made, reads.See(ctx, look, made.Identity())
}

// readiness has a function of a Dependent say how an object fares.
func readiness(of func(*unstructured.Unstructured) string) func(*unstructured.Unstructured) objects.Standing {
	if of == nil {
		return nil
	}
	return func(live *unstructured.Unstructured) objects.Standing {
		if waits := of(live); waits != "" {
			return objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: waits}
		}
		return objects.Standing{Health: objects.Ready, Status: objects.StatusReady}
	}
}

// carryOut does what a plan says: what it makes is in the status before it is there.
func (v *visit[P]) carryOut(ctx context.Context, look primaries.Look, problem *problem) (time.Duration, error) {
	plan := look.Plan()
	results, err := v.executor.Carry(ctx, look.Owner, plan, func(ctx context.Context) error {
		planned := copyOf(v.stored)
		planned.PrimaryStatus().Objects = primaries.Planned(plan)
		return v.persist(ctx, planned)
	})
	if err != nil {
		return 0, err
	}
	v.objects.Recent.Wrote(results, v.now)
	listed, standings := look.Report(plan, results)
	if err := v.report(ctx, problem, listed, standings); err != nil {
		return 0, err
	}
	for _, result := range results {
		if result.Err != nil {
			return 0, fmt.Errorf("cannot %s %s: %w", result.Action.Verb, result.Action.ID, result.Err)
		}
	}
	if len(results) > 0 || v.objects.IsComing(ctx, look) {
		return round.LookAgain, nil // a write that changes nothing wakes nobody
	}
	return safetyNet(), nil
}

// remove takes back what a primary has, and lets it go.
func (v *visit[P]) remove(ctx context.Context) (time.Duration, error) {
	look := v.newLook()
	look.MayPrune = true
	if _, err := v.objects.Watch(ctx, &look, "", nil); err != nil {
		return 0, errors.Join(v.report(ctx, failed(err), look.Known, nil), err)
	}
	if err := v.objects.Read(ctx, &look); err != nil {
		return 0, err
	}
	if plan := look.Plan(); len(plan.Inventory) > 0 || plan.Writes() {
		return v.carryOut(ctx, look, nil)
	}
	left, err := v.objects.IsLeft(ctx, look)
	switch {
	case err != nil:
		return 0, err
	case left:
		return round.LookAgain, nil
	}
	patched := copyOf(v.stored)
	controllerutil.RemoveFinalizer(patched, v.keys.Owner)
	return 0, client.IgnoreNotFound(v.patch(ctx, patched))
}

func (v *visit[P]) newLook() primaries.Look {
	look := v.objects.NewLook(string(v.stored.GetUID()), v.stored.PrimaryStatus().Objects, v.now)
	look.DigestKey = v.digests
	return look
}

// patch writes a primary, but for its status.
func (v *visit[P]) patch(ctx context.Context, patched P) error {
	if err := apply.PatchLocked(ctx, v.mgr.GetClient(), patched, v.stored); err != nil {
		return fmt.Errorf("cannot write the finalizer of %s %s: %w", v.gvk.Kind, client.ObjectKeyFromObject(patched), err)
	}
	v.wrote(patched)
	return nil
}

func (v *visit[P]) wrote(patched P) {
	v.written.Wrote(patched)
	spec := v.primary
	v.stored = patched
	*spec.PrimaryStatus() = *copyOf(patched).PrimaryStatus()
	spec.SetResourceVersion(patched.GetResourceVersion())
}

// persist writes a status where it differs from the last one. It does not end with ctx: what
// was done must be known to whoever comes next.
func (v *visit[P]) persist(ctx context.Context, patched P) error {
	if equality.Semantic.DeepEqual(v.stored, patched) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := apply.PatchStatus(ctx, v.mgr.GetClient(), patched, v.stored); err != nil {
		if apierrors.IsNotFound(err) {
			return round.ErrGone
		}
		return fmt.Errorf("cannot write the status of %s %s: %w", v.gvk.Kind, client.ObjectKeyFromObject(patched), err)
	}
	v.wrote(patched)
	return nil
}

// toUnstructured returns an object as it is applied: without a status, and without what the
// zero values of its type say.
func toUnstructured(object client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	if given, is := object.(*unstructured.Unstructured); is {
		made := given.DeepCopy()
		delete(made.Object, "status")
		return made, nil
	}
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("the scheme does not know %T: %w", object, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be written: %w", object, err)
	}
	made := &unstructured.Unstructured{Object: content}
	made.SetGroupVersionKind(gvk)
	delete(made.Object, "status")
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		unstructured.RemoveNestedField(made.Object, append(path, "creationTimestamp")...)
	}
	return made, nil
}

func copyOf[P Object](of P) P { return of.DeepCopyObject().(P) }

func hasFinalizer(of client.Object, finalizer string) bool {
	return slices.Contains(of.GetFinalizers(), finalizer)
}
