// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/kustomize"
)

func TestBuild(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		want   []string
		err    string
	}{
		"overlay": {
			reason: "a base beside the layer is inside the artifact",
			files: files("base/kustomization.yaml", "resources: [../common, ../single/c.yaml, a.yaml]\nnamePrefix: x-\n", "base/a.yaml", release("a"),
				"common/kustomization.yml", "resources: [b.yaml]\n", "common/b.yaml", release("b"), "single/c.yaml", release("c"), "base/unused.yaml", release("d")),
			want: []string{"HelmRelease x-a", "HelmRelease x-b", "HelmRelease x-c"},
		},
		"generator and patch": {
			reason: "what is part of kustomize works",
			files: files("base/Kustomization", "resources: [a.yaml]\nconfigMapGenerator:\n- name: c\n  files: [k=data/v.txt]\n  literals: [url=https://example.com]\ngeneratorOptions: {disableNameSuffixHash: true}\npatches:\n- path: p.yaml\ntransformers: [t.yaml]\n",
				"base/data/v.txt", "v", "base/a.yaml", release("a"), "base/p.yaml", release("a")+"  suspend: true\n",
				"base/t.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: t}\nprefix: y-\nfieldSpecs:\n- path: metadata/name\n"),
			want: []string{"ConfigMap y-c", "HelmRelease y-a"},
		},
		"missing resource": {
			reason: "the file is named as the author knows it", files: files("base/kustomization.yaml", "resources: [b.yaml]\n"),
			err: "KustomizeFailed: base/kustomization.yaml: kustomize: accumulating resources from 'b.yaml': open base/b.yaml: file does not exist",
		},
		"two kustomizations": {
			reason: "kustomize does not choose either",
			files:  files("base/kustomization.yaml", "resources: []\nnamePrefix: a\n", "base/kustomization.yml", "namePrefix: a\n"),
			err:    "KustomizeFailed: base/kustomization.yaml: kustomize: Found multiple kustomization files under: base",
		},
		"encrypted": {
			reason: "the encrypted file is named, not the kustomization",
			files:  files("base/kustomization.yaml", "resources: [s.yaml]\n", "base/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nsops: {mac: x}\n"),
			err:    "EncryptedManifest: base/s.yaml: is encrypted with SOPS: name the Secret that holds the key in spec.decryption.secretRef of the layer, or keep the file out of the layer's directory",
		},
		"large number": {
			reason: "kustomize would round it", files: files("base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", configMap("a", "{n: 123456789012345678901}")),
			err: "InvalidManifest: base/kustomization.yaml: ConfigMap a: has a number that does not fit into 64 bits: quote it",
		},
		"inline resource without a name": {
			reason: "kustomize says it", files: files("base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
			err: "KustomizeFailed: base/kustomization.yaml: kustomize: accumulating resources from 'a.yaml': missing metadata.name in object {{v1 ConfigMap} {{ } map[] map[]}}",
		},
		"over the top": {
			reason: "the boundary is the artifact", files: files("base/kustomization.yaml", "resources: [../../../../etc/passwd]\n"),
			err: "PathOutsideArtifact: base/kustomization.yaml: resources: ../../../../etc/passwd is outside of the artifact: only files and directories below the root of the source are allowed",
		},
		"over the top and back": {
			reason: "nothing is bent to stay inside", files: files("base/kustomization.yaml", "resources: [../../strata-artifact-root/a.yaml]\n", "a.yaml", release("a")),
			err: "PathOutsideArtifact: base/kustomization.yaml: resources: ../../strata-artifact-root/a.yaml is outside of the artifact: only files and directories below the root of the source are allowed",
		},
		"absolute": {
			reason: "a file of the machine", files: files("base/kustomization.yaml", "configMapGenerator:\n- name: a\n  files: [x=/etc/passwd]\n"),
			err: "PathOutsideArtifact: base/kustomization.yaml: files: /etc/passwd is outside of the artifact: only files and directories below the root of the source are allowed",
		},
		"helm": {
			reason: "it would run a program", files: files("base/kustomization.yaml", "helmCharts:\n- name: a\n"),
			err: "KustomizeFailed: base/kustomization.yaml: helmCharts: Helm charts in a kustomization are not allowed: write a HelmRelease",
		},
		"foreign plug-in": {
			reason: "only what is built in may run", files: files("base/kustomization.yaml", "generators: [g.yaml]\n", "base/g.yaml",
				"apiVersion: example.com/v1\nkind: Exec\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./x.sh}\n", "base/x.sh", "#!/bin/sh"),
			err: "KustomizeFailed: base/g.yaml: generators: Exec is no plug-in that is part of kustomize (apiVersion: builtin): others are not allowed, since they are programs",
		},
		"a directory of plug-ins": {
			reason: "patches in it could change what they load", files: files("base/kustomization.yaml", "transformers: [t]\n", "base/t/kustomization.yaml", "resources: [x.yaml]\n"),
			err: "KustomizeFailed: base/kustomization.yaml: transformers: t is a directory: name the files in it",
		},
		"cycle": {
			reason: "it has no end", files: files("base/kustomization.yaml", "resources: [../other]\n", "other/kustomization.yaml", "resources: [../base]\n"),
			err: "KustomizeFailed: base/kustomization.yaml: kustomize: accumulating resources: accumulation err='accumulating resources from '../other': cannot load other: file is not directory': cycle",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(context.Background(), c.files, "./base")
			text := ""
			if reason, message := mistake(err); err != nil {
				text = reason + ": " + message
			}
			if c.reason == "it has no end" {
				if !strings.Contains(text, "cycle") {
					t.Errorf("%s: got %s", c.reason, text)
				}
				return
			}
			if diff := cmp.Diff(c.err, text); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", c.reason, diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, objs(got)); diff != "" {
				t.Errorf("%s: objects (-want +got):\n%s", c.reason, diff)
			}
			for _, manifest := range got.Manifests {
				if !strings.HasPrefix(manifest.File, "base/") || manifest.Line != 0 || len(manifest.Object.GetAnnotations()) > 0 {
					t.Errorf("%s: %s has annotations %v", c.reason, placeOf(manifest), manifest.Object.GetAnnotations())
				}
			}
		})
	}
}

