// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

const importHelmLong = `Write layers for plain Helm releases, and for HelmReleases that no layer has. Each
HelmRelease that is written stands for the very Helm release that is installed, with
its chart, version and values. When the layer takes it, Flux has Helm make one
revision that changes nothing; objects stay as they are.

Nothing in the cluster is changed. Files are written to --into, all or none:
  layers.yaml                        the AddonsLayers, to be created at the end
  LAYER/NAMESPACE/helmrelease-*      the directory of each layer
  incomplete/                        what no layer reads before you complete it

WHERE A CHART COMES FROM. Helm does not record it. The HelmRepositories of the
cluster, then those given with --repository and --helm-repositories, are asked from
here, without credentials. The chart of the same name and version must have the same
templates as the installed one, and the same default values where it has no charts
of its own. OCI registries are not asked.

SECRETS. Values that look secret (passwords, tokens, keys, also in lists and in
URLs) are not written to --into. The HelmRelease refers to a Secret instead, and
waits until that is there. --secrets-into writes the Secrets to a folder outside
of git: apply them, or commit them encrypted. --secret-values inline leaves the
values where they are. What is secret is guessed from names: look at the files.

Everything goes into one layer; --split namespace makes one for each namespace. On
what a release depends cannot be known: move releases that others need, such as
those with CRDs, into the directory of a layer that the others name in
spec.prereqs.dependsOn.

LARGE NUMBERS. Flux gives numbers to charts as floats, as helm -f does and helm
--set does not. Where that may change what a template writes, it is said.

It needs get and list on Secrets; namespaces in which you lack them are named, and
left out. Exits with 2 where something has to be completed or could not be read.`

const importHelmExamples = `  # What would become of all releases of the cluster
  kubectl strata import helm --dry-run

  # Into a checked-out repository that GitRepository flux-system/fleet fetches
  kubectl strata import helm -n shop -n monitoring --into ./addons --source flux-system/fleet --secrets-into ~/secrets

  # With the repository that a chart came from
  kubectl strata import helm --repository podinfo=https://stefanprodan.github.io/podinfo`

// helmImport is one run of import helm.
type helmImport struct {
	*console.Console
	helmImportFlags

	client   dynamic.Interface
	metadata metadata.Interface
	// toDos and skipped collect what somebody has to know.
	toDos   []string
	skipped []adoption.Item
}

// helmImportFlags are what the flags say.
type helmImportFlags struct {
	namespaces                    []string
	all                           bool
	selector, into, layer, split  string
	source, path, version, output string
	repositories                  []string
	helmRepositories              string
	secretValues, secretsInto     string
	force, dryRun                 bool
}

func newHelm(c *console.Console) *cobra.Command {
	i := &helmImport{Console: c}
	command := &cobra.Command{
		Use: "helm", Short: "Write layers for plain Helm releases", Long: importHelmLong, Example: importHelmExamples, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return i.run(command.Context()) },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&i.namespaces, "namespace", "n", nil, "the namespaces of the releases, which may be given several times (default all)")
	flags.BoolVarP(&i.all, "all-namespaces", "A", false, "all namespaces, which is the default")
	flags.StringVarP(&i.selector, "selector", "l", "", "labels of Helm's Secrets, such as name=web, and of HelmReleases")
	flags.StringVar(&i.into, "into", "./addons", "the folder that files are written to")
	flags.BoolVar(&i.force, "force", false, "overwrite files that hold something else")
	flags.BoolVar(&i.dryRun, "dry-run", false, "write nothing, and print what would be written")
	flags.StringVar(&i.layer, "layer", "", "the layer (default imported); with --split namespace what the names of layers begin with")
	flags.StringVar(&i.split, "split", "none", "one layer for all (none), or one for each namespace (namespace)")
	flags.StringVar(&i.version, "layer-version", "1.0.0", "the version of the layers")
	flags.StringVar(&i.source, "source", "addons", "the GitRepository that will hold the folder, as NAME or NAMESPACE/NAME")
	flags.StringVar(&i.path, "path", "", "where the folder is in the source (default ./ and its name)")
	flags.StringArrayVar(&i.repositories, "repository", nil, "a Helm repository to ask, as NAME=URL; may be given several times")
	flags.StringVar(&i.helmRepositories, "helm-repositories", "", "a repositories.yaml of helm, whose repositories are asked")
	flags.StringVar(&i.secretValues, "secret-values", "split", "values that look secret: into a Secret (split), or as they are (inline)")
	flags.StringVar(&i.secretsInto, "secrets-into", "", "the folder, outside of git, that Secrets with secret values are written to")
	console.OutputFlag(command, &i.output, "json", "yaml")
	return command
}

