// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// newRelease returns a HelmRelease with a release name of its own or another's.
func newRelease(name, releaseName string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"releaseName": releaseName}}}
	obj.SetGroupVersionKind(kinds.HelmReleaseKind.WithVersion("v2"))
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// directory returns one that lists releases of the given names.
func directory(digest string, names ...string) *directories.Directory {
	dir := &directories.Directory{Digest: digest}
	for _, name := range names {
		dir.Manifests = append(dir.Manifests, directories.Manifest{File: name + ".yaml", Object: newRelease(name, name)})
	}
	return dir
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func TestListings(t *testing.T) {
	l := NewListings()
	id := objects.IDOf(newRelease("podinfo", "podinfo"))
	exclusive := kinds.HelmReleaseIdentity(newRelease("podinfo", "podinfo"))
	check := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, sorted(l.WhoLists(id, ""))); diff != "" {
			t.Errorf("%s: who lists the object (-want +got):\n%s", what, diff)
		}
	}
	update := func(layer string, dir *directories.Directory, news bool) {
		t.Helper()
		if got := l.Update(layer, dir); got != news {
			t.Errorf("update of %s is news: %t, want %t", layer, got, news)
		}
	}

	check("at first")
	update("base", directory("1", "podinfo", "other"), true)
	update("base", directory("1", "podinfo", "other"), false)
	update("apps", directory("2", "podinfo"), true)
	check("both list it", "apps", "base")

	// reads looks at a directory as another layer does; the digest says what it
	// holds, so that what is remembered can be told from what is read.
	reads := func(layer string, dir *directories.Directory, want ...string) {
		t.Helper()
		var got []string
		read := l.Of(layer, dir)
		for id := range read.Files {
			got = append(got, id.Name)
		}
		if known, ok := l.Known(layer, dir.Digest); !ok || !cmp.Equal(known, read) {
			t.Errorf("%s was read, and is known to list %v", layer, known)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s as it is read (-want +got):\n%s", layer, diff)
		}
	}
	if _, known := l.Known("base", "2"); known {
		t.Error("what nobody has read is known")
	}
	reads("base", directory("1"), "other", "podinfo")
	reads("base", directory("2", "newer"), "newer")
	reads("base", directory("2"), "newer")
	reads("none", directory("1", "unseen"), "unseen")
	check("what is read by others wakes nobody", "apps", "base")

	update("base", directory("3", "other"), true)
	check("base lists it no more", "apps")
	update("apps", nil, true)
	update("apps", nil, false)
	check("apps cannot be read")
	reads("apps", directory("5", "podinfo"), "podinfo")
	l.Forget("none")
	reads("none", directory("1", "again"), "again")

	renamed := directory("4")
	renamed.Manifests = []directories.Manifest{{File: "new.yaml", Object: newRelease("renamed", "podinfo")}}
	update("apps", renamed, true)
	check("apps lists another one of the same Helm release")
	if diff := cmp.Diff([]string{"apps"}, sorted(l.WhoLists(id, exclusive))); diff != "" {
		t.Errorf("who lists the Helm release (-want +got):\n%s", diff)
	}

	l.Forget("apps")
	l.Forget("base")
	l.Forget("never known")
	if len(l.byLayer)+len(l.byID)+len(l.byExclusive) != 0 {
		t.Errorf("something is left of layers that are gone: %+v", l)
	}
}

// Whether a kind that others define has namespaces is not known when a directory is read, and
// its digest is the same afterwards: its objects are found by what the cluster calls them.
func TestListingsOfKindsWithoutNamespaces(t *testing.T) {
	issuer := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer"}}
	issuer.SetNamespace("default")
	issuer.SetName("x")
	dir := directory("1", "podinfo")
	dir.Manifests = append(dir.Manifests, directories.Manifest{File: "x.yaml", Object: issuer})
	l := NewListings()
	l.Update("base", dir)
	release := objects.IDOf(newRelease("podinfo", "podinfo"))
	for id, want := range map[objects.ID][]string{
		objects.IDOf(issuer): {"base"}, {Group: "cert-manager.io", Kind: "ClusterIssuer", Name: "x"}: {"base"},
		release: {"base"}, {Group: release.Group, Kind: release.Kind, Name: release.Name}: nil,
	} {
		if diff := cmp.Diff(want, l.WhoLists(id, "")); diff != "" {
			t.Errorf("who lists %s (-want +got):\n%s", id, diff)
		}
		listing, _ := l.Last("base")
		if _, lists := listing.Files[id]; lists != (want != nil) {
			t.Errorf("it lists %s: %t", id, lists)
		}
	}
	l.Forget("base")
	if len(l.byID) != 0 {
		t.Errorf("%v are left", l.byID)
	}
}

