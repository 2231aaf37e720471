// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package primary_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/pkg/primary"
	"github.com/strata-project/strata/test/atrest"
	"github.com/strata-project/strata/test/controlplane"
)

// plane is the API server that all tests of the package share.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly()}, func(p *controlplane.ControlPlane) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane = p
		return p.InstallCRDs(ctx, "testdata/thing.yaml", "../../examples/operator/website.yaml")
	}))
}

// patience bounds every wait for something that must happen.
const patience = time.Minute

// Thing is a primary of the tests, which is to have what a test says.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ThingSpec      `json:"spec,omitempty"`
	Status            primary.Status `json:"status,omitempty"`
}

// ThingSpec says what the thing is.
type ThingSpec struct {
	Names []string `json:"names,omitempty"`
}

// PrimaryStatus is what the engine writes.
func (t *Thing) PrimaryStatus() *primary.Status { return &t.Status }

// DeepCopyObject copies a thing.
func (t *Thing) DeepCopyObject() runtime.Object {
	out := *t
	t.DeepCopyInto(&out.ObjectMeta)
	t.Status.DeepCopyInto(&out.Status)
	out.Spec.Names = append([]string(nil), t.Spec.Names...)
	return &out
}

// ThingList is a list of things.
type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Thing `json:"items"`
}

// DeepCopyObject copies a list.
func (l *ThingList) DeepCopyObject() runtime.Object {
	out := &ThingList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Thing))
	}
	return out
}

// fixture is a namespace with things.
type fixture struct {
	*testing.T
	ctx       context.Context
	namespace string
	client    client.Client
	scheme    *runtime.Scheme
	// left is how many writes an engine has before it dies; far below zero is none.
	left *atomic.Int64
	// seen sees when an engine is at rest.
	seen  *atrest.Observer
	stop  context.CancelFunc
	ended chan error
}

var fixtures atomic.Int32

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	t.Parallel()
	f := &fixture{T: t, ctx: t.Context(), namespace: fmt.Sprintf("things%d", fixtures.Add(1)), scheme: runtime.NewScheme()}
	f.must(clientgoscheme.AddToScheme(f.scheme))
	group := schema.GroupVersion{Group: "test.example.com", Version: "v1"}
	f.scheme.AddKnownTypes(group, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(f.scheme, group)
	var err error
	f.client, err = client.New(plane.Config(), client.Options{Scheme: f.scheme})
	f.must(err)
	f.must(plane.CreateNamespace(f.ctx, f.namespace))
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

var errDead = errors.New("this engine is dead")

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// mortal lets no request through once an engine has no writes left: the last one takes effect,
// and nobody hears of it.
func mortal(left *atomic.Int64) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/events") || strings.Contains(req.URL.Path, "selfsubject") || req.URL.Query().Get("watch") == "true" {
				return next.RoundTrip(req)
			}
			if left.Load() == 0 {
				return nil, errDead
			}
			if req.Method == http.MethodGet || left.Add(-1) != 0 {
				return next.RoundTrip(req)
			}
			resp, err := next.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			return nil, errDead
		})
	}
}

// start runs an engine for things of the fixture's namespace, with so many writes before it
// dies; a negative number is no end of them.
func (f *fixture) start(writes int64, kind primary.Kind[*Thing]) {
	f.Helper()
	f.left = &atomic.Int64{}
	f.left.Store(writes)
	server := plane.Config()
	server.Wrap(mortal(f.left))
	f.seen = atrest.New(atrest.Options{})
	yes, none := true, time.Duration(0)
	mgr, err := ctrl.NewManager(f.seen.Config(server), ctrl.Options{
		Scheme: f.scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: &none,
		Controller: config.Controller{SkipNameValidation: &yes}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
	})
	f.must(err)
	mgr = f.seen.Over(mgr)
	kind.New = func() *Thing { return &Thing{} }
	f.must(primary.Register(mgr, kind))
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.ended = cancel, make(chan error, 1)
	ended := f.ended
	go func() { ended <- mgr.Start(ctx) }()
	f.Cleanup(cancel)
}

func (f *fixture) end() {
	f.Helper()
	f.stop()
	select {
	case err := <-f.ended:
		_ = err // of one that is dead there may be any
	case <-time.After(patience):
		f.Fatal("the engine does not end")
	}
}

func (f *fixture) thing(name string, names ...string) *Thing {
	f.Helper()
	thing := &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Spec: ThingSpec{Names: names}}
	f.must(f.client.Create(f.ctx, thing))
	return thing
}

// wants has a thing want other names.
func (f *fixture) wants(thing *Thing, names ...string) {
	f.Helper()
	patched := thing.DeepCopyObject().(*Thing)
	patched.Spec.Names = names
	f.must(f.client.Patch(f.ctx, patched, client.MergeFrom(thing)))
	thing.Spec.Names = names
}

func (f *fixture) eventually(what string, check func() error) {
	f.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// says waits until a thing says something of its condition Ready.
func (f *fixture) says(name, reason string, words ...string) *Thing {
	f.Helper()
	thing := &Thing{}
	f.eventually(fmt.Sprintf("%s says %s %q", name, reason, words), func() error {
		f.must(f.client.Get(f.ctx, f.key(name), thing))
		ready := meta.FindStatusCondition(thing.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != thing.Generation {
			return fmt.Errorf("it says %+v", thing.Status.Conditions)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("it says %s", ready.Message)
			}
		}
		return nil
	})
	return thing
}

func (f *fixture) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: f.namespace, Name: name}
}

// maps returns the names of the ConfigMaps that there are of things.
func (f *fixture) maps() string {
	f.Helper()
	list := &corev1.ConfigMapList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace), client.HasLabels{"test.example.com/primary"}))
	var names []string
	for _, each := range list.Items {
		names = append(names, each.Name)
	}
	return strings.Join(names, " ")
}

func (f *fixture) gone(obj client.Object, name string) {
	f.Helper()
	f.eventually(name+" is gone", func() error {
		if err := f.client.Get(f.ctx, f.key(name), obj); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}
