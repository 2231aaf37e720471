// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/test/controlplane"
)

// plane is the API server that all tests of the package share.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{With: controlplane.APIOnly(), FluxCRDs: true}, func(p *controlplane.ControlPlane) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		plane = p
		return p.InstallCRDs(ctx, "../../../config/crd/bases")
	}))
}

// patience bounds every wait for something that must happen.
const patience = time.Minute

// resources are where objects of tests go.
var resources = map[string]schema.GroupVersionResource{
	"AddonsLayer": snapshot.Layers.GroupVersionResource, "HelmRelease": snapshot.Releases.GroupVersionResource,
	"Namespace": snapshot.Namespaces.GroupVersionResource, "Pod": snapshot.Pods.GroupVersionResource,
	"ReplicaSet": snapshot.ReplicaSets.GroupVersionResource, "Deployment": snapshot.Workloads[0].GroupVersionResource,
	"Event": snapshot.Events.GroupVersionResource, "ConfigMap": snapshot.ConfigMaps.GroupVersionResource,
	"GitRepository": snapshot.GitRepositories.GroupVersionResource,
}

// fixture is a cluster that is looked at through a door that can be shut.
type fixture struct {
	*testing.T
	admin dynamic.Interface
	// shut has the API server be away, and asked counts requests that are no watches.
	shut  atomic.Bool
	asked atomic.Int64
	door  *httptest.Server
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if plane == nil {
		t.Skip("needs a control plane, which -short leaves out")
	}
	admin, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, admin: admin}
}

// through returns the configuration of a user whose requests pass the door.
func (f *fixture) through(config *rest.Config) *rest.Config {
	f.Helper()
	server, err := url.Parse(config.Host)
	f.must(err)
	transport, err := rest.TransportFor(config)
	f.must(err)
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	f.door = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.shut.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if r.URL.Query().Get("watch") == "" {
			f.asked.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	f.Cleanup(func() { f.door.CloseClientConnections(); f.door.Close() })
	return &rest.Config{Host: f.door.URL, QPS: -1}
}

// open looks at the cluster as a user, with options that are changed.
func (f *fixture) open(config *rest.Config, with ...func(*live.Options)) (*live.Cluster, *gather.Cluster) {
	f.Helper()
	through := f.through(config)
	mapper := func() (meta.RESTMapper, error) {
		client, err := discovery.NewDiscoveryClientForConfig(through)
		if err != nil {
			return nil, err
		}
		return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), nil
	}
	read := gather.New(gather.Options{Config: func() (*rest.Config, error) { return through, nil }, Mapper: mapper, Now: time.Now})
	options := live.Options{Cluster: read, Now: time.Now, Why: gather.WhyOptions{Program: "kubectl strata"}}
	for _, change := range with {
		change(&options)
	}
	cluster, err := live.Open(f.Context(), options)
	f.must(err)
	f.Cleanup(cluster.Close)
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	f.must(cluster.Ready(ctx))
	return cluster, read
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// put makes objects, or changes them, with their status.
func (f *fixture) put(text string) {
	f.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		f.must(yaml.Unmarshal([]byte(document), &object.Object))
		resource, known := resources[object.GetKind()]
		if !known {
			f.Fatalf("no resource of %s", object.GetKind())
		}
		client := f.admin.Resource(resource).Namespace(object.GetNamespace())
		status := object.Object["status"]
		made, err := client.Create(f.Context(), object, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			made, err = client.Get(f.Context(), object.GetName(), metav1.GetOptions{})
			f.must(err)
		default:
			f.must(err)
			f.Cleanup(func() {
				now := int64(0)
				_ = client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
			})
		}
		if status != nil {
			made.Object["status"] = status
			_, err = client.UpdateStatus(f.Context(), made, metav1.UpdateOptions{})
			f.must(err)
		}
	}
}

// until waits, from change to change, until something holds.
func (f *fixture) until(cluster *live.Cluster, what string, holds func() error) {
	f.Helper()
	deadline := time.After(patience)
	for {
		_, changed := cluster.Version()
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			f.Fatalf("%s: %v", what, err)
		}
	}
}

