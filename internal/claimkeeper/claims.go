// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/keeping"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/round"
)

// reconcileClaim looks at one claim.
func (k *Keeper) reconcileClaim(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	cached := &v1alpha1.CapabilityClaim{}
	if err := k.Client.Get(ctx, req.NamespacedName, cached); err != nil {
		if !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("cannot read CapabilityClaim %s: %w", req.NamespacedName, err)
		}
		k.written.Forget(req.NamespacedName)
		k.secrets.reads(req.NamespacedName, nil)
		k.follows.Keep(claimReader(req.NamespacedName), nil)
		return 0, nil
	}
	claim := k.written.Of(cached)
	if !k.isOwn(claim) {
		return 0, nil
	}
	deleting := !claim.DeletionTimestamp.IsZero()
	if !controllerutil.ContainsFinalizer(claim, v1alpha1.ClaimFinalizer) {
		if deleting {
			return 0, nil
		}
		patched := claim.DeepCopy()
		controllerutil.AddFinalizer(patched, v1alpha1.ClaimFinalizer)
		if err := apply.PatchLocked(ctx, k.Client, patched, claim); err != nil {
			return 0, fmt.Errorf("cannot add the finalizer to CapabilityClaim %s: %w", req.NamespacedName, err)
		}
		k.written.Wrote(patched)
		claim = patched
	}
	v := &visit{k: k, claim: claim.DeepCopy(), stored: claim, now: k.now(), rotation: claim.Status.Rotation, rotating: capabilities.RotatingOf(claim)}
	v.claim.Status.Objects, v.listed = capabilities.ObjectsOf(k.Settings.DigestKey, claim)
	if last, known := k.unsaved.get(claim.UID); known && last.version == claim.ResourceVersion {
		v.claim.Status.Objects, v.listed = last.objects, true
	}
	if deleting {
		return v.remove(ctx)
	}
	return v.serve(ctx)
}

func (k *Keeper) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// unsaved is what a claim has after its objects were written, at a version of the claim. The
// look that follows writes it. A process that dies before knows less of the objects, and
// applies them once more, which changes nothing.
type unsaved struct {
	version string
	objects []v1alpha1.Dependent
}

// visit is one look at a claim.
type visit struct {
	k *Keeper
	// claim is looked at, and stored is it as the cluster has it.
	claim, stored *v1alpha1.CapabilityClaim
	now           time.Time
	record        *record
	// outdated, refused and rotating as in capabilities.Outcome.
	outdated, refused, rotating string
	// outside is true where the claim's plug-in hands out something outside of any cluster.
	outside bool
	// listed is true where what the claim's status lists was written by a controller with this
	// one's key. Otherwise its objects are found by their label.
	listed bool
	// rotation is the number of the passwords that the binding has.
	rotation int64
	// again is when the claim is looked at again in any case; 0 for the safety net.
	again time.Duration
}

// serve gives a claim what it needs.
func (v *visit) serve(ctx context.Context) (time.Duration, error) {
	var err error
	if err = v.recorded(ctx); err != nil {
		return v.failed(ctx, err)
	}
	if v.record == nil {
		problem, err := v.choose(ctx)
		switch {
		case err != nil:
			return 0, err
		case problem != nil:
			return v.stays(ctx, problem)
		}
	}
	if err := v.move(ctx); err != nil {
		return 0, err
	}
	look, problem, err := v.observe(ctx)
	if live := keeping.Own(look, v.bindingID()); live != nil {
		v.rotation = capabilities.RotationOf(live).Number
	}
	if err != nil {
		return v.failed(ctx, err)
	}
	if problem != nil {
		return v.stays(ctx, problem)
	}
	return v.carryOut(ctx, look, look.Plan(), nil)
}

// stays says what keeps a claim from being served, and leaves all that it has as it is. Nobody
// is woken by rights that are given, so they are looked for again soon.
func (v *visit) stays(ctx context.Context, problem *capabilities.Problem) (time.Duration, error) {
	after := v.k.safetyNet()
	if v.again > 0 {
		after = min(after, v.again)
	}
	if problem.Reason == v1alpha1.ReasonServiceAccountNotFound || problem.Reason == v1alpha1.ReasonAccessDenied {
		after = min(after, rightsRetry)
	}
	return after, v.report(ctx, capabilities.Outcome{Problem: problem, Objects: v.claim.Status.Objects, Kept: true})
}

