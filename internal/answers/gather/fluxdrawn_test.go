// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/objects"
)

// drawnRepository is a repository of Flux that is made up.
type drawnRepository struct {
	*rand.Rand
	files map[string]string
	// roots are the Kustomizations that each cluster begins with, and beside the ConfigMap
	// that stands there where nothing applies it.
	roots  map[string][]*unstructured.Unstructured
	beside map[string]bool
	// stale are Kustomizations that nothing applies.
	stale []string
	// bases are directories that several Kustomizations may apply.
	bases []string
	made  int
}

// How a repository says where Flux begins.
const (
	bySync = iota
	byInstance
	byNothing
)

// drawRepository draws a repository. The same seed gives the same one.
func drawRepository(seed uint64) *drawnRepository {
	d := &drawnRepository{
		Rand: rand.New(rand.NewPCG(seed, 0)), files: map[string]string{}, roots: map[string][]*unstructured.Unstructured{}, beside: map[string]bool{},
	}
	begins := d.IntN(3)
	d.files["components/note/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {note: component}\n"
	for range 2 {
		folder := "apps/" + d.name("base")
		d.application(folder)
		d.bases = append(d.bases, folder)
	}
	for _, cluster := range []string{"one", "two", "three"}[:1+d.IntN(3)] {
		d.cluster(cluster, begins)
	}
	return d
}

func (d *drawnRepository) is(percent int) bool { return d.IntN(100) < percent }

func (d *drawnRepository) name(kind string) string {
	d.made++
	return kind + strconv.Itoa(d.made)
}

// cluster draws a cluster, and what it begins with.
func (d *drawnRepository) cluster(name string, begins int) {
	folder := "clusters/" + name
	settings := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {CLUSTER: %s, WHERE: where-%s}\n", name, name)
	d.files[folder+"/settings.yaml"] = settings
	listed := []string{"settings.yaml"}
	var top []string
	for range 1 + d.IntN(3) {
		file := d.name("ks") + ".yaml"
		d.files[folder+"/"+file] = d.kustomization(name, "", 0)
		listed, top = append(listed, file), append(top, file)
	}
	root := kustomizations.RootOf("flux-system", "flux-system", "GitRepository", "./"+folder)
	switch begins {
	case bySync:
		text, _ := yaml.Marshal(root.Object) // it is made of texts
		d.files[folder+"/flux-system/gotk-sync.yaml"] = string(text)
		listed = append(listed, "flux-system/gotk-sync.yaml")
		d.roots[name] = []*unstructured.Unstructured{root}
	case byInstance:
		d.files["flux/"+name+".yaml"] = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n" +
			"spec: {sync: {kind: GitRepository, url: https://example.com/x.git, path: " + folder + "}}\n"
		d.roots[name] = []*unstructured.Unstructured{root}
	default:
		d.beside[name] = true
		for _, file := range top {
			d.roots[name] = append(d.roots[name], document(d.files[folder+"/"+file]))
		}
		return
	}
	if d.is(60) {
		d.list(folder, listed, "")
	}
}

// list draws a kustomization of Kustomizations, and beside it one that is out of service.
func (d *drawnRepository) list(folder string, listed []string, namespace string) {
	text := "resources:\n"
	for _, file := range listed {
		text += "- " + file + "\n"
	}
	if namespace != "" {
		text += "namespace: " + namespace + "\n"
	}
	if d.is(40) {
		text += "patches:\n- target: {kind: Kustomization, group: kustomize.toolkit.fluxcd.io, name: ks.*}\n" +
			"  patch: |\n    - {op: add, path: /spec/commonMetadata, value: {labels: {patched: by-" + path.Base(folder) + "}}}\n"
	}
	if d.is(30) {
		text += "components: [" + strings.Repeat("../", strings.Count(folder, "/")+1) + "components/note]\n"
	}
	d.files[folder+"/kustomization.yaml"] = text
	if d.is(50) {
		stale := d.name("stale")
		d.files[folder+"/"+stale+".yaml"] = ksOf(stale, "./"+d.bases[0], "flux-system")
		d.stale = append(d.stale, stale)
	}
}

// deepest is how many Kustomizations are between a root and the last one, at most.
const deepest = 2

// kustomization draws one of a cluster, with what it applies. Without a namespace of its
// own the one that lists it gives one.
func (d *drawnRepository) kustomization(cluster, namespace string, depth int) string {
	name := d.name("ks")
	own := "flux-system"
	if namespace != "" {
		own = ""
	}
	spec := map[string]any{
		"interval": "1h", "prune": d.is(80), "wait": d.is(30),
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"},
	}
	// ConfigMaps of the cluster are in the namespace of most.
	given := namespace == "" && d.is(60)
	post := map[string]any{}
	if given {
		post["substituteFrom"] = []any{map[string]any{"kind": "ConfigMap", "name": "settings"}}
	}
	if d.is(40) {
		post["substitute"] = map[string]any{"WHO": d.name("who"), "SIZE": strconv.Itoa(d.IntN(9))}
	}
	if len(post) > 0 {
		spec["postBuild"] = post
	}
	switch kind := d.IntN(10); {
	case kind < 3 && depth < deepest:
		d.parent(spec, cluster, depth, given)
	case kind < 4:
		spec["path"] = "./anything"
		spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "tenant"}
	case kind < 6:
		spec["path"] = "./" + d.bases[d.IntN(len(d.bases))]
		spec["targetNamespace"] = d.name("ns")
	default:
		folder := "apps/" + name + "/app"
		d.application(folder)
		spec["path"] = folder
		d.options(spec, folder)
	}
	version := "v1"
	if d.is(10) {
		version = "v1beta2"
	}
	metadata := map[string]any{"name": name}
	if own != "" {
		metadata["namespace"] = own
	}
	text, _ := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/" + version, "kind": "Kustomization", "metadata": metadata, "spec": spec,
	}) // it is made of texts
	return string(text)
}

