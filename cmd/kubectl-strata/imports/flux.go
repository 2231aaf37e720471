// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/terminal"
)

const importFluxLong = `Make an AddonsLayer of every Kustomization of Flux, from the cluster that kubectl points
at or, with --from-dir, from a repository alone. Nothing in the cluster is changed, and
no file of the repository.

A layer takes what a Kustomization says, in the same words, so that no file in its
directory has to change. A Kustomization that others are applied by becomes a layer that
they depend on, unless it waits for them; one that applies nothing but others needs no
layer. What cannot be converted is named, field by field.

A Kustomization without an account becomes a layer with the account that
kustomize-controller's --default-service-account names, as which it is applied now. Where
that cannot be seen on the cluster, it is refused until the flag of the same name says it.

With --take-over the Kustomizations that are named are handed over in place, once --yes
is given, too: each is suspended, its objects become those of a layer, and it is deleted
when the layer is deployed. Nothing is installed, restarted or changed but labels, owners
of fields, and who keeps the objects as git says. It may be ended at any step: the same
command goes on, and --undo gives everything back.

A repository is read from its roots: what flux bootstrap has written, the sync of each
FluxInstance, and otherwise the Kustomizations that nothing in it applies. Each is built
as Flux builds it, and what is reached so becomes layers. What no root reaches is listed.
Where there are several clusters, they are listed, and --cluster chooses one, or an answer
at a terminal; --all writes each into a folder of its own. With --compare the cluster that
kubectl points at is read, too, and what it has in another way is listed.

The layers are written under the names of the files that the Kustomizations stand in,
with their comments and in their order. All layers are built, too, to show that each
object has one owner. It exits with 0 where everything was converted, and with 2 where
something has to be seen to.`

const importFluxExamples = `  # Every Kustomization of the cluster
  kubectl strata import flux

  # Those of a repository, without a cluster, to be looked at
  kubectl strata import flux --from-dir ~/src/platform --into -

  # Those of one cluster of several
  kubectl strata import flux --from-dir ~/src/platform --cluster production

  # Those of a repository, compared with what the cluster has
  kubectl strata import flux --from-dir ~/src/platform --compare

  # Hand two Kustomizations over, and back
  kubectl strata import flux --take-over infrastructure apps --yes
  kubectl strata import flux --undo infrastructure apps --yes

  # Two of them
  kubectl strata import flux apps/shop monitoring --into ./layers`

// fluxImport is one run of import flux.
type fluxImport struct {
	*console.Console
	into, output, fromDir string
	below                 []string
	// path, cluster, all and others say where in a repository Flux begins.
	path, cluster        string
	all, compare         bool
	others               map[string]string
	sopsSecret           string
	force, dryRun        bool
	takesOver, undo, yes bool
	timeout              time.Duration
	// account is what --default-service-account says, which counts where it is given.
	account      string
	accountGiven bool

	report fluxReport
}

// fluxReport is what --output prints.
type fluxReport struct {
	// Cluster of the repository; empty where there is one alone.
	Cluster        string              `json:"cluster,omitempty"`
	Into           string              `json:"into"`
	DryRun         bool                `json:"dryRun"`
	Kustomizations []fluxKustomization `json:"kustomizations"`
	// WithoutAccount lists layers that have the rights of Strata's controller.
	WithoutAccount []string `json:"withoutAccount"`
	// Unreached lists Kustomizations of files that nothing applies.
	Unreached []fluxUnreached `json:"unreached,omitempty"`
	// Proof counts what the layers hold; nil on a cluster.
	Proof *gather.Proof `json:"proof,omitempty"`
	// Compared has the differences between the folder and the cluster; nil without --compare.
	Compared *fluxCompared `json:"compared,omitempty"`
	ToDo     []string      `json:"toDo"`
}

// fluxCompared is what a cluster has of the Kustomizations of a repository.
type fluxCompared struct {
	Same        int              `json:"same"`
	Differences []fluxDifference `json:"differences"`
}

// fluxDifference is a Kustomization that a repository and a cluster do not have alike.
type fluxDifference struct {
	Name string `json:"name"`
	// Only is repository or cluster; empty where both have it.
	Only string `json:"only,omitempty"`
	File string `json:"file,omitempty"`
	// Fields below spec that differ.
	Fields []string `json:"fields,omitempty"`
}

// fluxUnreached is a Kustomization of a file that nothing applies.
type fluxUnreached struct {
	Name string `json:"name"`
	File string `json:"file"`
}

// fluxClusters is what --output prints where one is to be chosen.
type fluxClusters struct {
	Clusters []fluxCluster `json:"clusters"`
}

