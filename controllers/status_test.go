// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/test/controlplane"
)

// patiently is eventually for what hundreds of objects take.
func (f *fixture) patiently(what string, check func() error) {
	f.Helper()
	if err := controlplane.WaitFor(f.ctx, 10*patience, func(context.Context) error { return check() }); err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// releases waits until there are as many HelmReleases in the namespaces.
func (f *fixture) releases(count int, namespaces ...string) []helmv2.HelmRelease {
	f.Helper()
	var found []helmv2.HelmRelease
	f.patiently(fmt.Sprintf("%d releases", count), func() error {
		found = nil
		for _, namespace := range namespaces {
			list := &helmv2.HelmReleaseList{}
			if err := f.client.List(f.ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			found = append(found, list.Items...)
		}
		if len(found) != count {
			return fmt.Errorf("there are %d", len(found))
		}
		return nil
	})
	return found
}

// makeReady plays helm-controller for one release.
func (f *fixture) makeReady(release *helmv2.HelmRelease) {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": release.Generation,
		"conditions": []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "InstallSucceeded", Message: "installed",
			ObservedGeneration: release.Generation, LastTransitionTime: metav1.Now(),
		}},
	}})
	f.must(err)
	f.must(f.client.Status().Patch(f.ctx, release.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}

// statusWrites rolls out a layer of many releases, has a stand-in for
// helm-controller make them ready one after another, and returns how many
// statuses that took, and how long.
func statusWrites(t *testing.T, count int, begins func(), options ...func(*AddonsLayerReconciler)) (int, time.Duration) {
	t.Helper()
	f := newSerialFixture(t, nil, options...)
	files := map[string]string{}
	for i := range count {
		name := fmt.Sprintf("release-%03d", i)
		files["base/"+name+".yaml"] = f.release(name)
	}
	f.publish("main@sha1:1", files)
	f.layer("base")
	releases := f.releases(count, f.namespace)
	f.settle()
	f.taken()
	begins()
	begin := time.Now()
	const period = 2 * time.Second
	ticks := time.NewTicker(period / time.Duration(count))
	defer ticks.Stop()
	for i := range releases {
		<-ticks.C
		f.makeReady(&releases[i])
	}
	f.deployed("base", "main@sha1:1")
	took := time.Since(begin)
	f.settle()
	requests, _ := f.taken()
	writes := 0
	for _, request := range requests {
		if strings.HasSuffix(request.what, "/events") {
			continue
		}
		if request.what != "PATCH /apis/kraan.io/v1alpha1/addonslayers/"+f.name("base")+"/status" {
			t.Errorf("%s while releases become ready", request.what)
		}
		writes++
	}
	for _, resource := range f.get("base").Status.Resources {
		if resource.Status != "Deployed" {
			t.Errorf("the status of %s is %s at the end", resource.Name, resource.Status)
		}
	}
	return writes, took
}

// Many releases that become ready one after another are told a few times a
// second, and the last of them at once.
func TestManyReleasesThatAStandInMakesReadyAreCoalesced(t *testing.T) {
	var due atomic.Int32
	counting := func(r *AddonsLayerReconciler) {
		r.spacing = func(last, next v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
			if !equality.Semantic.DeepEqual(last, next) {
				due.Add(1)
			}
			return layers.Spacing(last, next, wrote)
		}
	}
	const count = 100
	writes, took := statusWrites(t, count, func() { due.Store(0) }, counting)
	t.Logf("%d releases became ready: %d status writes in %s, and %d looks that found another status", count, writes, took.Round(time.Millisecond), due.Load())
	// One when the period begins, one each second of it, and the last.
	if most := int(took/time.Second) + 2; writes > most {
		t.Errorf("%d status writes in %s, at most %d are due", writes, took, most)
	}
	if int(due.Load()) <= writes {
		t.Error("there was nothing to coalesce: the test shows nothing")
	}
}

// What writes have led to is told with how they fare, so that a layer that is
// ready soon has its status written twice. Until then the controller goes by what
// it has not told.
func TestWhatIsWrittenIsToldWithHowItFares(t *testing.T) {
	var withheld atomic.Int32
	f := newSerialFixture(t, nil, func(r *AddonsLayerReconciler) {
		r.spacing = func(last, next v1alpha1.AddonsLayerStatus, wrote bool) time.Duration {
			spacing := layers.Spacing(last, next, wrote)
			if spacing > 0 && wrote {
				withheld.Add(1)
			}
			if spacing > 0 {
				spacing = time.Hour
			}
			return spacing
		}
	})
	f.publish("main@sha1:1", map[string]string{"base/a.yaml": f.release("a"), "base/b.yaml": f.release("b")})
	f.layer("base")
	f.eventually("both releases are written, and that is withheld", func() error {
		if withheld.Load() == 0 {
			return errors.New("nothing is withheld")
		}
		return nil
	})
	f.settle()
	f.eventually("the layer is told to be applying", func() error {
		if told := f.told("base"); told["Applying"] != 1 {
			return fmt.Errorf("told are %v", told)
		}
		return nil
	})
	for _, resource := range f.get("base").Status.Resources {
		if resource.Digest != "" || resource.Generation != 0 {
			t.Errorf("%s is told to be at generation %d", resource.Name, resource.Generation)
		}
	}
	f.taken()
	f.ready("a")
	f.ready("b")
	f.deployed("base", "main@sha1:1")
	f.settle()
	requests, _ := f.taken()
	statuses := 0
	for _, request := range requests {
		switch {
		case strings.HasSuffix(request.what, "/events"):
		case request.what == "PATCH /apis/kraan.io/v1alpha1/addonslayers/"+f.name("base")+"/status":
			statuses++
		default:
			t.Errorf("%s, although both releases were as they are wanted", request.what)
		}
	}
	if statuses != 1 {
		t.Errorf("%d statuses were written, want 1", statuses)
	}
	f.eventually("the layer is told to be deployed", func() error {
		if told := f.told("base"); told["Applying"] != 1 || told["Deployed"] != 1 {
			return fmt.Errorf("told are %v", told)
		}
		return nil
	})
	for _, resource := range f.get("base").Status.Resources {
		if resource.Digest == "" || resource.UID == "" || resource.Generation != 1 || resource.Status != "Deployed" {
			t.Errorf("%s is told to be %s at generation %d", resource.Name, resource.Status, resource.Generation)
		}
	}
}

// A layer of 500 releases keeps its object small: the status as the controller
// writes it, made as large as it gets by a failing roll-out's messages, causes
// and history.
func TestALayerOf500ReleasesStaysSmall(t *testing.T) {
	const count, spaces, limit = 500, 10, 200_000
	f := newSerialFixture(t, nil)
	files := map[string]string{}
	var names []string
	for i := range spaces {
		names = append(names, fmt.Sprintf("observability-%s-%d", f.namespace, i))
		f.must(plane.CreateNamespace(f.ctx, names[i]))
	}
	for i := range count {
		namespace, name := names[i%spaces], fmt.Sprintf("prometheus-exporter-%03d", i)
		after := ""
		if i >= count/2 {
			after = fmt.Sprintf("  dependsOn: [{name: prometheus-exporter-%03d}]\n", i-count/2)
		}
		if i%50 == 49 {
			after = fmt.Sprintf("  dependsOn: [{name: prometheus-exporter-%03d}, {name: prometheus-exporter-%03d, namespace: %s}]\n",
				i-spaces, i-1, names[(i-1)%spaces])
		}
		files["observability/production/"+namespace+"/"+name+".yaml"] = strings.Replace(strings.ReplaceAll(f.release(name),
			"namespace: "+f.namespace+",", "namespace: "+namespace+","), "  interval: 1m\n", "  interval: 1m\n"+after, 1)
	}
	f.publish("main@sha1:0123456789abcdef0123456789abcdef01234567", files)
	f.layer("observability")
	ready := map[types.UID]bool{}
	f.patiently("the releases become ready in order", func() error {
		for _, namespace := range names {
			list := &helmv2.HelmReleaseList{}
			f.must(f.client.List(f.ctx, list, client.InNamespace(namespace)))
			for i := range list.Items {
				if release := &list.Items[i]; !ready[release.UID] {
					f.makeReady(release)
					ready[release.UID] = true
				}
			}
		}
		if state := f.get("observability").Status.State; state != v1alpha1.StateDeployed {
			return fmt.Errorf("%d of %d are ready, and the layer is %s", len(ready), count, state)
		}
		return nil
	})
	f.settle()
	deployed := f.size("observability")
	f.cancel()
	f.stopped()
	f.fill("observability")
	full := f.size("observability")
	example, err := json.Marshal(f.get("observability").Status.Resources[count-1])
	f.must(err)
	t.Logf("one of its resources: %s", example)
	t.Logf("a layer of %d releases has %d bytes when it is deployed, and %d at most", count, deployed, full)
	if full > limit {
		t.Errorf("the object has %d bytes, %d at most are due", full, limit)
	}
}

// size returns how large a layer's object is, as the API server gives it.
func (f *fixture) size(layer string) int {
	f.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddonsLayerKind))
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name(layer)}, object))
	if len(object.GetManagedFields()) == 0 {
		f.Fatal("the object has no managedFields")
	}
	data, err := object.MarshalJSON()
	f.must(err)
	return len(data)
}