// choose binds a claim to a provider that fits, or says why none is.
func (v *visit) choose(ctx context.Context) (*capabilities.Problem, error) {
	seeker, providers, err := v.seek(ctx)
	if err != nil {
		return nil, err
	}
	if borrowed, problem, is, err := v.borrow(ctx, seeker); is {
		if borrowed != nil {
			v.record, err = v.k.bind(ctx, v.claim, *borrowed)
		}
		return problem, err
	}
	choice := capabilities.Choose(seeker, providers)
	if choice.Reason != "" {
		return &capabilities.Problem{Reason: choice.Reason, Message: choice.Message, Stalled: choice.Reason == v1alpha1.ReasonAmbiguous}, nil
	}
	bound := capabilities.Bound{Claim: client.ObjectKeyFromObject(v.claim).String(), Provider: choice.Provider, Version: choice.Version}
	for _, provider := range providers {
		if provider.Name == choice.Provider {
			bound.Spec = provider.Spec
		}
	}
	v.record, err = v.k.bind(ctx, v.claim, bound)
	return nil, err
}

// seek reads who claims, and who may serve that.
func (v *visit) seek(ctx context.Context) (capabilities.Seeker, []capabilities.Provider, error) {
	seeker, err := v.seeker(ctx)
	if err != nil {
		return seeker, nil, err
	}
	providers, err := v.k.providersOf(ctx, v.claim.Spec.Capability)
	return seeker, providers, err
}

func (v *visit) seeker(ctx context.Context) (capabilities.Seeker, error) {
	labels, err := v.k.labelsOf(ctx, v.claim.Namespace)
	return capabilities.Seeker{
		Claim: v.claim.Spec, Namespace: v.claim.Namespace, NamespaceLabels: labels, Controller: v.k.Settings.Namespace,
	}, err
}

// labelsOf returns the labels of a namespace; none where it has gone.
func (k *Keeper) labelsOf(ctx context.Context, name string) (map[string]string, error) {
	namespace := newNamespace()
	err := k.Client.Get(ctx, types.NamespacedName{Name: name}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot read Namespace %s: %w", name, err)
	}
	return namespace.GetLabels(), nil
}

// move binds a claim anew where somebody has asked for it, and says what would change
// otherwise.
func (v *visit) move(ctx context.Context) error {
	to, asked := v.claim.Annotations[v1alpha1.RebindAnnotation]
	seeker, providers, err := v.seek(ctx)
	if err != nil {
		return err
	}
	bound := v.record.bound
	if asked {
		moved, refused, err := v.moved(ctx, seeker, to, providers)
		if err != nil {
			return err
		}
		if v.refused = refused; moved != nil {
			return v.rebind(ctx, moved)
		}
	}
	if bound.Shared != nil {
		v.outdated = bound.OutdatedShare(v.claim)
		return nil
	}
	at := slices.IndexFunc(providers, func(p capabilities.Provider) bool { return p.Name == bound.Provider })
	switch {
	case at < 0:
		v.outdated = capabilities.Outdated(bound, v.claim.Spec, nil)
	case providers[at].Lacks != "": // what it offers now is not known
		v.outdated = capabilities.OutdatedOf(v.claim)
	default:
		v.outdated = capabilities.Outdated(bound, v.claim.Spec, &providers[at])
	}
	return nil
}

// moved returns to whom the claim is bound anew; or says why it cannot be.
func (v *visit) moved(ctx context.Context, seeker capabilities.Seeker, to string, providers []capabilities.Provider) (*capabilities.Bound, string, error) {
	borrowed, problem, is, err := v.borrow(ctx, seeker)
	switch {
	case err != nil:
		return nil, "", err
	case problem != nil:
		return nil, problem.Message, nil
	case is && borrowed.Provider != to:
		return nil, borrowed.Elsewhere(), nil
	case is:
		if why := v.staysWith(borrowed); why != "" {
			return nil, why, nil
		}
		return borrowed, "", nil
	}
	moved, refused := capabilities.Move(seeker, to, v.record.bound, providers)
	if moved != nil {
		if why := v.staysWith(moved); why != "" {
			return nil, why, nil
		}
	}
	return moved, refused, nil
}

