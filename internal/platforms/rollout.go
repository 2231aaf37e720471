// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/rollout"
)

// rollOut begins the moves that may begin now. Where it is not understood when and
// where clusters may be moved, none is.
func (d *decider) rollOut() {
	input, ok := d.rolloutInput()
	if !ok || d.target == "" || d.stagesInputs() && d.given.problem+d.given.waits != "" {
		return
	}
	d.plan = rollout.Plan(input)
	d.until(d.plan.Until)
	if d.Platform.Spec.Hold {
		return
	}
	by := map[string]*member{}
	for _, m := range d.members {
		by[m.name()] = m
	}
	for _, move := range slices.Concat(d.plan.Moves, d.plan.Back) {
		d.begin(by[move.Cluster], move.To)
	}
}

// rolloutInput puts together what the rules of roll-outs decide from.
func (d *decider) rolloutInput() (rollout.Input, bool) {
	spec := d.Platform.Spec
	in := rollout.Input{
		Now: d.Now, UID: string(d.Platform.UID), Target: d.goal(), Since: d.Now, Windows: windowsOf(spec.Upgrade),
		OnFailure: rollout.OnFailure(spec.Rollout.OnFailure), Approved: approvedOf(d.Platform),
	}
	if spec.Upgrade.Spread != nil {
		in.Spread = spec.Upgrade.Spread.Duration
	}
	if last := d.Platform.Status.Rollout; last != nil && last.Target == d.goal() {
		in.Since = last.Since.Time
		in.Progress = rollout.Progress{Target: last.Target, Passed: d.passed(last.Passed), RolledBack: last.RolledBack}
	}
	ok := true
	wrong := func(field string, err error) {
		ok = false
		d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.%s%v", field, err))
	}
	for _, err := range rollout.Validate(in.Windows) {
		// It never opens. What waits for no window is not kept from being installed.
		d.stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.upgrade.%v", err))
	}
	var selectors []labels.Selector
	for i, stage := range spec.Rollout.Stages {
		selector, err := metav1.LabelSelectorAsSelector(&stage.Selector)
		if err != nil {
			wrong(fmt.Sprintf("rollout.stages[%d].selector: ", i), err)
			selector = labels.Nothing()
		}
		selectors = append(selectors, selector)
		from := stageFrom(stage)
		from.Asks = d.asks(stage)
		in.Stages = append(in.Stages, from)
	}
	in.MaxUnavailable = spec.Rollout.MaxUnavailable
	if errs := rollout.ValidateStages([]rollout.Stage{{Name: "rest", MaxUnavailable: in.MaxUnavailable}}); len(errs) > 0 {
		wrong("rollout.maxUnavailable: ", fmt.Errorf("%q is neither a number of at least 1 nor a percentage such as 25%%", in.MaxUnavailable.String()))
	}
	for _, err := range rollout.ValidateStages(in.Stages) {
		wrong("rollout.", err)
	}
	for _, m := range d.members {
		m.stage = stageOf(d.Observation, selectors, m.target)
		in.Clusters = append(in.Clusters, d.inRollout(m))
	}
	return in, ok
}

// inRollout returns a cluster as the rules of roll-outs see it.
func (d *decider) inRollout(m *member) rollout.Cluster {
	c := rollout.Cluster{
		Name: m.name(), Stage: m.stage, Current: m.current, Next: m.next, Problem: m.stuck, Unfit: m.unfit, Moving: m.moving,
		Condition: m.Condition, Message: m.message, Reached: m.reached,
	}
	if m.record.target == d.goal() {
		c.Before = m.before
	}
	d.stage(m, &c)
	if m.forward {
		c.Condition = rollout.Ready
	}
	return c
}

func windowsOf(spec v1alpha1.UpgradeSpec) []rollout.Window {
	var windows []rollout.Window
	for _, w := range spec.MaintenanceWindows {
		window := rollout.Window{Start: w.Start, Duration: w.Duration.Duration, TimeZone: w.TimeZone}
		for _, day := range w.Days {
			window.Days = append(window.Days, string(day))
		}
		windows = append(windows, window)
	}
	return windows
}

func stageFrom(spec v1alpha1.RolloutStage) rollout.Stage {
	stage := rollout.Stage{Name: spec.Name, MaxUnavailable: spec.MaxUnavailable, MaxFailures: spec.MaxFailures, Approval: spec.Approval}
	if spec.Soak != nil {
		stage.Soak = spec.Soak.Duration
	}
	return stage
}

// selectorOf identifies the selector of a stage of this very platform, short enough to be
// typed. An approval of before is for another one after the selector has changed, and after
// the platform was restored from a backup.
func selectorOf(platform *v1alpha1.Platform, stage v1alpha1.RolloutStage) string {
	text, err := json.Marshal(stage.Selector)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(platform.UID+"\n"), text...))
	return hex.EncodeToString(sum[:4])
}

// asks returns what approves a stage for the version that is rolled out: STAGE@VERSION, and
// with its selector where that was approved for another one.
func (d *decider) asks(stage v1alpha1.RolloutStage) string {
	value, selector := rollout.ApprovalFor(stage.Name, d.goal()), selectorOf(d.Platform, stage)
	for _, seen := range d.Platform.Status.Approvals {
		if seen.Approval == value && seen.Selector != "" && seen.Selector != selector {
			return value + "#" + selector
		}
	}
	return value
}

