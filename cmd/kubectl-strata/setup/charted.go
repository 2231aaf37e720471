// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/chart"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
)

// Build is what the linker has put into the plug-in.
type Build struct {
	// Version of the plug-in.
	Version string
	// Image of the controller of the same release, as HOST/PATH@sha256:HEX, and HostsImage of
	// the controller of hosts; empty where the plug-in was built by hand.
	Image, HostsImage string
	// Registry has the charts of other releases, as oci://HOST/PATH; may be empty.
	Registry string
}

// setup is a console with what the plug-in brings.
type setup struct {
	*console.Console
	build Build
}

// chart returns the chart that the plug-in holds, in its own version. The plug-in of a
// release has the images of that release in it.
func (b Build) chart() (*chartv2.Chart, error) {
	release := chart.Release{Image: b.Image, HostsImage: b.HostsImage}
	if own, err := semver.StrictNewVersion(strings.TrimPrefix(b.Version, "v")); err == nil {
		release.Version = own.String()
	}
	return chart.Load(release)
}

// Wanted returns what the chart in the plug-in needs and brings.
func (b Build) Wanted() (checks.Wanted, error) {
	loaded, err := b.chart()
	if err != nil {
		return checks.Wanted{}, err
	}
	return wantedOf(loaded, b.Version)
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
