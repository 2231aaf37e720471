// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundles holds the rules of an ApplicationBundle as pure functions: what
// its layers and their inputs come to, and whether it can be installed. It reads no
// clock, no cluster and no file.
package bundles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/oldwords"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/templates"
)

// Request is everything that Render goes by.
type Request struct {
	// Layer is the name of the AddonsLayer.
	Layer string
	// Bundle of the layer; nil where there is none.
	Bundle *v1alpha1.ApplicationBundle
	// Path is ./ and the name of a layer of the bundle, as spec.source.path has it.
	Path string
	// Applications are those that Applications names; nil or absent where there is
	// none.
	Applications map[string]*v1alpha1.HelmApplication
	// Instance is what templates have as instance.name. Defaults to Layer.
	Instance string
	// Inputs are the values that the AddonsLayer has, a JSON object.
	Inputs *apiextensionsv1.JSON
	// Cluster that the layer goes to.
	Cluster Cluster
	// Clusters that layers of the bundle make, by the layer's name, as far as they are known;
	// those of ClustersFor.
	Clusters map[string]Cluster
	// Base is the cluster that the bundle is installed on, where it is known.
	Base Base
	// Objects are those of Sought, by the names that templates have for them.
	Objects map[string]Seen
	// Common is put on every object; nil for nothing.
	Common *v1alpha1.CommonMetadata
	// All has all applications be there, whatever their when says.
	All bool
	// Releases says of all releases what the layer says of them; nil for nothing.
	Releases *v1alpha1.ReleaseSettings
}

// Base is the cluster that a bundle is installed on.
type Base struct {
	// Known is true where it is known; it is of the layers of Platforms.
	Known bool
	// Cluster is the RemoteCluster; zero for the cluster that Strata runs in.
	Cluster types.NamespacedName
}

// baseOf reads it of the label that Platforms put on layers.
func baseOf(layer *v1alpha1.AddonsLayer) Base {
	value, labelled := layer.Labels[v1alpha1.PlatformClusterLabel]
	if !labelled || value == "" {
		return Base{Known: labelled}
	}
	namespace, name, found := strings.Cut(value, ".")
	if !found {
		return Base{} // it is a digest
	}
	return Base{Known: true, Cluster: types.NamespacedName{Namespace: namespace, Name: name}}
}

// RequestOf returns what a layer says of how it is filled. Applications and Cluster are
// left to who can look them up.
func RequestOf(layer *v1alpha1.AddonsLayer, bundle *v1alpha1.ApplicationBundle) Request {
	return Request{
		Layer: layer.Name, Bundle: bundle, Path: layer.Spec.Source.Path, Instance: sources.InstanceOf(layer), Inputs: layer.Spec.Inputs,
		Common: layer.Spec.CommonMetadata, Releases: layer.Spec.Releases, Base: baseOf(layer), Applications: map[string]*v1alpha1.HelmApplication{},
	}
}

// Present returns the applications of the layer that are to be there. The errors are those
// of Render.
func (r Request) Present() ([]v1alpha1.BundleApplication, error) {
	one := &rendering{Request: r, layer: LayerAt(r.Bundle, r.Path)}
	if !HasChoice(one.layer) {
		if one.layer == nil {
			return nil, nil
		}
		return one.layer.Applications, nil
	}
	if err := one.prepare(); err != nil {
		return nil, err
	}
	return Present(one.layer, one.instance(), one.inputs, r.Cluster)
}

// Applications returns, in order, the names of the HelmApplications that Render
// reads for a layer of a bundle.
func Applications(bundle *v1alpha1.ApplicationBundle, path string) []string {
	layer := LayerAt(bundle, path)
	if layer == nil {
		return nil
	}
	return namesIn(layer.Applications)
}

// Named returns, in order, the names of all HelmApplications that a bundle names.
func Named(bundle *v1alpha1.ApplicationBundle) []string {
	var all []v1alpha1.BundleApplication
	for _, layer := range bundle.Spec.Layers {
		all = append(all, layer.Applications...)
	}
	return namesIn(all)
}

