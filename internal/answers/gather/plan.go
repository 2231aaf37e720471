// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/forecast"
	"github.com/strata-project/strata/internal/near"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/sources"
)

// PlanOptions say what is to be planned.
type PlanOptions struct {
	// FromDir and FromGit are a folder and a revision that stand for a source; at most one
	// is given.
	FromDir, FromGit string
	// Repository is a folder of the git repository that FromGit is a revision of; where it is
	// empty, FromGit may be a folder, too.
	Repository string
	// Source that they stand for, as [KIND/][NAMESPACE/]NAME; empty where there is one.
	Source string
	// LayersIn are files and folders of them that hold the layers of this cluster.
	LayersIn []string
	// Offline plans a first installation, without any cluster.
	Offline bool
	// Definitions are folders with CustomResourceDefinitions of kinds that are there, for a
	// plan without a cluster.
	Definitions []string
	// Kubernetes is the version to plan for; empty for the cluster's own.
	Kubernetes string
	// Namespace of sources that name none; empty for what the controller's Deployment says.
	Namespace string
	// Lenient goes on without sources whose artifacts cannot be fetched.
	Lenient bool
	Charts  ChartOptions
	// Stay has no other cluster be asked, and Allowed says where others may be.
	Stay    bool
	Allowed reach.Allowed
	// OnRead is told what was read of the cluster, before more is asked; it may be nil.
	OnRead func(*snapshot.Snapshot)
}

// PreviewOptions say what is shown of a plan.
type PreviewOptions struct {
	// Names of the layers that are shown; none for all.
	Names []string
	// NoCharts leaves out what changes of each release.
	NoCharts bool
	// Say is told how long the work gets on.
	Say func(format string, args ...any)
}

