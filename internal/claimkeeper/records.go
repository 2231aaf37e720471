// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

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

// unsignedError says that a claim has records, and none that this controller has signed.
type unsignedError struct {
	claim     types.NamespacedName
	namespace string
	records   []capabilities.Record
}

// Error says what to do about it.
func (e *unsignedError) Error() string {
	names := make([]string, 0, len(e.records))
	for _, record := range e.records {
		names = append(names, record.Name())
	}
	return fmt.Sprintf("to whom CapabilityClaim %s is bound is not known: "+
		"ControllerRevision %s in the namespace %s is not signed with the key in Secret %s there, "+
		"as after a loss of the key, or where somebody else has written it. What is there stays as it is. Look at the record and have it signed: "+
		"kubectl strata capability sign %s; or delete it, and the claim is bound anew",
		e.claim, strings.Join(names, ", "), e.namespace, v1alpha1.DigestKeyName, e.claim)
}

// problem is what the claim says of it.
func (e *unsignedError) problem() *capabilities.Problem {
	return &capabilities.Problem{Reason: v1alpha1.ReasonRecordUnsigned, Message: e.Error(), Stalled: true}
}

// bound returns to whom a claim is bound, by the last record of the controller's namespace that
// the controller has signed; nil for nobody. The error is an unsignedError where there are others
// alone.
func (k *Keeper) bound(ctx context.Context, claim *v1alpha1.CapabilityClaim) (*record, error) {
	if err := k.signOnce(ctx); err != nil {
		return nil, err
	}
	last, _ := k.records.get(claim.UID)
	all, err := k.recordsOf(ctx, claim.UID)
	if err != nil {
		return nil, err
	}
	var unsigned []capabilities.Record
	for i := range all {
		of := &all[i]
		if of.DeletionTimestamp != nil || last != nil && of.Revision <= last.number {
			continue
		}
		if !k.isSigned(capabilities.RecordOfClaim, claim.UID, of) {
			unsigned = append(unsigned, recordIn(capabilities.RecordOfClaim, claim.UID, of))
			continue
		}
		read, err := decodeRecord(of)
		if err != nil {
			return nil, err
		}
		last = read
	}
	if last == nil && len(unsigned) > 0 {
		return nil, &unsignedError{client.ObjectKeyFromObject(claim), k.Settings.Namespace, unsigned}
	}
	if last != nil {
		k.records.set(claim.UID, last)
	}
	return last, nil
}

// recordsOf returns the records of bindings that have the label of a claim, signed or not, as the
// cache has them. There is no index for the label: an index would begin to watch before the
// controllers start, and nothing would start where the right to records is missing.
func (k *Keeper) recordsOf(ctx context.Context, claim types.UID) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	of := client.MatchingLabels{v1alpha1.ClaimLabel: string(claim)}
	if err := k.own.List(ctx, list, client.InNamespace(k.Settings.Namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the records of bindings: %w", err)
	}
	return list.Items, nil
}

// recordIn returns the record of a claim or provider that an object is to hold.
func recordIn(kind capabilities.RecordOf, uid types.UID, of *appsv1.ControllerRevision) capabilities.Record {
	return capabilities.Record{Of: kind, UID: uid, Number: of.Revision, Data: of.Data.Raw}
}

// isSigned tells whether an object is a record of a claim or provider that a controller with this
// one's key has written.
func (k *Keeper) isSigned(kind capabilities.RecordOf, uid types.UID, of *appsv1.ControllerRevision) bool {
	record := recordIn(kind, uid, of)
	return of.Name == record.Name() && record.IsSigned(k.Settings.DigestKey, of.Annotations[v1alpha1.RecordMACAnnotation])
}

func decodeRecord(of *appsv1.ControllerRevision) (*record, error) {
	bound, err := capabilities.Decode(of.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", of.Namespace, of.Name, errRecord)
	}
	return &record{bound: bound, number: of.Revision, digest: sha256.Sum256(of.Data.Raw)}, nil
}

// signed returns the object that holds a record, signed.
func (k *Keeper) signed(record capabilities.Record, label string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Settings.Namespace, Name: record.Name(), Labels: map[string]string{label: string(record.UID)},
			Annotations: map[string]string{v1alpha1.RecordMACAnnotation: record.MAC(k.Settings.DigestKey)},
		},
		Data: runtime.RawExtension{Raw: record.Data}, Revision: record.Number,
	}
}

// bind records to whom a claim is bound, after the last record. Of two processes that do so
// one is first, and the other one goes by what that has recorded.
func (k *Keeper) bind(ctx context.Context, claim *v1alpha1.CapabilityClaim, bound capabilities.Bound) (*record, error) {
	data, err := bound.Encode()
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of a binding: %w", err)
	}
	number, err := k.nextNumber(ctx, claim.UID)
	if err != nil {
		return nil, err
	}
	return k.write(ctx, capabilities.Record{Of: capabilities.RecordOfClaim, UID: claim.UID, Number: number, Data: data})
}

// nextNumber returns the number of the next record of a claim. Those that others have written
// have theirs, too.
func (k *Keeper) nextNumber(ctx context.Context, claim types.UID) (int64, error) {
	last := int64(0)
	if known, _ := k.records.get(claim); known != nil {
		last = known.number
	}
	all, err := k.recordsOf(ctx, claim)
	for i := range all {
		last = max(last, all[i].Revision)
	}
	return last + 1, err
}

// write writes the record of a binding, and reads what is there by its name then.
func (k *Keeper) write(ctx context.Context, of capabilities.Record) (*record, error) {
	made := k.signed(of, v1alpha1.ClaimLabel)
	err := k.Client.Create(ctx, made, client.FieldOwner(dependents.FieldManager))
	if apierrors.IsAlreadyExists(err) {
		err = k.Reader.Get(ctx, client.ObjectKeyFromObject(made), made)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot record the binding of a claim as %s: %w", of.Name(), err)
	}
	if !k.isSigned(of.Of, of.UID, made) {
		return nil, fmt.Errorf("cannot record the binding of a claim: ControllerRevision %s/%s is there, and is not signed", made.Namespace, made.Name)
	}
	read, err := decodeRecord(made)
	if err != nil {
		return nil, err
	}
	k.records.set(of.UID, read)
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
