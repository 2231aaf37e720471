// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package looks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	dto "github.com/prometheus/client_model/go"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/controllers"
	"github.com/strata-project/strata/internal/hostkeeper"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/test/controlplane"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true}, func(p *controlplane.ControlPlane) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane = p
		return p.InstallCRDs(ctx, "../../config/crd/bases")
	}))
}

const patience = time.Minute

// objects are one of each kind that has a controller.
var objects = map[string]string{
	"AddonsLayer":        "spec: {version: 1.0.0, source: {name: none, path: ./a}}",
	"RemoteCluster":      "spec: {kubeConfig: {secretRef: {name: none}}}",
	"HelmApplication":    "spec: {versions: [{version: 1.0.0, chart: {repository: {url: 'https://charts.example.com', chart: a}}}]}",
	"ApplicationBundle":  "spec: {family: base, version: 1.0.0, layers: [{name: a, applications: [{name: a, application: none, version: 1.0.0}]}]}",
	"Platform":           "spec: {bundle: {family: none, version: 1.0.0}}",
	"ClusterDiscovery":   "spec: {kind: HostCluster, selector: {}}",
	"CapabilityClaim":    "spec: {capability: database/none}",
	"CapabilityProvider": "spec: {capability: database/other, versions: ['1.0']}",
	"HostCluster":        "spec: {version: v1.36.3, hold: true, ssh: {user: root, secretRef: {name: none}}, controlPlane: [{name: a, address: 192.0.2.1}]}",
}

// secret is what the looks of this test panic with, and what nobody is told.
const secret = "hunter2"

// shaky is the name of each object. A message about it says nothing of a panic by that.
const shaky = "shaky"

// TestPanicsAreTold has a look of every controller panic. Its object says so, with the hash
// under which the log has the stack, and with nothing of what was panicked with; an event and
// a metric say so, too; and all is well again after the next look.
func TestPanicsAreTold(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	f := startAll(t)
	for kind, spec := range objects {
		t.Run(kind, func(t *testing.T) {
			f.panics.Store(kind, true)
			object := f.make(t, kind, spec)
			ready := f.await(t, object, func(c *metav1.Condition) bool { return c != nil && c.Reason == v1alpha1.ReasonInternalError })
			hash := regexp.MustCompile(`[0-9a-f]{8}`).FindString(ready.Message)
			if ready.Status != metav1.ConditionUnknown || hash == "" || strings.Contains(ready.Message, secret) {
				t.Errorf("%+v", ready)
			}
			log := f.logged()
			if !strings.Contains(log, hash) || !strings.Contains(log, "interceptor") || strings.Contains(log, secret) {
				t.Errorf("the log lacks the stack, or has what was panicked with:\n%.4000s", log)
			}
			if counted(t, strings.ToLower(kind)) == 0 {
				t.Error("the panic is not counted")
			}
			f.awaitEvent(t, object)
			f.panics.Store(kind, false)
			ready = f.await(t, object, func(c *metav1.Condition) bool { return c != nil && c.Reason != v1alpha1.ReasonInternalError })
			if strings.Contains(ready.Message, "panic") {
				t.Errorf("%+v", ready)
			}
		})
	}
}

// Each kind with conditions has its controller tried by the test above.
func TestEveryKindIsTried(t *testing.T) {
	for kind, of := range scheme().KnownTypes(v1alpha1.GroupVersion) {
		if status, has := of.FieldByName("Status"); has {
			if _, has = status.Type.FieldByName("Conditions"); has && objects[kind] == "" {
				t.Errorf("no look of a %s is made to panic", kind)
			}
		}
	}
}

// fixture runs all controllers.
type fixture struct {
	client client.Client
	// panics has kinds whose looks panic, unless false is stored for them.
	panics sync.Map
	mu     sync.Mutex
	log    bytes.Buffer
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sourcev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// panicking returns a client that panics where it is asked for what the test has made.
func (f *fixture) panicking(server *rest.Config, options client.Options) (client.Client, error) {
	made, err := client.NewWithWatch(server, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(made, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, untyped := obj.(runtime.Unstructured); !untyped && key.Name == shaky {
				gvk, err := c.GroupVersionKindFor(obj)
				if off, known := f.panics.Load(gvk.Kind); err == nil && (!known || off != false) {
					panic(secret)
				}
			}
			return c.Get(ctx, key, obj, opts...)
		},
		// The catalogue is read as a whole, also for its own entries.
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*v1alpha1.HelmApplicationList); is && controller.ReconcileIDFromContext(ctx) != "" {
				if on, _ := f.panics.Load("HelmApplication"); on == true {
					panic(secret)
				}
			}
			return c.List(ctx, list, opts...)
		},
	}), nil
}

