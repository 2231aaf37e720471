// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/strata-project/strata/api/v1alpha1"
)

// startBoth runs the controllers of layers and of RemoteClusters.
func (f *fixture) startBoth() {
	f.Helper()
	counted := plane.Config()
	counted.Wrap(f.count)
	mgr, reconciler := f.assemble(counted, managerOptions(), time.Minute)
	f.startWithClusters(mgr, reconciler)
}

// startWithClusters runs a controller of layers, and that of RemoteClusters with it,
// until the test ends.
func (f *fixture) startWithClusters(mgr ctrl.Manager, reconciler *AddonsLayerReconciler) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	f.must(reconciler.Setup(ctx, mgr))
	f.must(reconciler.SetupWithManager(mgr))
	f.must((&RemoteClusterReconciler{Process: reconciler.Process, Reach: f.reach}).SetupWithManager(mgr))
	go func() { f.ended <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		f.stopped()
	})
}

// cluster makes a RemoteCluster of the tests' API server, and waits until it is
// Ready. There may be several, and all are the cluster that Strata runs in.
func (f *fixture) cluster(name string) {
	f.Helper()
	data, err := os.ReadFile(plane.Kubeconfig())
	f.must(err)
	f.clusterBy(name, data)
}

// clusterBy makes a RemoteCluster of a kubeconfig, and waits until it is Ready.
func (f *fixture) clusterBy(name string, kubeconfig []byte) {
	f.Helper()
	f.newCluster(name, kubeconfig)
	f.eventually("RemoteCluster "+name+" is ready", func() error {
		if status := f.clusterStatus(name); !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition) {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
}

// newCluster makes a RemoteCluster of a kubeconfig.
func (f *fixture) newCluster(name string, data []byte) {
	f.Helper()
	f.must(f.client.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: map[string][]byte{"value": data},
	}))
	cluster := &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"test": f.namespace}},
		Spec: v1alpha1.RemoteClusterSpec{
			KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name}}, Interval: &metav1.Duration{Duration: time.Second},
		},
	}
	f.must(f.client.Create(f.ctx, cluster))
	f.Cleanup(func() {
		f.cancel()
		f.stopped()
		f.must(client.IgnoreNotFound(f.client.Patch(f.ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
		f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, cluster)))
	})
}

func (f *fixture) clusterStatus(name string) v1alpha1.RemoteClusterStatus {
	f.Helper()
	found := &v1alpha1.RemoteCluster{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found))
	return found.Status
}

// storedCount makes sure that a number of layers is stored, also where it is 0: a
// patch that changes the other one has to make a count that the API server takes,
// and people are shown no empty column.
func (f *fixture) storedCount(cluster, of string, want int64) {
	f.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RemoteClusterKind))
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: cluster}, found))
	if got, stored, err := unstructured.NestedInt64(found.Object, "status", "layers", of); err != nil || !stored || got != want {
		f.Errorf("%d layers are %s, stored %t, %v, want %d", got, of, stored, err, want)
	}
}

// requestsOf counts requests whose text begins so, and lists them all.
func requestsOf(requests []request, begin string) (count int, all string) {
	var texts []string
	for _, request := range requests {
		texts = append(texts, request.what)
		if strings.HasPrefix(request.what, begin) {
			count++
		}
	}
	return count, strings.Join(texts, "\n")
}

// A look at a RemoteCluster whose own writes the cache has yet to see writes
// nothing again.
func TestClusterJoinsWithOneCopy(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	const clusters = 10
	for i := range clusters {
		f.cluster(fmt.Sprintf("prod-%d", i))
	}
	f.settle()
	requests, _ := f.taken()
	secrets := "/api/v1/namespaces/" + f.namespace + "/secrets"
	for begin, want := range map[string]int{
		"POST " + secrets:        clusters,
		"PATCH " + secrets + "/": 0,
		"GET " + secrets + "/":   0,
	} {
		if got, all := requestsOf(requests, begin); got != want {
			t.Errorf("%d requests %s, want %d, of\n%s", got, begin, want, all)
		}
	}
}

// The number of layers is told for many at a time: a roll-out of a hundred layers
// does not write the RemoteCluster two hundred times.
func TestClusterCountsManyAtATime(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	f.cluster("prod")
	f.settle()
	f.taken()
	f.storedCount("prod", "total", 0)
	const layers = 20
	for i := range layers {
		f.layerWith(fmt.Sprintf("layer-%d", i), func(layer *v1alpha1.AddonsLayer) {
			layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: f.namespace, Name: "prod"}
		})
	}
	f.eventually("all layers are counted", func() error {
		if count := f.clusterStatus("prod").Layers; count.Total != layers {
			return fmt.Errorf("there are %+v", count)
		}
		return nil
	})
	f.settle()
	f.storedCount("prod", "total", layers)
	f.storedCount("prod", "deployed", 0)
	requests, _ := f.taken()
	status := "PATCH /apis/kraan.io/v1alpha1/namespaces/" + f.namespace + "/remoteclusters/prod/status"
	if got, all := requestsOf(requests, status); got < 1 || got > layers/4 {
		t.Errorf("the status was written %d times for %d layers, of\n%s", got, layers, all)
	}
}

// A layer looks at its cluster again for all that it reads there, and for nothing
// else.
func TestWhatLayersReadOfACluster(t *testing.T) {
	cluster := func(change func(*v1alpha1.RemoteCluster)) *v1alpha1.RemoteCluster {
		since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		c := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1, ResourceVersion: "7", Annotations: map[string]string{"a": "b", "c": "d"}}}
		c.Status.Version = "v1.36.3"
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReachableCondition, Status: metav1.ConditionTrue, LastTransitionTime: since}}
		change(c)
		return c
	}
	later := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC))
	for name, test := range map[string]struct {
		change func(*v1alpha1.RemoteCluster)
		want   bool
	}{
		"nothing":               {func(*v1alpha1.RemoteCluster) {}, false},
		"the number of layers":  {func(c *v1alpha1.RemoteCluster) { c.Status.Layers.Total, c.ResourceVersion = 3, "8" }, false},
		"when it was seen":      {func(c *v1alpha1.RemoteCluster) { c.Status.LastSeen, c.ResourceVersion = &later, "8" }, false},
		"its specification":     {func(c *v1alpha1.RemoteCluster) { c.Generation++ }, true},
		"another one":           {func(c *v1alpha1.RemoteCluster) { c.UID = "b" }, true},
		"its version":           {func(c *v1alpha1.RemoteCluster) { c.Status.Version = "v1.37.0" }, true},
		"that it is given up":   {func(c *v1alpha1.RemoteCluster) { c.Annotations[v1alpha1.AbandonAnnotation] = "true" }, true},
		"that it is deleted":    {func(c *v1alpha1.RemoteCluster) { c.DeletionTimestamp = &later }, true},
		"that it is away":       {func(c *v1alpha1.RemoteCluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"why it is away":        {func(c *v1alpha1.RemoteCluster) { c.Status.Conditions[0].Message = "refused" }, true},
		"since when it is away": {func(c *v1alpha1.RemoteCluster) { c.Status.Conditions[0].LastTransitionTime = later }, true},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := cluster(func(*v1alpha1.RemoteCluster) {}), cluster(test.change)
			if got := clusterChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != test.want {
				t.Errorf("layers are woken: %t, want %t", got, test.want)
			}
		})
	}
}
