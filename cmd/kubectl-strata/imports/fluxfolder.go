// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/kustomizations"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/terminal"
)

// runFolder makes layers of what a repository has Flux apply: on its only cluster, on the
// one that is chosen, or on each.
func (i *fluxImport) runFolder(ctx context.Context, names []string) error {
	opened, err := repository.OpenFolder(i.fromDir)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // nothing was written that could be lost
	options := gather.FluxOptions{Below: i.below, Path: i.path, Sources: map[string]*repository.Repository{}}
	defer func() {
		for _, other := range options.Sources {
			_ = other.Close() // as above
		}
	}()
	for name, folder := range i.others {
		if options.Sources[name], err = repository.OpenFolder(folder); err != nil {
			delete(options.Sources, name)
			return fmt.Errorf("--source %s: %w", name, err)
		}
	}
	found, err := gather.OpenFlux(ctx, opened, options)
	if err != nil {
		return err
	}
	defer found.Close()
	for _, w := range found.Unreached {
		namespace := cmp.Or(w.Object.GetNamespace(), kustomizations.DefaultNamespace)
		i.report.Unreached = append(i.report.Unreached, fluxUnreached{Name: namespace + "/" + w.Object.GetName(), File: w.File})
	}
	switch {
	case i.cluster != "":
		return i.writeChosen(ctx, names, found)
	case len(found.Clusters) > 1 && i.all:
		return i.writeAll(ctx, names, found)
	case len(found.Clusters) > 1:
		return i.choose(ctx, names, found)
	case len(found.Clusters) == 0:
		has := &gather.Kustomizations{Problems: found.Problems}
		if err := i.compareWith(ctx, has); err != nil {
			return err
		}
		return i.write(ctx, names, has, nil)
	default:
		return i.writeCluster(ctx, names, found, &found.Clusters[0])
	}
}

func (i *fluxImport) writeCluster(ctx context.Context, names []string, found *gather.FluxRepository, cluster *gather.FluxCluster) error {
	if err := i.compareWith(ctx, cluster.Has); err != nil {
		return err
	}
	return i.write(ctx, names, cluster.Has, func(ctx context.Context, all []kustomizations.Conversion) (gather.Proof, error) {
		return found.Prove(ctx, cluster, all)
	})
}

// compareWith notes the differences between the folder and the cluster.
func (i *fluxImport) compareWith(ctx context.Context, found *gather.Kustomizations) error {
	if !i.compare {
		return nil
	}
	live, err := i.Cluster.Kustomizations(ctx)
	if err != nil {
		return err
	}
	compared := kustomizations.Compare(found.Found, live.Found, live.Handed)
	i.report.Compared = &fluxCompared{Same: compared.Same, Differences: []fluxDifference{}}
	for _, d := range compared.Differences {
		i.report.Compared.Differences = append(i.report.Compared.Differences,
			fluxDifference{Name: d.Of.String(), Only: d.Only, File: d.File, Fields: d.Fields})
	}
	return nil
}

// choose lists the clusters, and at a terminal prompts for one.
func (i *fluxImport) choose(ctx context.Context, names []string, found *gather.FluxRepository) error {
	err := i.list(found)
	if i.output != "" || i.Answers == nil || err != nil && !errors.Is(err, console.ErrDiffers) {
		return err
	}
	answer, asked := i.Ask("Which cluster? (nothing ends it)")
	if asked != nil {
		return asked
	}
	if answer == "" {
		return err
	}
	i.cluster = answer
	return i.writeChosen(ctx, names, found)
}

// writeChosen writes the layers of one cluster, by its name or its folder.
func (i *fluxImport) writeChosen(ctx context.Context, names []string, found *gather.FluxRepository) error {
	known := make([]string, 0, len(found.Clusters))
	for at := range found.Clusters {
		cluster := &found.Clusters[at]
		if cluster.Name == i.cluster || cluster.Folder == filepath.ToSlash(filepath.Clean(i.cluster)) {
			i.report.Cluster = cluster.Name
			return i.writeCluster(ctx, names, found, cluster)
		}
		known = append(known, cluster.Name)
	}
	return fmt.Errorf("the repository has no cluster %s: it has %s", i.cluster, cmp.Or(strings.Join(known, ", "), "none"))
}

