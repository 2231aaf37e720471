// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

var releases = schema.GroupResource{Group: kinds.HelmReleaseKind.Group, Resource: "helmreleases"}

func TestReportFailures(t *testing.T) {
	forbidden := apierrors.NewForbidden(releases, "a", errors.New("no"))
	invalid := apierrors.NewInvalid(kinds.HelmReleaseKind, "a", nil)
	conflict := apierrors.NewConflict(releases, "a", errors.New("changed"))
	wanted := dependents.Dependent{ID: releaseID("a"), Digest: "v1", Origin: "base/a.yaml"}
	did := func(verb dependents.Verb, err error) dependents.Result {
		action := dependents.Action{Verb: verb, ID: releaseID("a")}
		if verb == dependents.VerbWrite {
			action.Wanted = &wanted
		}
		return dependents.Result{Action: action, Generation: 1, Err: err}
	}
	cases := map[string]struct {
		reason  string
		results []dependents.Result
		want    decided
		retry   bool
	}{
		"done": {
			reason: "what was written is waited for", results: []dependents.Result{did(dependents.VerbWrite, nil)},
			want: decided{state: v1alpha1.StateApplying, conditions: waitingFor("Applying"), kstatus: status.InProgressStatus, message: "HelmRelease default/a has yet to be applied"},
		},
		"forbidden": {
			reason: "the verb and the resource that are missing are named, with the file; it is tried again", results: []dependents.Result{did(dependents.VerbWrite, forbidden)},
			want: decided{
				state: v1alpha1.StateFailed, conditions: failedWith("ApplyFailed"), kstatus: status.InProgressStatus,
				message: `cannot apply HelmRelease default/a (base/a.yaml): helmreleases.helm.toolkit.fluxcd.io "a" is forbidden: no`,
			},
			retry: true,
		},
		"invalid": {
			reason: "only the author can mend it", results: []dependents.Result{did(dependents.VerbWrite, invalid)},
			want: decided{
				state: v1alpha1.StateFailed, conditions: stalledWith("InvalidManifest"), kstatus: status.FailedStatus,
				message: `cannot apply HelmRelease default/a (base/a.yaml): HelmRelease.helm.toolkit.fluxcd.io "a" is invalid`,
			},
			retry: true,
		},
		"invalid and forbidden": {
			reason: "what may pass is tried again, whatever failed beside it", results: []dependents.Result{did(dependents.VerbWrite, invalid), did(dependents.VerbWrite, forbidden)},
			want: decided{
				state: v1alpha1.StateFailed, conditions: failedWith("InvalidManifest"), kstatus: status.InProgressStatus,
				message: `cannot apply HelmRelease default/a (base/a.yaml): HelmRelease.helm.toolkit.fluxcd.io "a" is invalid; 1 more objects failed`,
			},
			retry: true,
		},
		"conflict": {
			reason: "somebody was faster: it is decided anew, and no failure", results: []dependents.Result{did(dependents.VerbWrite, conflict)},
			want: decided{state: v1alpha1.StateApplying, conditions: waitingFor("Applying"), kstatus: status.InProgressStatus, message: "HelmRelease default/a has yet to be applied"},
		},
		"mark": {
			reason: "a failing prune is an error", results: []dependents.Result{did(dependents.VerbMark, forbidden)},
			want: decided{
				state: v1alpha1.StateFailed, conditions: failedWith("PruneFailed"), kstatus: status.InProgressStatus,
				message: `cannot remove HelmRelease default/a: helmreleases.helm.toolkit.fluxcd.io "a" is forbidden: no`,
			},
			retry: true,
		},
		"several": {
			reason: "the first is named and the others are counted", results: []dependents.Result{did(dependents.VerbDelete, forbidden), did(dependents.VerbWrite, conflict), did(dependents.VerbDelete, invalid)},
			want: decided{
				state: v1alpha1.StateFailed, conditions: failedWith("PruneFailed"), kstatus: status.InProgressStatus,
				message: `cannot remove HelmRelease default/a: helmreleases.helm.toolkit.fluxcd.io "a" is forbidden: no; 1 more objects failed`,
			},
			retry: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")))
			report, d := Report(o, Decide(o), tc.results)
			got := decided{state: report.State, conditions: conditionsOf(report), kstatus: kstatusOf(t, o.Layer, report), message: d.Message}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(decided{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (d.Retry != nil) != tc.retry {
				t.Errorf("%s: the error to try again after is %v", tc.reason, d.Retry)
			}
		})
	}
}

func TestReportFailureWhileDeployed(t *testing.T) {
	o := observation(layer(isDeployed(oldDir), annotation(v1alpha1.HoldAnnotation, "x")), oldDir, lives(live("a")))
	report, _ := Report(o, Decide(o), []dependents.Result{{Action: dependents.Action{Verb: dependents.VerbSuspend, ID: releaseID("a")}, Err: errors.New("no")}})
	if want := "Deployed=False/ApplyFailed Held=True/Hold Ready=False/ApplyFailed Reconciling=True/ProgressingWithRetry"; conditionsOf(report) != want {
		t.Errorf("what failed is not deployed as before: %s", conditionsOf(report))
	}
	if report.Version != "1.0.0" || report.Revision != oldRevision || report.Digest != oldDir.Digest {
		t.Errorf("what was deployed last is still said: %+v", report)
	}
}

func TestReportRefusedAgain(t *testing.T) {
	results := []dependents.Result{{
		Action: dependents.Action{Verb: dependents.VerbWrite, ID: releaseID("a"), Wanted: &dependents.Dependent{}},
		Err:    apierrors.NewInvalid(kinds.HelmReleaseKind, "a", nil),
	}}
	o := observation(layer(), directoriestest.Of(newRevision, directoriestest.HelmRelease("a")))
	first, _ := Report(o, Decide(o), results)
	o.Layer, o.Now = withStatus(o.Layer, first), testNow.Add(time.Hour)
	again, _ := Report(o, Decide(o), results)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same refusal an hour later writes nothing (-want +got):\n%s", diff)
	}
}

