// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// rival has somebody in a namespace of their own write a suspended HelmRelease that
// stands for a Helm release of the fixture's namespace.
func (f *fixture) rival(name, helmName string, labels map[string]string) *helmv2.HelmRelease {
	f.Helper()
	namespace := f.prefix + "-tenant"
	f.must(client.IgnoreAlreadyExists(stack.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	obj := &helmv2.HelmRelease{}
	f.must(yaml.Unmarshal([]byte(f.namedRelease(name, helmName, "tenant")), obj))
	obj.Namespace, obj.Labels = namespace, labels
	obj.Spec.StorageNamespace, obj.Spec.Suspend = f.prefix, true
	f.must(stack.client.Create(f.ctx, obj))
	return obj
}

// contested waits until a layer warns of the HelmRelease of somebody else.
func (f *fixture) contested(layer string, rival *helmv2.HelmRelease) {
	f.Helper()
	f.eventually("layer "+layer+" warns of "+rival.Name, func() error {
		found := meta.FindStatusCondition(f.get(layer).Status.Conditions, v1alpha1.ContestedCondition)
		if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, "HelmRelease "+client.ObjectKeyFromObject(rival).String()) {
			return fmt.Errorf("it says %+v", found)
		}
		return nil
	})
}

// A HelmRelease that a tenant writes in a namespace of their own stops no layer: what
// is deployed is updated, what is new is installed, and the tenant's object is left
// alone, whatever its labels say.
func TestHelmReleasesOfTenantsStopNoLayer(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{
		"without labels":                     nil,
		"with the label of the layer itself": {v1alpha1.LayerLabel: "apps"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.independentLayers()
			for key, layer := range labels {
				labels[key] = f.name(layer)
			}
			of := []*helmv2.HelmRelease{f.rival("old", "apps-own", labels), f.rival("new", "shop", labels)}
			revision := f.push(map[string]string{
				"apps/own.yaml": f.configMapRelease("apps-own", "two"), "apps/shop.yaml": f.configMapRelease("shop", "one"),
			})
			f.deployed("apps", revision)
			f.contested("apps", of[0])
			f.contested("apps", of[1])
			if own, shop := f.configMap("apps-own")["value"], f.configMap("shop")["value"]; own != "two" || shop != "one" {
				t.Errorf("the values are %q and %q", own, shop)
			}
			for _, written := range of {
				found := &helmv2.HelmRelease{}
				f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(written), found))
				if found.Generation != written.Generation || found.Annotations[v1alpha1.SupersededByAnnotation] != "" {
					t.Errorf("the tenant's HelmRelease was changed: %+v", found.ObjectMeta)
				}
			}
		})
	}
}
