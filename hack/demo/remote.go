// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"

	"github.com/strata-project/strata/test/controlplane"
)

// startEdge starts a second cluster, without Flux: what is installed there is
// installed from the first one.
func (d *demo) startEdge(ctx context.Context) error {
	edge, err := controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(d.dir, "edge"), With: controlplane.KubernetesOnly(),
	})
	if err != nil {
		return err
	}
	d.edge = edge
	d.onStop(edge.Stop)
	return nil
}

// applyRemote does what docs/clusters.md has its reader do: it tells the first
// cluster of the second one, and puts two layers there.
func (d *demo) applyRemote(ctx context.Context) error {
	example := filepath.Join(d.root, "examples", "remote")
	for _, args := range [][]string{
		{"apply", "--filename", filepath.Join(example, "cluster.yaml")},
		{"--namespace", "fleet", "create", "secret", "generic", "edge-kubeconfig", "--from-file=value=" + d.edge.Kubeconfig()},
	} {
		if _, err := d.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return d.applyLayers(ctx, filepath.Join(example, "layers.yaml"))
}
