// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/round"
)

// RemoteClusterReconciler keeps the connections to other clusters, and says how
// they fare.
type RemoteClusterReconciler struct {
	*Process
	// Allow opens what kubeconfigs may otherwise not do.
	Allow kubeconfig.Allow
	// Reach says where other clusters may be.
	Reach reach.Allowed

	executor *apply.Executor
	prober   *informers.Prober
	written  *memory.Clusters
}

// Reconcile looks at one RemoteCluster.
func (r *RemoteClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *RemoteClusterReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	cluster := &v1alpha1.RemoteCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		if !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("cannot read RemoteCluster %s: %w", req.NamespacedName, err)
		}
		r.forget(req.NamespacedName)
		return 0, nil
	}
	cluster = r.written.Newest(cluster)
	// One that another process looks after is connected to all the same: layers of
	// this one may be on it.
	isOwn := r.isOwn(cluster)
	if isOwn && cluster.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(cluster, v1alpha1.ClusterFinalizer) {
		patched := cluster.DeepCopy()
		controllerutil.AddFinalizer(patched, v1alpha1.ClusterFinalizer)
		err := apply.PatchLocked(ctx, r.Client, patched, cluster)
		if err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		r.written.Wrote(patched)
		cluster = patched
	}
	o, err := r.observe(ctx, cluster)
	if err != nil {
		return 0, err
	}
	r.remotes.See(req.String())
	if !isOwn {
		return jittered(clusters.Again(cluster, clusters.Decide(o), r.now())), nil
	}
	if !cluster.DeletionTimestamp.IsZero() {
		if o.Left, err = r.left(ctx, cluster); err != nil {
			return 0, err
		}
		if len(o.Left) == 0 {
			return 0, r.finalize(ctx, o)
		}
	}
	if err := r.letCopyGo(ctx, o); err != nil {
		return 0, err
	}
	after, err := r.carryOut(ctx, o)
	if err != nil {
		return 0, err
	}
	decided, err := r.settleIdentity(ctx, o)
	if decided {
		after = round.LookAgain
	}
	return after, err
}

// settleIdentity claims a cluster for this hub, and uses up what people have said of
// it. It tells whether there was something to do.
func (r *RemoteClusterReconciler) settleIdentity(ctx context.Context, o clusters.Observation) (bool, error) {
	verdict := clusters.Judge(o)
	name := client.ObjectKeyFromObject(o.Cluster)
	if connected := r.remotes.Raw(name.String()); verdict.Claim && connected != nil {
		claimed, err := connected.Claim(ctx, o.Identity, o.Hub)
		connected.Gate.Claimed(claimed, err, r.now())
		if err != nil && !apierrors.IsForbidden(err) {
			// Somebody else may have been faster.
			return false, errors.Join(fmt.Errorf("cannot claim the cluster of RemoteCluster %s: %w", name, err), connected.AskIdentity(ctx, r.now()))
		}
		return true, nil
	}
	if len(verdict.Consume) == 0 {
		return false, nil
	}
	patched := o.Cluster.DeepCopy()
	for _, key := range verdict.Consume {
		delete(patched.Annotations, key)
	}
	err := apply.PatchLocked(ctx, r.Client, patched, o.Cluster)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	r.written.Wrote(patched)
	return true, nil
}

// letClaimGo takes the claim off a cluster whose RemoteCluster goes.
func (r *RemoteClusterReconciler) letClaimGo(ctx context.Context, o clusters.Observation) error {
	name := client.ObjectKeyFromObject(o.Cluster)
	connected := r.remotes.Raw(name.String())
	// Of two that go at once the last one finds that there is no other one.
	r.wakeTwins(ctx, r.remotes.Identified(name.String(), ""))
	o.Twins = r.remotes.Named(o.Recorded)
	if connected == nil || !clusters.LetsGo(o) {
		return nil
	}
	_, err := connected.Claim(ctx, o.Identity, "")
	if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(fmt.Errorf("cannot take the claim off the cluster of RemoteCluster %s: %w", name, err), connected.AskIdentity(ctx, r.now()))
}

// letCopyGo lets a copy go that somebody has deleted, so that it can be made anew.
func (r *RemoteClusterReconciler) letCopyGo(ctx context.Context, o clusters.Observation) error {
	if o.Live == nil || o.Live.GetDeletionTimestamp() == nil {
		return nil
	}
	releases, err := r.releasesThrough(ctx, o.Cluster)
	if err != nil {
		return err
	}
	if !clusters.LetsCopyGo(o, releases) {
		return r.refreshCopy(ctx, o)
	}
	return r.takeFinalizer(ctx, o.Live)
}

// refreshCopy has a copy follow the Secret that somebody has deleted and that stays
// for now.
func (r *RemoteClusterReconciler) refreshCopy(ctx context.Context, o clusters.Observation) error {
	refreshed := clusters.Refreshed(o)
	if refreshed == nil {
		return nil
	}
	err := apply.PatchLocked(ctx, r.Client, refreshed, o.Live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot refresh %s: %w", clusters.CopyOf(o.Cluster), err)
	}
	return nil
}

// takeFinalizer takes Strata's finalizer off a copy of a kubeconfig.
func (r *RemoteClusterReconciler) takeFinalizer(ctx context.Context, copied *unstructured.Unstructured) error {
	patched := copied.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.KubeConfigFinalizer)
	err := apply.PatchLocked(ctx, r.Client, patched, copied)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot take the finalizer off Secret %s/%s: %w", copied.GetNamespace(), copied.GetName(), err)
	}
	return nil
}

