// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/strata-project/strata/internal/reserved"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/test/hostile"
)

// hostileCluster makes a RemoteCluster of a server that may do harm.
func (f *fixture) hostileCluster(name string, s *hostile.APIServer, change ...func(*clientcmdapi.Cluster)) {
	f.Helper()
	data, err := s.Kubeconfig(change...)
	f.must(err)
	f.newCluster(name, data)
}

// clusterReady waits until a RemoteCluster is Ready, or not, with texts in its
// message.
func (f *fixture) clusterReady(name string, status metav1.ConditionStatus, texts ...string) {
	f.Helper()
	f.eventually("RemoteCluster "+name+" says "+strings.Join(texts, ", "), func() error {
		ready := meta.FindStatusCondition(f.clusterStatus(name).Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Status != status {
			return fmt.Errorf("it is %+v", ready)
		}
		for _, text := range texts {
			if !strings.Contains(ready.Message, text) {
				return fmt.Errorf("it says %q", ready.Message)
			}
		}
		return nil
	})
}

func startHostile(t *testing.T) *hostile.APIServer {
	t.Helper()
	s := hostile.Start()
	t.Cleanup(s.Close)
	return s
}

// A cluster that says it is of a version that no status can hold is not ready, and
// its status goes on to tell what happens.
func TestVersionOfAnyLengthFreezesNothing(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	s := startHostile(t)
	f.hostileCluster("hostile", s)
	f.clusterReady("hostile", metav1.ConditionTrue, "v1.30.1")
	for _, version := range []string{"v1." + strings.Repeat("3", 40<<10), "v1.30.1\n\x1b[31mforged line", "x"} {
		s.Do("/version", hostile.Version(version))
		f.clusterReady("hostile", metav1.ConditionFalse, "no API server of Kubernetes")
		if status := f.clusterStatus("hostile"); status.Version != "v1.30.1" {
			t.Errorf("its version is %.60q", status.Version)
		}
		s.Do("/version", nil)
		f.clusterReady("hostile", metav1.ConditionTrue, "v1.30.1")
	}
	s.Do("/version", hostile.Version("v1."+strings.Repeat("3", 40<<10)))
	f.clusterReady("hostile", metav1.ConditionFalse, "no API server of Kubernetes")
	f.layerWith("layer", func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: f.namespace, Name: "hostile"}
	})
	f.eventually("the layer is counted", func() error {
		if count := f.clusterStatus("hostile").Layers; count.Total != 1 {
			return fmt.Errorf("there are %+v", count)
		}
		return nil
	})
}

