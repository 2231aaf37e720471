// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/test/controlplane"
)

// server is the API server that all tests of the package share.
var server struct {
	plane  *controlplane.ControlPlane
	mapper meta.RESTMapper
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true}, setUp))
}

func setUp(plane *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server.plane = plane
	web, err := rest.HTTPClientFor(plane.Config())
	if err != nil {
		return err
	}
	if server.mapper, err = apiutil.NewDynamicRESTMapper(plane.Config(), web); err != nil {
		return err
	}
	return addFutureField(ctx, plane)
}

// addFutureField gives HelmReleases a field that is in no Go type.
func addFutureField(ctx context.Context, plane *controlplane.ControlPlane) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, types.NamespacedName{Name: "helmreleases.helm.toolkit.fluxcd.io"}, crd); err != nil {
		return err
	}
	for i := range crd.Spec.Versions {
		spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["fieldOfTheFuture"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	if err := c.Update(ctx, crd); err != nil {
		return err
	}
	probe := newRelease("default", "probe")
	set(probe, "new", "spec", "fieldOfTheFuture")
	return controlplane.WaitFor(ctx, 30*time.Second, func(ctx context.Context) error {
		obj := probe.DeepCopy()
		if err := c.Create(ctx, obj, client.DryRunAll); err != nil {
			return err
		}
		if _, found, _ := unstructured.NestedString(obj.Object, "spec", "fieldOfTheFuture"); !found {
			return fmt.Errorf("the API server does not know the new field yet")
		}
		return nil
	})
}

var testKeys = dependents.Keys{
	Owner: "kraan/layer", Orphaned: "orphaned", SuspendedByHold: "kraan/suspended-by-hold",
	SupersededBy: "kraan.io/superseded-by", CreatedFor: "kraan.io/created-for", Abandon: "kraan.io/abandon",
	FormerOwner: schema.GroupKind{Group: "kraan.io", Kind: "AddonsLayer"},
}

const (
	owner = "base"
	other = "apps"
)

var namespaces atomic.Int32

// fixture is a namespace with an executor and a client that stands for
// everybody else.
type fixture struct {
	*testing.T
	ctx       context.Context
	namespace string
	requests  *requests
	executor  *Executor
	others    client.WithWatch
}

// newFixture returns a fixture; the test runs beside others.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	t.Parallel()
	f := &fixture{T: t, ctx: context.Background(), namespace: fmt.Sprintf("t%d", namespaces.Add(1)), requests: &requests{}}
	f.must(server.plane.CreateNamespace(f.ctx, f.namespace))
	f.others = f.client(server.plane.Config(), nil)
	f.executor = f.newExecutor(f.client(server.plane.Config(), f.requests))
	return f
}

func (f *fixture) newExecutor(c client.Client) *Executor {
	return &Executor{
		Cluster: Cluster{Client: c, Reader: c, Seen: f.seen}, Keys: testKeys, Known: &Known{},
		Strict: func(gk schema.GroupKind) bool { return strings.HasSuffix(gk.Group, ".toolkit.fluxcd.io") },
	}
}

// seen returns an object as a cache has it that does not lag.
func (f *fixture) seen(ctx context.Context, id objects.ID) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetAPIVersion(id.Group + "/v2")
	live.SetKind(id.Kind)
	err := f.others.Get(ctx, id.Key(), live)
	live.SetManagedFields(nil)
	return live, err
}

