// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"os"
	"testing"
	"time"
)

// today is when tests are run.
var today = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestExamplesAreClean(t *testing.T) {
	for name, want := range map[string]Report{
		"platform":  {Layers: 3, Releases: 5},
		"fleet":     {},
		"catalogue": {},
	} {
		root, err := os.OpenRoot("../../../examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		report, err := Run(t.Context(), Options{Files: root.FS(), Now: today})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range report.Findings {
			t.Errorf("%s: %+v", name, finding)
		}
		if report.Files == 0 || want.Layers > 0 && (report.Layers != want.Layers || report.Releases != want.Releases) {
			t.Errorf("%s: saw %d files, %d layers and %d releases, want %+v", name, report.Files, report.Layers, report.Releases, want)
		}
	}
}
