// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/test/forged"
)

// listedAs returns an object as a directory has it, and as it is once it was applied.
func listedAs(apiVersion, kind, name string, spec map[string]any, changes ...func(*unstructured.Unstructured)) (directories.Manifest, *unstructured.Unstructured) {
	manifest := directoriestest.Any(apiVersion, kind, "default", name)
	manifest.Object.Object["spec"] = spec
	obj := live(name)
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.Object["spec"] = manifest.Object.DeepCopy().Object["spec"]
	delete(obj.Object, "status")
	for _, change := range changes {
		change(obj)
	}
	return manifest, obj
}

func hasCondition(kind string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
	}
}

func beingDeleted(obj *unstructured.Unstructured) {
	now := metav1.NewTime(testNow)
	obj.SetDeletionTimestamp(&now)
}

// served has the observation know that the kinds of objects are served.
func served(o Observation, objs ...*unstructured.Unstructured) Observation {
	for _, obj := range objs {
		o.Scopes[objects.IDOf(obj).ServedKind()] = objects.ScopeNamespaced
	}
	return o
}

// A Job that has a TTL is run once for each content: what was seen of it is in the status, and the
// layer stays deployed when the Job goes.
func TestJobThatItsTTLTakesAway(t *testing.T) {
	migrate, job := listedAs("batch/v1", "Job", "migrate", map[string]any{"ttlSecondsAfterFinished": int64(5)}, hasCondition("Complete"))
	dir := directoriestest.Of(newRevision, migrate)
	o := served(situation(dir, job), job)
	_, report, got := decide(t, o)
	if got.state != v1alpha1.StateDeployed || len(report.Resources) != 1 || !report.Resources[0].Completed {
		t.Fatalf("%s, and it is not said that the Job has completed: %+v", got.message, report.Resources)
	}
	gone := served(observation(withStatus(o.Layer, report), dir), job)
	_, after, got := decide(t, gone)
	if got.state != v1alpha1.StateDeployed || got.actions != "" {
		t.Errorf("%s, with %q: %s", got.state, got.actions, got.message)
	}
	if diff := cmp.Diff(report.Resources, after.Resources); diff != "" {
		t.Errorf("it says something else when the Job is gone: %s", diff)
	}
	// What somebody else has written counts for nothing.
	foreign := gone
	foreign.Layer = gone.Layer.DeepCopy()
	foreign.Layer.Status.Conditions = notCounting()
	if _, _, got := decide(t, foreign); got.actions != "Write migrate" {
		t.Errorf("a status that does not count keeps a Job from running: %q", got.actions)
	}
	other, _ := listedAs("batch/v1", "Job", "migrate", map[string]any{"ttlSecondsAfterFinished": int64(6)})
	if _, _, got := decide(t, served(observation(withStatus(o.Layer, report), directoriestest.Of(newRevision, other)), job)); got.actions != "Write migrate" {
		t.Errorf("another content is not run: %q", got.actions)
	}
}

// That a Job has completed keeps it from being run, and has nothing written.
func TestForgedCompletionWithholds(t *testing.T) {
	if v1alpha1.StatusFields(v1alpha1.AddonsLayerKind)["resources[].completed"] != v1alpha1.Withholds {
		t.Error("it is in another class")
	}
	migrate, job := listedAs("batch/v1", "Job", "migrate", map[string]any{"ttlSecondsAfterFinished": int64(5)})
	dir := directoriestest.Of(newRevision, migrate, directoriestest.HelmRelease("a"))
	withheld := false
	for name, objs := range map[string][]*unstructured.Unstructured{
		"nothing": nil, "a Job that runs": {job, live("a")}, "a release": {live("a")},
		"a release on its way out": {live("a", beingDeleted)},
	} {
		o := served(situation(dir, objs...), job)
		honest := decisionsOf(Decide(o))
		for _, forgery := range forged.Of(t, v1alpha1.AddonsLayerKind, "resources[].completed", o.Layer.Status, copied) {
			stored := o.Layer.DeepCopy()
			stored.Status = forgery.Status
			changed := o
			changed.Layer = Trusted(stored, decisions.Seal{})
			done := decisionsOf(Decide(changed))
			if more := news(honest, done); len(more) > 0 {
				t.Errorf("%s, with %s: %v", forgery.Name, name, more)
			}
			withheld = withheld || len(done) < len(honest)
		}
	}
	if !withheld {
		t.Error("nothing is withheld")
	}
}

// A suspended Job neither blocks nor counts, and is told of.
func TestSuspendedJobOfALayer(t *testing.T) {
	migrate, job := listedAs("batch/v1", "Job", "migrate", map[string]any{"suspend": true})
	_, report, got := decide(t, served(situation(directoriestest.Of(newRevision, migrate, directoriestest.HelmRelease("a")), job, live("a")), job))
	if got.state != v1alpha1.StateDeployed || !strings.HasSuffix(got.message, "is deployed: 1 release, 1 other object suspended") {
		t.Errorf("%s: %s", got.state, got.message)
	}
	for _, resource := range report.Resources {
		if resource.Name == "migrate" && resource.Status != objects.StatusSuspended {
			t.Errorf("it says %s", resource.Status)
		}
	}
}

