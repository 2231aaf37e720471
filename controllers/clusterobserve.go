// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/reserved"
)

// observe gathers what the rules decide from, and connects.
func (r *RemoteClusterReconciler) observe(ctx context.Context, cluster *v1alpha1.RemoteCluster) (clusters.Observation, error) {
	name := client.ObjectKeyFromObject(cluster)
	o := clusters.Observation{Now: r.now(), Cluster: cluster, Key: r.Settings.DigestKey}
	id := clusters.CopyOf(cluster)
	live, err := r.follows.Get(ctx, clusterReader(name), id)
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if err != nil {
		o.Source.Err = err
		return o, nil
	}
	o.Live = live
	if live != nil {
		o.Stale = r.recent.IsStale(id, live.GetResourceVersion(), o.Now)
	} else {
		o.Stale = r.recent.IsStale(id, "", o.Now)
	}
	following := map[objects.ID]bool{id: true}
	access := r.observeSource(ctx, &o, following)
	r.follows.Keep(clusterReader(name), following)
	before, open := r.remotes.Raw(name.String()), r.remotes.Get(name.String())
	switch {
	case access != nil || live == nil:
	case open != nil: // the copy may have been changed since
		access = open.Access
	case o.CopyVerified():
		access, _ = r.read(live, placement.KubeConfigKey)
	default:
		o.Unverified = true
	}
	if o.Layers, err = r.countLayers(ctx, cluster); err != nil {
		return o, err
	}
	if o.Hub, err = r.hub(ctx); err != nil {
		return o, err
	}
	o.Recorded = r.remotes.RecordedFor(name.String(), cluster.UID, clusters.RecordedOn(live))
	if access == nil {
		r.prober.Stop(name)
		r.identify(ctx, &o, nil)
		return o, nil
	}
	return o, r.ask(ctx, &o, access, before)
}

// ask connects to the cluster and asks it how it is. before is the connection that
// there was; nil for none.
func (r *RemoteClusterReconciler) ask(ctx context.Context, o *clusters.Observation, access *kubeconfig.Access, before *informers.Connection) error {
	name := client.ObjectKeyFromObject(o.Cluster)
	facts := clusters.Access(access.Facts)
	o.Access = &facts
	select {
	case <-r.started: // until then it would wait for the watches of all clusters
	case <-ctx.Done():
		return ctx.Err()
	}
	connected, err := r.remotes.Connect(ctx, name.String(), access, r.Reach)
	if err != nil {
		o.Source.Err = err
		r.identify(ctx, o, nil)
		return nil //nolint:nilerr // it is in the status
	}
	if before != nil && before != connected {
		r.follows.Forget(name.String())
	}
	o.Answer = r.prober.Ask(name, connected, clusters.IntervalOf(o.Cluster), o.Cluster.Status)
	connected.SetError(o.Answer.Err)
	o.Unlocated = connected.Named() && !o.Answer.Located
	r.identify(ctx, o, connected)
	return nil
}

// identify has a connection let writes through where the cluster is the right one,
// and tells those who wait for that.
func (r *RemoteClusterReconciler) identify(ctx context.Context, o *clusters.Observation, connected *informers.Connection) {
	name := client.ObjectKeyFromObject(o.Cluster).String()
	remotes := r.remotes
	if connected != nil {
		o.Identity = connected.Gate.Identity(o.Now)
		if !r.isOwn(o.Cluster) {
			o.Identity.Unclaimable = true // whoever looks after it claims it
		}
	}
	r.wakeTwins(ctx, remotes.Identified(name, cmp.Or(o.Recorded, o.Identity.UID)))
	o.Twins = remotes.TwinsOf(name)
	verdict := clusters.Judge(*o)
	why := ""
	if verdict.Stops {
		why = verdict.Message
	}
	news := remotes.Mistakes(name, why)
	if connected != nil && connected.Gate.Judge(verdict, o.Answer, o.Now) {
		news = true
	}
	if news {
		r.wakeOn(ctx, o.Cluster)
		r.wakeBehind(ctx, o.Cluster)
	}
}

