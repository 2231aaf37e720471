// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/strata-project/strata/test/bench/report"
)

func result(scenario string, layers int, figure string) report.Result {
	return report.Result{
		Scenario: scenario, System: report.Strata, Sizes: report.Sizes{Layers: layers, Releases: 10},
		Figures: []report.Figure{{Name: figure, Unit: report.Seconds, Value: float64(layers) / 50}},
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWrite(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, Page)
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("# Title\n\n"+Begin+"\nold\n"+End+"\n\nThe end.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	full := report.New(report.Run{}, []report.Result{
		result(report.FanOut, 100, report.AllCreated),
		result(report.Curve, 100, report.AllDeployed), result(report.Curve, 1000, report.AllDeployed),
	})
	if err := Write(docs, full); err != nil {
		t.Fatal(err)
	}
	got := read(t, page)
	for _, want := range []string{
		"# Title\n\n" + Begin + "\n\n![", "(bars.svg)", "(curve.svg)", "### Targets\n",
		"| all created | 2 s |\n", "\n\n" + End + "\n\nThe end.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "old") {
		t.Errorf("what was there before is still there:\n%s", got)
	}
	for _, image := range []string{"bars.svg", "curve.svg"} {
		if content := read(t, filepath.Join(docs, Images, image)); !strings.HasPrefix(content, "<svg ") {
			t.Errorf("%s is %q", image, content)
		}
	}
	if err := Write(docs, full); err != nil || read(t, page) != got {
		t.Errorf("a second time the page is another one: %v", err)
	}

	if err := Write(docs, report.New(report.Run{}, []report.Result{result(report.FanOut, 100, report.AllCreated)})); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(docs, Images, "curve.svg")); !errors.Is(err, os.ErrNotExist) || strings.Contains(read(t, page), "curve.svg") {
		t.Errorf("a curve without results is left: %v", err)
	}
}

func TestWriteNeedsThePage(t *testing.T) {
	for reason, content := range map[string]string{
		"no lines": "# Title\n", "only the first line": Begin + "\n", "the lines the wrong way round": End + "\n" + Begin + "\n",
	} {
		docs := t.TempDir()
		if err := os.MkdirAll(filepath.Join(docs, Images), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(docs, Page), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Write(docs, report.New(report.Run{}, nil)); err == nil || !strings.Contains(err.Error(), "it has no lines") || read(t, filepath.Join(docs, Page)) != content {
			t.Errorf("%s: %v, and the page is\n%s", reason, err, read(t, filepath.Join(docs, Page)))
		}
	}
	if err := Write(t.TempDir(), report.New(report.Run{}, nil)); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "cannot read the page") {
		t.Errorf("a page that is not there: %v", err)
	}
}

// The page of the documentation has the lines between which the tables go.
func TestPageOfTheDocumentation(t *testing.T) {
	content := read(t, filepath.Join("..", "..", "..", "docs", Page))
	if _, err := replace([]byte(content), nil); err != nil {
		t.Error(err)
	}
}
