// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/strata-project/strata/hack/controlplane/cache"
	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
)

const (
	kustomizeProgram = "kustomize-controller"
	kustomizeModule  = "github.com/fluxcd/kustomize-controller"
	kustomizeVersion = "kustomize.toolkit.fluxcd.io/v1"
)

// kustomizeInterval is how often a Kustomization is applied again without a
// change, which is also when an edit of somebody else is taken back. Scenarios
// must be able to see that happen.
const kustomizeInterval = "5m"

// kustomizeShipped are the arguments of the Deployment that Flux ships. Without
// the election of a leader, which needs a pod, it leads at once after a restart.
var kustomizeShipped = []string{"--watch-all-namespaces=true", "--log-level=info", "--log-encoding=json"}

// kustomizeTuning are the arguments of the setting that is tuned for many
// layers that depend on each other.
var kustomizeTuning = []string{"--concurrent=20", "--requeue-dependency=1s"}

// kustomize is Flux's own controller of directories in git, with a
// Kustomization for each layer.
type kustomize struct {
	name, about string
	args        []string
	flags       []report.Flag
	version     string
	runner      *controlplane.Runner
	health      string
	release     []func()
}

func newKustomize(*options) System {
	return &kustomize{
		name: report.Kustomize, args: kustomizeShipped,
		about: "kustomize-controller at its default flags, one Kustomization for each layer",
	}
}

func newKustomizeTuned(*options) System {
	return &kustomize{
		name: report.KustomizeTuned, args: slices.Concat(kustomizeShipped, kustomizeTuning),
		about: "kustomize-controller with more workers and a short poll of dependencies, one Kustomization for each layer",
	}
}

// Report returns what it is, with its flags.
func (k *kustomize) Report() report.System {
	return report.System{Name: k.name, About: k.about, Flags: k.flags}
}

// Program returns kustomize-controller and the version of its module.
func (k *kustomize) Program() report.Program {
	return report.Program{Name: kustomizeProgram, Version: k.version}
}

// Start installs the CRD of Kustomizations and runs the controller as an
// administrator of its own name.
func (k *kustomize) Start(ctx context.Context, b *bed) error {
	binary, crds, err := kustomizeBuilt()
	if err != nil {
		return err
	}
	if err := b.plane.InstallCRDs(ctx, crds); err != nil {
		return err
	}
	identity, err := b.account(ctx, kustomizeProgram)
	if err != nil {
		return err
	}
	metrics, err := k.port()
	if err != nil {
		return err
	}
	health, err := k.port()
	if err != nil {
		return err
	}
	k.health = "http://" + health + "/readyz"
	args := slices.Concat(k.args, []string{"--metrics-addr=" + metrics, "--health-addr=" + health})
	if k.flags, err = kustomizeFlags(ctx, binary, args); err != nil {
		return err
	}
	if k.version, err = moduleVersion(binary, kustomizeModule); err != nil {
		return err
	}
	k.runner, err = controlplane.NewRunner(controlplane.Program{
		Name: kustomizeProgram, Path: binary, Args: args, Dir: filepath.Join(b.dir, k.name),
		Env:     []string{"KUBECONFIG=" + identity.Kubeconfig, "RUNTIME_NAMESPACE=" + controlplane.FluxNamespace},
		Healthy: k.healthy,
	})
	if err != nil {
		return err
	}
	return k.runner.Start(ctx)
}

// kustomizeBuilt returns the program and the folder of its CRD. When they are
// not there the error says how to build them.
func kustomizeBuilt() (binary, crds string, err error) {
	binary, missing := controlplane.Binary(kustomizeProgram)
	crds, missingCRDs := controlplane.Binary(cache.KustomizeCRDs)
	if missing != nil || missingCRDs != nil {
		return "", "", fmt.Errorf("%s is not built, run: make controlplane", kustomizeProgram)
	}
	return binary, crds, nil
}

// kustomizeFlags returns all flags with their values. Asked for help, the
// program ends with an error.
func kustomizeFlags(ctx context.Context, binary string, args []string) ([]report.Flag, error) {
	help, err := exec.CommandContext(ctx, binary, "--help").CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("cannot ask %s for its flags: %w", kustomizeProgram, err)
	}
	return report.ParseFlags(string(help), args), nil
}

// port reserves a port until Stop and returns its address.
func (k *kustomize) port() (string, error) {
	number, release, err := controlplane.FreePort()
	if err != nil {
		return "", err
	}
	k.release = append(k.release, release)
	return controlplane.Loopback(number), nil
}

func (k *kustomize) healthy(ctx context.Context) error { return controlplane.Healthy(ctx, k.health) }

// Kill ends the controller as a crash would.
func (k *kustomize) Kill() error { return k.runner.Kill() }

// Restart runs it again.
func (k *kustomize) Restart(ctx context.Context) error { return k.runner.Start(ctx) }

// Stop ends the controller.
func (k *kustomize) Stop() error {
	defer func() {
		for _, release := range k.release {
			release()
		}
		k.release = nil
	}()
	if k.runner == nil {
		return nil
	}
	return k.runner.Stop(stopGrace)
}

// PIDs returns the controller's process.
func (k *kustomize) PIDs() []int { return pidsOf(k.runner) }

// User returns the name of its ServiceAccount.
func (k *kustomize) User() string { return accountUser(kustomizeProgram) }

// Path is where Kustomizations are.
func (k *kustomize) Path() string {
	return "/apis/" + kustomizeVersion + "/namespaces/" + namespace + "/kustomizations"
}

// Object returns the Kustomization of a layer. It waits for its releases and
// prunes, as a layer does.
func (k *kustomize) Object(l layer) any {
	dependsOn := make([]any, 0, len(l.DependsOn))
	for _, name := range l.DependsOn {
		dependsOn = append(dependsOn, map[string]any{"name": name})
	}
	spec := map[string]any{
		"sourceRef": map[string]any{"kind": "GitRepository", "name": l.Source},
		"path":      l.path(), "dependsOn": dependsOn,
		"wait": true, "prune": true, "interval": kustomizeInterval,
	}
	if l.Built {
		spec["serviceAccountName"] = deployer
		spec["targetNamespace"], spec["components"] = namespace, []string{componentPath}
		spec["postBuild"] = map[string]any{"substitute": l.variables()}
		spec["decryption"] = map[string]any{"provider": "sops", "secretRef": map[string]any{"name": keySecret}}
	}
	return map[string]any{
		"apiVersion": kustomizeVersion, "kind": "Kustomization",
		"metadata": map[string]any{"name": l.Name, "namespace": namespace},
		"spec":     spec,
	}
}

// Settled returns the revision that a Kustomization has applied and found
// ready.
func (k *kustomize) Settled(o object) string {
	var status struct {
		ObservedGeneration  int64  `json:"observedGeneration"`
		LastAppliedRevision string `json:"lastAppliedRevision"`
		Conditions          []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	}
	if len(o.Status) == 0 || json.Unmarshal(o.Status, &status) != nil || status.ObservedGeneration != o.Metadata.Generation {
		return ""
	}
	for _, condition := range status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return status.LastAppliedRevision
		}
	}
	return ""
}
