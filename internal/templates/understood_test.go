// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"fmt"
	"sync"
	"testing"
)

// TestUnderstoodOnce asks for one expression with several data at the same time: what
// is remembered is the expression, and not what it came to.
func TestUnderstoodOnce(t *testing.T) {
	language, err := New("inputs")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			got, err := language.FillText("${inputs.a}-x", Data{"inputs": {"a": int64(i)}})
			if want := fmt.Sprintf("%d-x", i); err != nil || got != want {
				t.Errorf("%s, %v, not %s", got, err, want)
			}
		})
	}
	all.Wait()
	if got := len(language.understood); got != 1 {
		t.Errorf("%d expressions are remembered", got)
	}
	for i := range maxUnderstood + 1 {
		language.understood[fmt.Sprint(i)] = nil
	}
	if _, err := language.FillText("${inputs.b == null}", Data{"inputs": {"b": nil}}); err != nil || len(language.understood) != 1 {
		t.Errorf("%d expressions are remembered, %v", len(language.understood), err)
	}
}
