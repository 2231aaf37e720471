// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/charts"
)

func broken(t *testing.T) *Report {
	t.Helper()
	_, report := run(t, Options{Files: os.DirFS("testdata/broken"), Kubernetes: "1.34"})
	report.Findings = append(report.Findings,
		Finding{Rule: ruleSyntax, Level: Error, File: "a folder/100%.yaml", Message: "\x1b[2J <&\"]]>\n\x00"})
	return report
}

// What SARIF 2.1.0 wants of a log, and code hosts of a result that they show.
func TestSARIFIsWhatCodeHostsRead(t *testing.T) {
	report := broken(t)
	data, err := SARIF(report, "v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(data, &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif-2.1.0") || len(log.Runs) != 1 {
		t.Fatalf("got version %q, schema %q and %d runs", log.Version, log.Schema, len(log.Runs))
	}
	driver := log.Runs[0].Tool.Driver
	if driver.Name == "" || len(driver.Rules) != len(Rules()) {
		t.Errorf("the driver is %q with %d rules", driver.Name, len(driver.Rules))
	}
	for _, rule := range driver.Rules {
		if rule.ID == "" || rule.Help.Text == "" || rule.ShortDescription.Text == "" || rule.DefaultConfiguration.Level == "" {
			t.Errorf("a rule says too little: %+v", rule)
		}
	}
	results := log.Runs[0].Results
	if len(results) != len(report.Findings) {
		t.Fatalf("%d results, want %d", len(results), len(report.Findings))
	}
	for i, result := range results {
		if result.RuleIndex < 0 || driver.Rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("the rule %s is not at %d", result.RuleID, result.RuleIndex)
		}
		at := result.Locations[0].PhysicalLocation
		uri, err := url.Parse(at.ArtifactLocation.URI)
		if err != nil || uri.IsAbs() || path.IsAbs(uri.Path) || uri.Path != report.Findings[i].File {
			t.Errorf("%q is no relative URI of %s (%v)", at.ArtifactLocation.URI, report.Findings[i].File, err)
		}
		if at.Region.StartLine < 1 || result.Message.Text == "" || result.Level != Error && result.Level != Warning {
			t.Errorf("a result says too little: %+v", result)
		}
	}
}

func TestSARIFWithoutFindingsHasResults(t *testing.T) {
	data, err := SARIF(&Report{}, "")
	if err != nil || !strings.Contains(string(data), `"results": []`) {
		t.Errorf("got %v, %s", err, data)
	}
}

func TestJUnitCountsWhatItLists(t *testing.T) {
	report := broken(t)
	for _, strict := range []bool{false, true} {
		data, err := JUnit(report, strict)
		if err != nil {
			t.Fatal(err)
		}
		var all junitSuites
		if err := xml.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		tests, failures := 0, 0
		for _, suite := range all.Suites {
			failed := 0
			for _, test := range suite.Cases {
				if test.Failure != nil {
					failed++
				}
			}
			if suite.Tests != len(suite.Cases) || suite.Failures != failed {
				t.Errorf("the suite %s counts %d and %d, and has %d and %d", suite.Name, suite.Tests, suite.Failures, len(suite.Cases), failed)
			}
			tests, failures = tests+len(suite.Cases), failures+failed
		}
		want := report.Errors + 1
		if strict {
			want = len(report.Findings)
		}
		if all.Tests != tests || tests != len(report.Findings) || all.Failures != failures || failures != want {
			t.Errorf("%d tests and %d failures, with %d and %d said, want %d failures", tests, failures, all.Tests, all.Failures, want)
		}
	}
}

func TestFieldsOfHelmReleases(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"fine":             {`{"interval": "1h30m", "chartRef": {"kind": "HelmChart", "name": "a"}, "values": {"interval": "often", "crds": 1}}`, ""},
		"no chart":         {`{"interval": "1m"}`, "spec: either chart or chartRef must be set, and not both"},
		"two kubeconfigs":  {`{"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "a"}, "kubeConfig": {"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}}}`, "spec.kubeConfig: exactly one of configMapRef or secretRef must be set"},
		"a long name":      {`{"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "a"}, "releaseName": "` + strings.Repeat("a", 54) + `"}`, "spec.releaseName: has 54 characters: 53 are allowed"},
		"a choice":         {`{"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "a"}, "valuesFrom": [{"kind": "Secrets", "name": "a"}]}`, `spec.valuesFrom[0].kind: is "Secrets": it must be Secret or ConfigMap`},
		"several at once":  {`{"interval": 5, "timeout": "1w", "chartRef": {"kind": "HelmChart"}, "maxHistroy": 1}`, `spec.interval: must be a string, and is a number; spec.maxHistroy: there is no such field: do you mean maxHistory?; spec.chartRef.name: is missing: Flux wants it; spec.timeout: is "1w": write a time such as 5m or 1h30m`},
		"in a list":        {`{"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "a"}, "dependsOn": [{"name": 1}]}`, "spec.dependsOn.name: must be a string, and is a number"},
		"unknown in lists": {`{"interval": "1m", "chartRef": {"kind": "HelmChart", "name": "a"}, "dependsOn": [{"name": "b", "namepsace": "c"}]}`, "spec.dependsOn[0].namepsace: there is no such field: do you mean namespace or name?"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			text := `{"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a"}, "spec": ` + test.spec + `}`
			if err := object.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range checkRelease(object) {
				got = append(got, found.field+": "+found.message)
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCharts(t *testing.T) {
	files := repository(map[string]string{
		"layers.yaml": addonsLayer("a", "./a", ""), "a/a.yaml": release("old", "") + release("away", "") + release("bad", "") + release("fine", ""),
	})
	cronJob := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": map[string]any{"name": "tidy", "namespace": "platform"},
	}}
	render := func(_ context.Context, q charts.Request) (*charts.Rendering, error) {
		switch q.Release.GetName() {
		case "old":
			return &charts.Rendering{Chart: "tidy", Version: "1.2.3", Objects: []*unstructured.Unstructured{cronJob}}, nil
		case "away":
			return nil, &charts.Problem{Reason: charts.ChartUnavailable, Message: "there is no OCIRepository platform/charts"}
		case "bad":
			return nil, &charts.Problem{Reason: charts.RenderFailed, Message: "the chart refuses its values", Err: errors.New("no")}
		}
		return &charts.Rendering{}, nil
	}
	got, _ := run(t, Options{Files: files, Kubernetes: "1.34", Render: render})
	want := []string{
		"a/a.yaml:5: error removed-api: spec: its chart tidy 1.2.3: Kubernetes 1.34 does not serve batch/v1beta1 of CronJob platform/tidy, which was removed in 1.25: write batch/v1/CronJob",
		"a/a.yaml:12: warning chart-unavailable: spec: was not checked: there is no OCIRepository platform/charts",
		"a/a.yaml:19: error chart: spec: the chart refuses its values",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, _ := run(t, Options{Files: files, Render: render}); len(got) > 0 {
		t.Errorf("without a version charts are looked at: %v", got)
	}
}
