// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/checks"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

const installLong = `Install Strata's chart, or upgrade what is installed, with the CRDs. It is the
same release that helm install makes, and Helm's commands work on it.

It is the chart that this plug-in holds; --version takes that of another version
from the registry, by its tag or its digest. A newer one that is installed is
not replaced without --allow-downgrade.

First comes what kubectl strata check --pre looks at, and whether you have the
rights; where something lacks, nothing is written. At a terminal you are asked
for what can be given: Flux's manifests (--flux), an image, and whether to go on.

Where Strata is installed already, its values stay, and those of --values and
--set are added; --reset-values begins with the chart's own. Where nothing
would change, nothing is done. chart/README.md lists all values.

Exit codes:
  0  it is installed as it was asked for; with --wait, it is ready
  1  it cannot be installed
  2  a check has failed, and nothing was done`

const installExamples = `  # Into the namespace strata-system
  kubectl strata install

  # Another version, by the digest of its chart
  kubectl strata install --version sha256:0123...

  # With Flux, and values of your own, until it is ready
  flux install --export > flux.yaml
  kubectl strata install --flux flux.yaml -f values.yaml --wait

  # What would be applied
  kubectl strata install --dry-run`

// releaseName is that of the Helm release, as the documents have it.
const releaseName = "strata"

// installation is what the flags say.
type installation struct {
	*tool
	namespace               string
	set, files              []string
	reset, createNamespace  bool
	dryRun, wait, downgrade bool
	takeOwnership, yes      bool
	timeout                 time.Duration
	// version and chart say which chart, and flux where Flux's manifests are.
	version, chart, flux string
}

// newInstall returns the command that installs Strata.
func newInstall(t *tool) *cobra.Command {
	i := &installation{tool: t}
	command := &cobra.Command{
		Use: "install", Short: "Install Strata, or upgrade it", Long: installLong, Example: installExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return i.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringVarP(&i.namespace, "namespace", "n", "strata-system", "the namespace of the controller")
	flags.BoolVar(&i.createNamespace, "create-namespace", true, "make the namespace where it is not there")
	flags.StringArrayVar(&i.set, "set", nil, "a value of the chart, for example replicas=2; may be repeated")
	flags.StringArrayVarP(&i.files, "values", "f", nil, "a file of values of the chart; may be repeated, and the last one wins")
	flags.BoolVar(&i.reset, "reset-values", false, "forget the values that it was installed with")
	flags.StringVar(&i.version, "version", "", "the version to install, such as 0.2.0, or the digest of its chart; default is the plug-in's own")
	flags.StringVar(&i.chart, "chart", registry, "where the registry has the charts of other versions, as oci://HOST/PATH")
	flags.StringVar(&i.flux, "flux", "", "bring Flux where it lacks: a file or an https address of its manifests")
	flags.BoolVarP(&i.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&i.dryRun, "dry-run", false, "print the manifests, and do nothing")
	flags.BoolVar(&i.wait, "wait", false, "wait until the controller is ready")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "how long to wait")
	flags.BoolVar(&i.downgrade, "allow-downgrade", false, "replace a newer version; its CRDs lose fields")
	flags.BoolVar(&i.takeOwnership, "take-ownership", false, "take over objects that Helm has not made, such as Kraan's CRDs, and fields that others have changed")
	return command
}

// assumedKubernetes is the version that manifests are made for without a cluster: the
// newest that Strata is tested with.
const assumedKubernetes = "v1.36.0"

