// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/answers/waits"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/objects"
)

// checkBetween checks what layers are to each other.
func (l *linter) checkBetween() {
	l.checkNames()
	l.checkCycles()
	l.checkWaits()
	l.checkClaims()
	l.checkReleaseDependencies()
}

// checkNames finds layers of one name in one folder.
func (l *linter) checkNames() {
	type key struct{ folder, name string }
	first := map[key]*layer{}
	for _, each := range l.layers {
		at := key{each.folder, each.Name}
		if known := first[at]; known != nil {
			l.add(ruleDuplicateLayer, each.place, "metadata.name", each.label(), "the layer %s is in %s, too: rename one, or remove it", each.Name, known.place)
			each.content = nil // one is enough to compare others with
			continue
		}
		first[at] = each
	}
}

// String names the place as an editor finds it.
func (p place) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// checkCycles finds layers that wait for each other, each circle once for the first
// of its layers.
func (l *linter) checkCycles() {
	type key struct{ folder, circle string }
	told := map[key]bool{}
	for _, each := range l.layers {
		next := map[string][]string{}
		for _, peer := range l.peers(each) {
			next[peer.Name] = dependencies.Names(peer.Spec.Prereqs.DependsOn)
		}
		circle := dependencies.Graph(next).Circle(each.Name)
		at := key{each.folder, strings.Join(circle, " ")}
		if circle == nil || told[at] {
			continue
		}
		told[at] = true
		way := dependencies.Cycle(each.Name, func(name string) []string { return next[name] })
		l.add(
			ruleCycle,
			each.place,
			"spec.prereqs.dependsOn",
			each.label(),
			"layers wait for each other: %s: remove one of the dependencies",
			strings.Join(way, " -> "),
		)
	}
}

// checkWaits finds layers that wait for each other by what is in them. Each circle is told
// once.
func (l *linter) checkWaits() {
	told := map[string]bool{}
	known := map[string]waits.Graph{}
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		of, is := known[each.folder]
		if !is {
			of = l.waits(each)
			known[each.folder] = of
		}
		circle, way := of.Circle(each.Name)
		at := each.folder + " " + strings.Join(circle, " ")
		if circle == nil || told[at] {
			continue
		}
		told[at] = true
		l.add(
			ruleCycle,
			each.place,
			"spec.prereqs.dependsOn",
			each.label(),
			"layers wait for each other through their releases: %s: remove one of the dependencies, or say wait: false where it is not needed",
			strings.Join(way, " -> "),
		)
	}
}

// waits returns what the layers beside one wait for.
func (l *linter) waits(of *layer) waits.Graph {
	var all []waits.Layer
	for _, peer := range l.peers(of) {
		one := waits.Layer{AddonsLayer: peer.AddonsLayer}
		if peer.content != nil {
			one.Manifests = peer.content.Manifests
		}
		all = append(all, one)
	}
	return waits.GraphOf(all)
}

// claim is an object, or a Helm release, of a layer.
type claim struct {
	layer    *layer
	manifest directories.Manifest
}

// checkClaims finds objects that two layers list, and Helm releases that two
// HelmReleases stand for.
func (l *linter) checkClaims() {
	type owned struct {
		cluster types.NamespacedName
		what    string
	}
	objs, releases := map[owned][]claim{}, map[owned][]claim{}
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		for _, manifest := range each.content.Manifests {
			if strings.Contains(manifest.ID().Namespace+manifest.ID().Name, "${") {
				continue // what it is called is not known here
			}
			mine := claim{each, manifest}
			id := owned{placeOf(each), manifest.ID().String()}
			id.what += "." + manifest.ID().Group
			l.claimObject(objs[id], mine)
			objs[id] = append(objs[id], mine)
			if manifest.ID().GroupKind() == kinds.HelmReleaseKind {
				release := owned{placeOf(each), kinds.HelmReleaseIdentity(manifest.Object)}
				l.claimRelease(releases[release], mine, release.what)
				releases[release] = append(releases[release], mine)
			}
		}
	}
}