const layer = `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %s}
spec: {version: "1.0.0", source: {name: addons, path: ./x}}
status: {state: %s, observedGeneration: 1, conditions: [{type: Ready, status: "%s", reason: X, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]%s}
`

// What is held follows the cluster, is what a command would read, and costs no request.
func TestWhatIsHeldFollowsTheCluster(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "follow-a", "Deployed", "True", ""))
	cluster, read := f.open(plane.Config())
	if cluster.Snapshot().Layer("follow-a") == nil {
		t.Fatal("what was there is not held")
	}
	before := f.asked.Load()
	f.put(fmt.Sprintf(layer, "follow-b", "Failed", "False", ""))
	f.until(cluster, "a new layer", func() error {
		if v := cluster.Verdict(cluster.Snapshot()); !strings.Contains(v.Sentence, "follow-b failed") {
			return errors.New(v.Sentence)
		}
		return nil
	})
	f.put(fmt.Sprintf(layer, "follow-b", "Deployed", "True", ""))
	f.until(cluster, "a change", func() error {
		if state := cluster.Snapshot().Layer("follow-b").Status.State; state != "Deployed" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	if asked := f.asked.Load() - before; asked != 0 {
		t.Errorf("%d requests beside watches", asked)
	}
	s, err := read.Read(t.Context(), live.Parts...)
	f.must(err)
	held := cluster.Snapshot()
	for _, each := range s.Layers {
		each.ManagedFields = nil
	}
	if diff := cmp.Diff(s.Layers, held.Layers); diff != "" {
		t.Errorf("-read +held:\n%s", diff)
	}
	f.must(f.admin.Resource(resources["AddonsLayer"]).Delete(t.Context(), "follow-b", metav1.DeleteOptions{}))
	f.until(cluster, "a layer that goes", func() error {
		if cluster.Snapshot().Layer("follow-b") != nil {
			return errors.New("it is held")
		}
		return nil
	})
}

// A cluster that is away is said to be, what was held stays, and it is followed again once
// it is back.
func TestClusterThatIsAway(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "away-a", "Deployed", "True", ""))
	cluster, _ := f.open(plane.Config())
	f.shut.Store(true)
	f.door.CloseClientConnections()
	f.until(cluster, "the break", func() error {
		if _, is := cluster.Broken(); !is {
			return errors.New("nothing is said of it")
		}
		return nil
	})
	if cluster.Snapshot().Layer("away-a") == nil {
		t.Error("what was held is gone")
	}
	f.put(fmt.Sprintf(layer, "away-b", "Deployed", "True", ""))
	f.shut.Store(false)
	f.until(cluster, "what has come meanwhile", func() error {
		if broken, is := cluster.Broken(); is || cluster.Snapshot().Layer("away-b") == nil {
			return fmt.Errorf("broken %t: %w", is, broken.Err)
		}
		return nil
	})
}

// What may not be listed is named, and is not asked for again and again.
func TestWhatMayNotBeListed(t *testing.T) {
	f := newFixture(t)
	user, err := plane.User("live-nobody")
	f.must(err)
	config := rest.CopyConfig(user.Config)
	cluster, _ := f.open(config)
	v := cluster.Verdict(cluster.Snapshot())
	if v.State != "Unknown" || !strings.Contains(v.Sentence, "you may not list addonslayers.kraan.io") {
		t.Errorf("%s: %s", v.State, v.Sentence)
	}
	// One for each kind, and two for the controller's namespace and the cluster's version.
	if asked := f.asked.Load(); asked != int64(len(live.Parts))+2 {
		t.Errorf("%d requests for %d kinds", asked, len(live.Parts))
	}
}

