// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// forgePlatform changes the status of a Platform, as who may write that alone does,
// and waits until the controller has looked.
func (f *fixture) forgePlatform(name string, change func(*v1alpha1.PlatformStatus)) {
	f.Helper()
	f.eventually("the status is forged", func() error {
		before := f.getPlatform(name)
		forged := before.DeepCopy()
		change(&forged.Status)
		return f.client.Status().Patch(f.ctx, forged, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	f.patchPlatform(name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fluxmeta.ReconcileRequestAnnotation, time.Now()))
	f.settle()
}

// A user who may write only the status of a Platform skips no approval, and the status
// says again what is so.
func TestForgedStatusSkipsNoApproval(t *testing.T) {
	f, _ := unapproved(t)
	f.settle()
	for what, forged := range map[string]*v1alpha1.RolloutProgress{
		"a stage that is over": {Target: "1.1.0", Since: metav1.NewTime(time.Now().Add(-time.Hour)), Passed: []string{"all"}},
		"one that went back":   {Target: "1.1.0", Since: metav1.NewTime(time.Now().Add(-time.Hour)), RolledBack: "all"},
		"nothing":              nil,
	} {
		f.forgePlatform("shop", func(s *v1alpha1.PlatformStatus) { s.Rollout = forged })
		if got := f.get("shop-first").Spec.Version; got != "1.0.0" {
			t.Errorf("%s: without an approval the layer is at %s", what, got)
		}
		f.platformSays("shop", v1alpha1.ReasonWaiting, "all@1.1.0")
		f.eventually("the status says again what is so", func() error {
			if got := f.getPlatform("shop").Status.Rollout; got == nil || len(got.Passed) > 0 || got.RolledBack != "" {
				return fmt.Errorf("it says %+v", got)
			}
			return nil
		})
	}
	f.approve("shop", "all@1.1.0")
	f.installed("shop", "1.1.0", 3)
}

// Nor does it choose versions.
func TestForgedStatusChoosesNoVersions(t *testing.T) {
	f := picksFixture(t)
	f.platform("own", "  applications: [{name: NAMESPACE-db}]\n")
	f.indexed()
	f.ready(f.name("db"))
	before := f.installed("own", "", 1)
	db := &v1alpha1.HelmApplication{}
	f.must(f.client.Get(f.ctx, client.ObjectKey{Name: f.name("db")}, db))
	next := *db.Spec.Versions[0].DeepCopy()
	next.Version = "2.1.0"
	db.Spec.Versions = append(db.Spec.Versions, next)
	f.must(f.client.Update(f.ctx, db))
	f.settle()
	for what, forge := range map[string]func(*v1alpha1.PlatformStatus){
		"another version": func(s *v1alpha1.PlatformStatus) { s.Lock.Applications[0].Version = "2.1.0" },
		"no lock":         func(s *v1alpha1.PlatformStatus) { s.Lock = nil },
	} {
		f.forgePlatform("own", forge)
		f.eventually("the status says again what is so", func() error {
			if got, want := lockOf(f.getPlatform("own")), lockOf(before); got != want {
				return fmt.Errorf("locked are %s, want %s", got, want)
			}
			return nil
		})
		if got := f.get("own-picked.applications").Spec.Source.Name; got != before.Status.Lock.Bundle {
			t.Errorf("%s: the layer is of bundle %s, want %s", what, got, before.Status.Lock.Bundle)
		}
	}
}
