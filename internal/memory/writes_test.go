// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

func TestSpaced(t *testing.T) {
	const spacing = 2 * time.Second
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	wrote := func(r *Writes) { r.WroteStatus("base", noon) }
	withhold := func(after time.Duration) func(r *Writes) {
		return func(r *Writes) {
			r.Withhold(&v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base"}}, v1alpha1.AddonsLayerStatus{}, noon.Add(after))
		}
	}
	for name, test := range map[string]struct {
		before []func(*Writes)
		after  time.Duration
		wrote  bool
		want   time.Duration
	}{
		"first":                           {nil, 0, false, 0},
		"too soon":                        {[]func(*Writes){wrote}, 500 * time.Millisecond, false, 1500 * time.Millisecond},
		"due":                             {[]func(*Writes){wrote}, spacing, false, 0},
		"the clock was set back":          {[]func(*Writes){wrote}, -time.Hour, false, 0},
		"gone since":                      {[]func(*Writes){wrote, func(r *Writes) { r.Forget("base") }}, 0, false, 0},
		"writes that took long":           {[]func(*Writes){wrote}, time.Minute, true, spacing},
		"writes of a new process":         {nil, 0, true, spacing},
		"news after writes":               {[]func(*Writes){wrote, withhold(time.Minute)}, time.Minute + time.Second, false, time.Second},
		"writes after writes":             {[]func(*Writes){wrote, withhold(time.Minute)}, time.Minute + time.Second, true, time.Second},
		"writes over and over":            {[]func(*Writes){withhold(0), withhold(time.Second), withhold(1900 * time.Millisecond)}, spacing, true, 0},
		"writes, and the clock set back":  {[]func(*Writes){withhold(time.Minute)}, 0, true, 0},
		"writes after what was withheld":  {[]func(*Writes){withhold(0), wrote}, time.Second, true, spacing},
		"another layer has something due": {[]func(*Writes){func(r *Writes) { r.WroteStatus("apps", noon) }}, 0, false, 0},
	} {
		r := NewWrites()
		for _, do := range test.before {
			do(r)
		}
		if got := max(0, r.Spaced("base", noon.Add(test.after), spacing, test.wrote)); got != test.want {
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
		meanwhile func(*Writes)
		read      *v1alpha1.AddonsLayer
		want      bool
	}{
		"nothing else happens":      {func(*Writes) {}, layer("1", v1alpha1.StateApplying), true},
		"the status is written":     {func(r *Writes) { r.WroteStatus("base", time.Now()) }, layer("1", v1alpha1.StateApplying), false},
		"the layer is gone":         {func(r *Writes) { r.Forget("base") }, layer("1", v1alpha1.StateApplying), false},
		"it is another layer":       {func(*Writes) {}, layer("2", v1alpha1.StateApplying), false},
		"somebody writes a status":  {func(*Writes) {}, layer("1", v1alpha1.StateFailed), false},
		"it was another one before": {func(r *Writes) { r.WithWithheld(layer("2", v1alpha1.StateApplying)) }, layer("1", v1alpha1.StateApplying), false},
		"annotations are changed": {func(*Writes) {}, func() *v1alpha1.AddonsLayer {
			l := layer("1", v1alpha1.StateApplying)
			l.Annotations = map[string]string{"a": "b"}
			return l
		}(), true},
	} {
		r := NewWrites()
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

func TestIsStale(t *testing.T) {
	id := dependents.ID{Kind: "ConfigMap", Namespace: "default", Name: "settings"}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	wrote := func(verb dependents.Verb, version string) dependents.Result {
		return dependents.Result{Action: dependents.Action{Verb: verb, ID: id}, ResourceVersion: version}
	}
	failed := wrote(dependents.VerbWrite, "100")
	failed.Err = errors.New("refused")
	outdated := wrote(dependents.VerbWrite, "100")
	outdated.Outdated = true
	tests := map[string]struct {
		reason  string
		results []dependents.Result
		version string
		after   time.Duration
		want    bool
	}{
		"nothing written":     {reason: "there is nothing to lag behind", version: "9"},
		"older":               {reason: "the cache has not seen the write", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, version: "99", want: true},
		"numbers, not words":  {reason: "9 comes before 100", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, version: "9", want: true},
		"the same":            {reason: "the cache has seen the write", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, version: "100"},
		"newer":               {reason: "somebody else has written since", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, version: "101"},
		"lacking":             {reason: "the cache has not seen the creation", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, want: true},
		"lacking, much later": {reason: "it was deleted before the cache saw it", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, after: StaleFor + 1},
		"lacking, at the end": {reason: "the limit itself is still within", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, after: StaleFor, want: true},
		"older, much later":   {reason: "no cache lags that long", results: []dependents.Result{wrote(dependents.VerbWrite, "100")}, version: "99", after: StaleFor + 1},
		"marked":              {reason: "marks are writes", results: []dependents.Result{wrote(dependents.VerbMark, "100")}, version: "99", want: true},
		"failed":              {reason: "nothing was written", results: []dependents.Result{failed}, version: "99"},
		"outdated":            {reason: "nothing was written", results: []dependents.Result{outdated}, version: "99"},
		"deleted":             {reason: "the object has no version any more", results: []dependents.Result{wrote(dependents.VerbWrite, "100"), wrote(dependents.VerbDelete, "")}, version: "99"},
		"released":            {reason: "the object may leave the cache", results: []dependents.Result{wrote(dependents.VerbWrite, "100"), wrote(dependents.VerbRelease, "101")}},
		"written twice":       {reason: "the last one counts", results: []dependents.Result{wrote(dependents.VerbUnmark, "100"), wrote(dependents.VerbWrite, "105")}, version: "104", want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewWrites()
			r.Wrote(test.results, noon)
			if got := r.IsStale(id, test.version, noon.Add(test.after)); got != test.want {
				t.Errorf("isStale is %t, want %t: %s", got, test.want, test.reason)
			}
			if got := r.IsStale(id, test.version, noon.Add(test.after)); got != test.want {
				t.Errorf("asked again, isStale is %t, want %t", got, test.want)
			}
		})
	}
}

// A layer's plan may end after that of another layer that has written the same
// object since.
func TestOlderWriteIsRecordedLater(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	id := dependents.ID{Kind: "HelmRelease", Namespace: "default", Name: "podinfo"}
	wrote := func(version string) []dependents.Result {
		return []dependents.Result{{Action: dependents.Action{Verb: dependents.VerbResume, ID: id}, ResourceVersion: version}}
	}
	for name, test := range map[string]struct {
		later time.Duration
		want  bool
	}{
		"a moment later": {time.Second, true},
		"long after":     {StaleFor + time.Second, false}, // of another cluster in its place
	} {
		r := NewWrites()
		r.Wrote(wrote("8"), noon)
		r.Wrote(wrote("7"), noon.Add(test.later))
		if got := r.IsStale(id, "7", noon.Add(test.later)); got != test.want {
			t.Errorf("%s: a cache with the older one is stale: %t", name, got)
		}
	}
}

// Once the cache has caught up, an object that vanishes is missed at once.
func TestIsStaleForgetsWhatWasSeen(t *testing.T) {
	id := dependents.ID{Kind: "ConfigMap", Name: "settings"}
	r := NewWrites()
	now := time.Now()
	r.Wrote([]dependents.Result{{Action: dependents.Action{Verb: dependents.VerbWrite, ID: id}, ResourceVersion: "100"}}, now)
	if r.IsStale(id, "100", now) || r.IsStale(id, "", now) {
		t.Error("an object that the cache has seen and that is gone counts as stale")
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
			r := NewWrites()
			if test.written != nil {
				r.WroteLayer(test.written)
			}
			for range 2 {
				if got := r.Newest(test.cached); string(got.Status.State) != test.want {
					t.Errorf("got the one that is %s, want %s", got.Status.State, test.want)
				}
			}
			if test.want == "written" && r.Newest(test.cached) == test.written {
				t.Error("the remembered layer is handed out itself: a change of it would be remembered")
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
	w, now := NewWrites(), time.Unix(1000, 0)
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
	wait("a", -400*time.Millisecond)
	w.WroteStatus("a", now)
	wait("a", lag)
	w.Forget("a")
	now = now.Add(100 * time.Millisecond)
	wait("a", lag)
	now = now.Add(-time.Hour) // the clock is set back
	wait("a", lag)
}
