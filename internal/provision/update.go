// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/observe"
)

// update brings what has drifted to what the manifest says: files of hosts first, then
// Nodes, and last what was applied, so that one that is killed is done again.
func (w *worker) update(ctx context.Context) (bool, error) {
	if w.sight.Observation.TakesOver {
		w.id = newID(w.Cluster.Namespace, w.Cluster.Name)
		return true, w.save(ctx, hostclusters.TakenOver(w.Cluster.Spec))
	}
	spec := w.Cluster.Spec
	all := hostclusters.Hosts(spec)
	if done, err := w.encrypt(ctx); err != nil || !done {
		return done, err
	}
	encrypting, err := w.sharedEncryption(ctx)
	if err != nil {
		return false, err
	}
	configuration, err := w.configuration(encrypting.File)
	if err != nil {
		return false, err
	}
	for _, host := range all {
		if !w.changesFiles(host.Name) {
			continue
		}
		of, with := configuration, encrypting
		if of == "" || !w.isControlPlane(host.Name) {
			of, with = "", encryption.Configuration{}
		}
		if done, err := w.updateHost(ctx, host.Name, of, with); err != nil || !done {
			return done, err
		}
	}
	// Hosts that join get what kubeadm has, which changes when all others have it.
	if err := w.saveConfiguration(ctx, configuration); err != nil {
		return false, err
	}
	saved := w.sight.Cluster.Saved.Spec
	if saved == nil {
		saved = &v1alpha1.HostClusterSpec{}
	}
	before := hostclusters.Hosts(*saved)
	for _, host := range all {
		var was v1alpha1.ClusterHost
		if i := slices.IndexFunc(before, func(h v1alpha1.ClusterHost) bool { return h.Name == host.Name }); i >= 0 {
			was = before[i]
		}
		if err := w.renewNode(ctx, host, was); err != nil {
			return false, err
		}
	}
	if err := w.uncordon(ctx); err != nil {
		return false, err
	}
	if err := w.approveServing(ctx); err != nil {
		return false, err
	}
	return true, w.save(ctx, spec)
}

// changesFiles tells whether files of a host differ from what the manifest says.
func (w *worker) changesFiles(host string) bool {
	return slices.ContainsFunc(w.sight.Changes, func(c hostclusters.Change) bool {
		return c.OnHost && (c.Host == "" || c.Host == host) && (!c.API || w.isControlPlane(host))
	})
}

// renewNode brings the labels and taints of a host's Node to what the manifest says.
func (w *worker) renewNode(ctx context.Context, host, was v1alpha1.ClusterHost) error {
	return changeNode(ctx, w.sight.Cluster.Client, host.Name, func(node *corev1.Node) bool { return hostclusters.Renew(node, host, was) })
}

// save keeps in the cluster what was applied, and by whom.
func (w *worker) save(ctx context.Context, applied v1alpha1.HostClusterSpec) error {
	spec, err := json.Marshal(hostclusters.Lasting(applied))
	if err != nil {
		return err
	}
	wanted := map[string]string{"id": w.id, "manager": cmp.Or(w.Manager, observe.Manager), "spec": string(spec)}
	maps := w.sight.Cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := maps.Get(ctx, observe.SavedName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: observe.SavedName}, Data: wanted}
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		object.Data = wanted
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot write the ConfigMap %s in kube-system: %w", observe.SavedName, err)
	}
	w.Report(Event{Message: "what was applied is saved in the cluster"})
	return nil
}
