// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/checks"
)

// releaseName is that of the Helm release, as the documents have it.
const releaseName = "strata"

// installation is what the flags say.
type installation struct {
	*setup
	namespace               string
	set, files              []string
	reset, createNamespace  bool
	dryRun, wait, downgrade bool
	takeOwnership, yes      bool
	timeout                 time.Duration
	// version and chart say which chart, and flux where Flux's manifests are.
	version, chart, flux string
}

// AssumedKubernetes is the version that manifests are made for without a cluster: the
// newest that Strata is tested with.
const AssumedKubernetes = "v1.36.0"

// values returns what --values and --set give.
func (i *installation) values() (map[string]any, error) {
	values := map[string]any{}
	for _, name := range i.files {
		data, err := os.ReadFile(name) //nolint:gosec // whoever installs says which files
		if err != nil {
			return nil, fmt.Errorf("cannot read the values: %w", err)
		}
		more := map[string]any{}
		if err := yaml.Unmarshal(data, &more); err != nil {
			return nil, fmt.Errorf("cannot understand the values in %s: %w", name, err)
		}
		values = loader.MergeMaps(values, more)
	}
	for _, text := range i.set {
		if err := strvals.ParseInto(text, values); err != nil {
			return nil, fmt.Errorf("cannot understand --set %s: %w", text, err)
		}
	}
	return values, nil
}

// helm returns how Helm's library reaches the cluster.
func (i *installation) helm() (*action.Configuration, error) { return Helm(i.Flags, i.namespace) }

// Helm returns how Helm's library reaches the cluster of flags, with its releases stored in
// a namespace. Helm's logs go nowhere: what matters is in its errors.
func Helm(flags *genericclioptions.ConfigFlags, namespace string) (*action.Configuration, error) {
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	if err := config.Init(console.Uncached(flags), namespace, "secret"); err != nil {
		return nil, fmt.Errorf("cannot prepare Helm: %w", err)
	}
	return config, nil
}

// LastRelease returns what is installed by a name; nil where nothing is.
func LastRelease(helm *action.Configuration, name string) (*releasev1.Release, error) {
	found, err := helm.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	release, is := found.(*releasev1.Release)
	if !is {
		return nil, fmt.Errorf("the release %s is of a kind that is not known: %T", name, found)
	}
	if release.Info.Status == releasecommon.StatusUninstalled {
		return nil, nil
	}
	return release, nil
}

// render returns the release as it would be, without asking the cluster.
func (i *installation) render(facts checks.Facts, chart *chartv2.Chart, values map[string]any) (*releasev1.Release, error) {
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil))))
	install.ReleaseName, install.Namespace, install.DryRunStrategy = releaseName, i.namespace, action.DryRunClient
	version, err := common.ParseKubeVersion(facts.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the cluster's version %s: %w", facts.Kubernetes, err)
	}
	install.KubeVersion = version
	rendered, err := install.Run(chart, values)
	if err != nil {
		return nil, fmt.Errorf("cannot render the chart: %w", err)
	}
	return rendered.(*releasev1.Release), nil
}
