// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/directories"
)

// What is accepted is what kubectl reads, and anything else is an author's
// mistake with a place.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		release("a"), configMap("a", "{n: 9007199254740993, y: yes}"), "---\n" + release("a") + "---\n" + release("b"),
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n", "a: &a [*a]\n", aliasBomb(), "%YAML 1.1\n---\na: b\n",
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":1e3}`, "a: b\n  c: d\n", "<<: {a: b}\n", "? [a]\n: b\n", "!!binary x\n", "a: 0x7fffffffffffffff1\n", "\ufeff#\n...\n",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nsops: {mac: x}\n", "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {a: 1}}\n",
	} {
		f.Add("a.yaml", seed)
		f.Add("a.json", seed)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if !fs.ValidPath(name) || !isManifest(name) || strings.Contains(name, "/.") || name[0] == '.' {
			return
		}
		got, err := Parse(context.Background(), files(name, text), ".")
		var mistake *directories.ContentError
		if err != nil {
			if !errors.As(err, &mistake) || mistake.Reason == "" || mistake.File != name || mistake.Line > strings.Count(text, "\n")+1 || strings.Contains(mistake.Message, "%!") {
				t.Fatalf("not an author's mistake with a place: %#v", err)
			}
			return
		}
		again, err := Parse(context.Background(), files(name, text), ".")
		if err != nil || again.Digest != got.Digest {
			t.Fatalf("another digest the second time: %v", err)
		}
		if len(got.Manifests) == 1 && !strings.Contains(text, "List") && !strings.Contains(text, "---") && !strings.Contains(text, "...") && !strings.Contains(text, "%") {
			sameAsKubectl(t, text, got.Manifests[0].Object)
		}
	})
}

func sameAsKubectl(t *testing.T, text string, got *unstructured.Unstructured) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return // JSON that YAML does not know
	}
	want := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &want.Object); err != nil {
		t.Fatal(err)
	}
	stripServerFields(want)
	if err := convert(want); err != nil {
		t.Fatal(err)
	}
	// As JSON: 1e3 in a file of JSON is the float that kubectl makes of it.
	if diff := cmp.Diff(string(canonical(want)), string(canonical(got))); diff != "" {
		t.Fatalf("kubectl reads something else (-kubectl +got):\n%s", diff)
	}
}

// A converted object is of a served version, converts to itself, and keeps
// every field that has not moved.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"helm.toolkit.fluxcd.io/v2beta1","kind":"HelmRelease","spec":{"chart":{"spec":{"valuesFile":"a","valuesFiles":["b"]}},"x":1}}`,
		`{"apiVersion":"helm.toolkit.fluxcd.io/v2beta2","kind":"HelmRelease","spec":{"postRenderers":[{"kustomize":{"patchesStrategicMerge":[{"a":1},"b"],"patchesJson6902":[{"patch":[{"op":"x"}],"target":{}}]}},7]}}`,
		`{"apiVersion":"source.toolkit.fluxcd.io/v1beta2","kind":"GitRepository","spec":{"accessFrom":1}}`,
		`{"apiVersion":"source.toolkit.fluxcd.io/v1beta1","kind":"HelmChart","spec":{"valuesFile":7}}`, `{"apiVersion":1}`, `{"spec":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) != nil || object.Object == nil || len(data) > 10_000 {
			return
		}
		if err := convert(object); err != nil {
			if err.Field == "" || err.Message == "" {
				t.Fatalf("a mistake without a field: %v", err)
			}
			return
		}
		again := object.DeepCopy()
		if err := convert(again); err != nil || !cmp.Equal(object.Object, again.Object) {
			t.Fatalf("converting twice changes it: %v", err)
		}
		if version := object.GetAPIVersion(); object.GetKind() == "HelmRelease" && strings.HasPrefix(version, helmGroup+"/v2beta") && (strings.HasSuffix(version, "/v2beta1") || strings.HasSuffix(version, "/v2beta2")) {
			t.Fatalf("%s is not served", version)
		}
	})
}

// Whatever an archive says, what is unpacked of it are files with names inside,
// and no more than is allowed.
func FuzzUntar(f *testing.F) {
	var plain bytes.Buffer
	writer := tar.NewWriter(&plain)
	for _, header := range []tar.Header{
		{Name: "a/x", Typeflag: tar.TypeReg, Size: 1}, {Name: "../x", Typeflag: tar.TypeReg}, {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/"},
	} {
		_ = writer.WriteHeader(&header)
		_, _ = writer.Write([]byte("x")[:header.Size])
		f.Add(bytes.Clone(plain.Bytes()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content bytes.Buffer
		const limit = 1 << 16
		index, err := untar(bytes.NewReader(zip(t, data)), &content, limit)
		if reason, text := mistake(err); err != nil && reason != "ArtifactRefused" {
			t.Fatalf("not refused but failed: %s", text)
		}
		if content.Len() > limit {
			t.Fatalf("%d bytes were written, %d are allowed", content.Len(), limit)
		}
		if err != nil {
			return
		}
		for name := range index.files {
			if !fs.ValidPath(name) || index.folders[name] != nil {
				t.Fatalf("%q is no name of a file", name)
			}
		}
		if content.Len() < 1<<10 && len(index.files) < 10 { // it reads byte by byte
			packed := packedFS{content: bytes.NewReader(content.Bytes()), index: index}
			names := slices.AppendSeq(slices.Collect(maps.Keys(index.files)), maps.Keys(index.folders))
			if err := fstest.TestFS(packed, slices.DeleteFunc(names, func(name string) bool { return name == "." })...); err != nil {
				t.Fatal(err)
			}
		}
		// What was unpacked is what a later process makes sure of.
		written, err := index.marshal()
		if err != nil {
			t.Fatal(err)
		}
		read, err := parseIndex(written)
		if err != nil {
			t.Fatal(err)
		}
		if err := read.verify(&content); err != nil {
			t.Fatal(err)
		}
	})
}

// A number that is accepted is the number that was written.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"1", "-9223372036854775808", "9223372036854775808", "1_000", "0x10", "0b11", "0o7", "+12", "012", "1e3", "190:20:30"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, number string) {
		want, ok := new(big.Int).SetString(number, 10)
		if !ok || strings.HasPrefix(strings.TrimLeft(number, "+-"), "0") {
			return
		}
		got, err := Parse(context.Background(), files("a.yaml", configMap("a", "{number: "+number+"}")), ".")
		if err != nil {
			if want.IsInt64() {
				t.Fatal(err)
			}
			return
		}
		value, _, _ := unstructured.NestedFieldNoCopy(got.Manifests[0].Object.Object, "data", "number")
		if n, ok := value.(int64); !ok || n != want.Int64() || !want.IsInt64() {
			t.Fatalf("%s was read as %v", number, value)
		}
	})
}
