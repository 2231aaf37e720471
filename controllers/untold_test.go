// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
)

func TestUntold(t *testing.T) {
	deleted := func(name string) dependents.Result {
		return dependents.Result{Changed: true, Action: dependents.Action{
			Verb: dependents.VerbDelete, ID: objects.ID{Kind: "HelmRelease", Namespace: "a", Name: name},
		}}
	}
	failed, outdated := deleted("failed"), deleted("outdated")
	failed.Err, outdated.Outdated = errors.New("refused"), true
	marked := deleted("one")
	marked.Action.Verb = dependents.VerbMark
	// All is kept that says how it is told: who has suspended it, and why it stays.
	suspended, spared := deleted("suspended"), deleted("spared")
	suspended.Action.Verb, suspended.Action.Mark = dependents.VerbSuspend, v1alpha1.SuspendedByHoldAnnotation
	spared.Action.Verb, spared.Action.Spared = dependents.VerbRelease, "it is another's"
	first, second := v1alpha1.AddonsLayerStatus{State: "Deployed"}, v1alpha1.AddonsLayerStatus{State: "Pruning"}

	u := untold{}
	u.add("base", first, []dependents.Result{marked, failed, outdated})
	u.add("base", second, []dependents.Result{deleted("one"), deleted("two")})
	u.add("base", second, []dependents.Result{deleted("two"), suspended, spared})
	u.add("apps", second, nil)
	u.add("gone", second, []dependents.Result{deleted("three")})
	u.forget("gone")
	applying := v1alpha1.AddonsLayerStatus{State: "Applying"}
	if before := u.swap("nothing", applying); before.State != applying.State {
		t.Errorf("nothing is untold, and %s was told before", before.State)
	}
	u.add("web", first, []dependents.Result{marked})
	if before := u.swap("web", applying); before.State != first.State {
		t.Errorf("web was last told to be %s", before.State)
	}
	if before, done := u.take("web"); before.State != applying.State || len(done) != 1 {
		t.Errorf("web was last told to be %s, and %v is untold", before.State, done)
	}

	before, done := u.take("base")
	if before.State != first.State {
		t.Errorf("base was last told to be %s, want what it was before the first look", before.State)
	}
	if diff := cmp.Diff([]dependents.Result{marked, deleted("one"), deleted("two"), suspended, spared}, done); diff != "" {
		t.Errorf("what was done and not told (-want +got):\n%s", diff)
	}
	if _, done := u.take("base"); len(done) > 0 {
		t.Errorf("%v is told twice", done)
	}
	if before, done := u.take("apps"); before.State != second.State || len(done) > 0 {
		t.Errorf("apps: %v, %v", before, done)
	}
	if _, done := u.take("gone"); len(done) > 0 {
		t.Errorf("%v is told of a layer that is gone", done)
	}
	if len(u.layers) > 0 {
		t.Errorf("%d layers are remembered for nothing", len(u.layers))
	}
}
