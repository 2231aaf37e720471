// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/versions"
)

const planLong = `Show what the controller would do, in order, and why something waits or is refused.
Nothing is changed, in the cluster or elsewhere: the controller's own rules run
here, on what was read of the cluster, and take it that Flux succeeds.

Without --from-dir and --from-git the plan is of what the sources hold now. With
one of them it is of that folder or revision in the place of a source: its
directories, and the AddonsLayers, ApplicationBundles, HelmApplications and
RemoteClusters in its files. Layers that it lacks stay as they are, and so do those
of other sources.

What changes of each release is shown object by object: its chart is rendered as it
is deployed and as it would be. A chart that cannot be had, or rendered, is said to
be so, and the plan goes on.

Charts never see values of Secrets, but what stands in for them, of the same type and
shape. A chart that does not take that is not rendered. With --show-secrets charts
see the true values, which are then shown wherever the chart puts them.

Credentials are sent to the address of a source where the cluster has that source at
the same host and with the same Secrets, and to no other. With --trust-sources they
are sent wherever the change says.

With --offline there is no cluster: the plan is that of a first installation on an
empty cluster with the Kubernetes version of --k8s. No connection is opened, so that
only charts in the folder are rendered, unless --fetch-charts is given. Kubernetes'
own kinds, those of Flux and Strata, those that layers and charts bring, and those of
--crds are there; others are taken to be, and a note names them. Variables come from
ConfigMaps and Secrets of the folder; others stay as they are written.

Of a folder or a commit counts what source-controller would make a GitRepository's
artifact of: no links, and nothing that .sourceignore files or its spec.ignore name.

Where Flux would uninstall a release and install it anew, the volumes that depend on
it are counted on its own cluster, by the kubeconfig that Strata keeps for that, where
you may read its Secret. --remote=false asks no other cluster.

Limits: what else layers have on other clusters, and what you may not read, is taken
to be as Strata left it; a source's includes and submodules are not looked at; a commit
that comes in between, and what Helm hooks or admission webhooks do, nobody
foresees.

Exit codes:
  0  nothing would change
  1  the plan cannot be made
  2  something would change, or a layer waits, is held, refused or fails`

const planExamples = `  # What a branch would do to this cluster
  kubectl strata plan --from-git my-branch

  # The working folder, as a comment on a pull request
  kubectl strata plan --from-dir . -o markdown

  # One layer, and what its sources hold now
  kubectl strata plan base

  # A first installation, without any cluster
  kubectl strata plan --offline --from-dir . --k8s 1.34`

// planOptions are what the flags of plan say.
type planOptions struct {
	gather.PlanOptions
	names    []string
	selector string
	noCharts bool
	output   string
	charts   chartOptions
	remote   remoteFlags
}

