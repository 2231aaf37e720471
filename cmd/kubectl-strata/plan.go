// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/layers"
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
only charts in the folder are rendered, unless --fetch-charts is given.

Of a folder or a commit counts what source-controller would make a GitRepository's
artifact of: no links, and nothing that .sourceignore files or its spec.ignore name.

Limits: what layers have on other clusters, and what you may not read, is taken to
be as Strata left it; a source's includes and submodules are not looked at; a commit
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
	names            []string
	selector         string
	fromDir, fromGit string
	source           string
	layersIn         []string
	offline          bool
	k8s              string
	noCharts         bool
	namespace        string
	output           string
	charts           chartOptions
	// lenient goes on without sources whose artifacts cannot be fetched.
	lenient bool
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
	flags.StringVar(&o.fromDir, "from-dir", "", "a folder with what would be committed")
	flags.StringVar(&o.fromGit, "from-git", "", "a git repository, of which HEAD counts, or a branch, tag or commit of the one that you are in")
	flags.StringVar(&o.source, "source", "", "the source that the folder or revision stands for, as [KIND/][NAMESPACE/]NAME, where there are several")
	flags.StringSliceVar(&o.layersIn, "layers", nil, "files and folders of it that hold the AddonsLayers of this cluster, where others have some, too")
	flags.BoolVar(&o.offline, "offline", false, "plan a first installation, without any cluster")
	flags.StringVar(&o.k8s, "k8s", "", "the Kubernetes version to plan for; the cluster's own where there is one")
	flags.BoolVar(&o.noCharts, "no-charts", false, "do not render charts: quicker, and without what changes of each release")
	flags.StringVar(&o.namespace, "runtime-namespace", "", "the namespace of sources that name none; read from the controller's Deployment where it may be")
	flags.StringVarP(&o.selector, "selector", "l", "", "the layers with these labels, for example team=platform")
	o.charts.hostsFlag(flags)
	o.charts.trustFlag(flags)
	o.charts.secretsFlag(flags)
	o.charts.fetchFlag(flags, "with --offline, ")
	outputFlag(command, &o.output, "json", "yaml", "markdown")
	return command
}

func (o *planOptions) check() error {
	switch {
	case o.fromDir != "" && o.fromGit != "":
		return errors.New("give --from-dir or --from-git, not both")
	case o.offline && o.fromDir == "" && o.fromGit == "":
		return errors.New("--offline needs --from-dir or --from-git: without a cluster there is nothing else to plan")
	case o.charts.fetch && !o.offline:
		return errors.New("--fetch-charts is for --offline: with a cluster, charts are fetched anyway")
	case o.offline && o.charts.trustSources:
		return errors.New("--trust-sources is for clusters: without one no credentials are sent")
	case o.source != "" && o.fromDir == "" && o.fromGit == "":
		return errors.New("--source is for --from-dir and --from-git")
	case len(o.layersIn) > 0 && o.fromDir == "" && o.fromGit == "":
		return errors.New("--layers is for --from-dir and --from-git")
	case o.k8s != "" && layers.SemanticVersion(o.k8s) == nil:
		return fmt.Errorf("--k8s is %q: it must be a version such as 1.34", o.k8s)
	}
	return nil
}

func (t *tool) plan(ctx context.Context, o *planOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	p, err := t.preview(ctx, o, nil)
	if err != nil {
		return err
	}
	return t.printPlan(p, o.output)
}

// preview makes a plan, of what is gathered after change has changed it.
func (t *tool) preview(ctx context.Context, o *planOptions, change func(*gathering)) (*preview.Plan, error) {
	progress := t.progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	g, err := t.gather(ctx, o)
	if err != nil {
		return nil, err
	}
	if g.repository != nil {
		defer func() { _ = g.repository.Close() }() // nothing was written that could be lost
	}
	if o, err = g.chosen(o); err != nil {
		return nil, err
	}
	if change != nil {
		change(g)
	}
	progress.Say("reading what %d layers list", len(g.planned))
	world, err := g.world(ctx)
	if err != nil {
		return nil, err
	}
	made := forecast.Make(world)
	rendered := map[stepKey]*preview.Rendered{}
	if !o.noCharts {
		if made, rendered, err = g.withCharts(ctx, world, made, o, progress); err != nil {
			return nil, err
		}
	}
	p := preview.Of(made, o.shows(), g.versions(), func(step forecast.Step) *preview.Rendered { return rendered[keyOf(step)] })
	p.From, p.Cluster, p.Kubernetes = g.from(o), g.address(), g.Version
	if o.fromGit != "" {
		p.Revision = g.repository.Revision
	}
	p.Notes = append(p.Notes, g.notes...)
	return p, nil
}