// client returns a client whose requests are counted, unless counter is nil.
func (f *fixture) client(config *rest.Config, counter *requests) client.WithWatch {
	f.Helper()
	if counter != nil {
		config.Wrap(counter.wrap)
	}
	c, err := client.NewWithWatch(config, client.Options{Mapper: server.mapper})
	f.must(err)
	return c
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// requests remembers the methods of the requests that were made.
type requests struct {
	mu   sync.Mutex
	list []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.list = append(r.list, req.Method)
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

// taken returns the requests since the last call.
func (r *requests) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// parse returns the object that YAML describes.
func parse(text string) *unstructured.Unstructured {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		panic(err)
	}
	return obj
}

func newRelease(namespace, name string) *unstructured.Unstructured {
	obj := parse(`
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
spec:
  interval: 1m
  chart:
    spec:
      chart: podinfo
      version: 6.0.0
      reconcileStrategy: ChartVersion
      sourceRef: {kind: HelmRepository, name: charts}
  values:
    replicas: 1
    service: {type: ClusterIP}
`)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func newConfigMap(namespace, name string, data ...string) *unstructured.Unstructured {
	obj := parse("apiVersion: v1\nkind: ConfigMap\n")
	obj.SetNamespace(namespace)
	obj.SetName(name)
	for i := 0; i < len(data); i += 2 {
		set(obj, data[i+1], "data", data[i])
	}
	return obj
}

func (f *fixture) release(name string) *unstructured.Unstructured {
	return newRelease(f.namespace, name)
}

func (f *fixture) configMap(name string, data ...string) *unstructured.Unstructured {
	return newConfigMap(f.namespace, name, data...)
}

func set(obj *unstructured.Unstructured, value any, fields ...string) {
	if err := unstructured.SetNestedField(obj.Object, value, fields...); err != nil {
		panic(err)
	}
}

// ownedBy returns an object with the label of an owner.
func ownedBy(layer string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[testKeys.Owner] = layer
	obj.SetLabels(labels)
	return obj
}

// writeOf returns the action that writes an object which nobody has seen yet.
func writeOf(layer string, obj *unstructured.Unstructured) dependents.Action {
	wanted := ownedBy(layer, obj)
	id := objects.IDOf(obj)
	return dependents.Action{Verb: dependents.VerbWrite, ID: id, Wanted: &dependents.Dependent{ID: id, Object: dependents.ContentOf(wanted), Origin: "layer.yaml"}}
}

// seen returns an action on a live object.
func seen(action dependents.Action, live *unstructured.Unstructured) dependents.Action {
	action.UID, action.ResourceVersion = live.GetUID(), live.GetResourceVersion()
	return action
}

// on returns an action with a verb on a live object.
func on(verb dependents.Verb, live *unstructured.Unstructured) dependents.Action {
	return seen(dependents.Action{Verb: verb, ID: objects.IDOf(live)}, live)
}

// run carries out actions for the owner.
func (f *fixture) run(actions ...dependents.Action) []dependents.Result {
	return f.executor.Run(f.ctx, owner, dependents.Plan{Actions: actions})
}

// done carries out actions which must succeed.
func (f *fixture) done(actions ...dependents.Action) []dependents.Result {
	f.Helper()
	results := f.run(actions...)
	if len(results) != len(actions) {
		f.Fatalf("%d of %d actions were tried", len(results), len(actions))
	}
	for _, result := range results {
		if result.Err != nil || result.Outdated {
			f.Fatalf("%s %s: error %v, outdated %t", result.Action.Verb, result.Action.ID, result.Err, result.Outdated)
		}
	}
	return results
}

// outdated carries out an action that must find the object changed.
func (f *fixture) outdated(action dependents.Action) {
	f.Helper()
	results := f.run(action)
	if len(results) != 1 || !results[0].Outdated || results[0].Err != nil {
		f.Fatalf("%s %s: got %+v, want outdated", action.Verb, action.ID, results)
	}
}

// written writes an object for the first time and returns it as it is then.
func (f *fixture) written(obj *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	f.done(writeOf(owner, obj))
	return f.live(obj)
}

// rewritten writes an object again and returns it as it is then.
func (f *fixture) rewritten(obj *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	f.done(seen(writeOf(owner, obj), f.live(obj)))
	return f.live(obj)
}

// live returns an object as it is.
func (f *fixture) live(obj *unstructured.Unstructured) *unstructured.Unstructured {
	f.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	f.must(f.others.Get(f.ctx, client.ObjectKeyFromObject(obj), live))
	return live
}

// gone tells whether an object is not there.
func (f *fixture) gone(obj *unstructured.Unstructured) bool {
	f.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	err := f.others.Get(f.ctx, client.ObjectKeyFromObject(obj), live)
	f.must(client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// create makes an object as somebody else would, with Update as operation.
func (f *fixture) create(obj *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	f.Helper()
	created := obj.DeepCopy()
	f.must(f.others.Create(f.ctx, created, client.FieldOwner(manager)))
	return created
}

// patch merges a change of somebody else into an object.
func (f *fixture) patch(obj *unstructured.Unstructured, manager, patch string) {
	f.Helper()
	f.must(f.others.Patch(f.ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// apply has somebody else apply an object on the server's side.
func (f *fixture) apply(obj *unstructured.Unstructured, manager string) {
	f.Helper()
	f.must(f.others.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner(manager), client.ForceOwnership))
}

// field returns a field as JSON; "" where there is none.
func field(obj *unstructured.Unstructured, fields ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(obj.Object, fields...)
	if err != nil || !found {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// managers returns the managers of an object, in order, as name/operation.
func managers(obj *unstructured.Unstructured) []string {
	var found []string
	for _, entry := range obj.GetManagedFields() {
		found = append(found, entry.Manager+"/"+string(entry.Operation))
	}
	slices.Sort(found)
	return found
}

// fieldsOfManager returns what a manager owns by an operation, as JSON.
func fieldsOfManager(obj *unstructured.Unstructured, manager string, operation metav1.ManagedFieldsOperationType) string {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == operation && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawString()
		}
	}
	return ""
}
