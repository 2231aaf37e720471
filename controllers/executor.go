// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/round"
)

// clusterOf returns how objects of the cluster that serves kinds are read and written.
func clusterOf(k *informers.Kinds) apply.Cluster {
	return apply.Cluster{Client: k.Client, Reader: k.Past, Seen: k.Get, Version: k.Version}
}

// writesTo returns how objects of another cluster are read and written.
func (p *Process) writesTo(cluster string) (apply.Cluster, error) {
	found := p.remotes.Get(cluster)
	if found == nil {
		return apply.Cluster{}, fmt.Errorf("RemoteCluster %s: %w", cluster, informers.ErrNotConnected)
	}
	if err := found.Answers(); err != nil {
		return apply.Cluster{}, fmt.Errorf("RemoteCluster %s: %w", cluster, err)
	}
	return clusterOf(found.Kinds), nil
}

// Executor returns what carries out a layer's plan, as the layer's account
// where it has one.
func (h *hands) Executor(ctx context.Context, o *layers.Observation) (round.Executor, error) {
	account := h.r.Settings.AccountFor(o.Layer)
	if account.Name == "" {
		return h.r.executor, nil
	}
	if o.Remote != nil && o.IsAway() {
		return h.r.executor, nil // nothing is done there, and releases here are suspended
	}
	if o.Remote != nil {
		return h.executorOn(ctx, o.Remote.Name.String(), account)
	}
	c, err := h.r.accounts.Client(account)
	if err != nil {
		return nil, err
	}
	if err := h.r.accounts.Check(ctx, account); err != nil {
		return nil, err
	}
	return h.r.executor.OnClusters(clusterOf(h.r.kinds).ActingAs(c), h.r.executor.Other), nil
}

// executorOn returns what carries out the plan of a layer of another cluster:
// there as an account of that cluster. What stays here, for Flux to install from,
// the controller itself writes.
func (h *hands) executorOn(ctx context.Context, cluster string, account types.NamespacedName) (round.Executor, error) {
	found := h.r.remotes.Get(cluster)
	if found == nil {
		return nil, fmt.Errorf("RemoteCluster %s: %w", cluster, informers.ErrNotConnected)
	}
	if err := found.Answers(); err != nil {
		return nil, fmt.Errorf("RemoteCluster %s: %w", cluster, err)
	}
	c, err := found.Accounts.Client(account)
	if err != nil {
		return nil, err
	}
	if err := found.Accounts.Check(ctx, account); err != nil {
		return nil, err
	}
	return h.r.executor.OnClusters(h.r.executor.Cluster, func(name string) (apply.Cluster, error) {
		if name == cluster && h.r.remotes.Get(cluster) != found {
			return apply.Cluster{}, fmt.Errorf("RemoteCluster %s: %w", cluster, informers.ErrNotConnected)
		}
		if name == cluster {
			return clusterOf(found.Kinds).ActingAs(c), nil
		}
		return h.r.writesTo(name)
	}), nil
}
