// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/strata-project/strata/api/v1alpha1"
)

func updated(was, is client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: was, ObjectNew: is}
}

func TestLayerChanges(t *testing.T) {
	deployed := metav1.Condition{Type: v1alpha1.DeployedCondition, Status: metav1.ConditionTrue}
	tests := map[string]struct {
		change func(*v1alpha1.AddonsLayer)
		// layer tells whether the layer itself is woken, standing whether those
		// that depend on it are.
		layer, standing bool
	}{
		"nothing":             {func(*v1alpha1.AddonsLayer) {}, false, false},
		"resourceVersion":     {func(l *v1alpha1.AddonsLayer) { l.ResourceVersion = "2" }, false, false},
		"specification":       {func(l *v1alpha1.AddonsLayer) { l.Generation++ }, true, true},
		"annotation":          {func(l *v1alpha1.AddonsLayer) { l.Annotations = map[string]string{"kraan.io/hold": "x"} }, true, true},
		"label":               {func(l *v1alpha1.AddonsLayer) { l.Labels = map[string]string{"team": "x"} }, true, true},
		"finalizer":           {func(l *v1alpha1.AddonsLayer) { l.Finalizers = nil }, true, true},
		"deletion":            {func(l *v1alpha1.AddonsLayer) { now := metav1.Now(); l.DeletionTimestamp = &now }, true, true},
		"managed fields":      {func(l *v1alpha1.AddonsLayer) { l.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false, false},
		"state":               {func(l *v1alpha1.AddonsLayer) { l.Status.State = v1alpha1.StateDeployed }, false, true},
		"deployed version":    {func(l *v1alpha1.AddonsLayer) { l.Status.Version = "2" }, false, true},
		"deployed content":    {func(l *v1alpha1.AddonsLayer) { l.Status.Digest = "2" }, false, true},
		"observed generation": {func(l *v1alpha1.AddonsLayer) { l.Status.ObservedGeneration++ }, false, true},
		"deployed condition":  {func(l *v1alpha1.AddonsLayer) { l.Status.Conditions = []metav1.Condition{deployed} }, false, true},
		"revision only":       {func(l *v1alpha1.AddonsLayer) { l.Status.Revision = "main@sha1:2" }, false, false},
		"resources":           {func(l *v1alpha1.AddonsLayer) { l.Status.Resources = []v1alpha1.Resource{{Name: "x"}} }, false, false},
		"reason of not being ready": {func(l *v1alpha1.AddonsLayer) {
			l.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: v1alpha1.ReasonWouldBreakDependants}}
		}, false, true},
		"message": {func(l *v1alpha1.AddonsLayer) { l.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "x"}} }, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			was := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", Generation: 1, ResourceVersion: "1", Finalizers: []string{v1alpha1.Finalizer}}}
			is := was.DeepCopy()
			test.change(is)
			if got := layerChanged.Update(updated(was, is)); got != test.layer {
				t.Errorf("layerChanged is %t", got)
			}
			if got := standingChanged.Update(updated(was, is)); got != test.standing {
				t.Errorf("standingChanged is %t", got)
			}
		})
	}
}

// What others repeat of a layer wakes them, and nothing beyond that.
func TestCauseChanges(t *testing.T) {
	fails := v1alpha1.Cause{Kind: "HelmRelease", Name: "a", Reason: "InstallFailed", Message: strings.Repeat("x", 400)}
	tests := map[string]struct {
		reason string
		change func(*v1alpha1.AddonsLayer)
		// above tells whether those that depend on the layer are woken, below
		// whether those are that it depends on.
		above, below bool
	}{
		"another message":  {"they repeat it", func(l *v1alpha1.AddonsLayer) { l.Status.BlockedBy[0].Message = "y" }, true, false},
		"the end of one":   {"they repeat its beginning", func(l *v1alpha1.AddonsLayer) { l.Status.BlockedBy[0].Message += "y" }, false, false},
		"nothing any more": {"they repeat it", func(l *v1alpha1.AddonsLayer) { l.Status.BlockedBy = nil }, true, false},
		"something in time": {"what takes its time is not repeated", func(l *v1alpha1.AddonsLayer) {
			l.Status.BlockedBy = append(l.Status.BlockedBy, v1alpha1.Cause{Kind: "HelmRelease", Reason: "Progressing"})
		}, false, false},
		"while it is deleted": {"those that it depends on wait for that", func(l *v1alpha1.AddonsLayer) {
			l.Status.BlockedBy[0].Message = "y"
			l.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			was := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", Generation: 1}}
			was.Status.ObservedGeneration, was.Status.BlockedBy = 1, []v1alpha1.Cause{fails}
			is := was.DeepCopy()
			test.change(is)
			was.DeletionTimestamp = is.DeletionTimestamp
			if got := standingChanged.Update(updated(was, is)); got != test.above {
				t.Errorf("%s: standingChanged is %t", test.reason, got)
			}
			if got := needChanged.Update(updated(was, is)); got != test.below {
				t.Errorf("%s: needChanged is %t", test.reason, got)
			}
			if layerChanged.Update(updated(was, is)) {
				t.Error("a layer must not wake itself")
			}
		})
	}
}