// fluxCluster is one cluster of a repository.
type fluxCluster struct {
	Name string `json:"name"`
	// Roots are the files that say what Flux begins with.
	Roots          []string `json:"roots"`
	Kustomizations int      `json:"kustomizations"`
}

// fluxKustomization is what is said of one Kustomization.
type fluxKustomization struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// From is the file that it stands in; empty on a cluster.
	From string `json:"from,omitempty"`
	// Layer that it becomes, and the file that this was written to; empty for none.
	Layer    string   `json:"layer,omitempty"`
	File     string   `json:"file,omitempty"`
	Notes    []string `json:"notes"`
	Problems []string `json:"problems"`
}

func newFlux(c *console.Console) *cobra.Command {
	i := &fluxImport{Console: c}
	command := &cobra.Command{
		Use: "flux [[NAMESPACE/]NAME...]", Short: "Make layers of Flux's Kustomizations", Long: importFluxLong, Example: importFluxExamples,
		RunE: func(command *cobra.Command, names []string) error {
			i.accountGiven = command.Flags().Changed(kustomizations.AccountFlag)
			switch {
			case i.undo:
				return i.giveBack(command.Context(), names)
			case i.takesOver:
				return i.takeOver(command.Context(), names)
			default:
				return i.run(command.Context(), names)
			}
		},
	}
	flags := command.Flags()
	flags.BoolVar(&i.takesOver, "take-over", false, "hand Kustomizations of the cluster over to layers, in place")
	flags.BoolVar(&i.undo, "undo", false, "give back to Kustomizations what --take-over has handed over")
	flags.BoolVar(&i.yes, "yes", false, "with --take-over and --undo, do what they say")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "with --take-over and --undo, how long each step is waited for")
	flags.StringVar(&i.into, "into", "./layers", "the folder that layers are written to; - for standard output")
	flags.StringVar(&i.fromDir, "from-dir", "", "the folder that holds the repository, instead of a cluster")
	flags.StringSliceVar(&i.below, "below", nil, "with --from-dir, a folder of it that Flux begins in; may be given several times")
	flags.StringVar(&i.path, "path", "", "with --from-dir, the folder of it that Flux applies, as flux bootstrap --path has it, where no file says it")
	flags.StringVar(&i.cluster, "cluster", "", "with --from-dir, the cluster, where the repository has several")
	flags.BoolVar(&i.all, "all", false, "with --from-dir, write each cluster of the repository into a folder of its own")
	flags.BoolVar(&i.compare, "compare", false, "with --from-dir, list what the cluster that kubectl points at has in another way")
	flags.StringToStringVar(&i.others, "source", nil,
		"with --from-dir, the folder that another source has its files in, as [NAMESPACE/]NAME=FOLDER; may be given several times")
	flags.StringVar(&i.sopsSecret, "sops-secret", "", "the Secret with keys for decryption that names none, in the namespace of each Kustomization")
	flags.StringVar(&i.account, kustomizations.AccountFlag, "",
		"the flag of kustomize-controller of that name, where it cannot be seen: the account of Kustomizations that name none; empty where it has no such flag")
	flags.BoolVar(&i.force, "force", false, "overwrite files that hold something else")
	flags.BoolVar(&i.dryRun, "dry-run", false, "write nothing")
	console.OutputFlag(command, &i.output, "json", "yaml")
	command.MarkFlagsMutuallyExclusive("take-over", "undo", "from-dir")
	command.MarkFlagsMutuallyExclusive("cluster", "all")
	command.MarkFlagsMutuallyExclusive("compare", "all")
	return command
}

func (i *fluxImport) run(ctx context.Context, names []string) error {
	switch {
	case i.into == "-" && i.output != "":
		return fmt.Errorf("--into - prints the layers, and -o %s the report: choose one", i.output)
	case i.fromDir != "":
		return i.runFolder(ctx, names)
	case len(i.below) > 0 || i.path != "" || i.cluster != "" || i.all || i.compare || len(i.others) > 0:
		return errors.New("--below, --path, --cluster, --all, --compare and --source are for a repository: give that with --from-dir")
	}
	found, err := i.Cluster.Kustomizations(ctx)
	if err != nil {
		return err
	}
	return i.write(ctx, names, found, nil)
}

