// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/signed"
	"github.com/strata-project/strata/test/atrest"
	"github.com/strata-project/strata/test/controlplane"
)

// plane is the API server that all tests of the package share. No controller of
// Flux runs there: the tests write the status of sources and releases.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true}, func(p *controlplane.ControlPlane) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane = p
		return p.InstallCRDs(ctx, "../config/crd/bases")
	}))
}

// patience bounds every wait for something that must happen.
const patience = time.Minute

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, sourcev1.AddToScheme, helmv2.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// request is one that the controller has made of the API server.
type request struct {
	what string
	size int64
}

// fixture is a controller of its own, with a namespace and a source whose
// artifacts a local server hands out.
type fixture struct {
	*testing.T
	ctx       context.Context
	namespace string
	client    client.Client
	// reconciler was started last. observer tells when it is at rest.
	reconciler *AddonsLayerReconciler
	observer   *atrest.Observer
	files      *httptest.Server
	looks      atomic.Int64
	cancel     context.CancelFunc
	ended      chan error
	// between is what stands between the controller and the API server; nil for
	// nothing.
	between func(http.RoundTripper) http.RoundTripper
	// withClusters has startFleet run the controller of RemoteClusters, too.
	withClusters bool
	// reach says where other clusters may be; at loopback where it says nothing.
	reach reach.Allowed

	mu        sync.Mutex
	artifacts map[string][]byte
	requests  []request
	versions  int
}

var namespaces atomic.Int32

// newFixture starts a controller. Intercept may change the client that it
// writes with, and options the rest of it. The test runs beside others.
func newFixture(t *testing.T, intercept func(client.Client) client.Client, options ...func(*AddonsLayerReconciler)) *fixture {
	t.Helper()
	f := newBareFixture(t)
	f.start(intercept, options...)
	return f
}

// newSerialFixture is newFixture for a test that runs alone: it changes which kinds
// the API server has, or counts what others would add to.
func newSerialFixture(t *testing.T, intercept func(client.Client) client.Client, options ...func(*AddonsLayerReconciler)) *fixture {
	t.Helper()
	f := newSerialBareFixture(t)
	f.start(intercept, options...)
	return f
}

// newBareFixture is newFixture without a controller.
func newBareFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newSerialBareFixture(t)
}

// newSerialBareFixture is newSerialFixture without a controller.
func newSerialBareFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	f := &fixture{
		T: t, ctx: context.Background(), namespace: fmt.Sprintf("t%d", namespaces.Add(1)),
		artifacts: map[string][]byte{}, ended: make(chan error, 1), reach: reachTests,
	}
	f.must(plane.CreateNamespace(f.ctx, f.namespace))
	direct, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: newScheme()})
	f.must(err)
	f.client = interceptor.NewClient(direct, patiently())
	// What has no MAC counts for nothing, as where Strata was installed after there were MACs.
	f.must(f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: v1alpha1.DecisionsSignedName}, Type: v1alpha1.DecisionsSignedType,
	}))
	f.files = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.files.Close)
	return f
}

