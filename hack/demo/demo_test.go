// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/cmd/kubectl-strata/summary"
)

var (
	deployed = summary.Row{Name: "base", Version: "1.0.0", State: "Deployed", Ready: "2/2"}
	waiting  = summary.Row{Name: "apps", Version: "1.0.0", State: "ApplyPending", Ready: "0/2", Why: "waits for base@1.0.0", Blocked: true}
	stale    = summary.Row{Name: "apps", Version: "1.1.0", State: "Deployed", Why: "not looked at yet", Blocked: true}
)

func TestAllDeployed(t *testing.T) {
	for _, c := range []struct {
		rows   []summary.Row
		want   bool
		reason string
	}{
		{nil, false, "nothing has been seen yet"},
		{[]summary.Row{deployed}, true, "all are"},
		{[]summary.Row{deployed, waiting}, false, "one waits"},
		{[]summary.Row{deployed, stale}, false, "the status of one is of an earlier generation"},
	} {
		if got := allDeployed(c.rows); got != c.want {
			t.Errorf("allDeployed is %t: %s", got, c.reason)
		}
	}
}

func TestNotDeployedNamesTheLayersAndTheirMessages(t *testing.T) {
	got := notDeployed(errors.New("not all layers are deployed after 5m0s"), []summary.Row{deployed, waiting}).Error()
	want := "not all layers are deployed after 5m0s\n  layer apps is ApplyPending: waits for base@1.0.0"
	if got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

// What goes into a pipe has a line for each change and no escape sequences.
func TestAPipeGetsALineForEachChange(t *testing.T) {
	var out strings.Builder
	v := newView(&out)
	v.show([]summary.Row{deployed, waiting}, time.Second)
	later := waiting
	later.Since = "5s"
	v.show([]summary.Row{deployed, later}, 5*time.Second)
	done := waiting
	done.State, done.Why, done.Blocked = "Deployed", "", false
	v.show([]summary.Row{deployed, done}, 6*time.Second)
	want := `   1.0s  base       1.0.0    Deployed      2/2
   1.0s  apps       1.0.0    ApplyPending  0/2   waits for base@1.0.0
   6.0s  apps       1.0.0    Deployed      0/2
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCopyWithURL(t *testing.T) {
	dir := t.TempDir()
	tree := fstest.MapFS{"addons/base/charts.yaml": {Data: []byte("url: http://charts.example.invalid/\n")}}
	if err := copyWithURL(dir, tree, "http://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "addons", "base", "charts.yaml"))
	if err != nil || string(content) != "url: http://127.0.0.1:1/\n" {
		t.Errorf("the copy is %q: %v", content, err)
	}
}

// The placeholder is what the example really has.
func TestTheExampleHasThePlaceholder(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "examples", "platform", "addons", "bootstrap", "charts.yaml"))
	if err != nil || !strings.Contains(string(content), placeholder) {
		t.Errorf("the example lacks %s: %v", placeholder, err)
	}
}
