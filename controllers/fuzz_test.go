// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/sources"
)

// A source is written by others, at any version of its kind. There is an
// artifact to fetch only where it has a digest and speaks of the source as it
// is specified now.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"generation":2},"status":{"observedGeneration":2,"artifact":{"url":"http://a/b","revision":"main@sha1:a","digest":"sha256:x","size":7},"conditions":[{"type":"Ready","status":"True"},{"type":"ArtifactInStorage","status":"True","observedGeneration":1}]}}`,
		`{"metadata":{"generation":2},"status":{"observedGeneration":1,"artifact":{"digest":"x"}}}`, `{"kind":"ExternalArtifact","metadata":{"generation":2},"status":{"artifact":{"digest":"x","size":-1}}}`,
		`{"status":{"artifact":{"url":7}}}`, `{"status":{"conditions":[{"lastTransitionTime":"x"}]}}`, `{"spec":{"suspend":"yes"}}`, `{"metadata":null,"status":null}`, `{"status":{"artifact":{"lastUpdateTime":"0000","size":1e300}}}`, `{"metadata":{"creationTimestamp":null,"labels":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if len(data) > 20_000 || json.Unmarshal(data, &object.Object) != nil || object.Object == nil {
			return
		}
		if object.GetKind() != sources.ExternalArtifact {
			object.SetKind(sources.GitRepository)
		}
		before := object.DeepCopy()
		parsed, err := repos.ParseSource(object)
		sourceChanged.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object.DeepCopy()})
		if !cmp.Equal(before, object) {
			t.Fatal("what others read is changed")
		}
		if err != nil {
			return
		}
		source, artifact := parsed.Observed()
		if artifact == nil {
			return
		}
		if artifact.Digest == "" || source.ObservedGeneration != source.Generation || artifact.Digest != source.Digest || artifact.Revision != source.Revision {
			t.Fatalf("%+v is fetched for %+v", artifact, source)
		}
	})
}
