// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// graceOver is an orphan that has waited for its whole grace, and a second
// more for what the inventory cuts off.
func graceOver(e *Entry) { since(objects.StatusOrphaned, testGrace+time.Second)(e) }

// finalized is an object that somebody keeps.
func finalized(names ...string) change {
	return func(o *unstructured.Unstructured) { o.SetFinalizers(names) }
}

func TestMakeOrphans(t *testing.T) {
	secondsLeft := func(e *Entry) {
		e.Status, e.Since = objects.StatusOrphaned, testNow.Truncate(time.Second).Add(-testGrace)
	}
	cutOff := testNow.Truncate(time.Second).Add(time.Second)
	full := testNow.Truncate(time.Second).Add(testGrace + time.Second)
	fullMessage := "a progressing Orphaned unwanted: waits until 2026-01-02T03:05:06Z for another layer to adopt it"
	runPlanCases(t, map[string]planCase{
		"no longer listed": {
			reason: "it is marked at once", in: world(inventory(had(a)), lives(release("a"))),
			actions: []string{"Mark a"}, standings: []string{fullMessage}, until: full,
		},
		"no grace": {
			reason: "it is marked first all the same", in: world(inventory(had(a)), lives(release("a")), func(in *Input) { in.Grace = 0 }),
			actions: []string{"Mark a"}, until: cutOff,
			standings: []string{"a progressing Orphaned unwanted: waits until 2026-01-02T03:04:06Z for another layer to adopt it"},
		},
		"within the second that is cut off": {
			reason: "whole seconds are remembered, and it must never go sooner",
			in:     world(inventory(had(a, secondsLeft)), lives(release("a", orphaned))), until: cutOff,
			standings: []string{"a progressing Orphaned unwanted: waits until 2026-01-02T03:04:06Z for another layer to adopt it"},
		},
		"grace over": {
			reason: "nobody wanted it", in: world(inventory(had(a, graceOver)), lives(release("a", orphaned))),
			actions: []string{"Delete a"}, standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"label taken off by hand": {
			reason: "it waits for a full grace again", in: world(inventory(had(a, graceOver)), lives(release("a"))),
			actions: []string{"Mark a"}, standings: []string{fullMessage}, until: full,
		},
		"marked later than recorded": {
			reason: "a mark was refused at first, and what became of the next one was not recorded: others have seen it for a moment only",
			in:     world(inventory(had(a, graceOver)), lives(release("a", label(testKeys.Orphaned, "2026-01-02T03.04.00Z")))), until: full.Add(-5 * time.Second),
			standings: []string{"a progressing Orphaned unwanted: waits until 2026-01-02T03:05:01Z for another layer to adopt it"},
		},
		"marked in the future": {
			reason:  "somebody's clock was wrong, and it must not stay until then",
			in:      world(inventory(had(a, graceOver)), lives(release("a", label(testKeys.Orphaned, "2036-01-02T03.04.00Z")))),
			actions: []string{"Delete a"}, standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"marked at no moment": {
			reason:  "the inventory says since when it waits",
			in:      world(inventory(had(a, graceOver)), lives(release("a", label(testKeys.Orphaned, "true")))),
			actions: []string{"Delete a"}, standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"removed again": {
			reason:  "the label of an earlier removal counts for nothing when the object was listed in between",
			in:      world(inventory(had(a)), lives(release("a", orphaned))),
			actions: []string{"Mark a"}, standings: []string{fullMessage}, until: full,
		},
		"claimed": {
			reason: "another one lists it, so it is kept and does not count",
			in:     world(inventory(had(a, graceOver)), lives(release("a", orphaned)), listedBy("other", a)),
			standings: []string{
				"a ignored Orphaned unwanted: is kept for layer other, which lists it",
			},
		},
		"moved": {
			reason: "the mark says who will have it", in: world(inventory(had(a)), lives(release("a")), listedBy("other", a)),
			actions: []string{"Mark a kept for other"}, standings: []string{"a ignored Orphaned unwanted: is kept for layer other, which lists it"},
		},
		"moved and renamed": {
			reason: "another one lists an object that stands for the same",
			in: world(inventory(had(a, graceOver)), lives(release("a", orphaned)), sharing("helm/x", a), func(in *Input) {
				in.Others.Exclusive["helm/x"] = []Claim{{Owner: "other", ID: b}}
			}),
			standings: []string{"a ignored Orphaned unwanted: is kept for layer other, which lists it"},
		},
		"claimed by several": {
			reason:    "the message names the same one whatever order they come in",
			in:        world(inventory(had(a, graceOver)), lives(release("a", orphaned)), listedBy("zeta", a), listedBy("alpha", a)),
			standings: []string{"a ignored Orphaned unwanted: is kept for layer alpha, which lists it"},
		},
		"unreadable siblings": {
			reason: "one of them may list it",
			in:     world(inventory(had(a, graceOver)), lives(release("a", orphaned)), mayList(a, Doubt{Owner: "z", Why: "z/broken.yaml has its name"}, Doubt{Owner: "y"})),
			standings: []string{`a blocked Orphaned unwanted: is kept while it is not known whether layer y, z lists it ` +
				`(z: z/broken.yaml has its name): if none does set the annotation kraan.io/allow-prune to "next"`},
		},
		"another object may be listed": {
			reason:    "a layer that cannot be read holds up what it can mean",
			in:        world(inventory(had(a, graceOver)), lives(release("a", orphaned)), mayList(b, Doubt{Owner: "y"})),
			actions:   []string{"Delete a"},
			standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"the doubt is ended": {
			reason: "somebody said that it goes all the same",
			in: world(inventory(had(a, graceOver)), lives(release("a", orphaned)), mayList(a, Doubt{Owner: "y"}),
				func(in *Input) { in.EndDoubt = true }),
			actions:   []string{"Delete a"},
			standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"not seen yet": {
			reason: "the cache still shows it without the mark", in: world(inventory(had(a, graceOver)), lives(release("a")), stale(a)),
			standings: []string{"a progressing Orphaned unwanted: was written a moment ago"},
		},
		"being deleted": {
			reason: "it is on its way", in: world(inventory(had(a, graceOver)), lives(release("a", orphaned, deleting))),
			standings: []string{"a progressing Deleting unwanted: is being removed"},
		},
		"kept by a finalizer": {
			reason: "who has to let it go is named", in: world(inventory(had(a, graceOver)), lives(release("a", orphaned, deleting, finalized("example.com/stuck")))),
			standings: []string{"a progressing Deleting unwanted: is being removed, kept by example.com/stuck"},
		},
		"without prune": {
			reason: "nothing leaves while the directory does not count", in: world(readOnly, inventory(had(a, graceOver)), lives(release("a", orphaned))),
			standings: []string{"a ignored Orphaned unwanted: is no longer listed"},
		},
		"former owner": {
			reason:  "garbage collection must not come first",
			in:      world(inventory(had(a)), lives(release("a", formerlyOwned))),
			actions: []string{"Disown a"}, standings: []string{"a progressing Deployed unwanted: is taken over"},
		},
		"retained": {
			reason: "it is released and reported", in: world(inventory(had(a, retained)), lives(release("a"))),
			actions: []string{"Release a"}, standings: []string{"a ignored Kept unwanted: is released and kept"},
		},
		"retained, suspended by a hold": {
			reason:  "what a hold suspended is resumed before nobody owns it",
			in:      world(inventory(had(a, retained)), lives(release("a", suspended, heldByStrata))),
			actions: []string{"Resume a", "Release a"}, standings: []string{"a ignored Kept unwanted: is released and kept"},
		},
	})
}

func TestMakeKeepsWhatOldReleasesUse(t *testing.T) {
	settings := configID("settings")
	old := []string{"a progressing Deployed: has yet to be applied"}
	waits := "settings progressing Orphaned unwanted: goes when HelmRelease default/a, which may still use it, has been applied anew"
	runPlanCases(t, map[string]planCase{
		"not applied yet": {
			reason: "the release still runs with its old content",
			in: world(wanted(want(a, digest("v2"))), inventory(had(a), had(settings, graceOver)),
				lives(release("a"), config("settings", orphaned))),
			actions: []string{"Write a"}, standings: append(old, waits),
		},
		"may only be repaired": {
			reason: "a layer that waits holds its releases to their old content",
			in: world(repairOnly, wanted(want(a)), inventory(had(a), had(settings, graceOver)),
				lives(release("a"), config("settings", orphaned))),
			standings: []string{"a ready Deployed", waits},
		},
		"applied": {
			reason: "nothing refers to it any more",
			in: world(wanted(want(a)), inventory(had(a), had(settings, graceOver)),
				lives(release("a"), config("settings", orphaned))),
			actions: []string{"Delete settings"}, standings: []string{"a ready Deployed", "settings progressing Orphaned unwanted: is being removed"},
		},
	})
}

func TestMakeSuspendedOrphans(t *testing.T) {
	abandon := func(in *Input) { in.Abandon = true }
	inTheWay := "a blocked Orphaned unwanted (SuspendedRelease): is suspended, so Flux would drop it without uninstalling anything: resume it, or abandon what it installed with the annotation abandon"
	runPlanCases(t, map[string]planCase{
		"by hand": {
			reason: "Flux would delete it without uninstalling what it installed",
			in:     world(inventory(had(a, graceOver)), lives(release("a", orphaned, suspended))), standings: []string{inTheWay},
		},
		"abandoned": {
			reason: "somebody said that it may", in: world(abandon, inventory(had(a, graceOver)), lives(release("a", orphaned, suspended))),
			actions: []string{"Delete a"}, standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
		"by a hold": {
			reason: "it is resumed first, and uninstalled then", in: world(inventory(had(a, graceOver)), lives(release("a", orphaned, suspended, heldByStrata))),
			actions: []string{"Resume a"}, standings: []string{"a progressing Orphaned unwanted: is resumed before it is removed"},
		},
		"by a hold, abandoned": {
			reason: "it is resumed all the same", in: world(abandon, inventory(had(a, graceOver)), lives(release("a", orphaned, suspended, heldByStrata))),
			actions: []string{"Resume a"}, standings: []string{"a progressing Orphaned unwanted: is resumed before it is removed"},
		},
		"another kind": {
			reason: "suspend means nothing to it", in: world(inventory(had(configID("a"), graceOver)), lives(config("a", orphaned, suspended))),
			actions: []string{"Delete a"}, standings: []string{"a progressing Orphaned unwanted: is being removed"},
		},
	})
}

func TestMakeReverseOrder(t *testing.T) {
	needs := func(names ...string) func(*Entry) {
		return func(e *Entry) { e.DependsOn = want(e.ID, after(names...)).DependsOn }
	}
	settings := configID("s")
	runPlanCases(t, map[string]planCase{
		"dependency": {
			reason:  "what depends on another goes first",
			in:      world(inventory(had(a, graceOver), had(b, graceOver, needs("a"))), lives(release("a", orphaned), release("b", orphaned))),
			actions: []string{"Delete b"},
			standings: []string{
				"a progressing Orphaned unwanted: goes after HelmRelease default/b", "b progressing Orphaned unwanted: is being removed",
			},
		},
		"dependency on its way": {
			reason:    "it has to be gone, not merely going",
			in:        world(inventory(had(a, graceOver), had(b, graceOver, needs("a"))), lives(release("a", orphaned), release("b", orphaned, deleting))),
			standings: []string{"a progressing Orphaned unwanted: goes after HelmRelease default/b", "b progressing Deleting unwanted: is being removed"},
		},
		"dependency within its grace": {
			reason:    "the one that is needed waits for it",
			in:        world(inventory(had(a, graceOver), had(b, since(objects.StatusOrphaned, 0), needs("a"))), lives(release("a", orphaned), release("b", orphaned))),
			standings: []string{"a progressing Orphaned unwanted: goes after HelmRelease default/b", "b progressing Orphaned unwanted: waits until 2026-01-02T03:05:06Z for another layer to adopt it"},
			until:     testNow.Truncate(time.Second).Add(testGrace + time.Second),
		},
		"rank": {
			reason:    "what releases use goes when they are gone",
			in:        world(inventory(had(settings, graceOver), had(a, graceOver)), lives(config("s", orphaned), release("a", orphaned))),
			actions:   []string{"Delete a"},
			standings: []string{"s progressing Orphaned unwanted: goes after HelmRelease default/a", "a progressing Orphaned unwanted: is being removed"},
		},
		"gone": {
			reason:  "then its turn has come",
			in:      world(inventory(had(settings, graceOver), had(a, graceOver)), lives(config("s", orphaned))),
			actions: []string{"Delete s"}, standings: []string{"s progressing Orphaned unwanted: is being removed"},
		},
		"wanted release": {
			reason:  "a release that stays holds up nothing: it no longer uses what left the directory",
			in:      world(wanted(want(a)), inventory(had(settings, graceOver), had(a)), lives(config("s", orphaned), release("a"))),
			actions: []string{"Delete s"}, standings: []string{"a ready Deployed", "s progressing Orphaned unwanted: is being removed"},
		},
		"retained, taken, claimed and kept ones": {
			reason: "what stays is not waited for",
			in: world(inventory(had(settings, graceOver), had(a, retained), had(b), had(c, graceOver), had(releaseID("d"))),
				lives(config("s", orphaned), release("a"), release("b", ownedBy("other")), release("c", orphaned), release("d")),
				listedBy("other", c), func(in *Input) { in.Keep[releaseID("d")] = true }),
			actions: []string{"Release a", "Delete s"},
			standings: []string{
				"s progressing Orphaned unwanted: is being removed", "a ignored Kept unwanted: is released and kept",
				"c ignored Orphaned unwanted: is kept for layer other, which lists it", "d progressing Deployed: has yet to be applied",
			},
		},
	})
}

// A release that Flux is at right now is not deleted: a helm-controller that dies in
// the middle of an upgrade may have forgotten what there is to uninstall.
func TestMakeWaitsForFlux(t *testing.T) {
	saying := func(kind, status, reason string, ago time.Duration, message string) change {
		return func(o *unstructured.Unstructured) {
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			conditions = slices.DeleteFunc(conditions, func(item any) bool { return item.(map[string]any)["type"] == kind })
			_ = unstructured.SetNestedSlice(o.Object, append(conditions, map[string]any{
				"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": testNow.Add(-ago).Format(time.RFC3339),
			}), "status", "conditions")
		}
	}
	at := func(ago time.Duration, message string) change {
		return saying("Ready", "Unknown", "Progressing", ago, message)
	}
	timeout := func(text string) change {
		return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, text, "spec", "timeout") }
	}
	gone := []string{"a progressing Orphaned unwanted: is being removed"}
	start := testNow.Add(-time.Minute).Truncate(time.Second)
	runPlanCases(t, map[string]planCase{
		"upgrading": {
			reason: "it ends, and then the release goes",
			in:     world(inventory(had(a, graceOver)), lives(release("a", orphaned, at(time.Minute, "Running 'upgrade' action")))),
			standings: []string{
				"a progressing Orphaned unwanted: waits until 2026-01-02T03:09:05Z at most for Flux to be done with it: Running 'upgrade' action",
			},
			until: start.Add(6 * time.Minute),
		},
		"upgrading for longer than it may": {
			reason:  "nobody is at it any more",
			in:      world(inventory(had(a, graceOver)), lives(release("a", orphaned, at(6*time.Minute+time.Second, "Running 'upgrade' action")))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"with a timeout of its own": {
			reason:  "that one counts",
			in:      world(inventory(had(a, graceOver)), lives(release("a", orphaned, timeout("10s"), at(2*time.Minute, "Running 'upgrade' action")))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"failed": {
			reason:  "Flux is done with it",
			in:      world(inventory(had(a, graceOver)), lives(release("a", orphaned, notReady))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"unlocked a moment ago": {
			reason: "the upgrade that it was unlocked for follows at once",
			in: world(inventory(had(a, graceOver)), lives(release("a", orphaned,
				saying("Ready", "False", "PendingRelease", 10*time.Second, "Unlocked"), saying("Reconciling", "True", "Progressing", time.Minute, "Running 'unlock' action")))),
			standings: []string{
				"a progressing Orphaned unwanted: waits until 2026-01-02T03:09:55Z at most for Flux to be done with it: Running 'unlock' action",
			},
			until: testNow.Add(-10 * time.Second).Truncate(time.Second).Add(6 * time.Minute),
		},
		"failed, and tried again later": {
			reason: "Flux does nothing until then",
			in: world(inventory(had(a, graceOver)), lives(release("a", orphaned,
				saying("Ready", "False", "UpgradeFailed", time.Second, "no"), saying("Reconciling", "True", "ProgressingWithRetry", time.Second, "retrying after 5m")))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"since nobody knows when": {
			reason:  "what does not say since when would be waited for without end",
			in:      world(inventory(had(a, graceOver)), lives(release("a", orphaned, conditioned("Ready", "Unknown", "Progressing", "")))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"since a moment to come": {
			reason:  "a clock that is wrong would be waited for as long as it is wrong",
			in:      world(inventory(had(a, graceOver)), lives(release("a", orphaned, at(-time.Hour, "Running 'upgrade' action")))),
			actions: []string{"Delete a"}, standings: gone,
		},
		"suspended and abandoned": {
			reason: "Flux does nothing with it",
			in: world(inventory(had(a, graceOver)), lives(release("a", orphaned, suspended, at(time.Minute, ""))), func(in *Input) {
				in.Abandon = true
			}),
			actions: []string{"Delete a"}, standings: gone,
		},
	})
}