// write makes layers of Kustomizations and writes their files. prove checks all layers together;
// it is nil on a cluster.
func (i *fluxImport) write(ctx context.Context, names []string, found *gather.Kustomizations,
	prove func(context.Context, []kustomizations.Conversion) (gather.Proof, error),
) error {
	chosen, err := chooseKustomizations(i.conversions(found), names)
	if err != nil {
		return err
	}
	i.report = fluxReport{
		Cluster: i.report.Cluster, Unreached: i.report.Unreached, Compared: i.report.Compared, Into: i.into, DryRun: i.dryRun,
		Kustomizations: []fluxKustomization{}, WithoutAccount: []string{}, ToDo: append([]string{}, found.Problems...),
	}
	files, err := i.convert(chosen, found)
	if err != nil {
		return err
	}
	if prove != nil && len(chosen) > 0 {
		proof, err := prove(ctx, chosen)
		if err != nil {
			return err
		}
		i.report.Proof = &proof
		i.report.ToDo = append(i.report.ToDo, proof.Problems...)
	}
	if i.into == "-" {
		return i.finishPrinting(files)
	}
	written, err := (folder{path: i.into, force: i.force, dryRun: i.dryRun, mode: 0o640}).write(files)
	if err != nil {
		return err
	}
	return i.finish(written)
}

// conversions makes layers of what was found.
func (i *fluxImport) conversions(found *gather.Kustomizations) []kustomizations.Conversion {
	account := found.Account
	if i.accountGiven {
		account = kustomizations.DefaultAccountOf([]string{i.account})
	}
	return kustomizations.Convert(found.Found, kustomizations.Options{
		Handed: found.Handed, Account: account, SopsSecret: i.sopsSecret, Reserved: accounts.OfFlux,
	})
}

// chooseKustomizations returns those of some names, or all.
func chooseKustomizations(all []kustomizations.Conversion, names []string) ([]kustomizations.Conversion, error) {
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	for _, c := range all {
		known = append(known, c.Of.Name, c.Of.String())
	}
	var chosen []kustomizations.Conversion
	for _, name := range names {
		before := len(chosen)
		for _, c := range all {
			if c.Of.String() == name || c.Of.Name == name {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) == before {
			return nil, console.NoSuch(snapshot.Kustomizations, name, known)
		}
	}
	return chosen, nil
}

// convert adds each Kustomization to the report, and returns the files of their layers.
func (i *fluxImport) convert(all []kustomizations.Conversion, found *gather.Kustomizations) ([]adoption.File, error) {
	texts := map[string]*bytes.Buffer{}
	var names []string
	add := func(file string, text []byte) {
		if texts[file] == nil {
			texts[file] = &bytes.Buffer{}
			names = append(names, file)
		} else {
			texts[file].WriteString("---\n")
		}
		texts[file].Write(text)
	}
	clusters := map[string]bool{}
	for _, c := range inFiles(all) {
		said := fluxKustomization{
			Namespace: c.Of.Namespace, Name: c.Of.Name, From: c.File,
			Notes: append([]string{}, c.Notes...), Problems: append([]string{}, c.Problems...),
		}
		if c.Layer != nil {
			if c.Layer.Spec.ServiceAccountName == "" {
				i.report.WithoutAccount = append(i.report.WithoutAccount, c.Layer.Name)
			}
			said.Layer, said.File = c.Layer.Name, cmp.Or(c.File, c.Layer.Name+".yaml")
			if c.Cluster != nil && !clusters[c.Cluster.Namespace+"/"+c.Cluster.Name] {
				clusters[c.Cluster.Namespace+"/"+c.Cluster.Name] = true
				text, err := manifestText(c.Cluster, nil)
				if err != nil {
					return nil, err
				}
				add("clusters.yaml", text)
			}
			text, err := manifestText(c.Layer, found.Texts[c.Of])
			if err != nil {
				return nil, err
			}
			add(said.File, text)
		}
		i.report.Kustomizations = append(i.report.Kustomizations, said)
	}
	i.report.ToDo = append(i.report.ToDo, problemsOf(all)...)
	files := make([]adoption.File, 0, len(names))
	for _, name := range slices.Sorted(slices.Values(names)) {
		files = append(files, adoption.File{Path: name, Data: texts[name].Bytes()})
	}
	return files, nil
}

// maxNamed is how many Kustomizations are named that have the same problem.
const maxNamed = 3

// problemsOf says what has to be seen to. What is the same for several Kustomizations is
// said once, with their number.
func problemsOf(all []kustomizations.Conversion) []string {
	var texts []string
	of := map[string][]string{}
	for _, c := range inFiles(all) {
		for _, problem := range c.Problems {
			if of[problem] == nil {
				texts = append(texts, problem)
			}
			of[problem] = append(of[problem], c.Of.String())
		}
	}
	said := make([]string, 0, len(texts))
	for _, text := range texts {
		names := of[text]
		if len(names) == 1 {
			said = append(said, fmt.Sprintf("Kustomization %s: %s", names[0], text))
			continue
		}
		named := strings.Join(names[:min(len(names), maxNamed)], ", ")
		if more := len(names) - maxNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		said = append(said, fmt.Sprintf("%s (%s): %s", counted(len(names), "Kustomization"), named, text))
	}
	return said
}

// inFiles orders conversions by their files; those of one file stay as they are.
func inFiles(all []kustomizations.Conversion) []kustomizations.Conversion {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b kustomizations.Conversion) int { return strings.Compare(a.File, b.File) })
	return sorted
}