// passed returns the stages that are over: those that were, but for such whose approval was
// for another selector.
func (d *decider) passed(last []string) []string {
	return slices.DeleteFunc(slices.Clone(last), func(name string) bool {
		return slices.ContainsFunc(d.Platform.Spec.Rollout.Stages, func(stage v1alpha1.RolloutStage) bool {
			ask := d.asks(stage)
			return stage.Name == name && stage.Approval && ask != rollout.ApprovalFor(name, d.goal()) && !approvedOf(d.Platform)[ask]
		})
	})
}

// sayingsOf reads an annotation that says something of approvals: of each by its value, as a
// JSON object, or one thing of all that are new.
func sayingsOf(text string) func(approval string) string {
	each := map[string]string{}
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &each) == nil {
		return func(approval string) string { return each[approval] }
	}
	return func(string) string { return text }
}

// approvedOf returns what somebody has approved.
func approvedOf(platform *v1alpha1.Platform) map[string]bool {
	approved := map[string]bool{}
	for _, one := range strings.Split(platform.Annotations[v1alpha1.ApproveAnnotation], ",") {
		if one = strings.TrimSpace(one); one != "" {
			approved[one] = true
		}
	}
	return approved
}

// progress notes how far the roll-out has come. The beginning of one, and that one
// was taken back, must not be forgotten by who acts on it.
func (d *decider) progress() {
	d.approvals()
	status, last := &d.decision.Status, d.Platform.Status.Rollout
	if d.target == "" || d.plan.Progress.Target == "" {
		status.Rollout = last
		return
	}
	next := &v1alpha1.RolloutProgress{
		Target: d.goal(), Since: metav1.NewTime(d.Now.UTC().Truncate(time.Second)),
		Passed: d.plan.Progress.Passed, RolledBack: d.plan.Progress.RolledBack,
	}
	same := last != nil && last.Target == next.Target
	if same {
		next.Since = last.Since
	}
	status.Rollout = next
	d.decision.StatusFirst = d.decision.StatusFirst || !same || last.RolledBack != next.RolledBack
	for _, stage := range d.plan.Stages {
		status.Stages = append(status.Stages, d.waiting(stage, v1alpha1.StageStatus{
			Name: stage.Name, State: d.stateOf(stage), Total: number(stage.Total), Updated: number(stage.Updated), Moving: number(stage.Moving),
			Waiting: number(stage.Waiting), Failed: number(stage.Failed), Unhealthy: number(stage.Unhealthy), Stuck: number(stage.Stuck),
			Unreachable: number(stage.Unreachable), Unfit: number(stage.Unfit),
		}))
	}
	if !d.plan.Until.IsZero() {
		// Rounded up: a moment before it is none.
		next := metav1.NewTime(d.plan.Until.UTC().Add(time.Second - 1).Truncate(time.Second))
		status.NextChange = &next
	}
}

// mostApprovals bounds how many approvals a status remembers.
const mostApprovals = 40

// approvals remembers which stages of the roll-out are approved, and who says to have done
// that, the last first.
func (d *decider) approvals() {
	status, approved := &d.decision.Status, approvedOf(d.Platform)
	status.Approvals = slices.Clone(d.Platform.Status.Approvals)
	if d.target == "" {
		return
	}
	by, reason := sayingsOf(d.Platform.Annotations[v1alpha1.ApprovedByAnnotation]), sayingsOf(d.Platform.Annotations[v1alpha1.ApproveReasonAnnotation])
	for _, stage := range d.Platform.Spec.Rollout.Stages {
		value, selector := d.asks(stage), selectorOf(d.Platform, stage)
		at := slices.IndexFunc(status.Approvals, func(a v1alpha1.StageApproval) bool { return a.Approval == value })
		switch {
		case !stage.Approval || !approved[value] || at >= 0 && status.Approvals[at].Selector != "":
			continue
		case at >= 0: // it was seen before anything was said of selectors
			status.Approvals[at].Selector = selector
		default:
			status.Approvals = slices.Insert(status.Approvals, 0, v1alpha1.StageApproval{
				Approval: value, Selector: selector, By: cut(by(value), maxLabel), Reason: cut(reason(value), maxReason),
				Seen: metav1.NewTime(d.Now.UTC().Truncate(time.Second)),
			})
		}
		d.decision.StatusFirst = true // what it covers is noted before anything follows from it
	}
	status.Approvals = status.Approvals[:min(len(status.Approvals), mostApprovals)]
}

// waiting notes that the stage at work waits for somebody's approval, and since when.
func (d *decider) waiting(stage rollout.StageProgress, said v1alpha1.StageStatus) v1alpha1.StageStatus {
	if stage.Approval == "" || stage.Name != d.plan.Stage {
		return said
	}
	since := metav1.NewTime(d.Now.UTC().Truncate(time.Second))
	for _, last := range d.Platform.Status.Stages {
		if last.Approval == stage.Approval && last.WaitingSince != nil && last.WaitingSince.Before(&since) {
			since = *last.WaitingSince
		}
	}
	said.Approval, said.WaitingSince = stage.Approval, &since
	return said
}

func number(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }

// stateOf says in a word where a stage stands.
func (d *decider) stateOf(stage rollout.StageProgress) string {
	switch {
	case stage.Name == cmp.Or(d.plan.Progress.RolledBack, d.plan.Halted):
		return "Halted"
	case stage.Done:
		return "Done"
	case stage.Name == d.plan.Stage:
		return "Active"
	}
	return "Waiting"
}
