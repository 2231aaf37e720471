// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

func release(chart string, generation int64, owner string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"chart": map[string]any{"spec": map[string]any{"version": chart}}}}}
	obj.SetGeneration(generation)
	if owner != "" {
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: owner})
	}
	return obj
}

func id(name string) objects.ID {
	return objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "apps", Name: name}
}

func none(forecast.Step) *Rendered { return nil }

func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		step forecast.Step
		want string
	}{
		"new":               {forecast.Step{Verb: dependents.VerbWrite, Done: release("1.0.0", 1, "base")}, "install 1.0.0 []"},
		"newer chart":       {forecast.Step{Verb: dependents.VerbWrite, Before: release("1.0.0", 1, "base"), Done: release("1.1.0", 2, "base")}, "upgrade 1.0.0 -> 1.1.0 []"},
		"older chart":       {forecast.Step{Verb: dependents.VerbWrite, Before: release("1.10.0", 1, "base"), Done: release("1.9.0", 2, "base")}, "downgrade 1.10.0 -> 1.9.0 []"},
		"from a range":      {forecast.Step{Verb: dependents.VerbWrite, Before: release("1.x", 1, "base"), Done: release("1.1.0", 2, "base")}, "upgrade 1.x -> 1.1.0 []"},
		"to an older range": {forecast.Step{Verb: dependents.VerbWrite, Before: release("2.x", 1, "base"), Done: release("^1.4", 2, "base")}, "downgrade 2.x -> ^1.4 []"},
		"other values":      {forecast.Step{Verb: dependents.VerbWrite, Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 2, "base")}, "change 1.0.0 []"},
		"drift":             {forecast.Step{Verb: dependents.VerbWrite, Correction: true, Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 2, "base")}, "correct 1.0.0 []"},
		"of nobody":         {forecast.Step{Verb: dependents.VerbWrite, Before: release("1.0.0", 1, ""), Done: release("1.0.0", 1, "base")}, "adopt 1.0.0 [it was there, and belonged to no layer]"},
		"of another":        {forecast.Step{Verb: dependents.VerbAdopt, Owner: "apps", Before: release("1.0.0", 1, "apps"), Done: release("1.0.0", 1, "base")}, "adopt 1.0.0 [from layer apps]"},
		"gone":              {forecast.Step{Verb: dependents.VerbDelete, Before: release("1.0.0", 1, "base")}, "prune 1.0.0 -> - []"},
		"gone later":        {forecast.Step{Verb: dependents.VerbDelete, After: time.Minute, Before: release("1.0.0", 1, "base")}, "prune 1.0.0 -> - [after its grace of 1m0s]"},
		"marked":            {forecast.Step{Verb: dependents.VerbMark, Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 1, "base")}, "orphan 1.0.0 [is pruned when its grace is over, unless another layer lists it]"},
		"no longer ours":    {forecast.Step{Verb: dependents.VerbRelease, Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 1, "")}, "release 1.0.0 [stays, and belongs to no layer]"},
		"spared":            {forecast.Step{Verb: dependents.VerbRelease, Spared: "it is another's", Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 1, "")}, "release 1.0.0 [stays, and belongs to no layer; it is another's]"},
		"marks alone":       {forecast.Step{Verb: dependents.VerbDisown, Before: release("1.0.0", 1, "base"), Done: release("1.0.0", 1, "base")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.step.ID, c.step.Layer, c.step.Wave = id("web"), "base", 7
			p := Of(forecast.Forecast{Steps: []forecast.Step{c.step}, Settled: true}, nil, nil, none)
			got := ""
			for _, action := range p.Actions {
				got = fmt.Sprintf("%s %s [%s]", action.Action, action.Versions(), action.Remark())
				if action.Wave != 1 {
					t.Errorf("waves count from %d", action.Wave)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		end  forecast.End
		want Verb
	}{
		"deployed": {forecast.End{State: v1alpha1.StateDeployed, Reason: v1alpha1.ReasonDeployed}, ""},
		"is back":  {forecast.End{State: v1alpha1.StateDeployed, Reason: v1alpha1.ReasonRolledBack}, ""},
		"gone":     {forecast.End{Gone: true}, ""},
		"held":     {forecast.End{State: v1alpha1.StateHold, Reason: v1alpha1.ReasonHold}, Held},
		"waits":    {forecast.End{State: v1alpha1.StateApplyPending, Reason: v1alpha1.ReasonDependencyVersion}, Wait},
		"refused":  {forecast.End{State: v1alpha1.StateDeployed, Reason: v1alpha1.ReasonWouldBreakDependants}, Refuse},
		"mass":     {forecast.End{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonMassPrune}, Refuse},
		"fails":    {forecast.End{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonInvalidManifest}, Fail},
	} {
		p := Of(forecast.Forecast{Ends: []forecast.End{c.end}, Settled: true}, nil, nil, none)
		var got Verb
		if len(p.Blocked) > 0 {
			got = p.Blocked[0].Verdict
		}
		if got != c.want || p.Differs() != (c.want != "") {
			t.Errorf("%s: %q, want %q; differs: %v", name, got, c.want, p.Differs())
		}
	}
}

func TestMarkOfWhatIsPrunedIsNotShown(t *testing.T) {
	before := release("1.0.0", 1, "base")
	f := forecast.Forecast{Settled: true, Steps: []forecast.Step{
		{Wave: 1, Layer: "base", ID: id("old"), Verb: dependents.VerbMark, Before: before, Done: before},
		{Wave: 2, Layer: "base", ID: id("old"), Verb: dependents.VerbDelete, Before: before, After: time.Minute},
	}}
	p := Of(f, nil, nil, none)
	if len(p.Actions) != 1 || p.Actions[0].Action != Prune || p.Actions[0].Wave != 1 || p.Verdict() != "1 to prune." {
		t.Errorf("%+v: %s", p.Actions, p.Verdict())
	}
	if p := Of(f, func(layer string) bool { return layer == "apps" }, nil, none); p.Differs() || p.Verdict() != "Nothing would change." {
		t.Errorf("a layer that nobody asked for is shown: %+v", p)
	}
	f.Settled = false
	if p := Of(f, nil, nil, none); len(p.Notes) != 1 {
		t.Errorf("it is not said that the plan is not whole: %q", p.Notes)
	}
}
