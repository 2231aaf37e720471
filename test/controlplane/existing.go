// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// EnvExisting opts in, with the value 1, to running against the cluster that
// KUBECONFIG names. KUBECONFIG alone never does, so that nobody's cluster is
// met by accident.
const EnvExisting = "STRATA_E2E_EXISTING"

// Open returns the cluster to test against: the one that KUBECONFIG names
// when STRATA_E2E_EXISTING=1, otherwise one that Start starts.
func Open(ctx context.Context, opts Options) (*ControlPlane, error) {
	if os.Getenv(EnvExisting) != "1" {
		return Start(ctx, opts)
	}
	path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" {
		return nil, fmt.Errorf("%s=1 needs %s to name the cluster", EnvExisting, clientcmd.RecommendedConfigPathEnvVar)
	}
	return FromKubeconfig(ctx, path, opts.Log)
}

// FromKubeconfig uses the cluster of a kubeconfig file's current context,
// which must have Flux. Component control returns ErrNotManaged, and Stop
// leaves the cluster alone. The cluster fetches from a GitServer or
// ChartServer of this machine only when EnvHost says how to reach it.
func FromKubeconfig(ctx context.Context, path string, log io.Writer) (*ControlPlane, error) {
	loaded, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig %s: %w", path, err)
	}
	loaded.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(loaded)
	if err != nil {
		return nil, err
	}
	for _, group := range []string{"source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2"} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := client.ServerResourcesForGroupVersion(group); err != nil {
			return nil, fmt.Errorf("cluster %s does not serve %s, is Flux installed: %w", loaded.Host, group, err)
		}
	}
	dir, err := os.MkdirTemp("", "strata-existing-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		opts:       Options{Log: log}.withDefaults(),
		dir:        dir,
		removeDir:  true,
		config:     loaded,
		kubeconfig: path,
	}
	c.logf("using the existing cluster %s", loaded.Host)
	return c, nil
}
