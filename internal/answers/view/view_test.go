// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// objects reads objects from YAML.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, each := range strings.Split(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(each), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object != nil {
			found = append(found, object)
		}
	}
	return found
}

func snapshotOf(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.New(noon, objects(t, text)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var painted = regexp.MustCompile("\x1b\\[[0-9;]*m")

// What is drawn fits the screen, loses no word, and is the same text in colour.
func TestDrawFitsAndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zé]{1,60}`)
		var node func(depth int) Node
		node = func(depth int) Node {
			n := Node{}
			for range rapid.IntRange(1, 3).Draw(t, "spans") {
				n.Spans = append(n.Spans, Span{strings.Join(rapid.SliceOfN(word, 0, 6).Draw(t, "words"), " "), terminal.Role(rapid.IntRange(0, 6).Draw(t, "role"))})
			}
			if depth > 0 {
				for range rapid.IntRange(0, 3).Draw(t, "children") {
					n.Children = append(n.Children, node(depth-1))
				}
			}
			return n
		}
		root := node(3)
		letters := func(text string) string {
			return strings.NewReplacer(branch, "", corner, "", "│", "", " ", "", "\n", "").Replace(text)
		}
		wide := Draw(terminal.Screen{}, []Node{root})
		narrow := Draw(terminal.Screen{Width: 40}, []Node{root})
		colour := Draw(terminal.Screen{Width: 40, Colour: true}, []Node{root})
		for line := range strings.Lines(narrow) {
			if length := utf8.RuneCountInString(strings.TrimRight(line, "\n")); length > 40 {
				t.Fatalf("a line has %d columns: %q", length, line)
			}
		}
		if letters(wide) != letters(narrow) {
			t.Fatalf("narrow lines lose something:\n%s\n%s", wide, narrow)
		}
		if got := painted.ReplaceAllString(colour, ""); got != narrow {
			t.Fatalf("colours change the text:\n%s\n%s", got, narrow)
		}
	})
}

func TestDrawIsSafe(t *testing.T) {
	got := Draw(terminal.Screen{}, []Node{{Spans: []Span{{"a\x1b[2Jb\nc", terminal.Plain}}}})
	if strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 1 {
		t.Errorf("draws %q", got)
	}
}

func TestInventoryReadsWhatFluxWrites(t *testing.T) {
	release := objects(t, `
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
status:
  inventory:
    entries:
    - {id: apps_web_apps_Deployment, v: v1}
    - {id: apps_web_apps_Deployment, v: v1}
    - {id: _system__web_rbac.authorization.k8s.io_ClusterRole, v: v1}
    - {id: apps_web__Service, v: v1}
    - {id: nonsense, v: v1}
    - {id: ___, v: v1}
    - nothing
`)[0]
	var got []string
	for _, made := range Inventory(release) {
		got = append(got, made.String()+" "+made.Version)
	}
	want := []string{"Service apps/web v1", "Deployment apps/web v1", "ClusterRole system:web v1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(Kinds(append(Inventory(release), Made{}))); strings.Count(got, "Deployment") != 1 {
		t.Errorf("kinds %s", got)
	}
}

// Of a graph in which there are more paths than anybody can count, each layer is
// told once; a circle ends.
func TestTreeOfADenseGraphIsSmall(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: l%02d}\nspec:\n  version: 1.0.0\n  prereqs:\n    dependsOn:\n", i)
		for j := range 60 {
			fmt.Fprintf(&text, "    - l%02d\n", j)
		}
		text.WriteString("---\n")
	}
	s := snapshotOf(t, text.String())
	drawn := Draw(terminal.Screen{}, []Node{Tree(s, s.Layers[0], nil, 1000).Node(1000, false)})
	if lines := strings.Count(drawn, "\n"); lines < 60 || lines > 60*60+10 {
		t.Errorf("%d lines", lines)
	}
}