// check refuses flags that contradict each other.
func (i *helmImport) check() error {
	switch {
	case i.all && len(i.namespaces) > 0:
		return fmt.Errorf("--all-namespaces and --namespace exclude each other")
	case i.split != "none" && i.split != "namespace":
		return fmt.Errorf("--split is %q: it must be none or namespace", i.split)
	case i.secretValues != "split" && i.secretValues != "inline":
		return fmt.Errorf("--secret-values is %q: it must be split or inline", i.secretValues)
	case i.version == "":
		return fmt.Errorf("--layer-version is empty: every layer has a version")
	case i.path != "" && (!strings.HasPrefix(i.path, "./") || slices.Contains(strings.Split(i.path, "/"), "..")):
		return fmt.Errorf("--path is %q: it must begin with ./ and stay inside of the source", i.path)
	}
	if _, err := labels.Parse(i.selector); err != nil {
		return fmt.Errorf("--selector cannot be read: %w", err)
	}
	if i.secretsInto == "" {
		return nil
	}
	into, err := filepath.Abs(i.into)
	if err != nil {
		return fmt.Errorf("--into cannot be used: %w", err)
	}
	secrets, err := filepath.Abs(i.secretsInto)
	if err != nil {
		return fmt.Errorf("--secrets-into cannot be used: %w", err)
	}
	if below(into, secrets) || below(secrets, into) {
		return fmt.Errorf("--secrets-into is %s, which is not apart from --into: choose a folder outside of git", i.secretsInto)
	}
	return nil
}

// below tells whether a path is a folder, or below it.
func below(folder, place string) bool {
	relative, err := filepath.Rel(folder, place)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
}

func (i *helmImport) options() (adoption.Options, error) {
	o := adoption.Options{Layer: i.layer, ByNamespace: i.split == "namespace", Version: i.version, InlineSecrets: i.secretValues == "inline", Path: i.path}
	if o.Layer == "" && !o.ByNamespace {
		o.Layer = "imported"
	}
	namespace, name, found := strings.Cut(i.source, "/")
	if !found {
		namespace, name = "", i.source
	}
	if name == "" || strings.Contains(name, "/") {
		return o, fmt.Errorf("--source is %q: it must be NAME or NAMESPACE/NAME", i.source)
	}
	o.SourceNamespace, o.Source = namespace, name
	if o.Path == "" {
		absolute, err := filepath.Abs(i.into)
		if err != nil {
			return o, fmt.Errorf("--into cannot be used: %w", err)
		}
		o.Path = "./" + filepath.Base(absolute)
	}
	return o, nil
}

func (i *helmImport) run(ctx context.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	options, err := i.options()
	if err != nil {
		return err
	}
	given, err := givenRepositories(i.repositories, i.helmRepositories)
	if err != nil {
		return err
	}
	if err := i.connect(); err != nil {
		return err
	}
	seen, err := i.Cluster.ReadIn(ctx, metav1.NamespaceAll, snapshot.Layers, snapshot.Releases, snapshot.HelmRepositories)
	if err != nil {
		return err
	}
	if err := seen.Unread[snapshot.Releases]; apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not list HelmReleases, so it cannot be known which releases Flux has already: %w", err)
	}
	i.WarnUnread(seen, "they are not looked at")
	candidates, err := i.candidates(ctx, seen, newMarket(seen.Of(snapshot.HelmRepositories), given))
	if err != nil {
		return err
	}
	what := adoption.Import{Options: options, Candidates: candidates, Live: i.loose(seen), Skipped: i.skipped}
	result, err := what.Write()
	if err != nil {
		return err
	}
	if err := i.verify(ctx, result, candidates, seen); err != nil {
		return err
	}
	return i.finish(result)
}