// newPlan returns the command that shows what would be done.
func newPlan(t *tool) *cobra.Command {
	o := &planOptions{}
	command := &cobra.Command{
		Use: "plan [LAYER...]", Short: "Show what a revision would do, before it is merged", Long: planLong, Example: planExamples,
		RunE: func(command *cobra.Command, names []string) error {
			o.names = names
			return t.plan(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.FromDir, "from-dir", "", "a folder with what would be committed")
	flags.StringVar(&o.FromGit, "from-git", "", "a git repository, of which HEAD counts, or a branch, tag or commit of the one that you are in")
	flags.StringVar(&o.Source, "source", "", "the source that the folder or revision stands for, as [KIND/][NAMESPACE/]NAME, where there are several")
	flags.StringSliceVar(&o.LayersIn, "layers", nil, "files and folders of it that hold the AddonsLayers of this cluster, where others have some, too")
	flags.BoolVar(&o.Offline, "offline", false, "plan a first installation, without any cluster")
	flags.StringSliceVar(&o.Definitions, "crds", nil,
		"with --offline, a folder with CustomResourceDefinitions of kinds that are there; may be given several times")
	flags.StringVar(&o.Kubernetes, "k8s", "", "the Kubernetes version to plan for; the cluster's own where there is one")
	flags.BoolVar(&o.noCharts, "no-charts", false, "do not render charts: quicker, and without what changes of each release")
	flags.StringVar(&o.Namespace, "runtime-namespace", "", "the namespace of sources that name none; read from the controller's Deployment where it may be")
	flags.StringVarP(&o.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
	o.charts.hostsFlag(flags)
	o.charts.trustFlag(flags)
	o.charts.secretsFlag(flags)
	o.charts.fetchFlag(flags, "with --offline, ")
	o.remote.addTo(command, "ask other clusters for the volumes of what Flux installs anew there, where you may read their kubeconfigs")
	console.OutputFlag(command, &o.output, "json", "yaml", "markdown")
	return command
}

func (o *planOptions) check() error {
	switch {
	case o.FromDir != "" && o.FromGit != "":
		return errors.New("give --from-dir or --from-git, not both")
	case o.Offline && o.FromDir == "" && o.FromGit == "":
		return errors.New("--offline needs --from-dir or --from-git: without a cluster there is nothing else to plan")
	case len(o.Definitions) > 0 && !o.Offline:
		return errors.New("--crds is for --offline: a cluster says itself which kinds it has")
	case o.charts.Fetch && !o.Offline:
		return errors.New("--fetch-charts is for --offline: with a cluster, charts are fetched anyway")
	case o.Offline && o.charts.TrustSources:
		return errors.New("--trust-sources is for clusters: without one no credentials are sent")
	case o.Source != "" && o.FromDir == "" && o.FromGit == "":
		return errors.New("--source is for --from-dir and --from-git")
	case len(o.LayersIn) > 0 && o.FromDir == "" && o.FromGit == "":
		return errors.New("--layers is for --from-dir and --from-git")
	case o.Kubernetes != "" && versions.Semantic(o.Kubernetes) == nil:
		return fmt.Errorf("--k8s is %q: it must be a version such as 1.34", o.Kubernetes)
	}
	return nil
}

func (t *tool) plan(ctx context.Context, o *planOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := t.planned(ctx, o, nil)
	if err != nil {
		return err
	}
	return t.printPlan(p, o.output)
}

// planned makes a plan, of what is gathered after change has changed it.
func (t *tool) planned(ctx context.Context, o *planOptions, change func(*gather.Plan) error) (*preview.Plan, error) {
	progress := t.Progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	gathered, names, err := t.gather(ctx, o)
	if err != nil {
		return nil, err
	}
	defer gathered.Close()
	if change != nil {
		if err := change(gathered); err != nil {
			return nil, err
		}
	}
	return gathered.Preview(ctx, gather.PreviewOptions{Names: names, NoCharts: o.noCharts, Say: progress.Say})
}

// gather reads what a plan is made from, and returns the names of the layers that are
// asked for; none for all of them.
func (t *tool) gather(ctx context.Context, o *planOptions) (*gather.Plan, []string, error) {
	options := o.PlanOptions
	options.Charts = o.charts.ChartOptions
	options.Stay = !o.remote.remote
	options.OnRead = func(s *snapshot.Snapshot) { t.WarnUnread(s, "the plan does without them") }
	var err error
	if options.Allowed, err = o.remote.allowed(); err != nil {
		return nil, nil, err
	}
	gathered, err := t.Cluster.Plan(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	names, err := o.chosen(gathered)
	if err != nil {
		gathered.Close()
		return nil, nil, err
	}
	return gathered, names, nil
}

// chosen returns the names of the layers that are asked for, all of which there are or
// will be.
func (o *planOptions) chosen(g *gather.Plan) ([]string, error) {
	for _, name := range o.names {
		if g.PlannedLayer(name) == nil {
			missing := console.NoLayer(&snapshot.Snapshot{Layers: g.Planned}, name)
			if o.Offline {
				missing = fmt.Errorf("no file of the folder has an AddonsLayer %s", name)
			}
			return nil, missing
		}
	}
	if o.selector == "" {
		return o.names, nil
	}
	if len(o.names) > 0 {
		return nil, errors.New("give names or --selector, not both")
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector is %q: %w", o.selector, err)
	}
	var names []string
	for _, layer := range g.Planned {
		if selector.Matches(labels.Set(layer.Labels)) {
			names = append(names, layer.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no layer has the labels %s; kubectl strata get lists those there are", o.selector)
	}
	return names, nil
}

func (t *tool) printPlan(p *preview.Plan, output string) error {
	var err error
	switch output {
	case "":
		err = printing.Plan(t.Out, t.Screen, p)
	case "markdown":
		err = printing.PlanMarkdown(t.Out, p)
	default:
		err = t.PrintAs(output, p)
	}
	if err == nil && p.Differs() {
		return console.ErrDiffers
	}
	return err
}
