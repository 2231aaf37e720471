// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// server is a client of the API server that all tests of the package share.
var server client.Client

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly()}, setUp))
}

func setUp(plane *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := plane.InstallCRDs(ctx, "../../config/crd/bases"); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	var err error
	server, err = client.New(plane.Config(), client.Options{Scheme: scheme})
	return err
}

// needsServer skips a test where there is none.
func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	t.Parallel()
}

// parse returns the object that YAML describes.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	// As clients do it: whole numbers stay whole.
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return obj
}

// create makes an object which goes with the test.
func create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := server.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(server.Delete(context.Background(), obj)); err != nil {
			t.Error(err)
		}
	})
}

// layer returns the manifest of a layer with a spec in YAML's flow style.
func layer(name, spec string) string {
	return fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

func TestValidation(t *testing.T) {
	const source = `source: {name: addons, path: ./base}`
	with := func(more string) string { return layer("valid", "{version: 1.0.0, "+source+", "+more+"}") }
	from := func(source string) string { return layer("valid", "{version: 1.0.0, source: {"+source+"}}") }
	list := func(items ...string) string { return with("prereqs: {dependsOn: [" + strings.Join(items, ", ") + "]}") }
	long := func(n int) string { return strings.Repeat("a", n) }
	tests := map[string]struct {
		manifest string
		// want is part of the refusal; "" where it is accepted.
		want string
	}{
		"least":                      {with("hold: false"), ""},
		"no version":                 {layer("invalid", "{"+source+"}"), "spec.version: Required value"},
		"empty version":              {layer("invalid", "{version: '', "+source+"}"), "spec.version"},
		"version like a path":        {layer("valid", "{version: ../../x, "+source+"}"), ""},
		"long version":               {layer("invalid", "{version: "+long(257)+", "+source+"}"), "may not be more than 256"},
		"no source":                  {layer("invalid", "{version: 1.0.0}"), "spec.source: Required value"},
		"name of 63":                 {layer(long(63), "{version: 1.0.0, "+source+"}"), ""},
		"name of 64":                 {layer(long(64), "{version: 1.0.0, "+source+"}"), "the name of an AddonsLayer must have at most 63 characters"},
		"interval":                   {with("interval: 1m"), ""},
		"interval as Go writes it":   {with("interval: 1m0s"), ""},
		"least interval":             {with("interval: 1s"), ""},
		"interval too short":         {with("interval: 999ms"), "interval must be at least 1s: it is only a safety net, changes are seen at once"},
		"interval of nothing":        {with("interval: 0s"), "interval must be at least 1s"},
		"negative interval":          {with("interval: -1m"), "interval must be at least 1s"},
		"interval in words":          {with("interval: soon"), "spec.interval"},
		"interval as a number":       {with("interval: 60"), "spec.interval"},
		"no grace":                   {with("orphanGrace: 0s"), ""},
		"negative grace":             {with("orphanGrace: -1s"), "orphanGrace must not be negative"},
		"timeout":                    {with("timeout: 1s"), ""},
		"timeout of nothing":         {with("timeout: 0s"), "timeout must be at least 1s"},
		"policy Delete":              {with("deletionPolicy: Delete"), ""},
		"policy Orphan":              {with("deletionPolicy: Orphan"), ""},
		"policy Keep":                {with("deletionPolicy: Keep"), "deletionPolicy must be Delete (uninstall the layer's objects), Orphan (leave them without owner) or Abandon"},
		"policy Abandon":             {with("deletionPolicy: Abandon, cluster: {name: edge}"), ""},
		"policy Abandon at home":     {with("deletionPolicy: Abandon"), "deletionPolicy Abandon is for layers of another cluster"},
		"fields of a Kustomization":  {with("targetNamespace: shop, wait: false, prune: false, postBuild: {substituteFrom: [{kind: ConfigMap, name: a}]}"), ""},
		"another build":              {with("build: Helm"), "supported values: \"Flux\""},
		"variables of a Pod":         {with("postBuild: {substituteFrom: [{kind: Pod, name: a}]}"), "supported values: \"ConfigMap\", \"Secret\""},
		"another way of encryption":  {with("decryption: {provider: vault, secretRef: {name: a}}"), "supported values: \"sops\""},
		"patches of a bundle":        {layer("valid", "{version: 1.0.0, source: {kind: ApplicationBundle, name: a, path: ./a}, patches: [{patch: x}]}"), "are for layers with a directory"},
		"decryption of a bundle":     {layer("valid", "{version: 1.0.0, source: {kind: ApplicationBundle, name: a, path: ./a}, decryption: {provider: sops, secretRef: {name: a}}}"), "are for layers with a directory"},
		"kind GitRepository":         {from("kind: GitRepository, name: addons, path: ./base"), ""},
		"kind in Kraan's long form":  {from("kind: gitrepositories.source.toolkit.fluxcd.io, name: addons, path: ./base"), ""},
		"empty kind":                 {from("kind: '', name: addons, path: ./base"), ""},
		"another kind":               {from("kind: HelmRepository, name: addons, path: ./base"), "source.kind must be GitRepository, OCIRepository, Bucket, ExternalArtifact or ApplicationBundle"},
		"no name of a source":        {from("name: '', path: ./base"), "spec.source.name"},
		"path ./":                    {from("name: addons, path: ./"), ""},
		"path with dots in names":    {from("name: addons, path: ./a..b/...c/d"), ""},
		"no path":                    {from("name: addons"), "spec.source.path: Required value"},
		"namespace":                  {from("namespace: team-a, name: addons, path: ./base"), ""},
		"namespace with a colon":     {from("namespace: 'kube-system:x', name: addons, path: ./base"), "source.namespace must be the name of a namespace"},
		"namespace with a slash":     {from("namespace: a/b, name: addons, path: ./base"), "source.namespace must be the name of a namespace"},
		"account":                    {with("serviceAccountName: deployer.v2"), ""},
		"no account":                 {with("serviceAccountName: ''"), ""},
		"account with a colon":       {with("serviceAccountName: 'x:admin'"), "serviceAccountName must be the name of a ServiceAccount in the source's namespace"},
		"account with its namespace": {with("serviceAccountName: team-a/deployer"), "serviceAccountName must be the name of a ServiceAccount"},
		"account of two lines":       {with(`serviceAccountName: "a\nb"`), "serviceAccountName must be the name of a ServiceAccount"},
		"long account":               {with("serviceAccountName: " + long(254)), "may not be more than 253"},
		"path without ./":            {from("name: addons, path: addons/base"), "source.path must begin with ./ and name a directory below the root of the source, for example ./addons/base"},
		"absolute path":              {from("name: addons, path: /etc"), "source.path must begin with ./"},
		"path outside":               {from("name: addons, path: ./../etc"), "source.path must stay inside the source: remove the .. from it"},
		"path that goes out later":   {from("name: addons, path: ./a/.."), "source.path must stay inside the source"},
		"k8sVersion 1.16":            {with("prereqs: {k8sVersion: '1.16'}"), ""},
		"k8sVersion v1.16":           {with("prereqs: {k8sVersion: v1.16}"), ""},
		"k8sVersion as a range":      {with("prereqs: {k8sVersion: '>=1.30 <2'}"), ""},
		"k8sVersion with a wildcard": {with("prereqs: {k8sVersion: '1.x || ~1.30'}"), ""},
		"empty k8sVersion":           {with("prereqs: {k8sVersion: ''}"), ""},
		"k8sVersion in words":        {with("prereqs: {k8sVersion: latest}"), "prereqs.k8sVersion must be a minimum such as 1.30 or a range such as >=1.30 <2"},
		"k8sVersion with nonsense":   {with("prereqs: {k8sVersion: '1.30; rm'}"), "prereqs.k8sVersion must be a minimum"},
		"dependsOn":                  {list("bootstrap@1.0.0", "mesh@2"), ""},
		"dependsOn a range":          {list("'mesh@>=2.1 <3'", "'a.b-c@^1 || ~2.3'", "base", "odd@0.1.01", "e@a@b"), ""},
		"dependsOn with capitals":    {list("base@1", "Mesh@1"), "each of prereqs.dependsOn must begin with the name of a layer, which has no capitals: write name@version, name@range or name"},
		"dependsOn without a name":   {list("'@1'"), "each of prereqs.dependsOn must begin with the name of a layer"},
		"dependsOn of nothing":       {list("''"), "each of prereqs.dependsOn must begin with the name of a layer"},
		"dependsOn without version":  {list("mesh@"), "each of prereqs.dependsOn must have a version or a range behind the @: write name@version, or the name alone for any version"},
		"dependsOn with a blank":     {list("'mesh@ '"), "each of prereqs.dependsOn must have a version or a range behind the @"},
		"empty dependsOn":            {list(), ""},
		"dependsOn of 100":           {list(strings.Split(strings.Repeat("a@1,", 99)+"a@1", ",")...), ""},
		"dependsOn of 101":           {list(strings.Split(strings.Repeat("a@1,", 100)+"a@1", ",")...), "spec.prereqs.dependsOn: Too many: 101: must have at most 100 items"},
		"long dependsOn":             {list(long(513)), "spec.prereqs.dependsOn[0]"},
		"unknown field":              {with("dependsOn: [a]"), `unknown field "spec.dependsOn"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			err := client.WithFieldValidation(server, metav1.FieldValidationStrict).Create(t.Context(), parse(t, test.manifest), client.DryRunAll)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want == "":
			case err == nil:
				t.Errorf("accepted, want a refusal with %q", test.want)
			case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.want):
				t.Errorf("refused as %v, want %q in it", err, test.want)
			}
		})
	}
}

// A layer that nobody has looked at yet is in progress to everybody who waits.
func TestNewLayerIsInProgress(t *testing.T) {
	needsServer(t)
	obj := parse(t, layer("new", "{version: 1.0.0, source: {name: addons, path: ./base}}"))
	create(t, obj)
	if got, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); got != -1 {
		t.Errorf("status is %v, want observedGeneration -1", obj.Object["status"])
	}
	result, err := status.Compute(obj)
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != status.InProgressStatus {
		t.Errorf("kstatus says %s: %s", result.Status, result.Message)
	}
}

// Manifests that Kraan's users have, and what Kraan itself makes of them.
func TestManifestsOfKraan(t *testing.T) {
	manifests := map[string]string{
		"as its samples have it": `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: kraan-sample
spec:
  version: 0.1.01
  hold: true
  interval: 1m
  source:
    name: addons-config
    namespace: gotk-system
    path: ./testdata/addons/bootstrap
  prereqs:
    k8sVersion: "v1.16"
`,
		"as it writes it back": `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: kraan-written
  creationTimestamp: null
  finalizers: [finalizers.kraan.io]
spec:
  interval: 1m0s
  prereqs:
    dependsOn: [kraan-sample@0.1.01]
    k8sVersion: ""
  source:
    kind: ""
    name: addons-config
    path: ./addons/base
  timeout: 1m0s
  version: 0.1.01
status: {}
`,
		"with little": `
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata:
  name: kraan-little
spec:
  version: main
  source:
    kind: gitrepositories.source.toolkit.fluxcd.io
    name: addons-config
    path: ./addons
  prereqs: {}
`,
	}
	for name, manifest := range manifests {
		t.Run(name, func(t *testing.T) {
			needsServer(t)
			obj, want := parse(t, manifest), parse(t, manifest)
			create(t, obj)
			t.Cleanup(func() {
				obj.SetFinalizers(nil)
				if err := server.Update(context.Background(), obj); err != nil {
					t.Error(err)
				}
			})
			if diff := cmp.Diff(want.Object["spec"], obj.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if obj.GetGeneration() != 1 {
				t.Errorf("generation is %d, want 1", obj.GetGeneration())
			}
		})
	}
}

func TestStatusOfKraan(t *testing.T) {
	needsServer(t)
	obj := parse(t, layer("kraan-status", "{version: 0.1.01, source: {name: addons, path: ./base}}"))
	create(t, obj)
	const written = `
conditions:
- lastTransitionTime: "2026-01-02T03:04:05Z"
  message: ""
  reason: Deployed
  status: "True"
  type: Deployed
observedGeneration: 1
resources:
- kind: helmreleases.helm.toolkit.fluxcd.io
  lastTransitionTime: "2026-01-02T03:04:05Z"
  name: podinfo
  namespace: default
  status: Deployed
revision: main@sha1:b3c7e1d
state: Deployed
version: 0.1.01
`
	obj.Object["status"] = parse(t, written).Object
	if err := server.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(parse(t, written).Object), obj.Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	typed := &v1alpha1.AddonsLayer{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(obj), typed); err != nil {
		t.Fatal(err)
	}
	if typed.Status.State != v1alpha1.StateDeployed || len(typed.Status.Resources) != 1 || typed.Status.ObservedGeneration != 1 {
		t.Errorf("status is read as %+v", typed.Status)
	}
}

// Every field of the Go types is in the CRD: none of them is dropped by the API
// server. What a layer of a bundle has, and what one of a directory has, are never in one.
func TestDefinitionIsCurrent(t *testing.T) {
	needsServer(t)
	for name, change := range map[string]func(*v1alpha1.AddonsLayerSpec){
		"bundle": func(spec *v1alpha1.AddonsLayerSpec) {
			spec.Source.Kind, spec.Build = "ApplicationBundle", ""
			spec.KustomizationFields = v1alpha1.KustomizationFields{CommonMetadata: spec.CommonMetadata}
		},
		"directory": func(spec *v1alpha1.AddonsLayerSpec) {
			spec.Source.Kind, spec.Build, spec.Inputs, spec.Instance, spec.Releases = "GitRepository", v1alpha1.BuildFlux, nil, "", nil
			spec.BuildMetadata = []string{"originAnnotations"}
			spec.Decryption.Provider = "sops"
			spec.PostBuild.SubstituteStrategy, spec.PostBuild.SubstituteFrom[0].Kind = v1alpha1.SubstituteAlways, "Secret"
		},
	} {
		t.Run(name, func(t *testing.T) { isKept(t, name, change) })
	}
}

// isKept creates a layer with all fields but those that change takes out, and reads it.
func isKept(t *testing.T, name string, change func(*v1alpha1.AddonsLayerSpec)) {
	t.Helper()
	full := &v1alpha1.AddonsLayer{}
	fill(reflect.ValueOf(&full.Spec).Elem())
	fill(reflect.ValueOf(&full.Status).Elem())
	full.Name = name
	full.Spec.Source.Path = "./base"
	full.Spec.Prereqs.K8sVersion, full.Spec.DeletionPolicy = "1.30", v1alpha1.DeletionPolicyOrphan
	full.Status.Conditions[0].Status = metav1.ConditionTrue
	change(&full.Spec)
	want := full.DeepCopy()

	create(t, full)
	full.Status = *want.Status.DeepCopy()
	if err := server.Status().Update(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.AddonsLayer{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(full), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec; does make generate help? (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status; does make generate help? (-want +got):\n%s", diff)
	}
}

// fill gives every field below a value something that is not its zero value.
func fill(value reflect.Value) {
	switch value.Interface().(type) {
	case metav1.Time:
		value.Set(reflect.ValueOf(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))))
		return
	case metav1.Duration:
		value.Set(reflect.ValueOf(metav1.Duration{Duration: time.Minute}))
		return
	case v1alpha1.HealthWatch:
		value.Set(reflect.ValueOf(v1alpha1.HealthWatch{After: &metav1.Duration{Duration: time.Minute}, Kinds: []string{"Certificate.cert-manager.io"}}))
		return
	case v1alpha1.DriftDetection:
		value.SetString(string(v1alpha1.DriftDetectionWarn))
		return
	case apiextensionsv1.JSON:
		value.Set(reflect.ValueOf(apiextensionsv1.JSON{Raw: []byte(`{"some":7}`)}))
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem())
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Anonymous && strings.HasPrefix(field.Name, "Old") {
				continue // words that no new object may have
			}
			fill(value.Field(i))
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0))
	case reflect.Map:
		value.Set(reflect.ValueOf(map[string]string{"some": "thing"}))
	case reflect.String:
		value.SetString("some")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(7)
	default:
		panic("the test cannot fill " + value.Type().String())
	}
}

func TestDeepCopyOfWhatIsFull(t *testing.T) {
	full := &v1alpha1.AddonsLayer{}
	fill(reflect.ValueOf(&full.Spec).Elem())
	fill(reflect.ValueOf(&full.Status).Elem())
	list := &v1alpha1.AddonsLayerList{Items: []v1alpha1.AddonsLayer{*full}}
	copied := list.DeepCopyObject().(*v1alpha1.AddonsLayerList)
	if diff := cmp.Diff(list, copied); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	copied.Items[0].Spec.Prereqs.DependsOn[0] = "changed"
	copied.Items[0].Status.Resources[0].DependsOn[0] = "changed"
	copied.Items[0].Status.Attempt.Allowed[0] = "changed"
	if diff := cmp.Diff(*full, list.Items[0]); diff != "" {
		t.Errorf("the copy shares memory with its origin (-want +got):\n%s", diff)
	}
}
