// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

var (
	testNow = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	longAgo = metav1.NewTime(testNow.Add(-time.Hour).Truncate(time.Second))
)

const (
	oldRevision = "main@sha1:old"
	newRevision = "main@sha1:new"
)

func releaseID(name string) objects.ID {
	return objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "default", Name: name}
}

type layerChange func(*v1alpha1.AddonsLayer)

// layer returns the layer base at version 1.0.0 and generation 1.
func layer(changes ...layerChange) *v1alpha1.AddonsLayer {
	l := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", Generation: 1, UID: "uid-base"}}
	l.Spec.Version = "1.0.0"
	l.Spec.Source = v1alpha1.SourceSpec{Name: "addons", Path: "./base"}
	l.Status.ObservedGeneration = -1
	for _, change := range changes {
		change(l)
	}
	return l
}

func named(name string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Name, l.UID = name, types.UID("uid-"+name) }
}

func annotation(key, value string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { metav1.SetMetaDataAnnotation(&l.ObjectMeta, key, value) }
}

func needs(dependsOn ...string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.DependsOn = dependsOn }
}

func k8s(version string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = version }
}

func deleted(l *v1alpha1.AddonsLayer) {
	moment := metav1.NewTime(testNow)
	l.DeletionTimestamp = &moment
	l.Generation++
}

// isDeployed gives a layer the status of one that has deployed a directory.
func isDeployed(dir *directories.Directory) layerChange {
	return func(l *v1alpha1.AddonsLayer) {
		l.Status.State, l.Status.ObservedGeneration = v1alpha1.StateDeployed, l.Generation
		l.Status.Version, l.Status.Revision, l.Status.Digest = l.Spec.Version, dir.Revision, dir.Digest
		l.Status.Attempt = &v1alpha1.Attempt{Version: l.Spec.Version, Revision: dir.Revision, Digest: dir.Digest, StartTime: longAgo}
		l.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "Deployed", Message: "is deployed", ObservedGeneration: l.Generation, LastTransitionTime: longAgo},
			{Type: "Deployed", Status: "True", Reason: "Deployed", Message: "is deployed", ObservedGeneration: l.Generation, LastTransitionTime: longAgo},
		}
		content, err := Content(dir, l.Name, l.Spec.Version, nil)
		if err != nil {
			panic(err)
		}
		var entries []dependents.Entry
		for _, d := range content {
			entries = append(entries, dependents.Entry{
				ID: d.ID, Digest: d.Digest, Generation: 1, Status: objects.StatusReady, Since: longAgo.Time, DependsOn: d.DependsOn, Origin: d.Origin,
			})
		}
		l.Status.Resources = shortFiles(l, Resources(entries))
	}
}

// inState changes what a layer's status says of itself.
func inState(state v1alpha1.State, ready metav1.ConditionStatus) layerChange {
	return func(l *v1alpha1.AddonsLayer) {
		l.Status.State = state
		l.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: ready, Reason: string(state), Message: "no such chart", ObservedGeneration: l.Generation, LastTransitionTime: longAgo},
			{Type: "Deployed", Status: "False", Reason: string(state), Message: "no such chart", ObservedGeneration: l.Generation, LastTransitionTime: longAgo},
		}
	}
}

