// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/providers"
)

// served are the plug-ins that served last, by the UIDs of their providers, as they were recorded.
type served struct{ memo[types.UID, servedRecord] }

// servedRecord is the record of the plug-in that served last.
type servedRecord struct {
	// last is nil where none has.
	last *capabilities.Served
	// number is that of the last record, signed or not.
	number int64
}

// recall reads which plug-in of a provider served last. It is read once: no one else writes it.
func (k *Keeper) recall(ctx context.Context, provider *v1alpha1.CapabilityProvider) (servedRecord, error) {
	if known, is := k.served.get(provider.UID); is {
		return known, nil
	}
	list, err := k.recordsOfProvider(ctx, provider)
	if err != nil {
		return servedRecord{}, err
	}
	read, signed := servedRecord{}, int64(0)
	for i := range list {
		of := &list[i]
		read.number = max(read.number, of.Revision)
		if of.DeletionTimestamp != nil || of.Revision <= signed || !k.isSigned(capabilities.RecordOfProvider, provider.UID, of) {
			continue
		}
		last := &capabilities.Served{}
		if err := json.Unmarshal(of.Data.Raw, last); err == nil {
			read.last, signed = last, of.Revision
		}
	}
	k.served.set(provider.UID, read)
	return read, nil
}

// recordsOfProvider returns the records that have the label of a provider, signed or not.
func (k *Keeper) recordsOfProvider(ctx context.Context, provider *v1alpha1.CapabilityProvider) ([]appsv1.ControllerRevision, error) {
	list := &appsv1.ControllerRevisionList{}
	of := client.MatchingLabels{v1alpha1.ProviderLabel: string(provider.UID)}
	if err := k.Reader.List(ctx, list, client.InNamespace(k.Settings.Namespace), of); err != nil {
		return nil, fmt.Errorf("cannot list the records of CapabilityProvider %s: %w", provider.Name, err)
	}
	return list.Items, nil
}

// before returns the specification of a provider with the plug-in that served claims before
// another one was given, as far as that was read already; nil where there is none.
func (k *Keeper) before(provider *v1alpha1.CapabilityProvider) *v1alpha1.CapabilityProviderSpec {
	known, _ := k.served.get(provider.UID)
	return known.last.Before(provider.Spec)
}

// remember records that the present plug-in of a provider serves, where another one did last, and
// deletes the record of that. A status, which others may write, says nothing of what is started.
func (k *Keeper) remember(ctx context.Context, provider *v1alpha1.CapabilityProvider, serves v1alpha1.CapabilityPluginStatus) error {
	known, err := k.recall(ctx, provider)
	if err != nil {
		return err
	}
	now := capabilities.Served{Provider: provider.Name, Plugin: serves, Run: providers.RunOf(*provider.Spec.Plugin)}
	if known.last != nil && *known.last == now {
		return nil
	}
	data, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("cannot write a record: %w", err)
	}
	record := capabilities.Record{Of: capabilities.RecordOfProvider, UID: provider.UID, Number: known.number + 1, Data: data}
	made := k.signed(record, v1alpha1.ProviderLabel)
	made.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.CapabilityProviderKind, Name: provider.Name, UID: provider.UID,
	}}
	if err := k.Client.Create(ctx, made, client.FieldOwner(dependents.FieldManager)); err != nil {
		k.served.forget(provider.UID) // somebody else has written one
		return fmt.Errorf("cannot record which plug-in of CapabilityProvider %s serves: %w", provider.Name, err)
	}
	k.served.set(provider.UID, servedRecord{&now, record.Number})
	return k.forgetServed(ctx, provider, record.Number)
}

// forgetServed deletes the records of a provider but one.
func (k *Keeper) forgetServed(ctx context.Context, provider *v1alpha1.CapabilityProvider, but int64) error {
	list, err := k.recordsOfProvider(ctx, provider)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Revision == but {
			continue
		}
		if err := client.IgnoreNotFound(k.Client.Delete(ctx, &list[i])); err != nil {
			return fmt.Errorf("cannot delete a record of CapabilityProvider %s: %w", provider.Name, err)
		}
	}
	return nil
}
