// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health is how an object fares, from best to worst.
type Health int

// The healths. The worst one wins when they are put together.
const (
	// Ready is as it should be.
	Ready Health = iota
	// Ignored neither blocks nor counts: it is suspended, or on its way to
	// another owner.
	Ignored
	// Progressing is on its way.
	Progressing
	// Blocked waits for something else.
	Blocked
	// Unknown cannot be told.
	Unknown
	// Failed does not get on by itself.
	Failed
)

// Standing is where one object stands.
type Standing struct {
	ID ID
	// Health of the object.
	Health Health
	// Status in one word, as the inventory shows it.
	Status string
	// Reason is a condition reason where there is a special one.
	Reason string
	// Message says what is being waited for, or what went wrong.
	Message string
	// Said is what the object says of itself; empty where it says nothing.
	Said string
	// WaitsFor is the object that this one waits for; zero where there is none.
	WaitsFor ID
	// Until is when it goes on by itself; zero where that is not known.
	Until time.Time
	// Origin is the file that lists the object.
	Origin string
	// Unwanted is true for an object that is to go.
	Unwanted bool
	// Current is true when the object is as it was last wanted: Health speaks
	// of that content.
	Current bool
}

// AssessObject says how a live object fares, by itself.
func AssessObject(how Assess, live *unstructured.Unstructured) Standing {
	switch how {
	case AssessExistence:
		return Standing{Health: Ready, Status: StatusReady}
	case AssessCondition:
		return assessCondition(live)
	default:
		return assessStatus(live)
	}
}

// IsSuspended tells whether a live object has spec.suspend set.
func IsSuspended(live *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend")
	return suspended
}

// assessCondition reads the conditions of Flux's kinds. Ready counts only at
// the object's own generation, which kstatus does not ask of an object without
// status.
func assessCondition(live *unstructured.Unstructured) Standing {
	if IsSuspended(live) {
		return Standing{Health: Ignored, Status: StatusSuspended, Message: "is suspended"}
	}
	ready, found := ConditionOf(live, "Ready")
	stalled, _ := ConditionOf(live, "Stalled")
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	current := observed == live.GetGeneration()
	switch {
	case !found:
		return Standing{Health: Progressing, Status: StatusMissing, Message: "has no Ready condition yet"}
	case current && ready.Status == "True" && olderChart(live) != "":
		return Standing{Health: Progressing, Status: StatusProgress, Message: "is Ready with " + olderChart(live)}
	case current && ready.Status == "True":
		return Standing{Health: Ready, Status: StatusReady}
	case current && stalled.Status == "True":
		return Standing{
			Health:  Failed,
			Status:  cmp.Or(ready.Reason, StatusFailed),
			Message: Told("has failed", cmp.Or(ready.Message, stalled.Message)),
			Said:    cmp.Or(ready.Message, stalled.Message),
		}
	case !current && ready.Status == "True":
		return Standing{Health: Progressing, Status: StatusProgress, Message: "is Ready at an older generation"}
	default:
		return Standing{Health: Progressing, Status: cmp.Or(ready.Reason, StatusProgress), Message: Told("is not ready", ready.Message), Said: ready.Message}
	}
}

// exactVersion is a version that names one chart, and not a range of them.
var exactVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// olderChart says which chart a HelmRelease is Ready with that asks for another
// version of it; empty where it is the one that it asks for, or that cannot be
// told. Its generation says what it asks for; which chart Flux had at hand then,
// only this does. A chart of a git repository or bucket has no version to ask for.
func olderChart(live *unstructured.Unstructured) string {
	wanted, _, _ := unstructured.NestedString(live.Object, "spec", "chart", "spec", "version")
	kind, _, _ := unstructured.NestedString(live.Object, "spec", "chart", "spec", "sourceRef", "kind")
	attempted, _, _ := unstructured.NestedString(live.Object, "status", "lastAttemptedRevision")
	if kind != "HelmRepository" || attempted == "" || !exactVersion.MatchString(wanted) {
		return ""
	}
	want, errWant := semver.NewVersion(wanted)
	is, errIs := semver.NewVersion(attempted)
	if errWant != nil || errIs != nil || is.Equal(want) {
		return ""
	}
	return fmt.Sprintf("version %s of its chart and is to have %s", attempted, wanted)
}

// IsActing tells whether Flux acts on a release, or has yet to look at it as it
// is now. While it fetches a chart a release is Reconciling, too, and not Ready
// when that fails. It is not Ready either while Helm goes back by itself, which
// only the message tells apart. Conditions are written before the generation
// that was observed, and that is not written at all while Flux tries again.
func IsActing(live *unstructured.Unstructured) bool {
	ready, known := ConditionOf(live, "Ready")
	reconciling, _ := ConditionOf(live, "Reconciling")
	if !known || ready.Generation < live.GetGeneration() {
		return true
	}
	isReconciling := reconciling.Status == "True" && reconciling.Reason == "Progressing"
	if ready.Status == "False" {
		return RunsAction(reconciling)
	}
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return isReconciling || observed < live.GetGeneration()
}

