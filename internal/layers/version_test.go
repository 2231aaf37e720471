// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestK8sVersionSatisfied(t *testing.T) {
	cases := []struct {
		reason, wanted, cluster string
		want                    bool
	}{
		{"nothing is always met", "", "v1.36.3", true},
		{"nothing is met whatever the cluster says", " ", "dev", true},
		{"a minimum", "1.16", "v1.36.3", true},
		{"a minimum with v", "v1.16", "v1.36.3", true},
		{"a minimum with patch", "1.36.3", "v1.36.3", true},
		{"a minimum with patch, one too few", "1.36.4", "v1.36.3", false},
		{"numbers, not text", "1.9", "v1.10.0", true},
		{"a minimum that is far away", "v99.0", "v1.36.3", false},
		{"a range", ">=1.30 <2", "v1.36.3", true},
		{"a range with a comma", ">=1.30, <1.36", "v1.36.3", false},
		{"alternatives", "<1.20 || >=1.36", "v1.36.0", true},
		{"a range with v", ">=v1.30", "v1.36.3", true},
		{"a tilde", "~1.36", "v1.36.9", true},
		{"a tilde that ends", "~1.35", "v1.36.0", false},
		{"a caret", "^1.16", "v1.36.3", true},
		{"a wildcard", "1.36.x", "v1.36.3", true},
		{"exactly", "=1.36.3", "v1.36.3-eks-1", true},
		{"EKS", ">=1.36.3", "v1.36.3-eks-1", true},
		{"EKS, as a minimum", "1.36.3", "v1.36.3-eks-1a2b3c4", true},
		{"GKE", "1.30.5", "v1.30.5-gke.100", true},
		{"GKE, in a range", ">=1.30 <2", "v1.30.5-gke.100", true},
		{"k3s", ">=1.36.3 <1.36.4", "v1.36.3+k3s1", true},
		{"a pre-release of the cluster counts as its version", ">=1.37", "v1.37.0-alpha.1", true},
		{"two numbers", "1.36", "1.36", true},
		{"a cluster's version that is none meets nothing", "1.16", "dev", false},
		{"nor does it meet a range", ">=0", "", false},
	}
	for _, tc := range cases {
		got, err := K8sVersionSatisfied(tc.wanted, tc.cluster)
		if got != tc.want || err != nil {
			t.Errorf("%s: %q on %q: got %v, %v", tc.reason, tc.wanted, tc.cluster, got, err)
		}
	}
	for _, wanted := range []string{"latest", "1.2.3.4", ">=", "v", ">=1.30 <two"} {
		if got, err := K8sVersionSatisfied(wanted, "v1.36.3"); got || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is neither", wanted)) {
			t.Errorf("%q is no version: got %v, %v", wanted, got, err)
		}
	}
}

func FuzzK8sVersion(f *testing.F) {
	for _, seed := range [][2]string{{"1.16", "v1.36.3"}, {">=1.30 <2", "v1.36.3-eks-1"}, {"v99.0", "v1.30.5-gke.100"}, {"~1.36 || 2.x", "v1.36.3+k3s1"}, {"", ""}, {"-", "x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, wanted, cluster string) {
		met, err := K8sVersionSatisfied(wanted, cluster)
		if met && err != nil {
			t.Errorf("met, and cannot be understood: %v", err)
		}
		plain := leadingVersion.FindString(cluster)
		if again, _ := K8sVersionSatisfied(wanted, plain+"-eks-1"); plain != "" && strings.Count(plain, ".") == 2 && again != met {
			t.Errorf("a suffix matters: %q on %q: %v, with another one %v", wanted, cluster, met, again)
		}
	})
}

