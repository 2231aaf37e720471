// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/sources"
)

// FluxOptions say where in a repository Flux begins.
type FluxOptions struct {
	// Below are folders that roots are looked for in; all where there is none.
	Below []string
	// Path is a folder that Flux applies, as flux bootstrap has it; empty for what the
	// repository says.
	Path string
	// Sources are further repositories, by the names of their sources.
	Sources map[string]*repository.Repository
}

// FluxRepository is what a repository has Flux apply. It must be closed.
type FluxRepository struct {
	// Clusters of the repository, with what their roots reach.
	Clusters []FluxCluster
	// Unreached are Kustomizations of files that no root reaches.
	Unreached []kustomizations.Written

	artifact *filesOfSource
	others   map[string]*filesOfSource
	own      []kustomizations.Source
	account  kustomizations.DefaultAccount
	session  *repos.Session
	// written are the objects of files, and texts their documents.
	written []kustomizations.Written
	texts   [][]byte
	// built are directories that were built before, by how they are.
	built map[string]*builtDirectory
	// Problems say which files cannot be read.
	Problems []string
}

// FluxCluster is one cluster, and what its roots reach.
type FluxCluster struct {
	kustomizations.Cluster
	Has *Kustomizations
	// values are those of ConfigMaps and Secrets that the repository gives it.
	values map[objects.ID]builds.Variables
	// beside are ConfigMaps and Secrets that stand beside its roots.
	beside []*unstructured.Unstructured
}

// filesOfSource are those that a source has, and how they are named; empty for the
// repository itself.
type filesOfSource struct {
	fs.FS
	name string
}

type builtDirectory struct {
	objects []*unstructured.Unstructured
	// files that the objects stand in; empty where that is not known.
	files []string
	err   error
}

// markers are the texts by one of which a file is looked into.
var markers = []string{kustomizev1.GroupVersion.Group, kustomizations.SourceGroup, kustomizations.InstanceGroup, "instance:"}