func (i *installation) run(ctx context.Context) error {
	given, err := i.values()
	if err != nil {
		return err
	}
	loaded, err := i.loaded(ctx)
	if err != nil {
		return err
	}
	// Before the flags are read for the first time: this is where objects without a
	// namespace go.
	i.Flags.Namespace = &i.namespace
	wanted, err := wantedOf(loaded, loaded.Metadata.Version)
	if err != nil {
		return err
	}
	facts, err := i.Cluster.Facts(ctx, wanted)
	if err != nil && i.dryRun {
		return i.printWithoutCluster(err, loaded, given)
	}
	if err != nil {
		return i.Explain(err, snapshot.Layers)
	}
	flux, err := i.lackingFlux(ctx, facts)
	if err != nil {
		return err
	}
	if err := i.before(facts, wanted, len(flux) > 0); err != nil {
		return err
	}
	helm, err := i.helm()
	if err != nil {
		return err
	}
	last, err := lastRelease(helm)
	if err != nil && !i.dryRun {
		return i.unseen(ctx, err, facts, loaded, given)
	}
	if last != nil && !i.reset {
		given = loader.MergeMaps(last.Config, given)
	}
	if !i.dryRun {
		if given, err = i.withImage(loaded, given); err != nil {
			return err
		}
		if err := i.rights(ctx, facts, loaded, given); err != nil {
			return err
		}
	}
	next, err := i.render(facts, loaded, given)
	if err != nil {
		return err
	}
	if i.dryRun {
		_, err = io.WriteString(i.Out, strings.TrimPrefix(next.Manifest, "\n"))
		return err
	}
	if err := i.mayReplace(last, loaded); err != nil {
		return err
	}
	if same(last, next) && !checks.Outdated(facts, wanted) && !i.wait && len(flux) == 0 {
		console.Say(i.Out, "nothing has changed: Strata %s is installed in the namespace %s as it was asked for (revision %d)",
			loaded.Metadata.Version, i.namespace, last.Version)
		return nil
	}
	if err := i.confirm(last, next, flux); err != nil {
		return err
	}
	if err := i.bring(ctx, flux); err != nil {
		return err
	}
	return i.carryOut(ctx, helm, last, loaded, given)
}

// unseen says what lacks where it cannot be seen whether Strata is installed: the rights
// that installing it takes, where it is these.
func (i *installation) unseen(ctx context.Context, why error, facts checks.Facts, loaded *chartv2.Chart, given map[string]any) error {
	if err := i.rights(ctx, facts, loaded, given); err != nil {
		return err
	}
	return fmt.Errorf("cannot see what is installed in the namespace %s: %w", i.namespace, why)
}

// printWithoutCluster prints what would be installed where no cluster can be asked.
func (i *installation) printWithoutCluster(why error, chart *chartv2.Chart, given map[string]any) error {
	fmt.Fprintf(i.ErrOut, "kubectl strata: no cluster was asked (%v): these are the manifests for Kubernetes %s\n",
		i.Explain(why, snapshot.Layers), assumedKubernetes)
	next, err := i.render(checks.Facts{Kubernetes: assumedKubernetes}, chart, given)
	if err != nil {
		return err
	}
	_, err = io.WriteString(i.Out, strings.TrimPrefix(next.Manifest, "\n"))
	return err
}

// before says what the checks have found, and ends where one has failed. What Flux lacks
// is left out where it is brought.
func (i *installation) before(facts checks.Facts, wanted checks.Wanted, bringsFlux bool) error {
	findings := slices.DeleteFunc(checks.Before(facts, wanted), func(f checks.Finding) bool {
		return f.Result == checks.OK || i.takeOwnership && f.Check == checks.Ownership || bringsFlux && f.AboutFlux()
	})
	if _, err := io.WriteString(i.ErrOut, printing.Checks(i.Screen, findings)); err != nil {
		return err
	}
	if checks.Failed(findings) && !i.dryRun {
		return console.ErrBlocked
	}
	return nil
}

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
func (i *installation) helm() (*action.Configuration, error) {
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	if err := config.Init(newUncached(i.Flags), i.namespace, "secret"); err != nil {
		return nil, fmt.Errorf("cannot prepare Helm: %w", err)
	}
	return config, nil
}