// writeAll writes the layers of each cluster into a folder of its own.
func (i *fluxImport) writeAll(ctx context.Context, names []string, found *gather.FluxRepository) error {
	if i.into == "-" || i.output != "" {
		return errors.New("--all writes a folder for each cluster: choose one by --cluster to print it")
	}
	into, unreached := i.into, i.report.Unreached
	differs := false
	for at := range found.Clusters {
		cluster := &found.Clusters[at]
		i.into = filepath.Join(into, filepath.FromSlash(cluster.Name))
		i.report = fluxReport{Cluster: cluster.Name}
		if at == len(found.Clusters)-1 {
			i.report.Unreached = unreached
		}
		if at > 0 {
			console.Say(i.Out, "")
		}
		err := i.writeCluster(ctx, names, found, cluster)
		if err != nil && !errors.Is(err, console.ErrDiffers) {
			return fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
		differs = differs || err != nil
	}
	if differs {
		return console.ErrDiffers
	}
	return nil
}

// list prints the clusters of the repository. The user chooses one of them.
func (i *fluxImport) list(found *gather.FluxRepository) error {
	listed := fluxClusters{}
	rows := make([][]string, 0, len(found.Clusters))
	for _, cluster := range found.Clusters {
		var files []string
		for _, root := range cluster.Roots {
			if !slices.Contains(files, root.File) {
				files = append(files, root.File)
			}
		}
		listed.Clusters = append(listed.Clusters, fluxCluster{Name: cluster.Name, Roots: files, Kustomizations: len(cluster.Has.Found)})
		rows = append(rows, []string{cluster.Name, strconv.Itoa(len(cluster.Has.Found)), strings.Join(files, ", ")})
	}
	if i.output != "" {
		if err := i.PrintAs(i.output, listed); err != nil {
			return err
		}
		return console.ErrDiffers
	}
	columns := []terminal.Column{{Name: "CLUSTER"}, {Name: "KUSTOMIZATIONS"}, {Name: "ROOTS", Expendable: 1}}
	if err := i.Screen.Table(i.Out, columns, rows); err != nil {
		return err
	}
	console.Say(i.Out, "")
	if i.Answers == nil {
		i.Tell("The repository has %d clusters, and nothing was written. Choose one by --cluster NAME, or have each in a folder of its own by --all.", len(rows))
	}
	return console.ErrDiffers
}

// tellProof tells what all layers hold together.
func (i *fluxImport) tellProof() {
	proof := i.report.Proof
	if proof == nil {
		return
	}
	if len(proof.Problems) == 0 && proof.Objects > 0 {
		i.Tell("%s in %s: each object is of one layer, and none is a Kustomization that has a layer of its own.",
			counted(proof.Objects, "object"), counted(proof.Layers, "layer"))
	}
	if proof.Elsewhere > 0 {
		i.Tell("%s of other sources, or cannot be built: what they hold is not known here. --source NAME=FOLDER gives the files of a source.",
			areLayers(proof.Elsewhere))
	}
}

func areLayers(n int) string {
	if n == 1 {
		return "1 layer is"
	}
	return fmt.Sprintf("%d layers are", n)
}

// lines says what the cluster has in another way, for people; nothing where it was not asked.
func (c *fluxCompared) lines() []string {
	if c == nil {
		return nil
	}
	var lines []string
	for _, d := range c.Differences {
		switch d.Only {
		case kustomizations.InRepository:
			lines = append(lines, fmt.Sprintf("Kustomization %s is in %s, and not on the cluster", d.Name, cmp.Or(d.File, "the repository")))
		case kustomizations.OnCluster:
			lines = append(lines, fmt.Sprintf("Kustomization %s is on the cluster, and was not found in the repository", d.Name))
		default:
			lines = append(lines, fmt.Sprintf("Kustomization %s has another %s on the cluster", d.Name, strings.Join(d.Fields, ", ")))
		}
	}
	return lines
}

// tellCompared tells what the cluster has in another way.
func (i *fluxImport) tellCompared() {
	compared := i.report.Compared
	if compared == nil {
		return
	}
	lines := compared.lines()
	if len(lines) == 0 {
		i.Tell("The cluster has the same %s.", counted(compared.Same, "Kustomization"))
		return
	}
	i.Tell("The cluster has %s in the same way, and %d in another:", counted(compared.Same, "Kustomization"), len(lines))
	for _, line := range lines {
		i.Tell("  %s", line)
	}
}

// tellUnreached lists Kustomizations that nothing applies.
func (i *fluxImport) tellUnreached() {
	if len(i.report.Unreached) == 0 {
		return
	}
	i.Tell("No layer is made of %s in files, which nothing applies:", counted(len(i.report.Unreached), "Kustomization"))
	for _, one := range i.report.Unreached {
		i.Tell("  %s in %s", one.Name, one.File)
	}
}