// Nothing that a cluster does leads elsewhere, and nothing that it says is more than
// a short line.
func TestClusterLeadsNowhere(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	s, elsewhere := startHostile(t), startHostile(t)
	elsewhere.Do("/", hostile.Failure(http.StatusInternalServerError, "InternalError", "INTERNAL-SECRET"))
	f.hostileCluster("hostile", s)
	f.clusterReady("hostile", metav1.ConditionTrue)
	s.Do("/", hostile.Redirect(http.StatusTemporaryRedirect, elsewhere.URL()+"/latest/meta-data/"))
	f.clusterReady("hostile", metav1.ConditionFalse, "redirect to another address, which is not followed")
	s.Do("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no\n\x1b[2J\u202E"+strings.Repeat("x", 32<<10), http.StatusInternalServerError)
	})
	f.clusterReady("hostile", metav1.ConditionFalse, "no [2Jxxx")
	if ready := meta.FindStatusCondition(f.clusterStatus("hostile").Conditions, v1alpha1.ReadyCondition); len(ready.Message) > 2*informers.MaxProbeMessage {
		t.Errorf("it says %d bytes", len(ready.Message))
	}
	s.Do("/", hostile.Junk)
	f.eventually("it is said that nothing sensible is answered", func() error {
		ready := meta.FindStatusCondition(f.clusterStatus("hostile").Conditions, v1alpha1.ReadyCondition)
		// Which question is asked first, for its version or for who it is, is a matter of moments.
		for _, text := range []string{"no API server of Kubernetes", "its answer is no namespace kube-system in JSON"} {
			if ready.Status == metav1.ConditionFalse && strings.Contains(ready.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("it says %q", ready.Message)
	})
	s.Do("/", nil)
	f.clusterReady("hostile", metav1.ConditionTrue)
	if n := elsewhere.Dials(); n > 0 {
		t.Errorf("%d connections were led elsewhere", n)
	}
}

// A kubeconfig that leads to this machine, by an address or a name, or has a proxy
// that does, brings no connection, and Flux is not given it.
func TestKubeconfigLeadsNowhere(t *testing.T) {
	f := newSerialBareFixture(t)
	f.reach = reach.Allowed{Ranges: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}
	f.startBoth()
	s := startHostile(t)
	port := s.URL()[strings.LastIndex(s.URL(), ":"):]
	for name, change := range map[string]func(*clientcmdapi.Cluster){
		"address": func(*clientcmdapi.Cluster) {},
		"mapped":  func(c *clientcmdapi.Cluster) { c.Server = "https://[::ffff:127.0.0.1]" + port },
		"name":    func(c *clientcmdapi.Cluster) { c.Server = "https://localhost" + port },
		"proxy": func(c *clientcmdapi.Cluster) {
			c.Server, c.ProxyURL = "https://203.0.113.1:6443", "http://127.0.0.1"+port
		},
		"behind": func(c *clientcmdapi.Cluster) {
			c.Server, c.ProxyURL = "https://localhost:6443", "http://203.0.113.1:3128"
		},
	} {
		f.hostileCluster(name, s, change)
		f.clusterReady(name, metav1.ConditionFalse, "--allowed-cluster-")
		copied := &corev1.Secret{}
		err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: reserved.KubeConfigName(name)}, copied)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s: the kubeconfig was copied: %v", name, err)
		}
	}
	if n := s.Dials(); n > 0 {
		t.Errorf("%d connections came", n)
	}
}

// heap returns how many MiB are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc >> 20
}

// A cluster that floods whoever asks or watches costs a bounded amount of memory, and
// another one goes on as ever.
func TestFloodsHoldUpNobody(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	s := startHostile(t)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	f.hostileCluster("hostile", s)
	f.clusterReady("hostile", metav1.ConditionTrue)
	before := heap()
	var events atomic.Int64
	s.Do(definitions+"?watch", hostile.Events(func(int64) string {
		return hostile.Object("meta.k8s.io/v1", "PartialObjectMetadata", fmt.Sprint("a", events.Add(1)), 64<<10)
	}))
	s.Do(definitions, hostile.EndlessList(func(page int64) string {
		return hostile.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", fmt.Sprint("b", page), 64<<10)
	}))
	s.Do("/version", hostile.Flood("", " ", 1<<30))
	data, err := s.Kubeconfig(func(c *clientcmdapi.Cluster) { c.TLSServerName = "example.com" }) // a new connection
	f.must(err)
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{"value": data}})
	f.must(err)
	f.must(f.client.Patch(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "hostile"}}, client.RawPatch(types.MergePatchType, patch)))
	f.clusterReady("hostile", metav1.ConditionFalse, "more than 64 KiB")
	f.cluster("other")
	f.eventually("more was sent than may be kept", func() error {
		if sent := events.Load() * (64 << 10); sent < 128<<20 {
			return fmt.Errorf("%d MiB were sent", sent>>20)
		}
		return nil
	})
	if after := heap(); after > before+512 {
		t.Errorf("%d MiB are in use, and were %d before", after, before)
	}
	f.clusterReady("other", metav1.ConditionTrue)
}

