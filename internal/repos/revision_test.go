// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/strata-project/strata/internal/reserved"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
)

func revisionOf(t *testing.T, content string) *directories.Directory {
	t.Helper()
	directory, err := Parse(t.Context(), fstest.MapFS{"base/objects.yaml": {Data: []byte(content)}}, "./base")
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

func TestRevisionRoundTrip(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":       "",
		"one object":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: a, name: b}\ndata: {big: \"9007199254740993\"}\n",
		"exact numbers": "apiVersion: example.dev/v1\nkind: Widget\nmetadata: {namespace: a, name: b}\nspec: {big: 9007199254740993, part: 0.1, small: 1e-9, yes: true, none: null}\n",
		"several":       "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {namespace: a, name: b}\nstringData: {x: \"\\u00e4 <&>\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			want := revisionOf(t, content)
			data, err := PackRevision(want)
			if err != nil {
				t.Fatal(err)
			}
			again, err := PackRevision(want)
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("the same directory is packed in two ways, %v", err)
			}
			got, err := UnpackRevision(data, want.Digest, digests.Key{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-packed +unpacked):\n%s", diff)
			}
		})
	}
}

func TestRevisionThatIsTooLarge(t *testing.T) {
	random := rand.New(rand.NewSource(1)) // does not get smaller when it is packed
	noise := make([]byte, MaxRevision)
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[random.Intn(64)]
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"},
		"data": map[string]any{"noise": string(noise), "more": string(noise[:MaxRevision/2])},
	}}
	_, err := PackRevision(&directories.Directory{Manifests: []directories.Manifest{{Object: object}}})
	if !errors.Is(err, ErrRevisionTooLarge) {
		t.Errorf("packed: %v", err)
	}
}

// What comes out of a cluster may be anything.
func TestUnpackRevisionRefuses(t *testing.T) {
	packed := func(plain string) []byte {
		var buffer bytes.Buffer
		writer := gzip.NewWriter(&buffer)
		_, _ = writer.Write([]byte(plain))
		_ = writer.Close()
		return buffer.Bytes()
	}
	const object = `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}}`
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":         {nil, "EOF"},
		"no archive":      {[]byte("these are objects"), "invalid header"},
		"cut off":         {packed("[" + object + "]")[:40], "EOF"},
		"no JSON":         {packed("objects"), "invalid character"},
		"no list":         {packed(object), "cannot unmarshal object"},
		"no object":       {packed(`[{"file":"a.yaml"}]`), "without an object"},
		"no kind":         {packed(`[{"object":{"metadata":{"name":"a"}}}]`), "Kind"},
		"the same twice":  {packed("[" + object + "," + object + "]"), "is there twice"},
		"something else":  {packed("[" + object + "]"), "instead of sha256:wanted"},
		"a bomb":          {bytes.Repeat(packed(strings.Repeat(" ", 1<<20)), maxDirectory>>20+1), fmt.Sprintf("more than %d bytes", maxDirectory)},
		"too many bytes":  {make([]byte, MaxRevision+1), fmt.Sprintf("at most %d are read", MaxRevision)},
		"an empty object": {packed(`[{"object":{}}]`), "Kind"},
	} {
		t.Run(name, func(t *testing.T) {
			directory, err := UnpackRevision(tc.data, "sha256:wanted", digests.Key{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("unpacked %v, error %v, want %q in it", directory, err, tc.want)
			}
		})
	}
}

func FuzzUnpackRevision(f *testing.F) {
	data, err := PackRevision(&directories.Directory{Manifests: []directories.Manifest{{File: "a.yaml", Line: 1, Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"},
	}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "sha256:x")
	f.Add([]byte("\x1f\x8b"), "")
	f.Fuzz(func(t *testing.T, data []byte, digest string) {
		directory, err := UnpackRevision(data, digest, digests.Key{})
		if err == nil && directory.Digest != digest {
			t.Errorf("%s was unpacked as %s", directory.Digest, digest)
		}
	})
}

// What is kept has names that nothing else has, whatever the layer is called and
// whatever digest a status names.
func TestRevisionNames(t *testing.T) {
	for _, layer := range []string{"base", "sh.helm.release.v1.strata", "strata-kubeconfig-prod"} {
		for _, digest := range []string{"sha256:0123456789abcdef0123456789abcdef", "x:v1", "", "none"} {
			name := RevisionName(layer, digest)
			if !strings.HasPrefix(name, reserved.RevisionPrefix+layer+".") {
				t.Errorf("%s of %s is in Secret %s", digest, layer, name)
			}
		}
	}
	if a, b := RevisionName("base", "sha256:0123456789abcdef0"), RevisionName("base", "sha256:0123456789abcdef1"); a == b {
		t.Errorf("both are %s", a)
	}
}
