// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// What objects have in common is there once, and they say what they said.
func TestIntern(t *testing.T) {
	const text = `{"kind":"HelmRelease","spec":{"values":{"a":[1,{"b":"Ready"},null,true]},"none":{}},"long":"` + "0123456789012345678901234567890123456789012345678901234567890123456789" + `"}`
	first, second := intern(decoded(t, text)).(map[string]any), intern(decoded(t, text)).(map[string]any)
	for _, got := range []map[string]any{first, second} {
		if diff := cmp.Diff(decoded(t, text), got); diff != "" {
			t.Errorf("it says something else (-want +got):\n%s", diff)
		}
	}
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	if !same(first["kind"].(string), second["kind"].(string)) {
		t.Error("a short value is there twice")
	}
	if same(first["long"].(string), second["long"].(string)) {
		t.Error("a long value is kept for ever")
	}
}

// However many texts there are, and whoever brings them, a bounded number is kept.
func TestInternedTextsAreBounded(t *testing.T) {
	many := texts{known: map[string]string{}}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range mostInterned {
				text := fmt.Sprint("text ", i, j)
				if many.of(text) != text {
					t.Error("another text")
				}
			}
		})
	}
	group.Wait()
	if got := len(many.known); got > mostInterned+4 {
		t.Errorf("%d are kept", got)
	}
	if long := strings.Repeat("x", longestInterned+1); many.of(long) != long || many.known[long] != "" {
		t.Error("a long text is kept")
	}
}

// Maps that several objects have are there once from the third object on; a map of which
// something differs is another one.
func TestInternedMapsAreHadInCommon(t *testing.T) {
	const text = `{"metadata":{"name":"NAME"},"spec":{"chart":{"spec":{"chart":"web","sourceRef":{"kind":"HelmRepository","name":"charts"}}},"replicas":2}}`
	spec := func(name, replicas string) map[string]any {
		object := decoded(t, strings.NewReplacer("NAME", name, `"replicas":2`, `"replicas":`+replicas).Replace(text))
		return intern(object).(map[string]any)["spec"].(map[string]any)
	}
	address := func(m any) uintptr { return reflect.ValueOf(m).Pointer() }
	// Each level is known when what is in it is: one more object for each.
	for i := range 5 {
		spec(fmt.Sprint("warm ", i), "2")
	}
	one, two, other := spec("one", "2"), spec("two", "2"), spec("three", `"2"`)
	if address(one) != address(two) {
		t.Error("the same map is there twice")
	}
	if address(one) == address(other) || address(one["chart"]) != address(other["chart"]) {
		t.Error("maps that differ in one field have the wrong parts in common")
	}
	if other["replicas"] != "2" || one["replicas"] == "2" {
		t.Errorf("%v and %v", one["replicas"], other["replicas"])
	}
}

// Whatever objects are like, they say what they said, also side by side.
func TestInternChangesNothing(t *testing.T) {
	const seed = 1 // parts of it are drawn side by side
	texts := []string{"", "a", "b", "true", "1", "n", "m1", `"`, `a"b`, strings.Repeat("long", 20)}
	var value func(draw *rand.Rand, depth int) any
	value = func(draw *rand.Rand, depth int) any {
		if depth == 0 || draw.IntN(3) == 0 {
			return []any{texts[draw.IntN(len(texts))], draw.IntN(2) == 0, int64(draw.IntN(3)), float64(draw.IntN(3)), nil}[draw.IntN(5)]
		}
		if draw.IntN(4) == 0 {
			return []any{value(draw, depth-1), value(draw, depth-1)}
		}
		made := map[string]any{}
		for range draw.IntN(mostFields + 2) {
			made[texts[draw.IntN(len(texts))]] = value(draw, depth-1)
		}
		return made
	}
	var group sync.WaitGroup
	for part := range uint64(4) {
		group.Go(func() {
			draw := rand.New(rand.NewPCG(seed, part))
			for range 3000 {
				object := value(draw, 3)
				want := runtime.DeepCopyJSONValue(object)
				if diff := cmp.Diff(want, intern(object)); diff != "" {
					t.Errorf("seed %d: it says something else (-want +got):\n%s", seed, diff)
					return
				}
			}
		})
	}
	group.Wait()
}

// However many maps there are, a bounded number is kept.
func TestInternedMapsAreBounded(t *testing.T) {
	many := parts{known: map[string]part{}, once: map[uint64]bool{}, seed: maphash.MakeSeed()}
	for range 2 {
		for i := range int64(mostSeenOnce - 1) {
			many.of([]field{{"number", i, 0}})
		}
	}
	for i := range int64(2 * mostSeenOnce) {
		many.of([]field{{"other", i, 0}})
	}
	if known, once := len(many.known), len(many.once); known != mostParts || once > mostSeenOnce {
		t.Errorf("%d are known, and %d were seen once", known, once)
	}
}

// A reflector strips an object a second time when it has been listed. Its maps are those of
// objects in the caches then, which others read: nothing is written to them.
func TestStripWritesNothingToWhatIsHadInCommon(t *testing.T) {
	const text = `{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{"name":"web","namespace":"apps"},
		"spec":{"interval":"1m"},"status":{"observedGeneration":"1"}}`
	strip := func() *unstructured.Unstructured {
		stripped, err := Object(&unstructured.Unstructured{Object: decoded(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		return stripped.(*unstructured.Unstructured)
	}
	strip()
	cached, listed := strip(), strip()
	for _, part := range []string{"metadata", "status"} {
		if reflect.ValueOf(cached.Object[part]).Pointer() != reflect.ValueOf(listed.Object[part]).Pointer() {
			t.Fatalf("%s is not had in common, so that this shows nothing", part)
		}
	}
	var group sync.WaitGroup
	group.Go(func() {
		for range 1000 {
			cached.DeepCopy()
		}
	})
	for range 1000 {
		if _, err := Object(listed); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
}
