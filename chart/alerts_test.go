// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/strata-project/strata/test/reads"
)

// alertTests holds the cases of testdata/alerts.yaml, as promtool reads them.
type alertTests struct {
	Tests []struct {
		Name  string `json:"name"`
		Cases []struct {
			Alert string           `json:"alertname"`
			Want  []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// rule is one rule of the PrometheusRule that the chart makes.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func TestAlertsFire(t *testing.T) {
	tool := promtool(t)
	dir := t.TempDir()
	rules := rulesFile(t, dir, `{prometheusRule: {enabled: true}}`)
	cases, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "alerts.yaml")
	if err := os.WriteFile(file, cases, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", rules}, {"test", "rules", file}} {
		if output, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
}

// Prometheus refuses a file of rules in which one cannot be parsed.
func TestAlertsOfAllValuesAreValid(t *testing.T) {
	rules := rulesFile(t, t.TempDir(), everything)
	if output, err := exec.CommandContext(t.Context(), promtool(t), "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, output)
	}
}

func TestEveryAlertHasCases(t *testing.T) {
	text, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := &alertTests{}
	if err := sigsyaml.Unmarshal(text, tests); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		if test.Name == "" {
			t.Error("a test of an alert has no name to say its reason")
		}
		for _, tc := range test.Cases {
			if len(tc.Want) > 0 {
				fires[tc.Alert] = true
			} else {
				quiet[tc.Alert] = true
			}
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts(t) {
		if !fires[rule.Alert] || !quiet[rule.Alert] {
			t.Errorf("%s: a case in which it fires: %v; one in which it does not: %v", rule.Alert, fires[rule.Alert], quiet[rule.Alert])
		}
		if !strings.Contains(string(readme), "| "+rule.Alert+" |") {
			t.Errorf("README.md has no row for the alert %s", rule.Alert)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s has the annotations %v", rule.Alert, rule.Annotations)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has the labels %v", rule.Alert, rule.Labels)
		}
	}
}

// alerts returns the rules that the chart makes by default.
func alerts(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile(t, t.TempDir(), `{prometheusRule: {enabled: true}}`))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := sigsyaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("the chart makes no rules")
	}
	return rules
}

// rulesFile writes the rules that the chart makes of values into dir, in the
// form of Prometheus itself, which is the spec of a PrometheusRule.
func rulesFile(t *testing.T, dir, values string) string {
	t.Helper()
	obj, ok := index(render(t, values))["PrometheusRule strata"].(*unstructured.Unstructured)
	if !ok {
		t.Fatal("the chart makes no PrometheusRule")
	}
	text, err := sigsyaml.Marshal(obj.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// promtool returns the path of the tool, which it builds where it is missing.
func promtool(t *testing.T) string {
	t.Helper()
	reads.Add("../hack/tools/promtool")
	if output, err := exec.CommandContext(t.Context(), "../hack/tools.sh", "promtool").CombinedOutput(); err != nil {
		t.Fatalf("cannot build promtool: %v\n%s", err, output)
	}
	dir, err := exec.CommandContext(t.Context(), "../hack/tools.sh", "--dir").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "promtool")
}
