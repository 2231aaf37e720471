// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// The conditions are those that helm-controller writes at each step.
func TestIsActing(t *testing.T) {
	type conditions map[string]map[string]any
	ready := func(status, reason string, generation int64) map[string]any {
		return map[string]any{"status": status, "reason": reason, "observedGeneration": generation}
	}
	reconciling := func(reason, message string) map[string]any {
		return map[string]any{"status": "True", "reason": reason, "message": message, "observedGeneration": int64(2)}
	}
	for name, tc := range map[string]struct {
		reason     string
		observed   int64
		conditions conditions
		want       bool
	}{
		"new":                     {"Flux has yet to look at it", -1, nil, true},
		"changed":                 {"Flux has yet to look at it as it is now", 1, conditions{"Ready": ready("True", "UpgradeSucceeded", 1)}, true},
		"failed before":           {"and will look whether it fails again", 1, conditions{"Ready": ready("False", "UpgradeFailed", 1), "Reconciling": reconciling("Progressing", "Fulfilling prerequisites")}, true},
		"begins":                  {"Ready is about the generation before", 1, conditions{"Ready": ready("True", "UpgradeSucceeded", 1), "Reconciling": reconciling("Progressing", "Fulfilling prerequisites")}, true},
		"without its chart":       {"it waits for somebody else", 1, conditions{"Ready": ready("False", "SourceNotReady", 2), "Reconciling": reconciling("Progressing", "Fulfilling prerequisites")}, false},
		"upgrades":                {"Helm is at work", 1, conditions{"Ready": ready("Unknown", "Progressing", 2), "Reconciling": reconciling("Progressing", "Running 'upgrade' action with timeout of 5m0s")}, true},
		"goes back by itself":     {"Helm is at work", 1, conditions{"Ready": ready("False", "UpgradeFailed", 2), "Reconciling": reconciling("Progressing", "Running 'rollback' action with timeout of 5m0s")}, true},
		"waits for the next try":  {"nothing is under way between two tries", 1, conditions{"Ready": ready("False", "UpgradeFailed", 2), "Reconciling": reconciling("ProgressingWithRetry", "Helm upgrade failed")}, false},
		"has given up":            {"nothing will be", 1, conditions{"Ready": ready("False", "UpgradeFailed", 2), "Stalled": {"status": "True"}}, false},
		"done, not yet reported":  {"the generation follows the conditions", 1, conditions{"Ready": ready("True", "UpgradeSucceeded", 2)}, true},
		"done":                    {"it is Ready", 2, conditions{"Ready": ready("True", "UpgradeSucceeded", 2)}, false},
		"conditions of no object": {"a condition without a generation speaks of none", 2, conditions{"Ready": {"status": "True"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"observedGeneration": tc.observed}}}
			live.SetGeneration(2)
			var list []any
			for kind, fields := range tc.conditions {
				fields["type"] = kind
				list = append(list, fields)
			}
			if err := unstructured.SetNestedSlice(live.Object, list, "status", "conditions"); err != nil {
				t.Fatal(err)
			}
			if got := objects.IsActing(live); got != tc.want {
				t.Errorf("IsActing is %v: %s", got, tc.reason)
			}
		})
	}
}
