// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"path"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/builtin"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/versions"
)

// aside is what is wrong with an object that a layer may have in another form.
type aside struct {
	place
	mistake
}

// setAside notes what is wrong with an object of Kubernetes' own kinds as it is written.
func (l *linter) setAside(found object) {
	for _, each := range asOwn(builtin.Check(found.Unstructured)) {
		l.apartFrom = append(l.apartFrom, aside{found.place, each})
	}
}

// asOwn are the mistakes in an object of one of Kubernetes' own kinds.
func asOwn(found []builtin.Mistake) []mistake {
	mistakes := make([]mistake, len(found))
	for i, each := range found {
		mistakes[i] = mistake{ruleSchema, each.Field, each.Message}
		if each.Unknown {
			mistakes[i].rule = ruleUnknownField
		}
	}
	return mistakes
}

// addOwn adds what is wrong with an object of one of Kubernetes' own kinds. A later version
// may have a field that this one has not.
func (l *linter) addOwn(at place, layer string, mistakes []mistake) {
	later, err := versions.KubernetesSatisfied(">"+builtin.Version+".999", l.Kubernetes)
	for _, each := range mistakes {
		level := levelOf(each.rule)
		if each.rule == ruleUnknownField && l.Kubernetes != "" && err == nil && later {
			level = Warning
		}
		l.addAs(level, each.rule, at, each.field, layer, each.message)
	}
}

// checkAside says what is wrong with objects as they are written that no layer has: those of
// layers were looked at as they are deployed.
func (l *linter) checkAside() {
	used, folders := l.ofLayers()
	for _, each := range l.apartFrom {
		if !used[each.file] && !slices.ContainsFunc(folders, func(folder string) bool { return isBelow(each.file, folder) }) {
			l.addOwn(each.place, "", []mistake{each.mistake})
		}
	}
}

// ofLayers returns the folders that layers name, and the files that their kustomizations load.
func (l *linter) ofLayers() (used map[string]bool, folders []string) {
	used = map[string]bool{}
	for _, each := range l.layers {
		if each.content != nil {
			folder := path.Clean(each.Spec.Source.Path)
			folders = append(folders, folder)
			l.covers(folder, func(file string) { used[file] = true })
		}
	}
	return used, folders
}

// dropBuilt takes back what was said of files by themselves that are read in builds alone,
// and well: kustomize reads some things in another way.
func (l *linter) dropBuilt() {
	well, badly := map[string]bool{}, map[string]bool{}
	for key, found := range l.directories {
		if found.plain {
			for _, name := range l.raws {
				badly[name] = badly[name] || isBelow(name, key.folder)
			}
			continue
		}
		note := well
		if len(found.mistakes) > 0 {
			note = badly
		}
		l.covers(key.folder, func(file string) { note[file] = true })
		for _, name := range l.raws {
			if l.kustomizations[key.folder] == nil && isBelow(name, key.folder) {
				note[name] = true
			}
		}
	}
	kept := l.findings[:0:0]
	for i, finding := range l.findings {
		if name := l.raws[i]; name == "" || !well[name] || badly[name] {
			kept = append(kept, finding)
		}
	}
	l.findings = kept
}

// checkDefined checks objects of the kinds that the repository defines, and the charts that
// were rendered, in the directories of layers.
func (l *linter) checkDefined() {
	for _, each := range l.objects {
		if each.GroupVersionKind().GroupKind() == kinds.DefinitionKind {
			l.schemas.Define(each.Unstructured)
		}
	}
	for _, each := range l.layers {
		if each.content == nil {
			continue
		}
		for _, manifest := range each.content.Manifests {
			if manifest.Confidential {
				continue // what is said shows values
			}
			found := l.schemas.CheckDefined(l.ctx, manifest.Object)
			at := l.origin(manifest.File, manifest.Line, manifest.Object)
			for _, said := range asMistakes(found) {
				// Metadata was looked at, and a variable may be anything.
				if !strings.HasPrefix(said.field, "metadata") && !strings.Contains(said.message, "${") {
					l.add(said.rule, at, said.field, each.label(), "%s", said.message)
				}
			}
		}
	}
}
