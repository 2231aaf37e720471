// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// toSee are the shapes that import flux names something to be seen to in first: they are
// not installed before that is done.
var toSee = []string{
	"a-base-with-remote-files", "account-of-kustomize-controller", "decryption-without-secretref", "lint-lacks",
	"odd-kustomizations-beside-good-ones", "path-of-another-source",
}

// fluxShape is a repository of internal/answers/gather/testdata/flux.
type fluxShape struct {
	name, namespace string
	layers          []*v1alpha1.AddonsLayer
}

// The first installation of each shape of repository ends: no layer waits for what waits for
// it. Each shape has a namespace of its own, and the repository lies in a folder.
func TestShapesOfFluxAreInstalled(t *testing.T) {
	f := newFixture(t)
	built, err := builtPlugin()
	f.must(err)
	command := plugin{fixture: f, path: built}
	names, err := filepath.Glob("../../internal/answers/gather/testdata/flux/*.txt")
	f.must(err)
	var shapes []fluxShape
	var left []string
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		f.must(err)
		files, dir := filesOfShape(string(text)), t.TempDir()
		for file, text := range files {
			at := filepath.Join(dir, filepath.FromSlash(file))
			f.must(os.MkdirAll(filepath.Dir(at), 0o750))
			f.must(os.WriteFile(at, []byte(text), 0o600))
		}
		for _, cluster := range command.clustersOf(dir) {
			shape := fluxShape{name: strings.TrimSuffix(filepath.Base(name), ".txt") + cluster, namespace: fmt.Sprintf("%s-%d", f.prefix, len(shapes))}
			into := filepath.Join(t.TempDir(), "layers")
			args := []string{"import", "flux", "--from-dir", dir, "--into", into}
			if cluster != "" {
				args = append(args, "--cluster", cluster)
			}
			if code, said := command.run(args...); code != 0 {
				t.Logf("%s is not installed, for import flux says: %s", shape.name, said)
				left = append(left, shape.name)
				continue
			}
			for file, text := range files {
				all[path.Join(shape.name, file)] = shape.placed(text)
			}
			for _, text := range f.folder(into, "") {
				for _, document := range strings.Split(text, "\n---\n") {
					layer := &v1alpha1.AddonsLayer{}
					f.must(yaml.UnmarshalStrict([]byte(document), layer))
					shape.place(f, layer)
				}
			}
			for _, text := range files {
				shape.give(text)
			}
			shapes = append(shapes, shape)
		}
	}
	if diff := cmp.Diff(toSee, left); diff != "" {
		t.Errorf("shapes that are not installed: -want +got:\n%s", diff)
	}
	f.push(all)
	for _, shape := range shapes {
		f.install(shape)
	}
	f.eventually("all layers are deployed", func() error {
		var waiting []string
		for _, shape := range shapes {
			for _, layer := range shape.layers {
				live := &v1alpha1.AddonsLayer{}
				if err := stack.client.Get(f.ctx, types.NamespacedName{Name: layer.Name}, live); err != nil {
					return err
				}
				if live.Status.State != v1alpha1.StateDeployed || live.Status.ObservedGeneration != live.Generation {
					waiting = append(waiting, fmt.Sprintf("%s: layer %s is %s: %s", shape.name, live.Name, live.Status.State, readyMessage(live)))
				}
			}
		}
		if len(waiting) > 0 {
			return errors.New(strings.Join(waiting, "\n"))
		}
		return nil
	})
	t.Logf("%d shapes were installed", len(shapes))
}

// clustersOf returns the clusters of a repository; one without a name where there is one
// alone.
func (p plugin) clustersOf(dir string) []string {
	p.Helper()
	_, text := p.run("import", "flux", "--dry-run", "-o", "json", "--from-dir", dir)
	var listed struct {
		Clusters []struct{ Name string }
	}
	p.must(json.Unmarshal([]byte(text), &listed))
	if len(listed.Clusters) == 0 {
		return []string{""}
	}
	var names []string
	for _, cluster := range listed.Clusters {
		names = append(names, cluster.Name)
	}
	return names
}

