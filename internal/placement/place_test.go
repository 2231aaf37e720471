// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

var prod = Place{Layer: "base", Cluster: types.NamespacedName{Namespace: "fleet", Name: "prod"}}

// putAll puts manifests on prod and returns what comes of each by its kind and the
// beginning of its name, without the hash.
func putAll(t *testing.T, place Place, manifests ...directories.Manifest) map[string]directories.Manifest {
	t.Helper()
	placed, err := place.Put(directoriestest.Of("main@sha1:new", manifests...))
	if err != nil {
		t.Fatal(err)
	}
	if placed.Cluster != "fleet/prod" || placed.Digest != directoriestest.Of("main@sha1:new", manifests...).Digest {
		t.Errorf("the directory is of %s, with the digest %s", placed.Cluster, placed.Digest)
	}
	found := map[string]directories.Manifest{}
	for _, m := range placed.Manifests {
		name := m.Object.GetName()
		if m.Cluster == "" && !m.Observed {
			name = strings.TrimPrefix(name[:len(name)-21], reserved.CopyPrefix)
		}
		found[m.Object.GetKind()+" "+m.Object.GetNamespace()+"/"+name] = m
	}
	return found
}

func specOf(t *testing.T, found map[string]directories.Manifest, key string) map[string]any {
	t.Helper()
	m, ok := found[key]
	if !ok {
		t.Fatalf("there is no %s among %v", key, found)
	}
	spec, _ := m.Object.Object["spec"].(map[string]any)
	return spec
}

func TestPutSaysAllOfARelease(t *testing.T) {
	written := directoriestest.HelmRelease("podinfo",
		"chart", map[string]any{"spec": map[string]any{"chart": "podinfo", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts"}}},
		"dependsOn", []any{map[string]any{"name": "crds"}, map[string]any{"name": "other", "namespace": "elsewhere"}},
		"values", map[string]any{"replicas": int64(2)},
	)
	before := written.Object.DeepCopy()
	found := putAll(t, prod, written, directoriestest.HelmRelease("crds"))
	if !cmp.Equal(before, written.Object) {
		t.Error("what was written has changed")
	}
	got := specOf(t, found, "HelmRelease fleet/prod-podinfo")
	name := func(namespace, of string) string {
		return (&putting{Place: prod}).name(objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: namespace, Name: of})
	}
	want := map[string]any{
		"interval": "1m", "values": map[string]any{"replicas": int64(2)},
		"kubeConfig":  map[string]any{"secretRef": map[string]any{"name": "strata-kubeconfig-prod", "key": "value"}},
		"releaseName": "podinfo", "targetNamespace": "default", "storageNamespace": "default",
		"chart":     map[string]any{"spec": map[string]any{"chart": "podinfo", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "charts", "namespace": "default"}}},
		"dependsOn": []any{map[string]any{"name": name("default", "crds")}, map[string]any{"name": name("elsewhere", "other")}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the release (-want +got):\n%s", diff)
	}
	if m := found["Namespace /default"]; !m.Ensured || m.Cluster != "fleet/prod" {
		t.Errorf("the namespace that it needs: %+v", m)
	}
	if found["HelmRelease fleet/prod-podinfo"].Cluster != "" {
		t.Error("the release leaves the cluster that Flux runs in")
	}
}

// What Flux would work out from the name and the namespace of a release stays as
// it is without a cluster.
func TestPutKeepsHelmsNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	for name, test := range map[string]struct {
		manifest                 directories.Manifest
		release, target, storage string
	}{
		"by its name":             {directoriestest.HelmRelease("podinfo"), "podinfo", "default", "default"},
		"with a target namespace": {directoriestest.HelmRelease("podinfo", "targetNamespace", "apps"), "apps-podinfo", "apps", "default"},
		"with all":                {directoriestest.HelmRelease("podinfo", "targetNamespace", "apps", "storageNamespace", "helm", "releaseName", "web"), "web", "apps", "helm"},
		"of a long name":          {directoriestest.HelmRelease(long), "", "default", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			placed, err := prod.Put(directoriestest.Of("main@sha1:new", test.manifest))
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(placed.Manifests, func(m directories.Manifest) bool { return m.Object.GetKind() == "HelmRelease" })
			obj := placed.Manifests[at].Object
			spec := obj.Object["spec"].(map[string]any)
			want := []any{test.release, test.target, test.storage}
			if test.release == "" {
				want[0], _, _ = strings.Cut(kinds.HelmReleaseIdentity(test.manifest.Object)[len("default/"):], "/")
			}
			if diff := cmp.Diff(want, []any{spec["releaseName"], spec["targetNamespace"], spec["storageNamespace"]}); diff != "" {
				t.Errorf("release, target and storage (-want +got):\n%s", diff)
			}
			if len(spec["releaseName"].(string)) > 53 || len(obj.GetName()) > 63 {
				t.Errorf("names are too long: %s, %s", spec["releaseName"], obj.GetName())
			}
			there := "fleet/strata-kubeconfig-prod/"
			if got := kinds.HelmReleaseIdentity(obj); got != there+kinds.HelmReleaseIdentity(test.manifest.Object) {
				t.Errorf("it stands for %s", got)
			}
		})
	}
}