// fill gives a layer what a status may hold at most beside its resources.
func (f *fixture) fill(layer string) {
	f.Helper()
	was := f.get(layer)
	is := was.DeepCopy()
	status := &is.Status
	status.State = v1alpha1.StateFailed
	for i := range status.Conditions {
		status.Conditions[i].Message = strings.Repeat("m", 1024)
	}
	for _, kind := range []string{v1alpha1.ReconcilingCondition, v1alpha1.HeldCondition, v1alpha1.SourceReadyCondition} {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "ProgressingWithRetry", Message: strings.Repeat("m", 1024), LastTransitionTime: metav1.Now(),
		})
	}
	now := metav1.Now().Rfc3339Copy()
	for i := range 12 {
		status.BlockedBy = append(status.BlockedBy, v1alpha1.Cause{
			Depth: int32(i), Kind: "HelmRelease", Namespace: "platform-observability", Name: "kube-prometheus-stack-exporter", Reason: "InstallFailed",
			Message: strings.Repeat("m", 512), Until: &now,
		})
	}
	for i := range 10 {
		status.History = append(status.History, v1alpha1.HistoryEntry{
			ID: fmt.Sprint(i), Version: "1.0.0", Revision: status.Revision, Digest: status.Digest, Result: v1alpha1.ResultRolledBack,
			Message: strings.Repeat("m", 512), Started: now, Duration: metav1.Duration{Duration: time.Minute},
			Artifact: &v1alpha1.ArtifactReference{
				URL:    "http://source-controller.gotk-system.svc.cluster.local./gitrepository/gotk-system/addons/0123456789abcdef.tar.gz",
				Digest: "sha256:" + strings.Repeat("a", 64), Path: "./clusters/production/addons/observability",
			},
		})
	}
	f.must(f.client.Status().Patch(f.ctx, is, client.MergeFrom(was), client.FieldOwner(dependents.FieldManager)))
}
