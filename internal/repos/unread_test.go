// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/directories"
)

const (
	movedFile  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved}\n"
	otherFile  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
	brokenFile = "kind: [\n"
)

// A directory that cannot be read may mean what its files name, and any object only where
// names are made of something else.
func TestUnread(t *testing.T) {
	flux := func(spec v1alpha1.AddonsLayerSpec) builds.Build {
		how, err := builds.Of(&spec)
		if err != nil {
			t.Fatal(err)
		}
		return how
	}
	substituted := v1alpha1.AddonsLayerSpec{Build: v1alpha1.BuildFlux}
	substituted.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"name": "moved"}}
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		how    builds.Build
		means  bool
		why    string
	}{
		"a good file has it":   {"it will list it", map[string]string{"apps/a.yaml": movedFile, "apps/b.yaml": brokenFile}, builds.Build{}, true, ""},
		"a broken file has it": {"it may list it", map[string]string{"apps/b.yaml": brokenFile + "# moved"}, builds.Build{}, true, ""},
		"no file has it":       {"it cannot list it", map[string]string{"apps/a.yaml": otherFile, "apps/b.yaml": brokenFile}, builds.Build{}, false, ""},
		"a good file speaks of it": {
			"what it lists is known", map[string]string{"apps/a.yaml": otherFile + "data: {a: moved}\n", "apps/b.yaml": brokenFile}, builds.Build{}, false, "",
		},
		"another directory has it": {"it is another layer's", map[string]string{"base/a.yaml": movedFile, "apps/b.yaml": brokenFile}, builds.Build{}, false, ""},
		"a key twice": {
			"the file as a whole cannot be read",
			map[string]string{"apps/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken}\ndata: {a: 1, a: 2}\n"},
			builds.Build{},
			false, "",
		},
		"too large": {
			"it is not searched", map[string]string{"apps/b.yaml": "# " + strings.Repeat("a", maxFile)}, builds.Build{}, false, "is larger than",
		},
		"a kustomization": {
			"all its files are searched", map[string]string{"apps/kustomization.yaml": "resources: [b.yaml]", "apps/b.yaml": brokenFile}, builds.Build{}, false, "",
		},
		"a kustomization of a file with it": {
			"good or broken",
			map[string]string{"apps/kustomization.yaml": "resources: [a.yaml, b.yaml]", "apps/a.yaml": movedFile, "apps/b.yaml": brokenFile},
			builds.Build{},
			true, "",
		},
		"a kustomization of a base with it": {
			"outside of its directory", map[string]string{
				"apps/kustomization.yaml": "resources: [../common/x, b.yaml]", "common/x/kustomization.yaml": "resources: [../a.yaml]", "common/a.yaml": movedFile,
				"apps/b.yaml": brokenFile,
			}, builds.Build{}, true, "",
		},
		"a patch that names it": {
			"a patch can give a name", map[string]string{
				"apps/kustomization.yaml": "resources: [b.yaml]\npatches:\n- patch: |-\n    - {op: replace, path: /metadata/name, value: moved}\n  target: {kind: ConfigMap}\n",
				"apps/b.yaml":             brokenFile,
			}, builds.Build{}, true, "",
		},
		"a file of a patch that names it": {
			"in another place", map[string]string{
				"apps/kustomization.yaml": "resources: [b.yaml]\npatches: [{path: ../p.json}]\n", "p.json": `[{"op": "replace", "path": "/metadata/name", "value": "moved"}]`,
				"apps/b.yaml": brokenFile,
			}, builds.Build{}, true, "",
		},
		"images of it": {
			"they are no files", map[string]string{
				"apps/kustomization.yaml": "resources: [b.yaml]\nimages: [{name: ghcr.io/some/app, newTag: v1}]\n", "apps/b.yaml": brokenFile,
			}, builds.Build{}, false, "",
		},
		"a prefix": {
			"names are made",
			map[string]string{"apps/kustomization.yaml": "resources: [b.yaml]\nnamePrefix: m-\n", "apps/b.yaml": brokenFile},
			builds.Build{},
			false, "apps/kustomization.yaml has namePrefix",
		},
		"a suffix of a base": {
			"names are made", map[string]string{
				"apps/kustomization.yaml": "resources: [../x, b.yaml]", "x/kustomization.yaml": "nameSuffix: -m\nresources: []\n", "apps/b.yaml": brokenFile,
			}, builds.Build{}, false, "x/kustomization.yaml has nameSuffix",
		},
		"a generator": {
			"objects are made",
			map[string]string{"apps/kustomization.yaml": "configMapGenerator: [{name: x}]\nresources: [b.yaml]\n", "apps/b.yaml": brokenFile},
			builds.Build{},
			false, "has configMapGenerator",
		},
		"a file that is not there": {
			"it may have been forgotten, with what has moved",
			map[string]string{"apps/kustomization.yaml": "resources: [a.yaml]"},
			builds.Build{},
			false, "names a.yaml, which is not there",
		},
		"a file elsewhere": {
			"nobody knows what it holds",
			map[string]string{"apps/kustomization.yaml": "resources: ['https://example.invalid/a.yaml']"},
			builds.Build{},
			false, "which is not in the artifact",
		},
		"a kustomization that is no YAML": {
			"what it seems to name is searched",
			map[string]string{"apps/kustomization.yaml": "resources: [\n- ../common/a.yaml\n- b\n", "common/a.yaml": movedFile, "apps/b/b.yaml": otherFile},
			builds.Build{},
			true, "",
		},
		"a kustomization that is no YAML, of others": {
			"it cannot mean it", map[string]string{"apps/kustomization.yaml": "resources: [\n- ../common/a.yaml\n", "common/a.yaml": otherFile}, builds.Build{}, false, "",
		},
		"a kustomization that is no YAML, of what is not there": {
			"it may have been forgotten", map[string]string{"apps/kustomization.yaml": "resources: [\n- a\n"}, builds.Build{}, false, "names a, which is not there",
		},
		"Flux's build": {
			"all below is searched", map[string]string{"apps/x/b.yaml": brokenFile}, flux(v1alpha1.AddonsLayerSpec{Build: v1alpha1.BuildFlux}), false, "",
		},
		"variables": {
			"names may be made of them",
			map[string]string{"apps/x/b.yaml": brokenFile + "name: ${name}"},
			flux(substituted), false, "has variables",
		},
		"a path that is a file": {"nothing is known", map[string]string{"apps": otherFile}, builds.Build{}, false, "is a file"},
		"nothing there":         {"it lists nothing", map[string]string{"base/a.yaml": movedFile}, builds.Build{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for _, at := range slices.Sorted(maps.Keys(tc.files)) {
				files[at] = &fstest.MapFile{Data: []byte(tc.files[at])}
			}
			unread, err := UnreadOf(t.Context(), files, "./apps", tc.how)
			if err != nil {
				t.Fatal(err)
			}
			found := unread.Find([]string{"moved"})
			if _, means := found.Names["moved"]; means != tc.means || (found.Unknown != "") != (tc.why != "") || !strings.Contains(found.Unknown, tc.why) {
				t.Errorf("%s: %+v", tc.reason, found)
			}
		})
	}
}

// What was found is remembered, and never more than some of it.
func TestSearchesAreBounded(t *testing.T) {
	var s searches
	for i := range 3 * maxSearches {
		key := searchKey{names: fmt.Sprint(i)}
		s.add(key, directories.Mentions{})
		if _, known := s.get(key); !known || len(s.found) > maxSearches {
			t.Fatalf("of %d searches %d are remembered, the last: %t", i+1, len(s.found), known)
		}
	}
}
