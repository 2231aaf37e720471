// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
)

func TestDecideDeletion(t *testing.T) {
	pair := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b", "dependsOn", []any{map[string]any{"name": "a"}}))
	going := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{isDeployed(pair), deleted}, changes...)...)
	}
	graceOver := func(l *v1alpha1.AddonsLayer) {
		for i := range l.Status.Resources {
			l.Status.Resources[i].Status = objects.StatusOrphaned
			l.Status.Resources[i].LastTransitionTime.Time = testNow.Add(-2 * time.Minute).Truncate(time.Second)
		}
	}
	planned := func(l *v1alpha1.AddonsLayer) {
		l.Status.Resources = Resources([]dependents.Entry{{ID: releaseID("c"), Status: objects.StatusMissing}})
	}
	rollingOut := func(l *v1alpha1.AddonsLayer) { l.Status.Attempt = &v1alpha1.Attempt{Digest: "x"} }
	adopted := func(l *v1alpha1.AddonsLayer) { l.Status.Resources[0].Status = objects.StatusReady }
	orphan := func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }
	held := annotation(v1alpha1.HoldAnnotation, "freeze")
	both := lives(live("a"), live("b"))
	ended := lives(live("a", marked), live("b", marked))
	dependant := others(Other{Layer: layer(named("apps"), needs("base@1.0.0"), isDeployed(oldDir))})
	const blocked = `is not deleted while layer apps depends on it: delete that first, or set the annotation kraan.io/force-delete to "true"`
	busy := func(o *Observation) { o.BlockersError = errors.New("the server is busy") }
	cases := map[string]struct {
		reason, actions, why, message string
		in                            Observation
		finalized, held               bool
	}{
		"not known what would be lost": {
			reason: "nothing is deleted before that is known, and it is said", in: observation(going(), pair, both, busy),
			why: "DeletionBlocked", message: "is not deleted while it cannot be looked up what stands in the way: the server is busy",
		},
		"not known what would be lost, and confirmed": {
			reason: "who confirms does not care", in: observation(going(annotation(v1alpha1.ConfirmDeletionAnnotation, "true")), pair, both, busy),
			actions: "Mark a, Mark b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a waits until 2026-01-02T03:05:06Z for another layer to adopt it",
		},
		"begins": {
			reason: "its releases are orphans first, so that they can be adopted", in: observation(going(), pair, both),
			actions: "Mark a, Mark b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a waits until 2026-01-02T03:05:06Z for another layer to adopt it",
		},
		"reverse order": {
			reason: "what depends on another goes first", in: observation(going(graceOver), pair, ended), actions: "Delete b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"last": {
			reason: "then the other", in: observation(going(graceOver), pair, lives(live("a", marked))), actions: "Delete a", why: "Deleting",
			message: "is being deleted, 1 objects left: HelmRelease default/a is being removed",
		},
		"nothing left": {
			reason: "the finalizer may go", in: observation(going(graceOver), pair), why: "Deleting", message: "has nothing left", finalized: true,
		},
		"without source": {
			reason: "what is there goes whatever becomes of the source", in: observation(going(graceOver), nil, ended, func(o *Observation) { o.Source = nil }),
			actions: "Delete b", why: "Deleting", message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"held": {
			reason: "deletion proceeds under hold", in: observation(going(graceOver, held), pair, ended), actions: "Delete b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"suspended by hand": {
			reason: "Flux would uninstall nothing", in: observation(going(graceOver), pair, lives(live("a", marked, suspendedByHand))), why: "SuspendedRelease",
			message: "is being deleted, 1 objects left: HelmRelease default/a is suspended, so Flux would drop it without uninstalling anything: " +
				"resume it, or abandon what it installed with the annotation kraan.io/abandon",
		},
		"abandoned": {
			reason: "somebody gave up what it installed", in: observation(going(graceOver, annotation(v1alpha1.AbandonAnnotation, "true")), pair, lives(live("a", marked, suspendedByHand))),
			actions: "Delete a", why: "Deleting", message: "is being deleted, 1 objects left: HelmRelease default/a is being removed",
		},
		"policy Orphan": {
			reason: "they stay, without owner", in: observation(going(orphan), pair, both), actions: "Release a, Release b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a is released and kept",
		},
		"policy Orphan, released": {
			reason: "what is nobody's is not this layer's", in: observation(going(orphan), pair, lives(live("a", of("")), live("b", of("")))),
			why: "Deleting", message: "has nothing left", finalized: true,
		},
		"adopted": {
			reason: "what another layer has taken is its own", in: observation(going(graceOver), pair, lives(live("a", of("mesh")), live("b", of("mesh")))),
			why: "Deleting", message: "has nothing left", finalized: true,
		},
		"dependant": {
			reason: "it is needed; drift is repaired until then", in: observation(going(), pair, lives(live("a", drifted), live("b")), dependant, func(o *Observation) { o.Deployed = pair }),
			actions: "Write a", why: "DeletionBlocked", message: blocked,
		},
		"dependant, held": {
			reason: "a hold holds until the deletion begins", in: observation(going(held), pair, lives(live("a", drifted), live("b")), dependant, func(o *Observation) { o.Deployed = pair }),
			why: "DeletionBlocked", message: blocked, held: true,
		},
		"dependant, forced": {
			reason: "somebody insists", in: observation(going(annotation(v1alpha1.ForceDeleteAnnotation, "true")), pair, both, dependant),
			actions: "Mark a, Mark b", why: "Deleting",
			message: "is being deleted, 2 objects left: HelmRelease default/a waits until 2026-01-02T03:05:06Z for another layer to adopt it",
		},
		"dependant that is going": {
			reason: "it goes first", in: observation(going(), pair, both, others(Other{Layer: layer(named("apps"), needs("base"), isDeployed(oldDir), deleted)})),
			why: "DeletionBlocked", message: blocked,
		},
		"dependant without anything": {
			reason: "it loses nothing", in: observation(going(graceOver), pair, ended, others(Other{Layer: layer(named("apps"), needs("base"))})),
			actions: "Delete b", why: "Deleting", message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"dependant that waits": {
			reason: "what it lists it does not have", in: observation(going(graceOver), pair, ended, others(Other{Layer: layer(named("apps"), needs("base"), planned)})),
			actions: "Delete b", why: "Deleting", message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"dependant that has begun": {
			reason: "the inventory comes before the first write", in: observation(going(), pair, both, others(Other{Layer: layer(named("apps"), needs("base"), planned, rollingOut)})),
			why: "DeletionBlocked", message: blocked,
		},
		"dependant that has adopted": {
			reason: "it has what another layer had deployed", in: observation(going(), pair, both, others(Other{Layer: layer(named("apps"), needs("base"), planned, adopted)})),
			why: "DeletionBlocked", message: blocked,
		},
		"member of its own cycle": {
			reason: "both would wait for each other for ever",
			in: observation(going(graceOver, needs("mesh")), pair, ended,
				others(Other{Layer: layer(named("mesh"), needs("apps"))}, Other{Layer: layer(named("apps"), needs("base"), isDeployed(oldDir))})),
			actions: "Delete b", why: "Deleting", message: "is being deleted, 2 objects left: HelmRelease default/a goes after HelmRelease default/b",
		},
		"rights missing": {
			reason: "what cannot be looked at is not given up", in: observation(going(), pair, both, func(o *Observation) { o.KindError = errors.New("cannot list issuers") }),
			why: "PruneFailed", message: "the controller lacks rights: cannot list issuers; add the kind to rbac.kinds of the chart",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			type outcome struct {
				Actions, Why, Message string
				Finalized, Held       bool
				State                 v1alpha1.State
			}
			want := outcome{tc.actions, tc.why, tc.message, tc.finalized, tc.held, v1alpha1.StatePruning}
			if diff := cmp.Diff(want, outcome{verbs(d.Plan), d.Reason, d.Message, d.Finalized, d.Hold.Active, d.State}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if blocked := d.Reason == v1alpha1.ReasonDeletionBlocked; tc.in.BlockersError != nil && (d.Retry != nil) != blocked {
				t.Errorf("it is tried again because of %v", d.Retry)
			}
		})
	}
}

// Layers of any graph that are deleted together all go, and none goes before
// one that depends on it, but for members of its own cycle.
func TestLayersDeletedTogetherGoInReverseOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 7).Draw(t, "layers")
		name := func(i int) string { return string(rune('a' + i)) }
		// reaches is the slow and obvious reference.
		reaches := map[string]map[string]bool{}
		left := map[string]*v1alpha1.AddonsLayer{}
		dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("x"))
		for i := range count {
			var on []string
			reaches[name(i)] = map[string]bool{}
			for j := range count {
				if i != j && rapid.IntRange(0, 3).Draw(t, name(i)+" on "+name(j)) == 0 {
					on = append(on, name(j))
					reaches[name(i)][name(j)] = true
				}
			}
			left[name(i)] = layer(named(name(i)), needs(on...), isDeployed(dir), deleted)
		}
		for range count {
			for from := range reaches {
				for over := range reaches[from] {
					for to := range reaches[over] {
						reaches[from][to] = true
					}
				}
			}
		}
		for len(left) > 0 {
			var going []string
			for name, l := range left {
				o := observation(l, nil)
				for other, l := range left {
					if other != name {
						o.Layers[other] = Other{Layer: l}
					}
				}
				if Decide(o).Reason == v1alpha1.ReasonDeletionBlocked {
					continue
				}
				going = append(going, name)
				for other := range left {
					if other != name && slices.Contains(dependencyNames(left[other]), name) && !reaches[name][other] {
						t.Fatalf("%s goes before %s, which depends on it", name, other)
					}
				}
			}
			if len(going) == 0 {
				t.Fatalf("these wait for each other for ever: %v", slices.Sorted(maps.Keys(left)))
			}
			for _, name := range going {
				delete(left, name)
			}
		}
	})
}

