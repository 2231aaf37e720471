// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// soon gives a layer a short grace.
func soon(l *v1alpha1.AddonsLayer) { l.Spec.OrphanGrace = &metav1.Duration{Duration: time.Second} }

// discard deletes a layer.
func (f *fixture) discard(layer string) {
	f.Helper()
	f.must(f.client.Delete(f.ctx, f.get(layer)))
}

// hasConfigMap tells whether a ConfigMap is there and is not going.
func (f *fixture) hasConfigMap(name string) bool {
	f.Helper()
	found := &corev1.ConfigMap{}
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found)
	f.must(client.IgnoreNotFound(err))
	return err == nil && found.DeletionTimestamp.IsZero()
}

func (f *fixture) annotated(layer, key, value string) {
	f.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	f.must(f.client.Patch(f.ctx, f.get(layer), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// broken is a manifest that cannot be read, of an object of a name.
func (f *fixture) broken(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {a: 1, a: 2}\n", f.namespace, name)
}

// A layer that cannot be read holds up its own removals, and the removal of objects that it may
// list. All other removals go on.
func TestABrokenLayerHoldsUpItsOwnRemovals(t *testing.T) {
	f := newFixture(t, nil)
	files := map[string]string{
		"good/cm.yaml": f.settings("good", "1"), "doubted/cm.yaml": f.settings("doubted", "1"), "built/cm.yaml": f.settings("built", "1"),
		"broken/a.yaml": f.broken("never"), "broken/b.yaml": f.broken("doubted"),
		"kustomized/kustomization.yaml": "resources: [b.yaml]\n", "kustomized/b.yaml": f.broken("built"),
	}
	f.publish("main@sha1:1", files)
	for _, name := range []string{"good", "doubted", "built", "broken", "kustomized"} {
		f.layerWith(name, soon)
	}
	for _, name := range []string{"good", "doubted", "built"} {
		f.deployed(name, "main@sha1:1")
	}
	f.says("broken", "broken/a.yaml")
	f.says("kustomized", "kustomized/kustomization.yaml")

	f.discard("good")
	f.discard("doubted")
	f.discard("built")
	f.gone("good")
	f.says("doubted", "is kept while it is not known whether layer "+f.name("broken")+" lists it", "broken/b.yaml has its name",
		`if none does set the annotation kraan.io/allow-prune to "next"`)
	f.says("built", "whether layer "+f.name("kustomized")+" lists it")
	if f.hasConfigMap("good") || !f.hasConfigMap("doubted") || !f.hasConfigMap("built") {
		t.Errorf("good is there: %t, doubted: %t, built: %t", f.hasConfigMap("good"), f.hasConfigMap("doubted"), f.hasConfigMap("built"))
	}

	f.annotated("doubted", v1alpha1.AllowPruneAnnotation, v1alpha1.AllowNext)
	f.gone("doubted")
	f.publish("main@sha1:2", map[string]string{"broken/a.yaml": f.broken("never"), "kustomized/kustomization.yaml": "resources: [b.yaml]\n", "kustomized/b.yaml": f.broken("x")})
	f.gone("built")
}

// What leaves a directory while another one breaks waits, and the annotation that lets it
// go is used up.
func TestADoubtIsEndedOnce(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{
		"base/a.yaml": f.settings("moved", "1"), "base/b.yaml": f.settings("stays", "1"), "base/c.yaml": f.settings("goes", "1"), "apps/a.yaml": f.settings("apps", "1"),
	})
	f.layerWith("base", soon)
	f.layerWith("apps", soon)
	f.deployed("base", "main@sha1:1")
	f.deployed("apps", "main@sha1:1")

	f.publish("main@sha1:2", map[string]string{
		"base/b.yaml": f.settings("stays", "1"), "apps/a.yaml": f.settings("apps", "1"), "apps/moved.yaml": f.settings("moved", "1"), "apps/broken.yaml": "kind: [\n",
	})
	f.says("base", "ConfigMap "+f.namespace+"/moved is kept while it is not known whether layer "+f.name("apps")+" lists it", "apps/moved.yaml has its name")
	f.eventually("what nobody can mean is gone", func() error {
		if f.hasConfigMap("goes") {
			return errors.New("it is there")
		}
		return nil
	})
	if !f.hasConfigMap("moved") {
		t.Fatal("what another layer lists has gone")
	}

	f.annotated("base", v1alpha1.AllowPruneAnnotation, v1alpha1.AllowNext)
	f.deployed("base", "main@sha1:2")
	if f.hasConfigMap("moved") {
		t.Error("it is there although somebody said that it goes")
	}
	layer := f.get("base")
	if _, left := layer.Annotations[v1alpha1.AllowPruneAnnotation]; left || layer.Status.Attempt != nil && len(layer.Status.Attempt.Allowed) > 0 {
		t.Errorf("the annotation opens more: %v, %+v", layer.Annotations, layer.Status.Attempt)
	}
}

// Nothing can have moved to a layer whose source is gone: each keeps what it listed last.
func TestLayersGoWithoutTheirSource(t *testing.T) {
	f := newFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"one/a.yaml": f.settings("one", "1"), "two/a.yaml": f.settings("two", "1")})
	f.layerWith("one", soon)
	f.layerWith("two", soon)
	f.deployed("one", "main@sha1:1")
	f.deployed("two", "main@sha1:1")
	f.must(f.client.Delete(f.ctx, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "addons"}}))
	f.eventually("the source is missed", func() error {
		if f.get("two").Status.State == v1alpha1.StateDeployed {
			return errors.New(readyMessageOf(f.get("two")))
		}
		return nil
	})
	f.discard("one")
	f.gone("one")
	if f.hasConfigMap("one") || !f.hasConfigMap("two") {
		t.Errorf("one is there: %t, two: %t", f.hasConfigMap("one"), f.hasConfigMap("two"))
	}
	if err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name("two")}, &v1alpha1.AddonsLayer{}); apierrors.IsNotFound(err) {
		t.Error("the other layer has gone, too")
	}
}

