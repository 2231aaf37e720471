// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples_test checks that the examples fit together: layers with
// their directories, releases with their charts.
package examples_test

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmreleasev2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/strata-project/strata/api/v1alpha1"
)

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, sourcev1.AddToScheme, helmreleasev2.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

func TestLayersNameEachOtherAsTheyAre(t *testing.T) {
	platform := layers(t)
	versions := map[string]string{}
	for _, layer := range platform {
		versions[layer.Name] = layer.Spec.Version
	}
	for _, layer := range platform {
		for _, dependency := range layer.Spec.Prereqs.DependsOn {
			name, version, _ := strings.Cut(dependency, "@")
			if versions[name] != version {
				t.Errorf("layer %s depends on %s, which is at %q", layer.Name, dependency, versions[name])
			}
		}
	}
	if diff := gocmp.Diff(map[string]string{"bootstrap": "1.0.0", "base": "1.0.0", "apps": "1.0.0"}, versions); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
}

func TestReleasesInstallChartsThatAreHere(t *testing.T) {
	namespaces, repositories, releases := map[string]bool{}, map[string]bool{}, 0
	for _, layer := range layers(t) {
		objects := directory(t, filepath.Join("platform", layer.Spec.Source.Path))
		// A layer may use what it brings itself, and what those before it brought.
		for _, obj := range objects {
			switch obj := obj.(type) {
			case *corev1.Namespace:
				namespaces[obj.Name] = true
			case *sourcev1.HelmRepository:
				repositories[obj.Namespace+"/"+obj.Name] = true
			}
		}
		for _, obj := range objects {
			release, ok := obj.(*helmreleasev2.HelmRelease)
			if !ok {
				continue
			}
			releases++
			if !namespaces[release.Namespace] {
				t.Errorf("release %s of layer %s is in the namespace %q, which no layer up to it brings", release.Name, layer.Name, release.Namespace)
			}
			chart := release.Spec.Chart.Spec
			repository := cmp.Or(chart.SourceRef.Namespace, release.Namespace) + "/" + chart.SourceRef.Name
			if !repositories[repository] {
				t.Errorf("release %s of layer %s has its chart from %s, which no layer up to it brings", release.Name, layer.Name, repository)
			}
			install(t, release)
		}
	}
	if releases != 5 {
		t.Errorf("the layers hold %d releases, want 5", releases)
	}
}

// install renders the chart of a release with its values.
func install(t *testing.T, release *helmreleasev2.HelmRelease) {
	t.Helper()
	chart, err := loader.LoadDir(filepath.Join("charts", release.Spec.Chart.Spec.Chart))
	if err != nil {
		t.Errorf("release %s: %v", release.Name, err)
		return
	}
	for value := range release.GetValues() {
		if _, ok := chart.Values[value]; !ok {
			t.Errorf("release %s has the value %s, which the chart %s does not know", release.Name, value, chart.Name())
		}
	}
	options := common.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, IsInstall: true, Revision: 1}
	values, err := util.ToRenderValues(chart, release.GetValues(), options, nil)
	if err != nil {
		t.Errorf("release %s: %v", release.Name, err)
		return
	}
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		t.Errorf("release %s: %v", release.Name, err)
	}
	for name, text := range files {
		if len(decode(t, name, text)) == 0 {
			t.Errorf("release %s: %s renders nothing", release.Name, name)
		}
	}
}

func layers(t *testing.T) []*v1alpha1.AddonsLayer {
	t.Helper()
	var found []*v1alpha1.AddonsLayer
	for _, obj := range decodeFile(t, "platform/layers.yaml") {
		found = append(found, obj.(*v1alpha1.AddonsLayer))
	}
	return found
}

// directory is what a layer's directory holds: what kustomize makes of it, or
// every manifest in it.
func directory(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "kustomization.yaml")); err == nil {
		result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := result.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		return decode(t, dir, string(text))
	}
	var objects []runtime.Object
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			objects = append(objects, decodeFile(t, path)...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func decodeFile(t *testing.T, file string) []runtime.Object {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, file, string(text))
}

func decode(t *testing.T, name, text string) []runtime.Object {
	t.Helper()
	var objects []runtime.Object
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		obj, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, document)
			continue
		}
		objects = append(objects, obj)
	}
}
