// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/impact"
)

// origin returns the labels that helm-controller puts on what a release makes.
func (f *fixture) origin(release string) map[string]string {
	return map[string]string{impact.OriginName: release, impact.OriginNamespace: f.namespace}
}

// custom creates a definition, and a few objects of its kind.
func (f *fixture) custom(group, plural string, count int, labels, annotations map[string]string) {
	f.Helper()
	definition := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  names: {kind: K%[1]s, plural: %[1]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, plural, group), &definition.Object))
	definition.SetLabels(labels)
	definition.SetAnnotations(annotations)
	f.must(f.client.Create(f.ctx, definition))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, definition))) })
	instance := func(i int) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "K" + plural})
		obj.SetNamespace(f.namespace)
		obj.SetName(fmt.Sprintf("x%d", i))
		return obj
	}
	f.eventually(plural+" can be made", func() error { return client.IgnoreAlreadyExists(f.client.Create(f.ctx, instance(0))) })
	var making sync.WaitGroup
	for worker := range 10 {
		making.Go(func() {
			for i := 1 + worker; i < count; i += 10 {
				if err := f.client.Create(f.ctx, instance(i)); err != nil {
					f.Error(err)
				}
			}
		})
	}
	making.Wait()
}

func (f *fixture) claim(name string, labels, annotations map[string]string) {
	f.Helper()
	f.must(f.client.Create(f.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec:       claimSpec(),
	}))
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}
}

// statefulSet makes a StatefulSet with a claim template, but no claims: no
// controller runs that would make them.
func (f *fixture) statefulSet(name string, labels map[string]string) {
	f.Helper()
	selector := map[string]string{"app": name}
	f.must(f.client.Create(f.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.invalid/main:1"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec()}},
		},
	}))
}

// owns plays helm-controller: it writes a release's inventory.
func (f *fixture) owns(release string, ids ...string) {
	f.Helper()
	found := &helmv2.HelmRelease{}
	f.must(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: release}, found))
	found.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{}}
	for _, id := range ids {
		found.Status.Inventory.Entries = append(found.Status.Inventory.Entries, helmv2.ResourceRef{ID: id, Version: "v1"})
	}
	f.must(f.client.Status().Update(f.ctx, found))
}

// blocked deletes a layer and returns what it says is in the way.
func (f *fixture) blocked(layer string) string {
	f.Helper()
	f.must(f.client.Delete(f.ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name(layer)}}))
	message := ""
	f.eventually("the deletion is blocked", func() error {
		ready := meta.FindStatusCondition(f.get(layer).Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != v1alpha1.ReasonDeletionBlocked {
			return fmt.Errorf("it is %+v", ready)
		}
		message = ready.Message
		return nil
	})
	return message
}

// mentions fails the test unless a message has some words and lacks others.
func (f *fixture) mentions(message string, words, others []string) {
	f.Helper()
	f.Log(message)
	for _, word := range words {
		if !strings.Contains(message, word) {
			f.Errorf("the message lacks %q", word)
		}
	}
	for _, word := range others {
		if strings.Contains(message, word) {
			f.Errorf("the message has %q", word)
		}
	}
}

// Whose a definition is, and what becomes of its objects, shows in its marks
// and in the inventory of the release.
func TestBlockersOfDefinitions(t *testing.T) {
	f := newSerialFixture(t, nil)
	const group = "blockers.example.dev"
	f.publish("main@sha1:1", map[string]string{"base/op.yaml": f.release("op"), "else/other.yaml": f.release("other")})
	f.layer("base")
	f.layer("else")
	f.ready("op")
	f.ready("other")
	f.deployed("base", "main@sha1:1")
	f.deployed("else", "main@sha1:1")

	helm, kept := map[string]string{impact.HelmOwner: "op"}, map[string]string{impact.HelmOwner: "op", impact.HelmPolicy: "keep"}
	f.custom(group, "templates", 3, f.origin("op"), helm)
	f.custom(group, "keeps", 2, f.origin("op"), kept)
	f.custom(group, "folders", 1, f.origin("op"), nil)
	f.custom(group, "befores", 1, nil, nil)
	f.custom(group, "shareds", 1, f.origin("other"), nil)
	f.custom(group, "widows", 1, f.origin("gone"), nil)
	f.custom(group, "strangers", 1, f.origin("other"), helm)
	f.claim("never-counted", f.origin("other"), nil)
	f.owns("op", "_befores."+group+"_apiextensions.k8s.io_CustomResourceDefinition", "_shareds."+group+"_apiextensions.k8s.io_CustomResourceDefinition",
		"_widows."+group+"_apiextensions.k8s.io_CustomResourceDefinition", f.namespace+"_op_apps_Deployment")

	in := " in namespace " + f.namespace
	f.mentions(f.blocked("base"), []string{
		"3 templates." + group + in + " would be deleted with it",
		"2 keeps." + group + in + " would be left without a controller",
		"1 folders." + group + in + " would be left without a controller",
		"1 befores." + group + in + " would be left without a controller",
		"1 widows." + group + in + " would be left without a controller",
	}, []string{"shareds", "strangers", "persistentvolumeclaims"})
}

// A helm-controller that keeps no inventory puts its labels on everything all
// the same.
func TestBlockersOfAReleaseWithoutInventory(t *testing.T) {
	f := newSerialFixture(t, nil)
	f.publish("main@sha1:1", map[string]string{"base/db.yaml": f.release("db")})
	f.layer("base")
	f.ready("db")
	f.deployed("base", "main@sha1:1")
	f.statefulSet("db", f.origin("db"))
	f.statefulSet("big-db", f.origin("another"))
	f.claim("archive", f.origin("db"), nil)
	f.claim("kept", f.origin("db"), map[string]string{impact.HelmPolicy: "keep"})
	for _, name := range []string{"data-db-0", "data-db-17", "data-big-db-0", "data-db-x", "data-db", "logs-db-0"} {
		f.claim(name, nil, nil)
	}
	in := " in namespace " + f.namespace
	f.mentions(f.blocked("base"), []string{
		"1 persistentvolumeclaims" + in + " would be deleted with it",
		"3 persistentvolumeclaims" + in + " would be left behind:",
	}, nil)
}

// However many objects there are, a few pages of them are read, and all are
// counted.
func TestBlockersInLargeNumbers(t *testing.T) {
	f := newSerialFixture(t, nil)
	const group, count = "many.example.dev", impact.Page*impact.Pages + 100
	f.publish("main@sha1:1", map[string]string{"base/op.yaml": f.release("op")})
	f.layer("base")
	f.ready("op")
	f.deployed("base", "main@sha1:1")
	f.custom(group, "grains", count, f.origin("op"), map[string]string{impact.HelmOwner: "op"})
	f.owns("op")
	f.settle()
	f.taken()
	f.mentions(f.blocked("base"), []string{fmt.Sprintf("%d grains.%s in 1 or more namespaces would be deleted with it", count, group)}, nil)
	requests, _ := f.taken()
	looks, pages := 0, 0
	for _, request := range requests {
		switch request.what {
		case "GET /apis/helm.toolkit.fluxcd.io/v2/helmreleases":
			looks++
		case "GET /apis/" + group + "/v1/grains":
			pages++
		}
	}
	t.Logf("%d looks read %d pages", looks, pages)
	if looks == 0 || pages > looks*impact.Pages {
		t.Errorf("%d looks read %d pages: %v", looks, pages, requests)
	}
}