// parent draws a folder that has Kustomizations, and has one apply it. Where variables are
// given, they may stand in what it applies.
func (d *drawnRepository) parent(spec map[string]any, cluster string, depth int, given bool) {
	folder := "groups/" + d.name("group")
	spec["path"] = "./" + folder
	namespace, isListed := "", d.is(60)
	if d.is(40) {
		namespace = d.name("team")
		if !isListed {
			spec["targetNamespace"] = namespace
		}
	}
	var listed []string
	for range 1 + d.IntN(3) {
		file := d.name("app") + "/ks.yaml"
		if d.is(20) {
			file = "several.yaml"
		}
		hasVariable := given && d.is(30)
		if hasVariable {
			depth = deepest
		}
		text := d.kustomization(cluster, namespace, depth+1)
		if hasVariable {
			where := "apps/where-" + cluster + "/" + d.name("app")
			d.application(where)
			text = replacePath(text, "./"+strings.Replace(where, "where-"+cluster, "${WHERE}", 1))
		}
		if before := d.files[folder+"/"+file]; before != "" {
			d.files[folder+"/"+file] = before + "---\n" + text
			continue
		}
		d.files[folder+"/"+file] = text
		listed = append(listed, file)
	}
	if d.is(40) {
		d.files[folder+"/more.yaml"] = d.object("ConfigMap", d.name("more"), true)
		listed = append(listed, "more.yaml")
	}
	if isListed {
		d.list(folder, listed, namespace)
	}
}

