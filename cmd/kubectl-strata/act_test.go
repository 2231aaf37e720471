// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// actCase is a command line that changes something, and what becomes of it.
type actCase struct {
	args    []string
	code    int
	out     string
	errOut  string
	patches []string // with the moment that is in them cut off
}

func TestActs(t *testing.T) {
	held := layer("held", v1alpha1.StateHold, metav1.ConditionUnknown)
	held.Annotations = map[string]string{v1alpha1.HoldAnnotation: "freeze"}
	fixed := layer("fixed", v1alpha1.StateHold, metav1.ConditionUnknown)
	fixed.Spec.Hold = true
	old := deployed("old")
	started := metav1.NewTime(time.Now().Add(-73 * time.Hour))
	old.Status.History = []v1alpha1.HistoryEntry{
		{ID: "3", Version: "1.2.0", Revision: "main@sha1:c", Result: v1alpha1.ResultFailed, Started: started, Message: "no\nsuch chart"},
		{ID: "2", Version: "1.1.0", Revision: "main@sha1:b", Result: v1alpha1.ResultDeployed, Started: started, Kept: true, Duration: metav1.Duration{Duration: 90 * time.Second}},
	}
	layers := []v1alpha1.AddonsLayer{deployed("base"), held, fixed, old}
	const hold = `{"metadata":{"annotations":{"kraan.io/hold":"freeze","kraan.io/hold-releases":null,"kraan.io/hold-until":null}}}`
	const resume = `{"metadata":{"annotations":{"kraan.io/hold":null,"kraan.io/hold-releases":null,"kraan.io/hold-until":null}}}`
	for name, c := range map[string]actCase{
		"hold":                {args: []string{"hold", "base", "--reason", "freeze"}, out: "layer base is held: freeze\n", patches: []string{"base " + hold}},
		"hold several":        {args: []string{"hold", "base", "old", "--reason", "freeze"}, out: "layer base is held: freeze\nlayer old is held: freeze\n", patches: []string{"base " + hold, "old " + hold}},
		"hold, selected":      {args: []string{"hold", "-l", "a=b", "--reason", "freeze"}, out: "layer base is held: freeze\nlayer fixed is held: freeze\nlayer held is held: freeze\nlayer old is held: freeze\n", patches: []string{"base " + hold, "fixed " + hold, "held " + hold, "old " + hold}},
		"hold until":          {args: []string{"hold", "base", "--reason", "x", "--until", "2099-01-02T03:04:05+01:00", "--releases"}, out: "layer base is held: x (until 2099-01-02T02:04:05Z), with its releases\n", patches: []string{`base {"metadata":{"annotations":{"kraan.io/hold":"x","kraan.io/hold-releases":"true","kraan.io/hold-until":"2099-01-02T02:04:05Z"}}}`}},
		"hold without reason": {args: []string{"hold", "base"}, code: 1, errOut: "--reason is missing"},
		"hold for false":      {args: []string{"hold", "base", "--reason", "false"}, code: 1, errOut: "takes for no hold"},
		"hold until nonsense": {args: []string{"hold", "base", "--reason", "x", "--until", "soon"}, code: 1, errOut: `--until: the end is neither a time`},
		"hold until before":   {args: []string{"hold", "base", "--reason", "x", "--until", "2001-01-01T00:00:00Z"}, code: 1, errOut: "the end has passed"},
		"hold nothing":        {args: []string{"hold", "--reason", "x"}, code: 1, errOut: "name the layers, or give --selector"},
		"hold one of two":     {args: []string{"hold", "base", "bsae", "--reason", "x"}, code: 1, errOut: "there is no layer bsae; did you mean base?"},
		"hold both ways":      {args: []string{"hold", "base", "-l", "a=b", "--reason", "x"}, code: 1, errOut: "give names or --selector, not both"},
		"resume":              {args: []string{"resume", "held"}, out: "layer held is resumed\n", patches: []string{"held " + resume}},
		"resume what is not":  {args: []string{"resume", "base"}, out: "layer base is not held\n"},
		"resume what stays":   {args: []string{"resume", "fixed", "held"}, code: 1, out: "layer held is resumed\n", errOut: "layer fixed stays held: its spec.hold is true", patches: []string{"held " + resume}},
		"reconcile":           {args: []string{"reconcile", "base"}, out: "layer base is looked at\n", patches: []string{`base {"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"`}},
		"rollback":            {args: []string{"rollback", "old", "--to", "2"}, out: "layer old goes back to deployment 2: version 1.1.0 of revision main@sha1:b\n", patches: []string{`old {"metadata":{"annotations":{"kraan.io/rollback-to":"2"}}}`}},
		"rollback to failure": {args: []string{"rollback", "old", "--to", "3"}, code: 1, errOut: "deployment 3 of layer old has failed"},
		"rollback to nothing": {args: []string{"rollback", "old", "--to", "9"}, code: 1, errOut: "layer old has no deployment 9"},
		"rollback, no ID":     {args: []string{"rollback", "old"}, code: 1, errOut: "--to is missing: kubectl strata history old"},
		"history":             {args: []string{"history", "old"}, out: "ID   VERSION   REVISION      RESULT     STARTED    TOOK   KEPT   MESSAGE\n3    1.2.0     main@sha1:c   Failed     3d1h ago   0s     no     no such chart\n2    1.1.0     main@sha1:b   Deployed   3d1h ago   90s    yes\n"},
		"no history":          {args: []string{"history", "base"}, out: "Layer base has deployed nothing yet.\n"},
		"no history as json":  {args: []string{"history", "base", "-o", "json"}, out: "[]\n"},
		"history, bad format": {args: []string{"history", "base", "-o", "xml"}, code: 1, errOut: `--output is "xml": it must be json or yaml`},
		"wait":                {args: []string{"wait", "base"}, out: "layer base is deployed\n"},
		"wait for held":       {args: []string{"wait", "held", "fixed", "--for", "held"}, out: "layer fixed is held\nlayer held is held\n"},
		"wait for gone":       {args: []string{"wait", "nobody", "--for", "gone"}, out: "layer nobody is gone\n"},
		"wait in vain":        {args: []string{"wait", "held", "--timeout", "300ms"}, code: 2, out: "layer held: Hold - of held\nlayer held is not deployed within 300ms: Hold - of held\n"},
		"wait for nonsense":   {args: []string{"wait", "base", "--for", "ever"}, code: 1, errOut: `--for is "ever": it must be one of deployed, held, gone`},
		"wait for nobody":     {args: []string{"wait", "bsae"}, code: 1, errOut: "did you mean base?"},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			server := httptest.NewServer(apiServer{layers: layers, patches: &patches})
			defer server.Close()
			code, out, errOut := plugin(t, append(c.args, "--server", server.URL)...)
			if code != c.code || out != c.out || !strings.Contains(errOut, c.errOut) || (c.errOut == "") != (errOut == "") {
				t.Errorf("exit code %d, want %d\n%q, want\n%q\nthe error is %q, want %q", code, c.code, out, c.out, errOut, c.errOut)
			}
			if len(patches) != len(c.patches) {
				t.Fatalf("it merges %q, want %q", patches, c.patches)
			}
			for i := range patches {
				if !strings.HasPrefix(patches[i], c.patches[i]) {
					t.Errorf("it merges %s, want %s", patches[i], c.patches[i])
				}
			}
		})
	}
}