// OpenFlux finds the roots of a repository, and all that they reach. Each Kustomization whose
// directory is in the repository is built as Flux builds it, so that what it applies has the
// namespaces, patches and variables that it has on a cluster.
func OpenFlux(ctx context.Context, r *repository.Repository, options FluxOptions) (*FluxRepository, error) {
	artifact, err := r.Artifact(ctx, "")
	if err != nil {
		return nil, err
	}
	found, problems, err := r.Look(ctx, markers)
	if err != nil {
		return nil, err
	}
	f := &FluxRepository{
		artifact: &filesOfSource{FS: artifact}, others: map[string]*filesOfSource{}, session: repos.NewSession(),
		built: map[string]*builtDirectory{}, Problems: problems,
	}
	for _, m := range found {
		f.written, f.texts = append(f.written, kustomizations.Written{File: m.File, Object: m.Object}), append(f.texts, m.Text)
	}
	for name, other := range options.Sources {
		files, err := other.Artifact(ctx, "")
		if err != nil {
			f.Close()
			return nil, err
		}
		f.others[name] = &filesOfSource{FS: files, name: name}
	}
	f.account, err = fluxAccountIn(artifact)
	if err == nil {
		err = f.findClusters(ctx, r, options)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close ends what was started to build directories.
func (f *FluxRepository) Close() { f.session.Close() }

// findClusters finds the roots, and what each cluster's reach.
func (f *FluxRepository) findClusters(ctx context.Context, r *repository.Repository, options FluxOptions) (err error) {
	for _, below := range options.Below {
		if _, err := fs.Stat(f.artifact, path.Clean(below)); err != nil {
			return fmt.Errorf("the repository has no %s", path.Clean(below))
		}
	}
	roots := kustomizations.Begun(f.written)
	if options.Path != "" {
		roots = []kustomizations.Root{{
			Object: kustomizations.RootOf(kustomizations.DefaultNamespace, kustomizations.DefaultNamespace, sources.GitRepository, options.Path), Bootstrap: true,
		}}
		if _, err := fs.Stat(f.artifact, roots[0].Path()); err != nil {
			return fmt.Errorf("the repository has no %s", roots[0].Path())
		}
	}
	f.own = kustomizations.OwnSources(f.written, roots)
	isAsked := func(file string) bool {
		return len(options.Below) == 0 || slices.ContainsFunc(options.Below, func(below string) bool {
			below = path.Clean(below)
			return file == below || kustomizations.IsBelow(file, below)
		})
	}
	roots = slices.DeleteFunc(roots, func(root kustomizations.Root) bool {
		return options.Path == "" && !isAsked(root.File) && !isAsked(root.Path()+"/.")
	})
	if len(roots) == 0 {
		if roots, err = f.unbegun(ctx, isAsked); err != nil {
			return err
		}
	}
	reached := map[int]bool{}
	for _, cluster := range kustomizations.Clusters(roots) {
		of := FluxCluster{Cluster: cluster}
		if of.beside, err = f.besideOf(ctx, r, cluster); err != nil {
			return err
		}
		if err := f.reachAll(ctx, &of, reached); err != nil {
			return err
		}
		f.Clusters = append(f.Clusters, of)
	}
	for at, w := range f.written {
		if !reached[at] && kustomizations.IsWhole(w.Object) && isAsked(w.File) {
			f.Unreached = append(f.Unreached, w)
		}
	}
	return nil
}

// unbegun returns the Kustomizations that nothing applies, where no root is named.
func (f *FluxRepository) unbegun(ctx context.Context, isAsked func(string) bool) ([]kustomizations.Root, error) {
	var all []kustomizations.Appliable
	position := map[int]int{}
	var indices []int
	for at, w := range f.written {
		if kustomizations.IsWhole(w.Object) && isAsked(w.File) {
			position[at] = len(all)
			indices = append(indices, at)
			all = append(all, kustomizations.Appliable{Written: w})
		}
	}
	for i := range all {
		once := f.newReach(&FluxCluster{}, nil, nil)
		object := all[i].Object.DeepCopy()
		object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
		once.add(object, types.NamespacedName{}, indices[i], all[i].File)
		if len(once.Found) == 0 {
			continue // which is said when it is reached
		}
		if err := once.expand(ctx, 0); err != nil {
			return nil, err
		}
		all[i].Known = once.Found[0].Others >= 0
		for at := range once.reached {
			if other, known := position[at]; known && other != i {
				all[i].Applies = append(all[i].Applies, other)
			}
		}
		slices.Sort(all[i].Applies)
	}
	var roots []kustomizations.Root
	for _, i := range kustomizations.Unbegun(all) {
		object := all[i].Object.DeepCopy()
		object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
		roots = append(roots, kustomizations.Root{Object: object, File: all[i].File})
	}
	return roots, nil
}

// besideOf returns the ConfigMaps and Secrets that stand beside the roots of a cluster, where
// the repository does not say what applies these: the same applies both.
func (f *FluxRepository) besideOf(ctx context.Context, r *repository.Repository, cluster kustomizations.Cluster) ([]*unstructured.Unstructured, error) {
	var folders []string
	for _, root := range cluster.Roots {
		if folder := path.Dir(root.File); !root.Bootstrap && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if len(folders) == 0 {
		return nil, nil
	}
	found, _, err := r.Look(ctx, []string{"ConfigMap", "Secret"}, folders...)
	var beside []*unstructured.Unstructured
	for _, m := range found {
		if slices.Contains(folders, path.Dir(m.File)) {
			beside = append(beside, m.Object)
		}
	}
	return beside, err
}

// maxRounds is how often what is reached is looked through, each time with the variables
// that were found before.
const maxRounds = 6

// reachAll finds what the roots of a cluster reach. ConfigMaps of the cluster give variables
// to what it applies, which may be further ConfigMaps.
func (f *FluxRepository) reachAll(ctx context.Context, cluster *FluxCluster, reached map[int]bool) error {
	wanted := map[string]bool{}
	var r *reaching
	for range maxRounds {
		r = f.newReach(cluster, cluster.values, wanted)
		if err := r.all(ctx); err != nil {
			return err
		}
		if maps.EqualFunc(r.given, cluster.values, sameVariables) && maps.Equal(r.wanted, wanted) {
			break
		}
		cluster.values, wanted = r.given, r.wanted
	}
	for at := range r.reached {
		reached[at] = true
	}
	cluster.Has = r.Kustomizations
	return nil
}

func sameVariables(a, b builds.Variables) bool {
	return a.Secret == b.Secret && maps.Equal(a.Values, b.Values)
}

// reaching is one way through what the roots of a cluster apply.
type reaching struct {
	*Kustomizations
	f       *FluxRepository
	cluster *FluxCluster
	// byKey is the index in Found of each.
	byKey map[types.NamespacedName]int
	// reached are the indices of documents that what was found is made of.
	reached map[int]bool
	// known are the variables that are used, given those that were found, and wanted the
	// names of ConfigMaps and Secrets that are asked for.
	known, given map[objects.ID]builds.Variables
	asked        map[string]bool
	wanted       map[string]bool
}

func (f *FluxRepository) newReach(cluster *FluxCluster, known map[objects.ID]builds.Variables, asked map[string]bool) *reaching {
	return &reaching{
		Kustomizations: &Kustomizations{Texts: map[types.NamespacedName][]byte{}, Account: f.account, Problems: slices.Clone(f.Problems)},
		f:              f, cluster: cluster, byKey: map[types.NamespacedName]int{}, reached: map[int]bool{},
		known: known, given: map[objects.ID]builds.Variables{}, asked: asked, wanted: map[string]bool{},
	}
}

// all begins with the roots. What is nearer to them comes first.
func (r *reaching) all(ctx context.Context) error {
	for _, object := range r.cluster.beside {
		r.give(object)
	}
	for _, root := range r.cluster.Roots {
		at := slices.IndexFunc(r.f.written, func(w kustomizations.Written) bool {
			return w.File == root.File && kustomizations.IsKustomization(w.Object) && w.Object.GetName() == root.Object.GetName()
		})
		before := len(r.Found)
		r.add(root.Object, types.NamespacedName{}, at, root.File)
		if len(r.Found) > before {
			r.Found[before].Root = root.Bootstrap
		}
	}
	for at := 0; at < len(r.Found); at++ {
		if err := r.expand(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// add adds a Kustomization that something applies, once. at is the index of its document,
// or -1.
func (r *reaching) add(object *unstructured.Unstructured, parent types.NamespacedName, at int, file string) {
	if at >= 0 {
		r.reached[at] = true
		file = r.f.written[at].File
	}
	object = object.DeepCopy()
	object.SetNamespace(cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace))
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if _, known := r.byKey[key]; known {
		return
	}
	read, err := kustomizations.Read(object)
	if err == nil && !kustomizations.IsWhole(object) {
		err = errors.New("it lacks one of spec.interval, spec.prune and spec.sourceRef, without which no API server takes it")
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: Kustomization %s: %v", cmp.Or(file, parent.String()), key, err))
		return
	}
	version := object.GroupVersionKind().Version
	if version == kustomizev1.GroupVersion.Version {
		version = ""
	}
	r.byKey[key] = len(r.Found)
	r.Found = append(r.Found, kustomizations.Found{Kustomization: read, Version: version, File: file, Parent: parent, Others: -1})
	if at >= 0 {
		r.Texts[key] = r.f.texts[at]
	}
}

// expand builds the directory of a Kustomization, and adds those that are in it.
func (r *reaching) expand(ctx context.Context, at int) error {
	k := r.Found[at].Kustomization
	key := types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
	for _, from := range substituteFrom(k) {
		r.wanted[from.Name] = true
	}
	files := r.f.filesOf(k.Spec.SourceRef.Kind, cmp.Or(k.Spec.SourceRef.Namespace, k.Namespace), k.Spec.SourceRef.Name)
	if files == nil {
		return nil // it is of another repository
	}
	layer := kustomizations.Layer(k)
	folder := path.Clean(layer.Spec.Source.Path)
	if info, err := fs.Stat(files, folder); err != nil || !info.IsDir() {
		r.Found[at].Missing = true
		return nil
	}
	if applies, err := r.mayApply(ctx, files, folder); err != nil || !applies {
		return err
	}
	built, err := r.f.build(ctx, files, layer, k.Namespace, r.known)
	if err != nil {
		return err
	}
	if built.err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("Kustomization %s: its directory cannot be built: %v", key, built.err))
		return nil
	}
	others := 0
	for i, object := range built.objects {
		if !kustomizations.IsKustomization(object) {
			others++
			r.give(object)
			continue
		}
		child := types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), kustomizations.DefaultNamespace), Name: object.GetName()}
		if !slices.Contains(r.Found[at].Applies, child) {
			r.Found[at].Applies = append(r.Found[at].Applies, child)
		}
		r.add(object, key, r.f.documentOf(files, built.files[i], object), built.files[i])
	}
	r.Found[at].Others = others
	return nil
}

