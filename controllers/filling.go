// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// fill returns a layer's bundle as the rules see a source, and what the layer holds of
// it. The source is nil where there is no such bundle; where something else is missing
// it has no digest, and says what, and there is no content.
func (r *AddonsLayerReconciler) fill(ctx context.Context, layer *v1alpha1.AddonsLayer) (*layers.Source, content, error) {
	request, err := r.fillingRequest(ctx, layer)
	if err != nil || request.Bundle == nil {
		return nil, nil, err
	}
	bundle := request.Bundle
	source := &layers.Source{Generation: bundle.Generation, ObservedGeneration: bundle.Generation, Ready: true, Revision: bundle.Spec.Version}
	key, err := fillingKey(request)
	if err != nil {
		return nil, nil, err
	}
	r.keepSought(layer, request)
	var waiting *bundles.Waiting
	digest, err := r.Artifacts.AssembledDigest(key, func() ([]directories.Manifest, error) { return bundles.Render(request) })
	if errors.As(err, &waiting) {
		source.Message = waiting.Reason
		return source, nil, nil
	}
	source.Digest = key
	if len(request.Objects) > 0 {
		// Objects change all the time, and what is read of them seldom does.
		request.Objects = nil
		if source.Digest, err = fillingKey(request, digest); err != nil {
			return nil, nil, err
		}
	}
	return source, filled{r: r, layer: layer, digestOfAll: key, revision: source.Revision}, nil
}

// fillingRequest gathers what a layer of a bundle is filled from.
func (r *AddonsLayerReconciler) fillingRequest(ctx context.Context, layer *v1alpha1.AddonsLayer) (bundles.Request, error) {
	bundle := &v1alpha1.ApplicationBundle{}
	found, err := r.getShared(ctx, layer.Spec.Source.Name, bundle)
	if err != nil {
		return bundles.Request{}, err
	}
	if !found {
		bundle = nil
	}
	return r.fillingRequestOf(ctx, layer, bundle)
}

// fillingRequestOf is fillingRequest of a bundle; nil for none.
func (r *AddonsLayerReconciler) fillingRequestOf(
	ctx context.Context, layer *v1alpha1.AddonsLayer, bundle *v1alpha1.ApplicationBundle,
) (bundles.Request, error) {
	request := bundles.RequestOf(layer, bundle)
	if bundle == nil {
		return request, nil
	}
	for _, name := range bundles.Applications(bundle, request.Path) {
		app := &v1alpha1.HelmApplication{}
		found, err := r.getShared(ctx, name, app)
		if err != nil {
			return request, err
		}
		if found {
			request.Applications[name] = catalogue.WithDefaults(app)
		}
	}
	var err error
	if request.Cluster, err = r.factsOf(ctx, placement.Of(layer, r.Settings.Namespace)); err != nil {
		return request, err
	}
	for of, name := range request.ClustersFor() {
		facts, err := r.factsOf(ctx, name)
		if err != nil {
			return request, err
		}
		if request.Clusters == nil {
			request.Clusters = map[string]bundles.Cluster{}
		}
		request.Clusters[of] = facts
	}
	request.Objects, err = r.seen(ctx, layer, request.Sought())
	return request, err
}

// fillingReader names who follows what a layer of a bundle is filled from. What is read
// for other layers than the one that is looked at counts, too, and so it is not among
// what that follows itself.
func fillingReader(layer string) informers.Follower {
	return informers.Follower{Kind: v1alpha1.AddonsLayerKind + "/filling", NamespacedName: types.NamespacedName{Name: layer}}
}

