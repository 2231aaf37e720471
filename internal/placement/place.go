// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement says where the objects of a directory go, and what they may take
// along to another cluster.
package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/sources"
)

// Place is the cluster that a layer belongs on. What a layer's directory lists
// is put there once, before anything else looks at it; all rules go by the IDs
// that come of that, and know of no clusters.
type Place struct {
	// Layer is the name of the layer.
	Layer string
	// Cluster is the RemoteCluster; the zero value is the cluster that Strata
	// runs in.
	Cluster types.NamespacedName
	// Account is the name of the ServiceAccount of the cluster as which releases
	// are installed that name none; empty for the user of the kubeconfig.
	Account string
	// Lists tells whether a layer of the same cluster lists an object, so that a
	// reference to a source that another layer brings finds it. Nil means that
	// none does.
	Lists func(objects.ID) bool
	// OwnNamespaceOnly is true where nothing of another namespace than the
	// RemoteCluster's may be read for it.
	OwnNamespaceOnly bool
	// Given holds what is copied to where Flux reads it for this cluster, by the
	// IDs that Reads returns. What is not there yet is left out.
	Given map[objects.ID]Given
}

// Of returns the cluster that a layer names; namespace is that of clusters
// whose namespace is not given.
func Of(layer *v1alpha1.AddonsLayer, namespace string) types.NamespacedName {
	cluster := layer.Spec.Cluster
	if cluster == nil {
		return types.NamespacedName{}
	}
	if cluster.Namespace != "" {
		namespace = cluster.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: cluster.Name}
}

// ClusterName returns how IDs and statuses name a cluster; empty for the one that
// Strata runs in.
func ClusterName(cluster types.NamespacedName) string {
	if cluster.Name == "" {
		return ""
	}
	return cluster.String()
}

// maxPlacedName is how long the names of what is put beside a RemoteCluster may
// be: that of a label's value, as helm-controller writes names into labels.
const maxPlacedName = 63

// Put returns a directory as it belongs on the cluster. HelmReleases, Flux
// Kustomizations and their sources stay where Flux runs, in the namespace of the
// RemoteCluster, under names of their own; all else goes to the cluster. The
// error is a ContentError.
func (p Place) Put(dir *directories.Directory) (*directories.Directory, error) {
	if p.Cluster.Name == "" || dir == nil {
		return dir, nil
	}
	put, err := p.put(dir)
	if err != nil {
		return nil, err
	}
	placed := *dir
	placed.Written = dir
	placed.Cluster, placed.Manifests = ClusterName(p.Cluster), put.manifests
	slices.SortFunc(placed.Manifests, func(a, b directories.Manifest) int { return a.ID().Compare(b.ID()) })
	return &placed, nil
}

// Reads returns the ConfigMaps and Secrets that a directory's objects read and that
// it does not list itself, in order and as they were written: those that Put looks
// for in Given. There are none where Put would fail.
func (p Place) Reads(dir *directories.Directory) []objects.ID {
	if p.Cluster.Name == "" || dir == nil {
		return nil
	}
	put, err := p.put(dir)
	if err != nil {
		return nil
	}
	return objects.SortIDs(put.reads)
}

func (p Place) put(dir *directories.Directory) (*putting, error) {
	put := &putting{Place: p, own: make(map[objects.ID]directories.Manifest, len(dir.Manifests)), added: map[objects.ID]bool{}, missing: map[objects.ID]int{}}
	for _, manifest := range dir.Manifests {
		put.own[manifest.ID()] = manifest
	}
	for _, manifest := range dir.Manifests {
		if err := put.manifest(manifest); err != nil {
			return nil, err
		}
	}
	return put, nil
}

// putting is one Put.
type putting struct {
	Place
	// own holds what the directory lists, and added what follows from it.
	own   map[objects.ID]directories.Manifest
	added map[objects.ID]bool
	// missing says where in manifests those are that are not there.
	missing map[objects.ID]int
	// reads lists what is read and not listed, and needs those of them that the
	// manifest at hand cannot do without and that are not there.
	reads, needs []objects.ID
	manifests    []directories.Manifest
}

func (p *putting) cluster() string { return ClusterName(p.Cluster) }

