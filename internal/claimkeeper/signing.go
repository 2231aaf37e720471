// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
)

// signing tells whether the records of before were signed.
type signing struct {
	mu   sync.Mutex
	done bool
}

// signRecords signs the records of before as the controller begins, so that no record that
// somebody makes later is taken for one of them. It is run with the lead.
func (k *Keeper) signRecords(ctx context.Context) error {
	if err := k.signOnce(ctx); err != nil {
		// Whoever needs a record tries again.
		logf.FromContext(ctx).Error(err, "cannot sign the records of bindings")
	}
	return nil
}

// signOnce signs the records that a controller without MACs has written, once: a Secret says
// that it was done.
func (k *Keeper) signOnce(ctx context.Context) error {
	k.signing.mu.Lock()
	defer k.signing.mu.Unlock()
	if k.signing.done {
		return nil
	}
	done := &metav1.PartialObjectMetadata{}
	done.SetGroupVersionKind(secretKind.WithVersion("v1"))
	name := types.NamespacedName{Namespace: k.Settings.Namespace, Name: v1alpha1.RecordsName}
	err := k.Reader.Get(ctx, name, done)
	if apierrors.IsNotFound(err) {
		err = k.signAll(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("cannot tell whether the records of bindings were signed: %w", err)
	}
	k.signing.done = true
	return nil
}

// signAll signs the last record of each claim that has none with a MAC, and notes that in a
// Secret. Such a record is written anew, after the one that it is a copy of: a controller that
// dies between the two begins again.
func (k *Keeper) signAll(ctx context.Context, note types.NamespacedName) error {
	list := &appsv1.ControllerRevisionList{}
	if err := k.Reader.List(ctx, list, client.InNamespace(note.Namespace), client.HasLabels{v1alpha1.ClaimLabel}); err != nil {
		return fmt.Errorf("cannot list the records of bindings: %w", err)
	}
	last, hasMAC := map[string]*appsv1.ControllerRevision{}, map[string]bool{}
	for i := range list.Items {
		of := &list.Items[i]
		uid := of.Labels[v1alpha1.ClaimLabel]
		hasMAC[uid] = hasMAC[uid] || of.Annotations[v1alpha1.RecordMACAnnotation] != ""
		isRecord := of.Name == recordIn(capabilities.RecordOfClaim, types.UID(uid), of).Name()
		if isRecord && of.DeletionTimestamp == nil && (last[uid] == nil || last[uid].Revision < of.Revision) {
			last[uid] = of
		}
	}
	for uid, of := range last {
		if hasMAC[uid] {
			continue
		}
		record := recordIn(capabilities.RecordOfClaim, types.UID(uid), of)
		record.Number++
		if _, err := k.write(ctx, record); err != nil && !errors.Is(err, errRecord) {
			return fmt.Errorf("cannot sign %s: %w", of.Name, err)
		}
	}
	yes := true
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: note.Namespace, Name: note.Name}, Type: v1alpha1.RecordsType, Immutable: &yes,
	}
	err := k.Client.Create(ctx, made, client.FieldOwner(dependents.FieldManager))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot note in Secret %s that the records of bindings were signed: %w", note, err)
	}
	return nil
}

// signAgain signs the record of a claim that has no signed one, where somebody who may write the
// controller's Secrets has asked for that, as it is. It returns nil where nobody has.
func (v *visit) signAgain(ctx context.Context, unsigned *unsignedError) (*record, error) {
	note := &metav1.PartialObjectMetadata{}
	note.SetGroupVersionKind(secretKind.WithVersion("v1"))
	err := v.k.own.Get(ctx, types.NamespacedName{Namespace: v.k.Settings.Namespace, Name: v1alpha1.RecordsName}, note)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	asked := capabilities.ParseAsked(note.Annotations[v1alpha1.SignRecordsAnnotation])
	var allowed *capabilities.Record
	for i := range unsigned.records {
		if record := &unsigned.records[i]; asked.Allows(*record) && (allowed == nil || allowed.Number < record.Number) {
			allowed = record
		}
	}
	if allowed == nil {
		return nil, nil
	}
	again := *allowed
	if again.Number, err = v.k.nextNumber(ctx, v.claim.UID); err != nil {
		return nil, err
	}
	made, err := v.k.write(ctx, again)
	if err == nil {
		v.k.Events.Eventf(v.claim, nil, corev1.EventTypeNormal, v1alpha1.ReasonBound, "Reconcile", "its record %s was signed again, as %s asks for",
			allowed.Name(), v1alpha1.SignRecordsAnnotation)
	}
	return made, err
}

// recorded reads to whom the claim is bound.
func (v *visit) recorded(ctx context.Context) error {
	var err error
	v.record, err = v.k.bound(ctx, v.claim)
	var unsigned *unsignedError
	if !errors.As(err, &unsigned) {
		return err
	}
	again, failed := v.signAgain(ctx, unsigned)
	if failed != nil {
		return failed
	}
	if v.record = again; again == nil {
		return unsigned
	}
	return nil
}

// claimsToSign returns the claims that wait for their records to be signed.
func (k *Keeper) claimsToSign(ctx context.Context, obj client.Object) []ctrl.Request {
	if obj.GetNamespace() != k.Settings.Namespace || obj.GetName() != v1alpha1.RecordsName {
		return nil
	}
	asked := capabilities.ParseAsked(obj.GetAnnotations()[v1alpha1.SignRecordsAnnotation])
	if len(asked) == 0 {
		return nil
	}
	return k.claims(ctx, func(claim *v1alpha1.CapabilityClaim) bool { return asked.Names(claim.UID) })
}