// A cause is followed to a Pod by watches that begin with the first look: what changes
// there changes the answer.
func TestCausesAreFollowedLive(t *testing.T) {
	f := newFixture(t)
	f.put(`apiVersion: v1
kind: Namespace
metadata: {name: deep}
---
` + fmt.Sprintf(layer, "deep", "Applying", "Unknown", ", blockedBy: [{kind: HelmRelease, namespace: deep, name: web, reason: Progressing}]") + `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: deep, name: web}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: x}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: deep, name: web, labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: deep}}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
status: {observedGeneration: 1, replicas: 1, unavailableReplicas: 1}`)
	owner, err := f.admin.Resource(resources["Deployment"]).Namespace("deep").Get(t.Context(), "web", metav1.GetOptions{})
	f.must(err)
	set := fmt.Sprintf(`apiVersion: apps/v1
kind: ReplicaSet
metadata: {namespace: deep, name: web-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: %s}]}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}`, owner.GetUID())
	f.put(set)
	made, err := f.admin.Resource(resources["ReplicaSet"]).Namespace("deep").Get(t.Context(), "web-1", metav1.GetOptions{})
	f.must(err)
	pod := func(reason string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {namespace: deep, name: web-1-a, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: %s}]}
spec: {containers: [{name: c, image: i}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: %s, message: "0/1 nodes"}]}`, made.GetUID(), reason)
	}
	cluster, _ := f.open(plane.Config())
	ends := func(object, reason string) {
		t.Helper()
		f.until(cluster, "ends at "+object, func() error {
			s := cluster.Snapshot()
			end := cluster.Why(s, s.Layer("deep")).End()
			if end.Kind+" "+end.Name != object || end.Reason != reason {
				return fmt.Errorf("it ends at %+v", end)
			}
			return nil
		})
	}
	ends("Deployment web", "InProgress")
	before := f.asked.Load()
	f.put(pod("Unschedulable"))
	ends("Pod web-1-a", "Unschedulable")
	f.put(pod("SchedulingGated"))
	ends("Pod web-1-a", "SchedulingGated")
	if asked := f.asked.Load() - before; asked != 0 {
		t.Errorf("%d requests beside watches", asked)
	}
	f.put(pod("Unschedulable"))
	f.until(cluster, "the verdict names it", func() error {
		if v := cluster.Verdict(cluster.Snapshot()); !strings.Contains(v.Sentence, "deep waits: Pod web-1-a cannot be scheduled") {
			return errors.New(v.Sentence)
		}
		return nil
	})
}

// What happens to a layer is told from the first look on, and what happens to others is not.
func TestWhatHappensIsFollowedLive(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "happens", "Deployed", "True", ""))
	cluster, _ := f.open(plane.Config())
	told := func(reasons ...string) {
		t.Helper()
		f.until(cluster, fmt.Sprint(reasons), func() error {
			s := cluster.Snapshot()
			var got []string
			found, notes := cluster.Events(events.SubjectsOf(s, s.Layer("happens")))
			for _, each := range found {
				got = append(got, each.Reason)
			}
			if fmt.Sprint(got) != fmt.Sprint(reasons) || len(notes) > 0 {
				return fmt.Errorf("it is %v %v", got, notes)
			}
			return nil
		})
	}
	event := func(name, of, reason, at string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Event
metadata: {namespace: default, name: %s}
involvedObject: {apiVersion: kraan.io/v1alpha1, kind: AddonsLayer, name: %s}
type: Normal
reason: %s
lastTimestamp: %q`, name, of, reason, at)
	}
	told()
	f.put(event("one", "happens", "Applying", "2026-12-01T12:00:00Z"))
	told("Applying")
	f.put(event("other", "somebody", "Hold", "2026-12-01T12:00:01Z"))
	f.put(event("two", "happens", "Deployed", "2026-12-01T12:00:02Z"))
	told("Applying", "Deployed")
}

// Many look at the same time while much changes.
func TestManyLook(t *testing.T) {
	f := newFixture(t)
	cluster, _ := f.open(plane.Config())
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 8 {
		looking.Go(func() {
			for ctx.Err() == nil {
				s := cluster.Snapshot()
				cluster.Verdict(s)
				for _, each := range s.Layers {
					cluster.Why(s, each)
				}
			}
		})
	}
	for i := range 30 {
		f.put(fmt.Sprintf(layer, fmt.Sprintf("many-%d", i%5), []string{"Deployed", "Failed"}[i%2], "False", ""))
	}
	f.until(cluster, "the last one", func() error {
		if at := cluster.Snapshot().Layer("many-4"); at == nil || at.Status.State != "Failed" {
			return errors.New("it is not there")
		}
		return nil
	})
	cancel()
	looking.Wait()
}
