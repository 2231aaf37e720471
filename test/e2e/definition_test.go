// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// groupMoving is the API group of a kind that moves to another version.
const groupMoving = "moving.example.dev"

// movingDefinition returns a definition that serves one of two versions.
func movingDefinition(plural, kind, served string) string {
	versions := ""
	for _, version := range []string{"v1alpha1", "v1"} {
		versions += fmt.Sprintf("    - {name: %s, served: %v, storage: %v, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n",
			version, version == served, version == served)
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %s
  names: {kind: %s, plural: %s}
  scope: Namespaced
  versions:
%s`, plural, groupMoving, groupMoving, kind, plural, versions)
}

// moving returns a custom object at a version.
func (f *fixture) moving(kind, version string, size int) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: mover, namespace: %s}\nspec: {size: %d}\n", groupMoving, version, kind, f.prefix, size)
}

// mover reads the custom object.
func (f *fixture) mover(kind, version string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: groupMoving, Version: version, Kind: kind})
	return obj, stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "mover"}, obj)
}

// restored changes the custom object and waits until that is taken back, and
// nothing more happens to it.
func (f *fixture) restored(kind, version string, size int64) {
	f.Helper()
	obj, err := f.mover(kind, version)
	f.must(err)
	f.must(stack.client.Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":99}}`))))
	var settled string
	f.within(promptly, "drift of "+kind+" is corrected", func() error {
		obj, err := f.mover(kind, version)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size"); got != size {
			return fmt.Errorf("the size is %d", got)
		}
		settled = obj.GetResourceVersion()
		return nil
	})
	f.throughout(2*time.Second, kind+" is left alone", func() error {
		obj, err := f.mover(kind, version)
		if err == nil && obj.GetResourceVersion() != settled {
			err = fmt.Errorf("it was written again: %v", obj.GetManagedFields())
		}
		return err
	})
}

// A kind that moves to another version is watched at that version: what the
// layer holds is still known, kept and repaired, and is not written for ever.
func TestKindThatMovesToAnotherVersionIsFollowed(t *testing.T) {
	f := newFixture(t)
	definition := f.manifest(movingDefinition("movers", "Mover", "v1alpha1"))
	f.make(definition)
	revision := f.push(map[string]string{"base/mover.yaml": f.moving("Mover", "v1alpha1", 1)})
	f.layer("base")
	f.deployed("base", revision)
	f.restored("Mover", "v1alpha1", 1)
	before, err := f.mover("Mover", "v1alpha1")
	f.must(err)

	f.redefine(movingDefinition("movers", "Mover", "v1"))
	// The commit still says the version that has gone: that is said, and
	// nothing is done to what there is.
	layer := f.state("base", v1alpha1.StateApplying, "Mover", "which the cluster does not serve", "base/mover.yaml")
	if len(layer.Status.Resources) != 1 {
		t.Errorf("status.resources lists %v", layer.Status.Resources)
	}
	revision = f.push(map[string]string{"base/mover.yaml": f.moving("Mover", "v1", 2)})
	f.deployed("base", revision)
	f.restored("Mover", "v1", 2)
	after, err := f.mover("Mover", "v1")
	f.must(err)
	if after.GetUID() != before.GetUID() {
		t.Error("it was made anew")
	}

	f.deployed("base", f.rewrite(map[string]string{"base/mover.yaml": "", "base/release.yaml": f.configMapRelease("release", "x")}))
	if _, err := f.mover("Mover", "v1"); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is not removed: %v", err)
	}
}

// redefine writes a definition anew.
func (f *fixture) redefine(text string) {
	f.Helper()
	f.eventually("the definition is written", func() error {
		next := f.manifest(text)
		last := &apiextensionsv1.CustomResourceDefinition{}
		f.must(stack.client.Get(f.ctx, client.ObjectKeyFromObject(next), last))
		next.SetResourceVersion(last.ResourceVersion)
		return stack.client.Update(f.ctx, next)
	})
}

// A kind whose definition is deleted takes its objects with it; when it comes
// back, at whatever version, the layer has its object again at once.
func TestKindThatComesBackIsWatchedAgain(t *testing.T) {
	f := newFixture(t)
	gone := f.manifest(movingDefinition("leavers", "Leaver", "v1alpha1"))
	f.make(gone)
	revision := f.push(map[string]string{"base/leaver.yaml": f.moving("Leaver", "v1", 1), "base/release.yaml": f.configMapRelease("release", "x")})
	f.layer("base")
	f.state("base", v1alpha1.StateApplying, "Leaver", "which the cluster does not serve")
	f.redefine(movingDefinition("leavers", "Leaver", "v1"))
	f.deployed("base", revision)

	f.must(stack.client.Delete(f.ctx, gone))
	f.state("base", v1alpha1.StateApplying, "Leaver", "which the cluster does not serve")
	f.make(f.manifest(movingDefinition("leavers", "Leaver", "v1")))
	back := time.Now()
	f.deployed("base", revision)
	t.Logf("deployed again %s after the definition came back", time.Since(back).Round(time.Millisecond))
	f.restored("Leaver", "v1", 1)
}
