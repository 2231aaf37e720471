// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// spaceManifest returns a Namespace that says that it may go, and lies that it was
// created for a layer.
func (f *fixture) spaceManifest(name, more string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-%s, labels: {more: %q}, annotations: {kraan.io/prune: enabled, kraan.io/created-for: %s}}\n",
		f.namespace, name, more, f.name("base"))
}

// kindManifest returns a definition likewise.
func (f *fixture) kindManifest(name, more string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.%[2]s.example.dev, labels: {more: %[3]q}, annotations: {kraan.io/prune: enabled, kraan.io/created-for: %[4]s}}
spec:
  group: %[2]s.example.dev
  scope: Namespaced
  names: {kind: %[5]s, plural: %[1]ss}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, name, f.namespace, more, f.name("base"), strings.ToUpper(name[:1])+name[1:])
}

// metaOf returns the metadata of the object of a manifest; nil where it is not there.
func (f *fixture) metaOf(manifest string) *metav1.PartialObjectMetadata {
	f.Helper()
	obj := &unstructured.Unstructured{}
	f.must(yaml.Unmarshal([]byte(manifest), obj))
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(obj.GroupVersionKind())
	err := f.client.Get(f.ctx, types.NamespacedName{Name: obj.GetName()}, found)
	f.must(client.IgnoreNotFound(err))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return found
}

// A layer deletes the Namespaces and the definitions that Strata has created for a
// layer, and those alone: what was there before it stays, and the layer says why,
// whatever a directory says. That holds on other clusters, too.
func TestLayerDeletesNoNamespaceThatWasThere(t *testing.T) {
	for where, remote := range map[string]bool{"here": false, "on another cluster": true} {
		t.Run(where, func(t *testing.T) {
			f := newSerialBareFixture(t)
			f.startBoth()
			change := func(layer *v1alpha1.AddonsLayer) { layer.Spec.OrphanGrace = &metav1.Duration{} }
			if remote {
				f.cluster("prod")
				change = f.onCluster("prod")
			}
			kinds := map[string]func(name, more string) string{"space": f.spaceManifest, "kind": f.kindManifest}
			publish := func(revision string, listed map[string][]string, more string) {
				t.Helper()
				files := map[string]string{"base/flags.yaml": f.configMap("base"), "apps/flags.yaml": f.configMap("apps")}
				for layer, names := range listed {
					for _, name := range names {
						for kind, manifest := range kinds {
							files[fmt.Sprintf("%s/%s-%s.yaml", layer, kind, name)] = manifest(name, more)
						}
					}
				}
				f.publish(revision, files)
			}
			origins := func(want map[string]string) {
				t.Helper()
				for name, origin := range want {
					for kind, manifest := range kinds {
						if got := f.metaOf(manifest(name, "")).Annotations[v1alpha1.CreatedForAnnotation]; got != origin {
							t.Errorf("%s %s was created for %q, want %q", kind, name, got, origin)
						}
					}
				}
			}
			for _, manifest := range kinds {
				there := &unstructured.Unstructured{}
				f.must(yaml.Unmarshal([]byte(manifest("there", "")), there))
				there.SetAnnotations(nil)
				f.must(f.client.Create(f.ctx, there))
			}
			publish("main@sha1:1", map[string][]string{"base": {"there", "made", "moved"}}, "")
			f.layerWith("base", change)
			f.layerWith("apps", change)
			f.deployed("base", "main@sha1:1")
			f.deployed("apps", "main@sha1:1")
			made := map[string]string{"there": "", "made": f.name("base"), "moved": f.name("base")}
			origins(made)
			publish("main@sha1:2", map[string][]string{"base": {"there", "made"}, "apps": {"moved"}}, "x")
			f.deployed("base", "main@sha1:2")
			f.deployed("apps", "main@sha1:2")
			origins(made)
			publish("main@sha1:3", nil, "")
			for kind, manifest := range kinds {
				f.eventually("the "+kind+" that was there is let go", func() error {
					found := f.metaOf(manifest("there", ""))
					if found == nil || found.DeletionTimestamp != nil {
						t.Fatalf("it is deleted: %v", found)
					}
					if owner := found.Labels[v1alpha1.LayerLabel]; owner != "" {
						return fmt.Errorf("it belongs to %q", owner)
					}
					return nil
				})
				for _, name := range []string{"made", "moved"} {
					f.eventually("the "+kind+" "+name+" is deleted", func() error {
						if found := f.metaOf(manifest(name, "")); found != nil && found.DeletionTimestamp == nil {
							return fmt.Errorf("it is %+v", found.ObjectMeta)
						}
						return nil
					})
				}
			}
			f.eventually("it is told why", func() error {
				events := f.eventsOf("base")
				for _, words := range []string{v1alpha1.ReasonReleased, "Namespace " + f.namespace + "-there", "theres." + f.namespace, "Strata has not created it", "delete it by hand"} {
					if !strings.Contains(events, words) {
						return fmt.Errorf("%q is not among %s", words, events)
					}
				}
				return nil
			})
		})
	}
}

// A Namespace of an earlier installation does not say for whom it was created: it is
// kept with its layer's label gone, also when the layer is deleted, and whoever may
// write it may say so before.
func TestNamespacesOfEarlierInstallationsStay(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startBoth()
	f.publish("main@sha1:1", map[string]string{
		"base/flags.yaml": f.configMap("base"), "base/stays.yaml": f.spaceManifest("stays", ""), "base/goes.yaml": f.spaceManifest("goes", ""),
	})
	f.layerWith("base", func(layer *v1alpha1.AddonsLayer) { layer.Spec.OrphanGrace = &metav1.Duration{} })
	f.deployed("base", "main@sha1:1")
	say := func(name, origin string) {
		t.Helper()
		space := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + name}}
		space.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		f.must(f.client.Patch(f.ctx, space, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"kraan.io/created-for":`+origin+`}}}`))))
	}
	say("stays", "null")
	say("goes", "null")
	f.settle()
	say("goes", `"base"`)
	f.must(f.client.Delete(f.ctx, f.get("base")))
	f.eventually("the layer goes as far as it can", func() error {
		if goes := f.metaOf(f.spaceManifest("goes", "")); goes.DeletionTimestamp == nil {
			return fmt.Errorf("it is %+v", goes.ObjectMeta)
		}
		stays := f.metaOf(f.spaceManifest("stays", ""))
		if stays.DeletionTimestamp != nil {
			t.Fatalf("it is %+v", stays.ObjectMeta)
		}
		if owner := stays.Labels[v1alpha1.LayerLabel]; owner != "" {
			return fmt.Errorf("it belongs to %q", owner)
		}
		return nil
	})
}
