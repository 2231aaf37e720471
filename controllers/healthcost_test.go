// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/objects"
)

// counting counts requests.
type counting struct {
	next  http.RoundTripper
	count *atomic.Int64
}

// RoundTrip counts a request, and passes it on.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.next.RoundTrip(r)
}

// BenchmarkWatchedHealth measures what a layer costs that watches as many Deployments as
// it may, beside the same Deployments read once: bytes of heap and stacks, goroutines and requests of
// each Deployment.
func BenchmarkWatchedHealth(b *testing.B) {
	made, err := client.New(plane.Config(), client.Options{Scheme: newScheme()})
	if err != nil {
		b.Fatal(err)
	}
	const count = 30 // as many as a layer watches
	namespace := fmt.Sprintf("health-%d", b.N)
	if err := made.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = made.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	})
	labels := map[string]string{"app": "web"}
	for i := range count {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%d", i)},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/web:1"}}},
				},
			},
		}
		if err := made.Create(b.Context(), deployment); err != nil {
			b.Fatal(err)
		}
	}
	var requests atomic.Int64
	config := plane.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &requests} })
	clients, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	// Stacks count: each watch has its goroutines.
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc + stats.StackInuse
	}
	resource := appsv1.SchemeGroupVersion.WithResource("deployments")
	for b.Loop() {
		followed := informers.NewFollows(func(string, types.NamespacedName) dynamic.Interface { return clients }, func([]informers.Follower) {})
		before, goroutines := heap(), runtime.NumGoroutine()
		requests.Store(0)
		who := informers.Follower{Kind: "AddonsLayer", NamespacedName: types.NamespacedName{Name: "bench"}}
		for i := range count {
			id := objects.ID{Group: "apps", Kind: "Deployment", Namespace: namespace, Name: fmt.Sprintf("web-%d", i)}
			if live, err := followed.GetAs(b.Context(), who, id, resource, types.NamespacedName{}); err != nil || live == nil {
				b.Fatalf("%v: %v", id, err)
			}
		}
		each := float64(count)
		b.ReportMetric((float64(heap())-float64(before))/each, "B/object")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/each, "goroutines/object")
		b.ReportMetric(float64(requests.Load())/each, "requests/object")
		requests.Store(0)
		for i := range count {
			if _, err := clients.Resource(resource).Namespace(namespace).Get(b.Context(), fmt.Sprintf("web-%d", i), metav1.GetOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(requests.Load())/each, "plain-requests/object")
		followed.Keep(who, nil)
	}
}