// observation returns what is seen of a layer whose directory can be read.
func observation(l *v1alpha1.AddonsLayer, dir *directories.Directory, changes ...func(*Observation)) Observation {
	o := Observation{
		Now: testNow, Settings: Settings{Interval: time.Minute, Namespace: "gotk-system", MaxPrunePercent: 50}, Layer: l, Layers: map[string]Other{},
		ObservedSource:   ObservedSource{Source: &Source{Generation: 1, ObservedGeneration: 1, Revision: newRevision, Digest: "sha256:x", Ready: true}},
		ObservedContents: ObservedContents{Directory: dir},
		ObservedClusters: ObservedClusters{
			ClusterVersion: "v1.36.3",
			Scopes:         map[objects.ServedKind]objects.Scope{{GroupKind: kinds.HelmReleaseKind}: objects.ScopeNamespaced, {GroupKind: schema.GroupKind{Kind: "Namespace"}}: objects.ScopeCluster, {GroupKind: schema.GroupKind{Kind: "ConfigMap"}}: objects.ScopeNamespaced},
		},
		ObservedObjects: ObservedObjects{
			Live:      map[objects.ID]*unstructured.Unstructured{},
			Stale:     map[objects.ID]bool{},
			Exclusive: map[string][]objects.ID{},
		},
	}
	if dir != nil {
		o.Source.Revision = dir.Revision
		if l.Status.Digest == dir.Digest {
			o.Deployed = dir
		}
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

// live returns a HelmRelease of the layer base that is Ready at generation 1.
func live(name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	obj := directoriestest.HelmRelease(name).Object.DeepCopy()
	obj.SetLabels(map[string]string{v1alpha1.LayerLabel: "base"})
	obj.SetGeneration(1)
	obj.SetUID(types.UID("uid-" + name))
	obj.SetResourceVersion("7")
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	for _, change := range changes {
		change(obj)
	}
	return obj
}

func failing(obj *unstructured.Unstructured) {
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "no such chart"},
	}}
}

func gaveUp(obj *unstructured.Unstructured) {
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "no such chart"},
		map[string]any{"type": "Stalled", "status": "True", "reason": "RetriesExceeded"},
	}}
}

func drifted(obj *unstructured.Unstructured) { obj.SetGeneration(2) }

func marked(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	labels[v1alpha1.OrphanedLabel] = "2026-01-02T02.04.05Z"
	obj.SetLabels(labels)
}

func suspendedByHand(obj *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(obj.Object, true, "spec", "suspend")
}

func of(owner string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{v1alpha1.LayerLabel: owner}) }
}

func lives(objs ...*unstructured.Unstructured) func(*Observation) {
	return func(o *Observation) {
		for _, obj := range objs {
			o.Live[objects.IDOf(obj)] = obj
		}
	}
}

func others(list ...Other) func(*Observation) {
	return func(o *Observation) {
		for _, other := range list {
			o.Layers[other.Layer.Name] = other
		}
	}
}

// verbs writes the actions of a plan as a table shows them.
func verbs(plan dependents.Plan) string {
	var words []string
	for _, action := range plan.Actions {
		words = append(words, fmt.Sprintf("%s %s", action.Verb, action.ID.Name))
	}
	return strings.Join(words, ", ")
}

// conditionsOf writes conditions as a table shows them.
func conditionsOf(s v1alpha1.AddonsLayerStatus) string {
	var words []string
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// withStatus returns a layer as it is after a status was written.
func withStatus(l *v1alpha1.AddonsLayer, s v1alpha1.AddonsLayerStatus) *v1alpha1.AddonsLayer {
	next := l.DeepCopy()
	next.Status = *s.DeepCopy()
	return next
}

// kstatusOf is what kubectl wait and others make of a status.
func kstatusOf(t interface{ Fatal(...any) }, l *v1alpha1.AddonsLayer, s v1alpha1.AddonsLayerStatus) status.Status {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withStatus(l, s))
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// decided is what a table says of a decision and its report.
type decided struct {
	state      v1alpha1.State
	actions    string
	conditions string
	kstatus    status.Status
	message    string
}

func decide(t *testing.T, o Observation) (Decision, v1alpha1.AddonsLayerStatus, decided) {
	t.Helper()
	decision := Decide(o)
	report, _ := Report(o, decision, nil)
	return decision, report, decided{
		state: report.State, actions: verbs(decision.Plan), conditions: conditionsOf(report),
		kstatus: kstatusOf(t, o.Layer, report), message: decision.Message,
	}
}

// prod is another cluster, and the layer base on it.
var prod = placement.Place{Layer: "base", Cluster: types.NamespacedName{Namespace: "fleet", Name: "prod"}}
