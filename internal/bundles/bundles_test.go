// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

var update = flag.Bool("update", false, "write the golden files anew")

// load reads a file of testdata.
func load(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}

func loadCatalogue(t *testing.T) map[string]*v1alpha1.HelmApplication {
	t.Helper()
	var list []*v1alpha1.HelmApplication
	load(t, "catalogue.yaml", &list)
	found := map[string]*v1alpha1.HelmApplication{}
	for _, app := range list {
		found[app.Name] = app
	}
	return found
}

func loadBundle(t *testing.T) *v1alpha1.ApplicationBundle {
	t.Helper()
	bundle := &v1alpha1.ApplicationBundle{}
	load(t, "bundle.yaml", bundle)
	return bundle
}

// known is a cluster of which all is known.
var known = Cluster{
	Name:     types.NamespacedName{Namespace: "fleet", Name: "prod"},
	Endpoint: "https://api.prod.example.com:6443", Version: "v1.33.2", Labels: map[string]string{"zone": "a"},
}

func rawJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func requestOf(t *testing.T, layer string) Request {
	t.Helper()
	return Request{
		Layer: "prod-" + layer, Bundle: loadBundle(t), Path: "./" + layer, Applications: loadCatalogue(t),
		Instance: "prod", Inputs: rawJSON(`{"domain": "example.com"}`), Cluster: known,
	}
}

// written writes what was rendered as YAML.
func written(t *testing.T, manifests []directories.Manifest) string {
	t.Helper()
	var text strings.Builder
	for _, m := range manifests {
		data, err := yaml.Marshal(m.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n# " + m.File)
		if m.Ensured {
			text.WriteString(" (ensured)")
		}
		if m.Home {
			text.WriteString(" (home)")
		}
		for _, id := range m.Needs {
			text.WriteString("\n# needs " + id.String())
		}
		text.WriteString("\n" + string(data))
	}
	return text.String()
}

func render(t *testing.T, request Request) []directories.Manifest {
	t.Helper()
	manifests, err := Render(request)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

// What layers come to, and that it is the same again.
func TestRenderedObjects(t *testing.T) {
	home := requestOf(t, "tenant")
	home.Cluster = Cluster{}
	for name, request := range map[string]Request{
		"network": requestOf(t, "network"), "apps": requestOf(t, "apps"), "objects": requestOf(t, "objects"),
		"tenant-on-prod": requestOf(t, "tenant"), "tenant-at-home": home,
	} {
		t.Run(name, func(t *testing.T) {
			before := request.Bundle.DeepCopy()
			got := written(t, render(t, request))
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("it renders (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, written(t, render(t, request))); diff != "" {
				t.Errorf("it renders something else the second time:\n%s", diff)
			}
			if diff := cmp.Diff(before, request.Bundle); diff != "" {
				t.Errorf("the bundle was changed:\n%s", diff)
			}
			if diff := cmp.Diff(before, loadBundle(t)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// What is rendered has no field that its kind lacks, which a server would drop.
func TestRenderedObjectsFitTheirKinds(t *testing.T) {
	kinds := map[string]func() any{
		"HelmRelease":    func() any { return &helmv2.HelmRelease{} },
		"HelmRepository": func() any { return &sourcev1.HelmRepository{} },
		"OCIRepository":  func() any { return &sourcev1.OCIRepository{} },
		"GitRepository":  func() any { return &sourcev1.GitRepository{} },
		"RemoteCluster":  func() any { return &v1alpha1.RemoteCluster{} },
	}
	for _, layer := range []string{"network", "apps", "tenant"} {
		for _, m := range render(t, requestOf(t, layer)) {
			into := kinds[m.Object.GetKind()]
			if into == nil {
				continue
			}
			data, err := yaml.Marshal(m.Object.Object)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(data, into()); err != nil {
				t.Errorf("%s: %v", m.ID(), err)
			}
		}
	}
}

func TestBundleOfAPlatformSaysSo(t *testing.T) {
	bundle := loadBundle(t)
	isController := true
	bundle.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kraan.io/v1alpha1", Kind: v1alpha1.PlatformKind, Name: "tools", Controller: &isController}}
	d := Decide(Observation{Bundle: bundle, Catalogue: loadCatalogue(t)})
	if got := d.Status.Conditions[0].Message; !strings.Contains(got, "; made for Platform tools") {
		t.Errorf("it says %s", got)
	}
}
