// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strata installs Strata's chart into a control plane and runs the
// controller as a process beside it, as the ServiceAccount of the chart, so
// that it has the chart's rights and no others.
package strata

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
)

// Namespace is where the chart is installed.
const Namespace = "strata-system"

// release is the name of the Helm release, and of the ServiceAccount.
const release = "strata"

// Build builds the controller into a folder and returns its path.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := reads.Root()
	if err != nil {
		return "", err
	}
	return BuildFrom(ctx, root, dir, flags...)
}

// BuildFrom is Build of another source tree.
func BuildFrom(ctx context.Context, root, dir string, flags ...string) (string, error) {
	return build(ctx, root, ".", filepath.Join(dir, "strata"), flags)
}

// BuildPlugin builds the kubectl plug-in into a folder and returns its path.
// With the folder in PATH, kubectl strata runs it.
func BuildPlugin(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := reads.Root()
	if err != nil {
		return "", err
	}
	return build(ctx, root, "./cmd/kubectl-strata", filepath.Join(dir, "kubectl-strata"), flags)
}

// BuildHosts builds the controller of HostClusters into a folder and returns its path.
func BuildHosts(ctx context.Context, dir string, flags ...string) (string, error) {
	root, err := reads.Root()
	if err != nil {
		return "", err
	}
	return build(ctx, root, "./cmd/strata-hosts", filepath.Join(dir, "strata-hosts"), flags)
}

// tagsOfPrograms returns those of this tree, whatever tree a program is built of.
func tagsOfPrograms() (string, error) {
	root, err := reads.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "hack", "release", "tags")
	reads.Add(path)
	tags, err := os.ReadFile(path)
	return strings.TrimSpace(string(tags)), err
}

func build(ctx context.Context, root, program, path string, flags []string) (string, error) {
	reads.AddPrograms(root, program)
	args := append(append([]string{"build", "-trimpath"}, flags...), "-o", path, program)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// As hack/controlplane does: a compiler that seldom collects garbage is a fifth faster.
	cmd.Env = append(os.Environ(), "GOGC=400")
	if !slices.Contains(flags, "-race") {
		// As releases are built, so that nothing is compiled twice.
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
		tags, err := tagsOfPrograms()
		if err != nil {
			return "", err
		}
		cmd.Args = slices.Insert(cmd.Args, 2, "-tags", tags)
	}
	// Interrupted, go puts away what it has begun; killed, it does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", filepath.Base(path), err, output)
	}
	return path, nil
}

// Install installs the chart with Helm's own library and returns the identity
// of the controller's ServiceAccount.
func Install(ctx context.Context, plane *controlplane.ControlPlane, values map[string]any) (controlplane.Identity, error) {
	root, err := reads.Root()
	if err != nil {
		return controlplane.Identity{}, err
	}
	return InstallFrom(ctx, plane, root, values)
}

// InstallFrom is Install with the chart of another source tree.
func InstallFrom(ctx context.Context, plane *controlplane.ControlPlane, root string, values map[string]any) (controlplane.Identity, error) {
	folder := filepath.Join(root, "chart")
	reads.Add(folder)
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return controlplane.Identity{}, fmt.Errorf("cannot load the chart: %w", err)
	}
	config, err := helmOf(plane)
	if err != nil {
		return controlplane.Identity{}, err
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = release, Namespace, true
	install.WaitStrategy = kube.HookOnlyStrategy
	if _, err := install.RunWithContext(ctx, chart, values); err != nil {
		return controlplane.Identity{}, fmt.Errorf("cannot install the chart: %w", err)
	}
	if err := served(ctx, plane, root); err != nil {
		return controlplane.Identity{}, err
	}
	return plane.ServiceAccount(ctx, Namespace, release)
}

// UpgradeFrom puts the chart of a source tree in the place of what is installed, with the
// same values, CRDs and all.
func UpgradeFrom(ctx context.Context, plane *controlplane.ControlPlane, root string) error {
	folder := filepath.Join(root, "chart")
	reads.Add(folder)
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return fmt.Errorf("cannot load the chart: %w", err)
	}
	config, err := helmOf(plane)
	if err != nil {
		return err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.ReuseValues, upgrade.WaitStrategy = Namespace, true, kube.HookOnlyStrategy
	if _, err := upgrade.RunWithContext(ctx, release, chart, nil); err != nil {
		return fmt.Errorf("cannot upgrade the chart: %w", err)
	}
	return served(ctx, plane, root)
}

