// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// scripted are hands that note what they are asked for, and fail at one step.
type scripted struct {
	steps  []string
	failAt string
	left   bool
	late   time.Duration
	// wrote is what KeepBack was told.
	wrote bool
}

var (
	errStep = errors.New("this step fails")
	noon    = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

func (s *scripted) step(name string) error {
	s.steps = append(s.steps, name)
	if name == s.failAt {
		return fmt.Errorf("%s: %w", name, errStep)
	}
	return nil
}

func (s *scripted) Executor(context.Context, *layers.Observation) (Executor, error) {
	return s, s.step("executor")
}

func (s *scripted) Carry(ctx context.Context, _ string, plan dependents.Plan, record func(context.Context) error) ([]dependents.Result, error) {
	if err := record(ctx); err != nil {
		return nil, err
	}
	_ = s.step("run")
	return []dependents.Result{{Action: plan.Actions[0], Changed: true, Generation: 1}}, nil
}

func (s *scripted) Keep(context.Context, *layers.Observation, []v1alpha1.HistoryEntry, *v1alpha1.AddonsLayerStatus) error {
	return s.step("keep")
}

func (s *scripted) Persist(_ context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	o.Layer = o.Layer.DeepCopy()
	o.Layer.Status = status
	return s.step("persist")
}

func (s *scripted) Withhold(*layers.Observation, v1alpha1.AddonsLayerStatus, layers.Decision) {
	_ = s.step("withhold")
}

func (s *scripted) Annotate(_ context.Context, o *layers.Observation, values map[string]string) error {
	o.Layer = o.Layer.DeepCopy()
	o.Layer.Annotations = values
	return s.step("consume")
}

func (s *scripted) LeftBehind(context.Context, *v1alpha1.AddonsLayer) (bool, error) {
	return s.left, s.step("left behind")
}

func (s *scripted) Finalize(context.Context, *v1alpha1.AddonsLayer) error { return s.step("finalize") }

func (s *scripted) Acted(*layers.Observation, v1alpha1.AddonsLayerStatus, []dependents.Result) {
	_ = s.step("acted")
}

func (s *scripted) Reported(*layers.Observation, layers.Decision) { _ = s.step("reported") }

func (s *scripted) Note(*layers.Observation, layers.Decision) { _ = s.step("note") }

func (s *scripted) Now() time.Time { return noon }

func (s *scripted) SafetyNet(*layers.Observation) time.Duration { return time.Minute }

func (s *scripted) KeepBack(_ *layers.Observation, _ v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
	s.wrote = wrote
	return s.late
}

func (s *scripted) KindIsComing(*layers.Observation, layers.Decision) bool { return false }

// newcomer is a layer that lists one release, and has nothing yet.
func newcomer() *layers.Observation {
	release := &unstructured.Unstructured{Object: map[string]any{}}
	release.SetGroupVersionKind(kinds.HelmReleaseKind.WithVersion("v2"))
	release.SetNamespace("default")
	release.SetName("podinfo")
	layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", Generation: 1}}
	layer.Spec.Version = "1.0.0"
	return &layers.Observation{
		Now: noon, Settings: layers.Settings{Interval: time.Minute, Namespace: "default"}, Layer: layer,
		ObservedSource: layers.ObservedSource{
			Source: &layers.Source{Generation: 1, ObservedGeneration: 1, Revision: "main@sha1:1", Digest: "sha256:1", Ready: true},
		},
		ObservedContents: layers.ObservedContents{
			Directory: &directories.Directory{Revision: "main@sha1:1", Digest: "sha256:2", Manifests: []directories.Manifest{{File: "podinfo.yaml", Object: release}}},
		},
		ObservedClusters: layers.ObservedClusters{Scopes: map[objects.ServedKind]objects.Scope{{GroupKind: kinds.HelmReleaseKind}: objects.ScopeNamespaced}},
	}
}

// emptied is a layer whose folder is empty, which is allowed, and which has
// nothing that would have to go.
func emptied() *layers.Observation {
	o := newcomer()
	o.Directory.Manifests = nil
	o.Layer.Annotations = map[string]string{v1alpha1.AllowEmptyAnnotation: v1alpha1.AllowNext}
	return o
}

// leaving is a layer that is being deleted and has nothing left.
func leaving() *layers.Observation {
	o := newcomer()
	o.Layer.DeletionTimestamp = &metav1.Time{Time: noon}
	return o
}

func TestOrderOfARound(t *testing.T) {
	tests := map[string]struct {
		reason string
		o      *layers.Observation
		hands  scripted
		want   []string
		after  time.Duration
		// err is the step whose error is handed on.
		err string
	}{
		"something to write": {
			"the inventory is recorded before, and the status reported behind", newcomer(),
			scripted{},
			[]string{"executor", "persist", "run", "acted", "keep", "persist", "reported", "note"},
			time.Minute, "",
		},
		"cannot be recorded": {
			"nothing is written that is not recorded", newcomer(),
			scripted{failAt: "persist"},
			[]string{"executor", "persist", "acted"},
			0, "persist: this step fails",
		},
		"nobody to write": {
			"that is reported as the failure of the first action", newcomer(),
			scripted{failAt: "executor"},
			[]string{"executor", "acted", "keep", "persist", "reported", "note"},
			0, "executor: this step fails",
		},
		"used up": {
			"what allows it goes when the attempt is recorded, and nothing is carried out", emptied(),
			scripted{},
			[]string{"persist", "consume", "acted", "keep", "persist", "reported", "note"},
			time.Minute, "",
		},
		"kept back": {
			"it is looked at again when the status may be written", held(),
			scripted{late: time.Second},
			[]string{"acted", "keep", "note"},
			time.Second, "",
		},
		"kept back after writes": {
			"what was written is remembered, and told when the status may be written", newcomer(),
			scripted{late: time.Second},
			[]string{"executor", "persist", "run", "acted", "keep", "withhold", "note"},
			time.Second, "",
		},
		"cannot be kept": {
			"the status is written all the same", held(),
			scripted{failAt: "keep", late: time.Second},
			[]string{"acted", "keep", "persist", "reported", "note"},
			0, "keep: this step fails",
		},
		"has nothing left": {
			"it is looked for once more, and then it goes", leaving(),
			scripted{},
			[]string{"left behind", "finalize"},
			0, "",
		},
		"has something left": {
			"the cache lags", leaving(), scripted{left: true}, []string{"left behind"}, LookAgain, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after, err := Run(t.Context(), &test.hands, test.o)
			if after != test.after || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %s, %v, want %s, %q", test.reason, after, err, test.after, test.err)
			}
			if diff := cmp.Diff(test.want, test.hands.steps); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if test.hands.wrote && !slices.Contains(test.hands.steps, "run") {
				t.Error("the status is said to tell of writes, and there were none")
			}
		})
	}
}

