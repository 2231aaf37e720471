// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

// What the annotation says counts, and nothing that the status says beyond it.
func TestTrusted(t *testing.T) {
	began := metav1.NewTime(testNow.Truncate(time.Second))
	rollout := func(change func(*v1alpha1.RolloutProgress)) *v1alpha1.RolloutProgress {
		r := &v1alpha1.RolloutProgress{Target: "1.1.0", Since: began, Passed: []string{"dev"}}
		change(r)
		return r
	}
	lock := func(version, why string) *v1alpha1.PlatformLock {
		return &v1alpha1.PlatformLock{Digest: "sha256:1", Bundle: "own", Applications: []v1alpha1.LockedApplication{{Name: "db", Version: version, Why: why}}}
	}
	as := func(*v1alpha1.RolloutProgress) {}
	decided := v1alpha1.PlatformStatus{Rollout: rollout(as), Lock: lock("1.0.0", "it is picked")}
	bare := v1alpha1.PlatformStatus{Rollout: rollout(as), Lock: lock("1.0.0", "")}
	for name, tc := range map[string]struct {
		annotation string
		status     v1alpha1.PlatformStatus
		want       v1alpha1.PlatformStatus
	}{
		"both agree":               {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), decided, decided},
		"a stage that is over":     {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), v1alpha1.PlatformStatus{Rollout: rollout(func(r *v1alpha1.RolloutProgress) { r.Passed = []string{"dev", "prod"} }), Lock: decided.Lock}, decided},
		"a stage that went back":   {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), v1alpha1.PlatformStatus{Rollout: rollout(func(r *v1alpha1.RolloutProgress) { r.RolledBack = "dev" }), Lock: decided.Lock}, decided},
		"an earlier beginning":     {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), v1alpha1.PlatformStatus{Rollout: rollout(func(r *v1alpha1.RolloutProgress) { r.Since = metav1.NewTime(began.Add(-time.Hour)) }), Lock: decided.Lock}, decided},
		"another version":          {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), v1alpha1.PlatformStatus{Rollout: decided.Rollout, Lock: lock("2.0.0", "it is picked")}, bare},
		"nothing":                  {Decided(&v1alpha1.Platform{}, decided, decisions.Seal{}), v1alpha1.PlatformStatus{}, bare},
		"nothing decided":          {"", decided, v1alpha1.PlatformStatus{}},
		"what nobody understands":  {"{", decided, v1alpha1.PlatformStatus{}},
		"what has another meaning": {`{"rollout":"1.1.0"}`, decided, v1alpha1.PlatformStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.status.Version, tc.want.Version = "1.1.0", "1.1.0"
			platform := &v1alpha1.Platform{Status: tc.status}
			if tc.annotation != "" {
				platform.Annotations = map[string]string{v1alpha1.DecidedAnnotation: tc.annotation}
			}
			before := platform.DeepCopy()
			if diff := cmp.Diff(tc.want, Trusted(platform, decisions.Seal{}).Status); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, platform); diff != "" {
				t.Errorf("the platform itself has changed:\n%s", diff)
			}
		})
	}
	if text := Decided(&v1alpha1.Platform{}, v1alpha1.PlatformStatus{Version: "1.1.0"}, decisions.Seal{}); text != "" {
		t.Errorf("nothing decided is %s", text)
	}
}