// served waits until the API server serves all kinds of the chart of a source tree, which it
// does some time after it has their definitions, one after another.
func served(ctx context.Context, plane *controlplane.ControlPlane, root string) error {
	asks, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	if err != nil {
		return fmt.Errorf("cannot ask for the kinds that are served: %w", err)
	}
	group := v1alpha1.GroupVersion.Group
	files, err := filepath.Glob(filepath.Join(root, "chart", "files", "crds", group+"_*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("the chart of %s has no definitions: %w", root, err)
	}
	var missing error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		list, err := asks.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
		if missing = err; err != nil {
			return false, nil
		}
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), group+"_"), ".yaml")
			if !slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool { return resource.Name == name }) {
				missing = fmt.Errorf("%s are not", name)
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not served after the installation: %w", v1alpha1.GroupVersion, cmp.Or(missing, err))
	}
	return nil
}

// Uninstall takes away what Install has made, but for the CRDs and the namespace. It
// does nothing where that is gone.
func Uninstall(plane *controlplane.ControlPlane) error {
	config, err := helmOf(plane)
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(config)
	uninstall.IgnoreNotFound, uninstall.WaitStrategy = true, kube.HookOnlyStrategy
	if _, err := uninstall.Run(release); err != nil {
		return fmt.Errorf("cannot uninstall the chart: %w", err)
	}
	return nil
}

// helmOf is Helm's library at work on a cluster, which says nothing.
func helmOf(plane *controlplane.ControlPlane) (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, namespace := plane.Kubeconfig(), Namespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	if err := config.Init(flags, Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("cannot prepare Helm: %w", err)
	}
	return config, nil
}

// Controller is the running controller.
type Controller struct {
	*controlplane.Runner
	// MetricsURL and HealthURL are where it answers.
	MetricsURL, HealthURL string
	release               []func()
}

// LoopbackRanges is where all servers of tests and of the demo are, other clusters
// among them.
const LoopbackRanges = "127.0.0.0/8,::1/128"

// Options say how the controller is run.
type Options struct {
	// Binary is what Build returned.
	Binary string
	// Kubeconfig of the identity it has.
	Kubeconfig string
	// Dir is for its log and cache.
	Dir string
	// Args are more flags, and Env more of its environment.
	Args, Env []string
	// ArtifactHosts are the hosts of artifacts; none stands for this machine.
	ArtifactHosts []string
	// Confined leaves it to Args where artifacts and other clusters may be. Without
	// it they may be where all servers of tests are.
	Confined bool
}

// Races returns what the race detector has found, if the controller was built with it.
func (c *Controller) Races() error {
	content, err := os.ReadFile(c.Log())
	if err != nil {
		return fmt.Errorf("cannot read the controller's log: %w", err)
	}
	if at := bytes.Index(content, []byte("WARNING: DATA RACE")); at >= 0 {
		return fmt.Errorf("the controller has a data race:\n%s", content[at:min(len(content), at+4000)])
	}
	return nil
}

// Prepare returns the controller, which has yet to be started.
func Prepare(o Options) (*Controller, error) {
	metrics, releaseMetrics, err := controlplane.FreePort()
	if err != nil {
		return nil, fmt.Errorf("cannot find a port: %w", err)
	}
	health, releaseHealth, err := controlplane.FreePort()
	if err != nil {
		releaseMetrics()
		return nil, fmt.Errorf("cannot find a port: %w", err)
	}
	c := &Controller{
		MetricsURL: "http://" + controlplane.Loopback(metrics) + "/metrics",
		HealthURL:  "http://" + controlplane.Loopback(health),
		release:    []func(){releaseMetrics, releaseHealth},
	}
	args := []string{
		"--kubeconfig", o.Kubeconfig,
		"--metrics-addr", controlplane.Loopback(metrics),
		"--health-addr", controlplane.Loopback(health),
		"--artifact-cache-dir", filepath.Join(o.Dir, "artifacts"),
	}
	if !o.Confined {
		// source-controller runs as a process, and other makers of artifacts in the
		// test.
		args = append(args, "--allowed-cluster-ranges", LoopbackRanges, "--artifact-hosts", cmp.Or(strings.Join(o.ArtifactHosts, ","), "127.0.0.1"))
	}
	c.Runner, err = controlplane.NewRunner(controlplane.Program{
		Name: "strata", Path: o.Binary, Dir: o.Dir,
		Env:     append([]string{"RUNTIME_NAMESPACE=" + Namespace}, o.Env...),
		Args:    append(args, o.Args...),
		Healthy: c.ready,
	})
	return c, err
}

// Close gives back what the controller had reserved; it must have ended.
func (c *Controller) Close() {
	for _, release := range c.release {
		release()
	}
}

// ready asks whether the caches are filled.
func (c *Controller) ready(ctx context.Context) error {
	return controlplane.Healthy(ctx, c.HealthURL+"/readyz")
}