func TestActsWithoutTheRight(t *testing.T) {
	server := httptest.NewServer(apiServer{layers: []v1alpha1.AddonsLayer{deployed("base")}})
	defer server.Close()
	code, out, errOut := plugin(t, "hold", "base", "--reason", "x", "--server", server.URL)
	if code != exitError || out != "" || !strings.Contains(errOut, "you may not change layer base; ask for the right to patch addonslayers.kraan.io") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// Whoever waits sees what changes, and is told at once of what only the author can
// mend.
func TestWaitShowsWhatChanges(t *testing.T) {
	event := func(kind string, layer v1alpha1.AddonsLayer) string {
		text, err := json.Marshal(map[string]any{"type": kind, "object": layer})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	applying := layer("base", v1alpha1.StateApplying, metav1.ConditionUnknown)
	stalled := layer("base", v1alpha1.StateFailed, metav1.ConditionFalse)
	stalled.Status.Conditions = append(stalled.Status.Conditions, metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue})
	// It was deployed at a look before its latest generation.
	earlier := layer("base", v1alpha1.StateDeployed, metav1.ConditionTrue)
	earlier.Generation = 2
	for name, c := range map[string]struct {
		then []string
		code int
		out  string
	}{
		"deployed before": {[]string{event("MODIFIED", earlier), event("MODIFIED", deployed("base"))}, 0, "layer base: Applying - of base\nlayer base is deployed\n"},
		"deployed":        {[]string{event("MODIFIED", applying), event("ADDED", deployed("other")), event("MODIFIED", deployed("base"))}, 0, "layer base: Applying - of base\nlayer base is deployed\n"},
		"stalled":         {[]string{event("MODIFIED", stalled)}, 2, "layer base: Applying - of base\nlayer base: Failed - of base\n"},
		"gone":            {[]string{event("DELETED", applying)}, 1, "layer base: Applying - of base\n"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(apiServer{layers: []v1alpha1.AddonsLayer{applying}, events: c.then})
			defer server.Close()
			code, out, errOut := plugin(t, "wait", "base", "--timeout", "20s", "--server", server.URL)
			if code != c.code || out != c.out {
				t.Errorf("exit code %d, want %d\n%s, want\n%s\n%s", code, c.code, out, c.out, errOut)
			}
		})
	}
}
