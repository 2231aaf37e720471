// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/internal/directories"
)

// exactly tells -0 from 0, which are equal otherwise.
var exactly = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

// sameExpanded fails where manifests are not what they were once they have been
// condensed and expanded.
func sameExpanded(t rapid.TB, want []directories.Manifest) {
	t.Helper()
	objects, _ := condense(want)
	if objects == nil {
		t.Fatal("it cannot be condensed")
	}
	got, err := objects.expand()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exactly); diff != "" {
		t.Fatalf("(-before +after):\n%s", diff)
	}
	if digestOf(got) != digestOf(want) {
		t.Fatal("it has another digest")
	}
	if len(want) > 0 && cap(objects.data) > 2*len(objects.data)+64 {
		t.Fatalf("%d bytes take the room of %d", len(objects.data), cap(objects.data))
	}
}

// drawValue draws a value as it comes out of YAML or JSON.
func drawValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "boolean")
	case 2:
		return rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0, 1 << 53, 1<<53 + 1})).Draw(t, "integer")
	case 3:
		return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
			0, math.Copysign(0, -1), 1, -1, 1000, 0.1, 1 << 53, 1 << 63, 1e20, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64,
		})).Draw(t, "float")
	case 4:
		return drawText(t)
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		return drawMapping(t, depth)
	}
}

func drawMapping(t *rapid.T, depth int) map[string]any {
	mapping := map[string]any{}
	for range rapid.IntRange(0, 10).Draw(t, "entries") {
		mapping[drawText(t)] = drawValue(t, depth-1)
	}
	return mapping
}

func drawText(t *rapid.T) string {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "plain", `"`, `\`, `a"b\c`, "line\nline\r\n\ttab\x00\x1f\x7f", "<a href='&'>", "äöü €", "\u2028\u2029", "\ufffd", "\ufeff", "\U0001f600", "null", "1", "true", "\xff",
		strings.Repeat("long ", 100),
	})).Draw(t, "text")
}

// Whatever objects hold, they are the very same again.
func TestCondensedProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var manifests []directories.Manifest
		for range rapid.IntRange(0, 4).Draw(t, "objects") {
			manifests = append(manifests, directories.Manifest{
				File: drawText(t), Line: rapid.IntRange(0, 1000).Draw(t, "line"),
				Object: &unstructured.Unstructured{Object: drawMapping(t, 4)},
			})
		}
		sameExpanded(t, manifests)
	})
}

func TestCondensedManifests(t *testing.T) {
	directory := parsedFrom(t, "a.yaml", release("a")+"---\n"+configMap("c", "{n: 9007199254740993, f: 1.0, e: {}, l: [], z: null, h: '<&>'}"),
		"b.json", `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":1e3,"y":-0.0}`)
	sameExpanded(t, directory.Manifests)
	objects, _ := condense(directory.Manifests)
	one, err := objects.expand()
	if err != nil {
		t.Fatal(err)
	}
	one[0].Object.SetName("changed")
	two, err := objects.expand()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(directory.Manifests, two, exactly); diff != "" {
		t.Errorf("what one was changed to is in the next (-before +after):\n%s", diff)
	}
}

// parsedFrom returns the directory of files.
func parsedFrom(t testing.TB, pairs ...string) *directories.Directory {
	t.Helper()
	directory, err := Parse(t.Context(), files(pairs...), ".")
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

// What CBOR does not give back stays as it is.
func TestWhatIsNotCondensed(t *testing.T) {
	for name, value := range map[string]any{
		"a list that is nil": []any(nil), "a mapping that is nil": map[string]any(nil), "no number": math.NaN(), "no end": math.Inf(-1),
		"another type": 1, "strings": []string{"a"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := &directories.Directory{Digest: "x", Manifests: []directories.Manifest{{Object: &unstructured.Unstructured{Object: map[string]any{"value": value}}}}}
			p := newParsed(directory, nil, nil)
			if p.objects != nil {
				t.Fatalf("it is condensed to %s", p.objects.data)
			}
			m := newParsedCache(1)
			m.add(parsedKey{path: "a"}, p)
			got, err := m.directory(p)
			if err != nil || got.Manifests[0].Object != directory.Manifests[0].Object || m.expandedSize != 0 || m.size < p.expanded {
				t.Errorf("it is kept as %v, %v, and weighs %d", got, err, m.size)
			}
		})
	}
}

// A patch of an earlier form that is empty makes a list that is nil, which no
// file can say.
func TestCondensedConversion(t *testing.T) {
	old := strings.Replace(release("a"), "/v2\n", "/v2beta1\n", 1) + "  postRenderers:\n  - kustomize: {patchesStrategicMerge: []}\n"
	want := parsedFrom(t, "a.yaml", old)
	m := newParsedCache(1)
	got, err := m.directory(m.add(parsedKey{path: "a"}, newParsed(want, nil, nil)))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-before +after):\n%s", err, diff)
	}
}

// Whatever an object holds that comes from outside, it is the very same again.
func FuzzCondensed(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":[],"b":{},"c":null}`, `{"n":9007199254740993,"f":1.0,"e":1e3,"z":-0.0,"big":1e300,"int":99999999999999999999}`,
		`{"s":"\u0000\u001f\"\\\/<>&\u2028\ud83d\ude00\ud800"}`, `{"":{"":{"":[[[]]]}}}`, `{"a":"` + strings.Repeat("x", 1000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) == nil && object.Object != nil {
			sameExpanded(t, []directories.Manifest{{File: "a.yaml", Line: 1, Object: object}, {Object: object}})
		}
	})
}

// BenchmarkExpand expands a directory of 10 HelmReleases.
func BenchmarkExpand(b *testing.B) {
	var texts []string
	for _, name := range strings.Split("abcdefghij", "") {
		texts = append(texts, name+".yaml", fullRelease(name))
	}
	objects, _ := condense(parsedFrom(b, texts...).Manifests)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := objects.expand(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(objects.data)), "B/CBOR")
}
