// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ServerVersioner answers the one question that cannot be watched.
type ServerVersioner interface {
	ServerVersion() (*version.Info, error)
}

// ClusterVersion knows the API server's version. It asks once per period and
// when a watch had to reconnect, and wakes all layers when the answer differs.
// It is safe for concurrent use.
type ClusterVersion struct {
	server ServerVersioner
	period time.Duration
	ask    chan struct{}

	mu      sync.RWMutex
	version string
	changes chan event.GenericEvent
}

// NewClusterVersion asks for the version once, and returns what keeps asking
// when it is started.
func NewClusterVersion(server ServerVersioner, period time.Duration) (*ClusterVersion, error) {
	c := &ClusterVersion{
		server: server, period: period,
		ask: make(chan struct{}, 1), changes: make(chan event.GenericEvent, 1),
	}
	info, err := server.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the cluster's version: %w", err)
	}
	c.version = info.GitVersion
	return c, nil
}

// Version returns the last known version, such as v1.36.3.
func (c *ClusterVersion) Version() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.version
}

// Ask asks soon; it does not block.
func (c *ClusterVersion) Ask() {
	select {
	case c.ask <- struct{}{}:
	default:
	}
}

// Start asks until the context ends.
func (c *ClusterVersion) Start(ctx context.Context) error {
	ticker := time.NewTicker(c.period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-c.ask:
		}
		c.look(ctx)
	}
}

func (c *ClusterVersion) look(ctx context.Context) {
	info, err := c.server.ServerVersion()
	if err != nil {
		log.FromContext(ctx).V(1).Info("cannot ask for the cluster's version", "error", err.Error())
		return
	}
	c.mu.Lock()
	changed := c.version != info.GitVersion
	c.version = info.GitVersion
	c.mu.Unlock()
	if !changed {
		return
	}
	log.FromContext(ctx).Info("the cluster's version has changed", "version", info.GitVersion)
	select {
	case c.changes <- event.GenericEvent{Object: &v1alpha1.AddonsLayer{}}:
	case <-ctx.Done():
	}
}