// chosen returns the options with the names of the layers that are asked for, all of
// which there are or will be.
func (g *gathering) chosen(o *planOptions) (*planOptions, error) {
	for _, name := range o.names {
		if g.plannedLayer(name) == nil {
			return nil, noLayer(&snapshot.Snapshot{Layers: g.planned}, name)
		}
	}
	if o.selector == "" {
		return o, nil
	}
	if len(o.names) > 0 {
		return nil, errors.New("give names or --selector, not both")
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector is %q: %w", o.selector, err)
	}
	with := *o
	for _, layer := range g.planned {
		if selector.Matches(labels.Set(layer.Labels)) {
			with.names = append(with.names, layer.Name)
		}
	}
	if len(with.names) == 0 {
		return nil, fmt.Errorf("no layer has the labels %s; kubectl strata get lists those there are", o.selector)
	}
	return &with, nil
}

func (t *tool) printPlan(p *preview.Plan, output string) error {
	var err error
	switch output {
	case "":
		err = printing.Plan(t.out, t.screen, p)
	case "markdown":
		err = printing.PlanMarkdown(t.out, p)
	default:
		err = t.printAs(output, p)
	}
	if err == nil && p.Differs() {
		return errDiffers
	}
	return err
}

// shows tells which layers are asked for; nil for all of them.
func (o *planOptions) shows() func(string) bool {
	if len(o.names) == 0 {
		return nil
	}
	return func(layer string) bool { return slices.Contains(o.names, layer) }
}

func (g *gathering) from(o *planOptions) string {
	switch {
	case g.repository == nil:
		return "what the sources hold now"
	case o.fromDir != "":
		return "folder " + o.fromDir
	}
	return g.repository.Revision
}

func (g *gathering) address() string {
	if g.isOffline() {
		return ""
	}
	return strings.TrimPrefix(at(g.flags), " at ")
}

func (g *gathering) versions() map[string]string {
	found := map[string]string{}
	for _, layer := range g.planned {
		found[layer.Name] = layer.Spec.Version
	}
	return found
}

func (g *gathering) plannedLayer(name string) *v1alpha1.AddonsLayer {
	for _, layer := range g.planned {
		if layer.Name == name {
			return layer
		}
	}
	return nil
}

// gather reads the cluster and opens what is to be planned.
func (t *tool) gather(ctx context.Context, o *planOptions) (*gathering, error) {
	g := &gathering{tool: t, unread: map[dependents.ID]bool{}, away: map[layers.SourceRef]error{}, lenient: o.lenient, settings: defaultSettings}
	var err error
	switch {
	case o.fromDir != "":
		g.repository, err = repository.OpenFolder(o.fromDir)
	case o.fromGit != "":
		g.repository, err = repository.OpenGit(ctx, o.fromGit)
	}
	if err != nil {
		return nil, err
	}
	if o.offline {
		g.Snapshot = &snapshot.Snapshot{Now: t.now(), Version: o.k8s, Unread: map[snapshot.Part]error{}}
		if o.k8s == "" {
			g.note("--k8s is not given, so that it is not known which Kubernetes version this is for: layers that ask for one wait")
		}
	} else if err := g.connect(ctx, o); err != nil {
		return nil, err
	}
	if o.namespace != "" {
		g.settings.Namespace = o.namespace
	}
	if err := g.merge(ctx, o.layersIn); err != nil {
		return nil, err
	}
	if g.repository == nil {
		return g, nil
	}
	if g.source, err = g.sourceNamed(o.source); err != nil {
		return nil, err
	}
	return g, g.archive(ctx)
}

