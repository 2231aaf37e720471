// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
	"github.com/strata-project/strata/test/controlplane"
)

// fleetPlatform is the Platform of examples/fleet.
const fleetPlatform = "edge"

// fleetClusters are the RemoteClusters of examples/fleet.
var fleetClusters = []string{"north", "south"}

// showFleet puts examples/fleet on two further clusters.
func (d *demo) showFleet(ctx context.Context, s settings) error {
	err := d.steps(ctx, []step{
		{"starting etcd, Kubernetes and Flux, building Strata", d.startPlane},
		{"starting two more clusters, north and south", d.startFleet},
		{"serving examples/charts", func(context.Context) error { return d.serveCharts() }},
		{"installing Strata's chart, starting its controller", d.startController},
		{"serving the page", d.servePage},
		{"applying examples/fleet", d.applyFleet},
	})
	if err != nil {
		return err
	}
	d.sayPage()
	return d.followFor(ctx, s)
}

// startFleet starts the clusters that are filled, without Flux, and puts their
// kubeconfigs where the reader of docs/platforms.md has them.
func (d *demo) startFleet(ctx context.Context) error {
	planes := make([]*controlplane.ControlPlane, len(fleetClusters))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range fleetClusters {
		group.Go(func() error {
			plane, err := controlplane.Start(groupCtx, controlplane.Options{
				Dir: filepath.Join(d.dir, name), With: controlplane.KubernetesOnly(),
			})
			planes[i] = plane
			return err
		})
	}
	err := group.Wait()
	for _, plane := range planes {
		if plane != nil {
			d.onStop(plane.Stop)
		}
	}
	if err != nil {
		return err
	}
	for i, name := range fleetClusters {
		if err := os.Symlink(planes[i].Kubeconfig(), d.kubeconfigOf(name)); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) kubeconfigOf(cluster string) string {
	return filepath.Join(d.dir, cluster+".kubeconfig")
}

// applyFleet does what docs/platforms.md has its reader do.
func (d *demo) applyFleet(ctx context.Context) error {
	files := filepath.Join(d.dir, "fleet")
	if err := copyWithURL(files, os.DirFS(filepath.Join(d.root, "examples", "fleet")), d.charts.URL()); err != nil {
		return err
	}
	commands := [][]string{
		{"apply", "--filename", filepath.Join(files, "catalogue.yaml")},
		{"apply", "--filename", filepath.Join(files, "bundles.yaml")},
		{"apply", "--filename", filepath.Join(files, "clusters.yaml")},
	}
	for _, name := range fleetClusters {
		commands = append(
			commands,
			[]string{"--namespace", "fleet", "create", "secret", "generic", name + "-kubeconfig", "--from-file=value=" + d.kubeconfigOf(name)},
		)
	}
	for _, args := range append(commands, []string{"apply", "--filename", filepath.Join(files, "platform.yaml")}) {
		if _, err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	d.platform = fleetPlatform
	return nil
}

// fleetRows returns the Platform and its layers by name.
func (d *demo) fleetRows(ctx context.Context) ([]summary.Row, error) {
	platform := &v1alpha1.Platform{}
	if err := d.client.Get(ctx, types.NamespacedName{Name: d.platform}, platform); err != nil {
		return nil, fmt.Errorf("cannot get Platform %s: %w", d.platform, err)
	}
	layers := &v1alpha1.AddonsLayerList{}
	if err := d.client.List(ctx, layers, client.MatchingLabels{v1alpha1.PlatformLabel: d.platform}); err != nil {
		return nil, fmt.Errorf("cannot list the layers of Platform %s: %w", d.platform, err)
	}
	slices.SortFunc(layers.Items, func(a, b v1alpha1.AddonsLayer) int { return strings.Compare(a.Name, b.Name) })
	rows := []summary.Row{platformRow(platform)}
	for i := range layers.Items {
		rows = append(rows, summary.Of(&layers.Items[i], time.Now()))
	}
	return rows, nil
}

// platformRow shows a Platform as if it was a layer: it is deployed once it is ready,
// and counts clusters where layers count releases.
func platformRow(platform *v1alpha1.Platform) summary.Row {
	status := platform.Status
	row := summary.Row{
		Name: platform.Name, Version: cmp.Or(status.Version, "-"), State: "-",
		Ready: fmt.Sprintf("%d/%d", status.Clusters.Ready, status.Clusters.Total), Blocked: true,
	}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case ready == nil || status.ObservedGeneration != platform.Generation:
		row.Why = "not looked at yet"
	case ready.Status == metav1.ConditionTrue:
		row.State, row.Blocked = string(v1alpha1.StateDeployed), false
	default:
		row.State, row.Why = ready.Reason, ready.Message
	}
	return row
}

// inviteToFleet says how to look around.
func (d *demo) inviteToFleet() error {
	_, err := fmt.Fprintf(d.out, `
Look around, in another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH
  cd %s
  kubectl get happ,bundle,plat
  kubectl strata get
  kubectl get rcluster --namespace fleet
  kubectl --kubeconfig south.kubeconfig --namespace platform get pods

docs/platforms.md goes on from here; what was applied is in the folder fleet.
The controller's log is %s

Ctrl-C stops everything and removes it.
`, d.plane.Kubeconfig(), d.bin, d.dir, d.controller.Log())
	return err
}