// filesOfShape returns the files of a shape; the last one is what is expected elsewhere.
func filesOfShape(text string) map[string]string {
	files := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if title, is := strings.CutPrefix(line, "-- "); is && strings.HasSuffix(title, " --\n") {
			name = strings.TrimSuffix(title, " --\n")
			continue
		}
		if name != "" && name != "want" {
			files[name] += line
		}
	}
	return files
}

// placed has a file be one of the shape's folder and namespace.
func (s *fluxShape) placed(text string) string {
	return strings.NewReplacer(
		"chart: ./", "chart: ./"+s.name+"/", "name: flux-system, namespace: flux-system}}", "name: flux-system, namespace: "+s.namespace+"}}",
	).Replace(text)
}

// place has a layer be one of the shape's folder and namespace. A layer of another source is
// left out, and nothing waits for it: its files are not there.
func (s *fluxShape) place(f *fixture, layer *v1alpha1.AddonsLayer) {
	if layer.Spec.Source.Name != "flux-system" {
		return
	}
	own := func(name string) string { return f.name(strings.TrimPrefix(s.namespace, f.prefix+"-") + "-" + name) }
	layer.Name = own(layer.Name)
	for i, on := range layer.Spec.Prereqs.DependsOn {
		layer.Spec.Prereqs.DependsOn[i] = own(on)
	}
	layer.Spec.Source.Namespace, layer.Spec.Source.Path = s.namespace, "./"+path.Join(s.name, layer.Spec.Source.Path)
	layer.Spec.Namespace, layer.Spec.TargetNamespace = "", s.namespace
	// Nothing is encrypted, and other tests make accounts, keys and Secrets of variables.
	layer.Spec.ServiceAccountName, layer.Spec.Decryption = "", nil
	layer.Spec.Interval, layer.Spec.OrphanGrace = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Second}
	s.layers = append(s.layers, layer)
}

// give puts the variables of the ConfigMaps of a file into the layers that take them: other
// tests make the accounts that may read them.
func (s *fluxShape) give(text string) {
	for _, document := range strings.Split(text, "\n---\n") {
		found := &corev1.ConfigMap{}
		if yaml.Unmarshal([]byte(document), found) != nil || found.Kind != "ConfigMap" {
			continue // it is something else
		}
		for _, layer := range s.layers {
			if layer.Spec.PostBuild == nil || !slices.ContainsFunc(layer.Spec.PostBuild.SubstituteFrom, func(from v1alpha1.SubstituteReference) bool { return from.Name == found.Name }) {
				continue
			}
			given := maps.Clone(found.Data)
			maps.Copy(given, layer.Spec.PostBuild.Substitute)
			layer.Spec.PostBuild.Substitute = given
		}
	}
}

// install creates what a shape needs, and its layers.
func (f *fixture) install(shape fluxShape) {
	f.Helper()
	f.must(stack.plane.CreateNamespace(f.ctx, shape.namespace))
	source := &sourcev1.GitRepository{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "addons"}, source))
	f.must(stack.client.Create(f.ctx, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: shape.namespace, Name: "flux-system"}, Spec: source.Spec}))
	f.Cleanup(func() {
		releases := &helmv2.HelmReleaseList{}
		f.must(stack.client.List(f.ctx, releases, client.InNamespace(shape.namespace)))
		for i := range releases.Items {
			f.letGo(&releases.Items[i])
		}
		f.must(stack.client.DeleteAllOf(f.ctx, &sourcev1.GitRepository{}, client.InNamespace(shape.namespace)))
	})
	known := func(name string) bool {
		return slices.ContainsFunc(shape.layers, func(layer *v1alpha1.AddonsLayer) bool { return layer.Name == name })
	}
	for _, layer := range shape.layers {
		if layer.Spec.PostBuild != nil {
			layer.Spec.PostBuild.SubstituteFrom = nil
		}
		layer.Spec.Prereqs.DependsOn = slices.DeleteFunc(layer.Spec.Prereqs.DependsOn, func(name string) bool { return !known(name) })
		f.must(stack.client.Create(f.ctx, layer))
	}
}
