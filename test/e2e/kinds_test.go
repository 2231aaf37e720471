// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// API groups of the tests below. Definitions are the whole cluster's, so each
// test has a group of its own.
const (
	groupBeside  = "beside.example.dev"
	groupEarlier = "earlier.example.dev"
	groupNever   = "never.example.dev"
	groupLater   = "later.example.dev"
)

// gadgetChart is a chart that brings the kind Gadget of an API group.
func (f *fixture) gadgetChart(group string) map[string]string {
	return map[string]string{
		"Chart.yaml":         fmt.Sprintf("apiVersion: v2\nname: %s-gadgets\nversion: 1.0.0\n", f.prefix),
		"templates/crd.yaml": gadgetDefinition(group),
	}
}

func gadgetDefinition(group string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%s}
spec:
  group: %s
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`, group, group)
}

func (f *fixture) gadgetRelease() string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: gadgets, namespace: %s}
spec:
  interval: 1h
  chart:
    spec: {chart: %s-gadgets, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
`, f.prefix, f.prefix, f.prefix)
}

func (f *fixture) gadget(group string) string {
	return fmt.Sprintf("# a gadget\napiVersion: %s/v1\nkind: Gadget\nmetadata: {name: gadget, namespace: %s}\nspec: {size: 1}\n", group, f.prefix)
}

// gadgetMade returns the gadget on the cluster, which must belong to a layer,
// and how long it came after its kind.
func (f *fixture) gadgetMade(group, layer string) time.Duration {
	f.Helper()
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"})
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "gadget"}, gadget))
	if owner := gadget.GetLabels()[v1alpha1.LayerLabel]; owner != f.name(layer) {
		f.Errorf("the gadget belongs to layer %q", owner)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: "gadgets." + group}, definition))
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return gadget.GetCreationTimestamp().Sub(condition.LastTransitionTime.Time)
		}
	}
	f.Errorf("the definition of the gadget is not established: %v", definition.Status.Conditions)
	return 0
}

// The interval of the layers is an hour, so it is the definition that wakes
// them, and no timer.

func TestCustomObjectBesideTheReleaseThatBringsItsKind(t *testing.T) {
	f := newFixture(t)
	f.publish(f.gadgetChart(groupBeside))
	revision := f.push(map[string]string{
		"issuers/a-gadget.yaml": f.gadget(groupBeside),
		"issuers/release.yaml":  f.gadgetRelease(),
	})
	f.layer("issuers")
	f.deployed("issuers", revision)
	if lag := f.gadgetMade(groupBeside, "issuers"); lag > promptly {
		t.Errorf("the gadget came %s after its kind", lag)
	}
}

func TestCustomObjectWhoseKindAnEarlierLayerBrings(t *testing.T) {
	f := newFixture(t)
	f.publish(f.gadgetChart(groupEarlier))
	revision := f.push(map[string]string{
		"kinds/release.yaml":  f.gadgetRelease(),
		"issuers/gadget.yaml": f.gadget(groupEarlier),
	})
	f.layer("issuers", f.dependsOn("kinds@1.0.0"))
	f.state("issuers", v1alpha1.StateApplyPending, f.name("kinds"))
	f.layer("kinds")
	f.deployed("kinds", revision)
	f.deployed("issuers", revision)
	if lag := f.gadgetMade(groupEarlier, "issuers"); lag > promptly {
		t.Errorf("the gadget came %s after its kind", lag)
	}
}

// A kind that never comes is Failed after the timeout, by file and kind; the
// rest of the layer is deployed meanwhile, and the commit can be mended.
func TestKindThatNeverComesIsFailedAfterTheTimeout(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{
		"issuers/gadget.yaml":  f.gadget(groupNever),
		"issuers/release.yaml": f.configMapRelease("beside", "one"),
	})
	began, timeout := time.Now(), 12*time.Second // that Applying is seen on a loaded machine too
	f.layer("issuers", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: timeout} })
	f.state("issuers", v1alpha1.StateApplying, "Gadget", groupNever, "issuers/gadget.yaml")
	layer := f.reason("issuers", v1alpha1.ReasonKindNotServed, "Gadget", groupNever, "issuers/gadget.yaml", "not deployed within 12s")
	if layer.Status.State != v1alpha1.StateFailed {
		t.Errorf("state %s", layer.Status.State)
	}
	if took := time.Since(began); took < timeout-time.Second {
		t.Errorf("Failed after %s already", took)
	}
	if f.configMap("beside")["value"] != "one" {
		t.Error("the release beside it is not installed")
	}

	before := f.footprints()
	f.deployed("issuers", f.remove("issuers/gadget.yaml"))
	f.untouched(before)
}

// A kind that comes after the timeout is not too late: the layer heals.
func TestKindThatComesAfterTheTimeoutHealsTheLayer(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"issuers/gadget.yaml": f.gadget(groupLater)})
	f.layer("issuers", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: time.Second} })
	f.reason("issuers", v1alpha1.ReasonKindNotServed, "Gadget", "issuers/gadget.yaml")

	definition := f.manifest(gadgetDefinition(groupLater))
	f.must(stack.client.Create(f.ctx, definition))
	t.Cleanup(func() { _ = stack.client.Delete(f.ctx, definition) })
	f.deployed("issuers", revision)
	if lag := f.gadgetMade(groupLater, "issuers"); lag > promptly {
		t.Errorf("the gadget came %s after its kind", lag)
	}
}
