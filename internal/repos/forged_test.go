// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/test/forged"
)

// sourceOf returns a source of Flux that asks for generation 2, whose status is of a generation.
func sourceOf(kind string, generation int64, changes ...func(status map[string]any)) *unstructured.Unstructured {
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "Said", "message": "said", "observedGeneration": generation}
	}
	status := map[string]any{
		"observedGeneration": generation,
		"artifact": map[string]any{
			"url": "http://source-controller/a.tar.gz", "revision": "main@sha1:2", "digest": "sha256:a", "path": "a", "size": int64(100),
			"lastUpdateTime": "2026-01-02T03:04:05Z",
		},
		"conditions": []any{condition("ArtifactInStorage", "True"), condition("Ready", "True")},
	}
	for _, change := range changes {
		change(status)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
		"metadata": map[string]any{"name": "addons", "namespace": "flux-system", "generation": int64(2)}, "status": status,
	}}
}

// broughtAbout returns what follows from a source: what is fetched, and what a layer writes that
// has its directory.
func broughtAbout(t *testing.T, obj *unstructured.Unstructured) []string {
	t.Helper()
	parsed, err := ParseSource(obj)
	if err != nil {
		return nil // it cannot be understood, and nothing comes of it
	}
	source, artifact := parsed.Observed()
	const limit = 1 << 20
	if artifact == nil || artifact.Size > limit {
		return nil
	}
	layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: "base", Generation: 1}}
	layer.Spec.Version, layer.Spec.Source = "1.0.0", v1alpha1.SourceSpec{Name: "addons", Path: "./base"}
	o := layers.Observation{
		Layer: layer, Settings: layers.Settings{Namespace: "flux-system"}, ObservedSource: layers.ObservedSource{Source: source},
		ObservedContents: layers.ObservedContents{Directory: directoriestest.Of(artifact.Revision, directoriestest.HelmRelease("a"))},
	}
	all := []string{"fetches " + artifact.URL + " with " + artifact.Digest}
	decision := layers.Decide(o)
	for _, action := range decision.Plan.Actions {
		all = append(all, string(action.Verb)+" "+action.ID.String())
	}
	if len(decision.Plan.Actions) > 0 {
		all = append(all, "deploys "+source.Revision)
	}
	return all
}

// sources are those from which something would come, and from which nothing is to come.
func forgedSources() map[string]*unstructured.Unstructured {
	failing := func(status map[string]any) { status["conditions"].([]any)[1].(map[string]any)["status"] = "False" }
	return map[string]*unstructured.Unstructured{
		"as it is asked for":  sourceOf("GitRepository", 2),
		"of before":           sourceOf("OCIRepository", 1),
		"failing":             sourceOf("Bucket", 2, failing),
		"cannot be fetched":   sourceOf("GitRepository", 1, failing),
		"fetched of before":   sourceOf("GitRepository", 1, func(status map[string]any) { status["observedGeneration"] = int64(2) }),
		"without an artifact": sourceOf("GitRepository", 2, func(status map[string]any) { delete(status, "artifact") }),
		"made by others":      sourceOf("ExternalArtifact", 2),
	}
}

func news(honest, done []string) []string {
	return slices.DeleteFunc(slices.Clone(done), func(one string) bool { return slices.Contains(honest, one) })
}

// Whatever somebody has written into the fields of a source's status of which nothing is to
// follow, nothing is fetched or deployed that would not have been.
func TestForgedStatusOfASource(t *testing.T) {
	brings := 0
	for name, obj := range forgedSources() {
		honest := broughtAbout(t, obj)
		brings += len(honest)
		for _, forgery := range forged.EachForeign(t, v1alpha1.AnySource, obj, "main@sha1:1", "sha256:b") {
			if done := news(honest, broughtAbout(t, forgery.Object)); len(done) > 0 {
				t.Errorf("%s: %s: %v, and not only %v", name, forgery.Name, done, honest)
			}
		}
	}
	if brings == 0 {
		t.Error("nothing was brought about")
	}
}

// A field that is acted on would be found if it were in a class of which nothing follows: the
// same forgeries, of fields that are believed, bring something about.
func TestForgeriesFindWhatIsActedOnOfSources(t *testing.T) {
	for path, class := range v1alpha1.ForeignStatusFields(v1alpha1.AnySource) {
		if !class.IsBelieved() {
			continue
		}
		found := false
		for _, obj := range forgedSources() {
			honest := broughtAbout(t, obj)
			for _, forgery := range forged.OfForeign(t, path, obj, "main@sha1:1", "sha256:b") {
				found = found || len(news(honest, broughtAbout(t, forgery.Object))) > 0
			}
		}
		if !found {
			t.Errorf("a forged %s of a source brings nothing about", path)
		}
	}
}