// lastRelease returns what is installed, or nil.
func lastRelease(helm *action.Configuration) (*releasev1.Release, error) {
	found, err := helm.Releases.Last(releaseName)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	release, is := found.(*releasev1.Release)
	if !is {
		return nil, fmt.Errorf("the release %s is of a kind that is not known: %T", releaseName, found)
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

// mayReplace ends where a newer version is installed, or Helm is at work.
func (i *installation) mayReplace(last *releasev1.Release, chart *chartv2.Chart) error {
	if last == nil {
		return nil
	}
	if last.Info.Status.IsPending() {
		return fmt.Errorf(
			"the release %s in the namespace %s has Helm at work on it, or Helm was killed: its status is %s; wait, or run helm rollback %s --namespace %s",
			releaseName,
			i.namespace,
			last.Info.Status,
			releaseName,
			i.namespace,
		)
	}
	has, errHas := semver.NewVersion(last.Chart.Metadata.Version)
	wanted, errWanted := semver.NewVersion(chart.Metadata.Version)
	if errors.Join(errHas, errWanted) == nil && wanted.LessThan(has) && !i.downgrade {
		return fmt.Errorf("version %s of Strata is installed, which is newer than %s; take a newer one, or give --allow-downgrade", has, wanted)
	}
	return nil
}

// same tells whether an upgrade would change nothing.
func same(last, next *releasev1.Release) bool {
	return last != nil && last.Info.Status == releasecommon.StatusDeployed && last.Chart.Metadata.Version == next.Chart.Metadata.Version &&
		last.Manifest == next.Manifest && sameValues(last.Config, next.Config)
}

// sameValues compares values as Helm stores them: a number from --set is an
// integer, one that was stored is not.
func sameValues(a, b map[string]any) bool {
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errors.Join(errA, errB) == nil && (len(a)+len(b) == 0 || bytes.Equal(first, second))
}

// carryOut installs or upgrades.
func (i *installation) carryOut(ctx context.Context, helm *action.Configuration, last *releasev1.Release, chart *chartv2.Chart, values map[string]any) error {
	waiting := kube.HookOnlyStrategy
	if i.wait {
		waiting = kube.StatusWatcherStrategy
	}
	verb := "installed"
	var err error
	if last == nil {
		install := action.NewInstall(helm)
		install.ReleaseName, install.Namespace, install.CreateNamespace, install.Replace = releaseName, i.namespace, i.createNamespace, true
		install.WaitStrategy, install.Timeout = waiting, i.timeout
		install.TakeOwnership, install.ForceConflicts = i.takeOwnership, i.takeOwnership
		_, err = install.RunWithContext(ctx, chart, values)
	} else {
		verb = "upgraded from " + last.Chart.Metadata.Version
		if last.Chart.Metadata.Version == chart.Metadata.Version {
			verb = "changed"
		}
		upgrade := action.NewUpgrade(helm)
		upgrade.Namespace, upgrade.ResetValues, upgrade.MaxHistory = i.namespace, true, 10
		upgrade.WaitStrategy, upgrade.Timeout = waiting, i.timeout
		upgrade.TakeOwnership, upgrade.ForceConflicts = i.takeOwnership, i.takeOwnership
		_, err = upgrade.RunWithContext(ctx, releaseName, chart, values)
	}
	if err != nil && !i.takeOwnership && (strings.Contains(err.Error(), "conflict") || strings.Contains(err.Error(), "invalid ownership")) {
		return fmt.Errorf(
			"others have made or changed what Strata %s brings; look at it, and give --take-ownership where it may be replaced: %w",
			chart.Metadata.Version,
			err,
		)
	}
	if err != nil {
		return fmt.Errorf("cannot install Strata %s: %w", chart.Metadata.Version, err)
	}
	console.Say(i.Out, "Strata %s is %s in the namespace %s; kubectl strata check looks at it", chart.Metadata.Version, verb, i.namespace)
	return nil
}