// RunsAction tells whether Flux runs an action of Helm, by the condition
// Reconciling of a release.
func RunsAction(reconciling Condition) bool {
	return reconciling.Status == "True" && reconciling.Reason == "Progressing" && strings.HasPrefix(reconciling.Message, "Running '")
}

// Condition is a condition as an object has it. Generation is 0 where it does not
// say which one it speaks of, and Since is zero where it does not say since when.
type Condition struct {
	Status, Reason, Message string
	Generation              int64
	Since                   time.Time
}

// ConditionOf returns the condition of an object that has a type such as Ready; false
// where there is none.
func ConditionOf(obj *unstructured.Unstructured, kind string) (Condition, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, item := range conditions {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		text := func(key string) string { value, _ := fields[key].(string); return value }
		generation, _, _ := unstructured.NestedInt64(fields, "observedGeneration")
		since, _ := time.Parse(time.RFC3339, text("lastTransitionTime")) // zero where it is no time
		return Condition{Status: text("status"), Reason: text("reason"), Message: text("message"), Generation: generation, Since: since}, true
	}
	return Condition{}, false
}

func assessStatus(live *unstructured.Unstructured) Standing {
	result, err := status.Compute(live)
	if err != nil {
		return Standing{Health: Unknown, Status: StatusProgress, Message: err.Error()}
	}
	if result.Status != status.FailedStatus && result.Status != status.TerminatingStatus && IsSuspended(live) && isRunning(live) {
		return Standing{Health: Ignored, Status: StatusSuspended, Message: "is suspended"}
	}
	// kstatus reads the generation of the status and not that of a condition.
	ready, _ := ConditionOf(live, "Ready")
	switch result.Status {
	case status.CurrentStatus:
		if ready.Generation != 0 && ready.Generation < live.GetGeneration() {
			return Standing{Health: Progressing, Status: StatusProgress, Message: "is Ready at an older generation"}
		}
		if isRunning(live) {
			return Standing{Health: Progressing, Status: StatusProgress, Message: Told("has not ended", result.Message), Said: result.Message}
		}
		return Standing{Health: Ready, Status: StatusReady}
	case status.FailedStatus:
		return Standing{Health: Failed, Status: StatusFailed, Message: Told("has failed", result.Message), Said: result.Message}
	default:
		return Standing{Health: Progressing, Status: StatusProgress, Message: Told("is not ready", result.Message), Said: result.Message}
	}
}

// isRunning tells whether a live object is a Job that has not completed: kstatus takes
// one for ready as soon as it has begun.
func isRunning(live *unstructured.Unstructured) bool {
	return IsJobKind(live.GroupVersionKind().GroupKind()) && !hasCompleted(live)
}

func hasCompleted(live *unstructured.Unstructured) bool {
	complete, _ := ConditionOf(live, "Complete")
	return complete.Status == "True"
}

// GoesWhenDone tells whether a live object has done its work, and goes for that: a Job
// that has completed and has a ttlSecondsAfterFinished.
func GoesWhenDone(live *unstructured.Unstructured) bool {
	ttl, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished")
	return ttl != nil && IsJobKind(live.GroupVersionKind().GroupKind()) && hasCompleted(live)
}

// Told makes a sentence's end of what an object says of itself.
func Told(verdict, message string) string {
	if message == "" {
		return verdict
	}
	return verdict + ": " + message
}

// Worst returns the standing that decides for all: the one with the worst
// health and, among equals, the one with the smallest ID. The order of the
// standings does not matter. It returns false where there are none.
func Worst(standings []Standing) (Standing, bool) {
	var worst Standing
	found := false
	for _, standing := range standings {
		if !found || Compare(standing, worst) < 0 {
			worst, found = standing, true
		}
	}
	return worst, found
}

// Compare orders standings, the worst first.
func Compare(a, b Standing) int {
	return cmp.Or(cmp.Compare(b.Health, a.Health), a.ID.Compare(b.ID))
}

// Assess says how to tell whether an object is ready.
type Assess string

const (
	// AssessStatus asks kstatus. It is the zero value's meaning.
	AssessStatus Assess = "Status"
	// AssessCondition wants the condition Ready at the object's own
	// generation: a missing condition is not ready, and a suspended object
	// neither blocks nor counts. It is the rule of Flux's kinds.
	AssessCondition Assess = "Condition"
	// AssessExistence is content with an object that exists.
	AssessExistence Assess = "Existence"
)

// Words for Entry.Status. Besides them, the reason of an object's own Ready
// condition is used.
const (
	StatusReady      = "Deployed"
	StatusMissing    = "NotDeployed"
	StatusSuspended  = "Suspended"
	StatusOrphaned   = "Orphaned"
	StatusSuperseded = "Superseded"
	StatusDeleting   = "Deleting"
	StatusNotServed  = "KindNotServed"
	StatusProgress   = "InProgress"
	StatusFailed     = "Failed"
	StatusKept       = "Kept"
	// StatusWaitsForConsumer is that of a claim for a volume that is made when a Pod
	// wants it.
	StatusWaitsForConsumer = "WaitsForFirstConsumer"
)
