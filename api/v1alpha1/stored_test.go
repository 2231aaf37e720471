// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/controlplane"
)

// A layer that was stored before the API server knew a rule keeps what it has:
// its status can be written, so that it can say what is wrong, and it can be
// mended. The definition is a copy in a group of its own, without the rules of
// dependsOn first and with them then.
func TestStoredLayerThatARuleRefusesCanSayIt(t *testing.T) {
	layer := func(name string) *unstructured.Unstructured {
		obj := parse(t, layer(name, "{version: 1.0.0, source: {name: addons, path: ./base}, prereqs: {dependsOn: ['Mesh@', 'dns@']}}"))
		obj.SetAPIVersion("stored.example/v1alpha1")
		return obj
	}
	stored := storedBefore(t, "addonslayers", layer, []string{"prereqs", "properties", "dependsOn", "items"}, "which has no capitals", "behind the @")
	for _, patch := range []string{
		`{"metadata":{"finalizers":["finalizers.kraan.io"]}}`, `{"spec":{"hold":true}}`, `{"metadata":{"finalizers":null}}`,
	} {
		if err := server.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"state":"Failed"}}`))
	if err := server.Status().Patch(t.Context(), stored, status); err != nil {
		t.Errorf("the status cannot be written: %v", err)
	}
	mended := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"prereqs":{"dependsOn":["mesh@^1"]}}}`))
	if err := server.Patch(t.Context(), stored, mended); err != nil {
		t.Errorf("it cannot be mended: %v", err)
	}
}

// A Platform that was stored with a word of an earlier version can say so and be mended, and
// no other one gets the word.
func TestStoredPlatformWithAWordOfBefore(t *testing.T) {
	platform := func(name string) *unstructured.Unstructured {
		obj := parse(t, platform(name, "bundle: {family: base}, upgrade: {mode: Notify}"))
		obj.SetAPIVersion("stored.example/v1alpha1")
		return obj
	}
	stored := storedBefore(t, "platforms", platform, []string{"upgrade", "properties", "mode"}, "what was Notify is Manual with upgrade.forceAfterEndOfLife: true")
	for _, patch := range []string{
		`{"metadata":{"finalizers":["finalizers.kraan.io"]}}`, `{"spec":{"hold":true}}`, `{"metadata":{"finalizers":null}}`,
	} {
		if err := server.Patch(t.Context(), stored, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Errorf("%s: %v", patch, err)
		}
	}
	if mode, _, _ := unstructured.NestedString(stored.Object, "spec", "upgrade", "mode"); mode != "Notify" {
		t.Errorf("the stored mode is %q: what was meant is lost", mode)
	}
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"version":"1.0.0"}}`))
	if err := server.Status().Patch(t.Context(), stored, status); err != nil {
		t.Errorf("the status cannot be written: %v", err)
	}
	mended := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"upgrade":{"mode":"Manual","forceAfterEndOfLife":true}}}`))
	if err := server.Patch(t.Context(), stored, mended); err != nil {
		t.Errorf("it cannot be mended: %v", err)
	}
}

// storedBefore returns an object that was stored before the API server knew the rules of a
// field of the specification: the definition of its kind, in a group of its own, lacks them
// first and has them then. Others like it are refused with the words.
func storedBefore(t *testing.T, plural string, object func(name string) *unstructured.Unstructured, field []string, words ...string) *unstructured.Unstructured {
	t.Helper()
	needsServer(t)
	data, err := os.ReadFile("../../config/crd/bases/kraan.io_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "group: kraan.io", "group: stored.example")
	text = strings.ReplaceAll(text, plural+".kraan.io", plural+".stored.example")
	strict, loose := parse(t, text), parse(t, text)
	withoutRules(t, loose, field)
	create(t, loose)

	stored := object("stored")
	eventually(t, "the kind is served", func() error { return server.Create(t.Context(), stored) })

	strict.SetResourceVersion(loose.GetResourceVersion())
	eventually(t, "the rules are there", func() error {
		current := strict.DeepCopy()
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(loose), loose); err != nil {
			return err
		}
		current.SetResourceVersion(loose.GetResourceVersion())
		return server.Update(t.Context(), current)
	})
	eventually(t, "the rules are in force", func() error {
		err := server.Create(t.Context(), object("newcomer"), client.DryRunAll)
		if err == nil {
			return errAccepted
		}
		for _, word := range words {
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), word) {
				return err
			}
		}
		return nil
	})
	return stored
}

var errAccepted = apierrors.NewBadRequest("it is accepted")

// withoutRules takes the rules of a field of the specification out of a definition.
func withoutRules(t *testing.T, definition *unstructured.Unstructured, field []string) {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	path := append([]string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}, field...)
	for _, version := range versions {
		items, found, err := unstructured.NestedMap(version.(map[string]any), path...)
		if err != nil || !found || items["x-kubernetes-validations"] == nil {
			t.Fatalf("%v has no rules: %v, %v", field, items, err)
		}
		delete(items, "x-kubernetes-validations")
		if err := unstructured.SetNestedMap(version.(map[string]any), items, path...); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := controlplane.WaitFor(t.Context(), 30*time.Second, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