func TestReportDeployed(t *testing.T) {
	l := layer(isDeployed(oldDir), annotation(reconcileRequest, "now"), func(l *v1alpha1.AddonsLayer) {
		l.Spec.Version, l.Generation = "2.0.0", 2
		l.Status.LastHandledReconcileAt = "before"
	})
	moved := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	o := observation(l, moved, lives(live("a")))
	report, _ := Report(o, Decide(o), nil)
	want := l.Status.DeepCopy()
	want.Version, want.Revision, want.ObservedGeneration, want.LastHandledReconcileAt = "2.0.0", newRevision, 2, "now"
	want.Attempt = &v1alpha1.Attempt{Version: "2.0.0", Revision: newRevision, Digest: oldDir.Digest, StartTime: metav1.NewTime(testNow.Truncate(time.Second))}
	want.History = []v1alpha1.HistoryEntry{{
		ID: "1", Version: "2.0.0", Revision: newRevision, Digest: oldDir.Digest, Result: v1alpha1.ResultDeployed, Started: want.Attempt.StartTime,
	}}
	for i := range want.Conditions {
		want.Conditions[i].ObservedGeneration, want.Conditions[i].Message = 2, "version 2.0.0 of revision main@sha1:new is deployed: 1 release"
	}
	if diff := cmp.Diff(*want, report); diff != "" {
		t.Errorf("a version and a revision that change nothing are deployed at once; transition times stay (-want +got):\n%s", diff)
	}
	if _, _, got := decide(t, o); got.kstatus != status.CurrentStatus {
		t.Errorf("kstatus says %s", got.kstatus)
	}
	o.Layer, o.Now = withStatus(l, report), testNow.Add(time.Hour)
	again, _ := Report(o, Decide(o), nil)
	if diff := cmp.Diff(report, again); diff != "" {
		t.Errorf("an hour later nothing is written (-want +got):\n%s", diff)
	}
}

func TestReportTransitions(t *testing.T) {
	o := observation(layer(isDeployed(oldDir)), newDir, lives(live("a")))
	report, _ := Report(o, Decide(o), nil)
	ready := meta.FindStatusCondition(report.Conditions, "Ready")
	if ready.Status != metav1.ConditionUnknown || !ready.LastTransitionTime.Equal(&metav1.Time{Time: testNow.Truncate(time.Second)}) {
		t.Errorf("a status that changes has a time of its own: %+v", ready)
	}
	if meta.FindStatusCondition(report.Conditions, "Reconciling") == nil || meta.FindStatusCondition(report.Conditions, "Stalled") != nil {
		t.Errorf("conditions are there that do not belong: %s", conditionsOf(report))
	}
	o.Layer = withStatus(o.Layer, report)
	o.Layer.Status.Conditions = append(o.Layer.Status.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: "X"})
	again, _ := Report(o, Decide(o), nil)
	if meta.FindStatusCondition(again.Conditions, "Stalled") != nil {
		t.Errorf("a condition of before stays behind: %s", conditionsOf(again))
	}
}

func TestReportBoundsMessages(t *testing.T) {
	o := observation(layer(), nil, func(o *Observation) { o.DirectoryError = errors.New(strings.Repeat("ä", 5000)) })
	report, _ := Report(o, Decide(o), nil)
	for _, c := range report.Conditions {
		if len(c.Message) > maxMessage || !strings.HasSuffix(c.Message, "...") || strings.ContainsRune(c.Message, '�') {
			t.Errorf("%s has %d bytes, ending in %q", c.Type, len(c.Message), c.Message[len(c.Message)-8:])
		}
	}
	other := layer(named("mesh"), isDeployed(oldDir), inState(v1alpha1.StateFailed, "False"))
	other.Status.Conditions[0].Message = strings.Repeat("ü", 400)
	if got := placeOf(other) + said(other); len(got) > 350 || strings.ContainsRune(got, '�') {
		t.Errorf("another layer's message is repeated at length: %d bytes", len(got))
	}
}

