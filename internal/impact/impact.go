// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package impact looks up what the deletion of a layer would do to objects of
// others: which there are of the kinds that go with it, and which volumes. It reads
// past every cache, writes nothing, and imports the API and the pure rooms.
package impact

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// Page is how many objects one request asks for.
	Page = 500
	// Pages is how many requests are made for one resource: beyond that it is enough
	// to know that there are more.
	Pages = 4
)

// The labels that helm-controller puts on everything a HelmRelease makes, also
// on definitions of a chart's folder crds; and what Helm puts on what belongs
// to a release, so that uninstalling deletes it, unless it says otherwise.
const (
	OriginName      = "helm.toolkit.fluxcd.io/name"
	OriginNamespace = "helm.toolkit.fluxcd.io/namespace"
	HelmOwner       = "meta.helm.sh/release-name"
	HelmPolicy      = "helm.sh/resource-policy"
)

var (
	helmReleaseVersion = kinds.HelmReleaseKind.WithVersion("v2")
	crdVersion         = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	claimVersion       = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	claimResource      = schema.GroupResource{Resource: "persistentvolumeclaims"}
	statefulSetVersion = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
)

// Lookup is what is looked at.
type Lookup struct {
	// Layer that would be deleted, and Departing what it would have uninstalled or
	// would delete, as its observation says.
	Layer     *v1alpha1.AddonsLayer
	Departing []objects.ID
	// Flux reads HelmReleases past any cache, with their inventories; Known tells
	// whether there is one.
	Flux, Known client.Reader
	// Definitions lists the metadata of the definitions of the layer's cluster, past
	// any cache as well: a release may have made one a moment ago. Past reads that
	// cluster past any cache, and Mapper knows its kinds.
	Definitions, Past client.Reader
	Mapper            meta.RESTMapper
}

// departure is a Lookup under way.
type departure struct {
	Lookup
	releases map[types.NamespacedName]bool
	// definitions of the layer itself that it would delete.
	definitions map[string]bool
	// inventoried holds the definitions in the inventories of the releases.
	inventoried map[string]bool
	// mayHaveVolumes is true unless the inventories say that there are none.
	mayHaveVolumes bool
	// seen counts the releases whose inventories were looked at.
	seen int

	// found holds the objects that were found, and own those among them that
	// are the layer's.
	found []finding
	own   map[types.UID]bool
	// unseen counts what is there beyond what was looked at, and unknown says
	// why nothing was.
	unseen  map[class]int64
	unknown map[class]string
}

// class is what one blocker is about.
type class struct {
	resource schema.GroupResource
	fate     layers.Fate
}

// finding is an object that a layer's deletion concerns.
type finding struct {
	class
	namespace string
	uid       types.UID
	owners    []metav1.OwnerReference
}

// Blockers returns what stands in the way of the layer's deletion. What may not be
// listed is Unknown; an error passes.
func (l Lookup) Blockers(ctx context.Context) ([]layers.Blocker, error) {
	return l.find(ctx, (*departure).readInventories, (*departure).lookUpCustomObjects, (*departure).lookUpClaims)
}

// Volumes returns the claims for volumes that would go, or be left behind, if the releases
// that depart were uninstalled. What may not be listed is Unknown; an error passes.
func (l Lookup) Volumes(ctx context.Context) ([]layers.Blocker, error) {
	// One that the layer has yet to adopt is not among those with its label.
	anyMayHave := func(d *departure, _ context.Context) error {
		d.mayHaveVolumes = d.mayHaveVolumes || d.seen < len(d.releases)
		return nil
	}
	return l.find(ctx, (*departure).readInventories, anyMayHave, (*departure).lookUpClaims)
}

