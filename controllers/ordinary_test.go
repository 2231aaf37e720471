// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// jobFile returns the manifest of a Job that runs a command, with further fields of its
// specification.
func (f *fixture) jobFile(name, command, fields string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {namespace: %s, name: %s}
spec:
  %s
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/main, command: [%q]}]}
`, f.namespace, name, fields, command)
}

// job waits for a Job that is another one than that of a UID.
func (f *fixture) job(name string, before types.UID) *batchv1.Job {
	f.Helper()
	found := &batchv1.Job{}
	f.eventually("Job "+name+" is there", func() error {
		*found = batchv1.Job{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found); err != nil {
			return err
		}
		if found.UID == before {
			return fmt.Errorf("it is the one of before")
		}
		return nil
	})
	return found
}

func (f *fixture) hasJob(name string) bool {
	f.Helper()
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, &batchv1.Job{})
	f.must(client.IgnoreNotFound(err))
	return err == nil
}

// completes plays the controller of Jobs: the Job has done its work.
func (f *fixture) completes(name string) {
	f.Helper()
	f.eventually("Job "+name+" completes", func() error {
		job := f.job(name, "")
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastProbeTime: now, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached, LastProbeTime: now, LastTransitionTime: now},
		}}
		return f.client.Status().Update(f.ctx, job)
	})
}

// expires plays the controller of TTLs, which deletes a Job in the foreground, and the garbage
// collector, which lets it go when its Pods are gone.
func (f *fixture) expires(name string) {
	f.Helper()
	job := f.job(name, "")
	f.must(f.client.Delete(f.ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	f.settle()
	f.must(f.client.Patch(f.ctx, job, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	f.eventually("Job "+name+" is gone", func() error {
		if f.hasJob(name) {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	f.settle()
}

// resource returns what the inventory of a layer says of an object.
func (f *fixture) resource(layer, name string) v1alpha1.Resource {
	f.Helper()
	resources := f.get(layer).Status.Resources
	at := slices.IndexFunc(resources, func(r v1alpha1.Resource) bool { return r.Name == name })
	if at < 0 {
		f.Fatalf("layer %s does not have %s: %+v", layer, name, resources)
	}
	return resources[at]
}

// hasTime gives a layer more time than the test takes.
func hasTime(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: time.Hour} }

// A Job with a TTL runs once for each content, also when the controller starts again; one without,
// that somebody deletes, and one that nobody saw complete run again.
func TestJobsRunOnceForEachContent(t *testing.T) {
	f := newFixture(t, nil)
	const ttl = "ttlSecondsAfterFinished: 5"
	files := map[string]string{"base/migrate.yaml": f.jobFile("migrate", "one", ttl), "base/plain.yaml": f.jobFile("plain", "one", "")}
	f.publish("main@sha1:1", files)
	f.layerWith("base", hasTime)
	f.completes("migrate")
	f.completes("plain")
	f.deployed("base", "main@sha1:1")
	if !f.resource("base", "migrate").Completed || f.resource("base", "plain").Completed {
		t.Errorf("it is seen that %+v", f.get("base").Status.Resources)
	}
	f.settle()
	f.taken()
	before := f.get("base").ResourceVersion
	f.expires("migrate")
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("requests when a TTL takes a Job away: %v", requests)
	}
	if after := f.get("base"); f.hasJob("migrate") || after.Status.State != v1alpha1.StateDeployed || after.ResourceVersion != before {
		t.Errorf("the Job is run again, or the layer has left Deployed: %+v", after.Status)
	}

	f.cancel()
	f.stopped()
	f.must(<-f.ended)
	f.start(nil)
	f.eventually("the controller looks again", func() error {
		f.annotate("base", "reconcile.fluxcd.io/requestedAt", "now")
		if f.get("base").Status.LastHandledReconcileAt != "now" {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	f.settle()
	if f.hasJob("migrate") {
		t.Error("the Job is run again by the next process")
	}

	files["base/migrate.yaml"] = f.jobFile("migrate", "two", ttl)
	f.publish("main@sha1:2", files)
	second := f.job("migrate", "")
	f.must(f.client.Delete(f.ctx, second, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	f.job("migrate", second.UID) // nobody saw it complete
	f.completes("migrate")
	f.deployed("base", "main@sha1:2")
	f.expires("migrate")
	if f.hasJob("migrate") {
		t.Error("the Job is run again with the next content")
	}

	plain := f.job("plain", "")
	f.must(f.client.Delete(f.ctx, plain, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	f.job("plain", plain.UID)
	f.completes("plain")
	f.deployed("base", "main@sha1:2")
}

// A forged status of a layer keeps no Job from running.
func TestForgedCompletion(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/migrate.yaml": f.jobFile("migrate", "one", "ttlSecondsAfterFinished: 5")})
	f.layerWith("base", hasTime)
	first := f.job("migrate", "")
	f.forge("base", func(s *v1alpha1.AddonsLayerStatus) {
		for i := range s.Resources {
			s.Resources[i].Completed = true
		}
	})
	f.must(f.client.Delete(f.ctx, first, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	f.job("migrate", first.UID)
}

// A suspended Job neither blocks nor counts, whoever suspends it. What a CronJob makes is not the
// layer's.
func TestSuspendedJobs(t *testing.T) {
	f := newFixture(t, nil)
	cron := fmt.Sprintf(`
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: %[1]s, name: nightly}
spec:
  schedule: "0 0 * * *"
  suspend: true
  jobTemplate:
    metadata: {labels: {kraan/layer: %[2]s}}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/main}]}}}
