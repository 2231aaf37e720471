// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/kustomize"
	flux "github.com/fluxcd/pkg/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/objects"
)

// repository is one in the shape that Flux users have: no file names a namespace.
func repository() fstest.MapFS {
	return fluxTree(map[string]string{
		"apps/settings.yaml":                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {region: \"${region}\", size: \"${size:=small}\"}\n",
		"apps/deep/more.yml":                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
		"apps/made/kustomization.yaml":       "resources: [x.yaml]\n",
		"apps/made/x.yaml":                   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n",
		"apps/README.md":                     "no manifest",
		"components/loud/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{target: {kind: ConfigMap, name: settings}, patch: '- {op: add, path: /data/loud, value: \"yes\"}'}]\n",
	})
}

func fluxTree(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// buildOf returns the build of a layer with some fields.
func buildOf(t *testing.T, change func(*v1alpha1.AddonsLayerSpec), given ...builds.Variables) builds.Build {
	t.Helper()
	spec := &v1alpha1.AddonsLayerSpec{Build: v1alpha1.BuildFlux}
	change(spec)
	how, err := builds.Of(spec, given...)
	if err != nil {
		t.Fatal(err)
	}
	return how
}

// objectsOf returns what a directory becomes, as YAML, by kind and name.
func objectsOf(t *testing.T, files fstest.MapFS, how builds.Build) map[string]string {
	t.Helper()
	directory, err := ParseAs(t.Context(), files, "./apps", how)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, manifest := range directory.Manifests {
		text, err := yaml.Marshal(manifest.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		got[manifest.ID().String()] = string(text)
	}
	return got
}

func TestDirectoryIsBuiltAsFluxBuildsIt(t *testing.T) {
	how := buildOf(t, func(spec *v1alpha1.AddonsLayerSpec) {
		spec.TargetNamespace, spec.NamePrefix = "shop", "x-"
		spec.Components, spec.IgnoreMissingComponents = []string{"../components/loud", "../components/none"}, true
		spec.CommonMetadata = &v1alpha1.CommonMetadata{Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"by": "us"}}
		spec.Patches = []kustomize.Patch{{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n"}}
		spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"region": "no\nrth"}}
	})
	metadata := func(name string) string {
		return "kind: ConfigMap\nmetadata:\n  annotations:\n    by: us\n  labels:\n    team: shop\n  name: " + name + "\n  namespace: shop\n"
	}
	want := map[string]string{
		"ConfigMap shop/x-settings": "apiVersion: v1\ndata:\n  loud: \"yes\"\n  region: north\n  size: small\n" + metadata("x-settings"),
		"ConfigMap shop/x-more":     "apiVersion: v1\ndata:\n  a: b\n" + metadata("x-more"),
		"ConfigMap shop/x-made":     "apiVersion: v1\n" + metadata("x-made"),
	}
	if diff := cmp.Diff(want, objectsOf(t, repository(), how)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A number becomes a text again as Flux's users make it one.
func TestQuotesAreVariables(t *testing.T) {
	files := fluxTree(map[string]string{
		"apps/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {text: \"${quote}${port}${quote}\", plain: \"${port}\", kept: \"$${port}\"}\n",
	})
	how := buildOf(t, func(spec *v1alpha1.AddonsLayerSpec) {
		spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"quote": `"`, "port": "8080"}}
	})
	want := map[string]string{"ConfigMap b/a": "apiVersion: v1\ndata:\n  kept: ${port}\n  plain: 8080\n  text: \"8080\"\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\n"}
	if diff := cmp.Diff(want, objectsOf(t, files, how)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Objects say which variables nobody gives, and which hold what a Secret gives.
func TestObjectsSayWhatTheyAreMadeWith(t *testing.T) {
	object := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: b}\ndata: {value: \"" + value + "\"}\n"
	}
	files := fluxTree(map[string]string{
		"apps/a.yaml": object("a", "${zone} ${zone} ${area} ${size:=small}"), "apps/b.yaml": object("b", "${token}"),
		"apps/c.yaml": object("c", "${region}"), "apps/d.yaml": object("d", "${region:-${token}}"),
	})
	how := buildOf(t, func(spec *v1alpha1.AddonsLayerSpec) {
		spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"region": "north"}}
	}, builds.Variables{Values: map[string]string{"token": "t0k3n", "region": "secret"}, Secret: true})
	directory, err := ParseAs(t.Context(), files, "./apps", how)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, manifest := range directory.Manifests {
		got[manifest.Object.GetName()] = fmt.Sprint(manifest.Unset, manifest.Confidential)
	}
	want := map[string]string{"a": "[area zone] false", "b": "[] true", "c": "[] false", "d": "[] true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	packed, err := PackRevision(directory)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadRevision(packed)
	if err != nil || !again.Manifests[1].Confidential || again.Manifests[0].Confidential {
		t.Errorf("a kept revision has forgotten what is confidential: %v, %v", again, err)
	}
}

// What the fields of a layer say is judged as what a kustomization in the artifact says.
func TestFieldsOfALayerReachNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha1.AddonsLayerSpec)
		want   string
	}{
		"a component outside": {func(spec *v1alpha1.AddonsLayerSpec) { spec.Components = []string{"../../../etc"} }, "etc"},
		"a remote component": {
			func(spec *v1alpha1.AddonsLayerSpec) { spec.Components = []string{"https://example.com/x"} }, "must be local and relative",
		},
		"a component that is not there": {func(spec *v1alpha1.AddonsLayerSpec) { spec.Components = []string{"../components/none"} }, "components/none"},
		"a patch that is none": {
			func(spec *v1alpha1.AddonsLayerSpec) { spec.Patches = []kustomize.Patch{{Patch: "- op: {"}} }, "kustomize",
		},
		"a name of a variable": {
			func(spec *v1alpha1.AddonsLayerSpec) {
				spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"a-b": "c"}}
			}, "'a-b' var name is invalid",
		},
		"a variable that nobody gives": {
			func(spec *v1alpha1.AddonsLayerSpec) {
				spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"other": "c"}, Strict: true}
			}, `ConfigMap settings: envsubst error: variable substitution failed: variable not set (strict mode): "region"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAs(t.Context(), repository(), "./apps", buildOf(t, test.change))
			reason, message := mistake(err)
			if reason != v1alpha1.ReasonKustomizeFailed && reason != v1alpha1.ReasonPathOutsideArtifact || !strings.Contains(message, test.want) {
				t.Errorf("it says %s: %q, want %q", reason, message, test.want)
			}
			if strings.Contains(message, "/tmp") || strings.Contains(message, "strata-empty") {
				t.Errorf("a path of the machine is in %q", message)
			}
		})
	}
}

// Without a field of this kind a directory is read as it always was: a digest that changed
// with a new version of Strata would roll out everything again.
func TestDirectoriesAreReadAsBefore(t *testing.T) {
	files := repository()
	before, err := Parse(t.Context(), files, "./apps")
	if err == nil {
		t.Fatalf("a nested kustomization is a manifest here: %v", before)
	}
	delete(files, "apps/made/kustomization.yaml")
	delete(files, "apps/made/x.yaml")
	for name := range files {
		if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
			files[name].Data = []byte(strings.ReplaceAll(string(files[name].Data), "metadata: {", "metadata: {namespace: a, "))
		}
	}
	plain, err := Parse(t.Context(), files, "./apps")
	if err != nil {
		t.Fatal(err)
	}
	as, err := ParseAs(t.Context(), files, "./apps", builds.Build{})
	if err != nil || as.Digest != plain.Digest {
		t.Errorf("%v, %v", as, err)
	}
	if got := plain.Manifests[1].Object.Object["data"].(map[string]any)["region"]; got != "${region}" {
		t.Errorf("a variable is %q", got)
	}
}

// What Flux's own packages make of a folder on a disk, Strata makes of the same files in
// its child.
func TestBuildIsThatOfFlux(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AddonsLayerSpec){
		"nothing": func(*v1alpha1.AddonsLayerSpec) {},
		"all": func(spec *v1alpha1.AddonsLayerSpec) {
			spec.TargetNamespace, spec.NamePrefix, spec.NameSuffix = "shop", "x-", "-y"
			spec.Components, spec.IgnoreMissingComponents = []string{"../components/loud", "../components/none"}, true
			spec.Patches = []kustomize.Patch{{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n"}}
			spec.Images = []kustomize.Image{{Name: "app", NewTag: "2"}}
			spec.BuildMetadata = []string{"originAnnotations"}
			spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"region": "north", "n": "1"}}
		},
		"defaults": func(spec *v1alpha1.AddonsLayerSpec) {
			spec.PostBuild = &v1alpha1.PostBuild{SubstituteStrategy: v1alpha1.SubstituteAlways}
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := repository()
			files["apps/run.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: run, labels: {n: \"v${n}\"}}\nspec: {template: {spec: {containers: [{name: a, image: \"app:1\", env: [{name: R, value: \"${region}-${size:-big}\"}]}]}}}\n")}
			for file := range files {
				if strings.HasSuffix(file, "ml") && name != "all" {
					files[file].Data = []byte(strings.ReplaceAll(string(files[file].Data), "metadata: {name", "metadata: {namespace: plain, name"))
				}
			}
			how := buildOf(t, change)
			if diff := cmp.Diff(fluxBuild(t, files, how), objectsOf(t, files, how)); diff != "" {
				t.Errorf("-Flux +Strata:\n%s", diff)
			}
		})
	}
}

// fluxBuild returns what Flux's packages make of the folder apps, as YAML by kind and name.
func fluxBuild(t *testing.T, files fstest.MapFS, how builds.Build) map[string]string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, files); err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	maps.Copy(spec, how.Generator)
	if how.Substitution != nil {
		variables := map[string]any{}
		for name, value := range how.Substitution.Variables {
			variables[name] = value
		}
		spec["postBuild"] = map[string]any{"substitute": variables}
	}
	of := unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	folder := filepath.Join(root, "apps")
	if _, err := flux.NewGenerator(root, of).WriteFile(folder); err != nil {
		t.Fatal(err)
	}
	built, err := flux.SecureBuild(root, folder, false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, made := range built.Resources() {
		if how.Substitution != nil {
			if _, err := flux.SubstituteVariables(t.Context(), nil, of, made, flux.SubstituteWithDryRun(true), flux.SubstituteWithAlways(how.Substitution.Always)); err != nil {
				t.Fatal(err)
			}
		}
		data, err := made.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		dropAnnotations(object.Object, true)
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		got[objects.IDOf(object).String()] = string(text)
	}
	return got
}
