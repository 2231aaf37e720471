// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// newInstall returns the command that installs Strata.
func newInstall(t *setup) *cobra.Command {
	i := &installation{setup: t}
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
	flags.StringVar(&i.chart, "chart", t.build.Registry, "where the registry has the charts of other versions, as oci://HOST/PATH")
	flags.StringVar(&i.flux, "flux", "", "bring Flux where it lacks: a file or an https address of its manifests")
	flags.BoolVarP(&i.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&i.dryRun, "dry-run", false, "print the manifests, and do nothing")
	flags.BoolVar(&i.wait, "wait", false, "wait until the controller is ready")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "how long to wait")
	flags.BoolVar(&i.downgrade, "allow-downgrade", false, "replace a newer version; its CRDs lose fields")
	flags.BoolVar(&i.takeOwnership, "take-ownership", false, "take over objects that Helm has not made, such as Kraan's CRDs, and fields that others have changed")
	return command
}

// Request says how Strata is installed into a cluster that has just been made.
type Request struct {
	Build Build
	// Set and Files give values of the chart, as --set and --values do.
	Set, Files []string
	// Timeout is how long Helm may take.
	Timeout time.Duration
}

// Check says what is wrong with a request, before there is a cluster.
func (r Request) Check(c *console.Console) error {
	i := r.installation(c)
	given, err := i.values()
	if err != nil {
		return err
	}
	loaded, err := r.Build.chart()
	if err != nil {
		return err
	}
	_, err = i.withImage(loaded, given)
	return err
}

// Install installs Strata, without a question.
func Install(ctx context.Context, c *console.Console, r Request) error {
	return r.installation(c).run(ctx)
}

func (r Request) installation(c *console.Console) *installation {
	silent := *c
	silent.Answers = nil
	return &installation{
		setup: &setup{&silent, r.Build}, namespace: "strata-system", createNamespace: true, set: r.Set, files: r.Files, yes: true, timeout: r.Timeout,
	}
}

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
	last, err := LastRelease(helm, releaseName)
	if err != nil && !i.dryRun {
		return i.unseen(ctx, err, facts, loaded, given)
	}
	if last != nil && !i.reset {
		given = loader.MergeMaps(last.Config, given)
	}
	if i.dryRun {
		return i.print(facts, loaded, given)
	}
	if given, err = i.withImage(loaded, given); err != nil {
		return err
	}
	if err := i.rights(ctx, facts, loaded, given); err != nil {
		return err
	}
	return i.replace(ctx, change{facts: facts, wanted: wanted, flux: flux, helm: helm, last: last, chart: loaded, values: given})
}

// change is what is known when nothing stands in the way any more.
type change struct {
	facts  checks.Facts
	wanted checks.Wanted
	// flux is what is applied where Flux lacks.
	flux []*unstructured.Unstructured
	helm *action.Configuration
	// last is what is installed; nil where nothing is.
	last   *releasev1.Release
	chart  *chartv2.Chart
	values map[string]any
}

// replace says what it does, asks where somebody is there, and does it.
func (i *installation) replace(ctx context.Context, c change) error {
	next, err := i.render(c.facts, c.chart, c.values)
	if err != nil {
		return err
	}
	if err := i.mayReplace(c.last, c.chart); err != nil {
		return err
	}
	if same(c.last, next) && !checks.Outdated(c.facts, c.wanted) && !i.wait && len(c.flux) == 0 {
		console.Say(i.Out, "nothing has changed: Strata %s is installed in the namespace %s as it was asked for (revision %d)",
			c.chart.Metadata.Version, i.namespace, c.last.Version)
		return nil
	}
	if err := i.confirm(c.last, next, c.flux); err != nil {
		return err
	}
	if err := BringFlux(ctx, i.Console, c.flux); err != nil {
		return err
	}
	return i.carryOut(ctx, c.helm, c.last, c.chart, c.values)
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
		i.Explain(why, snapshot.Layers), AssumedKubernetes)
	return i.print(checks.Facts{Kubernetes: AssumedKubernetes}, chart, given)
}

// print writes the manifests that would be applied.
func (i *installation) print(facts checks.Facts, chart *chartv2.Chart, given map[string]any) error {
	next, err := i.render(facts, chart, given)
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