func TestNeedsRecord(t *testing.T) {
	one := []v1alpha1.Resource{{Kind: "ConfigMap", Name: "a", Status: "Deployed"}}
	two := []v1alpha1.Resource{one[0], {Kind: "Secret", Name: "a"}}
	attempt := func(change func(*v1alpha1.Attempt)) *v1alpha1.Attempt {
		a := &v1alpha1.Attempt{Version: "1", Revision: "r", Digest: "d", StartTime: longAgo}
		if change != nil {
			change(a)
		}
		return a
	}
	with := func(resources []v1alpha1.Resource, a *v1alpha1.Attempt) v1alpha1.AddonsLayerStatus {
		return v1alpha1.AddonsLayerStatus{Resources: resources, Attempt: a}
	}
	cases := map[string]struct {
		reason     string
		last, next v1alpha1.AddonsLayerStatus
		want       bool
	}{
		"same":        {"nothing is new", with(one, attempt(nil)), with(one, attempt(nil)), false},
		"standing":    {"how an object fares can wait", with(one, nil), with([]v1alpha1.Resource{{Kind: "ConfigMap", Name: "a", Status: "x"}}, nil), false},
		"new object":  {"it must be known before it is written", with(one, nil), with(two, nil), true},
		"gone object": {"what is gone can wait", with(two, nil), with(one, nil), false},
		"first":       {"the deadline counts from here", with(one, nil), with(one, attempt(nil)), true},
		"content":     {"another roll-out", with(one, attempt(nil)), with(one, attempt(func(a *v1alpha1.Attempt) { a.Digest = "x" })), true},
		"version":     {"another roll-out", with(one, attempt(nil)), with(one, attempt(func(a *v1alpha1.Attempt) { a.Version = "x" })), true},
		"guard":       {"what is used up must be remembered", with(one, attempt(nil)), with(one, attempt(func(a *v1alpha1.Attempt) { a.Allowed = []string{"Empty"} })), true},
		"revision":    {"the same content", with(one, attempt(nil)), with(one, attempt(func(a *v1alpha1.Attempt) { a.Revision = "x" })), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NeedsRecord(tc.last, tc.next); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestConflictMessage(t *testing.T) {
	var conflicts []dependents.Conflict
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		conflicts = append(conflicts, dependents.Conflict{ID: releaseID(name), Origin: name + ".yaml", With: releaseID(name), Owner: "mesh", OwnerOrigin: "m.yaml"})
	}
	conflicts[0].With = releaseID("x")
	want := []string{
		"HelmRelease default/a of layer base (a.yaml) stands for the same Helm release as HelmRelease default/x, which layer mesh lists (m.yaml)",
		"HelmRelease default/b is listed by layer base (b.yaml) and belongs to layer mesh (m.yaml)",
		"HelmRelease default/c is listed by layer base (c.yaml) and belongs to layer mesh (m.yaml)",
		"HelmRelease default/d is listed by layer base (d.yaml) and belongs to layer mesh (m.yaml)",
		"HelmRelease default/e is listed by layer base (e.yaml) and belongs to layer mesh (m.yaml)",
		"and 2 more",
	}
	if diff := cmp.Diff(want, strings.Split(Observation{Layer: layer(func(*v1alpha1.AddonsLayer) {})}.conflictMessage(conflicts), "; ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a status keeps short is read again in full.
func TestResourcesAreShort(t *testing.T) {
	l := layer(func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Path = "./addons/base/" })
	elsewhere := releaseID("x")
	elsewhere.Namespace = "other"
	entries := []dependents.Entry{
		{ID: releaseID("a"), Origin: "addons/base/sub/a.yaml", DependsOn: []objects.ID{releaseID("b"), elsewhere}},
		{ID: releaseID("b"), Origin: "elsewhere.yaml"},
		{ID: releaseID("c")},
	}
	resources := shortFiles(l, Resources(entries))
	want := []v1alpha1.Resource{{File: "sub/a.yaml", DependsOn: []string{"b", "other/x"}}, {File: "elsewhere.yaml"}, {}}
	for i, r := range resources {
		if diff := cmp.Diff(want[i], v1alpha1.Resource{File: r.File, DependsOn: r.DependsOn}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Name, diff)
		}
	}
	again := longFiles(l, Inventory(resources, nil))
	if again[0].Origin != entries[0].Origin || again[2].Origin != "" {
		t.Errorf("read again, the files are %q and %q", again[0].Origin, again[2].Origin)
	}
	if diff := cmp.Diff(entries[0].DependsOn, again[0].DependsOn); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	old := v1alpha1.Resource{Kind: kinds.ResourceKind(kinds.HelmReleaseKind), Namespace: "default", Name: "a", DependsOn: []string{"default/b"}}
	if on := Inventory([]v1alpha1.Resource{old}, nil)[0].DependsOn; len(on) != 1 || on[0] != releaseID("b") {
		t.Errorf("a full name is read as %v", on)
	}
	if got := directoryOf(layer(func(l *v1alpha1.AddonsLayer) { l.Spec.Source.Path = "./" })); got != "" {
		t.Errorf("the root of a source is %q", got)
	}
}
