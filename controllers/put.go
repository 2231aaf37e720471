// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// observeRemote looks at the cluster that the layer belongs on.
func (o *observer) observeRemote(ctx context.Context) error {
	for _, name := range layers.ClustersLeft(o.Layer) {
		cluster, err := read(ctx, o.reads, clusterQuestion{name})
		if err != nil {
			return err
		}
		o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, cluster)
	}
	name := placement.Of(o.Layer, o.Settings.Namespace)
	if name.Name == "" {
		return nil
	}
	cluster, err := read(ctx, o.reads, clusterQuestion{name})
	if err != nil {
		return err
	}
	o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, cluster)
	// It is asked for first: what is judged in between would be taken for not connected.
	o.judged = o.r.remotes.Judged(name.String())
	o.Remote = &layers.Remote{
		Name: name, Object: cluster, Connected: o.r.remotes.Get(name.String()) != nil, Mistaken: o.r.remotes.MistakenFor(name.String()),
	}
	if cluster != nil {
		o.ClusterVersion = cluster.Status.Version
	}
	return nil
}

// observeTargets looks at the clusters that releases of the layer install on. Of one
// that it left before it was deployed there nothing else may tell.
func (o *observer) observeTargets(ctx context.Context) error {
	for _, name := range layers.Targets(*o.Observation) {
		cluster, err := read(ctx, o.reads, clusterQuestion{name})
		if err != nil {
			return err
		}
		o.Forsaken[name.String()] = layers.IsForsaken(o.Layer, cluster)
	}
	return nil
}

// cluster returns the cluster that the layer belongs on, as IDs name it.
func (o *observer) cluster() string {
	if o.Remote == nil {
		return ""
	}
	return placement.ClusterName(o.Remote.Name)
}

// lost notes that something on another cluster could not be read.
func (o *observer) lost(cluster string, err error) {
	if o.Remote != nil && o.Remote.Name.String() == cluster {
		o.Remote.Err = err
	}
}

// put puts a directory on the cluster that the layer names.
func (o *observer) put(ctx context.Context, dir *directories.Directory) (*directories.Directory, error) {
	return o.putOn(ctx, placement.ClusterName(placement.Of(o.Layer, o.Settings.Namespace)), dir)
}

// putOn puts a directory on a cluster, with copies of what it reads beside it.
func (o *observer) putOn(ctx context.Context, cluster string, dir *directories.Directory) (*directories.Directory, error) {
	if cluster == "" || dir == nil {
		return dir, nil
	}
	place := o.r.placeOn(o.Layer, cluster)
	given, err := o.give(ctx, place, place.Reads(dir))
	if err != nil {
		return nil, err
	}
	place.Given = given
	return place.Put(dir)
}

// placeOn returns a cluster as a place for what a layer lists.
func (r *AddonsLayerReconciler) placeOn(layer *v1alpha1.AddonsLayer, cluster string) placement.Place {
	namespace, name, _ := strings.Cut(cluster, "/")
	return placement.Place{
		Layer: layer.Name, Cluster: types.NamespacedName{Namespace: namespace, Name: name}, Account: r.Settings.AccountFor(layer).Name,
		OwnNamespaceOnly: r.Settings.NoCrossNamespaceRefs,
		Lists:            func(id objects.ID) bool { return len(r.listings.WhoLists(id, "")) > 0 },
	}
}

// layersOn returns the layers of a RemoteCluster.
func (p *Process) layersOn(ctx context.Context, obj client.Object) []ctrl.Request {
	return append(p.listRequests(ctx, client.MatchingFields{indexCluster: obj.GetName()}), p.layersThatRead(ctx, obj)...)
}

// layersThatRead returns the layers of the installation of a bundle that has made a cluster,
// where the bundle reads of clusters that it makes. Those of other clusters read of their own.
func (p *Process) layersThatRead(ctx context.Context, cluster client.Object) []ctrl.Request {
	maker, bundle := &v1alpha1.AddonsLayer{}, &v1alpha1.ApplicationBundle{}
	name := cluster.GetLabels()[v1alpha1.LayerLabel]
	if found, err := p.getShared(ctx, name, maker); name == "" || err != nil || !found || !sources.IsOfBundle(maker) {
		return nil
	}
	if found, err := p.getShared(ctx, maker.Spec.Source.Name, bundle); err != nil || !found || !bundles.ReadsClusters(bundle) {
		return nil
	}
	list := &v1alpha1.AddonsLayerList{}
	if err := p.Client.List(ctx, list, client.MatchingFields{indexSource: bundle.Name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a bundle", "bundle", bundle.Name)
		return nil
	}
	var found []string
	for i := range list.Items {
		if sources.InstanceOf(&list.Items[i]) == sources.InstanceOf(maker) {
			found = append(found, list.Items[i].Name)
		}
	}
	return requests(found...)
}

// awaitsConnection tells whether the layer's cluster had yet to be looked at by this process
// when the observation was made: to say that it cannot be reached would be too early. Where
// something comes, goes or changes hands, all others must have been looked at by then, too: two
// may be the same cluster.
func (o *observer) awaitsConnection(ctx context.Context) bool {
	if o.Remote != nil && o.Remote.Object != nil && !o.Remote.Connected && !o.judged {
		return true
	}
	return o.NeedsOthers() && (!o.r.allSeen(ctx) || !maps.EqualFunc(o.Twins, o.r.remotes.Twins(), slices.Equal))
}