// Plan reads what a plan is made from: the cluster, unless there is none, and a folder
// or revision, which stays open until Close.
func (c *Cluster) Plan(ctx context.Context, o PlanOptions) (*Plan, error) {
	g := &Plan{cluster: c, options: o, unread: map[objects.ID]bool{}, unreadable: map[objects.ID]error{}, away: map[sources.Ref]error{}, settings: defaultSettings}
	if err := g.gather(ctx); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (g *Plan) gather(ctx context.Context) error {
	o := g.options
	var err error
	switch {
	case o.FromDir != "":
		g.repository, err = repository.OpenFolder(o.FromDir)
	case o.FromGit != "" && o.Repository != "":
		g.repository, err = repository.OpenRevision(ctx, o.Repository, o.FromGit)
	case o.FromGit != "":
		g.repository, err = repository.OpenGit(ctx, o.FromGit)
	}
	if err != nil {
		return err
	}
	if o.Offline {
		g.Snapshot = &snapshot.Snapshot{Now: g.cluster.now(), Version: o.Kubernetes, Unread: map[snapshot.Part]error{}}
		if o.Kubernetes == "" {
			g.note("--k8s is not given, so that it is not known which Kubernetes version this is for: layers that ask for one wait")
		}
		if err := g.define(ctx, o.Definitions); err != nil {
			return err
		}
	} else if err := g.connect(ctx); err != nil {
		return err
	}
	if o.Namespace != "" {
		g.settings.Namespace = o.Namespace
	}
	if err := g.merge(ctx, o.LayersIn); err != nil {
		return err
	}
	if g.repository == nil {
		return nil
	}
	if g.source, err = g.sourceNamed(o.Source); err != nil {
		return err
	}
	return g.archive(ctx)
}

// Close ends the use of a folder or revision.
func (g *Plan) Close() {
	if g.repository != nil {
		_ = g.repository.Close() // nothing was written that could be lost
	}
}

// Preview makes the plan of what was gathered.
func (g *Plan) Preview(ctx context.Context, o PreviewOptions) (*preview.Plan, error) {
	o.Say("reading what %d layers list", len(g.Planned))
	world, err := g.World(ctx)
	if err != nil {
		return nil, err
	}
	if o.NoCharts {
		g.takeAsThere(&world, nil)
	}
	made := forecast.Make(world)
	rendered := map[stepKey]*preview.Rendered{}
	if !o.NoCharts {
		if made, rendered, err = g.withCharts(ctx, world, made, o); err != nil {
			return nil, err
		}
	} else {
		rendered = g.withoutCharts(made)
	}
	if g.isOffline() {
		// Without a cluster it is not known when it is made.
		for i := range made.Ends {
			made.Ends[i].Until = time.Time{}
		}
	}
	p := preview.Of(made, shows(o.Names), g.versions(), func(step forecast.Step) *preview.Rendered { return rendered[keyOf(step)] })
	p.From, p.Cluster, p.Kubernetes = g.from(), g.address(), g.Version
	if g.options.FromGit != "" {
		p.Revision = g.repository.Revision
	}
	p.Notes = append(p.Notes, g.notesOf(o.Names)...)
	return p, nil
}

// shows tells which layers are asked for; nil for all of them.
func shows(names []string) func(string) bool {
	if len(names) == 0 {
		return nil
	}
	return func(layer string) bool { return slices.Contains(names, layer) }
}

func (g *Plan) from() string {
	switch {
	case g.repository == nil:
		return "what the sources hold now"
	case g.options.FromDir != "":
		return "folder " + g.options.FromDir
	}
	return g.repository.Revision
}

func (g *Plan) address() string {
	if g.isOffline() {
		return ""
	}
	config, err := g.cluster.Config()
	if err != nil {
		return ""
	}
	return config.Host
}

func (g *Plan) versions() map[string]string {
	found := map[string]string{}
	for _, layer := range g.Planned {
		found[layer.Name] = layer.Spec.Version
	}
	return found
}

// PlannedLayer returns a layer as it would be, or nil.
func (g *Plan) PlannedLayer(name string) *v1alpha1.AddonsLayer {
	for _, layer := range g.Planned {
		if layer.Name == name {
			return layer
		}
	}
	return nil
}

// Replace has layers be written, as somebody would write them, and others be deleted.
func (g *Plan) Replace(write, remove []*v1alpha1.AddonsLayer) {
	for _, layer := range write {
		g.take(layer.DeepCopy())
	}
	now := metav1.NewTime(g.Now)
	for _, layer := range remove {
		for i, live := range g.Planned {
			if live.Name == layer.Name && live.DeletionTimestamp.IsZero() {
				g.Planned[i] = live.DeepCopy()
				g.Planned[i].DeletionTimestamp = &now
			}
		}
	}
}

// Annotate has a layer have annotations; values that are nil are taken off. The error says
// that there is no such layer.
func (g *Plan) Annotate(name string, annotations map[string]any) error {
	at := slices.IndexFunc(g.Planned, func(layer *v1alpha1.AddonsLayer) bool { return layer.Name == name })
	if at < 0 {
		return fmt.Errorf("there is no layer %s", name)
	}
	changed := g.Planned[at].DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		if text, is := value.(string); is {
			changed.Annotations[key] = text
		} else {
			delete(changed.Annotations, key)
		}
	}
	g.Planned[at] = changed
	return nil
}

// Unfetched says of sources whose artifacts could not be fetched why not, sorted; their layers
// are taken to stay as they are. own is that of a layer among names. It knows them once a
// plan was made that is lenient.
func (g *Plan) Unfetched(names ...string) (others []string, own error) {
	mine := map[sources.Ref]bool{}
	for _, layer := range g.Planned {
		if slices.Contains(names, layer.Name) {
			mine[sources.Of(layer, g.settings.Namespace)] = true
		}
	}
	for ref, err := range g.away {
		if mine[ref] {
			own = fmt.Errorf("cannot fetch what %s holds: %w", ref, err)
		} else {
			others = append(others, fmt.Sprintf("%s cannot be fetched, so that its layers are taken to stay as they are: %v", ref, err))
		}
	}
	slices.Sort(others)
	return others, own
}

