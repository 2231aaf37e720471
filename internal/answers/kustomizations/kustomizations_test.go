// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Every field that Flux has is in the table, and no other: a new one is seen here.
func TestEveryFieldIsTreated(t *testing.T) {
	var want, got []string
	spec := reflect.TypeFor[kustomizev1.KustomizationSpec]()
	for i := range spec.NumField() {
		name, _, _ := strings.Cut(spec.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	for _, field := range Fields() {
		got = append(got, field.Name)
		if field.Treatment != Kept && field.Says == "" {
			t.Errorf("nothing is said of %s, which is %s", field.Name, field.Treatment)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-Flux +table:\n%s", diff)
	}
}

func read(t *testing.T, name, spec string) Found {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: apps}\n" +
		"spec: {interval: 10m, prune: true, path: ./a, sourceRef: {kind: GitRepository, name: git}, " + spec + "}\n"
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	k, err := Read(object)
	if err != nil {
		t.Fatal(err)
	}
	return Found{Kustomization: k, Others: 1}
}

// written returns the layer of a conversion as a file has it, without what every layer has.
func written(t *testing.T, c Conversion) map[string]any {
	t.Helper()
	if c.Layer == nil {
		return nil
	}
	object, err := Manifest(c.Layer)
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	for _, field := range []string{"build", "version", "interval", "orphanGrace"} {
		delete(spec, field)
	}
	return spec
}

func TestConvert(t *testing.T) {
	source := "source: {name: git, namespace: apps, path: ./a}"
	for name, test := range map[string]struct {
		spec, want string
		problems   []string
		notes      []string
	}{
		"least":        {"force: false", source + ", wait: false", nil, nil},
		"waits":        {"wait: true, healthChecks: [{kind: Deployment, name: a}]", source, nil, []string{"spec.healthChecks: left out"}},
		"is suspended": {"suspend: true, prune: false, deletionPolicy: WaitForTermination", source + ", wait: false, hold: true, prune: false, deletionPolicy: Delete", nil, nil},
		"mirrors":      {"deletionPolicy: MirrorPrune, retryInterval: 1m, timeout: 90s", source + ", wait: false, timeout: 1m30s", nil, []string{"spec.retryInterval: left out"}},
		"another source": {
			"path: apps/../b/, sourceRef: {kind: OCIRepository, name: oci, namespace: flux}, serviceAccountName: me",
			"source: {kind: OCIRepository, name: oci, namespace: flux, path: ./b}, namespace: apps, serviceAccountName: me, wait: false", nil, nil,
		},
		"a cluster": {
			"kubeConfig: {secretRef: {name: edge, key: k}}", source + ", cluster: {name: edge, namespace: apps}, wait: false", nil, nil,
		},
		"what is refused": {
			"ignore: [{paths: [/spec/replicas]}], decryption: {provider: sops, serviceAccountName: kms}, kubeConfig: {configMapRef: {name: c}}, dependsOn: [{name: none}, {name: other, readyExpr: 'true'}], healthCheckExprs: [{apiVersion: a/v1, current: 'true'}]",
			source + ", wait: false, prereqs: {dependsOn: [other]}",
			[]string{
				"spec.dependsOn[0]: there is no Kustomization apps/none", "spec.dependsOn[1].readyExpr: ", "spec.decryption: without secretRef", "spec.decryption.serviceAccountName: ",
				"spec.ignore: ", "spec.healthCheckExprs[0].kind: ", "spec.kubeConfig.configMapRef: ",
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Convert([]Found{read(t, "a", test.spec), read(t, "other", "force: false")}, Options{})[0]
			var want map[string]any
			if err := yaml.Unmarshal([]byte("{"+test.want+"}"), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, written(t, c)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			begin(t, "problems", test.problems, c.Problems)
			begin(t, "notes", test.notes, c.Notes)
		})
	}
}

// begin compares texts with what they begin with.
func begin(t *testing.T, what string, want, got []string) {
	t.Helper()
	same := slices.EqualFunc(want, got, func(begins, text string) bool { return strings.HasPrefix(text, begins) })
	if !same {
		t.Errorf("%s are %q, want %q", what, got, want)
	}
}

// A tree of three: what applies others comes first, and leaves them out; what applies
// nothing else is no layer, and those below it wait for the one above it.
func TestConvertTree(t *testing.T) {
	top, middle, leaf, twin := read(t, "top", "force: false"), read(t, "middle", "force: false"), read(t, "leaf", "force: false"), read(t, "leaf", "force: false")
	twin.Namespace = "other"
	middle.Parent, leaf.Parent = top.key(), middle.key()
	middle.Others = 0
	got := map[string]string{}
	for _, c := range Convert([]Found{leaf, middle, twin, top}, Options{}) {
		layer := "-"
		if c.Layer != nil {
			layer = c.Layer.Name + " " + strings.Join(c.Layer.Spec.Prereqs.DependsOn, ",")
			for _, patch := range c.Layer.Spec.Patches {
				layer += " " + patch.Target.Kind
			}
		}
		got[c.Of.String()] = layer
	}
	want := map[string]string{"apps/leaf": "apps-leaf top", "apps/middle": "-", "other/leaf": "other-leaf ", "apps/top": "top  Kustomization"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What is gone because it was handed over is to the others what it was.
func TestConvertAfterAHandOver(t *testing.T) {
	child, twin := read(t, "child", "dependsOn: [{name: gone}]"), read(t, "leaf", "force: false")
	child.Parent = types.NamespacedName{Namespace: "apps", Name: "top"}
	handed := map[types.NamespacedName]string{
		child.Parent: "top", {Namespace: "apps", Name: "gone"}: "was-gone", {Namespace: "other", Name: "leaf"}: "other-leaf",
	}
	got := Convert([]Found{child, twin}, Options{Handed: handed})
	if want := []string{"was-gone", "top"}; len(got[0].Problems) > 0 || cmp.Diff(want, got[0].Layer.Spec.Prereqs.DependsOn) != "" {
		t.Errorf("it depends on %v: %v", got[0].Layer.Spec.Prereqs.DependsOn, got[0].Problems)
	}
	if got[1].Layer.Name != "apps-leaf" {
		t.Errorf("the twin is %s", got[1].Layer.Name)
	}
}

func TestLive(t *testing.T) {
	object := &unstructured.Unstructured{}
	text := `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: a, namespace: b, labels: {kustomize.toolkit.fluxcd.io/name: root, kustomize.toolkit.fluxcd.io/namespace: flux}}
spec: {interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: g}}
status: {inventory: {entries: [{id: b_c_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}, {id: b_d__ConfigMap, v: v1}]}}
`
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	found, err := Live(object)
	if want := (types.NamespacedName{Namespace: "flux", Name: "root"}); err != nil || found.Parent != want || found.Others != 1 {
		t.Errorf("it is %+v, %v", found, err)
	}
	object.SetAPIVersion("kustomize.toolkit.fluxcd.io/v2")
	if _, err := Live(object); err == nil || !strings.Contains(err.Error(), "what is read are kustomize.toolkit.fluxcd.io/v1, and of that group v1beta2 and v1beta1") {
		t.Errorf("a newer one: %v", err)
	}
	object.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	_ = unstructured.SetNestedField(object.Object, "x", "spec", "pahth")
	if _, err := Live(object); err == nil || !strings.Contains(err.Error(), `unknown field "spec.pahth"`) {
		t.Errorf("a mistyped field: %v", err)
	}
}

// A layer has the account that its Kustomization is applied as, and is refused where that
// is not known: without one it would have the rights of Strata's controller.
func TestConvertUnderADefaultAccount(t *testing.T) {
	for name, test := range map[string]struct {
		reason, spec  string
		account       DefaultAccount
		want          string
		note, problem string
	}{
		"none": {reason: "kustomize-controller applies with its own rights, which are all", spec: "force: false"},
		"default": {
			reason: "the layer is written as the same account", spec: "force: false", account: DefaultAccount{Name: "flux"},
			want: "flux", note: "spec.serviceAccountName: is flux, the --default-service-account",
		},
		"own": {reason: "its own account goes before", spec: "serviceAccountName: me", account: DefaultAccount{Name: "flux"}, want: "me"},
		"a cluster": {
			reason: "Flux acts as the account on other clusters, too", spec: "kubeConfig: {secretRef: {name: edge}}", account: DefaultAccount{Name: "flux"},
			want: "flux", note: "spec.serviceAccountName: is flux",
		},
		"unknown": {
			reason: "it may be one with few rights", spec: "force: false", account: DefaultAccount{Unknown: "nobody says"},
			problem: "spec.serviceAccountName: is empty, and nobody says: ",
		},
		"own and unknown": {reason: "the default does not count", spec: "serviceAccountName: me", account: DefaultAccount{Unknown: "nobody says"}, want: "me"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Convert([]Found{read(t, "a", test.spec)}, Options{Account: test.account})[0]
			if got := c.Layer.Spec.ServiceAccountName; got != test.want {
				t.Errorf("the account is %q, want %q: %s", got, test.want, test.reason)
			}
			begin(t, "notes", some(test.note), c.Notes)
			begin(t, "problems", some(test.problem), c.Problems)
		})
	}
}

// some returns a text, or nothing where it is empty.
func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func TestDefaultAccountOf(t *testing.T) {
	for name, test := range map[string]struct {
		controllers [][]string
		want        string
		unknown     string
	}{
		"no flag":        {controllers: [][]string{{"--events-addr=", "--default-service-accounts=x", "default-service-account=x"}}},
		"a flag":         {controllers: [][]string{{"--watch-all-namespaces=true", "--default-service-account=flux"}}, want: "flux"},
		"two arguments":  {controllers: [][]string{{"--default-service-account", "flux", "--log-level=info"}}, want: "flux"},
		"the last":       {controllers: [][]string{{"--default-service-account=a", "--default-service-account=b"}}, want: "b"},
		"empty":          {controllers: [][]string{{"--default-service-account="}}},
		"shards":         {controllers: [][]string{{"--default-service-account=a"}, {"--default-service-account=a"}}, want: "a"},
		"shards differ":  {controllers: [][]string{{"--default-service-account=a"}, {}}, unknown: `different values of --default-service-account: "", "a"`},
		"of environment": {controllers: [][]string{{"--default-service-account=$(NAME)"}}, unknown: `is "$(NAME)", which is no name`},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, arguments := range test.controllers {
				names = append(names, DefaultAccountIn(arguments))
			}
			got := DefaultAccountOf(names)
			if got.Name != test.want || (got.Unknown == "") != (test.unknown == "") || !strings.Contains(got.Unknown, test.unknown) {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

// layersOf returns each layer that is made, with what it depends on and how it leaves
// Kustomizations out.
func layersOf(all []Conversion) map[string]string {
	got := map[string]string{}
	for _, c := range all {
		if c.Layer == nil {
			got[c.Of.String()] = "-"
			continue
		}
		text := strings.Join(c.Layer.Spec.Prereqs.DependsOn, ",")
		for _, patch := range c.Layer.Spec.Patches {
			text += " without " + patch.Target.Kind + " " + patch.Target.Name
		}
		got[c.Of.String()] = strings.TrimSpace(text)
	}
	return got
}

// A layer waits for what Flux waits for, and never for what waits for it.
func TestConvertWaits(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "apps", Name: name} }
	child := func(name, spec, parent string) Found {
		f := read(t, name, spec)
		f.Parent = key(parent)
		return f
	}
	applying := func(name, spec string, others int, names ...string) Found {
		f := read(t, name, spec)
		f.Others = others
		for _, of := range names {
			f.Applies = append(f.Applies, key(of))
		}
		return f
	}
	const out = " without Kustomization "
	for name, test := range map[string]struct {
		reason string
		all    []Found
		want   map[string]string
	}{
		"a parent that waits": {
			"it may wait for what its child brings",
			[]Found{applying("top", "wait: true", 1, "leaf"), child("leaf", "force: false", "top")},
			map[string]string{"apps/top": strings.TrimSpace(out), "apps/leaf": ""},
		},
		"a parent that does not": {
			"what it applies comes first, as with Flux",
			[]Found{applying("top", "wait: false", 1, "leaf"), child("leaf", "force: false", "top")},
			map[string]string{"apps/top": strings.TrimSpace(out), "apps/leaf": "top"},
		},
		"a parent that depends on its child": {
			"the child cannot wait for it",
			[]Found{applying("top", "dependsOn: [{name: leaf}]", 1, "leaf"), child("leaf", "force: false", "top")},
			map[string]string{"apps/top": "leaf" + out[:len(out)-1], "apps/leaf": ""},
		},
		"a parent that waits, before another": {
			"Flux has it ready when what it applies is",
			[]Found{
				applying("top", "wait: true", 1, "leaf"), child("leaf", "force: false", "top"), applying("next", "dependsOn: [{name: top}]", 1),
			},
			map[string]string{"apps/top": strings.TrimSpace(out), "apps/leaf": "", "apps/next": "top,leaf"},
		},
		"one without a layer that waits, before another": {
			"its children stand for it",
			[]Found{
				applying("top", "wait: true", 0, "leaf"), child("leaf", "force: false", "top"), applying("next", "dependsOn: [{name: top}]", 1),
			},
			map[string]string{"apps/top": "-", "apps/leaf": "", "apps/next": "leaf"},
		},
		"one without a layer that does not, before another": {
			"it is ready as soon as it is applied",
			[]Found{
				applying("top", "wait: false", 0, "leaf"), child("leaf", "force: false", "top"), applying("next", "dependsOn: [{name: top}]", 1),
			},
			map[string]string{"apps/top": "-", "apps/leaf": "", "apps/next": ""},
		},
		"itself": {
			"it would be made again after the hand-over", []Found{applying("web", "force: false", 1, "web")}, map[string]string{"apps/web": strings.TrimSpace(out)},
		},
		"one that has no layer": {
			"it cannot be read, and so stays where it is",
			[]Found{applying("top", "force: false", 1, "leaf", "odd"), child("leaf", "force: false", "top")},
			map[string]string{"apps/top": strings.TrimSpace(out) + " leaf", "apps/leaf": "top"},
		},
		"two that apply one": {
			"both leave it out",
			[]Found{
				applying("a", "force: false", 1, "leaf"), applying("b", "force: false", 1, "leaf"), child("leaf", "force: false", "b"),
			},
			map[string]string{"apps/a": strings.TrimSpace(out), "apps/b": strings.TrimSpace(out), "apps/leaf": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := layersOf(Convert(test.all, Options{}))
			for name, text := range got {
				got[name] = strings.TrimSpace(text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// The health of a Kustomization that has a layer is that of its layer.
func TestConvertHealthChecksOfKustomizations(t *testing.T) {
	top := read(t, "top", "healthChecks: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: leaf}, {kind: Deployment, name: web}]")
	top.Applies = []types.NamespacedName{{Namespace: "apps", Name: "leaf"}}
	leaf, next := read(t, "leaf", "force: false"), read(t, "next", "dependsOn: [{name: top}]")
	leaf.Parent = top.key()
	all := Convert([]Found{top, leaf, next}, Options{})
	if got := all[2].Layer.Spec.HealthChecks; len(got) != 1 || got[0].Name != "web" {
		t.Errorf("it waits for the health of %v", got)
	}
	if got := all[1].Layer.Spec.Prereqs.DependsOn; cmp.Diff([]string{"top", "leaf"}, got) != "" {
		t.Errorf("what depends on it depends on %v", got)
	}
}

func TestConvertDecryptionAndAccounts(t *testing.T) {
	sops := read(t, "a", "decryption: {provider: sops}")
	c := Convert([]Found{sops}, Options{SopsSecret: "keys"})[0]
	if c.Layer.Spec.Decryption == nil || c.Layer.Spec.Decryption.SecretRef.Name != "keys" || len(c.Problems) > 0 {
		t.Errorf("decryption is %+v: %v", c.Layer.Spec.Decryption, c.Problems)
	}
	c = Convert([]Found{read(t, "a", "serviceAccountName: kustomize-controller")}, Options{Reserved: []string{"kustomize-controller"}})[0]
	begin(t, "problems", []string{"spec.serviceAccountName: kustomize-controller is an account of Flux itself"}, c.Problems)
}

// What was written for an older Flux means the same.
func TestReadOlderVersions(t *testing.T) {
	object := document(t, "a.yaml", `
apiVersion: kustomize.toolkit.fluxcd.io/v1beta2
kind: Kustomization
metadata: {name: a, namespace: b, labels: {on: true, size: 3}}
spec:
  interval: 1h
  prune: true
  path: ./x
  validation: client
  sourceRef: {kind: GitRepository, name: g}
  patches: [{patch: one}]
  patchesStrategicMerge: [{kind: ConfigMap, metadata: {name: c}}]
  patchesJson6902: [{patch: [{op: remove, path: /data}], target: {kind: ConfigMap, name: c}}]
`).Object
	k, err := Read(object)
	if err != nil {
		t.Fatal(err)
	}
	var patches []string
	for _, patch := range k.Spec.Patches {
		text := patch.Patch
		if patch.Target != nil {
			text += " of " + patch.Target.Kind
		}
		patches = append(patches, text)
	}
	want := []string{"one", `{"kind":"ConfigMap","metadata":{"name":"c"}}`, `[{"op":"remove","path":"/data"}] of ConfigMap`}
	if diff := cmp.Diff(want, patches); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if k.Labels["true"] != "true" || k.Labels["size"] != "3" {
		t.Errorf("labels are %v", k.Labels)
	}
	if object.GetAPIVersion() != "kustomize.toolkit.fluxcd.io/v1beta2" {
		t.Error("what was read was changed")
	}
}

// A field that still has a variable would be taken as it is written.
func TestConvertNamesVariables(t *testing.T) {
	c := Convert([]Found{read(t, "a", "targetNamespace: '${NS}', serviceAccountName: '${ACCOUNT}', postBuild: {substitute: {X: '${CLUSTER:=a}'}}")}, Options{})[0]
	begin(t, "problems", []string{"spec.serviceAccountName: has the variable ${ACCOUNT}", "spec.postBuild.substitute.X: has the variable ${CLUSTER:=a}"}, c.Problems)
	c = Convert([]Found{read(t, "a", "targetNamespace: '${NS}'")}, Options{})[0]
	begin(t, "problems", []string{"spec.targetNamespace: has the variable ${NS}"}, c.Problems)
}

func TestOwnSources(t *testing.T) {
	ks := func(name, kind, source string) Written {
		return document(t, name+".yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: "+name+"}\n"+
			"spec: {interval: 1h, prune: true, sourceRef: {kind: "+kind+", name: "+source+"}}\n")
	}
	git := func(name, url, branch string) Written {
		return document(t, name+".yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: "+name+"}\nspec: {url: '"+url+"', ref: {branch: "+branch+"}}\n")
	}
	for name, test := range map[string]struct {
		reason  string
		written []Written
		want    []Source
	}{
		"bootstrap":     {"its name says it", []Written{ks("a", "OCIRepository", "x"), ks("b", "GitRepository", "flux-system")}, []Source{{"GitRepository", "flux-system"}}},
		"one":           {"there is no other", []Written{ks("a", "Bucket", "x")}, []Source{{"Bucket", "x"}}},
		"the commonest": {"most are of this repository", []Written{ks("a", "GitRepository", "x"), ks("b", "GitRepository", "own"), ks("c", "GitRepository", "own")}, []Source{{"GitRepository", "own"}}},
		"the same place": {
			"both are this repository",
			[]Written{ks("b", "GitRepository", "flux-system"), git("flux-system", "https://x/y.git", "main"), git("same", "https://x/y", "main"), git("old", "https://x/y", "v1")},
			[]Source{{"GitRepository", "flux-system"}, {"GitRepository", "same"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, OwnSources(test.written, nil)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// An object of two Kustomizations would have two owners, and a Kustomization of two has none.
func TestShared(t *testing.T) {
	with := func(name string, ids ...string) Found {
		f := read(t, name, "force: false")
		f.Status.Inventory = &kustomizev1.ResourceInventory{}
		for _, id := range ids {
			f.Status.Inventory.Entries = append(f.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: id, Version: "v1"})
		}
		return f
	}
	a, b := with("a", "x_one__ConfigMap", "x_child_kustomize.toolkit.fluxcd.io_Kustomization"), with("b", "x_two__ConfigMap", "x_child_kustomize.toolkit.fluxcd.io_Kustomization")
	if object, _ := Shared(a, []Found{a, b}); object != "" {
		t.Errorf("%s is shared", object)
	}
	c := with("c", "x_two__ConfigMap")
	if object, other := Shared(c, []Found{a, b, c}); object != "x_two__ConfigMap" || other != b.key() {
		t.Errorf("%q is shared with %s", object, other)
	}
	if object, _ := Shared(read(t, "d", "force: false"), []Found{a}); object != "" {
		t.Errorf("%s is shared", object)
	}
}
