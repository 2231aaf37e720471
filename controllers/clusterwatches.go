// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/placement"
)

// SetupWithManager registers the controller and its watches.
func (r *RemoteClusterReconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.written = memory.NewClusters()
	r.prober = informers.NewProber(r.now, r.wakeCluster, r.Meters.Probed)
	r.executor = &apply.Executor{
		Cluster: apply.Cluster{Client: r.Client, Reader: r.Reader}, Other: r.writesTo, Keys: clusters.Keys,
		Strict: func(schema.GroupKind) bool { return false }, Valid: r.PlanValid,
	}
	c, err := looks.NewController("remotecluster", mgr, &v1alpha1.RemoteCluster{}, controllerOptions(r, r.Concurrent))
	if err != nil {
		return err
	}
	for _, watch := range []source.Source{
		source.Kind(r.Cache, client.Object(&v1alpha1.RemoteCluster{}), &handler.EnqueueRequestForObject{},
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
				predicate.LabelChangedPredicate{}, deletionBegun, foreignStatus)), // labels: --watch-label-selector
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(r.clustersOf), countChanged),
		source.Channel(r.clusterWakeups, &handler.EnqueueRequestForObject{}),
	} {
		if err := c.Watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return mgr.Add(r.prober)
}

// deletionBegun passes the begin of a deletion.
var deletionBegun = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}

// clustersOf returns the RemoteClusters that a layer has to do with.
func (r *RemoteClusterReconciler) clustersOf(_ context.Context, obj client.Object) []ctrl.Request {
	layer := obj.(*v1alpha1.AddonsLayer)
	names := layers.ClustersLeft(layer)
	if cluster := placement.Of(layer, r.Settings.Namespace); cluster.Name != "" {
		names = append(names, cluster)
	}
	found := make([]ctrl.Request, 0, len(names))
	for _, cluster := range names {
		found = append(found, ctrl.Request{NamespacedName: cluster})
	}
	return found
}

// countChanged passes what RemoteClusters say of layers.
var countChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.AddonsLayer), e.ObjectNew.(*v1alpha1.AddonsLayer)
		return !equality.Semantic.DeepEqual(was.Spec.Cluster, is.Spec.Cluster) || len(was.Status.Resources) != len(is.Status.Resources) ||
			was.Status.Cluster != is.Status.Cluster ||
			meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.DeployedCondition) != meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.DeployedCondition)
	},
}

// wakeBehind looks again at the clusters whose kubeconfigs lie on a cluster.
func (r *RemoteClusterReconciler) wakeBehind(ctx context.Context, cluster *v1alpha1.RemoteCluster) {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list RemoteClusters")
		return
	}
	for i := range list.Items {
		if behind := list.Items[i].Spec.KubeConfig.ClusterRef; behind != nil && behind.Name == cluster.Name {
			r.wakeCluster(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
}
