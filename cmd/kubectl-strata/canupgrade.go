// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	"github.com/strata-project/strata/cmd/kubectl-strata/printing"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/upgrade"
	"github.com/strata-project/strata/internal/placement"
)

const canUpgradeLong = `Say whether layers are ready for another version of Kubernetes, and why not.

A layer says no where the version is not within the range of its
prereqs.k8sVersion, of its ApplicationBundle or of a HelmApplication in it;
and for each of its HelmReleases where the chart refuses the version, where
it renders objects at API versions that are not served there, or where the
release is deployed with such: Helm cannot upgrade it then any more. The
charts are rendered at the versions that are deployed, with the values that
are in the cluster, but for those of Secrets, in the place of which charts see
what stands in for them, unless --show-secrets is given. They are fetched from
where the releases have them from, and kept in the cache folder of the user.

A layer is unknown where a chart cannot be rendered: its repository is away,
it is a folder of a Git repository or a bucket, or its values may not be
read. Values in Secrets need the right to get them.

Which API versions are removed is what the types of Kubernetes 1.36 say, with
the removals that were announced then for later versions. Not looked at are
objects that layers have without Helm, releases that Flux Kustomizations
make, and what runs in the cluster beside the layers.

Exit codes:
  0  all layers are ready
  1  it cannot be said
  2  a layer is not ready, or that is not known`

const canUpgradeExamples = `  # All layers
  kubectl strata can-upgrade --k8s 1.37

  # Two of them, for other programs
  kubectl strata can-upgrade --k8s 1.37 base monitoring -o json

  # Those of one cluster
  kubectl strata can-upgrade --k8s 1.37 --cluster fleet/prod`

// canUpgradeCommands returns the command that looks at another version of Kubernetes.
func canUpgradeCommands(t *tool) []*cobra.Command {
	var to, cluster, output string
	var o chartOptions
	command := &cobra.Command{
		Use: "can-upgrade --k8s VERSION [LAYER...]", Short: "Say whether layers are ready for another version of Kubernetes",
		Long: canUpgradeLong, Example: canUpgradeExamples,
		RunE: func(command *cobra.Command, names []string) error {
			report, err := t.canUpgrade(command.Context(), to, cluster, o, names)
			if err != nil {
				return err
			}
			if output == "" {
				err = printing.Upgrade(t.Out, t.Screen, report)
			} else {
				err = t.PrintAs(output, report)
			}
			if err == nil && report.Upgrade != upgrade.Yes {
				return console.ErrBlocked
			}
			return err
		},
	}
	command.Flags().StringVar(&to, "k8s", "", "the version of Kubernetes to look at, such as 1.37 (required)")
	command.Flags().StringVar(&cluster, "cluster", "", "look at the layers of this RemoteCluster only, as [NAMESPACE/]NAME")
	o.secretsFlag(command.Flags())
	console.OutputFlag(command, &output, "json", "yaml")
	return []*cobra.Command{command}
}

// canUpgradeParts are what is read of a cluster.
var canUpgradeParts = append([]snapshot.Part{
	snapshot.Layers, snapshot.Releases, snapshot.Clusters, snapshot.Bundles, snapshot.Applications, snapshot.HelmRepositories, snapshot.HelmCharts,
}, snapshot.Sources...)

func (t *tool) canUpgrade(ctx context.Context, to, cluster string, o chartOptions, names []string) (upgrade.Report, error) {
	if to == "" {
		return upgrade.Report{}, errors.New("--k8s is missing: name the version of Kubernetes to look at, such as 1.37")
	}
	if _, err := charts.RemovedAPIs(nil, to); err != nil {
		return upgrade.Report{}, fmt.Errorf("--k8s: %w", err)
	}
	progress := t.Progress()
	defer progress.Done()
	progress.Say("reading the cluster")
	s, err := t.Cluster.Read(ctx, canUpgradeParts...)
	if err != nil {
		return upgrade.Report{}, err
	}
	t.WarnUnread(s, "what depends on them is not known")
	chosen, err := chooseLayers(s, cluster, names)
	if err != nil {
		return upgrade.Report{}, err
	}
	in := upgrade.Input{Kubernetes: to, Layers: chosen, Bundles: s.Bundles, Applications: s.Applications}
	if in.Releases, in.Unread, err = t.Cluster.Upgrade(ctx, s, to, chosen, o.ChartOptions, progress.Say); err != nil {
		return upgrade.Report{}, err
	}
	return upgrade.Of(in), nil
}

// chooseLayers returns the layers of these names, or all of them, on a cluster.
func chooseLayers(s *snapshot.Snapshot, cluster string, names []string) ([]*v1alpha1.AddonsLayer, error) {
	for _, name := range names {
		if s.Layer(name) == nil {
			return nil, console.NoLayer(s, name)
		}
	}
	var chosen []*v1alpha1.AddonsLayer
	for _, layer := range s.Layers {
		if isOn(layer, cluster) && (len(names) == 0 || slices.Contains(names, layer.Name)) {
			chosen = append(chosen, layer)
		}
	}
	if cluster != "" && len(chosen) == 0 {
		return nil, fmt.Errorf("no layer belongs on RemoteCluster %s: kubectl strata clusters shows those there are", cluster)
	}
	return chosen, nil
}

// isOn tells whether a layer belongs on a RemoteCluster; empty stands for any place.
func isOn(layer *v1alpha1.AddonsLayer, cluster string) bool {
	at := placement.Of(layer, "")
	switch {
	case cluster == "":
		return true
	case at.Name == "":
		return false
	case at.Namespace == "":
		// The controller knows the namespace that it means.
		return cluster == at.Name || strings.HasSuffix(cluster, "/"+at.Name)
	}
	return cluster == at.Name || cluster == at.String()
}
