// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/terminal"
)

const importKraanLong = `Write the AddonsLayers of a cluster that Kraan runs as Strata wants them, and show
what would become of each release when Strata takes the cluster over.

Nothing in the cluster is changed. The manifests are written to --into, all or
none; what means something else to Strata, and fields that it does not know, are
named. The directories of the layers are in git already: --repository-dir names the
folder that holds their repository, checked out at the revision that is deployed.
Each release is compared with git by the controller's own rules:
  adopt      nothing changes: the HelmRelease stays as it is
  upgrade    git has another chart or other values: Helm upgrades it
  install    it is listed, and not there
  reinstall  git means another Helm release of that name
  rename     another HelmRelease stands for the same Helm release; Helm is not asked
  prune      its layer has it, and no layer lists it: it would be uninstalled

Of objects in the cluster it sees what you may read. HelmReleases are compared as
Flux reads them; what a chart range or a ConfigMap of values holds is not. It exits
with 0 where nothing would be installed again, and with 2 where something would
change, has to be mended, or was not compared.`

const importKraanExamples = `  # Every layer, compared with git
  kubectl strata import kraan --repository-dir ~/src/addons

  # Layers of two sources, one of them in another folder
  kubectl strata import kraan --repository-dir ~/src/addons --repository-dir gotk-system/apps=~/src/apps

  # Only what would become of layer base
  kubectl strata import kraan base --repository-dir . --dry-run`

// kraanImport is one run of import kraan.
type kraanImport struct {
	*console.Console
	into, output     string
	force, dryRun    bool
	directories      []string
	runtimeNamespace string

	report kraanReport
	toDos  []string
}

// kraanReport is what --output prints.
type kraanReport struct {
	Into     string               `json:"into"`
	DryRun   bool                 `json:"dryRun"`
	Layers   []kraanLayer         `json:"layers"`
	Releases []adoption.LayerItem `json:"releases"`
	ToDo     []string             `json:"toDo"`
}

// kraanLayer is what is said of one layer.
type kraanLayer struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	File     string   `json:"file"`
	Notes    []string `json:"notes"`
	Problems []string `json:"problems"`
}

func newKraan(c *console.Console) *cobra.Command {
	i := &kraanImport{Console: c}
	command := &cobra.Command{
		Use: "kraan [LAYER...]", Short: "Write the layers of Kraan as Strata wants them", Long: importKraanLong, Example: importKraanExamples,
		RunE: func(command *cobra.Command, names []string) error { return i.run(command.Context(), names) },
	}
	flags := command.Flags()
	flags.StringVar(&i.into, "into", "./layers", "the folder that manifests are written to")
	flags.BoolVar(&i.force, "force", false, "overwrite files that hold something else")
	flags.BoolVar(&i.dryRun, "dry-run", false, "write nothing")
	flags.StringArrayVar(
		&i.directories,
		"repository-dir",
		nil,
		"the folder that holds the repository of the layers, or NAMESPACE/NAME=DIR for that of one source; may be given several times",
	)
	flags.StringVar(&i.runtimeNamespace, "runtime-namespace", "gotk-system", "the namespace of sources that layers name without one")
	console.OutputFlag(command, &i.output, "json", "yaml")
	return command
}

