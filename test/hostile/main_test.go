// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile_test attacks the controllers that were installed with the chart's
// lockdown, from where others are: a directory in git, objects in a namespace of
// their own with the rights of edit, statuses, a cluster that they run, a plug-in
// that they have written, the hosts of a cluster, a bucket and a registry.
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

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
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
	// hosts is the controller of HostClusters.
	hosts *controlplane.Runner
	// plugins is the folder of the plug-ins that run as processes. Images of two registries may,
	// too: of one that does harm, and of an honest one.
	plugins  string
	registry *registry
	images   *controlplane.OCIServer
	client   client.WithWatch
	outside  *listener
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
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
	stack.registry = newRegistry()
	if stack.images, err = controlplane.NewOCIServer(); err != nil {
		return err
	}
	return startControllers(ctx)
}

// startControllers installs the chart under lockdown and runs the controllers with
// the very arguments that the chart gives them, but for where they listen.
func startControllers(ctx context.Context) error {
	dir := filepath.Join(stack.plane.Dir(), "strata")
	stack.plugins = filepath.Join(dir, "plugins")
	if err := os.MkdirAll(stack.plugins, 0o755); err != nil {
		return err
	}
	identity, err := strata.Install(ctx, stack.plane, map[string]any{
		"lockdown":       true,
		"controller":     map[string]any{"sourceNamespaces": []any{victim, tenant}, "logLevel": "debug", "syncPeriod": "10s"},
		"remoteClusters": map[string]any{"enabled": true, "allowedRanges": []any{insideRange}},
		"artifacts":      map[string]any{"hosts": []any{"127.0.0.1"}},
		"capabilities":   map[string]any{"enabled": true},
		"extraArgs":      []any{"--plugin-processes=" + stack.plugins, "--plugin-process-images=" + stack.registry.Host() + "," + honestHost()},
		"hosts": map[string]any{
			"enabled": true, "allowedCIDRs": []any{insideRange}, "namespaces": []any{victim, tenant}, "snapshots": map[string]any{"quota": "64Mi"},
		},
		"rbac": map[string]any{
			"impersonate": []any{map[string]any{"namespace": victim}, map[string]any{"namespace": tenant}},
			"kinds":       []any{map[string]any{"apiGroup": "", "resources": []any{"configmaps"}, "verbs": []any{"get", "list", "watch"}}},
		},
	})
	if err != nil {
		return err
	}
	var builds errgroup.Group
	var binary, hosts string
	builds.Go(func() (err error) { binary, err = strata.Build(ctx, dir); return err })
	builds.Go(func() (err error) { hosts, err = strata.BuildHosts(ctx, dir); return err })
	if err := builds.Wait(); err != nil {
		return err
	}
	args, err := argsOf(ctx, "strata")
	if err != nil {
		return err
	}
	stack.controller, err = strata.Prepare(strata.Options{Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir, Args: args, Confined: true})
	if err != nil {
		return err
	}
	return errors.Join(stack.controller.Start(ctx), startHosts(ctx, hosts))
}

// startHosts runs the controller of HostClusters.
func startHosts(ctx context.Context, binary string) error {
	identity, err := stack.plane.ServiceAccount(ctx, strata.Namespace, "strata-hosts")
	if err != nil {
		return err
	}
	args, err := argsOf(ctx, "strata-hosts")
	if err != nil {
		return err
	}
	port, release, err := controlplane.FreePort()
	if err != nil {
		return err
	}
	defer release()
	health := controlplane.Loopback(port)
	stack.hosts, err = controlplane.NewRunner(controlplane.Program{
		Name: "strata-hosts", Path: binary, Dir: filepath.Join(stack.plane.Dir(), "strata-hosts"), Env: []string{"RUNTIME_NAMESPACE=" + strata.Namespace},
		Args:    append(args, "--kubeconfig", identity.Kubeconfig, "--metrics-addr", "0", "--health-addr", health),
		Healthy: func(ctx context.Context) error { return controlplane.Healthy(ctx, "http://"+health+"/readyz") },
	})
	if err != nil {
		return err
	}
	return stack.hosts.Start(ctx)
}

// argsOf returns what the chart gives a controller, but for what is another thing on this
// machine.
func argsOf(ctx context.Context, name string) ([]string, error) {
	deployment := &appsv1.Deployment{}
	if err := stack.client.Get(ctx, types.NamespacedName{Namespace: strata.Namespace, Name: name}, deployment); err != nil {
		return nil, fmt.Errorf("cannot read what the chart has installed: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains([]string{"--metrics-addr", "--health-addr", "--artifact-cache-dir", "--enable-leader-election", "--leader-election-namespace"}, name)
	}), nil
}

func tearDown() error {
	var problems []error
	if stack.controller != nil {
		problems = append(problems, stack.controller.Stop(30*time.Second))
		stack.controller.Close()
	}
	if stack.hosts != nil {
		problems = append(problems, stack.hosts.Stop(30*time.Second))
	}
	if stack.registry != nil {
		stack.registry.Close()
	}
	if stack.images != nil {
		problems = append(problems, stack.images.Close())
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