func (l *linter) claimObject(others []claim, mine claim) {
	other := l.rival(others, mine)
	switch {
	case other == nil:
	case path.Clean(other.layer.Spec.Source.Path) == path.Clean(mine.layer.Spec.Source.Path):
		l.add(
			ruleDuplicateObject,
			mine.layer.place,
			"spec.source.path",
			mine.layer.label(),
			"the layer %s has the same directory: every object in it would belong to both",
			other.layer.Name,
		)
	default:
		at, first := l.originOf(mine), l.originOf(*other)
		l.add(
			ruleDuplicateObject,
			at,
			"",
			mine.layer.label(),
			"%s of layer %s is listed by layer %s, too, in %s: remove one",
			mine.manifest.ID(),
			mine.layer.Name,
			other.layer.Name,
			first,
		)
	}
}

func (l *linter) claimRelease(others []claim, mine claim, release string) {
	for _, other := range others {
		if other.manifest.ID() == mine.manifest.ID() || !l.together(other.layer, mine.layer) {
			continue
		}
		l.add(
			ruleDuplicateRelease,
			l.originOf(mine),
			"",
			mine.layer.label(),
			"%s of layer %s stands for the Helm release %s, as %s of layer %s does, in %s: give one another releaseName",
			mine.manifest.ID(),
			mine.layer.Name,
			release,
			other.manifest.ID(),
			other.layer.Name,
			l.originOf(other),
		)
		return
	}
}

// rival returns the first other layer that may be on the same cluster.
func (l *linter) rival(others []claim, mine claim) *claim {
	for i := range others {
		if others[i].layer.Name != mine.layer.Name && l.together(others[i].layer, mine.layer) {
			return &others[i]
		}
	}
	return nil
}

func (l *linter) together(a, b *layer) bool { return !l.rivals()[a.folder][b.folder] }

func (l *linter) originOf(of claim) place {
	return l.origin(of.manifest.File, of.manifest.Line, of.manifest.Object)
}

// checkReleaseDependencies finds releases that depend on releases that no layer
// lists. Where not all layers are known, another one may.
func (l *linter) checkReleaseDependencies() {
	listed := map[objects.ID]bool{}
	level := Error
	var names []string
	for _, each := range l.layers {
		if each.content == nil {
			level = Warning
			continue
		}
		for id := range each.listing.Files {
			listed[id] = true
			if id.GroupKind() == kinds.HelmReleaseKind {
				names = append(names, id.Name)
			}
		}
	}
	for _, each := range l.objects {
		if each.GroupVersionKind().GroupKind() == kinds.HelmReleaseKind {
			listed[objects.IDOf(each.Unstructured)] = true
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		for _, manifest := range each.content.Manifests {
			if manifest.ID().GroupKind() != kinds.HelmReleaseKind {
				continue
			}
			for i, wanted := range waits.Releases(manifest.Object) {
				if !listed[wanted] {
					l.addAs(level, ruleReleaseDependency, l.originOf(claim{each, manifest}), fmt.Sprintf("spec.dependsOn[%d]", i), each.label(),
						fmt.Sprintf("there is no %s in any layer%s", wanted, near.Meant(wanted.Name, names)))
				}
			}
		}
	}
}

// checkUnused finds folders with HelmReleases that no layer has. Without layers of
// this repository there is nothing to compare with.
func (l *linter) checkUnused() {
	used := map[string]bool{}
	var folders []string
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		folder := path.Clean(each.Spec.Source.Path)
		folders = append(folders, folder)
		l.covers(folder, func(file string) { used[file] = true })
	}
	if len(folders) == 0 {
		return
	}
	told := map[string]bool{}
	for _, each := range l.objects {
		if each.GroupVersionKind().GroupKind() != kinds.HelmReleaseKind || used[each.file] || told[path.Dir(each.file)] ||
			slices.ContainsFunc(folders, func(folder string) bool { return isBelow(each.file, folder) }) {
			continue
		}
		told[path.Dir(each.file)] = true
		l.add(
			ruleUnusedDirectory,
			each.place,
			"",
			"",
			"no layer names the directory %s, which has HelmRelease %s: nobody would install it",
			path.Dir(each.file),
			nameOf(each.Unstructured),
		)
	}
}

// isBelow tells whether a file is below a folder.
func isBelow(file, folder string) bool {
	return folder == "." || strings.HasPrefix(file, folder+"/")
}
