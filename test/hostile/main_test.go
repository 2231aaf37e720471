// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile_test attacks a controller that was installed with the chart's
// lockdown, from where tenants are: a directory in git, objects in a namespace of
// their own with the rights of edit, statuses, and a cluster that they run.
package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// The two tenants: one that has a layer, and one that wants more than its own.
const (
	victim = "team-a"
	tenant = "team-b"
)

// stack is what all tests of the package share.
var stack struct {
	plane      *controlplane.ControlPlane
	git        *controlplane.GitServer
	charts     *controlplane.ChartServer
	controller *strata.Controller
	client     client.WithWatch
	outside    *listener
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{HelmConcurrency: 10, After: tearDown}, setUp))
}

func setUp(plane *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	stack.plane = plane
	scheme, err := strata.Scheme()
	if err != nil {
		return err
	}
	if stack.client, err = client.NewWithWatch(plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	if stack.git, err = controlplane.NewGitServer(); err != nil {
		return err
	}
	if stack.charts, err = controlplane.NewChartServer(); err != nil {
		return err
	}
	if err := stack.charts.AddBuiltin("configmap", "1.0.0"); err != nil {
		return err
	}
	if stack.outside, err = listen(outsideAddress); err != nil {
		return err
	}
	for _, namespace := range []string{victim, tenant} {
		if err := plane.CreateNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return startController(ctx)
}

// startController installs the chart under lockdown and runs the controller with
// the very arguments that the chart gives it, but for where it listens.
func startController(ctx context.Context) error {
	identity, err := strata.Install(ctx, stack.plane, map[string]any{
		"lockdown":       true,
		"controller":     map[string]any{"sourceNamespaces": []any{victim, tenant}, "logLevel": "debug", "syncPeriod": "10s"},
		"remoteClusters": map[string]any{"enabled": true, "allowedRanges": []any{insideRange}},
		"artifacts":      map[string]any{"hosts": []any{"127.0.0.1"}},
		"rbac": map[string]any{
			"impersonate": []any{map[string]any{"namespace": victim}, map[string]any{"namespace": tenant}},
			"kinds":       []any{map[string]any{"apiGroup": "", "resources": []any{"configmaps"}, "verbs": []any{"get", "list", "watch"}}},
		},
	})
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	if err := stack.client.Get(ctx, types.NamespacedName{Namespace: strata.Namespace, Name: "strata"}, deployment); err != nil {
		return fmt.Errorf("cannot read what the chart has installed: %w", err)
	}
	args := slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--metrics-addr", "--health-addr", "--artifact-cache-dir", "--enable-leader-election", "--leader-election-namespace"}, name)
	})
	dir := filepath.Join(stack.plane.Dir(), "strata")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	binary, err := strata.Build(ctx, dir)
	if err != nil {
		return err
	}
	stack.controller, err = strata.Prepare(strata.Options{Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir, Args: args, Confined: true})
	if err != nil {
		return err
	}
	return stack.controller.Start(ctx)
}

func tearDown() error {
	var problems []error
	if stack.controller != nil {
		problems = append(problems, stack.controller.Stop(30*time.Second))
		stack.controller.Close()
	}
	if stack.charts != nil {
		problems = append(problems, stack.charts.Close())
	}
	if stack.git != nil {
		problems = append(problems, stack.git.Close())
	}
	if stack.outside != nil {
		problems = append(problems, stack.outside.Close())
	}
	return errors.Join(problems...)
}

// insideRange is what the controller may connect to for other clusters, and
// outsideAddress is an address beyond it, which stands for a network that no
// tenant should reach.
const (
	insideRange    = "127.0.0.1/32"
	outsideAddress = "127.0.0.66:0"
)

// listener counts who connects, and lets them wait.
type listener struct {
	net.Listener
	dials atomic.Int64
}

func listen(address string) (*listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen outside: %w", err)
	}
	l := &listener{Listener: inner}
	go func() {
		for {
			conn, err := inner.Accept()
			if err != nil {
				return
			}
			l.dials.Add(1)
			// It is held open and says nothing: who connects without a time limit
			// waits for ever.
			_ = conn
		}
	}()
	return l, nil
}

// URL is where it listens.
func (l *listener) URL() string { return "http://" + l.Addr().String() }
