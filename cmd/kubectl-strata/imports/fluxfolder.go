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
		return i.list(found)
	case len(found.Clusters) == 0:
		return i.write(ctx, names, &gather.Kustomizations{Problems: found.Problems}, nil)
	default:
		return i.writeCluster(ctx, names, found, &found.Clusters[0])
	}
}

func (i *fluxImport) writeCluster(ctx context.Context, names []string, found *gather.FluxRepository, cluster *gather.FluxCluster) error {
	return i.write(ctx, names, cluster.Has, func(ctx context.Context, all []kustomizations.Conversion) (gather.Proof, error) {
		return found.Prove(ctx, cluster, all)
	})
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
	i.Tell("The repository has %d clusters, and nothing was written. Choose one by --cluster NAME, or have each in a folder of its own by --all.", len(rows))
	return console.ErrDiffers
}

// tellProof tells what all layers hold together.
func (i *fluxImport) tellProof() {
	proof := i.report.Proof
	if proof == nil || proof.Layers == 0 {
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
