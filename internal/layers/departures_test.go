// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
)

// goer returns a layer that is deployed, written as "name dependency,... after:layer,...".
func goer(written string) *v1alpha1.AddonsLayer {
	words := strings.Fields(written)
	layer := &v1alpha1.AddonsLayer{}
	layer.Name, layer.Status.Revision = words[0], "main"
	for _, word := range words[1:] {
		if after, is := strings.CutPrefix(word, "after:"); is {
			layer.Spec.TeardownAfter = strings.Split(after, ",")
		} else {
			layer.Spec.Prereqs.DependsOn = strings.Split(word, ",")
		}
	}
	return layer
}

func turnsOf(found []Departure) string {
	var texts []string
	for _, d := range found {
		texts = append(texts, fmt.Sprintf("%d:%s", d.Turn, d.Name))
	}
	return strings.Join(texts, " ")
}

func TestDepartures(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, c := range map[string]struct {
		reason  string
		all     []string
		going   string
		want    string
		blocked string
	}{
		"reverse":  {"what depends on others goes first", []string{"base", "mesh base", "apps mesh", "logs base"}, "base mesh apps logs", "1:apps 1:logs 2:mesh 3:base", ""},
		"outside":  {"who stays keeps what it needs, and all below that", []string{"base", "mesh base", "apps mesh"}, "base mesh", "0:base 0:mesh", "layer apps depends on it"},
		"after":    {"teardownAfter takes the place of dependencies", []string{"base after:base", "mesh base"}, "base mesh", "1:base 1:mesh", ""},
		"named":    {"teardownAfter is waited for", []string{"base after:logs", "logs"}, "base logs", "1:logs 2:base", ""},
		"staying":  {"teardownAfter is waited for also where it stays", []string{"base after:logs", "logs"}, "base", "0:base", "before layer logs is gone"},
		"circle":   {"who needs each other goes together", []string{"a b", "b a"}, "a b", "1:a 1:b", ""},
		"stranger": {"others do not matter", []string{"base", "far", "apps far"}, "base", "1:base", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var all, going []*v1alpha1.AddonsLayer
			for _, written := range c.all {
				layer := goer(written)
				all = append(all, layer)
				if slices.Contains(strings.Fields(c.going), layer.Name) {
					going = append(going, layer)
				}
			}
			found := Departures(going, all, now)
			if got := turnsOf(found); got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
			var blocked []string
			for _, d := range found {
				blocked = append(blocked, d.Blocked)
			}
			if got := strings.Join(blocked, ""); !strings.Contains(got, c.blocked) || c.blocked == "" && got != "" {
				t.Errorf("%s: blocked by %q, want %q", c.reason, got, c.blocked)
			}
		})
	}
}

func TestForcedDeparturesWaitForNobody(t *testing.T) {
	base, apps := goer("base"), goer("apps base")
	base.Annotations = map[string]string{v1alpha1.ForceDeleteAnnotation: "true"}
	if got := turnsOf(Departures([]*v1alpha1.AddonsLayer{base}, []*v1alpha1.AddonsLayer{base, apps}, time.Now())); got != "1:base" {
		t.Errorf("got %s", got)
	}
}

// Nobody goes before who depends on it, whatever the graph and the order in which
// the layers come.
func TestDeparturesOfAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 7).Draw(t, "count")
		var all []*v1alpha1.AddonsLayer
		needs := map[string][]string{}
		for i := range count {
			layer := goer(fmt.Sprintf("l%d", i))
			for j := range i {
				if rapid.Bool().Draw(t, "edge") {
					layer.Spec.Prereqs.DependsOn = append(layer.Spec.Prereqs.DependsOn, fmt.Sprintf("l%d@1.0.0", j))
					needs[layer.Name] = append(needs[layer.Name], fmt.Sprintf("l%d", j))
				}
			}
			all = append(all, layer)
		}
		found := Departures(all, rapid.Permutation(all).Draw(t, "order"), time.Unix(1000, 0))
		turns := map[string]int{}
		for _, d := range found {
			turns[d.Name] = d.Turn
		}
		for name, others := range needs {
			for _, other := range others {
				if turns[name] == 0 || turns[name] >= turns[other] {
					t.Fatalf("%s goes in turn %d, and %s, which it needs, in turn %d", name, turns[name], other, turns[other])
				}
			}
		}
		if got := Departures(all, all, time.Unix(1000, 0)); turnsOf(got) != turnsOf(found) {
			t.Fatalf("the order of the input matters: %s and %s", turnsOf(got), turnsOf(found))
		}
	})
}