// seen reads the objects that templates of a layer read, as the layer's account, and
// follows them.
func (r *AddonsLayerReconciler) seen(ctx context.Context, layer *v1alpha1.AddonsLayer, sought []bundles.Sought) (map[string]bundles.Seen, error) {
	if len(sought) == 0 {
		return nil, nil
	}
	account, all := r.Settings.AccountFor(layer), make(map[string]bundles.Seen, len(sought))
	for _, one := range sought {
		if refused := one.Refusal(account.Name != ""); refused != "" {
			all[one.As] = bundles.Seen{Refused: refused}
			continue
		}
		all[one.As] = r.seenOne(ctx, layer, one, account)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return all, nil
}

func (r *AddonsLayerReconciler) seenOne(
	ctx context.Context, layer *v1alpha1.AddonsLayer, sought bundles.Sought, account types.NamespacedName,
) bundles.Seen {
	id, version, err := sought.ID()
	if err != nil {
		return bundles.Seen{Waits: err.Error()}
	}
	live, unserved, err := r.readAs(id, version, account, func(resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
		return r.follows.GetAs(ctx, fillingReader(layer.Name), id, resource, account)
	})
	if err != nil {
		return bundles.Seen{Waits: fmt.Sprintf("it cannot be read: %v", err)}
	}
	return sought.See(live, unserved)
}

// keepSought ends what was followed to fill a layer, and is not any more.
func (r *AddonsLayerReconciler) keepSought(layer *v1alpha1.AddonsLayer, request bundles.Request) {
	if _, before := r.filledBy.Load(layer.Name); !before && len(request.Objects) == 0 {
		return
	}
	ids := map[objects.ID]bool{}
	for _, one := range request.Sought() {
		if id, _, err := one.ID(); err == nil {
			ids[id] = true
		}
	}
	if len(ids) > 0 {
		r.filledBy.Store(layer.Name, struct{}{})
	} else {
		r.filledBy.Delete(layer.Name)
	}
	r.follows.KeepAs(fillingReader(layer.Name), ids, r.Settings.AccountFor(layer))
}

// observeBefore finds what the layer lists at the version of a bundle that is deployed, as
// long as it is on its way from that to one that is entered from it, or to other inputs.
func (o *observer) observeBefore(ctx context.Context) error {
	version := o.Layer.Status.Version
	if !sources.IsOfBundle(o.Layer) || o.Directory == nil || version == "" || o.Directory.Digest == o.Layer.Status.Digest {
		return nil
	}
	r := o.reads.unnoted()
	bundle, list := &v1alpha1.ApplicationBundle{}, &v1alpha1.ApplicationBundleList{}
	if found, err := r.getShared(ctx, o.Layer.Spec.Source.Name, bundle); err != nil || !found {
		return err
	}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list ApplicationBundles: %w", err)
	}
	if version == o.Directory.Revision && !bundles.HasChoice(bundles.LayerAt(bundle, o.Layer.Spec.Source.Path)) {
		return nil
	}
	all := make([]*v1alpha1.ApplicationBundle, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	before := bundles.Before(all, bundle, version)
	if before == nil {
		return nil
	}
	request, err := r.fillingRequestOf(ctx, o.Layer, before)
	if err != nil {
		return err
	}
	// What cannot be rendered, or put on its cluster, is not known to be left out, and is
	// guarded.
	manifests, err := bundles.RenderBefore(request)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	put, err := o.put(ctx, &directories.Directory{Manifests: manifests})
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err == nil {
		o.Before = put
	}
	return nil
}

// factsOf returns what templates may use of a cluster.
func (r *AddonsLayerReconciler) factsOf(ctx context.Context, name types.NamespacedName) (bundles.Cluster, error) {
	facts := bundles.Cluster{Name: name}
	if name.Name == "" {
		facts.Version = r.Cluster.Version()
		return facts, nil
	}
	cluster := &v1alpha1.RemoteCluster{}
	if err := r.Client.Get(ctx, name, cluster, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return facts, nil
		}
		return facts, fmt.Errorf("cannot read RemoteCluster %s: %w", name, err)
	}
	return bundles.FactsOf(cluster), nil
}

// getShared reads an object that has no namespace, and tells whether there is one.
// It is the cache's own, and must not be changed.
func (p *Process) getShared(ctx context.Context, name string, obj client.Object) (bool, error) {
	err := p.Client.Get(ctx, types.NamespacedName{Name: name}, obj, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read %T %s: %w", obj, name, err)
	}
	return true, nil
}

// layersOfBundle returns the layers of a bundle.
func (r *AddonsLayerReconciler) layersOfBundle(ctx context.Context, obj client.Object) []ctrl.Request {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexSource: obj.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the layers of a bundle", "bundle", obj.GetName())
		return nil
	}
	var found []string
	for i := range list.Items {
		if sources.IsOfBundle(&list.Items[i]) {
			found = append(found, list.Items[i].Name)
		}
	}
	return requests(found...)
}

// layersOfApplication returns the layers of the bundles that an application is in.
func (r *AddonsLayerReconciler) layersOfApplication(ctx context.Context, obj client.Object) []ctrl.Request {
	list := &v1alpha1.ApplicationBundleList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the bundles of an application", "application", obj.GetName())
		return nil
	}
	var found []ctrl.Request
	for i := range list.Items {
		bundle := &list.Items[i]
		for _, layer := range bundle.Spec.Layers {
			if slices.Contains(bundles.Applications(bundle, "./"+layer.Name), obj.GetName()) {
				found = append(found, r.layersOfBundle(ctx, bundle)...)
				break
			}
		}
	}
	return found
}
