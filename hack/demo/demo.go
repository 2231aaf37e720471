// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
	"github.com/strata-project/strata/test/strata"
)

// stopGrace is how long the controller may take to finish its writes.
const stopGrace = 10 * time.Second

// demo is everything that runs, and where it is.
type demo struct {
	out  io.Writer
	root string // the source tree
	dir  string // keys, logs and programs of this run
	bin  string

	plane      *controlplane.ControlPlane
	edge       *controlplane.ControlPlane // nil without --remote
	charts     *controlplane.ChartServer
	repo       *controlplane.Repo
	controller *strata.Controller
	client     client.Client
	layers     []string
	platform   string // with --fleet: the layers are those of it
	context    string // with --cluster current: the name of the context
	page       string // the address that opens the page once
	proxy      string // the HTTP proxy of the controller; "" for none
	// ownNamespaces are those that the cluster of the context did not have.
	ownNamespaces []string

	closers []func() error // in the order of what they close
}

// onStop adds what stop must do, before what was added earlier.
func (d *demo) onStop(closer func() error) { d.closers = append(d.closers, closer) }

// stop takes everything down that was started.
func (d *demo) stop() error {
	var problems []error
	for _, closer := range slices.Backward(d.closers) {
		problems = append(problems, closer())
	}
	return errors.Join(problems...)
}

// startPlane starts the control plane while Strata is being built.
func (d *demo) startPlane(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.build(groupCtx) })
	group.Go(func() error {
		plane, err := controlplane.Start(groupCtx, controlplane.Options{
			Dir:  filepath.Join(d.dir, "controlplane"),
			With: append(controlplane.KubernetesOnly(), controlplane.SourceController, controlplane.HelmController),
		})
		if err != nil {
			return err
		}
		d.plane = plane
		d.onStop(plane.Stop)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return d.connect()
}

// programs has the servers made that the demo runs, where the machine lacks them:
// those that are named, or all. What is built, and how far it is, is shown.
func (d *demo) programs(ctx context.Context, only ...string) error {
	if os.Getenv(controlplane.EnvBinaries) != "" {
		return nil
	}
	args := []string{"run", "./hack/controlplane", "--demo", "--only", strings.Join(only, ",")}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stderr = d.root, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	folder, err := command.Output()
	if err != nil {
		return fmt.Errorf("cannot make the servers: %w", err)
	}
	return os.Setenv(controlplane.EnvBinaries, strings.TrimSpace(string(folder)))
}

// makeDir makes the folder of this run.
func (d *demo) makeDir() error {
	var err error
	if d.root, err = reads.Root(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "strata-demo-"); err != nil {
		return err
	}
	d.onStop(func() error { return os.RemoveAll(d.dir) })
	d.bin = filepath.Join(d.dir, "bin")
	return os.Mkdir(d.bin, 0o755)
}

// build puts the controller, the plug-in and kubectl into one folder.
func (d *demo) build(ctx context.Context) error {
	flags := []string{"-ldflags", "-s -w -X main.version=" + version}
	if _, err := strata.Build(ctx, d.bin, flags...); err != nil {
		return err
	}
	if _, err := strata.BuildPlugin(ctx, d.bin, flags...); err != nil {
		return err
	}
	kubectl, err := controlplane.Binary("kubectl")
	if err != nil {
		return err
	}
	return os.Symlink(kubectl, filepath.Join(d.bin, "kubectl"))
}

func (d *demo) connect() error {
	var err error
	d.client, err = newClient(d.plane.Config())
	return err
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), sourcev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return c, nil
}

// startController installs the chart and runs the controller beside the
// control plane, with the rights of the chart's ServiceAccount. No pod can run
// it here, because nothing but the kubelet is missing.
func (d *demo) startController(ctx context.Context) error {
	if d.context != "" {
		d.onStop(d.uninstall)
	}
	identity, err := strata.Install(ctx, d.plane, map[string]any{
		"replicas": 0,
		"image":    map[string]any{"tag": version},
		// The platform holds nothing that needs this, but who tries things
		// out may want to add a ConfigMap.
		"rbac": map[string]any{"kinds": []any{
			map[string]any{"apiGroup": "", "resources": []any{"configmaps"}},
		}},
		"remoteClusters": map[string]any{"enabled": true},
	})
	if err != nil {
		return err
	}
	options := strata.Options{
		Binary: filepath.Join(d.bin, "strata"), Kubeconfig: identity.Kubeconfig, Dir: filepath.Join(d.dir, "strata"),
	}
	if d.proxy != "" {
		options.Env, options.ArtifactHosts = []string{"HTTP_PROXY=" + d.proxy}, []string{"*"}
	}
	d.controller, err = strata.Prepare(options)
	if err != nil {
		return err
	}
	d.onStop(func() error {
		defer d.controller.Close()
		return d.controller.Stop(stopGrace)
	})
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not ready within a minute"))
	defer cancel()
	if err := d.controller.Start(ctx); err != nil {
		return err
	}
	if d.context != "" {
		d.onStop(d.leave)
	}
	return nil
}

// stay keeps everything running until somebody interrupts it.
func (d *demo) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.controller.Ended():
		return d.controllerEnded()
	}
}

// controllerEnded says that the controller is gone, with the end of its log.
func (d *demo) controllerEnded() error {
	const end = 2000
	log, err := os.ReadFile(d.controller.Log())
	if err != nil {
		return fmt.Errorf("the controller has ended, and its log cannot be read: %w", err)
	}
	return fmt.Errorf("the controller has ended; the end of its log:\n%s", log[max(0, len(log)-end):])
}
