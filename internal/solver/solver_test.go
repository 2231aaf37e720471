// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package solver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry makes an application of the catalogue with versions written in short:
// the version, then words. "needs:db@^2" and "likes:cache" are requirements,
// "k8s:>=1.33" is a range of Kubernetes, and preview, eol and withdrawn:reason are
// what they say.
func entry(name string, versions ...string) Application {
	application := Application{Name: name}
	for _, text := range versions {
		words := strings.Split(text, " ")
		version := Version{Version: words[0]}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, ":")
			wanted, limits, _ := strings.Cut(strings.ReplaceAll(value, "_", " "), "@")
			switch key {
			case "needs":
				version.Dependencies = append(version.Dependencies, Requirement{Name: wanted, Range: limits})
			case "likes":
				version.Recommends = append(version.Recommends, Requirement{Name: wanted, Range: limits})
			case "k8s":
				version.Kubernetes = value
			case "preview":
				version.Preview = true
			case "eol":
				version.EndOfLife = true
			case "withdrawn":
				version.Withdrawn, version.WithdrawnReason = true, value
			default:
				panic(text)
			}
		}
		application.Versions = append(application.Versions, version)
	}
	return application
}

// picks makes picks written as name or name@range.
func picks(texts ...string) []Pick {
	var made []Pick
	for _, text := range texts {
		name, limits, _ := strings.Cut(text, "@")
		made = append(made, Pick{Name: name, Range: limits})
	}
	return made
}

// short says a lock in one line.
func short(lock Lock) string {
	var parts []string
	for _, entry := range lock {
		parts = append(parts, entry.Name+" "+entry.Version)
	}
	return strings.Join(parts, ", ")
}

