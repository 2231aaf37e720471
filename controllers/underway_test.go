// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// A layer of a Platform that has all that it wants stays Deployed while the Platform below it is
// under way. What is to be applied above both waits for that, and is looked at when it is over:
// the layer between them does not change meanwhile.
func TestWhatIsBehindAnotherPlatformIsWoken(t *testing.T) {
	f := newFixture(t, nil)
	files := func(lower, upper string) map[string]string {
		with := func(name, timeout string) string { return f.release(name) + "  timeout: " + timeout + "\n" }
		return map[string]string{"lower/r.yaml": with("lower", lower), "middle/r.yaml": with("middle", "1m"), "upper/r.yaml": with("upper", upper)}
	}
	f.publish("v1", files("1m", "1m"))
	of := func(platform string) func(*v1alpha1.AddonsLayer) {
		return func(layer *v1alpha1.AddonsLayer) {
			layer.Labels[v1alpha1.PlatformLabel] = f.namespace + "-" + platform
			layer.Spec.Interval = &metav1.Duration{Duration: time.Hour}
		}
	}
	f.layerWith("lower", of("lower"))
	f.layerWith("middle", of("middle"), "lower")
	f.layerWith("upper", of("upper"), "middle")
	for _, name := range []string{"lower", "middle", "upper"} {
		f.ready(name)
		f.deployed(name, "v1")
	}

	f.publish("v2", files("2m", "1m"))
	f.eventually("the lower one is under way", func() error {
		if status := f.get("lower").Status; status.State != v1alpha1.StateApplying {
			return fmt.Errorf("it is %s", status.State)
		}
		return nil
	})
	f.deployed("middle", "v2")
	f.deployed("upper", "v2")
	f.publish("v3", files("2m", "2m"))
	f.eventually("the upper one waits", func() error {
		layer := f.get("upper")
		if ready := layer.Status.Conditions; layer.Status.State != v1alpha1.StateApplyPending || !strings.Contains(fmt.Sprint(ready), f.name("lower")) {
			return fmt.Errorf("it is %s: %v", layer.Status.State, ready)
		}
		return nil
	})
	f.deployed("middle", "v3")
	f.ready("lower")
	f.deployed("lower", "v3")
	f.eventually("the upper one is applied", func() error {
		if timeout := f.released("upper").Spec.Timeout; timeout == nil || timeout.Duration != 2*time.Minute {
			return fmt.Errorf("its timeout is %v", timeout)
		}
		return nil
	})
	f.ready("upper")
	f.deployed("upper", "v3")
}