func TestPutTakesAllElseThere(t *testing.T) {
	found := putAll(t, prod,
		directoriestest.Any("v1", "Namespace", "", "default"), directoriestest.Any("v1", "ConfigMap", "default", "settings"),
		directoriestest.Any("source.toolkit.fluxcd.io/v1", "HelmRepository", "default", "charts"), directoriestest.HelmRelease("podinfo", "chartRef", map[string]any{"kind": "HelmRepository", "name": "charts"}),
	)
	for _, key := range []string{"Namespace /default", "ConfigMap default/settings"} {
		if m := found[key]; m.Cluster != "fleet/prod" || m.Ensured {
			t.Errorf("%s: %+v", key, m)
		}
	}
	source, ok := found["HelmRepository fleet/prod-charts"]
	if !ok {
		t.Fatalf("the source is not beside the cluster: %v", found)
	}
	ref := specOf(t, found, "HelmRelease fleet/prod-podinfo")["chartRef"]
	want := map[string]any{"kind": "HelmRepository", "name": source.Object.GetName(), "namespace": "fleet"}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Errorf("the release's source (-want +got):\n%s", diff)
	}
	if len(found) != 4 {
		t.Errorf("there is more than that: %v", found)
	}
}

// What stays at home stays as it is, and what an object waits for is followed to
// where that goes.
func TestPutKeepsWhatStaysAtHome(t *testing.T) {
	home, job := directoriestest.Any("kraan.io/v1alpha1", "RemoteCluster", "default", "inner"), directoriestest.Any("batch/v1", "Job", "default", "migrate")
	home.Home = true
	settings, release := directoriestest.Any("v1", "ConfigMap", "default", "settings"), directoriestest.HelmRelease("podinfo")
	job.Needs = []objects.ID{home.ID(), release.ID(), settings.ID()}
	placed, err := prod.Put(directoriestest.Of("main@sha1:new", home, job, settings, release))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]objects.ID{}
	for _, m := range placed.Manifests {
		ids[m.Object.GetKind()] = m.ID()
	}
	if ids["RemoteCluster"] != home.ID() {
		t.Errorf("what stays at home is %s", ids["RemoteCluster"])
	}
	for _, m := range placed.Manifests {
		if m.Object.GetKind() != "Job" {
			continue
		}
		if diff := cmp.Diff([]objects.ID{ids["RemoteCluster"], ids["HelmRelease"], ids["ConfigMap"]}, m.Needs); diff != "" {
			t.Errorf("the Job waits for (-want +got):\n%s", diff)
		}
	}
}

// A source that another layer of the cluster brings is found beside it, too.
func TestPutFindsSourcesOfOtherLayers(t *testing.T) {
	place := prod
	place.Lists = func(id objects.ID) bool {
		return id.Kind == "OCIRepository" && id.Namespace == "fleet" && strings.HasPrefix(id.Name, "prod-charts-")
	}
	found := putAll(t, place, directoriestest.HelmRelease("podinfo", "chartRef", map[string]any{"kind": "OCIRepository", "name": "charts"}))
	ref := specOf(t, found, "HelmRelease fleet/prod-podinfo")["chartRef"].(map[string]any)
	if ref["namespace"] != "fleet" || !strings.HasPrefix(ref["name"].(string), "prod-charts-") {
		t.Errorf("it refers to %v", ref)
	}
}

