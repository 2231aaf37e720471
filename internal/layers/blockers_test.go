// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

func certificates(fate Fate, count int64, namespaces ...string) Blocker {
	return Blocker{Resource: schema.GroupResource{Group: "cert-manager.io", Resource: "certificates"}, Fate: fate, Count: count, Namespaces: namespaces}
}

func claims(fate Fate, count int64, namespaces ...string) Blocker {
	return Blocker{Resource: schema.GroupResource{Resource: "persistentvolumeclaims"}, Fate: fate, Count: count, Namespaces: namespaces}
}

// begun gives a layer the status of one whose deletion has begun.
func begun(l *v1alpha1.AddonsLayer) {
	l.Status.Conditions = append(l.Status.Conditions, metav1.Condition{
		Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeleting, LastTransitionTime: longAgo,
	})
}

func TestBlockersMessage(t *testing.T) {
	const or = `, or set the annotation kraan.io/confirm-deletion to "true"`
	issuers := Blocker{Resource: schema.GroupResource{Group: "cert-manager.io", Resource: "clusterissuers"}, Fate: FateUnattended, Count: 2}
	many := certificates(FateDeleted, 9000, "a", "b")
	many.MoreNamespaces = true
	secret := certificates(FateUnattended, 0)
	secret.Unknown = "certificates is forbidden"
	var crowd []Blocker
	for i := range maxBlockers + 2 {
		crowd = append(crowd, Blocker{Resource: schema.GroupResource{Group: "x.io", Resource: fmt.Sprintf("r%02d", i)}, Fate: FateDeleted, Count: 1})
	}
	cases := map[string]struct {
		reason, want string
		blockers     []Blocker
	}{
		"nothing":       {"nothing is in the way", "", nil},
		"one namespace": {"it is named", "is not deleted while 12 certificates.cert-manager.io in namespace shop would be deleted with it: delete them first" + or, []Blocker{certificates(FateDeleted, 12, "shop")}},
		"namespaces":    {"they are counted", "is not deleted while 12 certificates.cert-manager.io in 3 namespaces would be deleted with it: delete them first" + or, []Blocker{certificates(FateDeleted, 12, "a", "b", "c")}},
		"no namespace":  {"they live in none", "is not deleted while 2 clusterissuers.cert-manager.io would be left without a controller: delete them first" + or, []Blocker{issuers}},
		"several": {
			"what is lost comes first",
			"is not deleted while 12 certificates.cert-manager.io in namespace shop would be deleted with it, " +
				"and 2 clusterissuers.cert-manager.io would be left without a controller, " +
				"and 3 persistentvolumeclaims in namespace db would be left behind: delete them first" + or,
			[]Blocker{claims(FateKept, 3, "db"), issuers, certificates(FateDeleted, 12, "shop")},
		},
		"too many to look at": {"the number of namespaces is not known", "is not deleted while 9000 certificates.cert-manager.io in 2 or more namespaces would be deleted with it: delete them first" + or, []Blocker{many}},
		"not known": {
			"what may not be looked at is not given up, and the right that is missing is named",
			"is not deleted while it is not known whether there are certificates.cert-manager.io, which would be left without a controller " +
				"(certificates is forbidden): let the controller list them" + or,
			[]Blocker{secret},
		},
		"both": {
			"both ways out are said",
			"is not deleted while 1 persistentvolumeclaims in namespace db would be deleted with it, and it is not known whether there are " +
				"certificates.cert-manager.io, which would be left without a controller (certificates is forbidden): delete them first, let the controller list them" + or,
			[]Blocker{secret, claims(FateDeleted, 1, "db")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, blockersMessage(tc.blockers)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if got := blockersMessage(crowd); strings.Contains(got, "r08") || !strings.Contains(got, "the same goes for 2 more resources: delete") {
		t.Errorf("a crowd is not cut: %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		all := []Blocker{crowd[0], crowd[1], secret, many, claims(FateKept, 3, "db")}
		if got := blockersMessage(rapid.Permutation(all).Draw(t, "order")); got != blockersMessage(all) {
			t.Errorf("the order matters: %s", got)
		}
	})
}

// What stands in the way of a deletion is asked for only when it matters.
func TestAsksForBlockers(t *testing.T) {
	pair := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	dependant := others(Other{Layer: layer(named("apps"), needs("base@1.0.0"), isDeployed(oldDir))})
	cases := map[string]struct {
		reason string
		layer  []layerChange
		change func(*Observation)
		want   bool
	}{
		"not deleted":  {"there is nothing to ask", nil, nil, false},
		"deleted":      {"the deletion is about to begin", []layerChange{deleted}, nil, true},
		"begun":        {"nothing stops it half way", []layerChange{deleted, begun}, nil, false},
		"restored":     {"what has begun was another layer's life", []layerChange{begun}, nil, false},
		"confirmed":    {"somebody knows", []layerChange{deleted, annotation(v1alpha1.ConfirmDeletionAnnotation, "true")}, nil, false},
		"not quite":    {"only the word true confirms", []layerChange{deleted, annotation(v1alpha1.ConfirmDeletionAnnotation, "yes")}, nil, true},
		"forced":       {"to force is not to confirm", []layerChange{deleted, annotation(v1alpha1.ForceDeleteAnnotation, "true")}, dependant, true},
		"dependant":    {"another layer is in the way already", []layerChange{deleted}, dependant, false},
		"keeps all":    {"nothing is deleted", []layerChange{deleted, func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }}, nil, false},
		"rights first": {"the layer's own kinds come first", []layerChange{deleted}, func(o *Observation) { o.KindError = fmt.Errorf("no") }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := observation(layer(append([]layerChange{isDeployed(pair)}, tc.layer...)...), pair)
			if tc.change != nil {
				tc.change(&o)
			}
			if got := o.AsksForBlockers(); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestDeparting(t *testing.T) {
	pair := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	definition := func(annotations map[string]string) *unstructured.Unstructured {
		obj := directoriestest.Any("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.x.io").Object
		obj.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
		obj.SetAnnotations(annotations)
		return obj
	}
	goes := map[string]string{v1alpha1.PruneAnnotation: "enabled", v1alpha1.CreatedForAnnotation: "base"}
	foreign := map[string]string{v1alpha1.PruneAnnotation: "enabled"}
	stays := func(obj *unstructured.Unstructured) {
		obj.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	}
	going := func(obj *unstructured.Unstructured) { now := metav1.NewTime(testNow); obj.SetDeletionTimestamp(&now) }
	elsewhere := func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(obj.Object, map[string]any{"secretRef": map[string]any{"name": "edge"}}, "spec", "kubeConfig")
	}
	abandon := annotation(v1alpha1.AbandonAnnotation, "true")
	claimed := func(o *Observation) {
		o.Others.Listed = map[objects.ID][]dependents.Claim{releaseID("a"): {{Owner: "apps"}}}
	}
	renamed := func(o *Observation) {
		o.Others.Exclusive = map[string][]dependents.Claim{kinds.HelmReleaseIdentity(directoriestest.HelmRelease("a").Object): {{Owner: "apps"}}}
	}
	cases := map[string]struct {
		reason string
		live   *unstructured.Unstructured
		layer  layerChange
		change func(*Observation)
		want   string
	}{
		"release":              {"it is uninstalled", live("a"), nil, nil, "a"},
		"another layer's":      {"it is not this one's to delete", live("a", of("apps")), nil, nil, ""},
		"listed by another":    {"that one adopts it", live("a"), nil, claimed, ""},
		"renamed in another":   {"that one succeeds it", live("a"), nil, renamed, ""},
		"kept":                 {"it is released", live("a", stays), nil, nil, ""},
		"going":                {"somebody has decided", live("a", going), nil, nil, ""},
		"suspended":            {"it is uninstalled once it is resumed", live("a", suspendedByHand), nil, nil, "a"},
		"abandoned":            {"nothing is uninstalled", live("a", suspendedByHand), abandon, nil, ""},
		"on another cluster":   {"what it owns is not here", live("a", elsewhere), nil, nil, ""},
		"definition":           {"it is released", definition(nil), nil, nil, ""},
		"definition that goes": {"it takes its objects with it", definition(goes), nil, nil, "widgets.x.io"},
		"definition of others": {"it is released, whatever it says", definition(foreign), nil, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := layer(isDeployed(pair), deleted)
			if tc.layer != nil {
				tc.layer(l)
			}
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Kind: kinds.ResourceKind(kinds.DefinitionKind), Name: "widgets.x.io"})
			o := observation(l, pair, lives(tc.live))
			if tc.change != nil {
				tc.change(&o)
			}
			var names []string
			for _, id := range o.Departing() {
				names = append(names, id.Name)
			}
			if got := strings.Join(names, ", "); got != tc.want {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

// What stands in the way blocks a deletion until it has begun, and is looked at
// again; the begin is recorded before anything is written.
func TestDeletionBlockedByContents(t *testing.T) {
	pair := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	blocked := func(o *Observation) { o.Blockers = []Blocker{certificates(FateDeleted, 2, "shop")} }
	decide := func(changes ...layerChange) (Decision, v1alpha1.AddonsLayerStatus, Observation) {
		o := observation(layer(append([]layerChange{isDeployed(pair), deleted}, changes...)...), pair, lives(live("a")), blocked)
		d := Decide(o)
		status, _ := Report(o, d, nil)
		return d, status, o
	}
	d, status, o := decide()
	if d.Reason != v1alpha1.ReasonDeletionBlocked || d.Plan.Writes() || !d.Until.Equal(testNow.Add(30*time.Second)) || d.Deleting {
		t.Errorf("it goes on: %+v", d)
	}
	if NeedsRecord(o.Layer.Status, status) || conditionsOf(status) != "Deployed=False/DeletionBlocked Ready=Unknown/DeletionBlocked Reconciling=True/DeletionBlocked" {
		t.Errorf("the conditions are %s", conditionsOf(status))
	}
	hold := testNow.Add(time.Second)
	if d, _, _ := decide(annotation(v1alpha1.HoldAnnotation, "x"), annotation(v1alpha1.HoldUntilAnnotation, hold.Format(time.RFC3339Nano))); !d.Until.Equal(hold) || !d.Hold.Active {
		t.Errorf("a hold that ends sooner is overlooked: %v", d.Until)
	}
	for name, change := range map[string]layerChange{"confirmed": annotation(v1alpha1.ConfirmDeletionAnnotation, "true"), "begun": begun} {
		d, status, o := decide(change)
		if verbs(d.Plan) != "Mark a" || d.Reason != v1alpha1.ReasonDeleting {
			t.Errorf("%s: it does not go on: %+v", name, d)
		}
		if !strings.Contains(conditionsOf(status), "Deleting=True/Deleting") || NeedsRecord(o.Layer.Status, status) != (name == "confirmed") {
			t.Errorf("%s: the begin is not recorded once: %s", name, conditionsOf(status))
		}
	}
	dependant := others(Other{Layer: layer(named("apps"), needs("base@1.0.0"), isDeployed(oldDir))})
	o = observation(layer(isDeployed(pair), deleted, begun), pair, lives(live("a")), dependant)
	if status, _ := Report(o, Decide(o), nil); !strings.Contains(conditionsOf(status), "Deleting=True") {
		t.Errorf("what has begun is forgotten: %s", conditionsOf(status))
	}
}