// give takes the variables of a ConfigMap or Secret, so far as they are not encrypted.
func (r *reaching) give(object *unstructured.Unstructured) {
	if gvk := object.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "ConfigMap" && gvk.Kind != "Secret" {
		return
	}
	variables, known := builds.VariablesWritten(object)
	if !known {
		return
	}
	r.given[objects.ID{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}] = variables
}

// substituteFrom returns what a Kustomization takes variables from.
func substituteFrom(k *kustomizev1.Kustomization) []kustomizev1.SubstituteReference {
	if k.Spec.PostBuild == nil {
		return nil
	}
	return k.Spec.PostBuild.SubstituteFrom
}

// filesOf returns the files of a source; nil where it is another repository.
func (f *FluxRepository) filesOf(kind, namespace, name string) *filesOfSource {
	for _, given := range []string{kind + "/" + namespace + "/" + name, kind + "/" + name, namespace + "/" + name, name} {
		if files := f.others[given]; files != nil {
			return files
		}
	}
	if slices.Contains(f.own, kustomizations.Source{Kind: cmp.Or(kind, sources.GitRepository), Name: name}) {
		return f.artifact
	}
	return nil
}

// originAnnotation is where kustomize notes the file that an object stands in.
const originAnnotation = "config.kubernetes.io/origin"

