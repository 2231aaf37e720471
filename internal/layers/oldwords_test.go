// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
)

// What a layer with an old word means is not guessed: it is Stalled, and nothing of it is
// written or deleted, also where the whole layer is to go.
func TestLayerWithAnOldWord(t *testing.T) {
	old := func(l *v1alpha1.AddonsLayer) { l.Spec.OldDeleteAfter = []string{"apps"} }
	changed := Decide(observation(layer(isDeployed(oldDir), old), newDir, lives(live("a"), live("b"))))
	if changed.State != v1alpha1.StateFailed || changed.Reason != v1alpha1.ReasonInvalidSpec || !changed.Stalled ||
		changed.Message != "spec.deleteAfter is now teardownAfter: write that" || len(changed.Plan.Actions) > 0 {
		t.Errorf("%s %s, stalled %t: %s; %v", changed.State, changed.Reason, changed.Stalled, changed.Message, changed.Plan.Actions)
	}
	goes := Decide(observation(layer(isDeployed(oldDir), old, deleted), oldDir, lives(live("a"), live("b"))))
	if goes.Reason != v1alpha1.ReasonDeletionBlocked || !strings.Contains(goes.Message, "spec.deleteAfter is now teardownAfter") || len(goes.Plan.Actions) > 0 {
		t.Errorf("%s: %s; %v", goes.Reason, goes.Message, goes.Plan.Actions)
	}
}
