// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

func chart(kind, wanted, attempted string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		spec := map[string]any{"chart": "a", "version": wanted, "sourceRef": map[string]any{"kind": kind, "name": "charts"}}
		for _, err := range []error{
			unstructured.SetNestedField(obj.Object, spec, "spec", "chart", "spec"),
			unstructured.SetNestedField(obj.Object, attempted, "status", "lastAttemptedRevision"),
		} {
			if err != nil {
				panic(err)
			}
		}
	}
}

var notReady = objectstest.Conditioned("Ready", "False", "InstallFailed", "no such chart")

func TestAssessObject(t *testing.T) {
	deployment := objects.ID{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "a"}
	custom := objects.ID{Group: "example.com", Kind: "Database", Namespace: "default", Name: "a"}
	readyAt := func(generation int64) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": generation}}}
		}
	}
	stalled := objectstest.Conditioned("Stalled", "True", "RetriesExceeded", "gave up")
	cases := map[string]struct {
		reason string
		how    objects.Assess
		live   *unstructured.Unstructured
		want   objects.Standing
	}{
		"existence": {
			reason: "it exists", how: objects.AssessExistence, live: objectstest.Config("a"), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"ready": {
			reason: "Ready at its own generation", how: objects.AssessCondition, live: objectstest.Release("a"), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"not reported": {
			reason: "a missing condition is not Ready", how: objects.AssessCondition, live: objectstest.Release("a", objectstest.Unreported),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusMissing, Message: "has no Ready condition yet"},
		},
		"older generation": {
			reason: "Ready speaks of what was before", how: objects.AssessCondition, live: objectstest.Release("a", objectstest.Generation(2)),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is Ready at an older generation"},
		},
		"older chart": {
			reason: "Flux had the last version at hand", how: objects.AssessCondition, live: objectstest.Release("a", chart("HelmRepository", "2.0.0", "1.9.0")),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is Ready with version 1.9.0 of its chart and is to have 2.0.0"},
		},
		"chart": {
			reason: "build metadata and a v do not make another chart", how: objects.AssessCondition, live: objectstest.Release("a", chart("HelmRepository", "2.0.0", "v2.0.0+1")),
			want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"chart of a range": {
			reason: "any of them will do", how: objects.AssessCondition, live: objectstest.Release("a", chart("HelmRepository", "2.x", "1.9.0")), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"chart of a git repository": {
			reason: "its version is not asked for", how: objects.AssessCondition, live: objectstest.Release("a", chart("GitRepository", "2.0.0", "1.9.0")), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"chart that nobody names": {
			reason: "older controllers do not say", how: objects.AssessCondition, live: objectstest.Release("a", chart("HelmRepository", "2.0.0", "")), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"generation not reported": {
			reason: "Ready without a generation speaks of nothing", how: objects.AssessCondition,
			live: objectstest.Release("a", objectstest.Unreported, objectstest.Conditioned("Ready", "True", "", "")),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is Ready at an older generation"},
		},
		"failing": {
			reason: "it may still get on", how: objects.AssessCondition, live: objectstest.Release("a", notReady),
			want: objects.Standing{Health: objects.Progressing, Status: "InstallFailed", Message: "is not ready: no such chart", Said: "no such chart"},
		},
		"stalled": {
			reason: "its controller has given up; Ready says why", how: objects.AssessCondition, live: objectstest.Release("a", notReady, stalled),
			want: objects.Standing{Health: objects.Failed, Status: "InstallFailed", Message: "has failed: no such chart", Said: "no such chart"},
		},
		"stalled without words": {
			reason: "what Stalled says is next best", how: objects.AssessCondition, live: objectstest.Release("a", objectstest.Conditioned("Ready", "False", "", ""), stalled),
			want: objects.Standing{Health: objects.Failed, Status: objects.StatusFailed, Message: "has failed: gave up", Said: "gave up"},
		},
		"stalled before": {
			reason: "giving up on an older generation says nothing", how: objects.AssessCondition, live: objectstest.Release("a", notReady, stalled, objectstest.Generation(2)),
			want: objects.Standing{Health: objects.Progressing, Status: "InstallFailed", Message: "is not ready: no such chart", Said: "no such chart"},
		},
		"suspended": {
			reason: "it neither blocks nor counts", how: objects.AssessCondition, live: objectstest.Release("a", notReady, objectstest.Suspended),
			want: objects.Standing{Health: objects.Ignored, Status: objects.StatusSuspended, Message: "is suspended"},
		},
		"kstatus, current": {
			reason: "every other kind is assessed by kstatus", live: objectstest.Config("a"), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"kstatus, in progress": {
			reason: "a Deployment that was not looked at yet", live: objectstest.Live(deployment, objectstest.Generation(2), objectstest.Observed(1)),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready: Deployment generation is 2, but latest observed generation is 1", Said: "Deployment generation is 2, but latest observed generation is 1"},
		},
		"kstatus, failed": {
			reason: "a Deployment that does not get on", how: objects.AssessStatus,
			live: objectstest.Live(deployment, objectstest.Generation(1), objectstest.Observed(1), objectstest.Conditioned("Progressing", "False", "ProgressDeadlineExceeded", "too slow")),
			want: objects.Standing{Health: objects.Failed, Status: objects.StatusFailed, Message: "has failed: Progress deadline exceeded", Said: "Progress deadline exceeded"},
		},
		"kstatus, condition of an older generation": {
			reason: "kstatus overlooks that Ready speaks of what was before", live: objectstest.Live(custom, objectstest.Generation(2), readyAt(1)),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is Ready at an older generation"},
		},
		"kstatus, condition of its own generation": {
			reason: "Ready speaks of what is", live: objectstest.Live(custom, objectstest.Generation(2), readyAt(2)), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"kstatus, condition of no generation": {
			reason: "many controllers do not say", live: objectstest.Live(custom, objectstest.Generation(2), objectstest.Conditioned("Ready", "True", "", "")), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"kstatus, not ready": {
			reason: "what it says of itself is more than that it is old", live: objectstest.Live(custom, objectstest.Generation(2), objectstest.Conditioned("Ready", "False", "", "no issuer")),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready: no issuer", Said: "no issuer"},
		},
		"a job that runs": {
			reason: "what comes behind it needs what it does", how: objects.AssessStatus,
			live: objectstest.Live(objects.ID{Group: "batch", Kind: "Job", Namespace: "default", Name: "a"}, func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"startTime": "2026-01-02T03:04:05Z", "active": int64(1)}
			}),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "has not ended: Job in progress. success:0, active: 1, failed: 0", Said: "Job in progress. success:0, active: 1, failed: 0"},
		},
		"a job that has ended": {
			reason: "it is done", how: objects.AssessStatus,
			live: objectstest.Live(objects.ID{Group: "batch", Kind: "Job", Namespace: "default", Name: "a"}, objectstest.Conditioned("Complete", "True", "", "")),
			want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"a job that is suspended": {
			reason: "it neither blocks nor counts, as a release that is suspended", how: objects.AssessStatus,
			live: job(objectstest.Suspended), want: objects.Standing{Health: objects.Ignored, Status: objects.StatusSuspended, Message: "is suspended"},
		},
		"a job that was suspended while it ran": {
			reason: "as Kueue does to make room for another one", how: objects.AssessStatus,
			live: job(objectstest.Suspended, objectstest.Conditioned("Suspended", "True", "JobSuspended", ""), func(o *unstructured.Unstructured) {
				o.Object["status"].(map[string]any)["startTime"] = "2026-01-02T03:04:05Z"
			}),
			want: objects.Standing{Health: objects.Ignored, Status: objects.StatusSuspended, Message: "is suspended"},
		},
		"a job that has ended and is suspended": {
			reason: "it is done", how: objects.AssessStatus,
			live: job(objectstest.Suspended, objectstest.Conditioned("Complete", "True", "", "")), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"a job that has failed and is suspended": {
			reason: "it does not get on when it is resumed", how: objects.AssessStatus,
			live: job(objectstest.Suspended, objectstest.Conditioned("Failed", "True", "", "")),
			want: objects.Standing{Health: objects.Failed, Status: objects.StatusFailed, Message: "has failed: Job Failed. failed: 0/1", Said: "Job Failed. failed: 0/1"},
		},
		"a job of another group that is suspended": {
			reason: "what suspend means there is not known", how: objects.AssessStatus,
			live: objectstest.Live(objects.ID{Group: "example.com", Kind: "Job", Namespace: "default", Name: "a"}, objectstest.Suspended, objectstest.Conditioned("Ready", "False", "", "no")),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusProgress, Message: "is not ready: no", Said: "no"},
		},
		"kstatus, no status": {
			reason: "whether anything will ever report on it cannot be known", live: objectstest.Live(custom, objectstest.Generation(1)), want: objects.Standing{Health: objects.Ready, Status: objects.StatusReady},
		},
		"kstatus, nonsense": {
			reason: "what cannot be read cannot be told", live: objectstest.Live(deployment, func(o *unstructured.Unstructured) { o.Object["status"] = "x" }),
			want: objects.Standing{Health: objects.Unknown, Status: objects.StatusProgress, Message: "cannot restore struct from: string"},
		},
		"conditions that are none": {
			reason: "a status of another form is no status", how: objects.AssessCondition,
			live: objectstest.Release("a", func(o *unstructured.Unstructured) {
				o.Object["status"] = map[string]any{"conditions": []any{"x", map[string]any{"type": "Other"}}}
			}),
			want: objects.Standing{Health: objects.Progressing, Status: objects.StatusMissing, Message: "has no Ready condition yet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, objects.AssessObject(tc.how, tc.live)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// job returns a Job as the API server has made it.
func job(changes ...objectstest.Change) *unstructured.Unstructured {
	return objectstest.Live(objects.ID{Group: "batch", Kind: "Job", Namespace: "default", Name: "a"}, append([]objectstest.Change{objectstest.Generation(1)}, changes...)...)
}

func TestGoesWhenDone(t *testing.T) {
	ttl := func(value any) objectstest.Change {
		return func(o *unstructured.Unstructured) {
			spec, _ := o.Object["spec"].(map[string]any)
			if spec == nil {
				spec = map[string]any{}
			}
			spec["ttlSecondsAfterFinished"] = value
			o.Object["spec"] = spec
		}
	}
	complete := objectstest.Conditioned("Complete", "True", "", "")
	for name, tc := range map[string]struct {
		live *unstructured.Unstructured
		want bool
	}{
		"complete, with a TTL":      {job(complete, ttl(int64(5))), true},
		"with a TTL of no time":     {job(complete, ttl(int64(0))), true},
		"complete, without a TTL":   {job(complete), false},
		"with a TTL, not complete":  {job(ttl(int64(5))), false},
		"with a TTL that is null":   {job(complete, ttl(nil)), false},
		"failed, with a TTL":        {job(objectstest.Conditioned("Failed", "True", "", ""), ttl(int64(5))), false},
		"complete is not yet true":  {job(objectstest.Conditioned("Complete", "False", "", ""), ttl(int64(5))), false},
		"of another group":          {objectstest.Live(objects.ID{Group: "example.com", Kind: "Job", Name: "a"}, complete, ttl(int64(5))), false},
		"a CronJob, which goes not": {objectstest.Live(objects.ID{Group: "batch", Kind: "CronJob", Name: "a"}, complete, ttl(int64(5))), false},
	} {
		if got := objects.GoesWhenDone(tc.live); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestWorst(t *testing.T) {
	if _, found := objects.Worst(nil); found {
		t.Error("nothing has no worst standing")
	}
	order := []objects.Health{objects.Ready, objects.Ignored, objects.Progressing, objects.Blocked, objects.Unknown, objects.Failed}
	if !slices.IsSorted(order) {
		t.Errorf("healths are not from best to worst: %v", order)
	}
	rapid.Check(t, func(t *rapid.T) {
		standings := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) objects.Standing {
			return objects.Standing{ID: objectstest.ReleaseID(rapid.StringMatching(`[a-z]`).Draw(t, "name")), Health: rapid.SampledFrom(order).Draw(t, "health")}
		}), 1, 8, func(s objects.Standing) objects.ID { return s.ID }).Draw(t, "standings")
		worst, _ := objects.Worst(standings)
		for _, standing := range standings {
			if standing.Health > worst.Health || standing.Health == worst.Health && standing.ID.Compare(worst.ID) < 0 {
				t.Errorf("%v is worse than %v", standing, worst)
			}
		}
		shuffled, _ := objects.Worst(rapid.Permutation(standings).Draw(t, "shuffled"))
		if shuffled != worst {
			t.Errorf("the order matters: %v, then %v", worst, shuffled)
		}
	})
}

func TestID(t *testing.T) {
	a, b := objectstest.ReleaseID("a"), objectstest.ReleaseID("b")
	issuerID := func(name string) objects.ID { return objects.ID{Group: "acme.example.com", Kind: "Issuer", Name: name} }
	obj := objectstest.Live(a)
	if objects.IDOf(obj) != a || a.String() != "HelmRelease default/a" || issuerID("x").String() != "Issuer x" || a.Key().String() != "default/a" {
		t.Errorf("got %v, %v, %v", objects.IDOf(obj), a, issuerID("x"))
	}
	got := objects.SortIDs([]objects.ID{b, objectstest.ConfigID("z"), a, b, issuerID("x")})
	if diff := cmp.Diff([]objects.ID{objectstest.ConfigID("z"), issuerID("x"), a, b}, got); diff != "" {
		t.Errorf("IDs are sorted by group, kind, namespace and name, without repetitions (-want +got):\n%s", diff)
	}
}
