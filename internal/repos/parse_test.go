// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		path   string
		want   []string
		err    string // reason: message
	}{
		"missing": {
			reason: "a path that is not there is no mistake: the guard of empty directories decides",
			files:  files("other/a.yaml", release("a")), path: "./base",
		},
		"a file": {
			reason: "a file is a mistake, not an empty directory",
			files:  files("base/a.yaml", release("a")), path: "./base/a.yaml",
			err: "PathNotFound: base/a.yaml: spec.source.path: is a file: name the directory that holds the layer's manifests",
		},
		"below a file": {
			reason: "nothing is below a file",
			files:  files("base", release("a")), path: "./base/x",
			err: "PathNotFound: base: spec.source.path: is a file: name the directory that holds the layer's manifests",
		},
		"outside": {
			reason: "nothing is bent to stay inside", files: files(), path: "./a/../../b",
			err: "PathOutsideArtifact: spec.source.path: must stay inside the source: remove the .. from it",
		},
		"dots inside": {
			reason: "also where it would stay inside", files: files(), path: "./a/../b",
			err: "PathOutsideArtifact: spec.source.path: must stay inside the source: remove the .. from it",
		},
		"absolute": {
			reason: "an absolute path is not one of the artifact", files: files(), path: "/etc",
			err: "PathOutsideArtifact: spec.source.path: must not be absolute: begin it with ./ and name a directory below the root of the source",
		},
		"all files": {
			reason: "every manifest below counts, tools' files do not",
			files: files("base/b.yaml", release("b"), "base/sub/deep/a.yml", release("a"), "base/c.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
				"base/.hidden.yaml", "x: y", "base/.github/w.yaml", "x: y", "base/README.md", "# no", "other/x.yaml", release("x")),
			path: "./base/", want: []string{"ConfigMap c", "HelmRelease a", "HelmRelease b"},
		},
		"a hidden folder that is asked for": {
			reason: "a hidden folder is read when the layer names it",
			files:  files(".layers/a.yaml", release("a")), path: "./.layers", want: []string{"HelmRelease a"},
		},
		"documents": {
			reason: "empty documents and comments are nothing",
			files:  files("a.yaml", "# head\n---\n---\n# only\n---\n"+release("a")+"...\n---\n"+release("b")+"---\nnull\n"),
			path:   "./", want: []string{"HelmRelease a", "HelmRelease b"},
		},
		"directive and byte order mark": {
			reason: "editors write them",
			files:  files("a.yaml", "\ufeff%YAML 1.1\n---\n"+strings.ReplaceAll(release("a"), "\n", "\r\n")),
			path:   "./", want: []string{"HelmRelease a"},
		},
		"list": {
			reason: "kubectl get -o yaml writes lists",
			files: files("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: \"n\"}}\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  - metadata: {name: c}\n",
				"b.json", `{"apiVersion":"v1","kind":"List","items":null}`),
			path: "./", want: []string{"ConfigMap c", "Namespace n"},
		},
		"an item that is nothing": {
			reason: "a list holds objects",
			files:  files("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- 7\n"), path: "./",
			err: "InvalidManifest: a.yaml:4: items[0]: is no Kubernetes object: an object begins with apiVersion and kind",
		},
		"bad YAML": {
			reason: "the line is that of the file, not of the document",
			files:  files("x/a.yaml", release("a")+"---\na: b\n  c: d\n"), path: "./x",
			err: "InvalidManifest: x/a.yaml:10: cannot be read as YAML: mapping values are not allowed in this context",
		},
		"bad YAML behind breaks that are no newlines": {
			reason: "the parser breaks lines where editors do not",
			files:  files("a.yaml", "# \r\u0085\u2028\u2029\r\n---\n# \r\u2028\n\r\na: b\n  c: d\n"), path: "./",
			err: "InvalidManifest: a.yaml:6: cannot be read as YAML: mapping values are not allowed in this context",
		},
		"a mistake behind breaks that are no newlines": {
			reason: "nodes have the lines of the file too",
			files:  files("a.yaml", "# \r\r\u2028\nhello\n"), path: "./",
			err: "InvalidManifest: a.yaml:2: is no Kubernetes object: an object begins with apiVersion and kind",
		},
		"bad JSON": {
			reason: "the line is the one where it went wrong",
			files:  files("a.json", "{\n  \"a\": 1,\n  \"b\" 2\n}\n"), path: "./",
			err: "InvalidManifest: a.json:3: cannot be read as JSON: invalid character '2' after object key",
		},
		"half a JSON": {
			reason: "no Go noise", files: files("a.json", "{\n"), path: "./",
			err: "InvalidManifest: a.json:1: cannot be read as JSON: it ends too early",
		},
		"not text": {
			reason: "bytes are no YAML", files: files("a.yaml", "a: \xff\xfe"), path: "./",
			err: "InvalidManifest: a.yaml: is not UTF-8 text",
		},
		"scalar": {
			reason: "a word is no object", files: files("a.yaml", "---\n\nhello\n"), path: "./",
			err: "InvalidManifest: a.yaml:3: is no Kubernetes object: an object begins with apiVersion and kind",
		},
		"no kind": {
			reason: "the field is named", files: files("a.yaml", "\napiVersion: v1\nmetadata: {name: a}\n"), path: "./",
			err: "InvalidManifest: a.yaml:2: kind: is missing: every object needs it",
		},
		"no name": {
			reason: "the field is named", files: files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"), path: "./",
			err: "InvalidManifest: a.yaml:1: metadata.name: is missing: every object needs it",
		},
		"no metadata": {
			reason: "the field is named", files: files("a.yaml", "apiVersion: v1\nkind: ConfigMap\n"), path: "./",
			err: "InvalidManifest: a.yaml:1: metadata: is missing or no mapping: an object needs metadata.name",
		},
		"name y": {
			reason: "kubectl reads y as true, and so do we, but we say so",
			files:  files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\n"), path: "./",
			err: "InvalidManifest: a.yaml:4: metadata.name: must be a string, and is the boolean true (YAML reads y, yes and on as true, n, no and off as false): quote it",
		},
		"name number": {
			reason: "a number is no name", files: files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: 12\n  name: a\n"), path: "./",
			err: "InvalidManifest: a.yaml:4: metadata.namespace: must be a string, and is the number 12: quote it",
		},
		"annotation": {
			reason: "an unquoted true hides every annotation from the API's helpers",
			files:  files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    x: \"1\"\n    kraan.updateVersion: true\n"), path: "./",
			err: "InvalidManifest: a.yaml:1: metadata.annotations[kraan.updateVersion]: must be a string, and is the boolean true (YAML reads y, yes and on as true, n, no and off as false): quote it",
		},
		"generateName": {
			reason: "an object that is new each time can never be pruned",
			files:  files("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: a-\n"), path: "./",
			err: "InvalidManifest: a.yaml:4: metadata.generateName: makes a new object each time it is applied: write metadata.name instead",
		},
		"duplicate key": {
			reason: "one of the two would win by chance",
			files:  files("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: a\n  k: b\n"), path: "./",
			err: `InvalidManifest: a.yaml:6: the key "k" is there twice, first in line 5`,
		},
		"duplicate key in JSON": {
			reason: "in JSON too", files: files("a.json", "{\"kind\":\"A\",\n\"kind\":\"B\"}"), path: "./",
			err: `InvalidManifest: a.json:2: the key "kind" is there twice, first in line 1`,
		},
		"duplicate object": {
			reason: "both places are named, and the version does not tell them apart",
			files:  files("a.yaml", release("a"), "b.yaml", "---\n"+release("b")+"---\n"+strings.Replace(release("a"), "/v2", "/v2beta1", 1)), path: "./",
			err: "DuplicateObject: b.yaml:10: HelmRelease addons/a is there twice, first in a.yaml:1: remove one",
		},
		"encrypted": {
			reason: "the file is named", files: files("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: ENC[x]\n"), path: "./",
			err: "EncryptedManifest: secret.yaml: is encrypted with SOPS: name the Secret that holds the key in spec.decryption.secretRef of the layer, or keep the file out of the layer's directory",
		},
		"large number": {
			reason: "it would silently become another number",
			files:  files("a.yaml", configMap("a", "{n: 123456789012345678901}")), path: "./",
			err: "InvalidManifest: a.yaml:5: has a number that does not fit into 64 bits: quote it",
		},
		"number of 400 digits": {
			reason: "no float64 holds it either, so the YAML reader makes a text of it",
			files:  files("a.yaml", configMap("a", "{text: !!str "+strings.Repeat("1", 400)+",\n  n: "+strings.Repeat("1", 400)+"}")), path: "./",
			err: "InvalidManifest: a.yaml:6: has a number that does not fit into 64 bits: quote it",
		},
		"null key": {
			reason: "no Go noise", files: files("a.yaml", configMap("a", "{null: a}")), path: "./",
			err: "InvalidManifest: a.yaml:5: has a key that is no text: quote it",
		},
		"infinity": {
			reason: "JSON has no infinity", files: files("a.yaml", configMap("a", "{n: -.inf}")), path: "./",
			err: "InvalidManifest: a.yaml:5: -.inf is not a number that Kubernetes knows: quote it",
		},
		"alias bomb": {
			reason: "it would take all memory", files: files("a.yaml", aliasBomb()), path: "./",
			err: "InvalidManifest: a.yaml:6: has too many values, or too large ones, with its aliases written out",
		},
		"alias of itself": {
			reason: "it has no end", files: files("a.yaml", "a: &a\n  b: *a\n"), path: "./",
			err: `InvalidManifest: a.yaml:1: the anchor "a" contains itself`,
		},
		"depth": {
			reason: "recursion is bounded", files: files("a.yaml", "a: "+strings.Repeat("[", 500)+strings.Repeat("]", 500)), path: "./",
			err: "InvalidManifest: a.yaml:1: is nested deeper than 200 levels",
		},
		"density": {
			reason: "nodes take memory before they are counted", files: files("a.yaml", strings.Repeat("- \n", 700_000)), path: "./",
			err: "InvalidManifest: a.yaml:1: has too many values in one document: split it",
		},
		"large file": {
			reason: "a file is held in memory", files: files("a.yaml", strings.Repeat("#", maxFile+1)), path: "./",
			err: "InvalidManifest: a.yaml: is larger than 4194304 bytes: split it, or move it out of the layer's directory",
		},
		"kustomization below": {
			reason: "neither silently applied nor silently ignored",
			files:  files("base/a.yaml", release("a"), "base/sub/kustomization.yaml", "resources: [b.yaml]\n", "base/sub/b.yaml", release("b")), path: "./base",
			err: "InvalidManifest: base/sub/kustomization.yaml:1: is a kustomization below the layer's directory: a kustomization must be at the top of the directory that spec.source.path names, or be left out of it",
		},
		"kustomization below without an ending": {
			reason: "the third name that kustomize knows",
			files:  files("sub/Kustomization", "resources: [b.yaml]\n"), path: "./",
			err: "InvalidManifest: sub/Kustomization:1: is a kustomization below the layer's directory: a kustomization must be at the top of the directory that spec.source.path names, or be left out of it",
		},
		"Flux Kustomization": {
			reason: "it is an object although its file has kustomize's name",
			files:  files("kustomization.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux}\n"),
			path:   "./", want: []string{"Kustomization apps"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(context.Background(), c.files, c.path)
			text := ""
			if reason, message := mistake(err); err != nil {
				text = reason + ": " + message
			}
			if diff := cmp.Diff(c.err, text); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.want, objs(got)); err == nil && diff != "" {
				t.Errorf("%s: objects (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func aliasBomb() string {
	text := "a0: &a0 [" + strings.Repeat("x,", 9) + "x]\n"
	for i := 1; i < 9; i++ {
		one := "*a" + string(rune('0'+i-1))
		text += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(one+",", 9) + one + "]\n"
	}
	return text
}

func TestEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		files   fstest.MapFS
		missing bool
	}{
		"missing":       {files(), true},
		"only comments": {files("base/a.yaml", "# nothing\n"), false},
		"no manifests":  {files("base/README.md", "hello"), false},
	} {
		got, err := Parse(context.Background(), c.files, "./base")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&directories.Directory{Digest: EmptyDigest, Missing: c.missing}, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestValues(t *testing.T) {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: values
  uid: 1
  creationTimestamp: null
  ownerReferences: []
  managedFields: []
common: &common {a: 1, b: two}
values:
  <<: *common
  large: 9007199254740993
  float: 1.5
  round: 1.0
  version: "1.10"
  yes: yes
  quoted: "yes"
  octal: 0644
  date: 2020-01-02
  nothing: ~
  text: |
    --- no marker
     ---
status: {ready: true}
`
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "values"},
		"common": map[string]any{"a": int64(1), "b": "two"},
		"values": map[string]any{
			"a": int64(1), "b": "two", "large": int64(9007199254740993), "float": 1.5, "round": int64(1), "version": "1.10",
			"true": true, "quoted": "yes", "octal": int64(420), "date": "2020-01-02", "nothing": nil, "text": "--- no marker\n ---\n",
		},
	}
	got, err := Parse(context.Background(), files("a.yaml", text), ".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Manifests[0].Object.Object); diff != "" {
		t.Errorf("values are those of kubectl, exactly (-want +got):\n%s", diff)
	}
	json := `{"apiVersion":"v1","kind":"C","metadata":{"name":"j"},"n":[9007199254740993,-9223372036854775808,1.25,"\ud83d\ude00"]}`
	got, err = Parse(context.Background(), files("a.json", json), ".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{int64(9007199254740993), int64(math.MinInt64), 1.25, "😀"}, got.Manifests[0].Object.Object["n"]); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestLines(t *testing.T) {
	text := "# one\n---\n# three\n" + release("a") + "---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n"
	got, err := Parse(context.Background(), files("x/a.yaml", text), "./x")
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, manifest := range got.Manifests {
		places = append(places, manifest.Object.GetName()+" "+placeOf(manifest))
	}
	if diff := cmp.Diff([]string{"b x/a.yaml:15", "a x/a.yaml:4"}, places); diff != "" {
		t.Errorf("the line is the one that the object begins at (-want +got):\n%s", diff)
	}
}

func TestTooManyObjects(t *testing.T) {
	set := newObjectSet()
	object := func(i int) directories.Manifest {
		return directories.Manifest{File: "a.yaml", Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": string(rune('a' + i%26)), "namespace": strings.Repeat("x", i/26)},
		}}}
	}
	for i := range maxObjects {
		if err := set.add(object(i)); err != nil {
			t.Fatal(err)
		}
	}
	if reason, text := mistake(set.add(object(maxObjects))); reason != v1alpha1.ReasonInvalidManifest || !strings.Contains(text, "is one object more than the 10000 that a layer may have") {
		t.Errorf("one object too many gives %s: %s", reason, text)
	}
}
