// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
)

// record is the record of a claim's binding, as it was read.
type record struct {
	bound  *capabilities.Bound
	number int64
	// digest identifies what was promised.
	digest [sha256.Size]byte
}

// records are the bindings that this process has recorded or read, by the UIDs of claims.
type records struct{ memo[types.UID, *record] }

// errRecord says that a record cannot be used: it is no claim's fault, and passes for none.
var errRecord = errors.New("the record of the binding cannot be read")

// bound returns to whom a claim is bound, by the last record of the controller's namespace;
// nil for nobody.
func (k *Keeper) bound(ctx context.Context, claim *v1alpha1.CapabilityClaim) (*record, error) {
	last, _ := k.records.get(claim.UID)
	list := &appsv1.ControllerRevisionList{}
	labelled := client.MatchingLabels{v1alpha1.ClaimLabel: string(claim.UID)}
	if err := k.own.List(ctx, list, client.InNamespace(k.Settings.Namespace), labelled, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the records of bindings: %w", err)
	}
	for i := range list.Items {
		of := &list.Items[i]
		if !capabilities.IsRecord(of.Name) || of.DeletionTimestamp != nil || last != nil && of.Revision <= last.number {
			continue
		}
		read, err := decodeRecord(of)
		if err != nil {
			return nil, err
		}
		last = read
	}
	if last != nil {
		k.records.set(claim.UID, last)
	}
	return last, nil
}

func decodeRecord(of *appsv1.ControllerRevision) (*record, error) {
	bound, err := capabilities.Decode(of.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", of.Namespace, of.Name, errRecord)
	}
	return &record{bound: bound, number: of.Revision, digest: sha256.Sum256(of.Data.Raw)}, nil
}

// bind records to whom a claim is bound, after the last record. Of two processes that do so
// one is first, and the other one goes by what that has recorded.
func (k *Keeper) bind(ctx context.Context, claim *v1alpha1.CapabilityClaim, bound capabilities.Bound, number int64) (*record, error) {
	data, err := bound.Encode()
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of a binding: %w", err)
	}
	made := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Settings.Namespace, Name: capabilities.RecordName(claim, number),
			Labels: map[string]string{v1alpha1.ClaimLabel: string(claim.UID)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
	err = k.Client.Create(ctx, made, client.FieldOwner(dependents.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = k.Reader.Get(ctx, client.ObjectKeyFromObject(made), made)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot record the binding of CapabilityClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	read, err := decodeRecord(made)
	if err != nil {
		return nil, err
	}
	k.records.set(claim.UID, read)
	return read, nil
}

// unbind deletes the records of a claim that has gone.
func (k *Keeper) unbind(ctx context.Context, uid types.UID) error {
	list := &appsv1.ControllerRevisionList{}
	err := k.Reader.List(ctx, list, client.InNamespace(k.Settings.Namespace), client.MatchingLabels{v1alpha1.ClaimLabel: string(uid)})
	if err != nil {
		return fmt.Errorf("cannot list the records of bindings: %w", err)
	}
	for i := range list.Items {
		err := k.Client.Delete(ctx, &list.Items[i])
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete the record of a binding: %w", err)
		}
	}
	return nil
}

// blueprints are providers as they were understood, by the digest of what they promise.
type blueprints struct {
	memo[[sha256.Size]byte, understood]
}

type understood struct {
	blueprint *capabilities.Blueprint
	problems  []string
}

// understand returns what a provider promises. Claims of one provider share it.
func (b *blueprints) understand(digest [sha256.Size]byte, spec v1alpha1.CapabilityProviderSpec) understood {
	found, known := b.get(digest)
	if !known {
		found.blueprint, found.problems = capabilities.Understand(spec)
		b.set(digest, found)
	}
	return found
}