func TestParseDependency(t *testing.T) {
	cases := []struct {
		reason, text string
		want         Dependency
		err          string
	}{
		{"a version", "base@1.0.0", Dependency{"base", "1.0.0"}, ""},
		{"any string", "base@spring-2026", Dependency{"base", "spring-2026"}, ""},
		{"a bare name", "base", Dependency{"base", ""}, ""},
		{"the version is all that follows", "base@a@b", Dependency{"base", "a@b"}, ""},
		{"a path is data", "base@../../x", Dependency{"base", "../../x"}, ""},
		{"a name with dots", "a.b-c@1", Dependency{"a.b-c", "1"}, ""},
		{"nothing", "", Dependency{}, `"" does not begin with the name of a layer: write name@version`},
		{"no name", "@1.0.0", Dependency{}, `"@1.0.0" does not begin with the name of a layer: write name@version`},
		{"no version", "base@", Dependency{}, `"base@" has no version behind the @: write name@version`},
		{"blanks", "base @1", Dependency{}, `"base @1" does not begin with the name of a layer: write name@version`},
		{"capitals", "Base@1", Dependency{}, `"Base@1" does not begin with the name of a layer: write name@version`},
		{"a range", "mesh@>=2.1 <3", Dependency{}, `"mesh@>=2.1 <3" asks for a range, which is not supported: write name@version with one exact version`},
	}
	for _, tc := range cases {
		got, err := ParseDependency(tc.text)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%s: %q: got %+v, %v", tc.reason, tc.text, got, err)
		}
	}
}

func FuzzParseDependency(f *testing.F) {
	for _, seed := range []string{"base@1.0.0", "base", "base@a@b", "@", "", "mesh@>=2.1 <3", "a..b@1", "base@\x00", "Ä@1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dependency, err := ParseDependency(text)
		if err != nil {
			if dependency != (Dependency{}) {
				t.Errorf("%q: %+v besides an error", text, dependency)
			}
			return
		}
		if dependency.String() != text || strings.Contains(dependency.Name, "@") || dependency.Name == "" {
			t.Errorf("%q becomes %+v", text, dependency)
		}
	})
}

func TestDependencies(t *testing.T) {
	got, err := Dependencies([]string{"a@1", "b@", "c", ""})
	if diff := cmp.Diff([]Dependency{{"a", "1"}, {"c", ""}}, got); diff != "" {
		t.Errorf("those that can be understood are returned (-want +got):\n%s", diff)
	}
	if err == nil || err.Error() != `spec.prereqs.dependsOn[1]: "b@" has no version behind the @: write name@version` {
		t.Errorf("the first that cannot be understood is named: %v", err)
	}
	if got, err := Dependencies(nil); got != nil || err != nil {
		t.Errorf("none are none: %v, %v", got, err)
	}
}

// slowReaches is the obvious way to ask: every step, as often as there are nodes.
func slowReaches(edges map[string][]string, from, to string) bool {
	reached := map[string]bool{}
	for _, next := range edges[from] {
		reached[next] = true
	}
	for range 10 {
		for node := range reached {
			for _, next := range edges[node] {
				reached[next] = true
			}
		}
	}
	return reached[to]
}

func TestCycle(t *testing.T) {
	nodes := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		edges := map[string][]string{}
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			from := rapid.SampledFrom(nodes).Draw(t, "from")
			edges[from] = append(edges[from], rapid.SampledFrom(nodes).Draw(t, "to"))
		}
		for _, node := range nodes {
			path := Cycle(node, func(name string) []string { return edges[name] })
			if (path != nil) != slowReaches(edges, node, node) {
				t.Fatalf("%s: %v in %v", node, path, edges)
			}
			if path == nil {
				continue
			}
			if path[0] != node || path[len(path)-1] != node {
				t.Errorf("%v does not lead from %s to %s", path, node, node)
			}
			for i := 1; i < len(path); i++ {
				if !slices.Contains(edges[path[i-1]], path[i]) {
					t.Errorf("%v: there is no way from %s to %s", path, path[i-1], path[i])
				}
			}
			if inner := path[1:]; len(slices.Compact(slices.Sorted(slices.Values(inner)))) != len(inner) {
				t.Errorf("%v goes in circles", path)
			}
		}
	})
}

func TestContentError(t *testing.T) {
	cases := map[string]ContentError{
		"what":                     {Message: "what"},
		"a.yaml: what":             {File: "a.yaml", Message: "what"},
		"a.yaml:3: what":           {File: "a.yaml", Line: 3, Message: "what"},
		"a.yaml:3: kind: what":     {File: "a.yaml", Line: 3, Field: "kind", Message: "what"},
		"spec.source.path: what":   {Field: "spec.source.path", Message: "what"},
		"spec.source.path:  what ": {Field: "spec.source.path", Line: 3, Message: " what "},
	}
	for want, err := range cases {
		if got := errors.Join(&err).Error(); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}