// build builds the directory of a layer as Flux does it, with the variables that are known.
// The error is for what nobody can mend in the repository.
func (f *FluxRepository) build(ctx context.Context, files *filesOfSource, layer *v1alpha1.AddonsLayer, namespace string,
	known map[objects.ID]builds.Variables,
) (*builtDirectory, error) {
	var given []builds.Variables
	isKnown := true
	if after := layer.Spec.PostBuild; after != nil {
		for _, from := range after.SubstituteFrom {
			variables, is := known[objects.ID{Kind: from.Kind, Namespace: namespace, Name: from.Name}]
			isKnown = isKnown && is
			given = append(given, variables)
		}
	}
	how, err := builds.Of(&layer.Spec, given...)
	if err != nil {
		return nil, err
	}
	if !isKnown {
		how = how.WithVariablesUnknown()
	}
	notes, _ := how.Generator["buildMetadata"].([]any)
	how.Generator["buildMetadata"] = append(slices.Clone(notes), "originAnnotations")
	key := strings.Join([]string{files.name, layer.Spec.Source.Path, how.Key()}, "\n")
	if done := f.built[key]; done != nil {
		return done, nil
	}
	done := &builtDirectory{}
	done.objects, done.err = f.session.Made(ctx, files, layer.Spec.Source.Path, how)
	if done.err != nil && !errors.As(done.err, new(*directories.ContentError)) {
		return nil, done.err
	}
	for _, object := range done.objects {
		done.files = append(done.files, takeOrigin(object, path.Clean(layer.Spec.Source.Path)))
	}
	f.built[key] = done
	return done, nil
}

// takeOrigin takes the note of kustomize off an object, and returns the file that it names.
func takeOrigin(object *unstructured.Unstructured, folder string) string {
	metadata, _ := object.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	delete(annotations, originAnnotation)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	var origin struct {
		Path string `json:"path"`
		Repo string `json:"repo"`
	}
	if yaml.Unmarshal([]byte(text), &origin) != nil || origin.Path == "" || origin.Repo != "" {
		return ""
	}
	return path.Join(folder, origin.Path)
}

// documentOf returns the index of the document that a Kustomization is made of, or -1: that
// of its name in its file, or the only one there.
func (f *FluxRepository) documentOf(files *filesOfSource, file string, object *unstructured.Unstructured) int {
	if file == "" || files != f.artifact {
		return -1
	}
	only, several := -1, false
	for at, w := range f.written {
		if w.File != file || !kustomizations.IsKustomization(w.Object) {
			continue
		}
		if w.Object.GetName() == object.GetName() {
			return at
		}
		only, several = at, only >= 0
	}
	if several {
		return -1
	}
	return only
}