// What a CronJob makes is no object of the layer, whatever its template says: it is neither drift
// nor waited for.
func TestChildrenOfCronJobs(t *testing.T) {
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.LayerLabel: "base"}}}
	nightly, cron := listedAs("batch/v1", "CronJob", "nightly", map[string]any{"schedule": "0 0 * * *", "jobTemplate": template})
	_, child := listedAs("batch/v1", "Job", "nightly-29000000", nil, hasCondition("Failed"))
	for name, objs := range map[string][]*unstructured.Unstructured{"with a child that has failed": {cron, child}, "without": {cron}} {
		if _, _, got := decide(t, served(situation(directoriestest.Of(newRevision, nightly), objs...), cron, child)); got.state != v1alpha1.StateDeployed || got.actions != "" {
			t.Errorf("%s: %s, %q: %s", name, got.state, got.actions, got.message)
		}
	}
}

// A claim for a volume that waits for a Pod is as ready as it gets by itself.
func TestVolumeClaims(t *testing.T) {
	pending := func(obj *unstructured.Unstructured) { obj.Object["status"] = map[string]any{"phase": "Pending"} }
	late := classID("", "late")
	for name, tc := range map[string]struct {
		reason  string
		class   VolumeClass
		changes []func(*unstructured.Unstructured)
		checks  func(*v1alpha1.AddonsLayer)
		state   v1alpha1.State
		status  string
		message string
	}{
		"waits for its first consumer": {
			reason: "what comes behind it may be that", class: VolumeClass{WaitsForConsumers: true}, state: v1alpha1.StateDeployed, status: "WaitsForFirstConsumer",
			message: "version 1.0.0 of revision main@sha1:new is deployed: 0 releases",
		},
		"has a consumer": {
			reason: "its volume is being made", class: VolumeClass{WaitsForConsumers: true}, state: v1alpha1.StateApplying, status: "InProgress",
			changes: []func(*unstructured.Unstructured){func(obj *unstructured.Unstructured) {
				obj.SetAnnotations(map[string]string{"volume.kubernetes.io/selected-node": "n1"})
			}},
			message: "PersistentVolumeClaim default/data is not ready: PVC is not Bound. phase: Pending",
		},
		"of a class that waits for nobody": {
			reason: "its volume is to be made at once", state: v1alpha1.StateApplying, status: "InProgress",
			message: "PersistentVolumeClaim default/data is not ready: PVC is not Bound. phase: Pending",
		},
		"of a class that is not there": {
			reason: "the next step is said", class: VolumeClass{Unread: "does not exist"}, state: v1alpha1.StateApplying, status: "InProgress",
			message: "PersistentVolumeClaim default/data is not ready: PVC is not Bound. phase: Pending; whether it waits for its first consumer is not known, because StorageClass late does not exist",
		},
		"bound": {
			reason: "it has its volume", class: VolumeClass{WaitsForConsumers: true}, state: v1alpha1.StateDeployed, status: "Deployed",
			changes: []func(*unstructured.Unstructured){func(obj *unstructured.Unstructured) { obj.Object["status"] = map[string]any{"phase": "Bound"} }},
			message: "version 1.0.0 of revision main@sha1:new is deployed: 0 releases",
		},
		"judged by the layer's own rules": {
			reason: "these go before", class: VolumeClass{WaitsForConsumers: true}, state: v1alpha1.StateApplying, status: "InProgress",
			checks: func(l *v1alpha1.AddonsLayer) {
				l.Spec.HealthCheckExprs = []v1alpha1.HealthCheckExpr{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Current: "status.phase == 'Bound'"}}
			},
			message: "PersistentVolumeClaim default/data is not ready, as spec.healthCheckExprs has it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest, claim := listedAs("v1", "PersistentVolumeClaim", "data", map[string]any{"storageClassName": "late"}, append([]func(*unstructured.Unstructured){pending}, tc.changes...)...)
			claim.SetGeneration(0) // claims have none
			o := situation(directoriestest.Of(newRevision, manifest), claim)
			o.Layer.Spec.Timeout = &metav1.Duration{Duration: 24 * time.Hour}
			o.Layer.Status.Resources[0].ResourceVersion = claim.GetResourceVersion()
			if tc.checks != nil {
				tc.checks(o.Layer)
			}
			o.Classes = map[objects.ID]VolumeClass{late: tc.class}
			_, report, got := decide(t, served(o, claim))
			if got.state != tc.state || got.message != tc.message || report.Resources[0].Status != tc.status {
				t.Errorf("%s: %s, %s, %q, want %s, %s, %q", tc.reason, got.state, report.Resources[0].Status, got.message, tc.state, tc.status, tc.message)
			}
		})
	}
}

