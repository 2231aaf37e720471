// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/internal/answers/checks"
)

// setupCommands returns the commands that bring Strata into a cluster, take it away, and
// look at the whole of it.
func setupCommands(t *tool) []*cobra.Command {
	return []*cobra.Command{newGraph(t), newCheck(t), newInstall(t), newUninstall(t)}
}

// loadChart returns the chart that the plug-in holds, in its own version. The plug-in of a
// release has the image of that release in it.
func loadChart() (*chartv2.Chart, error) {
	release := chart.Release{Image: image}
	if own, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		release.Version = own.String()
	}
	return chart.Load(release)
}

// wantedOfPlugin returns what the chart in the plug-in needs and brings.
func wantedOfPlugin() (checks.Wanted, error) {
	loaded, err := loadChart()
	if err != nil {
		return checks.Wanted{}, err
	}
	return wantedOf(loaded, version)
}

// wantedOf returns what a chart needs and brings.
func wantedOf(loaded *chartv2.Chart, version string) (checks.Wanted, error) {
	wanted := checks.Wanted{Version: version, Kubernetes: strings.TrimSuffix(loaded.Metadata.KubeVersion, "-0")}
	for _, file := range loaded.Files {
		switch {
		case path.Dir(file.Name) == "files/crds":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(bytes.TrimPrefix(file.Data, []byte("---\n")), crd); err != nil {
				return wanted, fmt.Errorf("cannot understand %s of the chart: %w", file.Name, err)
			}
			wanted.CRDs = append(wanted.CRDs, crd)
		case file.Name == "files/rbac/controller.yaml":
			var rules []rbacv1.PolicyRule
			if err := yaml.Unmarshal(file.Data, &rules); err != nil {
				return wanted, fmt.Errorf("cannot understand %s of the chart: %w", file.Name, err)
			}
			wanted.Rules = rules
		}
	}
	if len(wanted.CRDs) == 0 {
		return wanted, fmt.Errorf("the chart %s %s is not Strata's: it has no CRDs", loaded.Metadata.Name, loaded.Metadata.Version)
	}
	return wanted, nil
}