// forget lets go of a cluster that is gone.
func (r *RemoteClusterReconciler) forget(name types.NamespacedName) {
	r.prober.Stop(name)
	r.Meters.ForgetCluster(name.String())
	r.written.Forget(name)
	r.wakeTwins(context.Background(), r.remotes.Identified(name.String(), ""))
	r.remotes.Disconnect(name.String())
	r.follows.Keep(clusterReader(name), nil)
	r.follows.Forget(name.String())
}

// carryOut does what a decision says: what is to be known comes before what is
// done, and what was done after it.
func (r *RemoteClusterReconciler) carryOut(ctx context.Context, o clusters.Observation) (time.Duration, error) {
	decision := clusters.Decide(o)
	status, before := decision.Status, o.Cluster.Status.DeepCopy()
	results, err := r.executor.Carry(ctx, o.Cluster.Name, decision.Plan, func(ctx context.Context) error {
		if equality.Semantic.DeepEqual(resourceNames(o.Cluster.Status.Resources), resourceNames(status.Resources)) {
			return nil
		}
		return r.persist(ctx, o.Cluster, status)
	})
	if err != nil {
		return 0, err
	}
	r.recent.Wrote(results, r.now())
	status.Resources = layers.Resources(dependents.Record(decision.Plan.Inventory, results))
	again := jittered(clusters.Again(o.Cluster, decision, r.now()))
	if len(results) == 0 && clusters.OnlyCounted(o.Cluster.Status, status) {
		if late := r.written.PutOff(o.Cluster, o.Now, clusters.CountLag); late > 0 {
			return min(late, again), nil
		}
	}
	if err := r.persist(ctx, o.Cluster, status); err != nil {
		return 0, err
	}
	r.tell(o.Cluster, before.Conditions)
	for _, result := range results {
		if result.Err != nil {
			return 0, result.Err
		}
	}
	if len(results) > 0 {
		// A write that changes nothing wakes nobody.
		return round.LookAgain, nil
	}
	return again, nil
}

// left names the layers and claims that still have something on a cluster, and the
// HelmReleases that are installed through it.
func (r *RemoteClusterReconciler) left(ctx context.Context, cluster *v1alpha1.RemoteCluster) ([]string, error) {
	name := client.ObjectKeyFromObject(cluster)
	list := &v1alpha1.AddonsLayerList{}
	// The index does not know where a layer is whose status does not count.
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the layers of RemoteCluster %s: %w", name, err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(layer v1alpha1.AddonsLayer) bool {
		// This controller never learns where the layer of another one is that has another key.
		return v1alpha1.IsForeign(layer.Status.Conditions) && !r.isOwn(&layer) && placement.Of(&layer, r.Settings.Namespace) != name
	})
	releases, err := r.releasesThrough(ctx, cluster)
	if err != nil {
		return nil, err
	}
	claims := &v1alpha1.CapabilityClaimList{}
	if err := r.Client.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list CapabilityClaims: %w", err)
	}
	some := make([]*v1alpha1.CapabilityClaim, 0, len(claims.Items))
	for i := range claims.Items {
		some = append(some, &claims.Items[i])
	}
	return append(clusters.Left(cluster, list.Items, releases, r.Settings.Namespace), clusters.ClaimsLeft(cluster, some)...), nil
}

// releasesThrough returns the HelmReleases that are installed on a cluster.
func (r *RemoteClusterReconciler) releasesThrough(ctx context.Context, cluster *v1alpha1.RemoteCluster) ([]unstructured.Unstructured, error) {
	all, err := r.kinds.List(ctx, kinds.HelmReleaseKind, client.InNamespace(cluster.Namespace))
	if err != nil {
		return nil, err
	}
	return clusters.Through(client.ObjectKeyFromObject(cluster), all), nil
}

// finalize removes the copy of the kubeconfig, through which nothing is installed
// any more, and lets the RemoteCluster go.
func (r *RemoteClusterReconciler) finalize(ctx context.Context, o clusters.Observation) error {
	if err := r.letClaimGo(ctx, o); err != nil {
		return err
	}
	if o.Live != nil && o.Live.GetLabels()[v1alpha1.ClusterLabel] == o.Cluster.Name {
		if err := r.takeFinalizer(ctx, o.Live); err != nil {
			return err
		}
		uid := o.Live.GetUID()
		err := r.Client.Delete(ctx, o.Live.DeepCopy(), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot remove %s: %w", clusters.CopyOf(o.Cluster), err)
		}
	}
	patched := o.Cluster.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.ClusterFinalizer)
	err := apply.PatchLocked(ctx, r.Client, patched, o.Cluster)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the finalizer of RemoteCluster %s/%s: %w", o.Cluster.Namespace, o.Cluster.Name, err)
	}
	r.forget(client.ObjectKeyFromObject(o.Cluster))
	return nil
}

func resourceNames(resources []v1alpha1.Resource) []string {
	var found []string
	for _, resource := range resources {
		found = append(found, resource.Kind+"/"+resource.Namespace+"/"+resource.Name)
	}
	return found
}

// persist writes a status where it differs.
func (r *RemoteClusterReconciler) persist(ctx context.Context, cluster *v1alpha1.RemoteCluster, status v1alpha1.RemoteClusterStatus) error {
	if equality.Semantic.DeepEqual(cluster.Status, status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	patched := cluster.DeepCopy()
	patched.Status = status
	err := apply.PatchStatus(ctx, r.Client, patched, cluster)
	if err == nil {
		r.written.Wrote(patched)
		*cluster = *patched
	}
	return client.IgnoreNotFound(err)
}
