// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/objects"
)

// API groups of the tests below; the controller may not list objects of the
// second one.
const (
	groupOwned  = "owned.example.dev"
	groupSecret = "secret.example.dev"
)

// definition returns a CustomResourceDefinition as a chart has it.
func definition(group, plural, kind, annotations string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s, annotations: {%[4]s}}
spec:
  group: %[1]s
  names: {kind: %[3]s, plural: %[2]s}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, group, plural, kind, annotations)
}

// instance returns a custom object.
func instance(group, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// make creates objects that somebody else than Strata has.
func (f *fixture) make(made ...client.Object) {
	f.Helper()
	for _, obj := range made {
		f.eventually(fmt.Sprintf("%T %s is created", obj, obj.GetName()), func() error { return stack.client.Create(f.ctx, obj) })
		f.Cleanup(func() { _ = stack.client.Delete(f.ctx, obj) })
	}
}

// chartRelease returns the manifest of a HelmRelease of a chart of the test's.
func (f *fixture) chartRelease(name string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  interval: 1h
  install: {disableWait: true}
  chart:
    spec: {chart: %[2]s-%[1]s, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %[2]s}}
`, name, f.prefix)
}

// publishChart publishes a chart of the test's by its files.
func (f *fixture) publishChart(name string, files map[string]string) {
	f.Helper()
	files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s-%s\nversion: 1.0.0\n", f.prefix, name)
	f.publish(files)
}

// Nothing of the layer's is marked while its deletion is blocked.
func (f *fixture) untouchedByDeletion(before map[string]string) {
	f.Helper()
	f.throughout(2*time.Second, "the releases stay as they are", func() error {
		for name, was := range before {
			if is := written(f.release(name)); is != was {
				return fmt.Errorf("%s was %s and is %s", name, was, is)
			}
		}
		return nil
	})
}

// Definitions of a chart take their objects with them, or leave them without a
// controller where they come from the chart's folder crds or are to be kept.
// The deletion waits, counts them, and goes on when it is confirmed.
func TestDeletionCountsTheObjectsOfItsChartsDefinitions(t *testing.T) {
	f := newFixture(t)
	other := f.prefix + "-other"
	f.must(stack.plane.CreateNamespace(f.ctx, other))
	t.Cleanup(func() {
		_ = stack.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}})
		for _, name := range []string{"crates", "kegs"} {
			_ = stack.client.Delete(f.ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + "." + groupOwned}})
		}
	})
	f.publishChart("operator", map[string]string{
		"templates/boxes.yaml": definition(groupOwned, "boxes", "Box", ""),
		"templates/kegs.yaml":  definition(groupOwned, "kegs", "Keg", "helm.sh/resource-policy: keep"),
		"crds/crates.yaml":     definition(groupOwned, "crates", "Crate", ""),
	})
	f.publishChart("content", map[string]string{
		"templates/box.yaml": "apiVersion: " + groupOwned + "/v1\nkind: Box\nmetadata: {name: from-chart}\n",
	})
	revision := f.push(map[string]string{
		"base/operator.yaml": f.chartRelease("operator"),
		"base/content.yaml":  strings.Replace(f.chartRelease("content"), "  interval: 1h\n", "  interval: 1h\n  dependsOn: [{name: operator}]\n", 1),
		"base/box.yaml":      fmt.Sprintf("apiVersion: %s/v1\nkind: Box\nmetadata: {name: from-layer, namespace: %s}\n", groupOwned, f.prefix),
	})
	f.layer("base")
	f.deployed("base", revision)

	// What the layer's own boxes have made is the layer's, too.
	own := instance(groupOwned, "Box", f.prefix, "from-layer")
	f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(own), own))
	child := instance(groupOwned, "Crate", f.prefix, "from-box")
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: groupOwned + "/v1", Kind: "Box", Name: own.GetName(), UID: own.GetUID()}})
	f.make(
		child,
		instance(groupOwned, "Box", f.prefix, "mine"), instance(groupOwned, "Box", f.prefix, "yours"), instance(groupOwned, "Box", other, "theirs"),
		instance(groupOwned, "Crate", other, "one"), instance(groupOwned, "Keg", other, "one"),
	)
	before := f.versions()
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked,
		"3 boxes.owned.example.dev in 2 namespaces would be deleted with it",
		"1 crates.owned.example.dev in namespace "+other+" would be left without a controller",
		"1 kegs.owned.example.dev in namespace "+other+" would be left without a controller",
		`delete them first, or set the annotation kraan.io/confirm-deletion to "true"`)
	f.untouchedByDeletion(before)
	f.told("base", string(v1alpha1.StatePruning), "3 boxes.owned.example.dev")

	// To force is not to confirm.
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/force-delete":"true"}}}`)
	f.untouchedByDeletion(before)
	f.reason("base", v1alpha1.ReasonDeletionBlocked, "3 boxes.owned.example.dev")

	confirmed := time.Now()
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/confirm-deletion":"true"}}}`)
	f.layerGone("base")
	t.Logf("gone %s after it was confirmed", time.Since(confirmed).Round(time.Millisecond))
	if f.helmRevisions("operator") != 0 || f.helmRevisions("content") != 0 {
		t.Error("a release is not uninstalled")
	}
	for _, tc := range []struct {
		reason, kind, namespace, name string
		stays                         bool
	}{
		{"its definition was a template", "Box", f.prefix, "mine", false},
		{"also in another namespace", "Box", other, "theirs", false},
		{"its definition is in the folder crds", "Crate", other, "one", true},
		{"its definition is to be kept", "Keg", other, "one", true},
	} {
		f.eventually(fmt.Sprintf("%s %s/%s stays: %v", tc.kind, tc.namespace, tc.name, tc.stays), func() error {
			err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: tc.namespace, Name: tc.name}, instance(groupOwned, tc.kind, "", ""))
			gone := client.IgnoreNotFound(err) == nil && err != nil || meta.IsNoMatchError(err)
			if err != nil && !gone || gone == tc.stays {
				return fmt.Errorf("it is gone: %v, but %s (%w)", gone, tc.reason, err)
			}
			return nil
		})
	}
}

