// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/providers"
)

// inquiry is what was last learned of a plug-in.
type inquiry struct {
	// described is what it serves; nil until it has said so once.
	described *pluginv1.DescribeResponse
	// err is what was wrong when it was last looked after; nil for nothing.
	err error
	// next is when it is looked after again.
	next time.Time
	// asking is true while it is, and known once that has ended.
	asking, known bool
}

// inquiries are those of all plug-ins, by the keys of their references.
type inquiries struct {
	mu sync.Mutex
	of map[string]*inquiry
}

// get returns what is known of a plug-in.
func (i *inquiries) get(key string) inquiry {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known := i.of[key]; known != nil {
		return *known
	}
	return inquiry{}
}

// inquire returns what is known of a provider's plug-in, which is looked after beside that where
// it is time to: nobody waits for one that is fetched or hangs. The provider is looked at again
// then, and its claims where something else is known.
func (k *Keeper) inquire(ctx context.Context, of providers.Reference, capability string) inquiry {
	all := &k.plugins.inquiries
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of == nil {
		all.of = map[string]*inquiry{}
	}
	one := all.of[of.Key()]
	if one == nil {
		one = &inquiry{}
		all.of[of.Key()] = one
	}
	if one.asking || one.known && k.now().Before(one.next) {
		return *one
	}
	one.asking = true
	ctx = context.WithoutCancel(ctx) // it ends by itself
	go func() {
		described, err := k.Plugins.Describe(ctx, of)
		// Also of one that has not begun: what runs of it by another key must end.
		err = errors.Join(err, k.Plugins.Tend(ctx, of))
		all.mu.Lock()
		isOther := err == nil && !proto.Equal(one.described, described)
		if err == nil {
			one.described, one.next = described, k.now().Add(k.safetyNet())
		} else {
			one.next = k.now().Add(retryOf(err, k.now()))
		}
		one.err, one.asking, one.known = err, false, true
		all.mu.Unlock()
		k.providerWakeUps.wake([]informers.Follower{{NamespacedName: types.NamespacedName{Name: of.Provider}}})
		if isOther {
			k.wakeUps.wake(k.readersOf(ctx, capability))
		}
	}()
	return *one
}

// reference returns the reference to the plug-in of a provider, of which spec is what counts for a
// claim. The keys that must have signed it, and what it may use, are those that the provider has
// now.
func (k *Keeper) reference(ctx context.Context, provider string, spec v1alpha1.CapabilityProviderSpec) providers.Reference {
	account := k.account(spec)
	of := providers.Reference{Provider: provider, Namespace: account.Namespace, Account: account.Name, CapabilityPlugin: *spec.Plugin.DeepCopy()}
	current := &v1alpha1.CapabilityProvider{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: provider}, current, client.UnsafeDisableDeepCopy); err == nil && current.Spec.Plugin != nil {
		now := current.Spec.Plugin.DeepCopy()
		if of.Image != "" && now.Image != "" {
			of.Verify, of.PullSecretRef = now.Verify, now.PullSecretRef
		}
		of.Memory, of.Egress = now.Memory, now.Egress
		if credentials := current.Spec.CredentialsRef; credentials != nil {
			of.Credentials = credentials.Name
		}
	}
	return of
}
