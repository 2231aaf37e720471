// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// told returns how often each reason was told of a layer.
func (f *fixture) told(layer string) map[string]int {
	f.Helper()
	list := &eventsv1.EventList{}
	f.must(f.client.List(f.ctx, list, client.InNamespace("default")))
	told := map[string]int{}
	for _, event := range list.Items {
		if event.Regarding.Name != f.name(layer) {
			continue
		}
		told[event.Reason]++
		if event.Series != nil {
			told[event.Reason] += int(event.Series.Count)
		}
	}
	return told
}

// unlucky is a client whose next write of a status meets a conflict once a
// release has been written.
type unlucky struct {
	client.Client
	armed, met atomic.Bool
}

func (u *unlucky) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := u.Client.Patch(ctx, obj, patch, opts...)
	if err == nil && obj.GetObjectKind().GroupVersionKind().Kind == "HelmRelease" && !u.met.Load() {
		u.armed.Store(true)
	}
	return err
}

func (u *unlucky) Status() client.SubResourceWriter {
	return unluckyStatus{SubResourceWriter: u.Client.Status(), unlucky: u}
}

type unluckyStatus struct {
	client.SubResourceWriter
	*unlucky
}

func (u unluckyStatus) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return u.SubResourceWriter.Create(ctx, obj, sub, opts...)
}

func (u unluckyStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return u.SubResourceWriter.Update(ctx, obj, opts...)
}

func (u unluckyStatus) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return u.SubResourceWriter.Apply(ctx, obj, opts...)
}

func (u unluckyStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if u.armed.CompareAndSwap(true, false) {
		u.met.Store(true)
		return apierrors.NewConflict(schema.GroupResource{Group: "kraan.io", Resource: "addonslayers"}, obj.GetName(), errors.New("somebody was faster"))
	}
	return u.SubResourceWriter.Patch(ctx, obj, patch, opts...)
}

// What was done is told although the status write after it meets a conflict, so
// that the next look finds nothing to do.
func TestEventsSurviveAConflict(t *testing.T) {
	var c *unlucky
	box := &lockedInbox{}
	f := newFixture(t, func(next client.Client) client.Client {
		c = &unlucky{Client: next}
		c.met.Store(true) // until the first roll-out is over
		return c
	}, func(r *AddonsLayerReconciler) { r.Notifier = box })
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("ingress"), "base/b.yaml": f.release("dns")})
	f.layer("base")
	f.ready("ingress")
	f.ready("dns")
	f.deployed("base", "main@sha1:1")
	f.settle()
	c.met.Store(false)
	f.publish("main@sha1:2", map[string]string{"base/a.yaml": f.release("ingress")})
	f.eventually("the status write meets a conflict", func() error {
		if !c.met.Load() {
			return errors.New("not yet")
		}
		return nil
	})
	f.eventually("that an orphan was marked is told", func() error {
		if told := f.told("base"); told["Orphaned"] != 1 || box.count("Orphaned") != 1 {
			return fmt.Errorf("told %v; Orphaned was sent %d times", told, box.count("Orphaned"))
		}
		return nil
	})
	f.deployed("base", "main@sha1:2")
	f.settle()
	if told := f.told("base"); told["Orphaned"] != 1 || told["Pruned"] != 1 || box.count("Orphaned") != 1 {
		t.Errorf("events are %v; Orphaned was sent %d times", told, box.count("Orphaned"))
	}
}

// lockedInbox keeps what is sent from several goroutines.
type lockedInbox struct {
	mu sync.Mutex
	inbox
}

func (i *lockedInbox) Send(event eventv1.Event) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inbox.Send(event)
}

func (i *lockedInbox) count(reason string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	count := 0
	for _, event := range i.got {
		if event.Reason == reason {
			count++
		}
	}
	return count
}