// find takes steps one after the other, and counts what they have found.
func (l Lookup) find(ctx context.Context, steps ...func(*departure, context.Context) error) ([]layers.Blocker, error) {
	d := departure{
		Lookup: l, releases: map[types.NamespacedName]bool{}, definitions: map[string]bool{}, inventoried: map[string]bool{},
		own: map[types.UID]bool{}, unseen: map[class]int64{}, unknown: map[class]string{},
	}
	for _, id := range l.Departing {
		if id.GroupKind() == kinds.HelmReleaseKind {
			d.releases[id.Key()] = true
		} else {
			d.definitions[id.Name] = true
		}
	}
	if len(d.releases)+len(d.definitions) == 0 {
		return nil, nil
	}
	for _, step := range steps {
		if err := step(&d, ctx); err != nil {
			return nil, err
		}
	}
	return d.blockers(), nil
}

// readInventories reads what the releases say they own, which the cache leaves
// out. Before version 1.6, helm-controller did not say.
func (d *departure) readInventories(ctx context.Context) error {
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(helmReleaseVersion.GroupVersion().WithKind(helmReleaseVersion.Kind + "List"))
		err := Insist(ctx, func() error {
			return d.Flux.List(ctx, list, client.MatchingLabels{v1alpha1.LayerLabel: d.Layer.Name}, client.Limit(Page), client.Continue(next))
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if d.releases[client.ObjectKeyFromObject(&list.Items[i])] {
				d.readInventory(&list.Items[i])
				d.seen++
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// insistence is how often and how soon a question of a look-up is asked again.
var insistence = wait.Backoff{Steps: 4, Duration: 50 * time.Millisecond, Factor: 3, Jitter: 0.2}

// Insist asks again what a busy API server has refused. A look-up asks many
// questions one after the other: if it began anew whenever one of them is
// refused, it might never get to its end.
func Insist(ctx context.Context, ask func() error) error {
	return retry.OnError(insistence, func(err error) bool {
		return ctx.Err() == nil && (apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) ||
			apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err))
	}, ask)
}

func (d *departure) readInventory(release *unstructured.Unstructured) {
	entries, found, _ := unstructured.NestedSlice(release.Object, "status", "inventory", "entries")
	d.mayHaveVolumes = d.mayHaveVolumes || !found
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		// The form is namespace_name_group_kind.
		id, _ := fields["id"].(string)
		if name, is := strings.CutSuffix(id, "_apiextensions.k8s.io_CustomResourceDefinition"); is {
			d.inventoried[strings.TrimPrefix(name, "_")] = true
		}
		d.mayHaveVolumes = d.mayHaveVolumes || strings.HasSuffix(id, "_apps_StatefulSet") || strings.HasSuffix(id, "__PersistentVolumeClaim")
	}
}

// lookUpCustomObjects looks for objects of the kinds that the layer's releases,
// or the layer itself, define.
func (d *departure) lookUpCustomObjects(ctx context.Context) error {
	return d.eachDefinition(ctx, func(definition *metav1.PartialObjectMetadata) error {
		fate, owned, err := d.fateOfObjects(ctx, definition)
		if err != nil || !owned {
			return err
		}
		plural, group, _ := strings.Cut(definition.Name, ".")
		is := class{schema.GroupResource{Group: group, Resource: plural}, fate}
		gvk, served, err := d.kindOf(ctx, definition.Name, is.resource)
		switch {
		case apierrors.IsForbidden(err):
			d.unknown[is] = err.Error()
			return nil
		case err != nil || !served:
			return err
		}
		return d.lookUp(ctx, gvk, is, d.isOwn, nil)
	})
}

// fateOfObjects says what becomes of the objects that a definition defines, if
// the layer's deletion concerns them.
func (d *departure) fateOfObjects(ctx context.Context, definition *metav1.PartialObjectMetadata) (layers.Fate, bool, error) {
	origin := originOf(definition)
	annotations := definition.Annotations
	switch {
	case d.definitions[definition.Name]:
		return layers.FateDeleted, true, nil
	case d.releases[origin] && annotations[HelmOwner] != "" && annotations[HelmPolicy] != "keep":
		return layers.FateDeleted, true, nil
	case d.releases[origin]:
		// It comes from the chart's folder crds, or is to be kept.
		return layers.FateUnattended, true, nil
	case !d.inventoried[definition.Name]:
		return "", false, nil
	case origin.Name == "":
		return layers.FateUnattended, true, nil
	}
	// Two charts have the definition in their folder crds; the other release
	// goes on looking after the objects while it is there.
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(helmReleaseVersion)
	if err := d.Known.Get(ctx, origin, other); !apierrors.IsNotFound(err) {
		return "", false, err
	}
	return layers.FateUnattended, true, nil
}

func originOf(obj client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetLabels()[OriginNamespace], Name: obj.GetLabels()[OriginName]}
}

