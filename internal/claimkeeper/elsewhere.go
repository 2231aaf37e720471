// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package claimkeeper

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/primaries"
)

// viewName is the name by which connections know what claims watch of a cluster.
const viewName = "claims"

// awayError says that a cluster cannot be read and written now.
type awayError struct {
	reason, message string
	// soon is true where that is about to change by itself: this process has yet to connect.
	soon bool
}

// Error says why.
func (e *awayError) Error() string { return e.message }

func (e *awayError) problem() *capabilities.Problem {
	return &capabilities.Problem{Reason: e.reason, Message: e.message}
}

// connection returns the connection to another cluster. The error is an *awayError where that
// cannot be used now.
func (k *Keeper) connection(ctx context.Context, cluster string) (*informers.Connection, error) {
	is, err := k.isCluster(ctx, cluster)
	said := "RemoteCluster " + cluster
	switch {
	case err != nil:
		return nil, err
	case !is || k.Remotes == nil:
		return nil, &awayError{reason: v1alpha1.ReasonClusterNotFound, message: said + " does not exist"}
	case !k.Remotes.Judged(cluster):
		return nil, &awayError{reason: v1alpha1.ReasonClusterNotReady, message: said + " is being connected", soon: true}
	}
	found := k.Remotes.Get(cluster)
	if found == nil {
		why := "cannot be used yet: it says why"
		if mistaken := k.Remotes.MistakenFor(cluster); mistaken != "" {
			why = "cannot be used: " + mistaken
		}
		return nil, &awayError{reason: v1alpha1.ReasonClusterNotReady, message: said + " " + why}
	}
	if err := found.Answers(); err != nil {
		return nil, &awayError{reason: v1alpha1.ReasonClusterUnreachable, message: said + ": " + err.Error()}
	}
	return found, nil
}

// isCluster tells whether there is a RemoteCluster.
func (k *Keeper) isCluster(ctx context.Context, cluster string) (bool, error) {
	namespace, name, _ := strings.Cut(cluster, "/")
	err := k.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &v1alpha1.RemoteCluster{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot read RemoteCluster %s: %w", cluster, err)
	}
	return !apierrors.IsNotFound(err), nil
}

// kindsOn returns the kinds that claims have on another cluster, which are watched once a claim
// has one.
func (k *Keeper) kindsOn(ctx context.Context, cluster string) (*informers.Kinds, error) {
	found, err := k.connection(ctx, cluster)
	if err != nil {
		return nil, err
	}
	only, err := claimed()
	if err != nil {
		return nil, err
	}
	return found.View(viewName, informers.View{
		Selector: only, Whole: []schema.GroupVersionKind{secretKind.WithVersion("v1")}, Wiring: k.wired,
	})
}

// accountsOn returns the accounts of a cluster, and what messages of them begin with.
func (k *Keeper) accountsOn(ctx context.Context, cluster string) (*informers.Accounts, string, error) {
	if cluster == "" {
		return k.Accounts, "", nil
	}
	found, err := k.connection(ctx, cluster)
	if err != nil {
		return nil, "", err
	}
	return found.Accounts, "on RemoteCluster " + cluster + ": ", nil
}

// watch has the kinds of a claim's objects watched, on the cluster that they are on and where
// its workloads read the binding, and returns which of them have namespaces.
func (v *visit) watch(ctx context.Context, look *primaries.Look, cluster string, more []schema.GroupVersionKind) (map[schema.GroupKind]objects.Scope, error) {
	if there := capabilities.ClusterOf(v.claim); there != "" && there != cluster && v.claim.Spec.ClusterBinding != "" {
		if _, err := v.k.objects.Watch(ctx, look, there, []schema.GroupVersionKind{secretKind.WithVersion("v1")}); err != nil {
			return nil, err
		}
	}
	return v.k.objects.Watch(ctx, look, cluster, more)
}

// leaveBehind gives up what a claim that is being deleted has on clusters that Strata does not
// know any more: there is no way to them.
func (v *visit) leaveBehind(ctx context.Context) error {
	gone := map[string]bool{}
	kept := make([]v1alpha1.Dependent, 0, len(v.claim.Status.Objects))
	for _, known := range v.claim.Status.Objects {
		if _, asked := gone[known.Cluster]; !asked && known.Cluster != "" {
			is, err := v.k.isCluster(ctx, known.Cluster)
			if err != nil {
				return err
			}
			gone[known.Cluster] = !is
		}
		if gone[known.Cluster] {
			v.k.Events.Eventf(v.claim, nil, corev1.EventTypeWarning, v1alpha1.ReasonClusterNotFound, "Reconcile",
				"leaves %s behind: the RemoteCluster has gone", primaries.IdentityOf(known))
			continue
		}
		kept = append(kept, known)
	}
	if len(kept) == len(v.claim.Status.Objects) {
		return nil
	}
	status := v.claim.Status.DeepCopy()
	status.Objects, status.ObjectsMAC = kept, v.sign(kept)
	return v.persist(ctx, *status)
}

// clusterChanged passes that a cluster comes, goes, or is reached or not.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.RemoteCluster), e.ObjectNew.(*v1alpha1.RemoteCluster)
	return meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.ReadyCondition) != meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.ReadyCondition)
}}

// claimsOnCluster returns the claims that have something on a cluster, or wait for it.
func (k *Keeper) claimsOnCluster(ctx context.Context, obj client.Object) []ctrl.Request {
	return k.claimsOn(ctx, client.ObjectKeyFromObject(obj).String())
}

func (k *Keeper) claimsOn(ctx context.Context, cluster string) []ctrl.Request {
	return k.claims(ctx, func(claim *v1alpha1.CapabilityClaim) bool {
		return capabilities.IsOn(claim, cluster) || capabilities.WaitsForCluster(claim)
	})
}

// wakeUps have claims looked at again, from the start of their controller on: it looks at all of
// them then.
type wakeUps struct {
	mu sync.Mutex
	q  queue
}

func (w *wakeUps) to(q queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.q = q
}

// wake has some claims looked at again.
func (w *wakeUps) wake(claims []informers.Follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.q == nil {
		return
	}
	for _, one := range claims {
		w.q.Add(ctrl.Request{NamespacedName: one.NamespacedName})
	}
}

// takeWakeUps has claims looked at again whose objects somebody else has, and those of clusters
// that this process has connected to: what an earlier connection watched, this one does not yet.
func (k *Keeper) takeWakeUps(ctx context.Context, q queue) error {
	k.wakeUps.to(q)
	if k.Remotes == nil {
		return nil
	}
	k.Remotes.OnConnect(func(cluster string) {
		k.follows.Forget(cluster)
		for _, request := range k.claimsOn(ctx, cluster) {
			q.Add(request)
		}
	})
	return nil
}