// hostile are kustomizations that would have something fetched: an address, written in
// all the ways in which kustomize takes it for one. They may load t.yaml, v.yaml and
// nested beside them.
func hostile(u string) map[string]string {
	plugin := hostilePlugins(u)
	inline := func(text string) string {
		return "- |-\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	}
	binary := func(text string) string { return "!!binary " + base64.StdEncoding.EncodeToString([]byte(text)) }
	return map[string]string{
		"resource":            "resources: [" + u + "]\n",
		"resource, case":      "RESOURCES: [" + u + "]\n",
		"scheme, case":        "resources: [" + strings.Replace(u, "http", "HTTP", 1) + "]\n",
		"base":                "bases: [" + u + "]\n",
		"component":           "components: [" + u + "]\n",
		"crds":                "crds: [" + u + "]\n",
		"configuration":       "configurations: [" + u + "]\n",
		"openapi":             "openapi: {path: \"" + u + "\"}\n",
		"patch":               "patches: [{path: \"" + u + "\"}]\n",
		"strategic merge":     "patchesStrategicMerge: [" + u + "]\n",
		"JSON patch":          "patchesJson6902: [{path: \"" + u + "\", target: {kind: A, name: a, version: v1}}]\n",
		"replacement":         "replacements: [{path: \"" + u + "\"}]\n",
		"generator file":      "configMapGenerator: [{name: a, files: [\"k=" + u + "\"]}]\n",
		"generator env":       "secretGenerator: [{name: a, envs: [\"" + u + "\"]}]\n",
		"generator old env":   "secretGenerator: [{name: a, env: \"" + u + "\"}]\n",
		"transformer":         "transformers: [" + u + "]\n",
		"inline transformer":  "resources: [a.yaml]\ntransformers:\n" + inline(plugin["t.yaml"]),
		"transformer's file":  "resources: [a.yaml]\ntransformers: [./t.yaml]\n",
		"validator":           "validators: [" + u + "]\n",
		"anchor":              "bases: &x [" + u + "]\nresources: *x\n",
		"merge":               "<<: {resources: [" + u + "]}\n",
		"folded":              "resources:\n- >\n  " + u + "\n",
		"git with a newline":  "resources: [\"https://example.invalid/a/b\\n\"]\n",
		"git in generators":   "generators: [\"https://example.invalid/a/b\\n: x\"]\n",
		"github":              "resources: [github.com/a/b]\n",
		"GitHub, case":        "resources: [\"GitHub.com/a/b//c?ref=x\"]\n",
		"ssh":                 "resources: [\"ssh://git@example.invalid/a/b\"]\n",
		"scp":                 "resources: [\"git@example.invalid:a/b\"]\n",
		"git::":               "resources: [\"git::https://example.invalid/a/b\"]\n",
		"file":                "resources: [\"file:///tmp/a.git\"]\n",
		"option of git":       "reſources: [\"file:///nowhere?ref=--upload-pack=touch%20ran%20%23\"]\n",
		"option, plainly":     "resources: [\"file:///nowhere?ref=--upload-pack=touch%20ran%20%23\"]\n",
		"option, component":   "components: [\"file:///nowhere?ref=--upload-pack=touch%20ran%20%23\"]\n",
		"nested":              "resources: [../nested]\n",
		"nested component":    "components: [../component]\n",
		"nested, more deeply": "resources: [../deep]\n",
		// The same letter to encoding/json, and another one to everybody else.
		"long s":                "reſources: [" + u + "]\n",
		"long s, bases":         "baſes: [" + u + "]\n",
		"long s, crds":          "crdſ: [" + u + "]\n",
		"long s, configuration": "configurationſ: [" + u + "]\n",
		"long s, merge":         "patcheſStrategicMerge: [" + u + "]\n",
		"long s, transformers":  "tranſformers: [" + u + "]\n",
		"long s, its file":      "tranſformers: [t.yaml]\n",
		"long s, files":         "configMapGenerator: [{name: a, fileſ: [\"k=" + u + "\"]}]\n",
		"long s, envs":          "configMapGenerator: [{name: a, envſ: [\"" + u + "\"]}]\n",
		"long s, JSON":          `{"re\u017fources": ["` + u + `"]}`,
		"value from a file":     "transformers: [v.yaml]\n",
		"value from a file, in": "transformers:\n" + inline(plugin["v.yaml"]),
		"in a list of plug-ins": "transformers:\n" + inline("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: builtin, kind: PatchTransformer, metadata: {name: t}, path: '"+u+"'}\n"),
		"as a validator":        "validators: [v.yaml]\n",
		"as a generator":        "generators:\n" + inline("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['k="+u+"']\n"),
		"as a secret":           "generators:\n" + inline("apiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: g}\nENVS: ['"+u+"']\n"),
		"as JSON patch":         "transformers:\n" + inline("apiVersion: builtin\nkind: PatchJson6902Transformer\nmetadata: {name: g}\npath: '"+u+"'\n"),
		"as merge":              "transformers:\n" + inline("apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: g}\npathſ: ['"+u+"']\n"),
		"as replacement":        "transformers:\n" + inline("apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: g}\nreplacements: [{path: '"+u+"'}]\n"),
		// What was not written where it is read.
		"alias as a key":  "namePrefix: &k resources\n*k : [" + u + "]\n",
		"alias in a list": "namePrefix: &k path\npatches: [{*k : " + u + "}]\n",
		"binary key":      binary("resources") + ": [" + u + "]\n",
		"binary value":    "resources: [" + binary(u) + "]\n",
		"binary patch":    "patches: [{path: " + binary(u) + "}]\n",
		"binary schema":   "openapi: {path: " + binary(u) + "}\n",
		"binary replaces": "replacements: [{path: " + binary(u) + "}]\n",
		"binary plug-in":  "transformers: [" + binary(plugin["v.yaml"]) + "]\n",
		"another break":   "namePrefix: a\u2028resources: [" + u + "]\n",
		"a return alone":  "namePrefix: a\rresources: [" + u + "]\n",
		"a tag of itself": "resources: !x [" + u + "]\n",
		"Kelvin sign":     "\u212aind: Kustomization\nresources: [" + u + "]\n",
		"two documents":   "resources: [" + u + "]\n---\nresources: []\n",
	}
}

// hostilePlugins are files that hostile kustomizations load.
func hostilePlugins(u string) map[string]string {
	return map[string]string{
		"t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: " + u + "\n",
		"v.yaml": "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata: {name: v}\nvalue: x\ntargetFilePath: " + u + "\n",
	}
}

// hostileFiles are those of an artifact around a kustomization.
func hostileFiles(u, kustomization string) fstest.MapFS {
	found := files("base/kustomization.yaml", kustomization, "base/a.yaml", release("a"),
		"nested/kustomization.yaml", "reſources: ["+u+"]\n", "deep/kustomization.yaml", "resources: [../nested]\n",
		"component/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreſources: ["+u+"]\n")
	for name, text := range hostilePlugins(u) {
		found["base/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return found
}

// outsideWorld counts who comes to it: an address, and programs that are in the PATH.
type outsideWorld struct {
	url   string
	asked atomic.Int64
	ran   string
	temp  string
}

func newOutsideWorld(t *testing.T) *outsideWorld {
	t.Helper()
	w := &outsideWorld{temp: t.TempDir()}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte(release("remote"))) }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			w.asked.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	bin := t.TempDir()
	w.url, w.ran = server.URL+"/a.yaml", filepath.Join(bin, "ran")
	for _, name := range []string{"git", "helm", "docker"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n: >"+w.ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", w.temp)
	return w
}

// check fails a test that has reached anything.
func (w *outsideWorld) check(t *testing.T) {
	t.Helper()
	_, err := os.Stat(w.ran)
	left, _ := os.ReadDir(w.temp)
	if err == nil || w.asked.Load() > 0 || len(left) > 0 {
		t.Errorf("%d connections were opened, a program was run: %t, left in the folder for temporary files: %v", w.asked.Load(), err == nil, left)
	}
}

// Nothing that a kustomization can say may reach the network, or a program.
func TestBuildStaysOffline(t *testing.T) {
	world := newOutsideWorld(t)
	for name, text := range hostile(world.url) {
		_, err := Parse(context.Background(), hostileFiles(world.url, text), "./base")
		if err == nil {
			t.Errorf("%s: it was built", name)
			continue
		}
		reason, message := mistake(err)
		if reason == "InvalidManifest" && (strings.Contains(message, "write the key out") || strings.Contains(message, "has the tag") || strings.Contains(message, "has a line break")) {
			continue
		}
		if name == "Kelvin sign" && strings.Contains(message, "unknown field") {
			continue
		}
		if reason != "KustomizeFailed" || !strings.Contains(message, "remote bases are not allowed") {
			t.Errorf("%s: %s: %s", name, reason, message)
		}
	}
	world.check(t)
}

// The process of a build has neither network nor programs nor files, whatever it is told:
// what was judged wrongly still opens nothing.
func TestBuildHasNothing(t *testing.T) {
	world := newOutsideWorld(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := hostile(world.url)
	cases["a file of the machine"] = "configMapGenerator: [{name: a, files: [\"k=" + secret + "\"]}]\n"
	cases["a chart"] = "helmCharts: [{name: a, repo: \"" + world.url + "\"}]\n"
	t.Setenv("STRATA_TEST_SECRET", "hunter2")
	cases["the environment"] = "configMapGenerator: [{name: a, envs: [names.env]}]\n"
	for name, text := range cases {
		request := &kustomize.Request{Directory: "base", Files: map[string][]byte{"base/names.env": []byte("STRATA_TEST_SECRET\n")}}
		for file, content := range hostileFiles(world.url, text) {
			request.Files[file] = content.Data
		}
		objects, err := kustomize.Build(context.Background(), request)
		if err == nil && strings.Contains(fmt.Sprintf("%+v", objects), "hunter2") || errors.As(err, new(*kustomize.Ended)) {
			t.Errorf("%s: %+v %v", name, objects, err)
		}
	}
	world.check(t)
}

func TestBuildValues(t *testing.T) {
	fsys := files("kustomization.yaml", "resources: [a.yaml]\nbuildMetadata: [originAnnotations, transformerAnnotations]\nnamePrefix: p-\n", "a.yaml", configMap("a", "{n: 9007199254740993, f: 1.5, t: \"1.10\"}"))
	got, err := Parse(context.Background(), fsys, "./")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "p-a"},
		"data": map[string]any{"n": int64(9007199254740993), "f": 1.5, "t": "1.10"},
	}
	if diff := cmp.Diff(want, got.Manifests[0].Object.Object); diff != "" {
		t.Errorf("kustomize changes what it was told to change only (-want +got):\n%s", diff)
	}
}