// isOwn tells custom objects that are the layer's own: those in its directory,
// which go before the releases, and those that its releases made.
func (d *departure) isOwn(obj *metav1.PartialObjectMetadata) bool {
	if obj.Labels[v1alpha1.LayerLabel] == d.Layer.Name {
		return obj.Annotations[v1alpha1.PruneAnnotation] != "disabled"
	}
	return d.releases[originOf(obj)]
}

// lookUp looks for the objects of a resource that are not the layer's own.
// Classify says, where it is given, which of them are concerned and how.
func (d *departure) lookUp(ctx context.Context, gvk schema.GroupVersionKind, is class, isOwn func(*metav1.PartialObjectMetadata) bool,
	classify func(*metav1.PartialObjectMetadata) (layers.Fate, bool), opts ...client.ListOption,
) error {
	unseen, err := d.list(ctx, gvk, func(obj *metav1.PartialObjectMetadata) {
		if isOwn != nil && isOwn(obj) {
			d.own[obj.UID] = true
			return
		}
		found := finding{class: is, namespace: obj.Namespace, uid: obj.UID, owners: obj.OwnerReferences}
		if classify != nil {
			fate, concerned := classify(obj)
			if !concerned {
				return
			}
			found.fate = fate
		}
		d.found = append(d.found, found)
	}, opts...)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		d.unknown[is] = err.Error()
	case err != nil:
		return err
	case unseen > 0:
		d.unseen[is] += unseen
	}
	return nil
}

// list reads the metadata of objects past the cache, and says how many more
// there are than it has read.
func (d *departure) list(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	visit func(*metav1.PartialObjectMetadata),
	opts ...client.ListOption,
) (int64, error) {
	next := ""
	var remaining *int64
	for range Pages {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := Insist(ctx, func() error {
			return d.Past.List(ctx, list, append(slices.Clone(opts), client.Limit(Page), client.Continue(next))...)
		})
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if next, remaining = list.Continue, list.RemainingItemCount; next == "" {
			return 0, nil
		}
	}
	if remaining == nil {
		return 1, nil // a list by label does not say
	}
	return *remaining, nil
}

// blockers counts what was found. What an object of the layer's own has made,
// such as the requests of a certificate, goes with that.
func (d *departure) blockers() []layers.Blocker {
	for grows := true; grows; {
		grows = false
		d.found = slices.DeleteFunc(d.found, func(found finding) bool {
			if !slices.ContainsFunc(found.owners, func(owner metav1.OwnerReference) bool { return d.own[owner.UID] }) {
				return false
			}
			d.own[found.uid], grows = true, true
			return true
		})
	}
	counted := map[class]*layers.Blocker{}
	namespaces := map[class]map[string]bool{}
	blocker := func(is class) *layers.Blocker {
		if counted[is] == nil {
			counted[is], namespaces[is] = &layers.Blocker{Resource: is.resource, Fate: is.fate}, map[string]bool{}
		}
		return counted[is]
	}
	for _, found := range d.found {
		blocker(found.class).Count++
		if found.namespace != "" {
			namespaces[found.class][found.namespace] = true
		}
	}
	for is, count := range d.unseen {
		blocker(is).Count += count
		blocker(is).MoreNamespaces = true
	}
	var blockers []layers.Blocker
	for is, counted := range counted {
		counted.Namespaces = slices.Sorted(maps.Keys(namespaces[is]))
		blockers = append(blockers, *counted)
	}
	for is, why := range d.unknown {
		blockers = append(blockers, layers.Blocker{Resource: is.resource, Fate: is.fate, Unknown: why})
	}
	return blockers
}

