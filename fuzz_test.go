// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/signals"
)

// Flags that are accepted make sense together, and can be used as they are.
func FuzzFlags(f *testing.F) {
	for _, seed := range [][4]string{
		{"50Mi", "2Gi", "team in (a,b),!c", "http://host/"},
		{"1e3", "1e3", "", ""},
		{"-1", "0", "a=b", "host"},
		{"0.5", "1n", "a==", "http://"},
		{"9223372036854775807", "1E", "=", "ftp://x"},
		{"1e99999999", "1e-99999999", ",", "http://h:99999999/"},
		{"", " ", "\x00", "http://[::1]:80"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, artifact, cache, selector, events string) {
		if len(artifact)+len(cache) > 200 {
			return
		}
		o, err := parseFlags([]string{"--artifact-max-size=" + artifact, "--artifact-cache-size=" + cache, "--watch-label-selector=" + selector, "--events-addr=" + events}, env())
		if err != nil {
			if !strings.Contains(err.Error(), "--") && !strings.Contains(err.Error(), "size") {
				t.Fatalf("the error names no flag: %v", err)
			}
			return
		}
		if o.artifactMaxSize.Value() <= 0 || o.cacheSize.Value() < o.artifactMaxSize.Value() {
			t.Fatalf("sizes of %d bytes in %d were accepted", o.artifactMaxSize.Value(), o.cacheSize.Value())
		}
		if (o.selector != nil) != (selector != "") {
			t.Fatalf("the selector %q becomes %v", selector, o.selector)
		}
		if events != "" && signals.CheckURL(o.eventsAddr) != nil {
			t.Fatalf("%q was accepted", events)
		}
	})
}