func dependencyNames(l *v1alpha1.AddonsLayer) []string {
	found, _ := dependencies.ParseAll(l.Spec.Prereqs.DependsOn)
	names := make([]string, 0, len(found))
	for _, dependency := range found {
		names = append(names, dependency.Name)
	}
	return names
}

// A deletion that has begun is not taken back half way: what was uninstalled
// would be installed again.
func TestDeletionThatHasBegunGoesOn(t *testing.T) {
	begun := func(l *v1alpha1.AddonsLayer) {
		l.Status.Conditions = append(l.Status.Conditions, metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue})
		for i := range l.Status.Resources {
			l.Status.Resources[i].Status = objects.StatusDeleting
		}
	}
	dependant := Other{Layer: layer(named("apps"), needs("base"), isDeployed(oldDir))}
	for name, in := range map[string]Observation{
		"a layer begins to depend on it": observation(layer(isDeployed(newDir), deleted, begun), newDir, lives(live("b")), others(dependant)),
		"a right is lost":                observation(layer(isDeployed(newDir), deleted, begun), newDir, lives(live("b")), func(o *Observation) { o.KindError = errors.New("forbidden") }),
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(in)
			if d.Reason == v1alpha1.ReasonDeletionBlocked || len(d.Plan.Of(dependents.VerbWrite)) > 0 {
				t.Errorf("%s: %s, actions %q", d.Reason, d.Message, verbs(d.Plan))
			}
		})
	}
}