func (p *putting) manifest(manifest directories.Manifest) error {
	gk := manifest.ID().GroupKind()
	p.needs = nil
	for _, id := range manifest.Needs {
		p.needs = append(p.needs, p.placed(id))
	}
	switch {
	case manifest.Home:
	case objects.IsReleaseKind(gk):
		obj, err := p.release(manifest)
		if err != nil {
			return err
		}
		manifest.Object = obj
	case gk == kinds.ClaimKind:
		manifest.Object = p.claim(manifest)
	case gk == kinds.ProviderKind:
		obj, err := p.provider(manifest)
		if err != nil {
			return err
		}
		manifest.Object = obj
	case isSource(gk):
		obj, err := p.source(manifest)
		if err != nil {
			return err
		}
		manifest.Object, manifest.Placed = obj, true
	default:
		manifest.Cluster = p.cluster()
	}
	manifest.Needs = p.needs
	p.manifests = append(p.manifests, manifest)
	return nil
}

// placed returns the ID that an object of the directory has once it is put.
func (p *putting) placed(id objects.ID) objects.ID {
	gk := id.GroupKind()
	switch {
	case p.own[id].Home:
	case gk == kinds.ProviderKind:
		id.Name = p.name(id)
	case objects.IsReleaseKind(gk), isSource(gk), gk == kinds.ClaimKind:
		id.Namespace, id.Name = p.Cluster.Namespace, p.name(id)
	default:
		return id.On(p.cluster())
	}
	return id
}

// isSource tells kinds that stay with Flux, because its controllers fetch them.
func isSource(gk schema.GroupKind) bool {
	return gk.Group == sources.Group || gk.Group == "source.extensions.fluxcd.io"
}

// release puts a HelmRelease or a Kustomization of Flux beside the RemoteCluster,
// with everything said that follows from its name and its namespace otherwise.
func (p *putting) release(manifest directories.Manifest) (*unstructured.Unstructured, error) {
	obj := manifest.Object.DeepCopy()
	id := manifest.ID()
	spec, _ := obj.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		obj.Object["spec"] = spec
	}
	if _, found := spec["kubeConfig"]; found {
		return nil, &directories.ContentError{
			Reason: v1alpha1.ReasonInvalidManifest, File: manifest.File, Line: manifest.Line, Field: "spec.kubeConfig",
			Message: fmt.Sprintf("%s names a cluster itself, and its layer belongs on RemoteCluster %s: remove it, or the layer's spec.cluster", id, p.cluster()),
		}
	}
	if err := p.references(manifest, obj); err != nil {
		return nil, err
	}
	spec["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": reserved.KubeConfigName(p.Cluster.Name), "key": KubeConfigKey}}
	if account, _ := spec["serviceAccountName"].(string); account == "" && p.Account != "" {
		spec["serviceAccountName"] = p.Account
	}
	if id.GroupKind() == kinds.HelmReleaseKind {
		p.helmRelease(manifest, obj, spec)
	}
	obj.SetNamespace(p.Cluster.Namespace)
	obj.SetName(p.name(id))
	return obj, nil
}

func (p *putting) helmRelease(manifest directories.Manifest, obj *unstructured.Unstructured, spec map[string]any) {
	// By its own name, which it still has.
	name, storage := kinds.HelmName(obj)
	spec["releaseName"], spec["storageNamespace"] = name, storage
	if target, _ := spec["targetNamespace"].(string); target == "" {
		spec["targetNamespace"] = manifest.ID().Namespace
	}
	p.ensureNamespace(manifest, storage)
	p.ensureNamespace(manifest, spec["targetNamespace"].(string))
}

// source puts a source beside the RemoteCluster, with copies of the Secrets that
// it reads.
func (p *putting) source(manifest directories.Manifest) (*unstructured.Unstructured, error) {
	obj := manifest.Object.DeepCopy()
	if err := p.references(manifest, obj); err != nil {
		return nil, err
	}
	obj.SetNamespace(p.Cluster.Namespace)
	obj.SetName(p.name(manifest.ID()))
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.PlacedForAnnotation] = p.cluster()
	obj.SetAnnotations(annotations)
	return obj, nil
}