func (i *helmImport) connect() error {
	config, err := i.Cluster.Config()
	if err != nil {
		return err
	}
	if i.client, err = i.Cluster.Dynamic(); err != nil {
		return err
	}
	if i.metadata, err = metadata.NewForConfig(config); err != nil {
		return fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	return nil
}

// verify reads what would be written as the controller does, and asks its rules
// what would become of it.
func (i *helmImport) verify(ctx context.Context, result adoption.Result, candidates []adoption.Candidate, seen *snapshot.Snapshot) error {
	for _, name := range result.Layers {
		if seen.Layer(name) != nil {
			return fmt.Errorf("there is a layer %s already: choose another name with --layer", name)
		}
	}
	directories, err := readBack(ctx, result.Layers, result.Files)
	if err != nil {
		return err
	}
	if lost := result.Verify(directories, candidates); len(lost) > 0 {
		return fmt.Errorf("what would be written does not stand for %s; nothing was written", strings.Join(lost, ", "))
	}
	world := adoption.World{
		Now: i.Now(), Layers: slices.Clone(seen.Layers), Directories: directories, Scopes: adoption.FluxScopes(),
		Live: liveOf(seen.Of(snapshot.Releases), seen.Of(snapshot.HelmRepositories)),
	}
	for _, name := range result.Layers {
		layer := &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
		layer.Spec.Version, layer.Spec.Source = i.version, v1alpha1.SourceSpec{Name: "imported", Path: "./" + name}
		world.Layers = append(world.Layers, layer)
	}
	i.toDos = append(i.toDos, world.Conflicts(result.Layers)...)
	return nil
}

// helmReport is what --output prints.
type helmReport struct {
	Into     string          `json:"into"`
	DryRun   bool            `json:"dryRun"`
	Layers   []string        `json:"layers"`
	Releases []adoption.Item `json:"releases"`
	Files    []string        `json:"files"`
	Secrets  []string        `json:"secrets"`
	ToDo     []string        `json:"toDo"`
}

// finish writes the files, and says what was done.
func (i *helmImport) finish(result adoption.Result) error {
	if i.secretsInto != "" {
		if _, err := (folder{path: i.secretsInto, force: i.force, dryRun: i.dryRun, mode: 0o600}).write(result.Secrets); err != nil {
			return err
		}
	}
	written, err := (folder{path: i.into, force: i.force, dryRun: i.dryRun, mode: 0o640}).write(result.Files)
	if err != nil {
		return err
	}
	i.addToDos(result)
	if i.output != "" {
		err = i.PrintAs(i.output, i.report(result))
	} else {
		err = i.print(result, written)
	}
	if err == nil && len(i.toDos) > 0 {
		return console.ErrDiffers
	}
	return err
}

func (i *helmImport) addToDos(result adoption.Result) {
	for _, item := range result.Items {
		if item.Action == adoption.ActionIncomplete {
			i.toDos = append(
				i.toDos,
				fmt.Sprintf(
					"complete %s: name the repository of %s %s, or run this again with --repository NAME=URL",
					path.Join(i.into, item.Into),
					item.Chart,
					item.Version,
				),
			)
		}
	}
	for _, item := range result.Items {
		if len(item.DelicateValues) > 0 {
			i.toDos = append(
				i.toDos,
				fmt.Sprintf(
					"look at %s of %s/%s: Flux gives the chart a float, which a template may write as 1e+06; where it does, write the number as a string",
					strings.Join(item.DelicateValues, ", "),
					item.Namespace,
					item.Name,
				),
			)
		}
	}
	if i.secretsInto == "" {
		for _, item := range result.Items {
			if len(item.SecretValues) > 0 {
				i.toDos = append(
					i.toDos,
					fmt.Sprintf(
						"make the Secret of %s/%s, with %s: run this again with --secrets-into DIR, and apply what that holds",
						item.Namespace,
						item.Name,
						strings.Join(item.SecretValues, ", "),
					),
				)
			}
		}
	}
}

func (i *helmImport) report(result adoption.Result) helmReport {
	report := helmReport{
		Into: i.into, DryRun: i.dryRun, Layers: append([]string{}, result.Layers...), Releases: append([]adoption.Item{}, result.Items...),
		Files: []string{}, Secrets: []string{}, ToDo: append([]string{}, i.toDos...),
	}
	for _, file := range result.Files {
		report.Files = append(report.Files, file.Path)
	}
	for _, file := range result.Secrets {
		report.Secrets = append(report.Secrets, file.Path)
	}
	slices.Sort(report.Files)
	slices.Sort(report.Secrets)
	return report
}

func (i *helmImport) print(result adoption.Result, written int) error {
	if len(result.Items) == 0 {
		console.Say(i.Out, "No releases found.")
		i.ToDo(i.toDos)
		return nil
	}
	columns := []terminal.Column{
		{Name: "RELEASE"},
		{Name: "CHART", Expendable: 2},
		{Name: "VERSION", Expendable: 3},
		{Name: "DO", Role: roleOfAction},
		{Name: "INTO", Expendable: 1},
		{Name: "NOTE"},
	}
	rows := make([][]string, 0, len(result.Items))
	adopted := 0
	for _, item := range result.Items {
		rows = append(rows, []string{item.Namespace + "/" + item.Name, item.Chart, item.Version, item.Action, item.Into, item.Note})
		if item.Action == adoption.ActionAdopt {
			adopted++
		}
	}
	if err := i.Screen.Table(i.Out, columns, rows); err != nil {
		return err
	}
	console.Say(i.Out, "")
	i.Tell("%d of %d releases would be adopted. Nothing would be installed again.", adopted, len(result.Items))
	switch {
	case i.dryRun:
		return i.printFiles(result)
	case written == 0:
		i.Tell("%s holds all of it already.", i.into)
	default:
		i.Tell("%d files are written to %s.", written, i.into)
	}
	if i.secretsInto != "" && len(result.Secrets) > 0 {
		i.Tell("Apply the Secrets before the layers: kubectl apply --recursive -f %s", i.secretsInto)
	}
	if len(result.Layers) > 0 {
		i.Tell("Commit the folder, then: kubectl apply -f %s", path.Join(i.into, adoption.LayersFile))
	}
	i.ToDo(i.toDos)
	return nil
}

// printFiles prints what would be written; secret values are not shown.
func (i *helmImport) printFiles(result adoption.Result) error {
	files := slices.Clone(result.Files)
	slices.SortFunc(files, func(a, b adoption.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, file := range files {
		console.Say(i.Out, "")
		console.Say(i.Out, "# %s", path.Join(i.into, file.Path))
		for line := range strings.Lines(string(file.Data)) {
			console.Say(i.Out, "%s", visible(strings.TrimSuffix(line, "\n")))
		}
	}
	i.ToDo(i.toDos)
	return nil
}

// visible returns a line of a file without what would move the cursor of a terminal.
func visible(line string) string {
	var escaped strings.Builder
	_ = printers.WriteEscaped(&escaped, line) // a Builder takes everything
	return escaped.String()
}

func roleOfAction(action string) terminal.Role {
	switch action {
	case adoption.ActionAdopt:
		return terminal.Good
	case adoption.ActionSkip:
		return terminal.Dim
	case adoption.ActionReinstall, adoption.ActionPrune:
		return terminal.Bad
	}
	return terminal.Warning
}