func configMap(name, value string) *unstructured.Unstructured {
	obj := directoriestest.Any("v1", "ConfigMap", "default", name).Object
	obj.Object["data"] = map[string]any{"values.yaml": value}
	return obj
}

// What the directory lists comes before what is given from elsewhere.
func TestPutCopiesTheNearest(t *testing.T) {
	release := directoriestest.HelmRelease("podinfo", "valuesFrom", []any{map[string]any{"kind": "ConfigMap", "name": "settings"}})
	place := prod
	place.Given = map[objects.ID]Given{{Kind: "ConfigMap", Namespace: "default", Name: "settings"}: {Object: configMap("settings", "given")}}
	for name, manifests := range map[string][]directories.Manifest{
		"listed": {release, {File: "base/settings.yaml", Object: configMap("settings", "listed")}},
		"given":  {release},
	} {
		t.Run(name, func(t *testing.T) {
			copied := putAll(t, place, manifests...)["ConfigMap fleet/prod-settings"]
			if data := copied.Object.Object["data"]; !cmp.Equal(data, map[string]any{"values.yaml": name}) {
				t.Errorf("the copy holds %v", data)
			}
		})
	}
}

func TestPutCopiesWhatReleasesRead(t *testing.T) {
	release := directoriestest.HelmRelease("podinfo", "valuesFrom", []any{
		map[string]any{"kind": "ConfigMap", "name": "listed"},
		map[string]any{"kind": "Secret", "name": "found"},
		map[string]any{"kind": "Secret", "name": "missing"},
		map[string]any{"kind": "Secret", "name": "optional", "optional": true},
	})
	listed := directories.Manifest{File: "base/listed.yaml", Object: configMap("listed", "one")}
	secret := directoriestest.Any("v1", "Secret", "default", "found").Object
	secret.Object["data"], secret.Object["type"] = map[string]any{"values.yaml": "dHdv"}, "Opaque"
	secret.SetLabels(map[string]string{"owner": "somebody"})
	id := func(kind, name string) objects.ID {
		return objects.ID{Kind: kind, Namespace: "default", Name: name}
	}
	if diff := cmp.Diff([]objects.ID{id("Secret", "found"), id("Secret", "missing"), id("Secret", "optional")}, prod.Reads(directoriestest.Of("main@sha1:new", release, listed))); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
	place := prod
	place.Given = map[objects.ID]Given{id("Secret", "found"): {Object: secret}}
	found := putAll(t, place, release, listed)

	if found["ConfigMap default/listed"].Cluster != "fleet/prod" {
		t.Error("the ConfigMap of the directory is not put on the cluster")
	}
	copied := found["ConfigMap fleet/prod-listed"].Object
	if data := copied.Object["data"]; !cmp.Equal(data, map[string]any{"values.yaml": "one"}) {
		t.Errorf("the copy of the ConfigMap holds %v", data)
	}
	secretCopy := found["Secret fleet/prod-found"].Object
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"values.yaml": "dHdv"},
		"metadata": map[string]any{
			"namespace": "fleet", "name": secretCopy.GetName(), "labels": map[string]any{"reconcile.fluxcd.io/watch": "Enabled"},
			"annotations": map[string]any{"kraan.io/copy-of": "Secret/default/found", "kraan.io/placed-for": "fleet/prod"},
		},
	}
	if diff := cmp.Diff(want, secretCopy.Object); diff != "" {
		t.Errorf("the copy of the Secret (-want +got):\n%s", diff)
	}
	values := specOf(t, found, "HelmRelease fleet/prod-podinfo")["valuesFrom"].([]any)
	if got := values[1].(map[string]any)["name"]; got != secretCopy.GetName() {
		t.Errorf("the release reads %v", got)
	}
	if !found["Secret default/missing"].Observed || !found["Secret default/optional"].Observed {
		t.Errorf("what is missing is not looked for: %v", found)
	}
	if found["Secret default/missing"].Optional || !found["Secret default/optional"].Optional {
		t.Errorf("what is optional: %v", found)
	}
	needing := directoriestest.HelmRelease("web", "valuesFrom", []any{map[string]any{"kind": "Secret", "name": "optional"}})
	if putAll(t, place, release, needing)["Secret default/optional"].Optional {
		t.Error("it is optional for one of two releases, and counts for neither")
	}
	if diff := cmp.Diff([]objects.ID{id("Secret", "missing")}, found["HelmRelease fleet/prod-podinfo"].Needs); diff != "" {
		t.Errorf("what the release waits for (-want +got):\n%s", diff)
	}

	other := place
	other.Layer = "apps"
	if _, same := putAll(t, other, release)["Secret fleet/prod-found"]; !same {
		t.Error("the other layer has no copy")
	}
	if name := putAll(t, other, release)["Secret fleet/prod-found"].Object.GetName(); name == secretCopy.GetName() {
		t.Error("two layers have one copy")
	}
}

