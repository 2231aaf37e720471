// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// linted is what lint says of some files, with the exit code.
func (p plugin) linted(files map[string]string) (code int, findings []map[string]any) {
	p.Helper()
	root := p.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		p.must(os.MkdirAll(filepath.Dir(name), 0o700))
		p.must(os.WriteFile(name, []byte(text), 0o600))
	}
	code, output := p.run("lint", root, "-o", "json")
	var report struct {
		Findings []map[string]any `json:"findings"`
	}
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		p.Fatalf("%v: %s", err, output)
	}
	return code, report.Findings
}

// What lint finds in a manifest is what the API server refuses, field by field and
// word by word.
func TestLintSaysWhatTheAPIServerSays(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	p := plugin{fixture: f, path: path}
	for name, spec := range map[string]string{
		"no version":             "{source: {name: platform, path: ./addons}}",
		"no source":              "{version: 1.0.0}",
		"a range that is none":   "{version: 1.0.0, source: {name: platform, path: ./addons}, prereqs: {dependsOn: ['base@']}}",
		"a wrong type":           "{version: 1.0.0, source: {name: platform, path: ./addons}, hold: maybe}",
		"a duration":             "{version: 1.0.0, source: {name: platform, path: ./addons}, interval: often}",
		"a kind of source":       "{version: 1.0.0, source: {kind: HelmRepository, name: platform, path: ./addons}}",
		"a path out of the root": "{version: 1.0.0, source: {name: platform, path: ../addons}}",
		"a field too many":       "{version: 1.0.0, source: {name: platform, path: ./addons}, hodl: true}",
		"an empty dependency":    "{version: 1.0.0, source: {name: platform, path: ./addons}, prereqs: {dependsOn: ['']}}",
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			p.fixture = f.in(t)
			text := "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: " + f.name("wrong") + "}\nspec: " + spec + "\n"
			object := &unstructured.Unstructured{}
			p.must(yaml.Unmarshal([]byte(text), &object.Object))
			refusal := stack.client.Create(p.ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
			code, findings := p.linted(map[string]string{"layer.yaml": text, "addons/a.yaml": "# nothing\n"})
			var status apierrors.APIStatus
			if refusal == nil || !errors.As(refusal, &status) {
				t.Fatalf("the API server says %v, lint says %v", refusal, findings)
			}
			if code != 2 || len(findings) == 0 {
				t.Fatalf("the API server says %v, lint ends with %d and says %v", refusal, code, findings)
			}
			if details := status.Status().Details; details != nil && len(details.Causes) > 0 {
				for _, cause := range details.Causes {
					// What it says of no field is that it has not checked the rest.
					if cause.Field != "<nil>" && !says(findings, cause.Field, cause.Message) {
						t.Errorf("the API server says %s: %s, and lint %v", cause.Field, cause.Message, findings)
					}
				}
				return
			}
			for _, found := range findings {
				if field, _ := found["field"].(string); found["rule"] == "unknown-field" && !strings.Contains(refusal.Error(), `unknown field "`+field+`"`) {
					t.Errorf("the API server says %v, and lint %v", refusal, found)
				}
			}
		})
	}
}

func says(findings []map[string]any, field, message string) bool {
	for _, found := range findings {
		if of, _ := found["field"].(string); of == field && found["message"] == message {
			return true
		}
	}
	return false
}

// A directory that lint finds a mistake in makes the layer fail with the same text.
func TestLintSaysWhatTheControllerSays(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	p := plugin{fixture: f, path: path}
	release := f.configMapRelease("one", "one")
	for name, bad := range map[string]string{
		"no YAML":           "apiVersion: v1\nkind: ConfigMap\n}\n",
		"no object":         "# words\n- one\n- two\n",
		"twice":             release,
		"an unquoted label": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\n  labels: {on: yes}\n",
	} {
		layer := strings.ReplaceAll(name, " ", "-")
		folder := strings.ToLower(layer)
		files := map[string]string{folder + "/a.yaml": release, folder + "/bad.yaml": bad}
		f.push(files)
		f.layer(folder)
		said := readyMessage(f.state(folder, v1alpha1.StateFailed))
		files["layer.yaml"] = "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: a}\nspec: {version: 1.0.0, source: {name: platform, path: ./" + folder + "}}\n"
		code, findings := p.linted(files)
		if code != 2 || len(findings) != 1 {
			t.Errorf("%s: lint ends with %d and says %v", name, code, findings)
			continue
		}
		if message, _ := findings[0]["message"].(string); !strings.Contains(said, message) || !strings.Contains(said, folder+"/bad.yaml") {
			t.Errorf("%s: the layer says %q, and lint %v", name, said, findings[0])
		}
	}
}
