// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// manyLayers creates a chain of layers that all wait: the first of them for a
// layer that does not exist. They are looked at once an hour.
func (f *fixture) manyLayers(count int) {
	f.Helper()
	f.each(count, func(i int) error {
		before := f.name("missing")
		if i > 0 {
			before = f.name(numbered(i - 1))
		}
		return f.client.Create(f.ctx, &v1alpha1.AddonsLayer{
			ObjectMeta: metav1.ObjectMeta{Name: f.name(numbered(i)), Labels: map[string]string{"test": f.namespace}},
			Spec: v1alpha1.AddonsLayerSpec{
				Version: "1.0.0", Source: v1alpha1.SourceSpec{Name: "addons", Path: "./layer"},
				Interval: &metav1.Duration{Duration: time.Hour}, Prereqs: v1alpha1.PrereqsSpec{DependsOn: []string{before + "@>=1 <2"}},
			},
		})
	})
	f.Cleanup(func() {
		f.cancel()
		f.stopped()
		f.each(count, func(i int) error {
			layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name(numbered(i))}}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := f.client.Patch(f.ctx, layer, patch); err != nil {
				return err
			}
			return f.client.Delete(f.ctx, layer)
		})
	})
}

func numbered(i int) string { return fmt.Sprintf("layer-%03d", i) }

// each does something for many numbers, some at a time.
func (f *fixture) each(count int, do func(int) error) {
	f.Helper()
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					f.Error(err)
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// manyPatience bounds the wait for many layers on a machine that is busy.
const manyPatience = 4 * time.Minute

// allStand waits until every layer of the test is in a state for a reason.
func (f *fixture) allStand(count int, state v1alpha1.State, reasons ...string) {
	f.Helper()
	start := time.Now()
	err := controlplane.WaitFor(f.ctx, manyPatience, func(context.Context) error {
		list := &v1alpha1.AddonsLayerList{}
		if err := f.client.List(f.ctx, list, client.MatchingLabels{"test": f.namespace}); err != nil {
			return err
		}
		right := 0
		var other string
		for i := range list.Items {
			layer := &list.Items[i]
			reason := readyReason(layer)
			if layer.Status.State == state && layer.Status.ObservedGeneration == layer.Generation && strings.Contains(strings.Join(reasons, " "), reason) {
				right++
			} else {
				other = fmt.Sprintf("%s is %s, %s", layer.Name, layer.Status.State, reason)
			}
		}
		if right != count {
			return fmt.Errorf("%d of %d are; %s", right, count, other)
		}
		return nil
	})
	if err != nil {
		f.Fatalf("all layers are %s: %v", state, err)
	}
	f.Logf("%d layers are %s after %s", count, state, time.Since(start).Round(10*time.Millisecond))
}

// Many layers wait for each other in a chain, which one edit closes into a
// ring, and another one opens: all of them hear of it although they are looked
// at once an hour otherwise, and none is looked at more than a few times for
// it. The heavier tests have 500 layers.
func TestRingOfManyLayers(t *testing.T) {
	count := 60
	if os.Getenv("STRATA_TEST_ALL") != "" {
		count = 500
	}
	f := newSerialFixture(t, nil)
	f.publish("one", map[string]string{"layer/release.yaml": f.release("release")})
	f.manyLayers(count)
	waits := []string{v1alpha1.ReasonDependencyNotFound, v1alpha1.ReasonDependencyNotDeployed}
	f.allStand(count, v1alpha1.StateApplyPending, waits...)
	first := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name(numbered(0))}}
	asks := func(name string) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"prereqs":{"dependsOn":[%q]}}}`, f.name(name))
		f.must(f.client.Patch(f.ctx, first, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for range 2 {
		before := f.looks.Load()
		asks(numbered(count - 1))
		f.allStand(count, v1alpha1.StateFailed, v1alpha1.ReasonDependencyCycle)
		asks("missing")
		f.allStand(count, v1alpha1.StateApplyPending, waits...)
		// A look reads the clock a few times.
		if read := f.looks.Load() - before; read > int64(50*count) {
			t.Errorf("the clock was read %d times for %d layers", read, count)
		}
		f.Logf("the clock was read %d times", f.looks.Load()-before)
	}
}
