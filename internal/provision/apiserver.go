// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
)

// configuration returns kubeadm's ClusterConfiguration as it is to be, with the path of what
// encrypts; empty where it stays.
func (w *worker) configuration(encryption string) (string, error) {
	if !slices.ContainsFunc(w.sight.Changes, func(c hostclusters.Change) bool { return c.API }) {
		return "", nil
	}
	return hostclusters.WithAPIServer(w.sight.Cluster.Configuration, w.Cluster.Spec.APIServer, encryption)
}

// isControlPlane tells whether a host of the manifest runs an API server.
func (w *worker) isControlPlane(host string) bool {
	_, isWorker, err := hostclusters.ByName(w.Cluster, host)
	return err == nil && !isWorker
}

// awaitHealthy waits until the host of an action is healthy again.
func (w *worker) awaitHealthy(ctx context.Context, action hosts.Action) error {
	changes := w.sight.Changes
	plan, err := w.settle(ctx, action, true, false)
	if err != nil {
		return err
	}
	if note, settled := standing(plan, action); !settled {
		return fmt.Errorf("%s is not healthy with its new settings (%s): kubectl strata hosts logs has what its programs said", action.Host, note)
	}
	w.sight.Changes = changes // this run goes on with what it has begun
	return nil
}

// saveConfiguration writes kubeadm's ClusterConfiguration, where it has changed.
func (w *worker) saveConfiguration(ctx context.Context, configuration string) error {
	if configuration == "" {
		return nil
	}
	maps := w.sight.Cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := maps.Get(ctx, "kubeadm-config", metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.Data["ClusterConfiguration"] = configuration
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot write the ConfigMap kubeadm-config in kube-system: %w", err)
	}
	return nil
}
