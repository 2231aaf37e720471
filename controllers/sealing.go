// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/signed"
)

// seal signs what was decided for objects.
func (p *Process) seal() decisions.Seal {
	return decisions.Seal{Key: p.Settings.DigestKey, Unsigned: p.unsigned.Load()}
}

// leading runs something once when the process leads; an error has it tried again.
type leading func(context.Context) error

// Start tries until it is done.
func (l leading) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, signRetry, true, func(ctx context.Context) (bool, error) {
		err := l(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "it is tried again")
		}
		return err == nil, nil
	}) // which ends with the process
	return nil
}

// NeedLeaderElection is true.
func (leading) NeedLeaderElection() bool { return true }

// signRetry is how soon it is tried again to sign what was decided.
const signRetry = 10 * time.Second

// setupSeal finds out whether decisions and statuses without a MAC are still taken: as long as no
// Secret says that all of them were signed.
func (p *Process) setupSeal(ctx context.Context) error {
	if err := p.readSeal(ctx); err != nil {
		return err
	}
	if p.Statuses == nil {
		return nil
	}
	p.Statuses.Use(p.Settings.DigestKey, p.unsigned.Load(), p.tellForeign)
	return nil
}

// readSeal reads whether decisions and statuses without a MAC are still taken.
func (p *Process) readSeal(ctx context.Context) error {
	if p.Settings.DigestKey.Equal(digests.Key{}) {
		return nil
	}
	note := &corev1.Secret{}
	err := p.Reader.Get(ctx, types.NamespacedName{Namespace: p.Settings.Namespace, Name: v1alpha1.DecisionsSignedName}, note)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read whether decisions are signed: %w", err)
	}
	p.unsigned.Store(apierrors.IsNotFound(err))
	return nil
}

// mostManager bounds the name of a manager in an event, in bytes.
const mostManager = 128

// tellForeign tells of a status that does not count. That of an object which another controller
// looks after is nothing that this one can mend: the log says what has both know each other.
func (p *Process) tellForeign(object signed.Object, by string) {
	of, kind := object.(client.Object), object.SignedStatus().Kind
	if !p.isOwn(of) {
		ctrl.Log.WithName("statuses").Info("the status of an object of another controller does not count: "+
			"controllers of one cluster need the same key, in the Secret "+v1alpha1.DigestKeyName+" of their namespaces",
			"kind", kind, "name", client.ObjectKeyFromObject(of).String(), "by", printable.Line(by, mostManager))
		return
	}
	p.Meters.ForeignStatus(kind)
	p.Events.Eventf(of, nil, corev1.EventTypeWarning, v1alpha1.ReasonForeignStatus, "Reconcile",
		"the status was written by %s, and not by Strata's controller with its key: it counts for nothing until the controller has written it again",
		cmp.Or(printable.Line(by, mostManager), "something"))
}

// signAll signs, once, what was decided before there was a MAC, each for the object that it is
// on, and what statuses say that others act on, and notes that. From then on nothing counts that
// has none.
func (p *Process) signAll(ctx context.Context) error {
	if !p.unsigned.Load() {
		return nil
	}
	// Another process may have done it while this one waited for the lead.
	if err := p.readSeal(ctx); err != nil {
		return err
	}
	if !p.unsigned.Load() {
		p.Statuses.AllSigned()
		return nil
	}
	for kind, list := range map[string]client.ObjectList{
		v1alpha1.AddonsLayerKind: &v1alpha1.AddonsLayerList{}, v1alpha1.PlatformKind: &v1alpha1.PlatformList{},
		v1alpha1.RemoteClusterKind: &v1alpha1.RemoteClusterList{}, v1alpha1.HelmApplicationKind: &v1alpha1.HelmApplicationList{},
		v1alpha1.ApplicationBundleKind: &v1alpha1.ApplicationBundleList{},
	} {
		if err := p.Reader.List(ctx, list); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue // the kind is not there
		} else if err != nil {
			return fmt.Errorf("cannot list what is to be signed: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error { return p.sign(ctx, item.(signed.Object), kind) })
		if err != nil {
			return fmt.Errorf("cannot sign what was there before: %w", err)
		}
	}
	yes := true
	note := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Settings.Namespace, Name: v1alpha1.DecisionsSignedName}, Type: v1alpha1.DecisionsSignedType, Immutable: &yes,
	}
	if err := p.Client.Create(ctx, note, client.FieldOwner(dependents.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot note that decisions are signed: %w", err)
	}
	p.unsigned.Store(false)
	p.Statuses.AllSigned()
	return nil
}

// sign signs the decisions of an object that have no MAC, and its status. One that changes meanwhile
// is signed by its own controller, which takes what has none as long as this is not done.
func (p *Process) sign(ctx context.Context, object signed.Object, kind string) error {
	of := object.(client.Object)
	if text, changed := decisions.Sign(object, kind, p.seal()); changed {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": object.GetResourceVersion(), "annotations": map[string]string{v1alpha1.DecidedAnnotation: text},
		}})
		if err != nil {
			return fmt.Errorf("cannot write decisions: %w", err)
		}
		err = p.Client.Patch(ctx, of, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(dependents.FieldManager))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot sign the decisions of %s %s: %w", kind, object.GetName(), err)
		}
	}
	if *object.SignedStatus().MAC != "" || !signed.HasAny(object) || v1alpha1.IsForeign(*object.SignedStatus().Conditions) {
		return nil
	}
	err := p.Client.Status().Patch(ctx, of, apply.LockedPatch(of.DeepCopyObject().(client.Object)), client.FieldOwner(dependents.FieldManager))
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		// It counts for nothing until its own controller writes another one.
		log.FromContext(ctx).Info("a status cannot be signed", "kind", kind, "name", object.GetName(), "error", err.Error())
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot sign the status of %s %s: %w", kind, object.GetName(), err)
	}
	return nil
}
