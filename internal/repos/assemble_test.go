// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

func assembled(text string, names ...string) []directories.Manifest {
	var manifests []directories.Manifest
	for _, name := range names {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default", "uid": "1"},
			"data": map[string]any{"text": text}, "status": map[string]any{"ready": true},
		}}
		manifests = append(manifests, directories.Manifest{File: "bundle net, layer base", Object: obj})
	}
	return manifests
}

func TestAssemble(t *testing.T) {
	store, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	get := func(key, text string, names ...string) *directories.Directory {
		t.Helper()
		directory, err := store.Assemble(key, "1.0.0", func() ([]directories.Manifest, error) {
			calls++
			return assembled(text, names...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return directory
	}
	first := get("a", "x", "two", "one")
	if len(first.Manifests) != 2 || first.Manifests[0].Object.GetName() != "one" || first.Revision != "1.0.0" {
		t.Errorf("got %d objects of revision %s, the first being %s", len(first.Manifests), first.Revision, first.Manifests[0].Object.GetName())
	}
	if first.Manifests[0].Object.GetUID() != "" || first.Manifests[0].Object.Object["status"] != nil {
		t.Error("what only a server writes is still there")
	}
	made := assembled("x", "home", "needs")
	made[0].Home, made[1].Needs = true, []objects.ID{{Kind: "ConfigMap", Namespace: "default", Name: "home"}}
	kept, err := store.Assemble("z", "", func() ([]directories.Manifest, error) { return made, nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // more than is kept as objects
		get(fmt.Sprintf("other%d", i), strings.Repeat("x", 1<<18), "one")
	}
	packed, err := PackRevision(kept)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := UnpackRevision(packed, kept.Digest, digests.Key{})
	if err != nil {
		t.Fatal(err)
	}
	remembered, _ := store.ByDigest(kept.Digest)
	for name, directory := range map[string]*directories.Directory{"memory": remembered, "the cluster": unpacked} {
		if diff := cmp.Diff(kept.Manifests, directory.Manifests); diff != "" {
			t.Errorf("what %s has kept (-want +got):\n%s", name, diff)
		}
	}
	calls = 1
	if again := get("a", "never asked for"); again.Digest != first.Digest || calls != 1 {
		t.Errorf("the second time it was made %d times, with digest %s after %s", calls, again.Digest, first.Digest)
	}
	if digest, err := store.AssembledDigest("a", nil); err != nil || digest != first.Digest {
		t.Errorf("its digest is %s, %v, want %s", digest, err, first.Digest)
	}
	if same := get("b", "x", "one", "two"); same.Digest != first.Digest {
		t.Errorf("the order makes another digest, %s after %s", same.Digest, first.Digest)
	}
	if other := get("c", "y", "one", "two"); other.Digest == first.Digest {
		t.Error("other objects have the same digest")
	}
	if found, ok := store.ByDigest(first.Digest); !ok || len(found.Manifests) != 2 {
		t.Error("it is not found by its digest")
	}
}

func TestAssembleRefuses(t *testing.T) {
	store, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not yet")
	list := assembled("", "list")
	list[0].Object.SetKind("ConfigMapList")
	list[0].Object.Object["items"] = []any{}
	nameless := assembled("", "")
	large := assembled(strings.Repeat("x", maxDirectory), "large")
	for name, c := range map[string]struct {
		manifests []directories.Manifest
		err       error
		want      string
	}{
		"what cannot be made":   {nil, failed, "not yet"},
		"one object twice":      {assembled("", "one", "one"), nil, "ConfigMap default/one is there twice"},
		"an object of no name":  {nameless, nil, "metadata.name"},
		"a list":                {list, nil, "is a list"},
		"more than a layer has": {large, nil, "split the layer"},
	} {
		t.Run(name, func(t *testing.T) {
			directory, err := store.Assemble(name, "", func() ([]directories.Manifest, error) { return c.manifests, c.err })
			if err == nil || !strings.Contains(err.Error(), c.want) || directory != nil {
				t.Fatalf("got %v, %v, want an error with %q", directory, err, c.want)
			}
			var content *directories.ContentError
			if c.err == nil && (!errors.As(err, &content) || content.Reason == "" || content.Reason == v1alpha1.ReasonArtifactFailed) {
				t.Errorf("error %v is none that the author could mend", err)
			}
		})
	}
}