// replacePath gives a Kustomization another path of the repository.
func replacePath(text, to string) string {
	object := document(text)
	spec, _ := object.Object["spec"].(map[string]any)
	spec["path"], spec["sourceRef"] = to, map[string]any{"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}
	delete(spec, "components")
	text2, _ := yaml.Marshal(object.Object) // as above
	return string(text2)
}

// options draws what else a Kustomization says of its objects.
func (d *drawnRepository) options(spec map[string]any, folder string) {
	if d.is(40) {
		spec["targetNamespace"] = d.name("ns")
	}
	if d.is(20) {
		spec["namePrefix"] = "pre-"
	}
	if d.is(20) {
		spec["nameSuffix"] = "-post"
	}
	if d.is(30) {
		spec["commonMetadata"] = map[string]any{"labels": map[string]any{"team": "shop"}}
	}
	if d.is(30) {
		spec["components"] = []any{strings.Repeat("../", strings.Count(folder, "/")+1) + "components/note"}
	}
	if d.is(30) {
		spec["images"] = []any{map[string]any{"name": "shop", "newTag": "v2"}}
	}
	if d.is(30) {
		spec["patches"] = []any{map[string]any{
			"target": map[string]any{"kind": "ConfigMap"}, "patch": "- {op: add, path: /data/patched, value: '${WHO:=nobody}'}\n",
		}}
	}
}

// application draws a directory of objects that are no Kustomizations.
func (d *drawnRepository) application(folder string) {
	var listed []string
	hasNamespace := false
	for range 1 + d.IntN(3) {
		name := d.name("x")
		file := name + ".yaml"
		if d.is(30) {
			file = "deep/" + file
		}
		kind := []string{"ConfigMap", "ConfigMap", "Deployment", "Namespace"}[d.IntN(4)]
		if kind == "Namespace" && hasNamespace {
			kind = "ConfigMap" // two would become one by a target namespace
		}
		hasNamespace = hasNamespace || kind == "Namespace"
		d.files[folder+"/"+file] = d.object(kind, name, d.is(50))
		listed = append(listed, file)
	}
	if !d.is(60) {
		return
	}
	text := "resources:\n- " + strings.Join(listed, "\n- ") + "\n"
	if d.is(30) {
		text += "configMapGenerator:\n- {name: " + d.name("made") + ", literals: [a=b]}\n"
	}
	if d.is(30) {
		text += "namespace: " + d.name("ns") + "\n"
	}
	d.files[folder+"/kustomization.yaml"] = text
	if d.is(30) {
		d.files[folder+"/left.yaml"] = d.object("ConfigMap", d.name("left"), false)
	}
}

// object draws an object of a kind.
func (d *drawnRepository) object(kind, name string, hasNamespace bool) string {
	metadata := "{name: " + name + "}"
	if hasNamespace && kind != "Namespace" {
		metadata = "{name: " + name + ", namespace: shop}"
	}
	switch kind {
	case "Namespace":
		return "apiVersion: v1\nkind: Namespace\nmetadata: " + metadata + "\n"
	case "Deployment":
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: " + metadata + "\nspec:\n  selector: {matchLabels: {app: a}}\n" +
			"  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'shop:v1', args: ['${WHO:-me}']}]}}\n"
	default:
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: " + metadata + "\ndata: {cluster: '${CLUSTER:=none}', size: '${SIZE:=1}', kept: '$${KEPT}'}\n"
	}
}

// document reads one object.
func document(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err)
	}
	return object
}

// fluxApplied is what Flux has on a cluster: Kustomizations, and the objects that each applies.
type fluxApplied struct {
	kustomizations map[types.NamespacedName]*unstructured.Unstructured
	objects        map[types.NamespacedName][]*unstructured.Unstructured
	configMaps     map[types.NamespacedName]map[string]string
}

