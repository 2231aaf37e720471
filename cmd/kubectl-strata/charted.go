// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/internal/answers/checks"
)

// setupCommands returns the commands that bring Strata into a cluster, and look at
// the whole of it.
func setupCommands(t *tool) []*cobra.Command {
	return []*cobra.Command{newGraph(t), newCheck(t), newInstall(t)}
}

// loadChart returns the chart that the plug-in holds.
func loadChart() (*chartv2.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(chart.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := chart.Files.ReadFile(name)
		files = append(files, &archive.BufferedFile{Name: name, Data: data})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chart in the plug-in: %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("cannot load the chart in the plug-in: %w", err)
	}
	return loaded, nil
}

// wantedOfChart returns what the chart in the plug-in needs and brings.
func wantedOfChart() (checks.Wanted, error) {
	wanted := checks.Wanted{Version: version}
	loaded, err := loadChart()
	if err != nil {
		return wanted, err
	}
	wanted.Kubernetes = strings.TrimSuffix(loaded.Metadata.KubeVersion, "-0")
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
	return wanted, nil
}