func TestPutCopiesTheSecretsOfSources(t *testing.T) {
	source := directoriestest.Any("source.toolkit.fluxcd.io/v1", "HelmRepository", "default", "charts")
	source.Object.Object["spec"] = map[string]any{"secretRef": map[string]any{"name": "login"}, "certSecretRef": map[string]any{"name": "tls"}}
	want := []objects.ID{{Kind: "Secret", Namespace: "default", Name: "login"}, {Kind: "Secret", Namespace: "default", Name: "tls"}}
	if diff := cmp.Diff(want, prod.Reads(directoriestest.Of("main@sha1:new", source))); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
	spec := specOf(t, putAll(t, prod, source), "HelmRepository fleet/prod-charts")
	if name := spec["secretRef"].(map[string]any)["name"].(string); !strings.HasPrefix(name, "strata-copy-prod-login-") {
		t.Errorf("it reads %s", name)
	}
}

func TestPutOfKustomizations(t *testing.T) {
	k := directoriestest.Any("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "default", "apps")
	k.Object.Object["spec"] = map[string]any{
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"}, "dependsOn": []any{map[string]any{"name": "infra"}},
		"postBuild": map[string]any{"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "vars"}}},
	}
	spec := specOf(t, putAll(t, prod, k), "Kustomization fleet/prod-apps")
	if diff := cmp.Diff(map[string]any{"kind": "GitRepository", "name": "apps", "namespace": "default"}, spec["sourceRef"]); diff != "" {
		t.Errorf("its source (-want +got):\n%s", diff)
	}
	if spec["kubeConfig"] == nil || spec["releaseName"] != nil {
		t.Errorf("it is %v", spec)
	}
	if diff := cmp.Diff([]objects.ID{{Kind: "ConfigMap", Namespace: "default", Name: "vars"}}, prod.Reads(directoriestest.Of("main@sha1:new", k))); diff != "" {
		t.Errorf("what is read (-want +got):\n%s", diff)
	}
}

// Releases are installed there as the layer's account, and as no other. Without one
// they may name any: that takes rights away from the kubeconfig's user.
func TestPutNamesTheAccount(t *testing.T) {
	place := prod
	place.Account = "deployer"
	found := putAll(t, place, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b", "serviceAccountName", "deployer"))
	for _, name := range []string{"a", "b"} {
		if got := specOf(t, found, "HelmRelease fleet/prod-"+name)["serviceAccountName"]; got != "deployer" {
			t.Errorf("release %s is installed as %v", name, got)
		}
	}
	if got, named := specOf(t, putAll(t, prod, directoriestest.HelmRelease("a")), "HelmRelease fleet/prod-a")["serviceAccountName"]; named {
		t.Errorf("without one it is installed as %v", got)
	}
	if got := specOf(t, putAll(t, prod, directoriestest.HelmRelease("a", "serviceAccountName", "own")), "HelmRelease fleet/prod-a")["serviceAccountName"]; got != "own" {
		t.Errorf("without one it is installed as %v, want its own", got)
	}
	for _, test := range []struct {
		manifest directories.Manifest
		field    string
	}{
		{directoriestest.HelmRelease("b", "serviceAccountName", "admin"), "spec.serviceAccountName"},
		{ofFlux("Kustomization", "decryption", map[string]any{"serviceAccountName": "admin"}), "spec.decryption.serviceAccountName"},
		{ofFlux("OCIRepository", "serviceAccountName", "admin"), "spec.serviceAccountName"},
		{ofFlux("Bucket", "serviceAccountName", "admin"), "spec.serviceAccountName"},
	} {
		_, err := place.Put(directoriestest.Of("main@sha1:new", test.manifest))
		var content *directories.ContentError
		if !errors.As(err, &content) || content.Field != test.field || content.Reason != "AccessDenied" || !strings.Contains(content.Message, "names ServiceAccount admin, and its layer acts as deployer") {
			t.Errorf("%s as another account: %v", test.manifest.ID(), err)
		}
	}
}

func TestPutRefusesAKubeConfig(t *testing.T) {
	_, err := prod.Put(directoriestest.Of("main@sha1:new", directoriestest.HelmRelease("podinfo", "kubeConfig", map[string]any{"secretRef": map[string]any{"name": "mine"}})))
	var content *directories.ContentError
	if !errors.As(err, &content) || content.File != "base/podinfo.yaml" || content.Field != "spec.kubeConfig" || !strings.Contains(content.Message, "names a cluster itself, and its layer belongs on RemoteCluster fleet/prod") {
		t.Errorf("the error is %v", err)
	}
}

func TestPutAtHome(t *testing.T) {
	dir := directoriestest.Of("main@sha1:new", directoriestest.HelmRelease("podinfo"))
	home := Place{Layer: "base"}
	if placed, err := home.Put(dir); err != nil || placed != dir {
		t.Errorf("it is another: %v, %v", placed, err)
	}
	if ids := home.Reads(dir); ids != nil {
		t.Errorf("it follows %v", ids)
	}
	if placed, err := prod.Put(nil); placed != nil || err != nil {
		t.Errorf("nothing becomes %v, %v", placed, err)
	}
}

// Whatever two objects and clusters are called, what is put beside a RemoteCluster
// has names of its own that Kubernetes takes, and the same ones each time.
func TestNamesBesideAClusterAreTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?`)
		draw := func(of string) (Place, objects.ID) {
			return Place{Cluster: types.NamespacedName{Namespace: "fleet", Name: rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?`).Draw(t, of+" cluster")}},
				objects.ID{Kind: "Secret", Namespace: name.Draw(t, of+" namespace"), Name: name.Draw(t, of+" name")}
		}
		place, id := draw("one")
		otherPlace, otherID := draw("other")
		got := (&putting{Place: place}).name(id)
		if got != (&putting{Place: place}).name(id) {
			t.Fatal("the name is another the second time")
		}
		if len(got) > maxPlacedName || strings.Contains(got, "..") && !strings.Contains(id.Name, "..") || got[len(got)-1] == '-' {
			t.Fatalf("%q is no name", got)
		}
		if other := (&putting{Place: otherPlace}).name(otherID); other == got && (place.Cluster != otherPlace.Cluster || id != otherID) {
			t.Fatalf("%v on %v and %v on %v are both called %s", id, place.Cluster, otherID, otherPlace.Cluster, got)
		}
	})
}