func namedAs(object *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// applyAsFlux applies what the roots of a cluster begin with as kustomize-controller does,
// until nothing comes of it any more.
func applyAsFlux(t *testing.T, folder string, roots []*unstructured.Unstructured, beside *unstructured.Unstructured) *fluxApplied {
	t.Helper()
	a := &fluxApplied{
		kustomizations: map[types.NamespacedName]*unstructured.Unstructured{}, objects: map[types.NamespacedName][]*unstructured.Unstructured{},
		configMaps: map[types.NamespacedName]map[string]string{},
	}
	own := t.TempDir()
	if err := os.CopyFS(own, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if beside != nil {
		a.take(beside)
	}
	var queue []*unstructured.Unstructured
	add := func(object *unstructured.Unstructured) {
		if a.kustomizations[namedAs(object)] == nil || a.objects[namedAs(object)] == nil {
			a.kustomizations[namedAs(object)] = object
			queue = append(queue, object)
		}
	}
	for before := -1; before != len(queue)+len(a.objects)+len(a.configMaps); {
		before = len(queue) + len(a.objects) + len(a.configMaps)
		for _, root := range roots {
			add(root)
		}
		pending := queue
		queue = nil
		for _, object := range pending {
			made, ready := a.build(t, own, object)
			if !ready {
				queue = append(queue, object)
				continue
			}
			a.objects[namedAs(object)] = made
			for _, child := range made {
				a.take(child)
				if kustomizations.IsKustomization(child) {
					add(child)
				}
			}
		}
	}
	return a
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// take has an object be on the cluster.
func (a *fluxApplied) take(object *unstructured.Unstructured) {
	if object.GetKind() == "ConfigMap" {
		a.configMaps[namedAs(object)], _, _ = unstructured.NestedStringMap(object.Object, "data")
	}
}

// build builds the directory of a Kustomization by Flux's own library. ready is false while
// a ConfigMap that it takes variables from is not there.
func (a *fluxApplied) build(t *testing.T, folder string, object *unstructured.Unstructured) (made []*unstructured.Unstructured, ready bool) {
	t.Helper()
	made = []*unstructured.Unstructured{}
	if source, _, _ := unstructured.NestedString(object.Object, "spec", "sourceRef", "name"); source != "flux-system" {
		return made, true
	}
	object = object.DeepCopy()
	_, substitutes, _ := unstructured.NestedMap(object.Object, "spec", "postBuild")
	own, _, _ := unstructured.NestedStringMap(object.Object, "spec", "postBuild", "substitute")
	from, _, _ := unstructured.NestedSlice(object.Object, "spec", "postBuild", "substituteFrom")
	variables := map[string]any{}
	for _, each := range from {
		name, _, _ := unstructured.NestedString(each.(map[string]any), "name")
		values, is := a.configMaps[types.NamespacedName{Namespace: object.GetNamespace(), Name: name}]
		if !is {
			return nil, false
		}
		for key, value := range values {
			variables[key] = value
		}
	}
	for key, value := range own {
		variables[key] = value
	}
	if substitutes {
		_ = unstructured.SetNestedMap(object.Object, variables, "spec", "postBuild", "substitute")
	}
	applied, _, _ := unstructured.NestedString(object.Object, "spec", "path")
	directory := filepath.Join(folder, filepath.FromSlash(applied))
	text, file, _, err := kustomize.NewGenerator(folder, *object).GenerateManifest(directory)
	if err != nil {
		t.Fatalf("Kustomization %s: %v", namedAs(object), err)
	}
	before, err := os.ReadFile(file)
	if err == nil {
		defer write(t, file, before)
	} else {
		defer func() { _ = os.Remove(file) }() // the next Kustomization has another one
	}
	write(t, file, text)
	built, err := kustomize.SecureBuild(folder, directory, false)
	if err != nil {
		t.Fatalf("Kustomization %s: %v", namedAs(object), err)
	}
	for _, each := range built.Resources() {
		if substitutes {
			done, err := kustomize.SubstituteVariables(t.Context(), nil, *object, each, kustomize.SubstituteWithDryRun(true))
			if err != nil {
				t.Fatalf("Kustomization %s: %v", namedAs(object), err)
			}
			if done != nil {
				each = done
			}
		}
		made = append(made, document(each.MustYaml()))
	}
	// The controller adds these itself, when all is built.
	added, _, _ := unstructured.NestedStringMap(object.Object, "spec", "commonMetadata", "labels")
	for _, each := range made {
		if labels := each.GetLabels(); len(added) > 0 {
			labels = maps.Clone(labels)
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, added)
			each.SetLabels(labels)
		}
	}
	return made, true
}

// drawnSeeds returns the seeds of the repositories that are drawn: STRATA_SEED alone, and
// without it always the same, or more of any where everything is tested.
func drawnSeeds(t *testing.T) (first uint64, number int) {
	t.Helper()
	if text := os.Getenv("STRATA_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("STRATA_SEED: %v", err)
		}
		return seed, 1
	}
	if os.Getenv("STRATA_TEST_ALL") != "" {
		return rand.Uint64(), 60
	}
	return 1, 8
}

// A repository that is drawn becomes layers that hold what Flux applies: the same
// Kustomizations, and the same objects, each once.
func TestDrawnRepositoriesOfFlux(t *testing.T) {
	first, number := drawnSeeds(t)
	for i := range number {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("STRATA_SEED=%d", seed), func(t *testing.T) {
			t.Parallel()
			d := drawRepository(seed)
			folder := t.TempDir()
			f := openFluxIn(t, folder, d.files, FluxOptions{})
			if len(f.Clusters) != len(d.roots) {
				t.Fatalf("%d clusters are found, of %d", len(f.Clusters), len(d.roots))
			}
			for at := range f.Clusters {
				cluster := &f.Clusters[at]
				name := path.Base(strings.TrimPrefix(cluster.Folder, "./"))
				if len(d.roots) == 1 {
					name = "one"
				}
				var beside *unstructured.Unstructured
				if d.beside[name] {
					beside = document(d.files["clusters/"+name+"/settings.yaml"])
				}
				compareCluster(t, f, cluster, applyAsFlux(t, folder, d.roots[name], beside))
			}
			var unreached []string
			for _, w := range f.Unreached {
				unreached = append(unreached, w.Object.GetName())
			}
			slices.Sort(unreached)
			slices.Sort(d.stale)
			if diff := cmp.Diff(d.stale, unreached); diff != "" {
				t.Errorf("what nothing applies: -want +got:\n%s", diff)
			}
		})
	}
}

