// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// tells waits for a state and for what a layer says of itself.
func (f *fixture) tells(layer string, state v1alpha1.State, message string) {
	f.Helper()
	f.eventually(fmt.Sprintf("layer %s is %s", layer, state), func() error {
		status := f.get(layer).Status
		if status.State != state || readyMessageOf(f.get(layer)) != message {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
}

func readyMessageOf(layer *v1alpha1.AddonsLayer) string {
	for _, condition := range layer.Status.Conditions {
		if condition.Type == v1alpha1.ReadyCondition {
			return condition.Message
		}
	}
	return ""
}

func (f *fixture) gone(layer string) {
	f.Helper()
	f.eventually("layer "+layer+" is gone", func() error {
		err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name(layer)}, &v1alpha1.AddonsLayer{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// A layer is deleted as soon as those of its teardownAfter are gone: also one that
// it depends on, and although the interval is an hour.
func TestDeleteAfterTurnsTheOrder(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{
		"base/a.yaml": f.release("a"), "apps/b.yaml": f.release("b"), "dns/c.yaml": f.release("c"),
	})
	quick := func(l *v1alpha1.AddonsLayer) {
		l.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		l.Spec.OrphanGrace = &metav1.Duration{Duration: time.Second}
	}
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.TeardownAfter = []string{l.Name} })
	f.layerWith("apps", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.TeardownAfter = []string{f.name("base")} }, "base")
	// Nothing but the name connects this one with another.
	f.layerWith("dns", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.TeardownAfter = []string{f.name("apps")} })
	f.ready("c")
	f.deployed("dns", "main@sha1:1")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.ready("b")
	f.deployed("apps", "main@sha1:1")

	const override = ` first, or set the annotation kraan.io/force-delete to "true"`
	f.must(f.client.Delete(f.ctx, f.get("dns")))
	waits := "is not deleted before layer " + f.name("apps") + " is gone (spec.teardownAfter)"
	f.tells("dns", v1alpha1.StatePruning, waits+": delete "+f.name("apps")+override)
	f.must(f.client.Delete(f.ctx, f.get("apps")))
	f.tells("apps", v1alpha1.StatePruning, "is not deleted before layer "+f.name("base")+" is gone (spec.teardownAfter): delete "+f.name("base")+override)
	f.tells("dns", v1alpha1.StatePruning, waits)
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.gone("base")
	f.gone("apps")
	f.gone("dns")
}

// A layer that waits for an object is deployed when that is as it is to be, as soon
// as it is, and is settled then. What it waits for is not its own.
func TestWaitForIsWatched(t *testing.T) {
	f := newSerialFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		l.Spec.WaitFor = []v1alpha1.WaitFor{
			{APIVersion: "v1", Kind: "Namespace", Name: f.namespace}, // which is in no namespace
			{APIVersion: "v1", Kind: "ServiceAccount", Namespace: f.namespace, Name: "done", ReadyExpr: "object.metadata.labels.phase == 'done'"},
		}
	})
	f.ready("a")
	what := "ServiceAccount " + f.namespace + "/done is waited for"
	f.says("base", what+", and does not exist")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "done"}}
	f.must(f.client.Create(f.ctx, account))
	f.says("base", what+" until object.metadata.labels.phase == 'done'")
	account.Labels = map[string]string{"phase": "done"}
	f.must(f.client.Update(f.ctx, account))
	f.deployed("base", "main@sha1:1")
	f.settle()
	f.taken()
	account.Annotations = map[string]string{"other": "thing"}
	f.must(f.client.Update(f.ctx, account))
	f.settle()
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("what changes nothing makes requests: %v", requests)
	}
	account.Labels = nil
	f.must(f.client.Update(f.ctx, account))
	f.says("base", what)
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(account), account))
	if !account.DeletionTimestamp.IsZero() || account.Labels[v1alpha1.LayerLabel] != "" {
		t.Errorf("what was waited for is the layer's: %v", account.ObjectMeta)
	}
}

// Objects of deleteBefore go before anything of the layer does; others stay.
func TestDeleteBeforeGoesFirst(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		l.Spec.OrphanGrace = &metav1.Duration{}
		l.Spec.DeleteBefore = []v1alpha1.DeleteBefore{{
			APIVersion: "v1", Kind: "Service", Namespace: f.namespace, Where: "object.spec.type == 'LoadBalancer' && object.spec.loadBalancerClass == 'cloud'",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "base"}}, Timeout: &metav1.Duration{Duration: 2 * time.Second},
		}}
	})
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	service := func(name string, change func(*corev1.Service)) *corev1.Service {
		class := "cloud"
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"of": "base"}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		change(service)
		f.must(f.client.Create(f.ctx, service))
		return service
	}
	kept := service("kept", func(s *corev1.Service) { s.Finalizers = []string{"cloud.example/balancer"} })
	service("goes", func(*corev1.Service) {})
	others := []*corev1.Service{
		service("inside", func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil }),
		service("anothers", func(s *corev1.Service) { s.Labels = nil }),
		service("classless", func(s *corev1.Service) { s.Spec.LoadBalancerClass = nil }),
	}
	f.must(f.client.Delete(f.ctx, f.get("base")))
	waits := "waits until Service " + f.namespace + "/kept (kept by cloud.example/balancer) is gone before anything is uninstalled"
	f.says("base", waits, "takes longer than spec.deleteBefore allows")
	release := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "a"}, release))
	if !release.DeletionTimestamp.IsZero() || release.Labels[v1alpha1.OrphanedLabel] != "" {
		t.Errorf("the release goes before the balancer: %v", release.ObjectMeta)
	}
	if state := f.get("base").Status.State; state != v1alpha1.StateFailed {
		t.Errorf("after the timeout the layer is %s", state)
	}
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(kept), kept))
	kept.Finalizers = nil
	f.must(f.client.Update(f.ctx, kept))
	f.gone("base")
	for _, other := range others {
		if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(other), other); err != nil || !other.DeletionTimestamp.IsZero() {
			t.Errorf("Service %s: %v, deleted %v", other.Name, err, other.DeletionTimestamp)
		}
	}
}

// With the annotation that insists, the layer is deleted with what is left. A where that
// cannot be answered is no reason to skip an object.
func TestDeleteBeforeIsNotSkipped(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) {
		l.Spec.OrphanGrace = &metav1.Duration{}
		l.Spec.DeleteBefore = []v1alpha1.DeleteBefore{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: f.namespace, Where: "object.metadata.name > 3"}}
	})
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}}
	f.must(f.client.Create(f.ctx, account))
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.says("base", "it is not known which objects of spec.deleteBefore are left: ServiceAccount "+f.namespace+"/one: where: ")
	f.patchLayer("base", `{"metadata":{"annotations":{"kraan.io/force-delete":"true"}}}`)
	f.gone("base")
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(account), account))
}
