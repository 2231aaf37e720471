// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
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