// textOf returns an object as text, in which numbers have no kind.
func textOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compareCluster compares the layers of a cluster with what Flux applies on it.
func compareCluster(t *testing.T, f *FluxRepository, cluster *FluxCluster, want *fluxApplied) {
	t.Helper()
	made := kustomizations.Convert(cluster.Has.Found, kustomizations.Options{Account: cluster.Has.Account, Reserved: accounts.OfFlux})
	if len(cluster.Has.Problems) > 0 {
		t.Errorf("cluster %s: %v", cluster.Name, cluster.Has.Problems)
	}
	specs, found := map[string]any{}, map[string]any{}
	for key, object := range want.kustomizations {
		read, err := kustomizations.Read(object)
		if err != nil {
			t.Fatal(err)
		}
		specs[key.String()] = read.Spec
	}
	bootstrap := map[types.NamespacedName]bool{}
	for _, each := range cluster.Has.Found {
		key := types.NamespacedName{Namespace: each.Namespace, Name: each.Name}
		if _, twice := found[key.String()]; twice {
			t.Errorf("Kustomization %s is found twice", key)
		}
		found[key.String()] = each.Spec
		bootstrap[key] = each.Root
	}
	if diff := cmp.Diff(specs, found); diff != "" {
		t.Errorf("Kustomizations of cluster %s: -Flux +found:\n%s", cluster.Name, diff)
	}

	// What Flux applies is of the layer of its Kustomization, but what has a layer of its own.
	wanted, held := map[string]string{}, map[string]string{}
	double := map[string]int{}
	for key, all := range want.objects {
		for _, object := range all {
			_, isFound := want.kustomizations[namedAs(object)]
			if bootstrap[key] || kustomizations.IsKustomization(object) && isFound {
				continue
			}
			wanted[key.String()+" "+objects.IDOf(object).String()] = textOf(t, object)
			double[objects.IDOf(object).String()]++
		}
	}
	for _, c := range made {
		if len(c.Problems) > 0 {
			t.Errorf("Kustomization %s: %v", c.Of, c.Problems)
		}
		files := f.artifact
		if c.Layer == nil || c.Layer.Spec.Source.Name != "flux-system" {
			continue
		}
		built, err := f.build(t.Context(), files, c.Layer, c.Of.Namespace, cluster.values)
		if err != nil || built.err != nil {
			t.Errorf("layer %s: %v %v", c.Layer.Name, err, built)
			continue
		}
		for _, object := range built.objects {
			held[c.Of.String()+" "+objects.IDOf(object).String()] = textOf(t, object)
		}
	}
	if diff := cmp.Diff(wanted, held); diff != "" {
		t.Errorf("objects of cluster %s: -Flux +layers:\n%s", cluster.Name, diff)
	}

	proof, err := f.Prove(t.Context(), cluster, made)
	if err != nil {
		t.Fatal(err)
	}
	twice := 0
	for _, n := range double {
		twice += n - 1
	}
	if len(proof.Problems) != twice || proof.Objects != len(wanted) {
		t.Errorf("cluster %s: %d objects, of %d, and %d of them twice: %+v %q", cluster.Name, proof.Objects, len(wanted), twice, proof, proof.Problems)
	}
}
