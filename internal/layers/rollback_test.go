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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

var (
	// firstDir was deployed, and secondDir changes one release and adds another.
	firstDir  = directoriestest.Of(oldRevision, directoriestest.HelmRelease("a", "interval", "1m"), directoriestest.HelmRelease("b"))
	secondDir = directoriestest.Of(newRevision, directoriestest.HelmRelease("a", "interval", "2m"), directoriestest.HelmRelease("b"), directoriestest.HelmRelease("c"))
)

func withRollback(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = true }

func atVersion(version string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Version = version }
}

func entry(id, version string, dir *directories.Directory, result v1alpha1.DeploymentResult) v1alpha1.HistoryEntry {
	return v1alpha1.HistoryEntry{ID: id, Version: version, Revision: dir.Revision, Digest: dir.Digest, Result: result, Started: longAgo}
}

func withHistory(entries ...v1alpha1.HistoryEntry) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Status.History = entries }
}

// rollsOut gives a layer the status of one that has applied all of a directory,
// since a moment.
func rollsOut(dir *directories.Directory, since time.Duration) layerChange {
	return func(l *v1alpha1.AddonsLayer) {
		was := l.Status.DeepCopy()
		isDeployed(dir)(l)
		l.Status.Version, l.Status.Revision, l.Status.Digest = was.Version, was.Revision, was.Digest
		l.Status.State = v1alpha1.StateApplying
		l.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "Unknown", Reason: "Applying"}}
		l.Status.Attempt.StartTime = metav1.NewTime(testNow.Add(-since).Truncate(time.Second))
	}
}

// failingLayer has deployed firstDir at 1.0.0 and rolls out secondDir at 2.0.0.
func failingLayer(since time.Duration, changes ...layerChange) *v1alpha1.AddonsLayer {
	all := []layerChange{
		withRollback, isDeployed(firstDir), withHistory(entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed)),
		atVersion("2.0.0"), rollsOut(secondDir, since),
	}
	return layer(append(all, changes...)...)
}

func goingBack(l *v1alpha1.AddonsLayer) {
	l.Status.Rollback = &v1alpha1.Rollback{
		To: "4", Version: "2.0.0", Revision: newRevision, Digest: secondDir.Digest, Generation: l.Generation, Message: "it failed",
	}
}

func restored(dir *directories.Directory) func(*Observation) {
	return func(o *Observation) { o.Restored, o.Deployed = dir, dir }
}

// acting is a release that Helm is at work on.
func acting(obj *unstructured.Unstructured) {
	obj.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "Unknown", "reason": "Progressing", "observedGeneration": obj.GetGeneration()},
		map[string]any{"type": "Reconciling", "status": "True", "reason": "Progressing", "observedGeneration": obj.GetGeneration()},
	}}
}

func refusedByServer(l *v1alpha1.AddonsLayer) {
	l.Status.Attempt.Refused = true
	mistaken(l)
}

// mistaken gives a layer the conditions of one whose directory has a mistake.
func mistaken(l *v1alpha1.AddonsLayer) {
	l.Status.State = v1alpha1.StateFailed
	l.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonInvalidManifest, Message: "the API server refuses c"},
		{Type: "Stalled", Status: "True", Reason: v1alpha1.ReasonInvalidManifest},
	}
}

// inTheWay gives a layer the conditions of one of whose objects the live state is in the way.
func inTheWay(l *v1alpha1.AddonsLayer) {
	l.Status.State = v1alpha1.StateFailed
	l.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonConflictsWithLiveState, Message: "field is immutable"},
		{Type: "Reconciling", Status: "True", Reason: v1alpha1.ReasonProgressingWithRetry},
	}
}

const (
	soon = time.Second
	late = time.Hour
)