// A StorageClass is in question as long as a claim waits that nobody wants yet.
func TestClassesInQuestion(t *testing.T) {
	claim := func(name, class, phase string, spec ...string) *unstructured.Unstructured {
		_, obj := listedAs("v1", "PersistentVolumeClaim", name, map[string]any{"storageClassName": class}, func(obj *unstructured.Unstructured) {
			obj.Object["status"] = map[string]any{"phase": phase}
			for _, volume := range spec {
				obj.Object["spec"].(map[string]any)["volumeName"] = volume
			}
		})
		return obj
	}
	elsewhere := claim("e", "fast", "Pending")
	o := observation(layer(), nil, lives(claim("a", "late", "Pending"), claim("b", "late", "Pending"), claim("c", "bound", "Bound", "pv"), claim("d", "named", "Pending", "pv"), live("x")))
	o.Live[objects.IDOf(elsewhere).On("fleet/prod")] = elsewhere
	got := o.ClassesInQuestion()
	want := objects.SortIDs([]objects.ID{classID("", "late"), classID("fleet/prod", "fast")})
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What keeps an object from going is named, in the message and in what stands in the way.
func TestWhatKeepsAnObject(t *testing.T) {
	kept := func(obj *unstructured.Unstructured) {
		beingDeleted(obj)
		obj.SetFinalizers([]string{"example.com/stuck"})
	}
	manifest := directoriestest.Any("v1", "ConfigMap", "default", "fin")
	_, fin := listedAs("v1", "ConfigMap", "fin", nil, kept)
	both := directoriestest.Of(newRevision, manifest, directoriestest.HelmRelease("a"))
	alone := directoriestest.Of("main@sha1:newer", directoriestest.HelmRelease("a"))
	removed := observation(layer(isDeployed(both)), alone, lives(fin, live("a")))
	for i := range removed.Layer.Status.Resources {
		if resource := &removed.Layer.Status.Resources[i]; resource.Name == "fin" {
			resource.Status = objects.StatusDeleting
		}
	}
	deleted := situation(directoriestest.Of(newRevision, manifest))
	deleted.Live[objects.IDOf(fin)] = fin
	now := metav1.NewTime(testNow)
	deleted.Layer.DeletionTimestamp, deleted.Layer.Finalizers = &now, []string{v1alpha1.Finalizer}
	byOthers := situation(directoriestest.Of(newRevision, manifest), fin)
	byOthers.Layer.Spec.Timeout = &metav1.Duration{Duration: 24 * time.Hour}
	for name, tc := range map[string]struct {
		o             Observation
		message, says string
	}{
		"removed from git": {removed, "ConfigMap default/fin is being removed, kept by example.com/stuck", "is being removed, kept by example.com/stuck"},
		"of a layer that goes": {
			deleted, "is being deleted, 1 objects left: ConfigMap default/fin is being removed, kept by example.com/stuck", "is being removed, kept by example.com/stuck",
		},
		"deleted by somebody": {
			byOthers, "ConfigMap default/fin is being deleted, kept by example.com/stuck, and will be created again",
			"is being deleted, kept by example.com/stuck, and will be created again",
		},
	} {
		_, report, got := decide(t, tc.o)
		if got.message != tc.message {
			t.Errorf("%s: %q, want %q", name, got.message, tc.message)
		}
		if len(report.BlockedBy) == 0 || report.BlockedBy[0].Message != tc.says || report.BlockedBy[0].Name != "fin" {
			t.Errorf("%s: it is blocked by %+v", name, report.BlockedBy)
		}
	}
}

// What an autoscaler does to a Deployment leaves its layer deployed, and its status as it is.
func TestScalingLeavesALayerDeployed(t *testing.T) {
	manifest, web := listedAs("apps/v1", "Deployment", "web", map[string]any{"paused": false})
	dir := directoriestest.Of(newRevision, manifest)
	o := served(observation(layer(isDeployed(dir)), dir, lives(web)), web)
	var before v1alpha1.AddonsLayerStatus
	for i, replicas := range []int64{2, 3, 5, 2} {
		web.Object["spec"].(map[string]any)["replicas"] = replicas
		web.Object["status"] = map[string]any{
			"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
		}
		d := Decide(o)
		report, _ := Report(o, d, nil)
		if d.State != v1alpha1.StateDeployed || len(d.Plan.Of(dependents.VerbWrite)) > 0 {
			t.Errorf("%d replicas: %s: %s", replicas, d.State, d.Message)
		}
		if i > 0 && !bytes.Equal(mustJSON(t, before), mustJSON(t, report)) {
			t.Errorf("%d replicas: its status changes", replicas)
		}
		before = report
	}
}