// When what stood in the way has gone, the deletion goes on by itself.
func TestBlockedDeletionGoesOnWhenTheObjectsHaveGone(t *testing.T) {
	f := newFixture(t)
	f.publishChart("operator", map[string]string{"templates/tins.yaml": definition(groupOwned, "tins", "Tin", "")})
	revision := f.push(map[string]string{"base/operator.yaml": f.chartRelease("operator")})
	f.layer("base")
	f.deployed("base", revision)
	tin := instance(groupOwned, "Tin", f.prefix, "mine")
	f.make(tin)
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked, "1 tins.owned.example.dev in namespace "+f.prefix+" would be deleted with it")
	f.must(stack.client.Delete(f.ctx, tin))
	deleted := time.Now()
	f.layerGone("base")
	t.Logf("gone %s after the object", time.Since(deleted).Round(time.Millisecond))
	f.uninstalled("operator")
}

// What the controller may not list is not taken for nothing: it is said which
// right is missing, and once it is there the deletion goes on.
func TestDeletionWaitsWhereItMayNotLook(t *testing.T) {
	f := newFixture(t)
	f.publishChart("operator", map[string]string{"templates/safes.yaml": definition(groupSecret, "safes", "Safe", "")})
	revision := f.push(map[string]string{"base/operator.yaml": f.chartRelease("operator")})
	f.layer("base")
	f.deployed("base", revision)
	before := f.versions()
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked, "it is not known whether there are safes.secret.example.dev",
		"cannot list resource", "let the controller list them", "kraan.io/confirm-deletion")
	f.untouchedByDeletion(before)
	f.grant(groupSecret, "safes", "list")
	f.layerGone("base")
	f.uninstalled("operator")
}

// An API server serves a kind before it tells of it. Objects that discovery does not know
// are counted all the same, and those of a definition that serves none are none.
func TestDeletionCountsObjectsThatDiscoveryDoesNotKnow(t *testing.T) {
	f := newFixture(t)
	group := f.prefix + ".example.dev"
	for plural, served := range map[string]string{"vaults": "served: true", "ruins": "served: false"} {
		crd := &unstructured.Unstructured{}
		f.must(yaml.Unmarshal([]byte(strings.Replace(definition(group, plural, strings.ToUpper(plural[:1])+plural[1:], ""), "served: true", served, 1)), crd))
		f.must(stack.client.Create(f.ctx, crd))
		t.Cleanup(func() { _ = stack.client.Delete(f.ctx, crd) })
	}
	f.make(instance(group, "Vaults", f.prefix, "one"))
	id := func(plural string) objects.ID {
		return objects.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: plural + "." + group}
	}
	lookup := impact.Lookup{
		Layer: &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.prefix + "-base"}}, Departing: []objects.ID{id("vaults"), id("ruins")},
		Flux: stack.client, Known: stack.client, Definitions: stack.client, Past: stack.client, Mapper: meta.NewDefaultRESTMapper(nil),
	}
	found, err := lookup.Blockers(f.ctx)
	f.must(err)
	if len(found) != 1 || found[0].Resource != (schema.GroupResource{Group: group, Resource: "vaults"}) || found[0].Count != 1 || found[0].Unknown != "" {
		t.Errorf("%+v", found)
	}
}

