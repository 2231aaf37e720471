// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestFlagMistakes(t *testing.T) {
	for name, test := range map[string]struct{ args, want string }{
		"an unknown flag":      {"--colour=red", "unknown flag: --colour"},
		"no flag":              {"hosts.yaml", `"hosts.yaml" is no flag`},
		"an address":           {"--allowed-host-ranges=10.0.0.1", "--allowed-host-ranges: netip.ParsePrefix"},
		"nobody works":         {"--concurrent=0", "--concurrent must be at least 1"},
		"no quota":             {"--snapshot-quota=much", `--snapshot-quota must be more than 0, such as 20Gi, and is "much"`},
		"a quota of nothing":   {"--snapshot-quota=0", "--snapshot-quota must be more than 0"},
		"it never comes to it": {"--retry-interval=1ms", "--retry-interval must be at least 1s"},
	} {
		if _, err := parseFlags(strings.Fields(test.args), func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing may be reached, and no namespace is left out, unless flags say so.
func TestFlags(t *testing.T) {
	o, err := parseFlags(nil, func(string) string { return "" })
	if err != nil || len(o.allowed.Ranges) > 0 || len(o.managerOptions().Cache.DefaultNamespaces) > 0 {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = parseFlags([]string{"--allowed-host-ranges=10.0.0.0/8,fd00::/8", "--namespaces=fleet"}, func(string) string { return "" })
	if err != nil || len(o.allowed.Ranges) != 2 || len(o.managerOptions().Cache.DefaultNamespaces) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}
