// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

func after(names ...string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.TeardownAfter = names }
}

func TestTeardownAfter(t *testing.T) {
	going := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return layer(append([]layerChange{isDeployed(oldDir), deleted}, changes...)...)
	}
	other := func(name string, changes ...layerChange) Other {
		return Other{Layer: layer(append([]layerChange{named(name), isDeployed(oldDir)}, changes...)...)}
	}
	cases := map[string]struct {
		reason, message string
		layer           *v1alpha1.AddonsLayer
		others          []Other
		causes          []string
	}{
		"gone": {reason: "nothing is waited for", layer: going(after("x"))},
		"going": {
			reason: "it goes first", layer: going(after("y", "x")), others: []Other{other("x", deleted), other("y", deleted)},
			message: "is not deleted before layer x, y is gone (spec.teardownAfter)",
			causes:  []string{"AddonsLayer x DeletionBlocked: must be gone before base", "AddonsLayer y DeletionBlocked: must be gone before base"},
		},
		"staying": {
			reason: "somebody has to delete it", layer: going(after("x", "y")), others: []Other{other("x"), other("y", deleted)},
			message: `is not deleted before layer x, y is gone (spec.teardownAfter): delete x first, or set the annotation kraan.io/force-delete to "true"`,
			causes:  []string{"AddonsLayer x DeletionBlocked: must be gone before base", "AddonsLayer y DeletionBlocked: must be gone before base"},
		},
		"forced": {reason: "somebody insists", layer: going(after("x"), annotation(v1alpha1.ForceDeleteAnnotation, "true")), others: []Other{other("x")}},
		"itself": {reason: "its own name stands for nobody, and dependants that go need not go first", layer: going(after("base")), others: []Other{other("apps", needs("base"), deleted)}},
		"dependant that stays": {
			reason: "it would lose what it needs", layer: going(after("x")), others: []Other{other("apps", needs("base")), other("x", deleted)},
			message: `is not deleted while layer apps depends on it: delete that first, or set the annotation kraan.io/force-delete to "true"`,
			causes:  []string{"AddonsLayer apps DeletionBlocked: depends on base"},
		},
		"dependant that goes and is named": {
			reason: "it is waited for because it is named", layer: going(after("apps")), others: []Other{other("apps", needs("base"), deleted)},
			message: "is not deleted before layer apps is gone (spec.teardownAfter)",
			causes:  []string{"AddonsLayer apps DeletionBlocked: must be gone before base"},
		},
		"waits for this one too": {reason: "they would wait for each other for ever", layer: going(after("x")), others: []Other{other("x", after("y"), deleted), other("y", after("base"), deleted)}},
		"needed by this one":     {reason: "it waits for its dependants", layer: going(after("x"), needs("x")), others: []Other{other("x", deleted)}},
		"needed by this one, order turned": {
			reason: "it says itself that it does not wait", layer: going(after("x"), needs("x")), others: []Other{other("x", after("x"), deleted)},
			message: "is not deleted before layer x is gone (spec.teardownAfter)",
			causes:  []string{"AddonsLayer x DeletionBlocked: must be gone before base"},
		},
		"waits for this one by way of a dependant": {
			reason: "dependants are a part of the circle", layer: going(after("x")), others: []Other{other("x", deleted), other("y", needs("x"), after("base"), deleted)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observation(tc.layer, oldDir, lives(live("a"), live("b")), others(tc.others...))
			d := Decide(o)
			if tc.message == "" {
				if !d.Deleting || !o.AsksForBlockers() {
					t.Errorf("%s: it does not begin: %s", tc.reason, d.Message)
				}
				return
			}
			status, _ := Report(o, d, nil)
			if diff := cmp.Diff(tc.message, d.Message); diff != "" || d.Reason != v1alpha1.ReasonDeletionBlocked || d.Deleting || o.AsksForBlockers() {
				t.Errorf("%s: %s (-want +got):\n%s", tc.reason, d.Reason, diff)
			}
			if diff := cmp.Diff(tc.causes, causeLines(status.BlockedBy)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Layers of any graph that are deleted together all go, and none goes before one
// of its teardownAfter, but for those that would wait for it in turn.
func TestLayersDeletedTogetherGoAsDeleteAfterSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 6).Draw(t, "layers")
		name := func(i int) string { return string(rune('a' + i)) }
		left := map[string]*v1alpha1.AddonsLayer{}
		some := func(of string) []string {
			var names []string
			for i := range count {
				if rapid.IntRange(0, 4).Draw(t, of+" "+name(i)) == 0 {
					names = append(names, name(i))
				}
			}
			return names
		}
		for i := range count {
			left[name(i)] = layer(named(name(i)), needs(some(name(i)+" on")...), after(some(name(i)+" after")...), isDeployed(oldDir), deleted)
		}
		for len(left) > 0 {
			waits := waitsOf(left)
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
				for _, other := range l.Spec.TeardownAfter {
					if left[other] != nil && !waits[other][name] && other != name {
						t.Fatalf("%s goes before %s", name, other)
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

// waitsOf is the slow and obvious reference: which layer waits for which,
// directly or not, where all are being deleted.
func waitsOf(left map[string]*v1alpha1.AddonsLayer) map[string]map[string]bool {
	waits := map[string]map[string]bool{}
	for name, l := range left {
		waits[name] = map[string]bool{}
		for other, found := range left {
			waits[name][other] = name != other && (slices.Contains(l.Spec.TeardownAfter, other) ||
				len(l.Spec.TeardownAfter) == 0 && slices.Contains(dependencyNames(found), name))
		}
	}
	for range left {
		for from := range left {
			for over := range left {
				for to := range left {
					waits[from][to] = waits[from][to] || waits[from][over] && waits[over][to]
				}
			}
		}
	}
	return waits
}
