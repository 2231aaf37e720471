// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// A layer is deleted as soon as those of its deleteAfter are gone: also one that
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
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.DeleteAfter = []string{l.Name} })
	f.layerWith("apps", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.DeleteAfter = []string{f.name("base")} }, "base")
	// Nothing but the name connects this one with another.
	f.layerWith("dns", func(l *v1alpha1.AddonsLayer) { quick(l); l.Spec.DeleteAfter = []string{f.name("apps")} })
	f.ready("c")
	f.deployed("dns", "main@sha1:1")
	f.ready("a")
	f.deployed("base", "main@sha1:1")
	f.ready("b")
	f.deployed("apps", "main@sha1:1")

	const override = ` first, or set the annotation kraan.io/force-delete to "true"`
	f.must(f.client.Delete(f.ctx, f.get("dns")))
	waits := "is not deleted before layer " + f.name("apps") + " is gone (spec.deleteAfter)"
	f.tells("dns", v1alpha1.StatePruning, waits+": delete "+f.name("apps")+override)
	f.must(f.client.Delete(f.ctx, f.get("apps")))
	f.tells("apps", v1alpha1.StatePruning, "is not deleted before layer "+f.name("base")+" is gone (spec.deleteAfter): delete "+f.name("base")+override)
	f.tells("dns", v1alpha1.StatePruning, waits)
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.gone("base")
	f.gone("apps")
	f.gone("dns")
}