// A cluster with very many definitions is watched as any other.
func TestManyDefinitionsAreRead(t *testing.T) {
	const many = 10000
	f := newSerialBareFixture(t)
	f.startBoth()
	s := startHostile(t)
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	var pages, watches atomic.Int64
	s.Do(definitions, func(w http.ResponseWriter, r *http.Request) {
		limit, from := 500, 0
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &from)
		items := make([]string, 0, limit)
		for i := from; i < min(from+limit, many); i++ {
			items = append(items, hostile.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", fmt.Sprintf("kind%d.example.com", i), 2<<10))
		}
		next := ""
		if from+limit < many {
			next = fmt.Sprint(from + limit)
		}
		pages.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
	})
	s.Do(definitions+"?watch", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "" { // as API servers before 1.34
			hostile.Failure(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden")(w, r)
			return
		}
		watches.Add(1)
		hostile.Silent(w, r)
	})
	f.hostileCluster("large", s)
	f.clusterReady("large", metav1.ConditionTrue)
	f.eventually("all definitions are listed, and watched", func() error {
		if pages.Load() < many/500 || watches.Load() == 0 {
			return fmt.Errorf("%d pages were asked for, and %d watches", pages.Load(), watches.Load())
		}
		return nil
	})
	if pages.Load() != many/500 {
		t.Errorf("%d pages were asked for, want %d", pages.Load(), many/500)
	}
}

// A status that the API server refuses is written shorter, so that no condition goes
// on to say what has long changed.
func TestRefusedStatusIsWrittenShorter(t *testing.T) {
	f := newSerialBareFixture(t)
	cluster := &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "prod"},
		Spec:       v1alpha1.RemoteClusterSpec{KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: "prod"}}},
	}
	f.must(f.client.Create(f.ctx, cluster))
	// Controllers of other tests, which no controller of RemoteClusters accompanies,
	// would wait for it.
	t.Cleanup(func() { f.must(f.client.Delete(f.ctx, cluster)) })
	by := f.client
	ready := metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Reachable", LastTransitionTime: metav1.Now().Rfc3339Copy()}
	write := func(change func(*v1alpha1.RemoteClusterStatus)) (*v1alpha1.RemoteCluster, error) {
		f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), cluster))
		patched := cluster.DeepCopy()
		change(&patched.Status)
		err := apply.PatchStatus(f.ctx, by, patched, cluster)
		found := &v1alpha1.RemoteCluster{}
		f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(cluster), found))
		return found, err
	}
	found, err := write(func(status *v1alpha1.RemoteClusterStatus) {
		status.Conditions, status.Version, status.Layers.Total = []metav1.Condition{ready}, "v1.30.1", 1
	})
	if err != nil || found.Status.Version != "v1.30.1" {
		t.Fatalf("%v: %+v", err, found.Status)
	}
	found, err = write(func(status *v1alpha1.RemoteClusterStatus) {
		changed := ready
		changed.Status, changed.Message = metav1.ConditionFalse, strings.Repeat("no\n", 20000)
		status.Conditions, status.Layers.Total = []metav1.Condition{changed}, 2
	})
	if said := found.Status.Conditions[0]; err != nil || said.Status != metav1.ConditionFalse || len(said.Message) > apply.MaxShortened || !strings.HasPrefix(said.Message, "no no ") || found.Status.Layers.Total != 2 {
		t.Errorf("%v: %.200v", err, found.Status)
	}
	by = refusing{f.client}
	found, err = write(func(status *v1alpha1.RemoteClusterStatus) {
		status.Conditions, status.Layers.Total = []metav1.Condition{ready}, refusedTotal
	})
	if said := found.Status.Conditions[0]; !apierrors.IsInvalid(err) || said.Status != metav1.ConditionTrue || found.Status.Layers.Total != 2 || found.Status.Version != "v1.30.1" {
		t.Errorf("%v: %+v", err, found.Status)
	}
}

// refusedTotal is a number of layers that refusing refuses, however short the texts
// are.
const refusedTotal = 77

type refusing struct{ client.Client }

func (r refusing) Status() client.SubResourceWriter { return refusingStatus{r.Client.Status()} }

type refusingStatus struct{ client.SubResourceWriter }

func (r refusingStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if obj.(*v1alpha1.RemoteCluster).Status.Layers.Total == refusedTotal {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.RemoteClusterKind).GroupKind(), obj.GetName(), nil)
	}
	return r.SubResourceWriter.Patch(ctx, obj, patch, opts...)
}