func (i *kraanImport) run(ctx context.Context, names []string) error {
	checkouts, err := i.checkouts()
	if err != nil {
		return err
	}
	client, err := i.Cluster.Dynamic()
	if err != nil {
		return err
	}
	translations, err := i.translations(ctx, client)
	if err != nil {
		return err
	}
	chosen, err := choose(translations, names)
	if err != nil {
		return err
	}
	world, err := i.world(ctx, client, translations, checkouts)
	if err != nil {
		return err
	}
	i.report = kraanReport{Into: i.into, DryRun: i.dryRun, Layers: []kraanLayer{}, Releases: []adoption.LayerItem{}, ToDo: []string{}}
	var files []adoption.File
	for _, t := range chosen {
		file, err := i.layer(t, world)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	written, err := (folder{path: i.into, force: i.force, dryRun: i.dryRun, mode: 0o640}).write(files)
	if err != nil {
		return err
	}
	return i.finish(written)
}

// checkouts returns the folders by the sources that they hold; "" for all others.
func (i *kraanImport) checkouts() (map[string]string, error) {
	found := map[string]string{}
	for _, each := range i.directories {
		source, folder, named := strings.Cut(each, "=")
		if !named {
			source, folder = "", each
		}
		if named && strings.Count(source, "/") != 1 || folder == "" {
			return nil, fmt.Errorf("--repository-dir is %q: it must be DIR or NAMESPACE/NAME=DIR", each)
		}
		if _, twice := found[source]; twice {
			return nil, fmt.Errorf("--repository-dir is given twice for %s", cmp.Or(source, "all sources: write NAMESPACE/NAME=DIR"))
		}
		// A folder that is not there would say of every layer that it lists nothing.
		if _, err := readDirectory(context.Background(), folder, "./"+adoption.Unknown); err != nil {
			return nil, fmt.Errorf("--repository-dir %s cannot be used: %w", folder, err)
		}
		found[source] = folder
	}
	return found, nil
}

// translations reads the layers as they are, with fields that Strata does not know.
func (i *kraanImport) translations(ctx context.Context, client dynamic.Interface) ([]adoption.Translation, error) {
	list, err := client.Resource(snapshot.Layers.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, i.Explain(err, snapshot.Layers)
	}
	found := make([]adoption.Translation, 0, len(list.Items))
	for at := range list.Items {
		translation, err := adoption.Translate(&list.Items[at])
		if err != nil {
			return nil, err
		}
		found = append(found, translation)
	}
	slices.SortFunc(found, func(a, b adoption.Translation) int { return strings.Compare(a.Layer.Name, b.Layer.Name) })
	return found, nil
}

// choose returns the layers of some names, or all.
func choose(all []adoption.Translation, names []string) ([]adoption.Translation, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, t := range all {
		known = append(known, t.Layer.Name)
	}
	var chosen []adoption.Translation
	for _, name := range names {
		at := slices.Index(known, name)
		if at < 0 {
			return nil, console.NoSuch(snapshot.Layers, name, known)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// world reads what the layers list, and what is there of it.
func (i *kraanImport) world(ctx context.Context, client dynamic.Interface, all []adoption.Translation, checkouts map[string]string) (*adoption.World, error) {
	seen, err := i.Cluster.ReadIn(ctx, metav1.NamespaceAll, snapshot.Releases, snapshot.HelmRepositories)
	if err != nil {
		return nil, err
	}
	for _, part := range []snapshot.Part{snapshot.Releases, snapshot.HelmRepositories} {
		if err := seen.Unread[part]; apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("you may not list %s, without which nothing can be compared: %w", part.GroupResource(), err)
		}
	}
	world := &adoption.World{
		Now: i.Now(), Namespace: i.runtimeNamespace, Scopes: adoption.FluxScopes(), Directories: map[string]*directories.Directory{},
		Live: liveOf(seen.Of(snapshot.Releases), seen.Of(snapshot.HelmRepositories)),
	}
	if discovery, err := i.Flags.ToDiscoveryClient(); err == nil {
		if version, err := discovery.ServerVersion(); err == nil {
			world.Version = version.GitVersion
		}
	}
	for _, t := range all {
		world.Layers = append(world.Layers, t.Layer)
		if err := i.read(ctx, world, t, checkouts); err != nil {
			return nil, err
		}
	}
	lacking, err := observeKinds(ctx, i.Flags, client, world)
	if err != nil {
		return nil, err
	}
	if len(lacking) > 0 {
		fmt.Fprintf(i.ErrOut, "kubectl strata: you may not get %s, so it is not known which of them are there\n", strings.Join(lacking, ", "))
	}
	return world, nil
}

// read reads the directory of a layer, where its repository is at hand.
func (i *kraanImport) read(ctx context.Context, world *adoption.World, t adoption.Translation, checkouts map[string]string) error {
	source := sources.Of(t.Layer, i.runtimeNamespace)
	folder, found := checkouts[source.Namespace+"/"+source.Name]
	if !found {
		folder, found = checkouts[""]
	}
	if !found || len(t.Problems) > 0 || sources.IsOfBundle(t.Layer) || t.Layer.Spec.Cluster != nil {
		return nil
	}
	directory, err := readDirectory(ctx, folder, t.Layer.Spec.Source.Path)
	if content := (*directories.ContentError)(nil); errors.As(err, &content) {
		i.toDos = append(i.toDos, fmt.Sprintf("layer %s: %s", t.Layer.Name, content.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the directory of layer %s: %w", t.Layer.Name, err)
	}
	read := *directory
	read.Revision = cmp.Or(t.Layer.Status.Revision, "that is checked out")
	world.Directories[t.Layer.Name] = &read
	return nil
}

// layer adds a layer to the report, and returns its manifest.
func (i *kraanImport) layer(t adoption.Translation, world *adoption.World) (adoption.File, error) {
	name := t.Layer.Name
	data, err := adoption.Text("", t.Manifest)
	if err != nil {
		return adoption.File{}, err
	}
	said := kraanLayer{
		Name:     name,
		Version:  t.Layer.Spec.Version,
		File:     name + ".yaml",
		Notes:    append([]string{}, t.Notes...),
		Problems: append([]string{}, t.Problems...),
	}
	if world.Directories[name] == nil {
		said.Notes = append(said.Notes, i.notCompared(t))
		for _, problem := range said.Problems {
			i.toDos = append(i.toDos, fmt.Sprintf("layer %s: %s", name, problem))
		}
		i.report.Layers = append(i.report.Layers, said)
		return adoption.File{Path: name + ".yaml", Data: data}, nil
	}
	outcome := world.Outcome(t.Layer)
	if outcome.Message != "" {
		said.Problems = append(said.Problems, outcome.Message)
	}
	for _, id := range outcome.New {
		said.Notes = append(said.Notes, id+" would be created: Kraan left it out, or it was deleted")
	}
	for _, problem := range said.Problems {
		i.toDos = append(i.toDos, fmt.Sprintf("layer %s: %s", name, problem))
	}
	i.report.Layers = append(i.report.Layers, said)
	i.report.Releases = append(i.report.Releases, outcome.Items...)
	return adoption.File{Path: name + ".yaml", Data: data}, nil
}

// notCompared says why a layer was not compared with git, and has somebody see
// to it where that can be mended.
func (i *kraanImport) notCompared(t adoption.Translation) string {
	switch {
	case sources.IsOfBundle(t.Layer), t.Layer.Spec.Cluster != nil:
		return "not compared: it is a layer that only Strata can run"
	case len(t.Problems) == 0:
		source := sources.Of(t.Layer, i.runtimeNamespace)
		if !slices.ContainsFunc(i.toDos, func(line string) bool { return strings.HasPrefix(line, "layer "+t.Layer.Name+": ") }) {
			i.toDos = append(i.toDos, fmt.Sprintf("layer %s: compare it with git, by --repository-dir %s/%s=DIR", t.Layer.Name, source.Namespace, source.Name))
		}
	}
	return "not compared with git"
}

func (i *kraanImport) finish(written int) error {
	i.report.ToDo = append(i.report.ToDo, i.toDos...)
	changes := slices.DeleteFunc(slices.Clone(i.report.Releases), func(item adoption.LayerItem) bool { return item.Action == adoption.ActionAdopt })
	var err error
	if i.output != "" {
		err = i.PrintAs(i.output, i.report)
	} else {
		err = i.print(len(changes), written)
	}
	if err == nil && (len(changes) > 0 || len(i.toDos) > 0) {
		return console.ErrDiffers
	}
	return err
}

func (i *kraanImport) print(changes, written int) error {
	if len(i.report.Layers) == 0 {
		console.Say(i.Out, "No layers found.")
		return nil
	}
	if err := i.printReleases(); err != nil {
		return err
	}
	for _, layer := range i.report.Layers {
		for _, note := range layer.Notes {
			i.Tell("layer %s: %s", layer.Name, note)
		}
	}
	switch {
	case changes > 0:
		i.Tell("%d of %d releases would change.", changes, len(i.report.Releases))
	case len(i.report.Releases) > 0 && len(i.toDos) == 0:
		i.Tell("Nothing would be installed again: %s would be adopted.", counted(len(i.report.Releases), "release"))
	case len(i.report.Releases) > 0:
		i.Tell("Of %s that could be compared, nothing would be installed again.", counted(len(i.report.Releases), "release"))
	}
	switch {
	case i.dryRun:
	case written == 0:
		i.Tell("%s holds all layers already.", i.into)
	default:
		i.Tell("%s written to %s: commit them, then kubectl apply -f %s", counted(written, "layer"), i.into, path.Clean(i.into))
	}
	i.ToDo(i.toDos)
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (i *kraanImport) printReleases() error {
	if len(i.report.Releases) == 0 {
		return nil
	}
	columns := []terminal.Column{
		{Name: "LAYER"},
		{Name: "RELEASE"},
		{Name: "CHART", Expendable: 2},
		{Name: "VERSION", Expendable: 3},
		{Name: "DO", Role: roleOfAction},
		{Name: "FILE", Expendable: 1},
		{Name: "NOTE"},
	}
	rows := make([][]string, 0, len(i.report.Releases))
	for _, item := range i.report.Releases {
		rows = append(rows, []string{item.Layer, item.Namespace + "/" + item.Name, item.Chart, item.Version, item.Action, item.File, item.Note})
	}
	if err := i.Screen.Table(i.Out, columns, rows); err != nil {
		return err
	}
	console.Say(i.Out, "")
	return nil
}
