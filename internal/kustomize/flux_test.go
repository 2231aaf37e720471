// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/provider"

	"github.com/strata-project/strata/internal/builds"
)

// Whoever does not know all variables puts in those that are known, and nothing else.
func TestSubstituteKeepsWhatIsNotKnown(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"known":             {"a-${KNOWN}", "a-value"},
		"unknown":           {"a-${OTHER}", "a-${OTHER}"},
		"a default":         {"${OTHER:=x}-${KNOWN:=y}", "${OTHER:=x}-value"},
		"a part":            {"${OTHER:0:3}", "${OTHER:0:3}"},
		"one in another":    {"${OTHER:-${MORE}}", "${OTHER:-${MORE}}"},
		"one that is none":  {"$${KNOWN}", "${KNOWN}"},
		"a name that grows": {"${KNOWN_TOO}", "${KNOWN_TOO}"},
	} {
		t.Run(name, func(t *testing.T) {
			factory := provider.NewDefaultDepProvider().GetResourceFactory()
			for _, label := range []string{"enabled", "disabled"} {
				made, err := factory.FromBytes([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {kustomize.toolkit.fluxcd.io/substitute: " + label + "}}\ndata: {x: \"" + test.text + "\"}\n"))
				if err != nil {
					t.Fatal(err)
				}
				object := &Object{}
				if err := object.substitute(made, &builds.Substitution{Variables: map[string]string{"KNOWN": "value"}, Keep: true}); err != nil {
					t.Fatal(err)
				}
				want := test.want
				if label == "disabled" {
					want = test.text
				}
				if got := made.MustYaml(); !strings.Contains(got, "x: "+want+"\n") {
					t.Errorf("%s: want %s in\n%s", label, want, got)
				}
				if len(object.Unset) > 0 {
					t.Errorf("%v are unset", object.Unset)
				}
			}
		})
	}
}