func TestSolveChooses(t *testing.T) {
	for _, test := range []struct {
		reason    string
		picks     []Pick
		catalogue []Application
		installed map[string]string
		upgrade   []string
		all       bool
		want      string
	}{
		{
			reason: "nothing is picked", catalogue: []Application{entry("shop", "1.0.0")}, want: "",
		},
		{
			reason: "the newest version, listed first", picks: picks("shop"),
			catalogue: []Application{entry("shop", "10.0.0", "9.0.0", "1.0.0")}, want: "shop 10.0.0",
		},
		{
			reason: "the newest version, listed last", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "9.0.0", "10.0.0")}, want: "shop 10.0.0",
		},
		{
			reason: "the newest version in range", picks: picks("shop@^1"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0", "1.5.0")}, want: "shop 1.5.0",
		},
		{
			reason: "two picks both hold", picks: picks("shop@>=1.2", "shop@<1.5"),
			catalogue: []Application{entry("shop", "1.0.0", "1.3.0", "1.5.0")}, want: "shop 1.3.0",
		},
		{
			reason: "a v does not matter, and dependencies come along", picks: picks("shop@v1.0.0"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db@v2.0.0"), entry("db", "v2.0.0", "3.0.0")}, want: "db v2.0.0, shop 1.0.0",
		},
		{
			reason: "nor where it is installed", picks: picks("shop"),
			catalogue: []Application{entry("shop", "v1.0.0", "v2.0.0")}, installed: map[string]string{"shop": "1.0.0"}, want: "shop v1.0.0",
		},
		{
			reason: "an older version where the newest does not fit", picks: picks("shop", "db@^2"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db@^2", "2.0.0 needs:db@^3"), entry("db", "2.0.0", "3.0.0")}, want: "db 2.0.0, shop 1.0.0",
		},
		{
			reason: "picks are newest before what they depend on", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "2.0.0 needs:db@^2"), entry("db", "2.0.0", "3.0.0")}, want: "db 2.0.0, shop 2.0.0",
		},
		{
			reason: "of two picks the first by name is newest", picks: picks("b", "a"),
			catalogue: []Application{entry("a", "1.0.0 needs:c@^1", "2.0.0 needs:c@^2"), entry("b", "1.0.0 needs:c@^2", "2.0.0 needs:c@^1"), entry("c", "1.0.0", "2.0.0")},
			want:      "c 2.0.0, a 2.0.0, b 1.0.0",
		},
		{
			reason: "what depends is decided before what it depends on, whatever the names", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:z"), entry("z", "1.0.0", "2.0.0 needs:a@^1"), entry("a", "1.0.0", "2.0.0")}, want: "a 1.0.0, z 2.0.0, shop 1.0.0",
		},
		{
			reason: "what is installed stays", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "2.0.0 needs:db"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"shop": "1.0.0", "db": "2.0.0"}, want: "db 2.0.0, shop 1.0.0",
		},
		{
			reason: "only what has to moves", picks: picks("shop@^2"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "2.0.0 needs:db"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"shop": "1.0.0", "db": "2.0.0"}, want: "db 2.0.0, shop 2.0.0",
		},
		{
			reason: "what may be upgraded moves, and nothing else", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "2.0.0 needs:db@^2", "3.0.0 needs:db@^3"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"shop": "1.0.0", "db": "2.0.0"}, upgrade: []string{"shop"}, want: "db 2.0.0, shop 2.0.0",
		},
		{
			reason: "everything may be upgraded", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "3.0.0 needs:db@^3"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"shop": "1.0.0", "db": "2.0.0"}, all: true, want: "db 3.0.0, shop 3.0.0",
		},
		{
			reason: "an upgrade never goes down, not even to meet a recommendation", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db likes:cache"), entry("cache", "1.0.0 needs:db@^2"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"db": "3.0.0"}, all: true, want: "db 3.0.0, shop 1.0.0",
		},
		{
			reason: "an upgrade drops what nothing needs any more", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:lib", "1.1.0 needs:lib", "2.0.0"), entry("lib", "1.0.0", "2.0.0")},
			installed: map[string]string{"shop": "1.0.0", "lib": "1.0.0"}, upgrade: []string{"shop"}, want: "shop 2.0.0",
		},
		{
			reason: "what is recommended moves rather than goes", picks: picks("shop@^2"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 needs:db@^3 likes:cache"), entry("db", "2.0.0", "3.0.0"), entry("cache", "1.0.0 needs:db@^2", "2.0.0 needs:db@^3")},
			installed: map[string]string{"shop": "1.0.0", "cache": "1.0.0"}, want: "db 3.0.0, cache 2.0.0, shop 2.0.0",
		},
		{
			reason: "previews are left alone", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 preview", "3.0.0-rc.1")}, want: "shop 1.0.0",
		},
		{
			reason: "a range does not ask for a preview", picks: picks("shop@>=1.0.0-0"),
			catalogue: []Application{entry("shop", "1.0.0", "3.0.0-rc.1")}, want: "shop 1.0.0",
		},
		{
			reason: "a preview that a pick names", picks: picks("shop@v3.0.0-rc.1", "db@=2.0.0"),
			catalogue: []Application{entry("shop", "1.0.0", "3.0.0-rc.1"), entry("db", "1.0.0", "2.0.0 preview")}, want: "db 2.0.0, shop 3.0.0-rc.1",
		},
		{
			reason: "a preview that is installed", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0-rc.1", "2.0.0")}, installed: map[string]string{"shop": "2.0.0-rc.1"}, want: "shop 2.0.0-rc.1",
		},
		{
			reason: "a preview in the range of a dependency", picks: picks("shop", "db@2.1.0-rc.1"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db@^2"), entry("db", "2.0.0", "2.1.0-rc.1")}, want: "db 2.1.0-rc.1, shop 1.0.0",
		},
		{
			reason: "withdrawn versions are left alone, also by name", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 withdrawn:bad")}, want: "shop 1.0.0",
		},
		{
			reason: "a withdrawn version that is installed stays", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 withdrawn:bad", "3.0.0")}, installed: map[string]string{"shop": "2.0.0"}, want: "shop 2.0.0",
		},
		{
			reason: "and moves by an upgrade", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 withdrawn:bad", "3.0.0")}, installed: map[string]string{"shop": "2.0.0"}, all: true, want: "shop 3.0.0",
		},
		{
			reason: "a version past its end of life is avoided", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 eol")}, want: "shop 1.0.0",
		},
		{
			reason: "but taken where nothing else fits", picks: picks("shop@^2"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 eol")}, want: "shop 2.0.0",
		},
		{
			reason: "and kept where it is installed, also by an upgrade to something older", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 eol")}, installed: map[string]string{"shop": "2.0.0"}, all: true, want: "shop 2.0.0",
		},
		{
			reason: "what asks for another Kubernetes is out, also where it is installed", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 k8s:1.30", "2.0.0 k8s:>=1.33")}, installed: map[string]string{"shop": "2.0.0"}, want: "shop 1.0.0",
		},
		{
			reason: "an installed version that has left the catalogue moves on", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0")}, installed: map[string]string{"shop": "1.5.0"}, want: "shop 2.0.0",
		},
		{
			reason: "recommendations are met", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 likes:cache@^1"), entry("cache", "1.0.0 needs:db", "2.0.0"), entry("db", "1.0.0")}, want: "db 1.0.0, cache 1.0.0, shop 1.0.0",
		},
		{
			reason: "before versions are newest", picks: picks("shop", "db"),
			catalogue: []Application{entry("shop", "1.0.0 likes:cache"), entry("cache", "1.0.0 needs:db@^2"), entry("db", "2.0.0", "3.0.0")}, want: "db 2.0.0, cache 1.0.0, shop 1.0.0",
		},
		{
			reason: "but not before what is installed stays", picks: picks("shop", "db"),
			catalogue: []Application{entry("shop", "1.0.0 likes:cache"), entry("cache", "1.0.0 needs:db@^2"), entry("db", "2.0.0", "3.0.0")},
			installed: map[string]string{"db": "3.0.0"}, want: "db 3.0.0, shop 1.0.0",
		},
		{
			reason: "one that cannot be met holds no version back", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0", "2.0.0 likes:missing likes:cache@^9"), entry("cache", "1.0.0")}, want: "shop 2.0.0",
		},
		{
			reason: "the first recommendation counts most", picks: picks("a", "b"),
			catalogue: []Application{
				entry("a", "1.0.0 likes:x"), entry("b", "1.0.0 likes:y likes:z"),
				entry("x", "1.0.0 needs:lib@^1"), entry("y", "1.0.0 needs:lib@^2"), entry("z", "1.0.0 needs:lib@^2"), entry("lib", "1.0.0", "2.0.0"),
			},
			want: "a 1.0.0, b 1.0.0, lib 1.0.0, x 1.0.0",
		},
		{
			reason: "nothing is there that nothing wants, not even each other", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 needs:db", "0.9.0 needs:x"), entry("db", "1.0.0"), entry("x", "1.0.0 likes:y"), entry("y", "1.0.0 needs:x")},
			installed: map[string]string{"x": "1.0.0", "y": "1.0.0"}, want: "db 1.0.0, shop 1.0.0",
		},
		{
			reason: "a recommendation may lead back", picks: picks("shop"),
			catalogue: []Application{entry("shop", "1.0.0 likes:plugin"), entry("plugin", "1.0.0 needs:shop")}, want: "shop 1.0.0, plugin 1.0.0",
		},
		{
			reason: "another version avoids a cycle", picks: picks("a"),
			catalogue: []Application{entry("a", "1.0.0 needs:b"), entry("b", "1.0.0", "2.0.0 needs:c"), entry("c", "1.0.0 needs:a")}, want: "b 1.0.0, a 1.0.0",
		},
	} {
		problem := Problem{Picks: test.picks, Catalogue: test.catalogue, Installed: test.installed, Upgrade: test.upgrade, UpgradeAll: test.all, Kubernetes: []string{"v1.31.2+k3s1"}}
		lock, err := Solve(problem)
		if err != nil || short(lock) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.reason, short(lock), err, test.want)
		}
		if _, wrong := compare(problem); wrong != "" {
			t.Errorf("%s: the reference disagrees: %s", test.reason, wrong)
		}
	}
}