// observeSource reads the Secret that holds the kubeconfig, and returns what that
// says; nil where it says nothing that could be used.
func (r *RemoteClusterReconciler) observeSource(ctx context.Context, o *clusters.Observation, following map[objects.ID]bool) *kubeconfig.Access {
	cluster := o.Cluster
	name := client.ObjectKeyFromObject(cluster)
	ref := cluster.Spec.KubeConfig.SecretRef
	id := placement.KubeConfigSecret(cluster)
	if old := oldwords.InCluster(cluster); old != "" {
		o.Source.Err = errors.New(old)
		return nil
	}
	if cluster.Spec.KubeConfig.ClusterRef != nil {
		if id.Cluster == name.String() {
			o.Source.Err = errors.New("spec.kubeConfig.clusterRef names the RemoteCluster itself")
			return nil
		}
		outer := r.remotes.Get(id.Cluster)
		if outer == nil {
			o.Via = fmt.Sprintf("waits for RemoteCluster %s, which is not connected", id.Cluster)
			return nil
		}
		if err := outer.Answers(); err != nil {
			following[id] = true // as it was, when it is back
			o.Via = fmt.Sprintf("waits for RemoteCluster %s: %v", id.Cluster, err)
			return nil
		}
	}
	following[id] = true
	secret, err := r.follows.Get(ctx, clusterReader(name), id)
	if err != nil {
		o.Source.Err = err
		return nil
	}
	o.Source.Known = true
	if secret == nil {
		return nil
	}
	o.Source.Found = true
	access, err := r.read(secret, ref.Key)
	o.Source.Err = err
	var lacks *kubeconfig.KeyError
	o.Source.Empty = errors.As(err, &lacks) && lacks.IsEmpty()
	return access
}

// read reads the kubeconfig in a Secret, and judges where it leads.
func (r *RemoteClusterReconciler) read(secret *unstructured.Unstructured, key string) (*kubeconfig.Access, error) {
	found, err := secretData(secret)
	if err != nil {
		return nil, err
	}
	data, err := kubeconfig.Find(found, key)
	if err != nil {
		return nil, err
	}
	access, err := kubeconfig.Parse(data, r.Allow)
	if err != nil {
		return nil, err
	}
	if err := reach.Check(access.Config, r.Reach); err != nil {
		return nil, err
	}
	return access, nil
}

// countLayers counts the layers that name a cluster.
func (r *RemoteClusterReconciler) countLayers(ctx context.Context, cluster *v1alpha1.RemoteCluster) (v1alpha1.LayerCount, error) {
	var count v1alpha1.LayerCount
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexCluster: cluster.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return count, fmt.Errorf("cannot list the layers of RemoteCluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	for i := range list.Items {
		layer := &list.Items[i]
		if placement.Of(layer, r.Settings.Namespace) != client.ObjectKeyFromObject(cluster) {
			continue
		}
		count.Total++
		if meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeployedCondition) {
			count.Deployed++
		}
	}
	return count, nil
}

// secretData returns the data of a Secret.
func secretData(secret *unstructured.Unstructured) (map[string][]byte, error) {
	typed := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(secret.Object, typed); err != nil {
		return nil, errors.New("has data that is no base64")
	}
	return typed.Data, nil
}

// observeReferences finds out whether RemoteClusters have their kubeconfig from a
// Secret, whether they are in a Namespace, and for whom a name is kept.
func (o *observer) observeReferences(ctx context.Context, id objects.ID) error {
	for _, owner := range reserved.Owners(id) {
		exists, err := read(ctx, o.reads, ownerQuestion{id, owner.ID})
		if err != nil {
			return err
		}
		if exists {
			o.Owned[id] = owner.Keeps
		}
	}
	switch (schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
	case schema.GroupKind{Kind: "Secret"}:
		named, err := read(ctx, o.reads, kubeConfigQuestion{id})
		if err != nil {
			return err
		}
		if len(named) > 0 {
			o.KubeConfigs[id] = named
		}
	case schema.GroupKind{Kind: "Namespace"}:
		if id.Cluster != "" {
			return nil
		}
		some, err := read(ctx, o.reads, clustersInQuestion{id.Name})
		if err != nil {
			return err
		}
		o.ClusterNamespaces[id.Name] = some
	}
	return nil
}
