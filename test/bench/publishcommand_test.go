// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/test/bench/publish"
	"github.com/strata-project/strata/test/bench/report"
)

// writeReport writes a report with one result and returns its path.
func writeReport(t *testing.T, dir, system string, cores int) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.Encode(&out, report.New(report.Run{Machine: report.Machine{Cores: cores}}, []report.Result{{
		Scenario: report.FanOut, System: system, Sizes: report.Sizes{Layers: 100, Releases: 10},
		Figures: []report.Figure{{Name: report.AllCreated, Unit: report.Seconds, Value: 2}},
	}})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, system+".json")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPublishReports(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, publish.Page)
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte(publish.Begin+"\n"+publish.End+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	strata, plain, other := writeReport(t, dir, report.Strata, 2), writeReport(t, dir, report.Plain, 2), writeReport(t, dir, report.Kustomize, 4)
	if err := publishReports([]string{"--docs", dir, strata, plain}, io.Discard); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(content), "| figure | plain-apply | strata |") {
		t.Errorf("the page is %s, %v", content, err)
	}
	for reason, c := range map[string]struct {
		args []string
		want string
	}{
		"no report":              {[]string{"--docs", dir}, "it needs a report"},
		"a file that is missing": {[]string{"--docs", dir, filepath.Join(dir, "absent.json")}, "absent.json: no such file"},
		"a file that is none":    {[]string{"--docs", dir, page}, page + ": cannot decode the report"},
		"another machine":        {[]string{"--docs", dir, strata, other}, "are of different machines: "},
		"an unknown flag":        {[]string{"--doc", dir, strata}, "unknown flag: --doc"},
	} {
		if err := publishReports(c.args, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", reason, err, c.want)
		}
	}
}