// rebind records another binding, and uses the annotation up. One that was recorded by a
// process that has died then is recorded once more, which changes nothing.
func (v *visit) rebind(ctx context.Context, moved *capabilities.Bound) error {
	was := v.record
	if !equality.Semantic.DeepEqual(was.bound, moved) {
		made, err := v.k.bind(ctx, v.claim, *moved)
		if err != nil {
			return err
		}
		v.record = made
	}
	patched := v.stored.DeepCopy()
	delete(patched.Annotations, v1alpha1.RebindAnnotation)
	if err := apply.PatchLocked(ctx, v.k.Client, patched, v.stored); err != nil {
		return fmt.Errorf("cannot remove the annotation %s: %w", v1alpha1.RebindAnnotation, err)
	}
	v.k.written.Wrote(patched)
	v.stored, v.claim = patched, patched.DeepCopy()
	v.k.Events.Eventf(v.claim, nil, corev1.EventTypeNormal, v1alpha1.ReasonMoved, "Reconcile", "is bound to %s %s now, and was to %s %s",
		moved.Provider, moved.Version, was.bound.Provider, was.bound.Version)
	return nil
}

// carryOut does what a plan says: what it makes is in the status before it is there.
func (v *visit) carryOut(ctx context.Context, look primaries.Look, plan dependents.Plan, problem *capabilities.Problem) (time.Duration, error) {
	executor := v.k.executor
	if plan.Writes() { // the account is looked up only where something is done as it
		as, failure, err := v.executor(ctx, plan)
		if err != nil {
			return v.failed(ctx, err)
		}
		if failure != nil {
			return v.stays(ctx, failure)
		}
		executor = as
	}
	results, err := executor.Carry(ctx, look.Owner, plan, func(ctx context.Context) error {
		planned := v.claim.Status.DeepCopy()
		planned.Objects = primaries.Planned(plan)
		if v.listed && sameIdentities(planned.Objects, v.claim.Status.Objects) {
			return nil
		}
		planned.ObjectsMAC = v.sign(planned.Objects)
		return v.persist(ctx, *planned)
	})
	if err != nil {
		return 0, err
	}
	v.k.recent.Wrote(results, v.k.now())
	explain(v.account(), results)
	listed, standings := look.Report(plan, results)
	if problem == nil && v.claim.DeletionTimestamp.IsZero() && len(results) > 0 && !slices.ContainsFunc(results, hasFailed) {
		v.k.unsaved.set(v.claim.UID, unsaved{v.stored.ResourceVersion, listed})
		return round.LookAgain, nil
	}
	if err := v.report(ctx, capabilities.Outcome{Problem: problem, Objects: listed, Standings: standings}); err != nil {
		return 0, err
	}
	for _, result := range results {
		if result.Err != nil {
			return 0, fmt.Errorf("cannot %s %s: %w", result.Action.Verb, result.Action.ID, result.Err)
		}
	}
	if len(results) > 0 || v.k.objects.IsComing(ctx, look) {
		return round.LookAgain, nil // a write that changes nothing wakes nobody
	}
	if v.again > 0 {
		return min(v.again, v.k.safetyNet()), nil
	}
	return v.k.safetyNet(), nil
}

func hasFailed(result dependents.Result) bool { return result.Err != nil }

// explain has errors say what the account may not.
func explain(account types.NamespacedName, results []dependents.Result) {
	for i := range results {
		var leftAlone *apply.LeftAloneError
		if results[i].Err != nil && !errors.As(results[i].Err, &leftAlone) {
			why := accounts.FailureOf(account, results[i].Err)
			results[i].Err = errors.New("cannot be made" + why.As + ": " + why.Message)
		}
	}
}

