// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

// ruled is what was decided for a platform and neither its specification nor its
// layers say. The status reports it; the platform's annotation is what counts, because
// whoever may write that may change the platform itself.
type ruled struct {
	// Rollout is how far it has come: stages that are over need no approval and no
	// time to soak any more.
	Rollout *v1alpha1.RolloutProgress `json:"rollout,omitempty"`
	// Lock has the chosen versions, without the reasons, which are many words.
	Lock *v1alpha1.PlatformLock `json:"lock,omitempty"`
}

// Decided returns the value of DecidedAnnotation that goes with a status; empty where
// it needs none.
func Decided(status v1alpha1.PlatformStatus) string {
	d := ruled{Rollout: status.Rollout, Lock: withoutReasons(status.Lock)}
	return decisions.Text(d)
}

// Trusted returns a platform whose status says of its roll-out and of chosen versions
// what was decided, whatever somebody else has written there: the platform itself
// where it does.
func Trusted(platform *v1alpha1.Platform) *v1alpha1.Platform {
	d := decisions.Read[ruled](platform)
	status := platform.Status
	if equality.Semantic.DeepEqual(d.Rollout, status.Rollout) && equality.Semantic.DeepEqual(d.Lock, withoutReasons(status.Lock)) {
		return platform
	}
	trusted := platform.DeepCopy()
	if !equality.Semantic.DeepEqual(d.Lock, withoutReasons(status.Lock)) {
		trusted.Status.Lock = d.Lock
	}
	trusted.Status.Rollout = d.Rollout
	return trusted
}

// withoutReasons returns a lock without why its versions were chosen.
func withoutReasons(lock *v1alpha1.PlatformLock) *v1alpha1.PlatformLock {
	if lock == nil {
		return nil
	}
	short := lock.DeepCopy()
	for i := range short.Applications {
		short.Applications[i].Why = ""
	}
	return short
}
