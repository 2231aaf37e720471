// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// bundle makes an ApplicationBundle of one layer with one application.
func (f *fixture) bundle(name, application, version string) *v1alpha1.ApplicationBundle {
	f.Helper()
	bundle := &v1alpha1.ApplicationBundle{ObjectMeta: metav1.ObjectMeta{Name: f.name(name), Labels: map[string]string{"test": f.namespace}}}
	bundle.Spec = v1alpha1.ApplicationBundleSpec{Family: name, Version: "1.0.0", Layers: []v1alpha1.BundleLayer{{
		Name: "apps", Applications: []v1alpha1.BundleApplication{{
			Name: "app", Application: f.name(application), Version: version, Values: &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 1}`)},
		}},
	}}}
	f.must(f.client.Create(f.ctx, bundle))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(f.client.Delete(f.ctx, bundle))) })
	return bundle
}

// bundleSays waits until an ApplicationBundle is Ready for a reason, its message has
// some words, and so many Platforms use it.
func (f *fixture) bundleSays(name, reason, words string, platforms int32) *v1alpha1.ApplicationBundle {
	f.Helper()
	bundle := &v1alpha1.ApplicationBundle{}
	f.eventually(fmt.Sprintf("ApplicationBundle %s says %s %q", name, reason, words), func() error {
		if err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, bundle); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, words) || bundle.Status.ObservedGeneration != bundle.Generation || bundle.Status.Platforms != platforms {
			return fmt.Errorf("it is %+v", bundle.Status)
		}
		return nil
	})
	return bundle
}

// bundlesOf waits until so many bundles name a HelmApplication.
func (f *fixture) bundlesOf(name string, want int32) {
	f.Helper()
	f.eventually(fmt.Sprintf("%d bundles name HelmApplication %s", want, name), func() error {
		app := &v1alpha1.HelmApplication{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, app); err != nil {
			return err
		}
		if app.Status.Bundles != want {
			return fmt.Errorf("there are %d", app.Status.Bundles)
		}
		return nil
	})
}

// A bundle says why it cannot be installed, and is looked at again when that is
// mended in the catalogue.
func TestBundleHealsWithTheCatalogue(t *testing.T) {
	f := newBareFixture(t)
	f.startCatalogue()
	f.bundle("web", "shop", "v1.1.0")
	f.bundleSays("web", v1alpha1.ReasonProblems, "layers[apps].applications[app]: there is no HelmApplication "+f.name("shop"), 0)
	app := f.application("shop", func(*v1alpha1.HelmApplicationVersion) {})
	f.bundleSays("web", v1alpha1.ReasonProblems, "has no version v1.1.0", 0)
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(app), app))
	before := app.DeepCopy() // the controller writes it, too: an update could meet it
	next := *app.Spec.Versions[0].DeepCopy()
	next.Version = "1.1.0"
	app.Spec.Versions = append(app.Spec.Versions, next)
	f.must(f.client.Patch(f.ctx, app, client.MergeFrom(before)))
	f.bundleSays("web", v1alpha1.ReasonPublished, "1 layer, 1 application", 0)
	f.bundlesOf("shop", 1)
	other := f.bundle("other", "shop", "1.0.0")
	f.bundlesOf("shop", 2)
	f.must(f.client.Delete(f.ctx, other))
	f.bundlesOf("shop", 1)
	f.must(f.client.Get(f.ctx, client.ObjectKeyFromObject(app), app))
	before = app.DeepCopy()
	app.Spec.Versions[1].Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas": 2}`)}
	f.must(f.client.Patch(f.ctx, app, client.MergeFrom(before)))
	f.bundleSays("web", v1alpha1.ReasonProblems, "was published with other content", 0)
	f.must(f.client.Delete(f.ctx, app))
	f.bundleSays("web", v1alpha1.ReasonProblems, "there is no HelmApplication", 0)
}

// Values are what the API server cannot see: the digest does.
func TestBundleKeepsWhatWasPublished(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startCatalogue()
	f.application("shop", func(*v1alpha1.HelmApplicationVersion) {})
	f.bundle("web", "shop", "1.0.0")
	bundle := f.bundleSays("web", v1alpha1.ReasonPublished, "", 0)
	digest := bundle.Status.Digest
	bundle.Spec.Layers[0].Applications[0].Values.Raw = []byte(`{"replicas": 2}`)
	f.must(f.client.Update(f.ctx, bundle))
	bundle = f.bundleSays("web", v1alpha1.ReasonContentChanged, "was published with other content", 0)
	if !meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.StalledCondition) || bundle.Status.Digest != digest {
		t.Errorf("its status is %+v", bundle.Status)
	}
	bundle.Spec.Layers[0].Applications[0].Values.Raw = []byte(`{"replicas": 1}`)
	bundle.Spec.Preview = true
	f.must(f.client.Update(f.ctx, bundle))
	bundle = f.bundleSays("web", v1alpha1.ReasonPublished, "", 0)
	if meta.IsStatusConditionTrue(bundle.Status.Conditions, v1alpha1.StalledCondition) || bundle.Status.Digest != digest {
		t.Errorf("its status is %+v", bundle.Status)
	}
	f.settle()
	f.taken()
	f.settle()
	if requests, _ := f.taken(); len(requests) > 0 {
		t.Errorf("a settled bundle is asked for: %v", requests)
	}
}

// Platforms are counted once, whatever layers they have of the bundle.
func TestBundleCountsItsPlatforms(t *testing.T) {
	f := newBareFixture(t)
	f.startCatalogue()
	f.application("shop", func(*v1alpha1.HelmApplicationVersion) {})
	f.bundle("web", "shop", "1.0.0")
	f.bundleSays("web", v1alpha1.ReasonPublished, "", 0)
	layer := func(name, platform, kind string) {
		f.layerWith(name, func(l *v1alpha1.AddonsLayer) {
			l.Spec.Source = v1alpha1.SourceSpec{Kind: kind, Name: f.name("web"), Path: "./apps"}
			if platform != "" {
				l.Labels[v1alpha1.PlatformLabel] = platform
			}
		})
	}
	layer("one", "prod", v1alpha1.ApplicationBundleKind)
	layer("two", "prod", v1alpha1.ApplicationBundleKind)
	layer("alone", "", v1alpha1.ApplicationBundleKind)
	layer("git", "other", "GitRepository")
	f.bundleSays("web", v1alpha1.ReasonPublished, "", 1)
	layer("three", "stage", v1alpha1.ApplicationBundleKind)
	f.bundleSays("web", v1alpha1.ReasonPublished, "", 2)
	three := &v1alpha1.AddonsLayer{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name("three")}, three))
	three.Labels[v1alpha1.PlatformLabel] = "prod"
	f.must(f.client.Update(f.ctx, three))
	f.bundleSays("web", v1alpha1.ReasonPublished, "", 1)
}