// mayApply tells whether what is in a directory may hold Kustomizations, or ConfigMaps and
// Secrets that variables are taken from. Most are those of an application, and have none:
// they need not be built to be found out.
func (r *reaching) mayApply(ctx context.Context, files fs.FS, folder string) (bool, error) {
	found := false
	err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case found:
			return fs.SkipAll
		case entry.IsDir():
			return nil
		}
		data, err := fs.ReadFile(files, name)
		// What is beside the directory is loaded by a kustomization alone.
		outside := slices.Contains(konfig.RecognizedKustomizationFileNames(), entry.Name()) && bytes.Contains(data, []byte(".."))
		found = outside || bytes.Contains(data, []byte(kustomizev1.GroupVersion.Group+"/"))
		for asked := range r.asked {
			found = found || bytes.Contains(data, []byte(asked))
		}
		return err
	})
	return found, err
}

// Proof is what the layers of a cluster hold together.
type Proof struct {
	// Layers that were built, and how many objects they hold.
	Layers  int `json:"layers"`
	Objects int `json:"objects"`
	// Elsewhere is how many layers are of other repositories, or of directories that cannot
	// be built: what they hold is not known here.
	Elsewhere int `json:"elsewhere"`
	// Problems name each object that two layers hold, each Kustomization that a layer holds
	// and that has a layer of its own, and what the controller refuses.
	Problems []string `json:"-"`
}

// Prove builds the directory of every layer that is made, and says whether each object has
// one owner when the layers take over.
func (f *FluxRepository) Prove(ctx context.Context, cluster *FluxCluster, all []kustomizations.Conversion) (Proof, error) {
	var proof Proof
	own := map[types.NamespacedName]bool{}
	for _, c := range all {
		own[c.Of] = c.Layer != nil || c.Empty
	}
	holders := map[string]string{}
	for _, c := range all {
		if c.Layer == nil {
			continue
		}
		source := c.Layer.Spec.Source
		files := f.filesOf(source.Kind, source.Namespace, source.Name)
		var built *builtDirectory
		if files != nil {
			var err error
			if built, err = f.build(ctx, files, c.Layer, c.Of.Namespace, cluster.values); err != nil {
				return Proof{}, err
			}
		}
		if built == nil || built.err != nil {
			proof.Elsewhere++
			isSaid := func(said string) bool { return strings.HasPrefix(said, "Kustomization "+c.Of.String()+": ") }
			if built != nil && !slices.ContainsFunc(cluster.Has.Problems, isSaid) {
				proof.Problems = append(proof.Problems, fmt.Sprintf("Kustomization %s: its directory cannot be built: %v", c.Of, built.err))
			}
			continue
		}
		proof.Layers++
		if len(built.objects) == 0 && !c.Missing {
			proof.Problems = append(proof.Problems, fmt.Sprintf("layer %s: %s makes no object, and a layer does not empty itself: "+
				"leave the Kustomization with Flux until it has one", c.Layer.Name, source.Path))
		}
		for _, object := range built.objects {
			proof.Objects++
			proof.add(c, object, own, holders)
		}
	}
	return proof, nil
}

// add adds one object of a layer.
func (p *Proof) add(c kustomizations.Conversion, object *unstructured.Unstructured, own map[types.NamespacedName]bool, holders map[string]string) {
	id := objects.IDOf(object)
	if kustomizations.IsKustomization(object) && own[types.NamespacedName{Namespace: cmp.Or(id.Namespace, kustomizations.DefaultNamespace), Name: id.Name}] {
		p.Problems = append(p.Problems, fmt.Sprintf("layer %s holds %s, which has a layer of its own: two would own its objects", c.Layer.Name, id))
	}
	why := cmp.Or(reserved.Name(id, defaultSettings.Namespace), reserved.Written(id.GroupKind(), object))
	if why != "" && id.Group != v1alpha1.GroupVersion.Group {
		p.Problems = append(p.Problems, fmt.Sprintf("layer %s: %s is %s, and no layer writes it: "+
			"take it out of the directory, or leave its Kustomization with Flux", c.Layer.Name, id, why))
	}
	if strings.Contains(id.Namespace+id.Name, "${") {
		return // what it is called is not known
	}
	if kinds.HasNoNamespaces(id.GroupKind()) {
		id.Namespace = "" // the API server drops it
	}
	where := ""
	if to := c.Layer.Spec.Cluster; to != nil {
		where = to.Namespace + "/" + to.Name
	}
	key := where + " " + id.String()
	switch other := holders[key]; other {
	case "":
		holders[key] = c.Layer.Name
	case c.Layer.Name:
	default:
		p.Problems = append(p.Problems, fmt.Sprintf("%s would be of layer %s and of layer %s: take it out of one of them", id, other, c.Layer.Name))
	}
}