// patiently makes a write of a test again that the API server gave up on. It does so
// after 34 seconds, whatever held it up: a machine that links programs meanwhile can.
func patiently() interceptor.Funcs {
	again := func(write func() error) error {
		err := write()
		for range 3 {
			if !apierrors.IsTimeout(err) {
				break
			}
			err = write()
		}
		return err
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			first := true
			return again(func() error {
				err := c.Create(ctx, obj, opts...)
				if !first && apierrors.IsAlreadyExists(err) {
					// The write that was given up got through all the same.
					return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
				}
				first = false
				return err
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return again(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return again(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return again(func() error { return c.SubResource(name).Update(ctx, obj, opts...) })
		},
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// start runs the controller for the layers of this test.
func (f *fixture) start(intercept func(client.Client) client.Client, options ...func(*AddonsLayerReconciler)) {
	f.Helper()
	counted := plane.Config()
	counted.Wrap(f.count)
	if f.between != nil {
		counted.Wrap(f.between)
	}
	mgr, reconciler := f.assemble(counted, managerOptions(), time.Second)
	if intercept != nil {
		reconciler.Client = intercept(reconciler.Client)
	}
	for _, option := range options {
		option(reconciler)
	}
	f.reconciler = reconciler
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	f.must(reconciler.Setup(ctx, mgr))
	f.must(reconciler.SetupWithManager(mgr))
	go func() { f.ended <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		f.stopped()
	})
}

// assemble wires a controller for the layers of this test as main does it. It
// is yet to be set up and started.
func (f *fixture) assemble(server *rest.Config, options ctrl.Options, period time.Duration) (ctrl.Manager, *AddonsLayerReconciler) {
	f.Helper()
	questions, err := discovery.NewDiscoveryClientForConfig(server)
	f.must(err)
	version, err := NewClusterVersion(questions, period)
	f.must(err)
	statuses := &signed.Keeper{}
	options.Cache.DefaultTransform = statuses.Transform(options.Cache.DefaultTransform)
	// A controller waits until it has looked at every RemoteCluster: those of the tests beside it are
	// none of its own.
	for object, selected := range options.Cache.ByObject {
		if _, is := object.(*v1alpha1.RemoteCluster); is {
			selected.Field = fields.OneTermEqualSelector("metadata.namespace", f.namespace)
			options.Cache.ByObject[object] = selected
		}
	}
	f.observer = atrest.New(atrest.Options{Aside: again})
	mgr, err := ctrl.NewManager(f.observer.Config(server), options)
	f.must(err)
	mgr = f.observer.Over(statuses.Over(mgr))
	f.must(mgr.Add(version))
	artifacts, err := repos.New(repos.Options{Dir: f.TempDir(), Log: logr.Discard()})
	f.must(err)
	selector, err := labels.Parse("test=" + f.namespace)
	f.must(err)
	return mgr, &AddonsLayerReconciler{Artifacts: artifacts, Process: &Process{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Cache: mgr.GetCache(),
		Cluster: version, Events: mgr.GetEventRecorder("strata"), Selector: selector, Concurrent: 4,
		Statuses: statuses, Now: func() time.Time { f.looks.Add(1); return time.Now() },
		Settings: layers.Settings{Interval: period, Namespace: f.namespace, MaxPrunePercent: 50, DigestKey: f.keyOf(1)},
	}}
}

// stopped waits until the controller has stopped.
func (f *fixture) stopped() {
	f.Helper()
	select {
	case err := <-f.ended:
		f.ended <- err
		f.must(err)
	case <-time.After(patience):
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		f.Fatalf("the controller does not stop:\n%s", stacks.String())
	}
}

func managerOptions() ctrl.Options {
	yes := true
	return ctrl.Options{
		Scheme: newScheme(), Cache: informers.CacheOptions(), Logger: logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &yes},
		Client:     informers.ClientOptions(),
	}
}

// aside tells which requests are made now and then, whatever happens: the one for whether all is
// signed, and questions for the version.
func aside(req *http.Request) bool {
	return req.URL.Path == "/version" || strings.HasSuffix(req.URL.Path, "/secrets/"+v1alpha1.DecisionsSignedName)
}

// again tells which requests begin nothing new: those of aside, and the one for the account of a
// layer that waits, which each look at it makes.
func again(req *http.Request) bool {
	return aside(req) || req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/serviceaccounts/")
}

// count notes every request but watches and those that are made now and then, of which it counts
// questions for the version apart.
func (f *fixture) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		f.mu.Lock()
		switch {
		case req.URL.Path == "/version":
			f.versions++
		case req.URL.Query().Get("watch") == "true", aside(req):
		default:
			f.requests = append(f.requests, request{req.Method + " " + strings.TrimSuffix(req.URL.Path, "/"), req.ContentLength})
		}
		f.mu.Unlock()
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// taken returns the requests since the last call, in order, and how often the
// version was asked for.
func (f *fixture) taken() ([]request, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	requests, versions := f.requests, f.versions
	f.requests, f.versions = nil, 0
	slices.SortFunc(requests, func(a, b request) int { return strings.Compare(a.what, b.what) })
	return requests, versions
}

// silent checks that a controller at rest makes no request, whatever its clocks bring about: it has
// gone through its layers again and again, and asked for the version.
func (f *fixture) silent() {
	f.Helper()
	f.settle()
	f.taken()
	const times = 4
	began, versions := f.looks.Load(), 0
	f.eventually("the clocks have come again", func() error {
		requests, more := f.taken()
		if len(requests) > 0 {
			f.Fatalf("requests while nothing happens: %v", requests)
		}
		versions += more
		if looked := f.looks.Load() - began; looked < times || versions < times/2 {
			return fmt.Errorf("the clock was read %d times, and the version asked for %d times", looked, versions)
		}
		return nil
	})
}

// settle waits until the controller has nothing left to do.
func (f *fixture) settle() {
	f.Helper()
	f.eventually("the controller is at rest", func() error { return f.observer.Check(f.ctx) })
}

// eventually waits until check returns nil.
func (f *fixture) eventually(what string, check func() error) {
	f.Helper()
	if err := controlplane.WaitFor(f.ctx, patience, func(context.Context) error { return check() }); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

func (f *fixture) serve(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	data, found := f.artifacts[req.URL.Path]
	f.mu.Unlock()
	if !found {
		http.NotFound(w, req)
		return
	}
	_, _ = w.Write(data)
}

// pack serves an archive of files at a path, and returns its digest and size.
func (f *fixture) pack(path string, files map[string]string) (string, int64) {
	f.Helper()
	var buffer bytes.Buffer
	packed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(packed)
	for name, content := range files {
		f.must(archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := archive.Write([]byte(content))
		f.must(err)
	}
	f.must(errors.Join(archive.Close(), packed.Close()))
	f.mu.Lock()
	f.artifacts[path] = buffer.Bytes()
	f.mu.Unlock()
	return fmt.Sprintf("sha256:%x", sha256.Sum256(buffer.Bytes())), int64(buffer.Len())
}

// publish makes files the artifact of the source, at a revision.
func (f *fixture) publish(revision string, files map[string]string) {
	f.Helper()
	path := "/" + revision + ".tar.gz"
	digest, size := f.pack(path, files)
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "addons"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example/addons.git", Interval: metav1.Duration{Duration: time.Hour}},
	}
	f.must(client.IgnoreAlreadyExists(f.client.Create(f.ctx, source)))
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(source), source))
	source.Status.ObservedGeneration = source.Generation
	source.Status.Artifact = &fluxmeta.Artifact{
		URL: f.files.URL + path, Path: path, Revision: revision, Digest: digest,
		LastUpdateTime: metav1.Now(), Size: &size,
	}
	source.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "stored " + revision, LastTransitionTime: metav1.Now(),
	}}
	f.must(f.client.Status().Update(f.ctx, source))
}

