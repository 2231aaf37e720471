// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// stack is everything that runs.
type stack struct {
	plane      *controlplane.ControlPlane
	git        *controlplane.GitServer
	charts     *controlplane.ChartServer
	repo       *controlplane.Repo
	controller *strata.Controller
	client     client.Client
}

// startStack starts the whole stack: all of it is real but for the kubelet.
func startStack(ctx context.Context, log io.Writer) (s *stack, err error) {
	s = &stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	dir, err := os.MkdirTemp("", "strata-chaos-")
	if err != nil {
		return s, err
	}
	var binary string
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := os.Mkdir(filepath.Join(dir, "strata"), 0o755); err != nil {
			return err
		}
		var err error
		binary, err = strata.Build(groupCtx, filepath.Join(dir, "strata"), "-race")
		return err
	})
	group.Go(func() error {
		var err error
		s.plane, err = controlplane.Start(groupCtx, controlplane.Options{
			Dir: filepath.Join(dir, "controlplane"), Log: log, HelmConcurrency: 10,
			With: []controlplane.Component{
				controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok, controlplane.SourceController, controlplane.HelmController,
			},
		})
		return err
	})
	if err := group.Wait(); err != nil {
		return s, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.serve(ctx); err != nil {
		return s, err
	}
	return s, s.startController(ctx, binary, filepath.Join(dir, "strata"))
}

// serve makes the sources: a repository of layers and one of charts.
func (s *stack) serve(ctx context.Context) error {
	scheme, err := strata.Scheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	if s.git, err = controlplane.NewGitServer(); err != nil {
		return err
	}
	if s.charts, err = controlplane.NewChartServer(); err != nil {
		return err
	}
	for name, versions := range chartVersions {
		if err := s.charts.AddBuiltin(name, versions...); err != nil {
			return err
		}
	}
	if s.repo, err = s.git.NewRepo("layers"); err != nil {
		return err
	}
	if err := s.plane.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return errors.Join(
		s.client.Create(ctx, &sourcev1.GitRepository{ObjectMeta: meta("layers"), Spec: sourcev1.GitRepositorySpec{
			URL: s.repo.URL(), Interval: metav1.Duration{Duration: 10 * time.Second}, Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		}}),
		s.client.Create(ctx, &sourcev1.HelmRepository{ObjectMeta: meta("charts"), Spec: sourcev1.HelmRepositorySpec{
			URL: s.charts.URL(), Interval: metav1.Duration{Duration: time.Hour},
		}}),
	)
}

// startController runs Strata with the rights of its chart.
func (s *stack) startController(ctx context.Context, binary, dir string) error {
	identity, err := strata.Install(ctx, s.plane, map[string]any{"rbac": map[string]any{"kinds": []any{
		map[string]any{"apiGroup": "", "resources": []any{"configmaps"}},
	}}})
	if err != nil {
		return err
	}
	if s.controller, err = strata.Prepare(strata.Options{Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir}); err != nil {
		return err
	}
	return s.controller.Start(ctx)
}

// stop ends everything.
func (s *stack) stop() error {
	var problems []error
	if s.controller != nil {
		problems = append(problems, s.controller.Stop(10*time.Second))
		s.controller.Close()
	}
	if s.plane != nil {
		problems = append(problems, s.plane.Stop())
	}
	if s.charts != nil {
		problems = append(problems, s.charts.Close())
	}
	if s.git != nil {
		problems = append(problems, s.git.Close())
	}
	return errors.Join(problems...)
}

// dir holds the data and logs of everything.
func (s *stack) dir() string { return filepath.Dir(s.plane.Dir()) }

// log returns the path of a component's log.
func (s *stack) log(name string) string {
	if name == strataProgram {
		return s.controller.Log()
	}
	return s.plane.Logs(controlplane.Component(name))
}

// kill ends a component as a crash would.
func (s *stack) kill(name string) error {
	if name == strataProgram {
		return s.controller.Kill()
	}
	return s.plane.KillComponent(controlplane.Component(name))
}

// start starts a component with the data, ports and identity that it had.
func (s *stack) start(ctx context.Context, name string) error {
	if name == strataProgram {
		return s.controller.Start(ctx)
	}
	return s.plane.StartComponent(ctx, controlplane.Component(name))
}

// pids returns the process ids of the components that run.
func (s *stack) pids() map[string]int {
	found := map[string]int{}
	for name, pid := range s.plane.PIDs() {
		found[string(name)] = pid
	}
	if pid := s.controller.PID(); pid != 0 {
		found[strataProgram] = pid
	}
	return found
}

// ended returns the components that do not run, in the order in which they are
// started. Those that are never killed are among them.
func (s *stack) ended() []string {
	running := s.pids()
	var all []string
	for _, v := range victims {
		all = append(all, v.name)
	}
	for _, name := range []controlplane.Component{controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok} {
		all = append(all, string(name))
	}
	return slices.DeleteFunc(all, func(name string) bool { return running[name] != 0 })
}