// statefulSet returns a StatefulSet with a claim template.
func statefulSet(name, policy string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s}
spec:
  replicas: 2
  serviceName: %[1]s
  podManagementPolicy: Parallel
  persistentVolumeClaimRetentionPolicy: {whenDeleted: %[2]s, whenScaled: Retain}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: 'example.invalid/main:1'}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`, name, policy)
}

const plainClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, annotations: {%s}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// Claims of a chart, and those that its StatefulSets asked for, are counted by
// what becomes of them.
func TestDeletionCountsTheClaimsOfItsReleases(t *testing.T) {
	f := newFixture(t)
	f.publishChart("database", map[string]string{
		"templates/set.yaml":     statefulSet("db", "Retain"),
		"templates/scratch.yaml": statefulSet("scratch", "Delete"),
		"templates/claim.yaml":   fmt.Sprintf(plainClaim, "archive", ""),
		"templates/kept.yaml":    fmt.Sprintf(plainClaim, "kept", "helm.sh/resource-policy: keep"),
	})
	revision := f.push(map[string]string{"base/database.yaml": f.chartRelease("database")})
	f.layer("base")
	f.deployed("base", revision)
	claim := &corev1.PersistentVolumeClaim{}
	f.eventually("the StatefulSets have their claims", func() error {
		for _, name := range []string{"data-db-0", "data-db-1", "data-scratch-0", "data-scratch-1"} {
			if f.absent(claim, name) {
				return fmt.Errorf("%s is not there", name)
			}
		}
		return nil
	})
	// A claim that merely looks like one of them.
	f.make(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "data-db-old"},
		Spec:       f.claimSpec(),
	})
	f.deleteLayer("base")
	f.reason("base", v1alpha1.ReasonDeletionBlocked,
		"is not deleted while 3 persistentvolumeclaims in namespace "+f.prefix+" would be deleted with it",
		"and 3 persistentvolumeclaims in namespace "+f.prefix+" would be left behind:")
	if f.absent(&appsv1.StatefulSet{}, "db") || !f.release("database").DeletionTimestamp.IsZero() {
		t.Error("the release is being deleted")
	}
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/confirm-deletion":"true"}}}`)
	f.layerGone("base")
	for name, stays := range map[string]bool{
		"data-db-0": true, "data-db-1": true, "kept": true, "data-db-old": true,
		"archive": false, "data-scratch-0": false, "data-scratch-1": false,
	} {
		f.eventually(fmt.Sprintf("the claim %s stays: %v", name, stays), func() error {
			if absent := f.absent(claim, name); absent == stays {
				return fmt.Errorf("it is absent: %v", absent)
			}
			return nil
		})
	}
}

func (f *fixture) claimSpec() corev1.PersistentVolumeClaimSpec {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	obj := f.manifest(fmt.Sprintf(plainClaim, "any", ""))
	f.must(stack.client.Scheme().Convert(obj, claim, nil))
	return claim.Spec
}

// A layer that leaves everything in place takes nothing with it, and asks for
// nothing.
func TestDeletionWithPolicyOrphanNeedsNoConfirmation(t *testing.T) {
	f := newFixture(t)
	f.publishChart("operator", map[string]string{"templates/jars.yaml": definition(groupOwned, "jars", "Jar", "")})
	revision := f.push(map[string]string{"base/operator.yaml": f.chartRelease("operator")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan })
	f.deployed("base", revision)
	f.make(instance(groupOwned, "Jar", f.prefix, "mine"))
	f.deleteLayer("base")
	f.layerGone("base")
	if f.helmRevisions("operator") != 1 || f.absent(instance(groupOwned, "Jar", "", ""), "mine") {
		t.Error("something is gone")
	}
}

// Once the deletion has begun, nothing that appears stops it half way.
func TestDeletionThatHasBegunIsNotBlocked(t *testing.T) {
	f := newFixture(t)
	f.publishChart("operator", map[string]string{"templates/cups.yaml": definition(groupOwned, "cups", "Cup", "")})
	revision := f.push(map[string]string{"base/operator.yaml": f.chartRelease("operator")})
	f.layer("base", orphanGrace(4*time.Second))
	f.deployed("base", revision)
	f.deleteLayer("base")
	layer := f.reason("base", v1alpha1.ReasonDeleting, "waits until")
	if !meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeletingCondition) {
		t.Errorf("the conditions are %v", layer.Status.Conditions)
	}
	f.make(instance(groupOwned, "Cup", f.prefix, "late"))
	f.layerGone("base")
	f.uninstalled("operator")
}