// references has all that an object of Flux refers to follow it to where it is put.
// A reference that cannot follow, and would mean something else there, is refused.
func (p *putting) references(manifest directories.Manifest, obj *unstructured.Unstructured) error {
	id := manifest.ID()
	if field := unknownReference(obj); field != "" {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonInvalidManifest,
			File:   manifest.File,
			Line:   manifest.Line,
			Field:  field,
			Message: fmt.Sprintf(
				"%s refers to something in a way that cannot be followed to another cluster: remove it, or list the object in a layer of this cluster",
				id,
			),
		}
	}
	for _, found := range referencesIn(obj) {
		switch found.to {
		case toSource:
			p.reference(id, found.value)
		case toSources:
			list, _ := found.value.([]any)
			for _, item := range list {
				p.reference(id, item)
			}
		case toLocalSource:
			p.localSource(id, found)
		case toChartSource:
			p.chartSource(manifest, found.value)
		case toSecret:
			p.copySecret(manifest, id.Namespace, found.value)
		case toValues:
			p.copies(manifest, id.Namespace, found.value)
		case toRelease:
			p.dependsOn(id, found.value)
		case toAccount:
			if account, _ := found.value.(string); account != "" && p.Account != "" && account != p.Account {
				return &directories.ContentError{
					Reason: v1alpha1.ReasonAccessDenied, File: manifest.File, Line: manifest.Line, Field: found.field,
					Message: fmt.Sprintf("%s names ServiceAccount %s, and its layer acts as %s: remove it, or name that", id, printable.Shorten(account), p.Account),
				}
			}
		}
	}
	return nil
}

// chartSource follows the source of a chart, with the Secret that the chart is
// verified with, which lies beside the source.
func (p *putting) chartSource(manifest directories.Manifest, value any) {
	chartSpec, _ := value.(map[string]any)
	if chartSpec == nil {
		return
	}
	from := manifest.ID().Namespace
	ref, _ := chartSpec["sourceRef"].(map[string]any)
	if namespace, _ := ref["namespace"].(string); namespace != "" {
		from = namespace
	}
	if p.reference(manifest.ID(), chartSpec["sourceRef"]) {
		verify, _ := chartSpec["verify"].(map[string]any)
		p.copySecret(manifest, from, verify["secretRef"])
	}
}

// localSource follows a reference by name to a source of the object's own namespace,
// where that is put beside the RemoteCluster, too. Otherwise it means the source of
// that name in the RemoteCluster's namespace.
func (p *putting) localSource(from objects.ID, found foundReference) {
	ref, _ := found.value.(map[string]any)
	name, _ := ref["name"].(string)
	if name == "" {
		return
	}
	kind, _ := ref["kind"].(string)
	source := objects.ID{Group: sources.Group, Kind: cmp.Or(found.kind, kind), Namespace: from.Namespace, Name: name}
	if placed, beside := p.sourcePlaced(source); beside {
		ref["name"] = placed.Name
	}
}

// sourcePlaced returns the ID that a source has beside the RemoteCluster, and whether
// a layer of the cluster lists it, so that it is there.
func (p *putting) sourcePlaced(source objects.ID) (placed objects.ID, beside bool) {
	placed = source
	placed.Namespace, placed.Name = p.Cluster.Namespace, p.name(source)
	_, own := p.own[source]
	return placed, own || p.Lists != nil && p.Lists(placed)
}

// reference makes a reference to a source say the namespace that it means, and
// follows a source that is put beside the RemoteCluster. It tells whether it is.
func (p *putting) reference(from objects.ID, value any) bool {
	ref, _ := value.(map[string]any)
	if ref == nil {
		return false
	}
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	if namespace == "" {
		namespace = from.Namespace
	}
	source := objects.ID{Group: sources.Group, Kind: kind, Namespace: namespace, Name: name}
	placed, beside := p.sourcePlaced(source)
	if !beside {
		ref["namespace"] = namespace
		return false
	}
	ref["namespace"], ref["name"] = placed.Namespace, placed.Name
	return true
}

// dependsOn has releases wait for each other under the names that they have.
func (p *putting) dependsOn(id objects.ID, value any) {
	list, _ := value.([]any)
	for _, item := range list {
		ref, _ := item.(map[string]any)
		name, _ := ref["name"].(string)
		if name == "" {
			continue
		}
		on := id
		on.Name = name
		if namespace, _ := ref["namespace"].(string); namespace != "" {
			on.Namespace = namespace
		}
		ref["name"] = p.name(on)
		delete(ref, "namespace")
	}
}

// ensureNamespace has the cluster have a namespace that Helm needs, unless the
// directory lists it.
func (p *putting) ensureNamespace(manifest directories.Manifest, name string) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	id := objects.IDOf(obj)
	if _, own := p.own[id]; own || p.added[id] {
		return
	}
	p.added[id] = true
	p.manifests = append(p.manifests, directories.Manifest{File: manifest.File, Line: manifest.Line, Object: obj, Cluster: p.cluster(), Ensured: true})
}

