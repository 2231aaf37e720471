// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package ownwrites

import (
	"errors"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

func TestIsStale(t *testing.T) {
	id := objects.ID{Kind: "ConfigMap", Namespace: "default", Name: "settings"}
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
			r := NewObjects()
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
	id := objects.ID{Kind: "HelmRelease", Namespace: "default", Name: "podinfo"}
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
		r := NewObjects()
		r.Wrote(wrote("8"), noon)
		r.Wrote(wrote("7"), noon.Add(test.later))
		if got := r.IsStale(id, "7", noon.Add(test.later)); got != test.want {
			t.Errorf("%s: a cache with the older one is stale: %t", name, got)
		}
	}
}

// Once the cache has caught up, an object that vanishes is missed at once.
func TestIsStaleForgetsWhatWasSeen(t *testing.T) {
	id := objects.ID{Kind: "ConfigMap", Name: "settings"}
	r := NewObjects()
	now := time.Now()
	r.Wrote([]dependents.Result{{Action: dependents.Action{Verb: dependents.VerbWrite, ID: id}, ResourceVersion: "100"}}, now)
	if r.IsStale(id, "100", now) || r.IsStale(id, "", now) {
		t.Error("an object that the cache has seen and that is gone counts as stale")
	}
}
