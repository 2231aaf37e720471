// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
)

// The chart in the plug-in is the chart of the tree.
func TestTheChartInThePluginRendersAsOnDisk(t *testing.T) {
	inside, err := Build{}.chart()
	if err != nil {
		t.Fatal(err)
	}
	onDisk, err := loader.LoadDir("../../../chart")
	if err != nil {
		t.Fatal(err)
	}
	var rendered []string
	for _, loaded := range []any{inside, onDisk} {
		install := action.NewInstall(action.NewConfiguration())
		install.ReleaseName, install.Namespace, install.DryRunStrategy = "strata", "strata-system", action.DryRunClient
		install.KubeVersion = &common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
		release, err := install.Run(loaded, map[string]any{
			"remoteClusters": map[string]any{"enabled": true}, "dashboard": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true},
		})
		if err != nil {
			t.Fatal(err)
		}
		rendered = append(rendered, release.(*releasev1.Release).Manifest)
	}
	if diff := cmp.Diff(rendered[1], rendered[0]); diff != "" {
		t.Errorf("-on disk +in the plug-in:\n%s", diff)
	}
	err = filepath.WalkDir("../../../chart", func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel("../../../chart", path)
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "testdata") {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got, err := chart.Files.ReadFile(filepath.ToSlash(name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not in the plug-in as it is on disk: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNothingOlderIsInstalledUnasked(t *testing.T) {
	loaded, err := Build{}.chart()
	if err != nil {
		t.Fatal(err)
	}
	newer := *loaded
	metadata := *loaded.Metadata
	newer.Metadata, metadata.Version = &metadata, "99.0.0"
	last := &releasev1.Release{Chart: &newer, Info: &releasev1.Info{Status: "deployed"}}
	i := &installation{setup: &setup{Console: &console.Console{}}, namespace: "strata-system"}
	if err := i.mayReplace(last, loaded); err == nil || !strings.Contains(err.Error(), "version 99.0.0 of Strata is installed, which is newer") {
		t.Errorf("%v", err)
	}
	i.downgrade = true
	if err := i.mayReplace(last, loaded); err != nil {
		t.Error(err)
	}
	last.Info.Status = "pending-upgrade"
	if err := i.mayReplace(last, loaded); err == nil || !strings.Contains(err.Error(), "helm rollback") {
		t.Errorf("%v", err)
	}
}

func TestSame(t *testing.T) {
	loaded, err := Build{}.chart()
	if err != nil {
		t.Fatal(err)
	}
	release := func(status releasecommon.Status, values map[string]any) *releasev1.Release {
		return &releasev1.Release{Chart: loaded, Manifest: "a", Config: values, Info: &releasev1.Info{Status: status}}
	}
	last := release("deployed", map[string]any{"replicas": 2.0})
	for name, c := range map[string]struct {
		last, next *releasev1.Release
		want       bool
	}{
		"nothing installed":   {nil, release("", nil), false},
		"a number from --set": {last, release("", map[string]any{"replicas": int64(2)}), true},
		"another number":      {last, release("", map[string]any{"replicas": int64(3)}), false},
		"no values":           {release("deployed", nil), release("", map[string]any{}), true},
		"one that has failed": {release("failed", nil), release("", nil), false},
		"another manifest":    {release("deployed", nil), &releasev1.Release{Chart: loaded, Manifest: "b"}, false},
	} {
		if got := same(c.last, c.next); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWantedOfChart(t *testing.T) {
	wanted, err := Build{}.Wanted()
	if err != nil || len(wanted.CRDs) != 9 || len(wanted.Rules) < 10 || wanted.Kubernetes != ">=1.29.0" {
		t.Errorf("%v: %d CRDs, %d rules, Kubernetes %s", err, len(wanted.CRDs), len(wanted.Rules), wanted.Kubernetes)
	}
	if got := checks.Failed(nil); got {
		t.Error("nothing has failed")
	}
}