func TestSolveSaysWhy(t *testing.T) {
	lock, err := Solve(Problem{
		Picks: picks("shop", "db"),
		Catalogue: []Application{
			entry("shop", "1.0.0 needs:db needs:auth likes:cache@^1 likes:gone likes:chart@^2 likes:trace likes:audit likes:db@^2 likes:ended likes:loop"),
			entry("auth", "1.2.0 needs:db likes:cache"), entry("db", "1.0.0 withdrawn:CVE-1", "2.0.0"), entry("cache", "1.1.0 eol"),
			entry("chart", "1.0.0", "2.0.0 withdrawn:broken", "2.1.0 preview", "2.2.0 k8s:1.33"),
			entry("trace", "1.0.0 needs:db@^2"), entry("audit", "1.0.0 needs:store@^2"), entry("store", "2.0.0", "3.0.0"),
			entry("ended", "1.0.0 eol"), entry("loop", "1.0.0 needs:pool"), entry("pool", "1.0.0 needs:loop"),
		},
		Installed:  map[string]string{"db": "1.0.0", "cache": "1.1.0", "auth": "1.1.0", "store": "3.0.0"},
		Kubernetes: []string{"1.31.2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Lock{
		{Name: "cache", Version: "1.1.0", Why: []string{"recommended by auth 1.2.0", "recommended by shop 1.0.0"}, Notes: []string{
			"1.1.0 is past its end of life and stays because it is installed",
		}},
		{Name: "db", Version: "1.0.0", Why: []string{"picked", "needed by auth 1.2.0", "needed by shop 1.0.0"}, Notes: []string{
			"1.0.0 is withdrawn and stays because it is installed: CVE-1",
		}},
		{Name: "auth", Version: "1.2.0", DependsOn: []string{"db"}, Why: []string{"needed by shop 1.0.0"}, Notes: []string{
			"1.1.0, which is installed, is not in the catalogue any more",
		}},
		{Name: "shop", Version: "1.0.0", DependsOn: []string{"auth", "db"}, Why: []string{"picked"}, Notes: []string{
			"recommends audit, which is left out: audit 1.0.0, its only version, needs store ^2; store stays at 3.0.0, which is installed",
			"recommends chart ^2, which is left out: chart 2.2.0 needs Kubernetes 1.33, the cluster has 1.31.2; chart 2.0.0 is withdrawn: broken; " +
				"chart 2.1.0 is a preview, taken only where a pick names that version; chart has versions 1.0.0, 2.0.0, 2.1.0, 2.2.0",
			"recommends db ^2, which is left out: db is at 1.0.0",
			"recommends ended, which is left out: ended 1.0.0, its only version, is past end of life",
			"recommends gone, which is left out: application gone is not in the catalogue",
			"recommends loop, which is left out: it does not go together with other recommendations, or closes a circle of dependencies",
			"recommends trace, which is left out: db is at 1.0.0; trace 1.0.0, its only version, needs db ^2",
		}},
	}
	if diff := cmp.Diff(want, lock); diff != "" {
		t.Error(diff)
	}
}

func TestSolveExplains(t *testing.T) {
	many := []string{"3.0.0 preview"}
	for _, minor := range strings.Split("0123456789", "") {
		many = append(many, "1."+minor+".0 needs:db@^3", "2."+minor+".0 needs:db@^4")
	}
	for _, test := range []struct {
		reason    string
		picks     []Pick
		catalogue []Application
		want      string
	}{
		{
			"no such application", picks("foo"), nil,
			"no versions fit together: the platform picks foo; application foo is not in the catalogue",
		},
		{
			"no versions at all", picks("foo"),
			[]Application{entry("foo")},
			"no versions fit together: the platform picks foo; foo has no versions",
		},
		{
			"no version in range", picks("shop@^3"),
			[]Application{entry("shop", "1.0.0", "v2.0.0")},
			"no versions fit together: the platform picks shop ^3; shop has versions 1.0.0, v2.0.0",
		},
		{
			"two picks", picks("shop@^2", "shop@^1"),
			[]Application{entry("shop", "1.0.0", "2.0.0")},
			"no versions fit together: the platform picks shop ^1; the platform picks shop ^2; shop has versions 1.0.0, 2.0.0",
		},
		{
			"a dependency without a version in range, among others", picks("shop@^2", "other"),
			[]Application{
				entry("shop", "1.0.0", "2.0.0 needs:db@>=3_<4", "2.1.0 needs:db@>=3_<4", "3.0.0"), entry("db", "2.9.0", "4.0.0"),
				entry("other", "1.0.0 needs:db"),
			},
			"no versions fit together: the platform picks shop ^2; every version of shop in ^2 needs db >=3 <4; db has versions 2.9.0, 4.0.0",
		},
		{
			"two that need different versions", picks("shop", "blog@1.0.0"),
			[]Application{entry("shop", "2.1.0 needs:db@^3"), entry("blog", "1.0.0 needs:db@^2", "2.0.0"), entry("db", "2.9.0", "3.0.0")},
			"no versions fit together: the platform picks blog 1.0.0; the platform picks shop; blog 1.0.0 needs db ^2; shop 2.1.0, its only version, needs db ^3; db has versions 2.9.0, 3.0.0",
		},
		{
			"Kubernetes", picks("cert-manager@^1.17"),
			[]Application{entry("cert-manager", "1.16.0", "1.17.0 k8s:>=1.33")},
			"no versions fit together: the platform picks cert-manager ^1.17; cert-manager 1.17.0, the only version in ^1.17, needs Kubernetes >=1.33, the cluster has 1.31.2",
		},
		{
			"withdrawn, also by name", picks("shop@2.0.0"),
			[]Application{entry("shop", "1.0.0", "2.0.0 withdrawn:CVE-2")},
			"no versions fit together: the platform picks shop 2.0.0; shop 2.0.0 is withdrawn: CVE-2",
		},
		{
			"a preview by a range", picks("shop@^2"),
			[]Application{entry("shop", "1.0.0", "2.0.0-rc.1", "2.1.0 preview")},
			"no versions fit together: the platform picks shop ^2; shop 2.1.0, the only version in ^2, is a preview, taken only where a pick names that version",
		},
		{
			"many versions", picks("shop"),
			[]Application{entry("shop", many...), entry("db", "1.0.0")},
			"no versions fit together: the platform picks shop; 10 versions of shop from 1.0.0 to 1.9.0 need db ^3; 10 versions of shop from 2.0.0 to 2.9.0 need db ^4; " +
				"shop 3.0.0 is a preview, taken only where a pick names that version; db has only version 1.0.0; shop has 21 versions, from 1.0.0 to 3.0.0",
		},
		{
			"a dependency of a dependency, which is not there", picks("a"),
			[]Application{entry("a", "1.0.0 needs:b", "2.0.0 needs:b"), entry("b", "1.0.0 needs:c", "2.0.0 needs:c@^2 needs:d")},
			"no versions fit together: the platform picks a; every version of a needs b; b 1.0.0 needs c; b 2.0.0 needs c ^2; b has versions 1.0.0, 2.0.0; application c is not in the catalogue",
		},
		{
			"a cycle", picks("a"),
			[]Application{entry("c", "1.0.0 needs:a"), entry("b", "1.0.0 needs:c"), entry("a", "1.0.0 needs:b", "2.0.0 needs:b")},
			"applications depend on each other, and no other versions fit: a -> b -> c -> a",
		},
		{
			"a cycle that can be avoided only by way of another", picks("a"),
			[]Application{entry("a", "1.0.0 needs:b", "2.0.0 needs:c"), entry("b", "1.0.0 needs:a"), entry("c", "1.0.0 needs:a")},
			"applications depend on each other, and no other versions fit: a -> b -> a; a -> c -> a",
		},
	} {
		problem := Problem{Picks: test.picks, Catalogue: test.catalogue, Kubernetes: []string{"1.31.2"}}
		_, err := Solve(problem)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n%v\nwant\n%s", test.reason, err, test.want)
		}
		if _, wrong := compare(problem); wrong != "" {
			t.Errorf("%s: %s", test.reason, wrong)
		}
	}
	_, err := Solve(Problem{Picks: picks("a"), Catalogue: []Application{entry("a", "1.0.0 k8s:1.30")}})
	if want := "no versions fit together: the platform picks a; a 1.0.0, its only version, needs Kubernetes 1.30, and the version of the cluster is not known"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestSolveRefuses(t *testing.T) {
	shop := func(version Version) Problem {
		return Problem{Picks: picks("shop"), Catalogue: []Application{{Name: "shop", Versions: []Version{{Version: "0.1.0"}, version}}}}
	}
	for _, test := range []struct {
		problem Problem
		want    string
	}{
		{Problem{Picks: picks("")}, "picks[0].name: is empty"},
		{Problem{Picks: picks("a", "shop@new")}, `application shop, picks[1].range: "new" is no range of versions: write one such as >=1.1 <2, ^2, ~1.4, 1.x or 1.4.2`},
		{Problem{Catalogue: []Application{{}}}, "catalogue[0].name: is empty"},
		{Problem{Catalogue: []Application{entry("a"), entry("b"), entry("a")}}, "application a, catalogue[2].name: is in the catalogue twice"},
		{Problem{Installed: map[string]string{"shop": "new"}}, `application shop, installed: "new" is no semantic version such as 1.4.2`},
		{shop(Version{}), `application shop, versions[1].version: "" is no semantic version such as 1.4.2`},
		{shop(Version{Version: "01.2.3"}), `application shop, versions[1].version: "01.2.3" is no semantic version such as 1.4.2`},
		{shop(Version{Version: "v0.1.0"}), "application shop, version v0.1.0, version: is the same version as 0.1.0"},
		{shop(Version{Version: "0.1.0+build"}), "application shop, version 0.1.0+build, version: is the same version as 0.1.0"},
		{shop(Version{Version: "1.0.0", Kubernetes: "new"}), `application shop, version 1.0.0, kubernetes: "new" is neither a version such as 1.30 nor a range such as >=1.30 <2`},
		{shop(Version{Version: "1.0.0", Dependencies: []Requirement{{Name: "shop"}}}), "application shop, version 1.0.0, dependsOn[0].name: is the application itself"},
		{shop(Version{Version: "1.0.0", Dependencies: []Requirement{{}}}), "application shop, version 1.0.0, dependsOn[0].name: is empty"},
		{shop(Version{Version: "1.0.0", Dependencies: []Requirement{{Name: "db"}, {Name: "db", Range: "^2"}}}), "application shop, version 1.0.0, dependsOn[1].name: names db a second time: write one range"},
		{shop(Version{Version: "1.0.0", Recommends: []Requirement{{Name: "db", Range: "two"}}}), `application shop, version 1.0.0, recommends[0].range: "two" is no range of versions: write one such as >=1.1 <2, ^2, ~1.4, 1.x or 1.4.2`},
	} {
		_, err := Solve(test.problem)
		if _, invalid := err.(*Invalid); !invalid || err.Error() != test.want { //nolint:errorlint // it is that type itself
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// A mistake in an application that nothing leads to stands in nobody's way.
func TestSolveLooksOnlyAtWhatThePicksLeadTo(t *testing.T) {
	lock, err := Solve(Problem{
		Picks:     picks("shop"),
		Catalogue: []Application{entry("shop", "1.0.0"), entry("broken", "not-a-version needs:broken")},
		Installed: map[string]string{"broken": "1.0.0", "unknown": "2.0.0"}, Upgrade: []string{"broken", "nobody"},
	})
	if err != nil || short(lock) != "shop 1.0.0" {
		t.Errorf("%v, %v", lock, err)
	}
}
