// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview turns a forecast into what people read before they merge: which
// layer does what to which release, in which order, and what waits or is refused. It
// reads nothing.
package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Verb is what would be done to an object, or becomes of a layer.
type Verb string

// The verbs of objects.
const (
	// Install, Upgrade, Downgrade and Change are for HelmReleases: Change is of
	// something else than the version of the chart.
	Install   Verb = "install"
	Upgrade   Verb = "upgrade"
	Downgrade Verb = "downgrade"
	Change    Verb = "change"
	// Reinstall is for HelmReleases that Flux uninstalls and installs anew.
	Reinstall Verb = "reinstall"
	// Create and Update are for all other objects.
	Create Verb = "create"
	Update Verb = "update"
	// Adopt makes a layer the owner of what is there, and changes nothing else.
	Adopt Verb = "adopt"
	// Correct undoes what somebody else has changed.
	Correct Verb = "correct"
	// Prune deletes what is no longer listed; Orphan marks it, and it is pruned
	// later than the plan reaches.
	Prune  Verb = "prune"
	Orphan Verb = "orphan"
	// Release leaves what is no longer listed, without an owner.
	Release Verb = "release"
	Suspend Verb = "suspend"
	Resume  Verb = "resume"
	// Supersede suspends a release that another one takes the place of.
	Supersede Verb = "supersede"
)

// The verbs of layers that do not get to be deployed.
const (
	Wait   Verb = "wait"
	Held   Verb = "held"
	Refuse Verb = "refuse"
	Fail   Verb = "fail"
)