func TestSourceChanged(t *testing.T) {
	ready := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, Message: message}}
	}
	tests := map[string]struct {
		change func(*sourcev1.GitRepository)
		want   bool
	}{
		"nothing":              {func(*sourcev1.GitRepository) {}, false},
		"resourceVersion":      {func(g *sourcev1.GitRepository) { g.ResourceVersion = "2" }, false},
		"annotation":           {func(g *sourcev1.GitRepository) { g.Annotations = map[string]string{"a": "b"} }, false},
		"specification":        {func(g *sourcev1.GitRepository) { g.Generation++ }, true},
		"observed generation":  {func(g *sourcev1.GitRepository) { g.Status.ObservedGeneration++ }, true},
		"revision":             {func(g *sourcev1.GitRepository) { g.Status.Artifact.Revision = "2" }, true},
		"digest":               {func(g *sourcev1.GitRepository) { g.Status.Artifact.Digest = "2" }, true},
		"address":              {func(g *sourcev1.GitRepository) { g.Status.Artifact.URL = "2" }, true},
		"last update":          {func(g *sourcev1.GitRepository) { g.Status.Artifact.LastUpdateTime = metav1.Now() }, true},
		"no artifact":          {func(g *sourcev1.GitRepository) { g.Status.Artifact = nil }, true},
		"not ready":            {func(g *sourcev1.GitRepository) { g.Status.Conditions = ready("False", "stored") }, true},
		"another message":      {func(g *sourcev1.GitRepository) { g.Status.Conditions = ready("True", "other") }, false},
		"a step":               {func(g *sourcev1.GitRepository) { g.Status.Conditions = ready("Unknown", "building artifact") }, false},
		"a handled annotation": {func(g *sourcev1.GitRepository) { g.Status.LastHandledReconcileAt = "now" }, false},
		"reconciling": {func(g *sourcev1.GitRepository) {
			g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: "Reconciling", Status: "True"})
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			was := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "addons", Generation: 1, ResourceVersion: "1"}}
			was.Status.Artifact = &fluxmeta.Artifact{Revision: "1", Digest: "1", URL: "1"}
			was.Status.Conditions = ready("True", "stored")
			is := was.DeepCopy()
			test.change(is)
			if got := sourceChanged.Update(updated(sourceObject(t, was), sourceObject(t, is))); got != test.want {
				t.Errorf("sourceChanged is %t", got)
			}
		})
	}
}

func TestSourceThatFailsInAnotherWay(t *testing.T) {
	failing := func(message string) *sourcev1.GitRepository {
		source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "addons"}}
		source.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Message: message}}
		return source
	}
	if !sourceChanged.Update(updated(sourceObject(t, failing("no such branch")), sourceObject(t, failing("no such host")))) {
		t.Error("its layers are not woken to say so")
	}
}

// sourceObject returns a source as the cache holds it.
func sourceObject(t *testing.T, source *sourcev1.GitRepository) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(source)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestObjectChanged(t *testing.T) {
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
				panic(err)
			}
		}
	}
	owners := []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}}
	tests := map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"nothing":          {func(*unstructured.Unstructured) {}, false},
		"resourceVersion":  {set("2", "metadata", "resourceVersion"), false},
		"generation":       {set(int64(2), "metadata", "generation"), true},
		"another object":   {set("other", "metadata", "uid"), true},
		"deletion":         {set("2026-11-21T12:00:00Z", "metadata", "deletionTimestamp"), true},
		"label":            {set("apps", "metadata", "labels", "kraan/layer"), true},
		"annotation":       {set("x", "metadata", "annotations", "a"), true},
		"ownerReferences":  {set(owners, "metadata", "ownerReferences"), true},
		"finalizers":       {set([]any{"x"}, "metadata", "finalizers"), false},
		"status":           {set("True", "status", "ready"), true},
		"an equal status":  {set("False", "status", "ready"), false},
		"spec, as a cache": {set("x", "spec", "interval"), false}, // a change of spec bumps the generation
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			was := newRelease("podinfo", "podinfo")
			for _, prepare := range []func(*unstructured.Unstructured){
				set("1", "metadata", "resourceVersion"), set(int64(1), "metadata", "generation"), set("False", "status", "ready"),
			} {
				prepare(was)
			}
			is := was.DeepCopy()
			test.change(is)
			if got := objectChanged.Update(updated(was, is)); got != test.want {
				t.Errorf("objectChanged is %t", got)
			}
		})
	}
}

// Kinds without a generation, and those of which only the metadata is read, are
// told apart by their resourceVersion.
func TestObjectChangedWithoutGeneration(t *testing.T) {
	settings := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"resourceVersion": "1"}}}
	for name, was := range map[string]client.Object{
		"content":  settings,
		"metadata": &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}},
	} {
		is := was.DeepCopyObject().(client.Object)
		if objectChanged.Update(updated(was, is)) {
			t.Errorf("%s: a resync passes", name)
		}
		is.SetResourceVersion("2")
		if !objectChanged.Update(updated(was, is)) {
			t.Errorf("%s: a change does not pass", name)
		}
	}
}

// newRelease returns a HelmRelease with a release name of its own or another's.
func newRelease(name, releaseName string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseName": releaseName}}}
	obj.SetGroupVersionKind(helmReleaseVersion)
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}
