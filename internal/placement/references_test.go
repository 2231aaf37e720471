// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// ofFlux returns an object of a kind of Flux, in the namespace default.
func ofFlux(kind string, spec ...any) directories.Manifest {
	versions := map[string]string{
		"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1", "ArtifactGenerator": "source.extensions.fluxcd.io/v1beta1",
	}
	version := versions[kind]
	if version == "" {
		version = sources.Group + "/v1"
	}
	m := directoriestest.Any(version, kind, "default", "a")
	fields := map[string]any{}
	for i := 0; i+1 < len(spec); i += 2 {
		fields[spec[i].(string)] = spec[i+1]
	}
	m.Object.Object["spec"] = fields
	return m
}

func to(name string) map[string]any { return map[string]any{"name": name} }

// Of each reference to a Secret or a ConfigMap that a kind of Flux can have, a copy
// is read beside the RemoteCluster: what is named there of old is nobody's.
func TestPutFollowsEachReference(t *testing.T) {
	list := []any{map[string]any{"kind": "Secret", "name": "x"}, map[string]any{"kind": "ConfigMap", "name": "x"}}
	for _, test := range []struct {
		kind string
		spec []any
		want string
	}{
		{"HelmRelease", []any{"valuesFrom", list}, "ConfigMap x, Secret x"},
		{"Kustomization", []any{"postBuild", map[string]any{"substituteFrom": list}}, "ConfigMap x, Secret x"},
		{"Kustomization", []any{"decryption", map[string]any{"secretRef": to("x")}}, "Secret x"},
		{"GitRepository", []any{"secretRef", to("x")}, "Secret x"},
		{"GitRepository", []any{"proxySecretRef", to("x")}, "Secret x"},
		{"GitRepository", []any{"verify", map[string]any{"secretRef": to("x")}}, "Secret x"},
		{"OCIRepository", []any{"secretRef", to("x")}, "Secret x"},
		{"OCIRepository", []any{"certSecretRef", to("x")}, "Secret x"},
		{"OCIRepository", []any{"proxySecretRef", to("x")}, "Secret x"},
		{"OCIRepository", []any{"verify", map[string]any{"secretRef": to("x")}}, "Secret x"},
		{"OCIRepository", []any{"verify", map[string]any{"trustedRootSecretRef": to("x")}}, "Secret x"},
		{"HelmRepository", []any{"secretRef", to("x"), "certSecretRef", to("y")}, "Secret x, Secret y"},
		{"HelmChart", []any{"verify", map[string]any{"secretRef": to("x")}}, "Secret x"},
		{"Bucket", []any{"secretRef", to("x")}, "Secret x"},
		{"Bucket", []any{"certSecretRef", to("x")}, "Secret x"},
		{"Bucket", []any{"proxySecretRef", to("x")}, "Secret x"},
		{"Bucket", []any{"sts", map[string]any{"secretRef": to("x"), "certSecretRef": to("y")}}, "Secret x, Secret y"},
	} {
		m := ofFlux(test.kind, test.spec...)
		var reads []string
		for _, id := range prod.Reads(directoriestest.Of("main@sha1:new", m)) {
			reads = append(reads, id.Kind+" "+id.Name)
		}
		if got := strings.Join(reads, ", "); got != test.want {
			t.Errorf("a %s with %v reads %s, want %s", test.kind, test.spec, got, test.want)
		}
		put, err := prod.Put(directoriestest.Of("main@sha1:new", m))
		if err != nil {
			t.Fatal(err)
		}
		for _, placed := range put.Manifests {
			if placed.Object.GetKind() != test.kind {
				continue
			}
			for _, found := range referencesIn(placed.Object) {
				for _, ref := range append([]any{found.value}, listOf(found.value)...) {
					if fields, _ := ref.(map[string]any); found.to != toCluster && (fields["name"] == "x" || fields["name"] == "y") {
						t.Errorf("a %s with %v reads %v in the namespace of the RemoteCluster", test.kind, test.spec, fields)
					}
				}
			}
		}
	}
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// The Secret that verifies a chart lies beside the chart's source.
func TestPutFollowsTheKeyOfAChart(t *testing.T) {
	charts := directoriestest.Any(sources.Group+"/v1", "HelmRepository", "elsewhere", "charts")
	release := directoriestest.HelmRelease("podinfo", "chart", map[string]any{"spec": map[string]any{
		"chart": "podinfo", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts", "namespace": "elsewhere"},
		"verify": map[string]any{"secretRef": to("key")},
	}})
	want := []objects.ID{{Kind: "Secret", Namespace: "elsewhere", Name: "key"}}
	if diff := cmp.Diff(want, prod.Reads(directoriestest.Of("main@sha1:new", release, charts))); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
}

// References by name alone to sources of the same namespace follow these.
func TestPutFollowsLocalSources(t *testing.T) {
	included := ofFlux("GitRepository")
	included.Object.SetName("included")
	git := ofFlux("GitRepository", "include", []any{map[string]any{"repository": to("included")}, map[string]any{"repository": to("other")}})
	chart := ofFlux("HelmChart", "chart", "x", "sourceRef", map[string]any{"kind": "GitRepository", "name": "included"})
	generator := ofFlux("ArtifactGenerator", "sources", []any{map[string]any{"alias": "a", "kind": "GitRepository", "name": "included"}})
	found := putAll(t, prod, included, git, chart, generator)
	name := found["GitRepository fleet/prod-included"].Object.GetName()
	for key, want := range map[string]any{
		"GitRepository fleet/prod-a":     []any{map[string]any{"repository": to(name)}, map[string]any{"repository": to("other")}},
		"HelmChart fleet/prod-a":         map[string]any{"kind": "GitRepository", "name": name},
		"ArtifactGenerator fleet/prod-a": []any{map[string]any{"alias": "a", "kind": "GitRepository", "name": name, "namespace": "fleet"}},
	} {
		spec := specOf(t, found, key)
		for _, field := range []string{"include", "sourceRef", "sources"} {
			if got, has := spec[field]; has {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		}
	}
}

// What a newer Flux may read, and nobody has followed, is refused rather than read in
// the namespace of the RemoteCluster.
func TestPutRefusesUnknownReferences(t *testing.T) {
	for field, m := range map[string]directories.Manifest{
		"spec.newSecretRef":                           ofFlux("HelmRepository", "newSecretRef", to("x")),
		"spec.verify.rootsFrom":                       ofFlux("OCIRepository", "verify", map[string]any{"rootsFrom": to("x")}),
		"spec.auth[].secretRef":                       ofFlux("Bucket", "auth", []any{map[string]any{"secretRef": to("x")}}),
		"spec.chart.spec.verify.trustedRootSecretRef": directoriestest.HelmRelease("a", "chart", map[string]any{"spec": map[string]any{"verify": map[string]any{"trustedRootSecretRef": to("x")}}}),
		"spec.secretRef":                              ofFlux("NewSource", "secretRef", to("x")),
		"spec.serviceAccountName":                     ofFlux("HelmRepository", "serviceAccountName", "x"),
	} {
		_, err := prod.Put(directoriestest.Of("main@sha1:new", m))
		var content *directories.ContentError
		if !errors.As(err, &content) || content.Field != field || !strings.Contains(content.Message, "refers to something in a way that cannot be followed to another cluster") {
			t.Errorf("%s: %v", field, err)
		}
	}
	free := map[string]any{"secretRef": to("x"), "deep": []any{map[string]any{"valuesFrom": to("x")}}}
	if _, err := prod.Put(directoriestest.Of("main@sha1:new", directoriestest.HelmRelease("a", "values", free, "postRenderers", []any{free}))); err != nil {
		t.Errorf("values are nobody's references: %v", err)
	}
}

// Each field of Flux's kinds that has the name of a reference is known to be one, or
// to be none, and no other is.
func TestReferencesAreThoseOfFlux(t *testing.T) {
	for kind, spec := range map[string]any{
		"HelmRelease": helmv2.HelmReleaseSpec{}, "GitRepository": sourcev1.GitRepositorySpec{}, "OCIRepository": sourcev1.OCIRepositorySpec{},
		"HelmRepository": sourcev1.HelmRepositorySpec{}, "HelmChart": sourcev1.HelmChartSpec{}, "Bucket": sourcev1.BucketSpec{},
		"ExternalArtifact": sourcev1.ExternalArtifactSpec{},
	} {
		gk := schema.GroupKind{Group: sources.Group, Kind: kind}
		if kind == "HelmRelease" {
			gk = kinds.HelmReleaseKind
		}
		fields := map[string]bool{}
		fieldsOf(reflect.TypeOf(spec), "spec", fields)
		known := map[string]bool{}
		for _, ref := range referencesOf[gk] {
			known[ref.path] = true
			if !fields[ref.path] && !slices.Contains([]string{"spec.accessFrom", "spec.kubeConfig"}, ref.path) {
				t.Errorf("a %s has no field %s", kind, ref.path)
			}
			if ref.to == toChartSource {
				for field := range chartSpecFields {
					known[field] = true
				}
			}
		}
		for field := range fields {
			name := field[strings.LastIndex(field, ".")+1:]
			below := slices.ContainsFunc(referencesOf[gk], func(ref reference) bool {
				return ref.to != toChartSource && strings.HasPrefix(field, strings.TrimSuffix(ref.path, "[]")) && field != ref.path &&
					strings.ContainsAny(field[len(ref.path):len(ref.path)+1], ".[")
			})
			if !known[field] && !below && !slices.Contains(namesOfNothing, field) && (namesReference(name) || fields[field+".name"] || fields[field+".namespace"]) && !strings.HasSuffix(field, "[]") {
				t.Errorf("nobody says what %s of a %s refers to", field, kind)
			}
		}
	}
}

// namesOfNothing have a name or a namespace in them, and refer to nothing that is read.
var namesOfNothing = []string{"spec.waitStrategy", "spec.install.strategy", "spec.upgrade.strategy", "spec.driftDetection.ignore[].target"}

// fieldsOf collects the paths of the fields of a type.
func fieldsOf(of reflect.Type, path string, into map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer:
		fieldsOf(of.Elem(), path, into)
	case reflect.Slice:
		fieldsOf(of.Elem(), path+"[]", into)
	case reflect.Struct:
		if strings.Contains(of.PkgPath(), "k8s.io/") {
			return // times, and JSON of any shape
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			switch {
			case name == "-":
			case name == "" && of.Field(i).Anonymous:
				fieldsOf(of.Field(i).Type, path, into)
			default:
				into[path+"."+name] = true
				fieldsOf(of.Field(i).Type, path+"."+name, into)
			}
		}
	}
}
