// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/dependents"
)

func (v *visit) account() types.NamespacedName {
	return v.k.account(v.record.bound.Spec)
}

// executor returns what carries out a plan as the provider's account, on each cluster as the
// one of that; or what is wrong with one of them.
func (v *visit) executor(ctx context.Context, plan dependents.Plan) (*apply.Executor, *capabilities.Problem, error) {
	home, failure, err := v.client(ctx, "")
	if failure != nil || err != nil {
		return nil, failure, err
	}
	others := map[string]apply.Cluster{}
	for _, action := range plan.Actions {
		name := action.ID.Cluster
		if _, known := others[name]; known || name == "" {
			continue
		}
		as, failure, err := v.client(ctx, name)
		if failure != nil || err != nil {
			return nil, failure, err
		}
		kinds, err := v.k.kindsOn(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		others[name] = apply.Cluster{Version: kinds.Version}.ActingAs(as)
	}
	return v.k.executor.OnClusters(v.k.executor.ActingAs(home), func(cluster string) (apply.Cluster, error) { return others[cluster], nil }), nil, nil
}

// accountOf is an account of a cluster.
type accountOf struct {
	cluster string
	types.NamespacedName
}

// client returns what reads and writes on a cluster as the provider's account; or what is
// wrong with it.
func (v *visit) client(ctx context.Context, cluster string) (client.Client, *capabilities.Problem, error) {
	account := v.account()
	if account.Name == "" {
		return nil, &capabilities.Problem{
			Reason: v1alpha1.ReasonServiceAccountNotFound, Stalled: true,
			Message: fmt.Sprintf("CapabilityProvider %s names no account that writes its bindings: spec.serviceAccountName", v.record.bound.Provider),
		}, nil
	}
	if err := v.k.checkAccount(account); err != nil {
		return nil, &capabilities.Problem{Reason: v1alpha1.ReasonAccessDenied, Message: err.Error(), Stalled: true}, nil
	}
	of, at, err := v.k.accountsOn(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	as, err := of.Client(account)
	if err != nil {
		return nil, &capabilities.Problem{Reason: v1alpha1.ReasonAccessDenied, Message: err.Error(), Stalled: true}, nil
	}
	key := accountOf{cluster, account}
	if last, known := v.k.there.get(key); known && v.now.Sub(last) < accountKept {
		return as, nil, nil
	}
	err = of.Check(ctx, account)
	var missing *accounts.MissingError
	if errors.As(err, &missing) {
		return nil, &capabilities.Problem{Reason: v1alpha1.ReasonServiceAccountNotFound, Message: at + err.Error()}, nil
	}
	if err == nil {
		v.k.there.set(key, v.now)
	}
	return as, nil, err
}