// A claim stays where Strata runs, beside the RemoteCluster, and the release reads its binding
// there; one that it is bound to follows it where the directory has it.
func TestPutClaims(t *testing.T) {
	claim := func(name string, to any) directories.Manifest {
		spec := map[string]any{"capability": "database/postgresql"}
		if to != nil {
			spec["boundTo"] = to
		}
		return directories.Manifest{File: "claims.yaml", Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kraan.io/v1alpha1", "kind": kinds.ClaimKind.Kind, "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
		}}}
	}
	reads := directoriestest.HelmRelease("shop", "valuesFrom", []any{
		map[string]any{"kind": "Secret", "name": "db-binding", "valuesKey": "uri"},
		map[string]any{"kind": "Secret", "name": "other-binding"},
	})
	written := claim("db", nil)
	reads.Needs = []objects.ID{written.ID()}
	found := putAll(t, prod, reads, written, claim("near", map[string]any{"name": "db"}), claim("far", map[string]any{"name": "db", "namespace": "elsewhere"}))
	placed := found["CapabilityClaim fleet/prod-db"]
	if placed.Object == nil || placed.Cluster != "" || specOf(t, found, "CapabilityClaim fleet/prod-db")["cluster"] != "prod" {
		t.Fatalf("there are %v", found)
	}
	name := placed.Object.GetName()
	values, _ := specOf(t, found, "HelmRelease fleet/prod-shop")["valuesFrom"].([]any)
	if got := values[0].(map[string]any)["name"]; got != name+"-binding" {
		t.Errorf("the release reads %s, and the claim is %s", got, name)
	}
	if got := values[1].(map[string]any)["name"].(string); !strings.HasPrefix(got, reserved.CopyPrefix) {
		t.Errorf("the release reads %s, of which there is no claim", got)
	}
	if diff := cmp.Diff([]objects.ID{placed.ID()}, found["HelmRelease fleet/prod-shop"].Needs[:1]); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]any{
		"CapabilityClaim fleet/prod-near": map[string]any{"name": name},
		"CapabilityClaim fleet/prod-far":  map[string]any{"name": "db", "namespace": "elsewhere"},
	} {
		if diff := cmp.Diff(want, specOf(t, found, key)["boundTo"]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if got := specOf(t, found, "CapabilityClaim fleet/prod-db")["clusterNamespace"]; got != "default" {
		t.Errorf("on its cluster the claim is of the namespace %v", got)
	}
	if found["Namespace /default"].Cluster != "fleet/prod" || !found["Namespace /default"].Ensured {
		t.Error("nobody sees to the claim's namespace there")
	}
}

// What an application of another cluster has is for the claims of that cluster, of its own
// namespace or of all. With objects it would be made by accounts of the cluster that Strata
// runs in, which the directory names.
func TestPutProviders(t *testing.T) {
	provider := func(spec map[string]any) directories.Manifest {
		spec["capability"], spec["namespace"], spec["serviceAccountName"] = "http/shop", "shop", "bindings"
		return directories.Manifest{File: "providers.yaml", Line: 3, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kraan.io/v1alpha1", "kind": kinds.ProviderKind.Kind, "metadata": map[string]any{"name": "shop"}, "spec": spec,
		}}}
	}
	common := map[string]any{
		"capability": "http/shop", "namespace": "fleet", "serviceAccountName": "bindings", "allowedClusters": []any{"prod"},
	}
	with := func(key string, value any) map[string]any {
		spec := maps.Clone(common)
		spec[key] = value
		return spec
	}
	for name, test := range map[string]struct {
		given, want map[string]any
		wrong       string
	}{
		"its own namespace": {map[string]any{}, with("allowedClusterNamespaces", []any{"shop"}), ""},
		"all namespaces":    {map[string]any{"allowedNamespaces": map[string]any{}}, common, ""},
		"labels": {
			map[string]any{"allowedNamespaces": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
			nil,
			"providers.yaml:3: spec.allowedNamespaces: CapabilityProvider shop is of a layer on RemoteCluster fleet/prod, and the labels",
		},
		"objects":  {map[string]any{"objects": []any{}}, nil, "spec.objects: CapabilityProvider shop"},
		"clusters": {map[string]any{"allowedClusters": []any{"other"}}, nil, "spec.allowedClusters: "},
	} {
		t.Run(name, func(t *testing.T) {
			put, err := prod.Put(directoriestest.Of("main@sha1:new", provider(test.given)))
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("it says %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			placed := put.Manifests[len(put.Manifests)-1]
			if placed.Cluster != "" || !strings.HasPrefix(placed.Object.GetName(), "prod-shop-") {
				t.Errorf("it is %s on %q", placed.ID(), placed.Cluster)
			}
			if diff := cmp.Diff(test.want, placed.Object.Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