// failed says in the status why a claim cannot be looked at, and returns that. A cluster that
// cannot be used now is no error: what is there stays as it is.
func (v *visit) failed(ctx context.Context, err error) (time.Duration, error) {
	if errors.Is(err, errAsking) {
		return answerPatience, nil
	}
	var unsigned *unsignedError
	if errors.As(err, &unsigned) {
		return v.stays(ctx, unsigned.problem())
	}
	var away *awayError
	if errors.As(err, &away) {
		if away.soon {
			return round.LookAgain, nil
		}
		return v.stays(ctx, away.problem())
	}
	problem := &capabilities.Problem{Reason: v1alpha1.ReasonProgressing, Message: err.Error()}
	if apierrors.IsForbidden(err) {
		problem.Reason = v1alpha1.ReasonAccessDenied
		problem.Message = "the controller lacks rights: " + err.Error() + "; set capabilities.enabled of the chart, and add the kind to its rbac.kinds"
	}
	if reported := v.report(ctx, capabilities.Outcome{Problem: problem, Objects: v.claim.Status.Objects, Kept: true}); reported != nil {
		return 0, reported
	}
	return 0, err
}

// report writes the status where it has changed, and tells of that.
func (v *visit) report(ctx context.Context, outcome capabilities.Outcome) error {
	outcome.Claim, outcome.Outdated, outcome.Refused = v.claim, v.outdated, v.refused
	outcome.Rotation, outcome.Rotating = v.rotation, v.rotating
	if v.record != nil {
		outcome.Bound = v.record.bound
	}
	before := v.stored.Status.Conditions
	wasRotating := capabilities.IsRotating(v.stored)
	status := outcome.Status(v.now)
	if outcome.Kept && !v.listed { // it is not for this controller to sign
		was := v.stored.Status
		status.Objects, status.ObjectsMAC, status.Binding = was.Objects, was.ObjectsMAC, was.Binding
	} else {
		status.ObjectsMAC = v.sign(status.Objects)
	}
	if err := v.persist(ctx, status); err != nil {
		return err
	}
	if is := v.rotating != ""; is != wasRotating {
		said := "has the next passwords; those of before are valid until all have them"
		if !is {
			said = "has no passwords of before any more"
		}
		v.k.Events.Eventf(v.claim, nil, corev1.EventTypeNormal, v1alpha1.ReasonRotated, "Reconcile", "%s", said)
	}
	if v.k.Tell != nil && isNews(v.claim.Status.Conditions, before) {
		v.k.Tell(v.claim, v1alpha1.CapabilityClaimKind, v.claim.Status.Version, v.claim.Status.Conditions, before)
	}
	return nil
}

// isNews tells whether what a claim says is told: not each step on its way.
func isNews(is, before []metav1.Condition) bool {
	ready := meta.FindStatusCondition(is, v1alpha1.ReadyCondition)
	return ready == nil || ready.Reason != v1alpha1.ReasonProgressing || meta.IsStatusConditionTrue(before, v1alpha1.ReadyCondition)
}

// persist writes a status where it differs from the last one. It does not end with ctx: what
// was done must be known to whoever comes next.
func (v *visit) persist(ctx context.Context, status v1alpha1.CapabilityClaimStatus) error {
	if equality.Semantic.DeepEqual(v.stored.Status, status) {
		v.claim.Status = status
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	patched := v.stored.DeepCopy()
	patched.Status = status
	if err := apply.PatchStatus(ctx, v.k.Client, patched, v.stored); err != nil {
		if apierrors.IsNotFound(err) {
			return round.ErrGone
		}
		return fmt.Errorf("cannot write the status of CapabilityClaim %s/%s: %w", patched.Namespace, patched.Name, err)
	}
	v.k.written.Wrote(patched)
	v.k.unsaved.forget(v.claim.UID)
	v.stored, v.claim = patched, patched.DeepCopy()
	return nil
}

// sign authenticates what the claim's status is to list.
func (v *visit) sign(listed []v1alpha1.Dependent) string {
	return capabilities.SignObjects(v.k.Settings.DigestKey, v.claim.UID, listed)
}

// sameIdentities tells whether two lists name the same objects.
func sameIdentities(a, b []v1alpha1.Dependent) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || primaries.IdentityOf(a[i]) != primaries.IdentityOf(b[i]) {
			return false
		}
	}
	return true
}

func newNamespace() client.Object {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceVersion)
	return namespace
}
