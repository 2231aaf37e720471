// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// A HelmRelease that anybody has made in a namespace of their own stops no layer:
// what is deployed goes on, and what is new waits only for one that may be first.
func TestForeignReleasesStopNoLayer(t *testing.T) {
	rival := func(changes map[string]any) *unstructured.Unstructured {
		obj := live("x")
		obj.SetNamespace("tenant")
		obj.SetLabels(nil)
		spec := map[string]any{"releaseName": "a", "storageNamespace": "default"}
		for field, value := range changes {
			spec[field] = value
		}
		obj.Object["spec"] = spec
		return obj
	}
	labelled := func(obj *unstructured.Unstructured, layer string) *unstructured.Unstructured {
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: layer, v1alpha1.OrphanedLabel: "x"})
		return obj
	}
	annotated := func(obj *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
		obj.SetAnnotations(map[string]string{key: value})
		return obj
	}
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"), directoriestest.HelmRelease("b"))
	cases := map[string]struct {
		reason string
		rival  *unstructured.Unstructured
		// waits is true where a new release waits.
		waits bool
	}{
		"suspended":                          {"it installs nothing", rival(map[string]any{"suspend": true}), false},
		"with an account":                    {"an account of another namespace may not store the release", rival(map[string]any{"serviceAccountName": "mine"}), false},
		"with a target":                      {"where it installs does not matter", rival(map[string]any{"suspend": true, "targetNamespace": "default"}), false},
		"suspended and labelled":             {"the layer of its label has no such release", labelled(rival(map[string]any{"suspend": true}), "mesh"), false},
		"labelled as the layer's own":        {"who can write the label need not be able to write the Helm release", labelled(rival(map[string]any{"serviceAccountName": "mine"}), "base"), false},
		"labelled for a layer that is gone":  {"nor is that evidence", labelled(rival(map[string]any{"suspend": true}), "gone"), false},
		"said to be succeeded":               {"nor is an annotation", annotated(rival(map[string]any{"suspend": true}), v1alpha1.SupersededByAnnotation, "HelmRelease/default/a"), false},
		"awake, labelled as the layer's own": {"it may still install first", labelled(rival(nil), "base"), true},
		"awake, without an account":          {"helm-controller may install it with its own rights", rival(nil), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, deployed := range []bool{true, false} {
				o := observation(layer(), dir, lives(live("b")))
				if deployed {
					o = observation(layer(isDeployed(dir)), dir, lives(live("a"), live("b")))
				}
				id := objects.IDOf(tc.rival)
				o.Live[id] = tc.rival
				o.Others.Existing = map[string]bool{"mesh": true}
				o.Exclusive = map[string][]objects.ID{kinds.HelmReleaseIdentity(tc.rival): {releaseID("a"), id}}
				d := Decide(o)
				status, _ := Report(o, d, nil)
				if d.Stalled || d.State == v1alpha1.StateFailed || deployed && d.State != v1alpha1.StateDeployed {
					t.Errorf("%s: the layer is %s, stalled %v: %s", tc.reason, d.State, d.Stalled, d.Message)
				}
				contested := meta.FindStatusCondition(status.Conditions, v1alpha1.ContestedCondition)
				if contested == nil || !strings.Contains(contested.Message, "HelmRelease tenant/x, which no layer has, stands for the same Helm release as HelmRelease default/a (base/a.yaml)") {
					t.Errorf("%s: the warning is %+v", tc.reason, contested)
				}
				if waits := strings.Contains(d.Message, "waits for HelmRelease tenant/x"); waits != (tc.waits && !deployed) {
					t.Errorf("%s: deployed %v, waits %v: %s", tc.reason, deployed, waits, d.Message)
				}
				for _, action := range d.Plan.Actions {
					if action.ID == id {
						t.Errorf("%s: %s of what is not the layer's", tc.reason, action.Verb)
					}
				}
			}
		})
	}
}