func TestRollbackBegins(t *testing.T) {
	const fromTo = "goes back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4)"
	for name, tc := range map[string]struct {
		reason  string
		in      Observation
		state   v1alpha1.State
		why     string
		actions string
		message string
		begins  bool
	}{
		"a release has given up": {
			"at once: Flux will not try again",
			observation(failingLayer(soon), secondDir, restored(firstDir), lives(live("a"), live("b"), live("c", gaveUp))),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, "Write a, Mark c", fromTo, true,
		},
		"a release has given up while another is installed": {
			"what is under way will be taken back, too",
			observation(failingLayer(soon), secondDir, restored(firstDir), lives(live("a", acting), live("b"), live("c", gaveUp))),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, "Write a, Mark c", fromTo, true,
		},
		"a release fails": {
			"Flux tries again until the deadline",
			observation(failingLayer(soon), secondDir, restored(firstDir), lives(live("a"), live("b"), live("c", failing))),
			v1alpha1.StateApplying, v1alpha1.ReasonApplying, "", "no such chart", false,
		},
		"a release fails for too long": {
			"the deadline is over and nothing is under way",
			observation(failingLayer(late), secondDir, restored(firstDir), lives(live("a"), live("b"), live("c", failing, seen))),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, "Write a, Mark c", fromTo, true,
		},
		"Helm is at work at the deadline": {
			"a healthy upgrade is never taken back",
			observation(failingLayer(late), secondDir, restored(firstDir), lives(live("a", acting), live("b"), live("c", failing, seen))),
			v1alpha1.StateFailed, v1alpha1.ReasonTimeout, "", "goes back to version 1.0.0 when nothing of the roll-out is under way any more", false,
		},
		"something is to be written at the deadline": {
			"what waited for a long upgrade has yet to get its turn",
			observation(failingLayer(late), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			v1alpha1.StateFailed, v1alpha1.ReasonTimeout, "Write c", "when nothing of the roll-out is under way", false,
		},
		"the API server refuses an object": {
			"to write it again would not help",
			observation(failingLayer(soon, refusedByServer), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, "Write a", fromTo, true,
		},
		"the API server refuses an object while Helm is at work": {
			"it is waited for first",
			observation(failingLayer(soon, refusedByServer), secondDir, restored(firstDir), lives(live("a", acting), live("b"))),
			v1alpha1.StateApplying, v1alpha1.ReasonApplying, "Write c", "HelmRelease default/a is not ready", false,
		},
		"the live state is in the way": {
			"it may change, and the revision goes on then",
			observation(failingLayer(soon, inTheWay), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			v1alpha1.StateApplying, v1alpha1.ReasonApplying, "Write c", "has yet to be applied", false,
		},
		"the live state is in the way for too long": {
			"to write it again has not helped",
			observation(failingLayer(late, inTheWay), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, "Write a", fromTo, true,
		},
		"a mistake between that is taken back": {
			"what the next revision had wrong is not held against this one",
			observation(failingLayer(soon, mistaken), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			v1alpha1.StateApplying, v1alpha1.ReasonApplying, "Write c", "has yet to be applied", false,
		},
		"not asked for": {
			"spec.rollback is false",
			observation(failingLayer(late, func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = false }), secondDir, restored(firstDir), lives(live("a"), live("b"), live("c", gaveUp))),
			v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed, "", "no such chart", false,
		},
		"nothing was deployed": {
			"there is nothing to go back to",
			observation(layer(withRollback, atVersion("2.0.0"), rollsOut(secondDir, soon)), secondDir, lives(live("a"), live("b"), live("c", gaveUp))),
			v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed, "", "no such chart", false,
		},
		"what is deployed fails": {
			"it cannot go back to itself",
			observation(layer(withRollback, isDeployed(firstDir), withHistory(entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed))), firstDir, lives(live("a"), live("b", gaveUp))),
			v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed, "", "no such chart", false,
		},
		"what was deployed cannot be read": {
			"the layer says so and stays as it is",
			observation(failingLayer(soon), secondDir, func(o *Observation) { o.RestoreError = "it is gone" }, lives(live("a"), live("b"), live("c", gaveUp))),
			v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed, "", "cannot go back to version 1.0.0: what it held cannot be read: it is gone", false,
		},
		"a release of the old content had given up": {
			"how it fared before says nothing of the content that it has yet to get",
			observation(failingLayer(soon), secondDir, restored(firstDir), lives(live("a", drifted, gaveUp), live("b"), live("c"))),
			v1alpha1.StateApplying, v1alpha1.ReasonApplying, "Write a", "has yet to be applied", false,
		},
		"another version of what fails already": {
			"its roll-out is recorded before anything is said of it",
			observation(layer(withRollback, isDeployed(firstDir), withHistory(entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed)), atVersion("2.0.0")),
				firstDir, restored(firstDir), lives(live("a"), live("b", gaveUp))),
			v1alpha1.StateFailed, v1alpha1.ReasonReleaseFailed, "", "no such chart", false,
		},
		"held": {
			"nothing is done for a held layer",
			observation(failingLayer(late, annotation(v1alpha1.HoldAnnotation, "no")), secondDir, restored(firstDir), lives(live("a"), live("b"), live("c", gaveUp))),
			v1alpha1.StateHold, v1alpha1.ReasonHold, "", "held: no", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, report, _ := decide(t, tc.in)
			if d.State != tc.state || d.Reason != tc.why || verbs(d.Plan) != tc.actions || !strings.Contains(d.Message, tc.message) || (d.Rollback != nil) != tc.begins {
				t.Fatalf("%s: %s %s, rollback %v, actions %q: %s", tc.reason, d.State, d.Reason, d.Rollback, verbs(d.Plan), d.Message)
			}
			if !tc.begins {
				return
			}
			if !NeedsRecord(tc.in.Layer.Status, report) {
				t.Error("a roll-back is recorded before anything is written")
			}
			if got := report.History[0]; got.ID != "5" || got.Result != v1alpha1.ResultRolledBack || got.Version != "2.0.0" {
				t.Errorf("the history begins with %+v", got)
			}
			if report.Version != "1.0.0" || report.Revision != oldRevision {
				t.Errorf("version %s of %s counts as deployed", report.Version, report.Revision)
			}
		})
	}
}

// seen makes Flux have looked at a release as it is now.
func seen(obj *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, condition := range conditions {
		condition.(map[string]any)["observedGeneration"] = obj.GetGeneration()
	}
	_ = unstructured.SetNestedSlice(obj.Object, conditions, "status", "conditions")
}

func TestRolledBackLayerStaysWhereItIs(t *testing.T) {
	back := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		all := []layerChange{
			withRollback, isDeployed(firstDir),
			withHistory(entry("6", "1.0.0", firstDir, v1alpha1.ResultDeployed), entry("5", "2.0.0", secondDir, v1alpha1.ResultRolledBack), entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed)),
			atVersion("2.0.0"), goingBack,
		}
		return layer(append(all, changes...)...)
	}
	const rolledBack = "Deployed=True/Deployed Ready=False/RolledBack Stalled=True/RolledBack"
	otherDir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a", "interval", "3m"), directoriestest.HelmRelease("b"))
	cases := map[string]struct {
		reason string
		in     Observation
		want   decided
	}{
		"nothing changes": {
			"and nothing is written",
			observation(back(), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			decided{
				v1alpha1.StateDeployed, "", rolledBack, status.FailedStatus,
				"went back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4), because it failed",
			},
		},
		"drift": {
			"what the layer went back to is kept as it is",
			observation(back(), secondDir, restored(firstDir), lives(live("a", drifted), live("b"))),
			decided{
				v1alpha1.StateApplying, "Write a", waitingFor("RollingBack"), status.InProgressStatus,
				"goes back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4): HelmRelease default/a has yet to be applied",
			},
		},
		"another generation": {
			"the author has changed the layer: it is tried again",
			observation(back(func(l *v1alpha1.AddonsLayer) { l.Generation++ }), secondDir, restored(firstDir), lives(live("a"), live("b"))),
			decided{v1alpha1.StateApplying, "Write a, Write c", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied"},
		},
		"another content": {
			"so is a content that has not failed",
			observation(back(), otherDir, restored(firstDir), lives(live("a"), live("b"))),
			decided{v1alpha1.StateApplying, "Write a", waitingFor("Applying"), status.InProgressStatus, "HelmRelease default/a has yet to be applied"},
		},
		"another revision with the same content": {
			"it would fail again",
			observation(back(), &directories.Directory{Revision: "main@sha1:newer", Digest: secondDir.Digest, Manifests: secondDir.Manifests}, restored(firstDir), lives(live("a"), live("b"))),
			decided{
				v1alpha1.StateDeployed, "", rolledBack, status.FailedStatus,
				"went back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4), because it failed",
			},
		},
		"its source is suspended": {
			"a layer that has gone back wants nothing new of it",
			observation(back(), secondDir, restored(firstDir), lives(live("a", drifted), live("b")), source(func(s *Source) {
				s.Suspended, s.Generation, s.ObservedGeneration, s.ArtifactGeneration = true, 2, 2, 1
			})),
			decided{
				v1alpha1.StateApplying, "Write a", waitingFor("RollingBack") + " SourceReady=False/SourceNotReady", status.InProgressStatus,
				"goes back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4): HelmRelease default/a has yet to be applied",
			},
		},
		"what it went back to cannot be read": {
			"it stays where it is, though nothing can repair it",
			observation(back(), secondDir, lives(live("a", drifted), live("b")), func(o *Observation) { o.RestoreError = "gone" }),
			decided{
				v1alpha1.StateDeployed, "", rolledBack, status.FailedStatus,
				"went back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4), because it failed; what it has cannot be read, and is not repaired: gone",
			},
		},
		"its history has lost the entry": {
			"it is where it is all the same",
			observation(back(withHistory()), secondDir, lives(live("a"), live("b"))),
			decided{
				v1alpha1.StateDeployed, "", rolledBack, status.FailedStatus,
				"went back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4), because it failed; what it has cannot be read, and is not repaired: it is not in status.history",
			},
		},
		"its source cannot be fetched": {
			"a layer that went back stays so, and does not fail",
			observation(back(), nil, restored(firstDir), lives(live("a"), live("b")), func(o *Observation) { o.DirectoryError = errors.New("no route to host") }),
			decided{
				v1alpha1.StateDeployed, "", "Deployed=True/Deployed Ready=False/RolledBack SourceReady=False/SourceNotReady Stalled=True/RolledBack", status.FailedStatus,
				"went back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4), because it failed; whether its source holds something else cannot be read",
			},
		},
		"a dependency is missing": {
			"what is deployed needs nothing that the failed specification asks for",
			observation(back(needs("mesh@2")), secondDir, restored(firstDir), lives(live("a", drifted), live("b"))),
			decided{
				v1alpha1.StateApplying, "Write a", waitingFor("RollingBack"), status.InProgressStatus,
				"goes back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4): HelmRelease default/a has yet to be applied",
			},
		},
		"what it goes back to gives up, too": {
			"there is no way further back",
			observation(back(), secondDir, restored(firstDir), lives(live("a"), live("b", gaveUp))),
			decided{
				v1alpha1.StateFailed, "", failedWith("RollbackFailed"), status.InProgressStatus,
				"cannot go back from version 2.0.0 of revision main@sha1:new to version 1.0.0 of revision main@sha1:old (deployment 4): HelmRelease default/b has failed: no such chart (base/b.yaml)",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, got := decide(t, tc.in)
			// The file is named only with a reason of its own.
			got.message = strings.TrimSuffix(got.message, " (base/b.yaml)")
			tc.want.message = strings.TrimSuffix(tc.want.message, " (base/b.yaml)")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(decided{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What the failed revision brought goes as other orphans do, but nothing that
// holds others is deleted, even where its own annotation would allow it; and what
// another layer has got stays there.
func TestRollbackTakesNothingFromOthers(t *testing.T) {
	space := directoriestest.Any("v1", "Namespace", "", "space")
	space.Object.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "enabled"})
	dir := directoriestest.Of(newRevision, append([]directories.Manifest{space}, secondDir.Manifests...)...)
	before := directoriestest.Of(oldRevision, append([]directories.Manifest{directoriestest.HelmRelease("moved"), directoriestest.HelmRelease("listed"), directoriestest.HelmRelease("renamed")}, firstDir.Manifests...)...)
	l := layer(withRollback, isDeployed(before), withHistory(entry("4", "1.0.0", before, v1alpha1.ResultDeployed)), atVersion("2.0.0"), rollsOut(dir, soon))
	namespace := space.Object.DeepCopy()
	namespace.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	namespace.SetUID("uid-space")
	in := observation(l, dir, restored(before), lives(live("a"), live("b"), live("c", gaveUp), live("moved", of("team")), live("listed"), namespace))
	in.Others = dependents.Others{
		Existing: map[string]bool{"team": true},
		Listed: map[objects.ID][]dependents.Claim{
			releaseID("moved"): {{Owner: "team", Origin: "team/moved.yaml", ID: releaseID("moved")}}, releaseID("listed"): {{Owner: "team", Origin: "team/listed.yaml", ID: releaseID("listed")}},
		},
		Exclusive: map[string][]dependents.Claim{"default/renamed": {{Owner: "team", Origin: "team/new.yaml", ID: releaseID("other")}}},
	}
	d := Decide(in)
	if d.Rollback == nil || len(d.Plan.Conflicts) > 0 {
		t.Fatalf("no roll-back: %s %s", d.State, d.Message)
	}
	if got, want := verbs(d.Plan), "Write a, Mark c, Release space"; got != want {
		t.Errorf("actions %q, want %q", got, want)
	}
}

func TestRollbackOnRequest(t *testing.T) {
	asked := func(id string) layerChange { return annotation(v1alpha1.RollbackToAnnotation, id) }
	deployed := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		all := []layerChange{
			atVersion("2.0.0"), isDeployed(secondDir),
			withHistory(entry("6", "2.0.0", secondDir, v1alpha1.ResultDeployed), entry("5", "3.0.0", oldDir, v1alpha1.ResultFailed), entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed)),
		}
		return layer(append(all, changes...)...)
	}
	running := lives(live("a"), live("b"), live("c"))
	for name, tc := range map[string]struct {
		reason  string
		in      Observation
		state   v1alpha1.State
		why     string
		stalled bool
		actions string
		message string
		accept  bool
	}{
		"to what was deployed": {
			"all of it, in one step", observation(deployed(asked("4")), secondDir, restored(firstDir), running),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, false, "Write a, Mark c", "(deployment 4)", true,
		},
		"to what the layer wants": {
			"nothing is to be done, and the annotation goes", observation(deployed(asked("6")), secondDir, running),
			v1alpha1.StateDeployed, v1alpha1.ReasonDeployed, false, "", "is deployed", true,
		},
		"to nothing": {
			"the message says what there is", observation(deployed(asked("99")), secondDir, running),
			v1alpha1.StateDeployed, v1alpha1.ReasonRollbackNotPossible, true, "",
			`annotation kraan.io/rollback-to: cannot go back to deployment "99": there is no such deployment: status.history has 6 (version 2.0.0), 4 (version 1.0.0)`, false,
		},
		"to a failure": {
			"only what was deployed is known to work", observation(deployed(asked("5")), secondDir, running),
			v1alpha1.StateDeployed, v1alpha1.ReasonRollbackNotPossible, true, "", "that deployment of version 3.0.0 is Failed", false,
		},
		"to what cannot be read": {
			"the source may bring it back, or not", observation(deployed(asked("4")), secondDir, running, func(o *Observation) { o.RestoreError = "gone" }),
			v1alpha1.StateDeployed, v1alpha1.ReasonRollbackNotPossible, true, "", "what it held cannot be read: gone", false,
		},
		"out of a dependant's range": {
			"the guard covers the way back", observation(deployed(asked("4")), secondDir, restored(firstDir), running,
				others(Other{Layer: layer(named("apps"), needs("base@>=2"), isDeployed(oldDir))})),
			v1alpha1.StateApplyPending, v1alpha1.ReasonWouldBreakDependants, false, "", "1.0.0 is outside of what its dependants take: apps (base@>=2)", false,
		},
		"out of a dependant's range, allowed": {
			"somebody has said that it may", observation(deployed(asked("4"), annotation(v1alpha1.AllowBreakAnnotation, "true")), secondDir, restored(firstDir), running,
				others(Other{Layer: layer(named("apps"), needs("base@>=2"), isDeployed(oldDir))})),
			v1alpha1.StateApplying, v1alpha1.ReasonRollingBack, false, "Write a, Mark c", "(deployment 4)", true,
		},
		"without a history": {
			"a layer that was never deployed has none", observation(layer(asked("1")), secondDir),
			v1alpha1.StateFailed, v1alpha1.ReasonRollbackNotPossible, true, "", "status.history has none", false,
		},
		"nonsense": {
			"it is no id", observation(deployed(asked("../4 or so")), secondDir, running),
			v1alpha1.StateDeployed, v1alpha1.ReasonRollbackNotPossible, true, "", `cannot go back to deployment "../4 or so"`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			accepted := len(d.ClearAfter) > 0
			if d.State != tc.state || d.Reason != tc.why || d.Stalled != tc.stalled || verbs(d.Plan) != tc.actions || accepted != tc.accept || !strings.Contains(d.Message, tc.message) {
				t.Errorf("%s: %s %s stalled %v accepts %v actions %q: %s", tc.reason, d.State, d.Reason, d.Stalled, accepted, verbs(d.Plan), d.Message)
			}
		})
	}
}

// A request that cannot be met leaves what is deployed to those who depend on it.
func TestRollbackThatIsNotPossibleUndeploysNothing(t *testing.T) {
	l := layer(isDeployed(firstDir), withHistory(entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed)), annotation(v1alpha1.RollbackToAnnotation, "9"))
	_, report, got := decide(t, observation(l, firstDir, lives(live("a"), live("b"))))
	if want := "Deployed=True/Deployed Ready=False/RollbackNotPossible Stalled=True/RollbackNotPossible"; got.conditions != want {
		t.Errorf("conditions %s, want %s", got.conditions, want)
	}
	dependant := layer(named("apps"), needs("base@1.0.0"))
	o := observation(dependant, oldDir, others(Other{Layer: withStatus(l, report)}))
	if lacks := unmet(o, dependencies.Dependency{Name: "base", Version: "1.0.0"}); lacks != nil {
		t.Errorf("a layer that depends on it waits: %+v", lacks)
	}
}

// A version of a kind that is not served matters to the content that is written
// in it, and to no other.
func TestRollbackBetweenVersionsOfAKind(t *testing.T) {
	widget := schema.GroupKind{Group: "example.dev", Kind: "Widget"}
	at := func(version string) directories.Manifest {
		return directoriestest.Any("example.dev/"+version, "Widget", "default", "w")
	}
	before, after := directoriestest.Of(oldRevision, at("v1beta1"), directoriestest.HelmRelease("b")), directoriestest.Of(newRevision, at("v1"), directoriestest.HelmRelease("b"))
	l := layer(withRollback, isDeployed(before), withHistory(entry("4", "1.0.0", before, v1alpha1.ResultDeployed)), atVersion("2.0.0"), rollsOut(after, soon))
	for i := range l.Status.Resources {
		if l.Status.Resources[i].Name == "w" {
			l.Status.Resources[i].Digest = ""
		}
	}
	world := func(unserved string, objs ...*unstructured.Unstructured) Observation {
		return observation(l, after, restored(before), lives(objs...), func(o *Observation) {
			o.Scopes[objects.ServedKind{GroupKind: widget}] = objects.ScopeNamespaced
			o.Unserved = map[objects.ServedVersion]bool{{GroupVersionKind: widget.WithVersion(unserved)}: true}
		})
	}
	if got := verbs(Decide(world("v1beta1", live("b"))).Plan); got != "Write w" {
		t.Errorf("forwards to a version that is served: %q", got)
	}
	back := Decide(world("v1", live("b", gaveUp)))
	if got := verbs(back.Plan); back.Rollback == nil || got != "Write w" {
		t.Errorf("backwards to a version that is served: %q, %s", got, back.Message)
	}
}

// A right that passes, a call that fails: what is Stalled for another reason
// tries that again.
func TestFailureBesideAMistakeIsTriedAgain(t *testing.T) {
	o := observation(layer(isDeployed(firstDir)), nil, lives(live("a", drifted), live("b")), func(o *Observation) {
		o.Deployed = firstDir
		o.DirectoryError = &directories.ContentError{Reason: v1alpha1.ReasonInvalidManifest, Message: "no"}
	})
	d := Decide(o)
	if got := verbs(d.Plan); !d.Stalled || got != "Write a" {
		t.Fatalf("stalled %v, actions %q", d.Stalled, got)
	}
	_, reported := Report(o, d, []dependents.Result{{Action: d.Plan.Actions[0], Err: errors.New("not now")}})
	if reported.Stalled || reported.Retry == nil {
		t.Errorf("stalled %v, retry %v: nothing would look again before the interval", reported.Stalled, reported.Retry)
	}
}

// RestoreID names what a layer may need of the past, and nothing else is read.
func TestRestoreID(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		want   string
	}{
		"new":                    {"there is no past", layer(withRollback), ""},
		"settled":                {"nothing can fail", layer(withRollback, isDeployed(firstDir), withHistory(entry("4", "1.0.0", firstDir, v1alpha1.ResultDeployed))), ""},
		"rolling out":            {"it may have to go back", failingLayer(soon), "4"},
		"rolling out without it": {"it will not go back", failingLayer(soon, func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = false }), ""},
		"went back":              {"it is kept there", failingLayer(soon, goingBack), "4"},
		"asked":                  {"what was asked for", failingLayer(soon, goingBack, annotation(v1alpha1.RollbackToAnnotation, "2")), "2"},
		"deleted":                {"nothing is restored", failingLayer(soon, goingBack, deleted), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RestoreID(tc.layer); got != tc.want {
				t.Errorf("RestoreID is %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}
