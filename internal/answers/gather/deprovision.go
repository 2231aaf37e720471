// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/deprovision"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

var (
	definitionList = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"}
	serviceList    = schema.GroupVersionKind{Version: "v1", Kind: "ServiceList"}
)

// looker looks up what becomes of objects of others on the cluster that Strata runs
// in, with the rights of who asks.
type looker struct {
	client client.Client
	s      *snapshot.Snapshot
	// definitions of the cluster, and why they are not known.
	definitions *metav1.PartialObjectMetadataList
	unread      error
}

// Departure adds what is found out about the layers of a removal that are on the cluster
// that Strata runs in. s has what was read of that.
func (c *Cluster) Departure(ctx context.Context, r *deprovision.Removal, s *snapshot.Snapshot, say func(format string, args ...any)) error {
	made, err := c.asks()
	if err != nil {
		return c.explain(err, snapshot.Layers)
	}
	look := &looker{client: made, s: s, definitions: &metav1.PartialObjectMetadataList{}}
	look.definitions.SetGroupVersionKind(definitionList)
	look.unread = made.List(ctx, look.definitions)
	r.Balancers, r.Seen = look.balancers(ctx), map[string]deprovision.Seen{}
	for i, layer := range r.Going {
		if placement.Of(layer, r.Namespace).Name != "" {
			continue
		}
		say("looking at layer %s, %d of %d", layer.Name, i+1, len(r.Going))
		seen, err := look.layer(ctx, r, layer)
		if err != nil {
			return c.explain(err, snapshot.Layers)
		}
		r.Seen[layer.Name] = seen
	}
	return nil
}

// balancers returns the Services of type LoadBalancer; none where they may not be
// listed.
func (l *looker) balancers(ctx context.Context) map[string]bool {
	found := map[string]bool{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(serviceList)
	if err := l.client.List(ctx, list); err != nil {
		return found
	}
	for i := range list.Items {
		if kind, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "type"); kind == "LoadBalancer" {
			found[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = true
		}
	}
	return found
}

func (l *looker) layer(ctx context.Context, r *deprovision.Removal, layer *v1alpha1.AddonsLayer) (deprovision.Seen, error) {
	var seen deprovision.Seen
	if layer.Spec.OnDeletion() != v1alpha1.DeletionPolicyDelete {
		return seen, nil
	}
	for _, hook := range layer.Spec.DeleteBefore {
		seen.Doomed = append(seen.Doomed, l.doomed(ctx, hook))
	}
	switch {
	case r.ReleasesUnread != "":
		return seen, nil // which is told of all layers
	case l.unread != nil:
		seen.Unknown = append(seen.Unknown, fmt.Sprintf("which definitions would go, and objects of others with them (%v)", l.unread))
		return seen, nil
	}
	found, err := impact.Lookup{
		Layer: layer, Departing: l.observation(layer).Departing(), Flux: l, Known: l, Definitions: l, Past: l.client, Mapper: l.client.RESTMapper(),
	}.Blockers(ctx)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		seen.Unknown = append(seen.Unknown, fmt.Sprintf("objects of others (%v)", err))
	case err != nil:
		return seen, err
	}
	seen.Blockers = found
	return seen, nil
}

// observation is what the rules see of a layer that is being deleted, as far as they
// ask what departs with it.
func (l *looker) observation(layer *v1alpha1.AddonsLayer) layers.Observation {
	going := layer.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: l.s.Now}
	o := layers.Observation{
		Now: l.s.Now, Layer: going,
		ObservedObjects: layers.ObservedObjects{Live: map[objects.ID]*unstructured.Unstructured{}},
	}
	for _, release := range l.s.Of(snapshot.Releases) {
		o.Live[objects.IDOf(release)] = release
	}
	for i := range l.definitions.Items {
		definition := &unstructured.Unstructured{Object: map[string]any{}}
		definition.SetGroupVersionKind(definitionList.GroupVersion().WithKind("CustomResourceDefinition"))
		definition.SetName(l.definitions.Items[i].Name)
		definition.SetLabels(l.definitions.Items[i].Labels)
		definition.SetAnnotations(l.definitions.Items[i].Annotations)
		definition.SetDeletionTimestamp(l.definitions.Items[i].DeletionTimestamp)
		o.Live[objects.IDOf(definition)] = definition
	}
	return o
}

// doomed counts what an entry of deleteBefore would delete; -1 where that is not to
// be found out.
func (l *looker) doomed(ctx context.Context, hook v1alpha1.DeleteBefore) int {
	gv, err := schema.ParseGroupVersion(hook.APIVersion)
	if err != nil {
		return -1
	}
	options := []client.ListOption{client.InNamespace(hook.Namespace)}
	if hook.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(hook.Selector)
		if err != nil {
			return -1
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gv.WithKind(hook.Kind + "List"))
	if err := l.client.List(ctx, list, options...); err != nil {
		if meta.IsNoMatchError(err) {
			return 0 // what is not served has no objects
		}
		return -1
	}
	count := 0
	for i := range list.Items {
		// An object that lacks what is asked for is not meant.
		if met, err := hooks.Meets(hook.Where, &list.Items[i]); err == nil && met {
			count++
		}
	}
	return count
}

// Get reads a HelmRelease from what was read already.
func (l *looker) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	live := l.s.Objects[objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: key.Namespace, Name: key.Name}]
	object, is := into.(*unstructured.Unstructured)
	if live == nil || !is {
		return apierrors.NewNotFound(snapshot.Releases.GroupResource(), key.String())
	}
	live.DeepCopyInto(object)
	return nil
}

// List returns HelmReleases, or the metadata of definitions, from what was read
// already.
func (l *looker) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	selector := asked.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	switch list := into.(type) {
	case *metav1.PartialObjectMetadataList:
		list.Items = l.definitions.Items
	case *unstructured.UnstructuredList:
		for _, release := range l.s.Of(snapshot.Releases) {
			if selector.Matches(labels.Set(release.GetLabels())) {
				list.Items = append(list.Items, *release)
			}
		}
	}
	return nil
}