func TestListingsOfWaitingLayers(t *testing.T) {
	l := NewListings()
	l.SetWaiting("base", true, map[string]bool{"cert-manager.io": true})
	l.SetWaiting("apps", true, nil)
	l.SetWaiting("mesh", false, map[string]bool{"istio.io": true})
	if diff := cmp.Diff([]string{"apps", "base"}, sorted(l.WhoWaits())); diff != "" {
		t.Errorf("who waits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"base"}, l.WhoWaitsFor("cert-manager.io")); diff != "" {
		t.Errorf("who waits for a group (-want +got):\n%s", diff)
	}
	l.SetWaiting("base", false, nil)
	l.Forget("apps")
	l.Forget("mesh")
	if waits := append(l.WhoWaits(), append(l.WhoWaitsFor("cert-manager.io"), l.WhoWaitsFor("istio.io")...)...); len(waits) != 0 {
		t.Errorf("%v still wait", waits)
	}
}

func TestListingsConcerning(t *testing.T) {
	l := NewListings()
	at := func(artifact string) Origin { return Origin{Artifact: artifact, Path: "./apps"} }
	// answer returns what each layer is found to list of what matters, or that
	// it has to be read.
	answer := func(questions ...Question) map[string][]string {
		t.Helper()
		podinfo := newRelease("podinfo", "podinfo")
		found, unknown := l.Concerning(questions, slices.Values([]objects.ID{objects.IDOf(podinfo)}), slices.Values([]string{kinds.HelmReleaseIdentity(podinfo)}))
		answers := map[string][]string{}
		for name, listing := range found {
			answers[name] = []string{}
			for id := range listing.Files {
				answers[name] = append(answers[name], id.Name)
			}
			slices.Sort(answers[name])
		}
		for _, i := range unknown {
			answers[questions[i].Layer] = []string{"has to be read"}
		}
		return answers
	}
	check := func(what string, want map[string][]string, questions ...Question) {
		t.Helper()
		if diff := cmp.Diff(want, answer(questions...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	read := []string{"has to be read"}

	check("nothing is known of a layer", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: at("a")})
	l.Update("apps", directory("1", "other", "podinfo"))
	check("it is not known where that was read", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: at("a")})
	check("a source without digest", map[string][]string{"apps": read}, Question{Layer: "apps"})
	l.Found("apps", "1", at("a"))
	check("it lists the object", map[string][]string{"apps": {"other", "podinfo"}}, Question{Layer: "apps", Origin: at("a")})
	check("in another artifact", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: at("b")})
	check("in another directory", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: Origin{Artifact: "a", Path: "./base"}})

	l.Found("apps", "2", at("b"))
	check("another content was read there", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: at("b")})
	l.Of("apps", directory("2", "newer"))
	l.Found("apps", "2", at("b"))
	check("what another layer has read", map[string][]string{"apps": {"newer"}}, Question{Layer: "apps", Origin: at("b")})
	check("what the layer itself has read, still", map[string][]string{"apps": {"other", "podinfo"}}, Question{Layer: "apps", Origin: at("a")})

	l.Update("base", directory("3", "other"))
	l.Found("base", "3", at("a"))
	check("one that lists nothing of it", map[string][]string{"apps": {"other", "podinfo"}},
		Question{Layer: "base", Origin: at("a")}, Question{Layer: "apps", Origin: at("a")})

	renamed := &directories.Directory{Digest: "4", Manifests: []directories.Manifest{{File: "new.yaml", Object: newRelease("renamed", "podinfo")}}}
	l.Update("base", renamed)
	check("its new content has not been found there", map[string][]string{"base": read}, Question{Layer: "base", Origin: at("a")})
	l.Found("base", "4", at("c"))
	check("one that lists another object for the same Helm release", map[string][]string{"base": {"renamed"}}, Question{Layer: "base", Origin: at("c")})

	l.Update("base", nil)
	check("one that cannot be read any more", map[string][]string{"base": read}, Question{Layer: "base", Origin: at("c")})
	l.Forget("apps")
	check("one that is gone", map[string][]string{"apps": read}, Question{Layer: "apps", Origin: at("a")})
}