// artifact returns what the source has now.
func (f *fixture) artifact() repos.Artifact {
	f.Helper()
	source := &sourcev1.GitRepository{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "addons"}, source))
	return repos.Artifact{URL: source.Status.Artifact.URL, Revision: source.Status.Artifact.Revision, Digest: source.Status.Artifact.Digest}
}

// release returns the manifest of a HelmRelease.
func (f *fixture) release(name string) string {
	return fmt.Sprintf(`
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: %s, name: %s}
spec:
  interval: 1m
  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: charts}}}
`, f.namespace, name)
}

func (f *fixture) name(layer string) string { return f.namespace + "-" + layer }

// layer creates a layer with a directory of its name.
func (f *fixture) layer(name string, dependsOn ...string) {
	f.Helper()
	f.layerWith(name, func(*v1alpha1.AddonsLayer) {}, dependsOn...)
}

// layerWith is layer with a change.
func (f *fixture) layerWith(name string, change func(*v1alpha1.AddonsLayer), dependsOn ...string) {
	f.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: f.name(name), Labels: map[string]string{"test": f.namespace}},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Path: "./" + name},
		},
	}
	for _, other := range dependsOn {
		layer.Spec.Prereqs.DependsOn = append(layer.Spec.Prereqs.DependsOn, f.name(other)+"@1.0.0")
	}
	change(layer)
	f.must(f.client.Create(f.ctx, layer))
	f.Cleanup(func() {
		f.cancel()
		f.stopped()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		f.must(client.IgnoreNotFound(f.client.Patch(f.ctx, layer, patch)))
		f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, layer)))
	})
}

func (f *fixture) get(layer string) *v1alpha1.AddonsLayer {
	f.Helper()
	found := &v1alpha1.AddonsLayer{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name(layer)}, found))
	return found
}

// ready plays helm-controller: it waits for a release and makes it Ready.
func (f *fixture) ready(name string) {
	f.Helper()
	// The controller may write the release at the same moment.
	f.eventually("release "+name+" is ready", func() error {
		release := &helmv2.HelmRelease{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, release); err != nil {
			return err
		}
		release.Status.ObservedGeneration = release.Generation
		release.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "InstallSucceeded", Message: "installed",
			ObservedGeneration: release.Generation, LastTransitionTime: metav1.Now(),
		}}
		return f.client.Status().Update(f.ctx, release)
	})
}

// deployed waits until a layer has deployed a revision.
func (f *fixture) deployed(layer, revision string) {
	f.Helper()
	f.eventually("layer "+layer+" is deployed", func() error {
		status := f.get(layer).Status
		if status.State != v1alpha1.StateDeployed || status.Revision != revision {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
}