// lookUpClaims looks for the volumes of the releases: claims that their charts
// made, and claims that the StatefulSets of their charts asked for.
func (d *departure) lookUpClaims(ctx context.Context) error {
	if !d.mayHaveVolumes {
		return nil
	}
	templates, err := d.claimTemplates(ctx)
	if apierrors.IsForbidden(err) {
		d.unknown[class{claimResource, layers.FateKept}] = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	isOfRelease := func(claim *metav1.PartialObjectMetadata) bool { return d.releases[originOf(claim)] }
	err = d.lookUp(ctx, claimVersion, class{claimResource, layers.FateDeleted}, nil, func(claim *metav1.PartialObjectMetadata) (layers.Fate, bool) {
		if claim.Annotations[HelmPolicy] == "keep" {
			return layers.FateKept, isOfRelease(claim)
		}
		return layers.FateDeleted, isOfRelease(claim)
	}, client.HasLabels{OriginName})
	if err != nil {
		return err
	}
	for _, namespace := range slices.Sorted(maps.Keys(templates)) {
		err := d.lookUp(ctx, claimVersion, class{claimResource, layers.FateKept}, nil, func(claim *metav1.PartialObjectMetadata) (layers.Fate, bool) {
			i := slices.IndexFunc(templates[namespace], func(t claimTemplate) bool { return t.made(claim.Name) })
			if i < 0 || isOfRelease(claim) {
				return "", false
			}
			return templates[namespace][i].fate, true
		}, client.InNamespace(namespace))
		if err != nil {
			return err
		}
	}
	return nil
}

// claimTemplate is a template by which a StatefulSet makes claims.
type claimTemplate struct {
	prefix string
	fate   layers.Fate
}

// made tells whether a claim of a name is made from the template: it has the
// number of a pod behind the prefix.
func (t claimTemplate) made(name string) bool {
	number, is := strings.CutPrefix(name, t.prefix)
	return is && number != "" && strings.Trim(number, "0123456789") == ""
}

// claimTemplates returns the templates of the releases' StatefulSets, by
// namespace.
func (d *departure) claimTemplates(ctx context.Context) (map[string][]claimTemplate, error) {
	var keys []types.NamespacedName
	_, err := d.list(ctx, statefulSetVersion, func(set *metav1.PartialObjectMetadata) {
		if d.releases[originOf(set)] && set.Annotations[HelmPolicy] != "keep" {
			keys = append(keys, client.ObjectKeyFromObject(set))
		}
	}, client.HasLabels{OriginName})
	if err != nil {
		return nil, err
	}
	found := map[string][]claimTemplate{}
	for _, key := range keys {
		set := &unstructured.Unstructured{}
		set.SetGroupVersionKind(statefulSetVersion)
		if err := Insist(ctx, func() error { return d.Past.Get(ctx, key, set) }); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, err
		}
		found[key.Namespace] = append(found[key.Namespace], templatesOf(set)...)
	}
	return found, nil
}

// templatesOf returns a StatefulSet's templates. It deletes the claims with
// itself only where it is told to.
func templatesOf(set *unstructured.Unstructured) []claimTemplate {
	fate := layers.FateKept
	if policy, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); policy == "Delete" {
		fate = layers.FateDeleted
	}
	var found []claimTemplate
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		fields, _ := template.(map[string]any)
		if name, _, _ := unstructured.NestedString(fields, "metadata", "name"); name != "" {
			found = append(found, claimTemplate{prefix: name + "-" + set.GetName() + "-", fate: fate})
		}
	}
	return found
}