// Object names an object.
type Object struct {
	Cluster   string `json:"cluster,omitempty"`
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func objectOf(id objects.ID) Object { return Object(id) }

// String returns the object as messages show it.
func (o Object) String() string { return objects.ID(o).String() }

// Field is one field that changes. Values of Secrets are not shown.
type Field struct {
	Path string `json:"path"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
	// Default is true where git does not say To: the API server fills it in.
	Default bool `json:"default,omitempty"`
}

// ObjectChange is what becomes of one object that a release renders.
type ObjectChange struct {
	// Verb is create, change or delete.
	Verb   string  `json:"verb"`
	Object Object  `json:"object"`
	Fields []Field `json:"fields,omitempty"`
	// Lines say the same for people.
	Lines []string `json:"-"`
}

// Rendered is what Helm would make of a release, beside what it has made of it.
type Rendered struct {
	Changes []ObjectChange
	// Objects counts those of the release.
	Objects int
	// Problem says why it is not known; empty where it is.
	Problem string
}

// Action is one line of a plan.
type Action struct {
	// Wave counts from 1: what has the same wave is done at the same time.
	Wave int `json:"wave"`
	// After is for how long something is waited for that takes its time.
	After   string `json:"after,omitempty"`
	Layer   string `json:"layer"`
	Version string `json:"version,omitempty"`
	Action  Verb   `json:"action"`
	Object  Object `json:"object"`
	// From and To are versions of charts.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	File string `json:"file,omitempty"`
	Note string `json:"note,omitempty"`
	// Changes of the objects that the release renders, or of the object itself.
	Changes []ObjectChange `json:"changes,omitempty"`
	// Unknown says why it is not known which objects change.
	Unknown string `json:"unknown,omitempty"`
}

// Layer is where a layer ends that is not simply deployed.
type Layer struct {
	Layer   string `json:"layer"`
	Version string `json:"version,omitempty"`
	Verdict Verb   `json:"verdict"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Until is when it goes on by itself.
	Until string `json:"until,omitempty"`
}

// Plan is what would be done, and where it ends.
type Plan struct {
	// From says what the plan is for, and Revision which revision of it.
	From     string `json:"from"`
	Revision string `json:"revision,omitempty"`
	// Cluster is the address of the API server, and empty where there is none.
	Cluster    string `json:"cluster,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Actions in the order in which they are done.
	Actions []Action `json:"actions"`
	// Blocked are the layers that do not get to be deployed.
	Blocked []Layer `json:"blocked"`
	// Counts of the actions and of the layers, by their verbs.
	Counts map[Verb]int `json:"counts"`
	// Notes say what the plan takes for granted.
	Notes []string `json:"notes"`
}

// Differs tells whether something would change, or a layer is in a bad way.
func (p *Plan) Differs() bool { return len(p.Actions) > 0 || len(p.Blocked) > 0 }

// Of returns the plan of a forecast. shown tells which layers are of interest, nil
// for all of them; versions are those that layers are to have; rendered returns what
// is known of what a step changes, nil for nothing.
func Of(f forecast.Forecast, shown func(layer string) bool, versions map[string]string, rendered func(step forecast.Step) *Rendered) *Plan {
	p := &Plan{Actions: []Action{}, Blocked: []Layer{}, Counts: map[Verb]int{}, Notes: []string{}}
	for i, step := range f.Steps {
		if shown != nil && !shown(step.Layer) {
			continue
		}
		action, is := actionOf(step, f.Steps[i+1:], kinds.Charts{Wanted: f.Find})
		if !is {
			continue
		}
		action.Version = versions[step.Layer]
		if known := rendered(step); known != nil {
			action.Changes, action.Unknown = known.Changes, known.Problem
		}
		p.Actions = append(p.Actions, action)
	}
	for _, end := range f.Ends {
		if shown != nil && !shown(end.Layer) {
			continue
		}
		if verdict, blocked := verdictOf(end); blocked {
			layer := Layer{
				Layer:   end.Layer,
				Version: versions[end.Layer],
				Verdict: verdict,
				Reason:  end.Reason,
				Message: cmp.Or(summary.Through(end.Causes), oneLine(end.Message)),
			}
			if !end.Until.IsZero() {
				layer.Until = end.Until.UTC().Format(time.RFC3339)
			}
			p.Blocked = append(p.Blocked, layer)
		}
	}
	if !f.Settled {
		p.Notes = append(p.Notes, "the layers do not come to rest: what is shown is only the beginning")
	}
	p.noteUnknown()
	renumber(p.Actions)
	for _, action := range p.Actions {
		p.Counts[action.Action]++
	}
	for _, layer := range p.Blocked {
		p.Counts[layer.Verdict]++
	}
	return p
}

// actionOf returns what a step comes to for people, and whether it is anything
// to them: a mark that another step makes good is not.
func actionOf(step forecast.Step, later []forecast.Step, charts kinds.Charts) (Action, bool) {
	action := Action{Wave: step.Wave, Layer: step.Layer, Object: objectOf(step.ID), File: step.Origin}
	if step.After > 0 {
		action.After = step.After.Round(time.Second).String()
	}
	followed := slices.ContainsFunc(later, func(other forecast.Step) bool { return other.ID == step.ID })
	isRelease := step.ID.GroupKind() == kinds.HelmReleaseKind
	if isRelease {
		action.From, action.To = chartOf(step.Before), chartOf(step.Done)
	}
	switch step.Verb {
	case dependents.VerbDisown, dependents.VerbUnmark, dependents.VerbRequest:
		return action, false
	case dependents.VerbWrite:
		action.Action = written(step, isRelease)
		if again, is := kinds.ReinstallOf(step.Before, step.Done, charts); is && isRelease {
			action.Note = again.String()
			if !again.Maybe {
				action.Action = Reinstall
			}
		}
	case dependents.VerbAdopt:
		action.Action = Adopt
	case dependents.VerbMark:
		if followed {
			return action, false
		}
		action.Action, action.Note = Orphan, "is pruned when its grace is over, unless another layer lists it"
	case dependents.VerbDelete:
		action.Action = Prune
		if step.After > 0 {
			action.Note = "after its grace"
		}
	case dependents.VerbRelease:
		action.Action, action.Note = Release, joined("stays, and belongs to no layer", step.Spared)
	case dependents.VerbSuspend:
		action.Action = Suspend
	case dependents.VerbResume:
		action.Action = Resume
	case dependents.VerbSupersede:
		action.Action, action.Note = Supersede, "another release takes its place"
	}
	if step.Owner != "" {
		action.Note = joined(action.Note, "from layer "+step.Owner)
	} else if step.Before != nil && step.Before.GetLabels()[v1alpha1.LayerLabel] == "" && step.Done != nil {
		action.Note = joined(action.Note, "it was there, and belonged to no layer")
	}
	if action.From == action.To {
		action.From = ""
	}
	return action, true
}

// written says what writing an object comes to.
func written(step forecast.Step, isRelease bool) Verb {
	switch {
	case step.Before == nil && isRelease:
		return Install
	case step.Before == nil:
		return Create
	case step.Before.GetGeneration() == step.Done.GetGeneration() && step.Done.GetGeneration() != 0:
		return Adopt
	case step.Correction:
		return Correct
	case !isRelease:
		return Update
	}
	from, to := chartOf(step.Before), chartOf(step.Done)
	if from == to {
		return Change
	}
	was, errWas := semver.NewVersion(least(from))
	is, errIs := semver.NewVersion(least(to))
	if errWas == nil && errIs == nil && is.LessThan(was) {
		return Downgrade
	}
	return Upgrade
}

// least returns the version that a simple range such as 1.x or ^1.2 begins at.
func least(version string) string {
	return strings.NewReplacer(".x", ".0", ".*", ".0").Replace(strings.TrimLeft(version, "^~>= "))
}

// chartOf returns the version of the chart that a release asks for; what it has
// where it asks for none, or for a range.
func chartOf(release *unstructured.Unstructured) string {
	if release == nil {
		return ""
	}
	version, _, _ := unstructured.NestedString(release.Object, "spec", "chart", "spec", "version")
	return version
}

// verdictOf says what becomes of a layer that is not deployed in the end.
func verdictOf(end forecast.End) (Verb, bool) {
	switch {
	case end.Gone, end.State == v1alpha1.StateDeployed && (end.Reason == v1alpha1.ReasonDeployed || end.Reason == v1alpha1.ReasonRolledBack):
		return "", false
	case end.State == v1alpha1.StateHold:
		return Held, true
	case slices.Contains([]string{
		v1alpha1.ReasonWouldBreakDependants, v1alpha1.ReasonMassPrune, v1alpha1.ReasonWouldReinstall, v1alpha1.ReasonEmptyDirectory, v1alpha1.ReasonOwnershipConflict,
		v1alpha1.ReasonAccessDenied, v1alpha1.ReasonReservedObject, v1alpha1.ReasonRollbackNotPossible, v1alpha1.ReasonDeletionBlocked,
	}, end.Reason):
		return Refuse, true
	case end.State == v1alpha1.StateFailed:
		return Fail, true
	}
	return Wait, true
}

// noteUnknown says once what keeps several releases from being known.
func (p *Plan) noteUnknown() {
	names := map[string][]string{}
	var reasons []string
	for _, action := range p.Actions {
		if action.Unknown == "" {
			continue
		}
		reason := oneLine(action.Unknown)
		if len(names[reason]) == 0 {
			reasons = append(reasons, reason)
		}
		names[reason] = append(names[reason], action.Object.Namespace+"/"+action.Object.Name)
	}
	for _, reason := range reasons {
		p.Notes = append(p.Notes, fmt.Sprintf("what changes with %s is not known: %s", strings.Join(names[reason], ", "), reason))
	}
}

// renumber has waves count from 1 in what is shown.
func renumber(actions []Action) {
	waves := map[int]int{}
	for i := range actions {
		at := actions[i].Wave
		if waves[at] == 0 {
			waves[at] = len(waves) + 1
		}
		actions[i].Wave = waves[at]
	}
}

func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Verdict says in one line what the plan comes to.
func (p *Plan) Verdict() string {
	if !p.Differs() {
		return "Nothing would change."
	}
	var parts []string
	for _, verb := range []Verb{
		Install, Reinstall, Upgrade, Downgrade, Change, Create, Update, Adopt, Correct, Supersede, Suspend, Resume, Release, Orphan, Prune,
	} {
		if count := p.Counts[verb]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", count, verb))
		}
	}
	text := cmp.Or(strings.Join(parts, ", "), "nothing would change")
	var blocked []string
	for _, verb := range []Verb{Wait, Held, Refuse, Fail} {
		if count := p.Counts[verb]; count > 0 {
			blocked = append(blocked, fmt.Sprintf("%d %s", count, map[Verb]string{Wait: "waiting", Held: "held", Refuse: "refused", Fail: "failing"}[verb]))
		}
	}
	if len(blocked) > 0 {
		text += "; layers: " + strings.Join(blocked, ", ")
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