func namesIn(applications []v1alpha1.BundleApplication) []string {
	var names []string
	for _, application := range applications {
		if application.Chart == nil {
			names = append(names, ApplicationName(application))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ApplicationName returns the name of the HelmApplication that an application of a bundle
// is; empty for one that has a chart of its own.
func ApplicationName(application v1alpha1.BundleApplication) string {
	if application.Chart != nil {
		return ""
	}
	return cmp.Or(application.Application, application.Name)
}

// OwnVersion returns what an application with a chart of its own installs, as the catalogue
// would say it; nil for one that is of the catalogue.
func OwnVersion(application v1alpha1.BundleApplication) *v1alpha1.HelmApplicationVersion {
	if application.Chart == nil {
		return nil
	}
	return &v1alpha1.HelmApplicationVersion{
		Version: application.Version, ApplicationContent: v1alpha1.ApplicationContent{
			Chart: *application.Chart, Namespace: &v1alpha1.ApplicationNamespace{Name: application.Name, Create: true},
		},
	}
}

// LayerAt returns the layer of a bundle that the path of a layer's source names; nil where
// there is none.
func LayerAt(bundle *v1alpha1.ApplicationBundle, path string) *v1alpha1.BundleLayer {
	if bundle == nil {
		return nil
	}
	return LayerOf(bundle, strings.Trim(strings.TrimPrefix(path, "."), "/"))
}

// LayerOf returns a layer of a bundle by its name; nil where there is none.
func LayerOf(bundle *v1alpha1.ApplicationBundle, name string) *v1alpha1.BundleLayer {
	for i := range bundle.Spec.Layers {
		if bundle.Spec.Layers[i].Name == name {
			return &bundle.Spec.Layers[i]
		}
	}
	return nil
}

// Render returns what a layer of a bundle lists, in the order of the objects'
// identities, as a directory would before it is put on its cluster. The error is a
// *layers.ContentError for what only an author can mend, and *Waiting for what may
// come by itself.
func Render(request Request) ([]directories.Manifest, error) {
	if request.Bundle == nil {
		return nil, &Waiting{Reason: "waits for its ApplicationBundle, which does not exist"}
	}
	r := &rendering{Request: request, layer: LayerAt(request.Bundle, request.Path)}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if err := r.content(); err != nil {
		return nil, err
	}
	if err := r.job(); err != nil {
		return nil, err
	}
	r.common()
	return r.sorted()
}

// rendering is one Render.
type rendering struct {
	Request
	layer  *v1alpha1.BundleLayer
	inputs map[string]any
	// fill is for templates that may read all, and fillPlain for those that say
	// where something is.
	fill, fillPlain *filler
	manifests       []directories.Manifest
}

// prepare checks what the templates are filled from.
func (r *rendering) prepare() error {
	if r.layer == nil {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonPathNotFound, File: originOf(r.Bundle.Name),
			Message: fmt.Sprintf("has no layer %q: spec.source.path must be ./ and the name of one, such as ./%s", short(r.Path), r.someLayer()),
		}
	}
	if changed := Changed(r.Bundle); changed != "" {
		return &directories.ContentError{Reason: v1alpha1.ReasonContentChanged, File: originOf(r.Bundle.Name), Message: changed}
	}
	if old := oldwords.InBundle(r.Bundle); old != "" {
		return &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, File: originOf(r.Bundle.Name), Message: old}
	}
	given, err := decodeObject(r.Inputs)
	if err != nil {
		return &directories.ContentError{Reason: v1alpha1.ReasonInvalidSpec, Field: "spec.inputs", Message: err.Error()}
	}
	var problems []string
	if r.inputs, problems = Resolve(r.Bundle, given); len(problems) > 0 {
		return &directories.ContentError{Reason: v1alpha1.ReasonInvalidSpec, Field: "spec.inputs", Message: strings.Join(problems, "; ")}
	}
	if r.fill, err = newFiller(r.instance(), r.inputs, r.Cluster); err != nil {
		return err
	}
	r.fill.knows(r.Clusters)
	r.fill.seen(r.Sought(), r.Objects)
	r.fillPlain, err = newPlainFiller(r.instance(), r.inputs)
	return err
}

func (r *rendering) instance() string { return cmp.Or(r.Instance, r.Layer) }

func (r *rendering) someLayer() string {
	if len(r.Bundle.Spec.Layers) == 0 {
		return "base"
	}
	return r.Bundle.Spec.Layers[0].Name
}

func (r *rendering) content() error {
	switch {
	case r.layer.Source != nil:
		return r.mistake("source", "is a directory of its own, which is used as it stands: name it in the AddonsLayer's spec.source")
	case r.layer.RemoteCluster != nil:
		return r.remoteCluster(r.layer.RemoteCluster)
	case len(r.layer.Objects) > 0:
		return r.objects()
	default:
		return r.applications()
	}
}

func (r *rendering) objects() error {
	for i, object := range r.layer.Objects {
		field := fmt.Sprintf("objects[%d]", i)
		value, err := decodeObject(&object.JSON)
		if err != nil {
			return r.mistake(field, "%s", err)
		}
		filled, err := r.fillObject(field, value)
		if err != nil {
			return err
		}
		if path, wrong := templates.CheckObject(filled); wrong != "" {
			return r.mistake(join(field, path), "%s", wrong)
		}
		delete(filled, "status")
		r.add(field, &unstructured.Unstructured{Object: filled})
	}
	return nil
}

// job adds the layer's Job, which comes when all else is ready. It is named after
// its content, because what a Job does cannot be changed.
func (r *rendering) job() error {
	job := r.layer.Job
	if job == nil {
		return nil
	}
	namespace, err := r.fillName(r.fill, "job.namespace", job.Namespace)
	if err != nil {
		return err
	}
	spec, err := decodeObject(&job.Spec)
	if err != nil {
		return r.mistake("job.spec", "%s", err)
	}
	if spec, err = r.fillObject("job.spec", spec); err != nil {
		return err
	}
	content, err := canonical(map[string]any{"namespace": namespace, "spec": spec})
	if err != nil {
		return r.mistake("job.spec", "%s", err)
	}
	obj := newObject("batch/v1", "Job", namespace, cut(job.Name, maxName-hashLength-1)+"-"+hashOf(content))
	obj.Object["spec"] = spec
	var needs []objects.ID
	for _, manifest := range r.manifests {
		if !manifest.Ensured {
			needs = append(needs, manifest.ID())
		}
	}
	r.add("job", obj)
	r.manifests[len(r.manifests)-1].Needs = objects.SortIDs(needs)
	return nil
}

// common puts on every object but shared ones what the layer says of all.
func (r *rendering) common() {
	if r.Common == nil {
		return
	}
	for i := range r.manifests {
		if !r.manifests[i].Ensured {
			setTexts(r.manifests[i].Object, "labels", r.Common.Labels)
			setTexts(r.manifests[i].Object, "annotations", r.Common.Annotations)
		}
	}
}

// add adds an object that a field of the layer lists.
func (r *rendering) add(field string, obj *unstructured.Unstructured) *directories.Manifest {
	r.manifests = append(r.manifests, directories.Manifest{File: originOf(r.Bundle.Name) + " " + r.path(field), Object: obj})
	return &r.manifests[len(r.manifests)-1]
}

// sorted returns what was rendered in order, each object once.
func (r *rendering) sorted() ([]directories.Manifest, error) {
	slices.SortStableFunc(r.manifests, func(a, b directories.Manifest) int { return a.ID().Compare(b.ID()) })
	for i := 1; i < len(r.manifests); i++ {
		if before, at := r.manifests[i-1], r.manifests[i]; before.ID() == at.ID() {
			return nil, &directories.ContentError{
				Reason: v1alpha1.ReasonDuplicateObject, File: at.File,
				Message: fmt.Sprintf("lists %s, which %s lists too", at.ID(), before.File),
			}
		}
	}
	return r.manifests, nil
}

// originOf names a bundle where a directory has its files.
func originOf(bundle string) string { return "ApplicationBundle " + bundle }

// path returns the path of a field of the layer.
func (r *rendering) path(field string) string {
	return join("layers["+r.layer.Name+"]", field)
}

func join(path, field string) string {
	if field == "" {
		return path
	}
	return path + "." + field
}

// mistake is what only the author of the bundle can mend.
func (r *rendering) mistake(field, format string, args ...any) error {
	return &directories.ContentError{
		Reason: v1alpha1.ReasonInvalidManifest, File: originOf(r.Bundle.Name), Field: r.path(field), Message: fmt.Sprintf(format, args...),
	}
}

// fillObject fills the templates of an object.
func (r *rendering) fillObject(field string, value map[string]any) (map[string]any, error) {
	filled, err := r.fill.value(value)
	if err != nil {
		return nil, r.unfilled(field, err)
	}
	return filled.(map[string]any), nil // as value is
}

// fillText fills the templates of a text.
func (r *rendering) fillText(field, text string) (string, error) {
	filled, err := r.fill.text(text)
	if err != nil {
		return "", r.unfilled(field, err)
	}
	return filled, nil
}

// fillName fills the templates of the name of a namespace.
func (r *rendering) fillName(fill *filler, field, text string) (string, error) {
	name, err := fill.text(text)
	if err != nil {
		return "", r.unfilled(field, err)
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return "", r.mistake(field, "%q is not the name of a namespace: %s", short(name), wrong[0])
	}
	return name, nil
}

// unfilled says where a template could not be filled; what is waited for stays as
// it is.
func (r *rendering) unfilled(field string, err error) error {
	var waiting *Waiting
	if errors.As(err, &waiting) {
		return err
	}
	// Errors of objects begin with the path of the field.
	path, message, found := strings.Cut(err.Error(), ": ")
	if !found || strings.ContainsAny(path, " ${") {
		path, message = "", err.Error()
	}
	if strings.HasPrefix(path, "[") {
		return r.mistake(field+path, "%s", message)
	}
	return r.mistake(join(field, path), "%s", message)
}

func newObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}