func startAll(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	logger := funcr.New(func(prefix, args string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.log.WriteString(prefix + args + "\n")
	}, funcr.Options{})
	server := plane.Config()
	questions, err := discovery.NewDiscoveryClientForConfig(server)
	must(t, err)
	version, err := controllers.NewClusterVersion(questions, time.Second)
	must(t, err)
	yes := true
	cached := informers.CacheOptions()
	cached.ByObject[&v1alpha1.HostCluster{}] = cache.ByObject{Label: labels.Everything()}
	mgr, err := ctrl.NewManager(server, ctrl.Options{
		Scheme: scheme(), Cache: cached, Client: informers.ClientOptions(), Logger: logger, NewClient: f.panicking,
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
	})
	must(t, err)
	must(t, mgr.Add(version))
	artifacts, err := repos.New(repos.Options{Dir: t.TempDir(), Log: logr.Discard()})
	must(t, err)
	process := &controllers.Process{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Cache: mgr.GetCache(), Cluster: version, Events: mgr.GetEventRecorder("strata"), Concurrent: 2,
		Settings: layers.Settings{Interval: time.Minute, Namespace: "default"},
	}
	ctx, cancel := context.WithCancel(context.Background())
	must(t, process.Setup(ctx, mgr))
	for _, each := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&controllers.AddonsLayerReconciler{Process: process, Artifacts: artifacts}, &controllers.RemoteClusterReconciler{Process: process},
		&controllers.HelmApplicationReconciler{Process: process}, &controllers.ApplicationBundleReconciler{Process: process},
		&controllers.PlatformReconciler{Process: process}, &controllers.ClusterDiscoveryReconciler{Process: process},
		process.Claims(providers.NewHost(providers.Options{Log: logr.Discard()})),
		&hostkeeper.Reconciler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("strata"), Retry: time.Second, Now: time.Now},
	} {
		must(t, each.SetupWithManager(mgr))
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	f.client, err = client.New(plane.Config(), client.Options{Scheme: scheme()})
	must(t, err)
	return f
}

func (f *fixture) make(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(spec))
	must(t, err)
	must(t, json.Unmarshal(data, &object.Object))
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	object.SetName(shaky)
	if namespaced, err := f.client.IsObjectNamespaced(object); err != nil || namespaced {
		must(t, err)
		object.SetNamespace("default")
	}
	must(t, f.client.Create(t.Context(), object))
	return object
}

// await waits until the condition Ready of an object is as it should be.
func (f *fixture) await(t *testing.T, object *unstructured.Unstructured, is func(*metav1.Condition) bool) *metav1.Condition {
	t.Helper()
	var last []metav1.Condition
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		must(t, f.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		var typed struct {
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed))
		last = typed.Status.Conditions
		if ready := meta.FindStatusCondition(last, v1alpha1.ReadyCondition); is(ready) {
			return ready
		}
	}
	t.Fatalf("the conditions are %+v; the log ends with\n%s", last, tail(f.logged()))
	return nil
}

func tail(text string) string { return text[max(0, len(text)-600):] }

func (f *fixture) awaitEvent(t *testing.T, object client.Object) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list := &eventsv1.EventList{}
		must(t, f.client.List(t.Context(), list))
		if slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == object.GetUID() && e.Reason == v1alpha1.ReasonInternalError && !strings.Contains(e.Note, secret)
		}) {
			return
		}
	}
	t.Error("no event tells of it")
}

func (f *fixture) logged() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// counted returns how many panics of a controller are counted.
func counted(t *testing.T, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "strata_reconcile_panics_total" &&
				slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == name }) {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return -1
}