// connect reads a cluster that is there.
func (g *gathering) connect(ctx context.Context, o *planOptions) error {
	config, err := restConfig(g.flags)
	if err != nil {
		return err
	}
	if g.client, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if g.through, err = newThroughServer(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if g.Snapshot, err = g.cluster.Read(ctx, planParts...); err != nil {
		return err
	}
	if err := g.Unread[snapshot.Releases]; err != nil {
		return fmt.Errorf("without HelmReleases there is no plan: ask for the right to list %s, and see with kubectl strata check that Flux is there: %w", snapshot.Releases.GroupResource(), err)
	}
	g.warnUnread(g.Snapshot, "the plan does without them")
	if g.mapper, err = g.flags.ToRESTMapper(); err != nil {
		return fmt.Errorf("cannot find out which kinds the cluster serves: %w", err)
	}
	var known bool
	var hosts []string
	g.settings, hosts, known = settingsOf(ctx, kube)
	g.through.allow(service{namespace: fluxNamespace(ctx, kube), name: sourceController}.String())
	g.through.allow(append(hosts, o.charts.hosts...)...)
	if !known && o.namespace == "" {
		g.note("the controller's Deployment cannot be read: its flags are taken to be the usual ones, and sources that name no namespace to be in %s (--runtime-namespace)", g.settings.Namespace)
	}
	if g.defaults, err = readDefaults(kube.Discovery().OpenAPIV3(), snapshot.Releases.GroupVersion(), snapshot.HelmRepositories.GroupVersion()); err != nil {
		return explain(err, g.flags, layerKind)
	}
	g.Version = o.k8s
	if g.Version == "" {
		info, err := kube.Discovery().ServerVersion()
		if err != nil {
			return explain(err, g.flags, layerKind)
		}
		g.Version = info.GitVersion
	}
	return nil
}

// sourceNamed returns the source that the repository stands for: the one that is
// named, the only one that there is, or the only one whose layers have directories
// in it.
func (g *gathering) sourceNamed(name string) (layers.SourceRef, error) {
	refs := map[layers.SourceRef]int{}
	for _, layer := range g.planned {
		if layers.IsOfBundle(layer) {
			continue
		}
		ref := layers.SourceOf(layer, g.settings.Namespace)
		refs[ref] += 0
		if info, err := fs.Stat(g.repository.Files, path.Clean(strings.TrimPrefix(layer.Spec.Source.Path, "./"))); err == nil && info.IsDir() {
			refs[ref]++
		}
	}
	all := slices.SortedFunc(maps.Keys(refs), func(a, b layers.SourceRef) int { return strings.Compare(a.String(), b.String()) })
	var texts, names []string
	for _, ref := range all {
		texts, names = append(texts, ref.Kind+"/"+ref.Namespace+"/"+ref.Name), append(names, ref.Name)
	}
	if name != "" {
		var found []layers.SourceRef
		for i, ref := range all {
			if texts[i] == name || strings.HasSuffix(texts[i], "/"+name) {
				found = append(found, ref)
			}
		}
		switch len(found) {
		case 1:
			return found[0], nil
		case 0:
			return layers.SourceRef{}, fmt.Errorf("no layer has the source %s%s", name, meant(summary.Near(name, names), texts))
		}
		return layers.SourceRef{}, fmt.Errorf("--source %s may be %s", name, either(texts))
	}
	with := slices.DeleteFunc(slices.Clone(all), func(ref layers.SourceRef) bool { return refs[ref] == 0 })
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(with) == 1:
		return with[0], nil
	case len(all) == 0:
		return layers.SourceRef{}, nil
	}
	return layers.SourceRef{}, fmt.Errorf("layers have several sources: say with --source which of them this stands for: %s", either(texts))
}

// meant suggests one of the names that there are.
func meant(near, all []string) string {
	switch {
	case len(near) > 0:
		return "; did you mean " + either(near) + "?"
	case len(all) > 0:
		return "; there are " + strings.Join(all, ", ")
	}
	return ""
}
