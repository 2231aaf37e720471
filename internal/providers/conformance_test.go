// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/providers"
)

// What a plug-in does not keep of the contract is found, and named.
func TestConformance(t *testing.T) {
	f := newFixture(t)
	for do, want := range map[string][]string{
		"":         {},
		"wrong":    {"database/naughty 1.0: the parameters are taken: it does not take the parameters: parameters.do is wrong"},
		"fail":     {"database/naughty 1.0: plans an instance: plug-in"},
		"unsteady": {"database/naughty 1.0: says the same when it is asked the same: it says something else"},
		"slow":     {"database/naughty 1.0: answers in time: an answer took 1.2"},
		"named":    {"database/naughty 1.0: plans an instance: spec.objects[server].template.metadata.name: is missing"},
	} {
		parameters := fmt.Appendf(nil, `{"do": %q}`, do)
		checks := providers.Conformance{Host: f.Host, Plugin: process(f.digest), Parameters: parameters}.Run(t.Context())
		var failures []string
		for _, check := range checks {
			if !check.Passed {
				failures = append(failures, check.Name+": "+check.Message)
			}
		}
		isFound := func(text string) bool {
			return slices.ContainsFunc(failures, func(failure string) bool { return strings.HasPrefix(failure, text) })
		}
		if len(want) == 0 && len(failures) > 0 || len(checks) < 4 && do == "" {
			t.Errorf("of one that keeps all it says %q", failures)
		}
		for _, text := range want {
			if !isFound(text) {
				t.Errorf("of %s it says %q", do, failures)
			}
		}
	}
}