// Flux would uninstall a release with volumes. Strata does not write the change until the
// annotation allows this revision.
func TestAReinstallationWaitsForConsent(t *testing.T) {
	f := newFixture(t, nil)
	files := func(chart string) map[string]string {
		return map[string]string{"base/db.yaml": strings.ReplaceAll(f.release("db"), "chart: podinfo", "chart: "+chart), "base/cm.yaml": f.settings("beside", chart)}
	}
	f.publish("main@sha1:1", files("postgresql"))
	f.layerWith("base", soon)
	f.eventually("the release is installed", func() error {
		release := &helmv2.HelmRelease{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "db"}, release); err != nil {
			return err
		}
		release.Status.StorageNamespace = f.namespace
		release.Status.History = helmv2.Snapshots{{
			APIVersion: helmv2.CurrentSnapshotAPIVersion, Digest: "sha256:1", Name: "db", Namespace: f.namespace, Version: 1, Status: "deployed",
			ChartName: "postgresql", ChartVersion: "1.0.0", ConfigDigest: "sha256:1", FirstDeployed: metav1.Now(), LastDeployed: metav1.Now(),
		}}
		return f.client.Status().Update(f.ctx, release)
	})
	f.ready("db")
	f.deployed("base", "main@sha1:1")
	f.statefulSet("db", f.origin("db"))
	f.claim("data-db-0", nil, nil)
	f.owns("db", f.namespace+"_db_apps_StatefulSet")
	before := f.get("base").Status.Revision

	f.publish("main@sha1:2", files("postgres-ha"))
	layer := f.says("base", "revision main@sha1:2 has Flux uninstall and install anew HelmRelease "+f.namespace+"/db (chart name: postgresql -> postgres-ha)",
		"while 1 persistentvolumeclaims in namespace "+f.namespace+" would be left behind", "kubectl annotate al "+f.name("base")+" kraan.io/allow-reinstall=next")
	if layer.Status.Revision != before || !meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.StalledCondition) {
		t.Errorf("it is at %s: %+v", layer.Status.Revision, layer.Status.Conditions)
	}
	chart := func() string {
		release := &helmv2.HelmRelease{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "db"}, release))
		return release.Spec.Chart.Spec.Chart
	}
	if chart() != "postgresql" {
		t.Fatalf("the release was written: its chart is %s", chart())
	}
	// It is looked at whenever something happens to it, and asks for the volumes once in a while.
	f.settle()
	f.taken()
	looks := f.looks.Load()
	for i := range 5 {
		touched := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, i))
		f.must(f.client.Patch(f.ctx, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db"}}, client.RawPatch(types.MergePatchType, touched)))
		f.settle()
	}
	requests, _ := f.taken()
	if f.looks.Load() < looks+5 {
		t.Errorf("the layer was looked at %d times: the test shows nothing", f.looks.Load()-looks)
	}
	for _, request := range requests {
		if strings.Contains(request.what, "persistentvolumeclaims") || strings.Contains(request.what, "statefulsets") {
			t.Errorf("it has asked again: %s", request.what)
		}
	}

	f.annotated("base", v1alpha1.AllowReinstallAnnotation, v1alpha1.AllowNext)
	f.eventually("the release is written", func() error {
		if now := chart(); now != "postgres-ha" {
			return errors.New(now)
		}
		return nil
	})
	f.ready("db")
	f.deployed("base", "main@sha1:2")
	if _, left := f.get("base").Annotations[v1alpha1.AllowReinstallAnnotation]; left {
		t.Error("the annotation opens more than one revision")
	}

	// A correction is no reason either, and without volumes there is nothing to keep.
	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db"}}
	f.must(f.client.Patch(f.ctx, release, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"chart":{"spec":{"chart":"by-hand"}}}}`)), client.FieldOwner("kubectl-edit")))
	f.says("base", "(chart name: by-hand -> postgres-ha)")
	if chart() != "by-hand" {
		t.Errorf("the release was corrected: its chart is %s", chart())
	}
	f.must(f.client.Delete(f.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "data-db-0"}}))
	f.must(client.IgnoreNotFound(f.client.Patch(f.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "data-db-0"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	f.annotated("base", "reconcile.fluxcd.io/requestedAt", "now")
	f.eventually("the release is corrected", func() error {
		if now := chart(); now != "postgres-ha" {
			return errors.New(now)
		}
		return nil
	})
}
