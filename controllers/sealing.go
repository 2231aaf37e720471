// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
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

// setupSeal finds out whether decisions without a MAC are still taken: as long as no Secret
// says that all of them were signed.
func (p *Process) setupSeal(ctx context.Context) error {
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

// signAll signs, once, what was decided before there was a MAC, each for the object that it is
// on, and notes that. From then on nothing counts that has none.
func (p *Process) signAll(ctx context.Context) error {
	if !p.unsigned.Load() {
		return nil
	}
	layers, platforms := &v1alpha1.AddonsLayerList{}, &v1alpha1.PlatformList{}
	for _, list := range []client.ObjectList{layers, platforms} {
		if err := p.Reader.List(ctx, list); err != nil {
			return fmt.Errorf("cannot list what has decisions: %w", err)
		}
	}
	for i := range layers.Items {
		if err := p.sign(ctx, &layers.Items[i], v1alpha1.AddonsLayerKind); err != nil {
			return err
		}
	}
	for i := range platforms.Items {
		if err := p.sign(ctx, &platforms.Items[i], v1alpha1.PlatformKind); err != nil {
			return err
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
	return nil
}

// sign signs the decisions of an object that have no MAC. One that changes meanwhile is signed
// by its own controller, which takes what has none as long as this is not done.
func (p *Process) sign(ctx context.Context, object client.Object, kind string) error {
	signed, changed := decisions.Sign(object, kind, p.seal())
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(), "annotations": map[string]string{v1alpha1.DecidedAnnotation: signed},
	}})
	if err != nil {
		return fmt.Errorf("cannot write decisions: %w", err)
	}
	err = p.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(dependents.FieldManager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot sign the decisions of %s %s: %w", kind, object.GetName(), err)
	}
	return nil
}
