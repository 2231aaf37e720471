// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestSpaced(t *testing.T) {
	const spacing = 2 * time.Second
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	wrote := func(r *Layers) { r.WroteStatus("base", noon) }
	withhold := func(after time.Duration) func(r *Layers) {
		return func(r *Layers) {
			r.Withhold(&v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base"}}, v1alpha1.AddonsLayerStatus{}, noon.Add(after))
		}
	}
	for name, test := range map[string]struct {
		before []func(*Layers)
		after  time.Duration
		wrote  bool
		want   time.Duration
	}{
		"first":                           {nil, 0, false, 0},
		"too soon":                        {[]func(*Layers){wrote}, 500 * time.Millisecond, false, 1500 * time.Millisecond},
		"due":                             {[]func(*Layers){wrote}, spacing, false, 0},
		"the clock was set back":          {[]func(*Layers){wrote}, -time.Hour, false, 0},
		"gone since":                      {[]func(*Layers){wrote, func(r *Layers) { r.Forget("base") }}, 0, false, 0},
		"writes that took long":           {[]func(*Layers){wrote}, time.Minute, true, spacing},
		"writes of a new process":         {nil, 0, true, spacing},
		"news after writes":               {[]func(*Layers){wrote, withhold(time.Minute)}, time.Minute + time.Second, false, time.Second},
		"writes after writes":             {[]func(*Layers){wrote, withhold(time.Minute)}, time.Minute + time.Second, true, time.Second},
		"writes over and over":            {[]func(*Layers){withhold(0), withhold(time.Second), withhold(1900 * time.Millisecond)}, spacing, true, 0},
		"writes, and the clock set back":  {[]func(*Layers){withhold(time.Minute)}, 0, true, 0},
		"writes after what was withheld":  {[]func(*Layers){withhold(0), wrote}, time.Second, true, spacing},
		"another layer has something due": {[]func(*Layers){func(r *Layers) { r.WroteStatus("apps", noon) }}, 0, false, 0},
	} {
		r := NewLayers()
		for _, do := range test.before {
			do(r)
		}
		if got := r.Spaced("base", noon.Add(test.after), spacing, test.wrote); got != test.want {
			t.Errorf("%s: waits %s, want %s", name, got, test.want)
		}
	}
}

// What was withheld of a layer is its status until a status is written, or
// somebody else writes one.
func TestWithheld(t *testing.T) {
	layer := func(uid types.UID, state v1alpha1.State) *v1alpha1.AddonsLayer {
		return &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", UID: uid}, Status: v1alpha1.AddonsLayerStatus{State: state}}
	}
	recorded, next := layer("1", v1alpha1.StateApplying), layer("1", v1alpha1.StateApplying)
	next.Status.Resources = []v1alpha1.Resource{{Name: "podinfo"}}
	for name, test := range map[string]struct {
		meanwhile func(*Layers)
		read      *v1alpha1.AddonsLayer
		want      bool
	}{
		"nothing else happens":      {func(*Layers) {}, layer("1", v1alpha1.StateApplying), true},
		"the status is written":     {func(r *Layers) { r.WroteStatus("base", time.Now()) }, layer("1", v1alpha1.StateApplying), false},
		"the layer is gone":         {func(r *Layers) { r.Forget("base") }, layer("1", v1alpha1.StateApplying), false},
		"it is another layer":       {func(*Layers) {}, layer("2", v1alpha1.StateApplying), false},
		"somebody writes a status":  {func(*Layers) {}, layer("1", v1alpha1.StateFailed), false},
		"it was another one before": {func(r *Layers) { r.WithWithheld(layer("2", v1alpha1.StateApplying)) }, layer("1", v1alpha1.StateApplying), false},
		"annotations are changed": {func(*Layers) {}, func() *v1alpha1.AddonsLayer {
			l := layer("1", v1alpha1.StateApplying)
			l.Annotations = map[string]string{"a": "b"}
			return l
		}(), true},
	} {
		r := NewLayers()
		r.Withhold(recorded, next.Status, time.Now())
		test.meanwhile(r)
		got := r.WithWithheld(test.read)
		if with := len(got.Status.Resources) == 1; with != test.want || len(test.read.Status.Resources) != 0 {
			t.Errorf("%s: the layer has what was withheld: %t, want %t", name, with, test.want)
		}
		if got != test.read && (got.UID != test.read.UID || len(got.Annotations) != len(test.read.Annotations)) {
			t.Errorf("%s: more than the status is another: %v", name, got)
		}
	}
}

func TestNewestLayer(t *testing.T) {
	layer := func(uid, version, state string) *v1alpha1.AddonsLayer {
		return &v1alpha1.AddonsLayer{
			ObjectMeta: metav1.ObjectMeta{Name: "base", UID: types.UID(uid), ResourceVersion: version},
			Status:     v1alpha1.AddonsLayerStatus{State: v1alpha1.State(state)},
		}
	}
	tests := map[string]struct {
		written, cached *v1alpha1.AddonsLayer
		want            string
	}{
		"nothing written":   {nil, layer("a", "9", "cached"), "cached"},
		"cache lags behind": {layer("a", "10", "written"), layer("a", "9", "cached"), "written"},
		"cache has it":      {layer("a", "10", "written"), layer("a", "10", "cached"), "cached"},
		"cache is ahead":    {layer("a", "10", "written"), layer("a", "11", "cached"), "cached"},
		"another one":       {layer("a", "10", "written"), layer("b", "9", "cached"), "cached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewLayers()
			if test.written != nil {
				r.Wrote(test.written)
			}
			for range 2 {
				if got := r.Newest(test.cached); string(got.Status.State) != test.want {
					t.Errorf("got the one that is %s, want %s", got.Status.State, test.want)
				}
			}
			r.Forget("base")
			if got := r.Newest(test.cached); got != test.cached {
				t.Error("a layer that was forgotten is remembered")
			}
		})
	}
}

func TestPutOff(t *testing.T) {
	const lag = time.Second
	w, now := NewLayers(), time.Unix(1000, 0)
	wait := func(layer string, want time.Duration) {
		t.Helper()
		if got := w.PutOff(layer, now, lag); got != want {
			t.Errorf("%s waits %s, want %s", layer, got, want)
		}
	}
	wait("a", lag)
	now = now.Add(400 * time.Millisecond)
	wait("a", 600*time.Millisecond)
	wait("b", lag)
	now = now.Add(time.Second)
	wait("a", 0)
	w.WroteStatus("a", now)
	wait("a", lag)
	w.Forget("a")
	now = now.Add(100 * time.Millisecond)
	wait("a", lag)
	now = now.Add(-time.Hour) // the clock is set back
	wait("a", lag)
}