func manifestText(of runtime.Object, from []byte) ([]byte, error) {
	object, err := kustomizations.Manifest(of)
	if err != nil {
		return nil, err
	}
	return kustomizations.Text(&unstructured.Unstructured{Object: object.Object}, from)
}

// finishPrinting prints layers, and what is to be done where nobody pipes it on.
func (i *fluxImport) finishPrinting(files []adoption.File) error {
	for at, file := range files {
		if at > 0 {
			console.Say(i.Out, "---")
		}
		console.Say(i.Out, "%s", strings.TrimSuffix(string(file.Data), "\n"))
	}
	for _, line := range i.report.ToDo {
		fmt.Fprintf(i.ErrOut, "kubectl strata: to do: %s\n", line)
	}
	for _, line := range i.report.Compared.lines() {
		fmt.Fprintf(i.ErrOut, "kubectl strata: %s\n", line)
	}
	return i.outcome()
}

// outcome is the error of a run that has something to be seen to.
func (i *fluxImport) outcome() error {
	if len(i.report.ToDo) > 0 || i.report.Compared != nil && len(i.report.Compared.Differences) > 0 {
		return console.ErrDiffers
	}
	return nil
}

func (i *fluxImport) finish(written int) error {
	var err error
	if i.output != "" {
		err = i.PrintAs(i.output, i.report)
	} else {
		err = i.print(written)
	}
	if err != nil {
		return err
	}
	return i.outcome()
}

func (i *fluxImport) print(written int) error {
	if len(i.report.Kustomizations) == 0 {
		console.Say(i.Out, "No Kustomizations found.")
		i.tellUnreached()
		i.tellCompared()
		i.ToDo(i.report.ToDo)
		return nil
	}
	layers := 0
	rows := make([][]string, 0, len(i.report.Kustomizations))
	for _, k := range i.report.Kustomizations {
		if k.Layer != "" {
			layers++
		}
		rows = append(rows, []string{k.Namespace + "/" + k.Name, cmp.Or(k.Layer, "-"), cmp.Or(k.File, "-"), outcome(k)})
	}
	columns := []terminal.Column{{Name: "KUSTOMIZATION"}, {Name: "LAYER"}, {Name: "FILE", Expendable: 1}, {Name: "NOTE"}}
	if err := i.Screen.Table(i.Out, columns, rows); err != nil {
		return err
	}
	console.Say(i.Out, "")
	i.Tell("%s of %s.", counted(layers, "layer"), counted(len(i.report.Kustomizations), "Kustomization"))
	if n := len(i.report.WithoutAccount); n > 0 {
		i.Tell("%s no serviceAccountName, and so the rights of Strata's controller, which has those for the kinds that its chart lists (rbac.kinds), "+
			"and not those of kustomize-controller.", has(n))
		if i.fromDir != "" && !i.accountGiven {
			i.Tell("Where kustomize-controller has --%[1]s, name its value by --%[1]s: the layers get that account.", kustomizations.AccountFlag)
		}
	}
	i.tellProof()
	i.tellUnreached()
	i.tellCompared()
	switch {
	case i.dryRun:
	case written == 0:
		i.Tell("%s holds all layers already.", i.into)
	default:
		i.Tell("%s written to %s. Nothing runs them yet: docs/migrate-from-flux.md says how they take over.", counted(written, "file"), i.into)
	}
	i.ToDo(i.report.ToDo)
	return nil
}

func has(n int) string {
	if n == 1 {
		return "1 layer has"
	}
	return fmt.Sprintf("%d layers have", n)
}

// outcome says in a line what became of a Kustomization.
func outcome(k fluxKustomization) string {
	switch {
	case len(k.Problems) == 1:
		return "1 field is to be seen to"
	case len(k.Problems) > 1:
		return fmt.Sprintf("%d fields are to be seen to", len(k.Problems))
	case len(k.Notes) > 0:
		return strings.TrimPrefix(k.Notes[0], "spec.")
	default:
		return "converted"
	}
}
