// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/provision"
)

// errGone says that nothing is left to say of a HostCluster.
var errGone = errors.New("the HostCluster is gone")

// finish does what the deletion of a HostCluster asks for, and lets it go.
func (k *keeper) finish(ctx context.Context) error {
	if k.object.Spec.DeletionPolicy == v1alpha1.HostDeletionReset {
		if err := k.reset(ctx); err != nil {
			return err
		}
		if err := k.takeBack(ctx, k.object); err != nil {
			return err
		}
	}
	if err := k.change(ctx, func(o *v1alpha1.HostCluster) { controllerutil.RemoveFinalizer(o, v1alpha1.HostClusterFinalizer) }); err != nil {
		return err
	}
	return errGone
}

// reset takes the cluster away from its hosts, where somebody has said which one.
func (k *keeper) reset(ctx context.Context) error {
	if k.object.Spec.Hold {
		return &problem{v1alpha1.ReasonHold, "spec.hold is set: the hosts are left as they are", false}
	}
	options, err := k.options(ctx)
	if err != nil {
		return err
	}
	defer options.Machines.Close()
	sight, err := observe.Look(ctx, observe.Options{Cluster: options.Cluster, Machines: options.Machines, Manager: options.Manager, Now: k.Now})
	if err != nil {
		return err
	}
	id := sight.Observation.ClusterID
	isOn := slices.ContainsFunc(sight.Observation.Hosts, func(h hosts.Host) bool { return h.Journal.ClusterID != "" || h.Initialised || h.Unreachable != "" })
	if !isOn && len(sight.Observation.Stops) == 0 {
		return nil // there is nothing of a cluster on any host
	}
	if len(sight.Observation.Stops) > 0 {
		return blocked("the hosts are not reset: %s", strings.Join(sight.Observation.Stops, "; "))
	}
	if id == "" {
		if id, err = k.handedOut(ctx, k.object); err != nil {
			return err
		}
	}
	if asked := k.object.Annotations[v1alpha1.ConfirmDeletionAnnotation]; id == "" || asked != id {
		return blocked("deletionPolicy is Reset: the annotation %s=%s has %d hosts reset, and the cluster is gone then with all that is in it; deletionPolicy Orphan leaves it",
			v1alpha1.ConfirmDeletionAnnotation, printable.Line(id, 200), len(sight.Observation.Hosts))
	}
	if err := k.isUnused(ctx); err != nil {
		return err
	}
	options.ID = id
	k.Events.Eventf(k.object, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Reconcile", "resets the hosts of %s", printable.Line(id, 200))
	_, err = provision.Reset(ctx, options, nil, func([]string) error { return nil })
	return err
}

// isUnused tells whether a RemoteCluster has the kubeconfig of the cluster.
func (k *keeper) isUnused(ctx context.Context) error {
	list := &v1alpha1.RemoteClusterList{}
	if err := k.Client.List(ctx, list, client.InNamespace(k.object.Namespace)); err != nil {
		return fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	for i := range list.Items {
		if from := list.Items[i].Spec.KubeConfig; from.ClusterRef == nil && from.SecretRef.Name == kubeconfigName(k.object) {
			return blocked("the hosts are not reset while RemoteCluster %s leads to their cluster: delete it first", list.Items[i].Name)
		}
	}
	return nil
}

// blocked is why a deletion waits.
func blocked(format string, values ...any) error {
	return &problem{v1alpha1.ReasonDeletionBlocked, fmt.Sprintf(format, values...), true}
}