// Only what was written without a flaw may be told later.
func TestKeptBackAfterActions(t *testing.T) {
	write := dependents.Action{Verb: dependents.VerbWrite}
	for name, test := range map[string]struct {
		results []dependents.Result
		want    time.Duration
	}{
		"nothing":       {nil, time.Second},
		"a write":       {[]dependents.Result{{Action: write, Changed: true}}, time.Second},
		"an error":      {[]dependents.Result{{Action: write}, {Action: write, Err: errStep}}, 0},
		"one too late":  {[]dependents.Result{{Action: write}, {Action: write, Outdated: true}}, 0},
		"a removal":     {[]dependents.Result{{Action: write}, {Action: dependents.Action{Verb: dependents.VerbDelete}}}, 0},
		"one is marked": {[]dependents.Result{{Action: dependents.Action{Verb: dependents.VerbMark}}}, 0},
	} {
		hands := &scripted{late: time.Second}
		if got := keptBack(hands, newcomer(), v1alpha1.AddonsLayerStatus{}, layers.Decision{}, test.results); got != test.want {
			t.Errorf("%s: kept back for %s, want %s", name, got, test.want)
		}
		if hands.wrote != (test.want > 0 && len(test.results) > 0) {
			t.Errorf("%s: it is said to tell of writes: %t", name, hands.wrote)
		}
	}
}

// held is a layer that does nothing.
func held() *layers.Observation {
	o := newcomer()
	o.Layer.Spec.Hold = true
	return o
}

func TestOutcome(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "addonslayers"}, "base", errStep)
	for name, test := range map[string]struct {
		err   error
		after time.Duration
		want  error
	}{
		"fine":     {nil, time.Minute, nil},
		"conflict": {conflict, LookAgain, nil},
		"gone":     {ErrGone, 0, nil},
		"fails":    {errStep, time.Minute, errStep},
	} {
		if after, err := Outcome(time.Minute, test.err); after != test.after || !errors.Is(err, test.want) {
			t.Errorf("%s: %s, %v, want %s, %v", name, after, err, test.after, test.want)
		}
	}
}

func TestProgressed(t *testing.T) {
	wrote := dependents.Result{Changed: true}
	failed := dependents.Result{Changed: true, Err: errStep}
	corrected := dependents.Result{Changed: true, Action: dependents.Action{Correction: true}}
	if progressed([]dependents.Result{failed, corrected}) || !progressed(slices.Concat([]dependents.Result{failed}, []dependents.Result{wrote})) {
		t.Error("only something new that was written is progress")
	}
}
