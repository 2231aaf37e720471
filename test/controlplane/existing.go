// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/strata-project/strata/test/reads"
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
	reads.Other() // others change the cluster, too
	path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" {
		return nil, fmt.Errorf("%s=1 needs %s to name the cluster", EnvExisting, clientcmd.RecommendedConfigPathEnvVar)
	}
	return FromKubeconfig(ctx, path, opts.Log)
}

// ErrNoFlux is returned for a cluster that serves no kind of Flux at all.
var ErrNoFlux = errors.New("has no Flux")

// FromKubeconfig uses the cluster of a kubeconfig file's current context,
// which must have Flux; without it the error is ErrNoFlux. Component control
// returns ErrNotManaged, and Stop leaves the cluster alone. The cluster fetches
// from a GitServer or ChartServer of this machine only when EnvHost says how to
// reach it.
func FromKubeconfig(ctx context.Context, path string, log io.Writer) (*ControlPlane, error) {
	loaded, err := load(path)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(loaded)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	groups, err := client.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("cannot ask cluster %s what it serves: %w", loaded.Host, err)
	}
	if err := hasFlux(groups.Groups); err != nil {
		return nil, fmt.Errorf("cluster %s %w", loaded.Host, err)
	}
	return existing(path, loaded, Options{Log: log})
}

// FluxBeside uses the cluster of a kubeconfig file's current context, which has no
// Flux: it installs the CRDs of Flux there, and runs source-controller and
// helm-controller on this machine, with the rights of the file. Stop ends these, and
// leaves the cluster as it is.
func FluxBeside(ctx context.Context, path string, opts Options) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready within %s", startTimeout))
	defer cancel()
	loaded, err := load(path)
	if err != nil {
		return nil, err
	}
	opts.With = []Component{SourceController, HelmController}
	c, err := existing(path, loaded, opts)
	if err != nil {
		return nil, err
	}
	l := &launcher{dir: c.dir, opts: c.opts, given: path}
	for _, name := range opts.With {
		p, err := l.process(name)
		c.ports = l.ports
		if err != nil {
			return nil, errors.Join(err, c.Stop())
		}
		c.processes = append(c.processes, p)
	}
	if err := c.startFlux(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot run Flux for cluster %s: %w", loaded.Host, err), c.Stop())
	}
	return c, nil
}

// hasFlux tells of groups of kinds whether source-controller's and helm-controller's
// are among them. A part of Flux is another error than none of it: what is there
// belongs to somebody, and must be neither replaced nor taken away.
func hasFlux(served []metav1.APIGroup) error {
	var there, missing []string
	versions := map[string]bool{}
	for _, group := range served {
		if strings.HasSuffix(group.Name, ".toolkit.fluxcd.io") {
			there = append(there, group.Name)
		}
		for _, version := range group.Versions {
			versions[version.GroupVersion] = true
		}
	}
	for _, wanted := range []string{"source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2"} {
		if !versions[wanted] {
			missing = append(missing, wanted)
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(there) == 0:
		return ErrNoFlux
	}
	return fmt.Errorf("serves %s and not %s: install the rest of Flux, too", strings.Join(there, ", "), strings.Join(missing, ", "))
}

// load reads a kubeconfig; who uses it is not throttled on the client's side.
func load(path string) (*rest.Config, error) {
	loaded, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("cannot read kubeconfig %s: %w", path, err)
	}
	loaded.QPS = -1
	return loaded, nil
}

// existing returns a cluster that this process has not started.
func existing(path string, loaded *rest.Config, opts Options) (*ControlPlane, error) {
	c := &ControlPlane{opts: opts.withDefaults(), config: loaded, kubeconfig: path}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	c.logf("using the existing cluster %s", loaded.Host)
	return c, nil
}
