// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// bundleOf makes the bundle NAMESPACE-name of a family of the namespace, from YAML in
// which NAMESPACE is the test's.
func (f *fixture) bundleOf(name, version, text string, changes ...func(*v1alpha1.ApplicationBundle)) *v1alpha1.ApplicationBundle {
	f.Helper()
	bundle := &v1alpha1.ApplicationBundle{}
	text = fmt.Sprintf("metadata: {name: NAMESPACE-%s, labels: {test: NAMESPACE}}\nspec:\n  family: NAMESPACE\n  version: %s\n%s", name, version, text)
	f.must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "NAMESPACE", f.namespace)), bundle))
	for _, change := range changes {
		change(bundle)
	}
	f.must(f.client.Create(f.ctx, bundle))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, bundle))) })
	return bundle
}

// A layer of a bundle waits for all that it is filled from, is filled again when
// that changes and not otherwise, and stays when the bundle goes.
func TestLayerOfABundle(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startFleet(time.Minute)
	f.layerWith("net", func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: f.name("base"), Path: "./net"}
		layer.Spec.Inputs = &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 2}`)}
		layer.Spec.OrphanGrace = &metav1.Duration{}
	})
	f.says("net", "waits for ApplicationBundle "+f.name("base")+", which does not exist")
	bundle := f.bundleOf("base", "1.2.0", `
  inputs: [{name: replicas, type: Integer}]
  layers:
  - name: net
    applications: [{name: net, application: NAMESPACE-net, version: 1.0.0, values: {replicas: "${inputs.replicas}"}}]
`)
	f.says("net", f.name("net"))
	f.application("net", func(v *v1alpha1.HelmApplicationVersion) {
		v.Namespace = &v1alpha1.ApplicationNamespace{Name: f.namespace}
		v.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 1, "name": "net"}`)}
	})
	release := func() *helmv2.HelmRelease {
		found := &helmv2.HelmRelease{}
		f.must(f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "net"}, found))
		return found
	}
	f.ready("net")
	f.indexed()
	f.deployed("net", "1.2.0")
	if got := string(release().Spec.Values.Raw); got != `{"name":"net","replicas":2}` {
		t.Errorf("its values are %s", got)
	}
	f.settle()
	f.taken()
	f.patchLayer("net", `{"metadata":{"annotations":{"note":"one"}}}`)
	f.settle()
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("a layer that is settled makes requests: %v", requests)
	}
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(bundle), bundle))
	bundle.Spec.Preview = true // which is only said of it
	f.must(f.client.Update(f.ctx, bundle))
	f.settle()
	requests, _ := f.taken()
	for _, request := range requests {
		if !strings.Contains(request.what, "/applicationbundles/") {
			t.Errorf("what is only said of a bundle costs its layers %v", request)
		}
	}
	if len(requests) == 0 {
		t.Error("nobody has looked at the bundle")
	}

	f.patchLayer("net", `{"spec":{"inputs":{"replicas":3}}}`)
	f.eventually("the release has the new value", func() error {
		if got := string(release().Spec.Values.Raw); got != `{"name":"net","replicas":3}` {
			return fmt.Errorf("its values are %s", got)
		}
		return nil
	})
	f.ready("net")
	f.deployed("net", "1.2.0")

	f.must(f.client.Delete(f.ctx, bundle))
	f.says("net", "which does not exist")
	if got := release(); !got.DeletionTimestamp.IsZero() {
		t.Error("the release goes with the bundle")
	}
	f.must(f.client.Delete(f.ctx, f.get("net")))
	f.eventually("the release is deleted with the layer", func() error {
		err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "net"}, &helmv2.HelmRelease{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// What is wrong with the content is the author's to mend, and says where.
func TestLayerOfABundleThatCannotBeFilled(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Minute)
	f.application("net", func(v *v1alpha1.HelmApplicationVersion) {
		v.Namespace = &v1alpha1.ApplicationNamespace{Name: f.namespace}
	})
	f.bundleOf("base", "1.0.0", `
  inputs: [{name: names, type: Object, default: {}}]
  layers:
  - name: net
    applications: [{name: net, application: NAMESPACE-net, version: 1.0.0, values: {a: {b: "${inputs.names.first}"}}}]
`)
	for layer, path := range map[string]string{"net": "./net", "other": "./other"} {
		f.layerWith(layer, func(l *v1alpha1.AddonsLayer) {
			l.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: f.name("base"), Path: path}
		})
	}
	f.says("net", "values.a.b", "first")
	f.says("other", "other")
	f.patchLayer("net", `{"spec":{"inputs":{"names":{"first":"one"}}}}`)
	f.ready("net")
	f.indexed()
	f.deployed("net", "1.0.0")
}

// indexed plays source-controller: it makes the HelmRepositories of the test ready.
func (f *fixture) indexed() {
	f.Helper()
	list := &sourcev1.HelmRepositoryList{}
	f.eventually("there is a HelmRepository", func() error {
		f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
		if len(list.Items) == 0 {
			return fmt.Errorf("there is none")
		}
		return nil
	})
	for i := range list.Items {
		repository := &list.Items[i]
		repository.Status.ObservedGeneration = repository.Generation
		repository.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "stored", ObservedGeneration: repository.Generation, LastTransitionTime: metav1.Now(),
		}}
		f.must(f.client.Status().Update(f.ctx, repository))
	}
}

func (f *fixture) patchLayer(layer, patch string) {
	f.Helper()
	obj := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: f.name(layer)}}
	f.must(f.client.Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}
