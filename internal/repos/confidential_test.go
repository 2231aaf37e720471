// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/kustomize"
)

// No mistake quotes what a Secret holds, what one is generated or patched from, or a
// value of a file that cannot be read; what the author needs to find it is said.
func TestMistakesQuoteNoSecret(t *testing.T) {
	secret := func(lines string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + lines + "\n" }
	kustomization := func(lines string) []string {
		return []string{"base/kustomization.yaml", lines + "\n", "base/s.yaml", secret("stringData: {password: s3cr3t-Tr33}")}
	}
	const named = "base/kustomization.yaml: kustomize: "
	for name, test := range map[string]struct {
		files []string
		want  string
	}{
		"an anchor":            {[]string{"base/s.yaml", secret("stringData: {password: *s3cr3tTr33}")}, "base/s.yaml:1: cannot be read as YAML: unknown anchor '***' referenced"},
		"a tag":                {[]string{"base/s.yaml", secret("stringData: {password: !!int s3cr3t-Tr33}")}, "base/s.yaml:1: cannot be read as YAML: cannot decode !!str `***` as a !!int"},
		"a number":             {[]string{"base/s.yaml", secret("stringData: {pin: 98765432109876543210}")}, "base/s.yaml:4: has a number that does not fit into 64 bits: quote it"},
		"a patch that is none": {kustomization("patchesStrategicMerge: ['stringData: {password: s3cr3t-Tr33']"), "base/kustomization.yaml: patchesStrategicMerge: a text that is neither a name nor a patch is not in the artifact"},
		"a literal":            {kustomization("secretGenerator: [{name: a, literals: [s3cr3t-Tr33]}]"), named + "loading KV pairs: literal sources [***]: invalid literal source ***, expected key=value"},
		"a patch":              {kustomization("patches: [{patch: 'stringData: {password: s3cr3t-Tr33'}]"), named + "trouble configuring builtin PatchTransformer with config: "},
		"a patch for nothing":  {kustomization("resources: [s.yaml]\npatches: [{target: {kind: Secret}, patch: '[{op: test, path: /stringData/password, value: s3cr3t-Tr33}]'}]"), named},
		"no kustomization":     {kustomization("secretGenerator: [{name: a, literals: [password=s3cr3t-Tr33}]"), "base/kustomization.yaml:1: cannot be read as YAML: did not find expected ',' or ']'"},
		"a plug-in":            {kustomization("generators: ['{apiVersion: builtin, kind: SecretGenerator, metadata: {name: a}, literals: [s3cr3t-Tr33]}']"), "base/kustomization.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(context.Background(), files(test.files...), "./base")
			if err == nil {
				t.Fatal("it is no mistake")
			}
			_, message := mistake(err)
			if !strings.HasPrefix(message, test.want) {
				t.Errorf("it says %q, want %q", message, test.want)
			}
			for _, part := range []string{"s3cr", "Tr33", "98765"} {
				if strings.Contains(message, part) {
					t.Errorf("it quotes a Secret: %s", message)
				}
			}
		})
	}
}

// What is not a Secret's stays: an author who is told nothing mends nothing.
func TestWhatIsHidden(t *testing.T) {
	about := map[string][]byte{
		"base/kustomization.yaml": []byte("resources: [deployment.yaml]\npatches: [{patch: 'password: correct-horse'}]\n"),
		"base/deployment.yaml":    []byte("kind: Deployment\nmetadata: {name: shop}\nspec: {replicas: battery}\n"),
		"base/secret.yaml":        []byte("kind: Secret\nmetadata: {name: staple}\ndata: {tok: bG9uZyBhbmQgc2VjcmV0, pin: '42'}\nstringData: {horse: [deep, {er: deeper}]}\n"),
		"base/map.yaml":           []byte("kind: ConfigMap\ndata: {url: example}\n"),
		"base/part.yaml":          []byte("data: {word: partial}\n"),
		"base/broken.yaml":        []byte("kind: Secret\nstringData:\n  a: unclosed\n - b: bracket\n"),
		"base/raw.txt":            []byte("unstructured: whole\n"),
	}
	c := confidentialOf(about)
	for message, want := range map[string]string{
		"open base/deployment.yaml: no such file":             "open base/deployment.yaml: no such file",
		"Deployment shop: replicas is battery":                "Deployment shop: replicas is battery",
		"Secret staple has pin and tok":                       "Secret staple has pin and tok",
		"cannot use bG9uZyBhbmQgc2VjcmV0 or 42":               "cannot use *** or ***",
		"cannot use bG9uZyBhb...":                             "cannot use ***...",
		`in "a\ncorrect-horse"`:                               `in "a\***"`,
		"deep, deeper and er":                                 "*** and er",
		"url is example, word is partial":                     "url is example, word is ***",
		"a is unclosed, b is bracket":                         "a is ***, b is ***",
		"a " + strings.Repeat("b", 1<<20):                     "a ***",
		"unstructured and whole":                              "*** and ***",
		"password: correct horse of base/kustomization.yaml":  "*** of base/kustomization.yaml",
		"a word that is longer than uncorrect, and uncloseds": "a word that is longer than ***, and ***",
	} {
		if got := c.hide(message); got != want {
			t.Errorf("%q is shown as %q, want %q", message, got, want)
		}
	}
	if got, want := c.hideQuoted("the deep 'deep' and `deeper` of deep"), "the deep '***' and `***` of deep"; got != want {
		t.Errorf("with quotes it is %q, want %q", got, want)
	}
}

// A refusal of kustomize is shown without what the build was handed, whoever builds.
func TestRefusalsQuoteNoSecret(t *testing.T) {
	quotes := func(_ context.Context, request *kustomize.Request) ([]kustomize.Object, error) {
		return nil, &kustomize.Refusal{Message: "cannot use " + string(request.Files["base/s.yaml"])}
	}
	all := files("base/kustomization.yaml", "resources: [s.yaml]\n", "base/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: s3cr3t-Tr33}\n")
	err := build(context.Background(), all, "base/kustomization.yaml", builds.Build{}, newObjectSet(), programs{build: quotes})
	if _, message := mistake(err); err == nil || strings.Contains(message, "s3cr3t") || !strings.Contains(message, "metadata: {name: s}") {
		t.Errorf("it says %v", errors.Join(err))
	}
}
