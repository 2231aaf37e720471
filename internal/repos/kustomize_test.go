// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
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
			err:    "EncryptedManifest: base/s.yaml: is encrypted with SOPS, which Strata does not decrypt: keep it out of the layer's directory, or refer to a Secret that something else creates",
		},
		"large number": {
			reason: "kustomize would round it", files: files("base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", configMap("a", "{n: 123456789012345678901}")),
			err: "InvalidManifest: base/kustomization.yaml: ConfigMap a: the number 123456789012345678901 does not fit into 64 bits: quote it",
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
			err: "KustomizeFailed: base/kustomization.yaml: kustomize: loading generator plugins: failed to load generator: external plugins disabled; unable to load external plugin 'Exec'",
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
			if diff := cmp.Diff(c.want, objects(got)); diff != "" {
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

// Nothing that a kustomization can say may reach the network.
func TestBuildStaysOffline(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(release("remote")))
	}))
	defer server.Close()
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\ntouch "+ran+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	u := server.URL + "/a.yaml"
	plugin := "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: " + u + "\n"
	for name, text := range map[string]string{
		"resource":           "resources: [" + u + "]\n",
		"resource, case":     "RESOURCES: [" + u + "]\n",
		"scheme, case":       "resources: [" + strings.Replace(u, "http", "HTTP", 1) + "]\n",
		"base":               "bases: [" + u + "]\n",
		"component":          "components: [" + u + "]\n",
		"crds":               "crds: [" + u + "]\n",
		"configuration":      "configurations: [" + u + "]\n",
		"openapi":            "openapi: {path: \"" + u + "\"}\n",
		"patch":              "patches: [{path: \"" + u + "\"}]\n",
		"strategic merge":    "patchesStrategicMerge: [" + u + "]\n",
		"JSON patch":         "patchesJson6902: [{path: \"" + u + "\", target: {kind: A, name: a, version: v1}}]\n",
		"replacement":        "replacements: [{path: \"" + u + "\"}]\n",
		"generator file":     "configMapGenerator: [{name: a, files: [\"k=" + u + "\"]}]\n",
		"generator env":      "secretGenerator: [{name: a, envs: [\"" + u + "\"]}]\n",
		"generator old env":  "secretGenerator: [{name: a, env: \"" + u + "\"}]\n",
		"transformer":        "transformers: [" + u + "]\n",
		"inline transformer": "resources: [a.yaml]\ntransformers:\n- |-\n  " + strings.ReplaceAll(plugin, "\n", "\n  ") + "\n",
		"transformer's file": "resources: [a.yaml]\ntransformers: [./t.yaml]\n",
		"validator":          "validators: [" + u + "]\n",
		"anchor":             "x: &x [" + u + "]\nresources: *x\n",
		"merge":              "<<: {resources: [" + u + "]}\n",
		"folded":             "resources:\n- >\n  " + u + "\n",
		"git with a newline": "resources: [\"https://example.invalid/a/b\\n\"]\n",
		"git in generators":  "generators: [\"https://example.invalid/a/b\\n: x\"]\n",
		"github":             "resources: [github.com/a/b]\n",
		"GitHub, case":       "resources: [\"GitHub.com/a/b//c?ref=x\"]\n",
		"ssh":                "resources: [\"ssh://git@example.invalid/a/b\"]\n",
		"scp":                "resources: [\"git@example.invalid:a/b\"]\n",
		"git::":              "resources: [\"git::https://example.invalid/a/b\"]\n",
		"file":               "resources: [\"file:///tmp/a.git\"]\n",
		"nested":             "resources: [../nested]\n",
	} {
		fsys := files("base/kustomization.yaml", text, "base/a.yaml", release("a"), "base/t.yaml", plugin, "nested/kustomization.yaml", "resources: ["+u+"]\n")
		_, err := Parse(context.Background(), fsys, "./base")
		if reason, message := mistake(err); reason != "KustomizeFailed" || !strings.Contains(message, "remote bases are not allowed") {
			t.Errorf("%s: %s: %s", name, reason, message)
		}
	}
	if _, err := os.Stat(ran); err == nil || asked.Load() > 0 {
		t.Errorf("the network was asked %d times, git: %v", asked.Load(), err == nil)
	}
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