`, f.namespace, f.name("base"))
	f.publish("main@sha1:1", map[string]string{"base/susp.yaml": f.jobFile("susp", "one", "suspend: true"), "base/cron.yaml": cron, "next/a.yaml": f.release("a")})
	f.layerWith("base", hasTime)
	f.layer("next", "base")
	f.tells("base", v1alpha1.StateDeployed, "version 1.0.0 of revision main@sha1:1 is deployed: 0 releases, 1 other object suspended")
	if status := f.resource("base", "susp").Status; status != objects.StatusSuspended {
		t.Errorf("it says that the Job is %s", status)
	}
	f.ready("a")
	f.deployed("next", "main@sha1:1")
	f.settle()
	f.taken()
	nightly := &batchv1.CronJob{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "nightly"}, nightly))
	child := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: "nightly-29000000", Labels: nightly.Spec.JobTemplate.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(nightly, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: nightly.Spec.JobTemplate.Spec,
	}
	f.must(f.client.Create(f.ctx, child))
	f.settle()
	f.must(f.client.Delete(f.ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	f.settle()
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("requests for what a CronJob makes: %v", requests)
	}

	f.publish("main@sha1:2", map[string]string{"base/susp.yaml": f.jobFile("susp", "one", "suspend: false"), "base/cron.yaml": cron, "next/a.yaml": f.release("a")})
	f.eventually("the Job is resumed", func() error {
		if suspend := f.job("susp", "").Spec.Suspend; suspend != nil && *suspend {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	f.tells("base", v1alpha1.StateApplying, fmt.Sprintf("Job %s/susp is not ready: Job not started", f.namespace))
	f.completes("susp")
	f.deployed("base", "main@sha1:2")
}

// A claim for a volume that waits for its first consumer does not hold up the layer that brings
// this. Its StorageClass is asked for once.
func TestClaimThatWaitsForItsFirstConsumer(t *testing.T) {
	f := newFixture(t, nil)
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-late"}, Provisioner: "example.com/none", VolumeBindingMode: &mode}
	f.must(f.client.Create(f.ctx, class))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, class))) })
	claim := func(name, class string) string {
		return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: %s, name: %s}
spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, f.namespace, name, class)
	}
	f.publish("main@sha1:1", map[string]string{
		"claims/one.yaml": claim("one", class.Name), "claims/two.yaml": claim("two", class.Name), "user/a.yaml": f.release("a"), "other/three.yaml": claim("three", f.namespace+"-none"),
	})
	f.layer("claims")
	f.layer("user", "claims")
	f.deployed("claims", "main@sha1:1")
	f.ready("a")
	f.deployed("user", "main@sha1:1")
	if status := f.resource("claims", "one").Status; status != objects.StatusWaitsForConsumer {
		t.Errorf("it says that the claim is %s", status)
	}
	requests, _ := f.taken()
	if asked := slices.DeleteFunc(requests, func(r request) bool { return !strings.Contains(r.what, "storageclasses") }); len(asked) != 1 {
		t.Errorf("its StorageClass is asked for %d times: %v", len(asked), asked)
	}
	f.silent()

	f.layerWith("other", hasTime)
	f.tells("other", v1alpha1.StateApplying, fmt.Sprintf(
		"PersistentVolumeClaim %[1]s/three is not ready: PVC is not Bound. phase: Pending; whether it waits for its first consumer is not known, because StorageClass %[1]s-none does not exist",
		f.namespace,
	))
}

// The finalizer that keeps an object is named: of one that left git, of one that somebody deleted, and of
// a layer that goes.
func TestFinalizersAreNamed(t *testing.T) {
	f := newFixture(t, nil)
	config := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s, finalizers: [example.com/stuck]}\ndata: {a: \"1\"}\n", f.namespace, name)
	}
	letGo := func(name string) {
		f.Helper()
		err := f.client.Patch(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}},
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		f.must(client.IgnoreNotFound(err))
	}
	f.Cleanup(func() { letGo("one"); letGo("two") })
	f.publish("main@sha1:1", map[string]string{"base/one.yaml": config("one"), "base/two.yaml": config("two"), "base/a.yaml": f.release("a")})
	f.layerWith("base", func(l *v1alpha1.AddonsLayer) { hasTime(l); l.Spec.OrphanGrace = &metav1.Duration{} })
	f.ready("a")
	f.deployed("base", "main@sha1:1")

	f.must(f.client.Delete(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "two"}}))
	f.tells("base", v1alpha1.StateApplying, fmt.Sprintf("ConfigMap %s/two is being deleted, kept by example.com/stuck, and will be created again", f.namespace))
	letGo("two")
	f.deployed("base", "main@sha1:1")

	f.publish("main@sha1:2", map[string]string{"base/two.yaml": config("two"), "base/a.yaml": f.release("a")})
	f.tells("base", v1alpha1.StatePruning, fmt.Sprintf("ConfigMap %s/one is being removed, kept by example.com/stuck", f.namespace))
	letGo("one")
	f.deployed("base", "main@sha1:2")

	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.eventually("the layer names what keeps it", func() error {
		layer := &v1alpha1.AddonsLayer{}
		err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, layer)
		if apierrors.IsNotFound(err) {
			t.Fatal("the layer has gone")
		}
		f.must(err)
		want := fmt.Sprintf("is being deleted, 1 objects left: ConfigMap %s/two is being removed, kept by example.com/stuck", f.namespace)
		if message := readyMessageOf(layer); message != want {
			return fmt.Errorf("it says %q", message)
		}
		return nil
	})
	letGo("two")
	f.gone("base")
}