// copies follows a reference to a ConfigMap or a Secret, or a list of them.
func (p *putting) copies(manifest directories.Manifest, namespace string, value any) {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for _, item := range list {
		if ref, _ := item.(map[string]any); ref != nil {
			kind, _ := ref["kind"].(string)
			p.copy(manifest, kind, namespace, ref)
		}
	}
}

func (p *putting) copySecret(manifest directories.Manifest, namespace string, value any) {
	if ref, _ := value.(map[string]any); ref != nil {
		p.copy(manifest, secretKind, namespace, ref)
	}
}

// copy puts a copy of a ConfigMap or a Secret beside the RemoteCluster, where
// Flux looks for it, and has a reference name that.
func (p *putting) copy(manifest directories.Manifest, kind, namespace string, ref map[string]any) {
	name, _ := ref["name"].(string)
	if name == "" || kind != secretKind && kind != configMapKind {
		return
	}
	origin := objects.ID{Kind: kind, Namespace: namespace, Name: name}
	if binding := p.binding(origin); binding != "" {
		ref["name"] = binding
		return
	}
	// Each layer has copies of its own, so that none goes with another layer.
	copied := p.copyName(origin)
	ref["name"] = copied
	own, listed := p.own[origin]
	given := p.Given[origin]
	if listed {
		given = p.listed(origin, own)
	}
	optional, _ := ref["optional"].(bool)
	if given.Object == nil && !optional {
		p.needs = append(p.needs, origin)
	}
	if p.added[origin] {
		if at, missing := p.missing[origin]; missing && !optional {
			p.manifests[at].Optional = false
		}
		return
	}
	p.added[origin] = true
	if !listed {
		p.reads = append(p.reads, origin)
		own = directories.Manifest{File: manifest.File, Line: manifest.Line}
	}
	own.Object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	if given.Object == nil {
		own.Object.SetNamespace(namespace)
		own.Object.SetName(name)
		own.Observed, own.Optional, own.Withheld = true, optional, given.Withheld
		p.missing[origin] = len(p.manifests)
		p.manifests = append(p.manifests, own)
		return
	}
	for _, field := range []string{"data", "stringData", "binaryData", "type"} {
		if value, found := given.Object.Object[field]; found {
			own.Object.Object[field] = value
		}
	}
	own.Copy, own.Placed, own.Unshared = true, true, given.Ending
	own.Object.SetNamespace(p.Cluster.Namespace)
	own.Object.SetName(copied)
	// With this label helm-controller and kustomize-controller look again at once.
	own.Object.SetLabels(map[string]string{kinds.WatchLabel: kinds.WatchEnabled})
	annotations := map[string]string{v1alpha1.CopyOfAnnotation: copyOf(origin), v1alpha1.PlacedForAnnotation: p.cluster()}
	if given.By != "" {
		annotations[v1alpha1.SharedByAnnotation] = given.By
	}
	own.Object.SetAnnotations(annotations)
	p.manifests = append(p.manifests, own)
}

// copyOf is what a copy says of its origin.
func copyOf(origin objects.ID) string {
	return origin.Kind + "/" + origin.Namespace + "/" + origin.Name
}

// copyName returns the name of the layer's copy of an object.
func (p Place) copyName(origin objects.ID) string {
	return reserved.CopyPrefix + p.name(origin, p.Layer)
}

// listed gives what the directory itself lists.
func (p *putting) listed(origin objects.ID, own directories.Manifest) Given {
	if why := cmp.Or(reserved.Name(origin, ""), reserved.Written(origin.GroupKind(), own.Object)); why != "" {
		return Given{Withheld: never(origin, origin, why)}
	}
	return Given{Object: own.Object, By: byDirectory}
}

// name returns the name that an object has beside the RemoteCluster: always the
// same, and another for every object and cluster. A user who chooses names finds no two
// objects with one name: the hash has 80 bits, of parts that none of them may hold
// the separator of.
func (p Place) name(id objects.ID, more ...string) string {
	parts := append([]string{p.Cluster.Namespace, p.Cluster.Name, id.Group, id.Kind, id.Namespace, id.Name}, more...)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	hash := hex.EncodeToString(sum[:10])
	name := p.Cluster.Name + "-" + id.Name
	if most := maxPlacedName - len(hash) - 1; len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return name + "-" + hash
}