// connect reads a cluster that is there.
func (g *Plan) connect(ctx context.Context) error {
	var err error
	if g.client, err = g.cluster.Dynamic(); err != nil {
		return err
	}
	kube, err := g.cluster.Typed()
	if err != nil {
		return err
	}
	config, err := g.cluster.Config()
	if err != nil {
		return err
	}
	if g.through, err = newThroughServer(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	if g.Snapshot, err = g.cluster.Read(ctx, slices.Concat(planParts, ownerParts)...); err != nil {
		return err
	}
	if err := g.Unread[snapshot.Releases]; err != nil {
		return fmt.Errorf(
			"without HelmReleases there is no plan: ask for the right to list %s, and see with kubectl strata check that Flux is there: %w",
			snapshot.Releases.GroupResource(),
			err,
		)
	}
	if g.options.OnRead != nil {
		g.options.OnRead(g.Snapshot)
	}
	if g.mapper, err = g.cluster.mapper(); err != nil {
		return fmt.Errorf("cannot find out which kinds the cluster serves: %w", err)
	}
	var known bool
	var hosts []string
	g.settings, hosts, known = settingsOf(ctx, kube)
	g.through.allow(service{namespace: fluxNamespace(ctx, kube), name: sourceController}.String())
	g.through.allow(append(hosts, g.options.Charts.Hosts...)...)
	if !known && g.options.Namespace == "" {
		g.note(
			"the controller's Deployment cannot be read: its flags are taken to be the usual ones, and sources that name no namespace to be in %s (--runtime-namespace)",
			g.settings.Namespace,
		)
	}
	if g.defaults, err = readDefaults(kube.Discovery().OpenAPIV3(), snapshot.Releases.GroupVersion(), snapshot.HelmRepositories.GroupVersion()); err != nil {
		return g.cluster.explain(err, snapshot.Layers)
	}
	g.Version = g.options.Kubernetes
	if g.Version == "" {
		info, err := kube.Discovery().ServerVersion()
		if err != nil {
			return g.cluster.explain(err, snapshot.Layers)
		}
		g.Version = info.GitVersion
	}
	return nil
}

// sourceNamed returns the source that the repository stands for: the one that is
// named, the only one that there is, or the only one whose layers have directories
// in it.
func (g *Plan) sourceNamed(name string) (sources.Ref, error) {
	refs := map[sources.Ref]int{}
	for _, layer := range g.Planned {
		if sources.IsOfBundle(layer) {
			continue
		}
		ref := sources.Of(layer, g.settings.Namespace)
		found := 0
		if info, err := fs.Stat(g.repository.Files, path.Clean(strings.TrimPrefix(layer.Spec.Source.Path, "./"))); err == nil && info.IsDir() {
			found = 1
		}
		// A source whose layers have no directories here is one of several all the same.
		refs[ref] += found
	}
	all := slices.SortedFunc(maps.Keys(refs), func(a, b sources.Ref) int { return strings.Compare(a.String(), b.String()) })
	var texts, names []string
	for _, ref := range all {
		texts, names = append(texts, ref.Kind+"/"+ref.Namespace+"/"+ref.Name), append(names, ref.Name)
	}
	if name != "" {
		var found []sources.Ref
		for i, ref := range all {
			if texts[i] == name || strings.HasSuffix(texts[i], "/"+name) {
				found = append(found, ref)
			}
		}
		switch len(found) {
		case 1:
			return found[0], nil
		case 0:
			return sources.Ref{}, fmt.Errorf("no layer has the source %s%s", name, meant(near.Near(name, names), texts))
		}
		return sources.Ref{}, fmt.Errorf("--source %s may be %s", name, near.Either(texts))
	}
	with := slices.DeleteFunc(slices.Clone(all), func(ref sources.Ref) bool { return refs[ref] == 0 })
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(with) == 1:
		return with[0], nil
	case len(all) == 0:
		return sources.Ref{}, nil
	}
	if ref, found := likely(with, refs); found {
		g.note("the folder is taken for %s, which flux bootstrap makes or most layers with directories in it have; --source says otherwise", ref)
		return ref, nil
	}
	return sources.Ref{}, fmt.Errorf("layers have several sources: say with --source which of them this stands for: %s", near.Either(texts))
}

// likely returns the source that a folder is, of several that it may be: the one that flux
// bootstrap makes, or the GitRepository with the most directories in it. found is false where
// that leaves two.
func likely(with []sources.Ref, directories map[sources.Ref]int) (likely sources.Ref, found bool) {
	most := 0
	for _, ref := range with {
		switch {
		case ref.Name == fluxSystem:
			return ref, true
		case ref.Kind != sources.GitRepository || directories[ref] < most:
		case directories[ref] == most:
			found = false
		default:
			likely, most, found = ref, directories[ref], true
		}
	}
	return likely, found
}

// fluxSystem is the name of the source that flux bootstrap makes.
const fluxSystem = "flux-system"

// meant suggests one of the names that there are.
func meant(found, all []string) string {
	switch {
	case len(found) > 0:
		return "; did you mean " + near.Either(found) + "?"
	case len(all) > 0:
		return "; there are " + strings.Join(all, ", ")
	}
	return ""
}
