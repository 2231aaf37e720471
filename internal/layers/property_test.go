// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

func chance(t *rapid.T, percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(t, what) >= 100-percent
}

var allStates = []v1alpha1.State{
	v1alpha1.StateDeployed, v1alpha1.StateApplying, v1alpha1.StatePruning, v1alpha1.StateFailed, v1alpha1.StateHold,
	v1alpha1.StateApplyPending, v1alpha1.StateK8sVersion, v1alpha1.StatePending, "",
}

// drawLayer returns a layer in any state, with a status of any kind.
func drawLayer(t *rapid.T, deployedDir *directories.Directory) *v1alpha1.AddonsLayer {
	l := layer()
	if deployedDir != nil {
		isDeployed(deployedDir)(l)
		if state := rapid.SampledFrom(allStates).Draw(t, "state"); state != v1alpha1.StateDeployed {
			inState(state, "Unknown")(l)
		}
	}
	for i := range l.Status.Resources {
		if chance(t, 20, "orphaned") {
			l.Status.Resources[i].Status = objects.StatusOrphaned
			l.Status.Resources[i].LastTransitionTime = metav1.NewTime(longAgo.Time)
		}
	}
	l.Spec.Hold = chance(t, 10, "hold")
	l.Spec.Version = rapid.SampledFrom([]string{"1.0.0", "1.0.0", "2.0.0"}).Draw(t, "version")
	l.Spec.Prereqs.K8sVersion = rapid.SampledFrom([]string{"", "1.16", "v99.0", "latest"}).Draw(t, "k8s")
	l.Spec.Prereqs.DependsOn = rapid.SampledFrom([][]string{nil, nil, {"mesh@1.0.0"}, {"mesh@"}, {"nothing"}, {"mesh@^1"}, {"base"}}).Draw(t, "dependsOn")
	for _, option := range []struct{ key, value string }{
		{v1alpha1.HoldAnnotation, "freeze"},
		{v1alpha1.HoldUntilAnnotation, "2026-12-01T08:00:00Z"},
		{v1alpha1.HoldReleasesAnnotation, "true"},
		{v1alpha1.AllowEmptyAnnotation, "next"},
		{v1alpha1.AllowPruneAnnotation, newRevision},
		{v1alpha1.ForceDeleteAnnotation, "true"},
		{reconcileRequest, "x"},
	} {
		if chance(t, 15, option.key) {
			annotation(option.key, option.value)(l)
		}
	}
	if chance(t, 15, "changed") {
		l.Generation++
	}
	if chance(t, 10, "deleted") {
		deleted(l)
	}
	return l
}

func drawDirectory(t *rapid.T, revision, what string) *directories.Directory {
	var manifests []directories.Manifest
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if chance(t, 60, what+" has "+name) {
			manifests = append(manifests, directoriestest.HelmRelease(name, "chart", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "chart")))
		}
	}
	return directoriestest.Of(revision, manifests...)
}

func drawObservation(t *rapid.T) Observation {
	var deployedDir *directories.Directory
	if chance(t, 75, "deployed before") {
		deployedDir = drawDirectory(t, oldRevision, "deployed")
	}
	dir := drawDirectory(t, newRevision, "directory")
	if deployedDir != nil && chance(t, 30, "same directory") {
		dir = deployedDir
	}
	o := observation(drawLayer(t, deployedDir), dir)
	if chance(t, 80, "still known") {
		o.Deployed = deployedDir
	}
	drawTrouble(t, &o)
	if chance(t, 30, "dependant") {
		dependant := layer(named("apps"), isDeployed(oldDir), needs(rapid.SampledFrom([]string{"base@^1", "base@>=1", "base@1.0.0"}).Draw(t, "range")))
		o.Layers["apps"] = Other{Layer: dependant}
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if !chance(t, 70, "live "+name) {
			continue
		}
		obj := live(name)
		for _, change := range []func(*unstructured.Unstructured){drifted, failing, gaveUp, marked, suspendedByHand, of("mesh"), of("")} {
			if chance(t, 12, "change") {
				change(obj)
			}
		}
		o.Live[objects.IDOf(obj)] = obj
		o.Stale[objects.IDOf(obj)] = chance(t, 8, "stale")
	}
	return o
}

// drawTrouble draws what may be wrong around a layer.
func drawTrouble(t *rapid.T, o *Observation) {
	switch rapid.IntRange(0, 9).Draw(t, "trouble") {
	case 0:
		o.Source, o.Directory = nil, nil
	case 1:
		o.Source.Generation, o.Directory = 2, nil
	case 2:
		o.Directory, o.DirectoryError = nil, errors.New("connection refused")
	case 3:
		o.Directory, o.DirectoryError = nil, &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, Message: "is no YAML"}
	case 4:
		o.Source.Ready, o.Source.Message = false, "git is away"
	case 5:
		o.KindError = errors.New("forbidden")
	}
	if chance(t, 60, "mesh") {
		mesh := layer(named("mesh"), isDeployed(oldDir))
		if chance(t, 30, "mesh is not deployed") {
			inState(v1alpha1.StateFailed, "False")(mesh)
		}
		o.Layers["mesh"] = Other{Layer: mesh, SameSource: true, Digest: rapid.SampledFrom([]string{oldDir.Digest, "newer", ""}).Draw(t, "mesh has")}
	}
	o.Others.Existing = map[string]bool{"mesh": chance(t, 70, "mesh exists")}
	if chance(t, 30, "claimed") {
		o.Others.Listed = map[objects.ID][]dependents.Claim{releaseID("b"): {{Owner: "mesh", Origin: "mesh/b.yaml", ID: releaseID("b")}}}
	}
}

func TestDecideIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		before := o.Layer.DeepCopy()
		decision := Decide(o)
		report, _ := Report(o, decision, nil)
		if diff := cmp.Diff(decision, Decide(o), cmpopts.EquateErrors(), cmp.AllowUnexported(Decision{})); diff != "" {
			t.Fatalf("decided twice:\n%s", diff)
		}
		if diff := cmp.Diff(before, o.Layer); diff != "" {
			t.Fatalf("the layer that was seen is changed:\n%s", diff)
		}
		again, _ := Report(o, decision, nil)
		if diff := cmp.Diff(report, again); diff != "" {
			t.Fatalf("reported twice:\n%s", diff)
		}
	})
}

// TestClosedGates says what a layer may not do that is not rolling out.
func TestClosedGates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		d := Decide(o)
		if !d.Until.IsZero() && !d.Until.After(o.Now) {
			t.Errorf("the next look is not in the future: %v", d.Until)
		}
		applied := map[objects.ID]string{}
		for _, entry := range Inventory(o.Layer.Status.Resources, nil) {
			applied[entry.ID] = entry.Digest
		}
		waits := d.State == v1alpha1.StatePending || d.State == v1alpha1.StateK8sVersion || d.State == v1alpha1.StateApplyPending ||
			d.Stalled || d.Retry != nil || isDeleting(o.Layer)
		for _, action := range d.Plan.Actions {
			held := d.State == v1alpha1.StateHold || d.Hold.Active
			if held && action.Verb != dependents.VerbSuspend {
				t.Errorf("%s %s under hold", action.Verb, action.ID)
			}
			if action.Verb == dependents.VerbWrite && waits && action.Wanted.Digest != applied[action.ID] {
				t.Errorf("%s is written anew in state %s (%s)", action.ID, d.State, d.Reason)
			}
			removal := action.Verb == dependents.VerbMark || action.Verb == dependents.VerbDelete || action.Verb == dependents.VerbRelease
			if removal && !isDeleting(o.Layer) && (o.Directory == nil || d.Stalled || d.State == v1alpha1.StateK8sVersion ||
				d.Reason == v1alpha1.ReasonWouldBreakDependants) {
				t.Errorf("%s %s in state %s (%s)", action.Verb, action.ID, d.State, d.Reason)
			}
		}
		if d.Finalized && len(d.Plan.Inventory) > 0 {
			t.Error("a layer goes before its objects")
		}
	})
}

// TestReportIsIdempotent reports again and again what has not changed, but for
// the time.
func TestReportIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		first, _ := Report(o, Decide(o), nil)
		o.Layer = withStatus(o.Layer, first)
		second, _ := Report(o, Decide(o), nil)
		o.Layer = withStatus(o.Layer, second)
		if due := Decide(o); len(due.Plan.Of(dependents.VerbMark)) == 0 && (due.Until.IsZero() || due.Until.After(o.Now.Add(5*time.Second))) {
			o.Now = o.Now.Add(5 * time.Second)
		}
		third, _ := Report(o, Decide(o), nil)
		if diff := cmp.Diff(second, third); diff != "" {
			t.Fatalf("a status is written although nothing has changed (-last +next):\n%s", diff)
		}
	})
}

// TestReportConditions compares every status with the table of states.
func TestReportConditions(t *testing.T) {
	type row struct {
		ready, reconciling, stalled string
		kstatus                     status.Status
	}
	const none = ""
	rows := map[v1alpha1.State]row{
		v1alpha1.StatePending:      {"Unknown", "True", none, status.InProgressStatus},
		v1alpha1.StateApplyPending: {"Unknown", "True", none, status.InProgressStatus},
		v1alpha1.StatePruning:      {"Unknown", "True", none, status.InProgressStatus},
		v1alpha1.StateApplying:     {"Unknown", "True", none, status.InProgressStatus},
		v1alpha1.StateK8sVersion:   {"Unknown", "True", none, status.InProgressStatus},
		v1alpha1.StateHold:         {"Unknown", none, none, status.InProgressStatus},
		v1alpha1.StateDeployed:     {"True", none, none, status.CurrentStatus},
		v1alpha1.StateFailed:       {"False", "True", none, status.InProgressStatus},
	}
	rapid.Check(t, func(t *rapid.T) {
		o := drawObservation(t)
		report, d := Report(o, Decide(o), nil)
		want := rows[report.State]
		if d.Stalled {
			want = row{"False", none, "True", status.FailedStatus}
		}
		if isDeleting(o.Layer) {
			want.kstatus = status.TerminatingStatus
		}
		got := row{kstatus: kstatusOf(t, o.Layer, report)}
		for _, c := range report.Conditions {
			if c.Reason == "" || c.ObservedGeneration != o.Layer.Generation || c.LastTransitionTime.IsZero() {
				t.Errorf("%s is not complete: %+v", c.Type, c)
			}
			for kind, field := range map[string]*string{"Ready": &got.ready, "Reconciling": &got.reconciling, "Stalled": &got.stalled} {
				if c.Type == kind {
					*field = string(c.Status)
				}
			}
		}
		if got != want {
			t.Errorf("%s (stalled: %v): want %+v, got %+v", report.State, d.Stalled, want, got)
		}
		if deployedNow := fmt.Sprint(report.Version, report.Digest); report.State != v1alpha1.StateDeployed && deployedNow != fmt.Sprint(o.Layer.Status.Version, o.Layer.Status.Digest) {
			t.Errorf("%s is said to have deployed %s", report.State, deployedNow)
		}
	})
}
