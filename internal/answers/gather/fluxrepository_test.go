// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/repository"
)

var update = flag.Bool("update", false, "write what the tests of testdata/flux expect")

// wanted is the name under which a file of testdata/flux has what comes out.
const wanted = "want"

// fluxFiles are the files that one text of testdata/flux has, by their names.
func fluxFiles(t *testing.T, text string) (files map[string]string, head string) {
	t.Helper()
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if title, is := strings.CutPrefix(line, "-- "); is && strings.HasSuffix(title, " --\n") {
			name = strings.TrimSuffix(title, " --\n")
			files[name] = ""
			continue
		}
		if name == "" {
			continue
		}
		files[name] += line
	}
	head, _, _ = strings.Cut(text, "-- "+wanted+" --\n")
	return files, head
}

// openFlux opens files as a repository.
func openFlux(t *testing.T, files map[string]string, options FluxOptions) *FluxRepository {
	t.Helper()
	return openFluxIn(t, t.TempDir(), files, options)
}

// openFluxIn opens files as a repository that lies in a folder.
func openFluxIn(t *testing.T, dir string, files map[string]string, options FluxOptions) *FluxRepository {
	t.Helper()
	for name, text := range files {
		if name == wanted {
			continue
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := repository.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	f, err := OpenFlux(t.Context(), r, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// told is what comes out of a repository, as text.
func told(t *testing.T, f *FluxRepository) string {
	t.Helper()
	b := &strings.Builder{}
	for at := range f.Clusters {
		cluster := &f.Clusters[at]
		if len(f.Clusters) > 1 {
			fmt.Fprintf(b, "cluster %s\n", cluster.Name)
		}
		all := kustomizations.Convert(cluster.Has.Found, kustomizations.Options{Account: cluster.Has.Account, Reserved: accounts.OfFlux})
		for _, c := range all {
			tellConversion(b, c)
		}
		proof, err := f.Prove(t.Context(), cluster, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range append(cluster.Has.Problems, proof.Problems...) {
			fmt.Fprintf(b, "problem: %s\n", problem)
		}
		fmt.Fprintf(b, "%d layers hold %d objects, %d are not known\n", proof.Layers, proof.Objects, proof.Elsewhere)
	}
	for _, w := range f.Unreached {
		fmt.Fprintf(b, "unreached: %s in %s\n", w.Object.GetName(), w.File)
	}
	return b.String()
}

func tellConversion(b *strings.Builder, c kustomizations.Conversion) {
	fmt.Fprintf(b, "%s is layer %s\n", c.Of, c.To())
	if c.Layer != nil {
		spec := c.Layer.Spec
		fmt.Fprintf(b, "  path %s\n", spec.Source.Path)
		if len(spec.Prereqs.DependsOn) > 0 {
			fmt.Fprintf(b, "  depends on %s\n", strings.Join(spec.Prereqs.DependsOn, ", "))
		}
		for _, patch := range spec.Patches {
			fmt.Fprintf(b, "  leaves out %s\n", strings.TrimSpace(patch.Target.Kind+" "+patch.Target.Name))
		}
		if spec.ServiceAccountName != "" {
			fmt.Fprintf(b, "  acts as %s\n", spec.ServiceAccountName)
		}
		if spec.Decryption != nil {
			fmt.Fprintf(b, "  decrypts with %s\n", spec.Decryption.SecretRef.Name)
		}
		if spec.PostBuild != nil {
			fmt.Fprintf(b, "  substitutes %v %v\n", spec.PostBuild.Substitute, spec.PostBuild.SubstituteFrom)
		}
		if spec.Source.Name != "flux-system" {
			fmt.Fprintf(b, "  source %s\n", spec.Source.Name)
		}
	}
	for _, problem := range c.Problems {
		fmt.Fprintf(b, "  problem: %s\n", problem)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(b, "  note: %s\n", note)
	}
}

// Each repository of testdata/flux is a shape in which Flux is used: what Flux applies becomes
// layers, and nothing else does.
func TestRepositoriesOfFlux(t *testing.T) {
	names, err := filepath.Glob("testdata/flux/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, head := fluxFiles(t, string(text))
			got := told(t, openFlux(t, files, FluxOptions{}))
			if *update {
				if err := os.WriteFile(name, []byte(head+"-- "+wanted+" --\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(files[wanted], got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// ksOf is a Kustomization of a file.
func ksOf(name, applies, source string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
		"spec: {interval: 1h, prune: true, path: " + applies + ", sourceRef: {kind: GitRepository, name: " + source + "}}\n"
}

// Other sources may lie in a folder of their own: what they apply is found there.
func TestFluxOfAnotherSource(t *testing.T) {
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, "deploy"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "deploy", "ks.yaml"), []byte(ksOf("child", "./own", "flux-system")), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := repository.OpenFolder(other)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	files := map[string]string{
		"a.yaml": ksOf("a", "./own", "flux-system"), "b.yaml": ksOf("b", "./deploy", "tenant"), "own/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
		"deploy/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: not-of-the-tenant}\n",
	}
	if got := told(t, openFlux(t, files, FluxOptions{})); !strings.Contains(got, "1 layers hold 1 objects, 1 are not known") {
		t.Errorf("without the source: %s", got)
	}
	got := told(t, openFlux(t, files, FluxOptions{Sources: map[string]*repository.Repository{"flux-system/tenant": opened}}))
	for _, want := range []string{"flux-system/b is layer nothing", "flux-system/child is layer child", "ConfigMap x would be of layer a and of layer child"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
}

// A folder that is named is where Flux begins, and what is outside is not looked at.
func TestFluxBelow(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	files := map[string]string{
		"clusters/a/apps.yaml": ksOf("apps", "./x", "flux-system"), "clusters/b/apps.yaml": ksOf("apps", "./y", "flux-system"), "x/cm.yaml": object, "y/cm.yaml": object,
		"dev/kustomization.yaml": "resources: [../clusters/b/apps.yaml]\n",
	}
	if got := told(t, openFlux(t, files, FluxOptions{Below: []string{"clusters/b"}})); !strings.Contains(got, "path ./y") || strings.Contains(got, "./x") {
		t.Errorf("below a folder: %s", got)
	}
	if got := told(t, openFlux(t, files, FluxOptions{Path: "./dev"})); !strings.Contains(got, "path ./y") || strings.Contains(got, "is layer apps\n  path ./x") {
		t.Errorf("of a path: %s", got)
	}
}
