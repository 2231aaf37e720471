// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/leaderelection"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/bench/report"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// stopGrace is how long a system may take to end.
const stopGrace = 10 * time.Second

// placeFlags are flags of the chart's Deployment that say where in a pod things
// are, which is elsewhere for a process.
var placeFlags = []string{"--metrics-addr", "--health-addr", "--artifact-cache-dir", "--artifact-hosts"}

// strataSystem is the controller as the chart ships it: its rights, its flags
// and its limit of memory.
type strataSystem struct {
	controller *strata.Controller
	flags      []report.Flag
	version    string
	// build builds the controller, at most once for all that is measured.
	build func(context.Context) (string, error)
	// more are flags beside those of the chart.
	more []string
}

func newStrata(o *options) System {
	s := &strataSystem{build: o.buildStrata, more: slices.Clone(o.strataFlags)}
	if o.profiles != "" {
		s.more = append(s.more, "--pprof")
	}
	return s
}

// buildStrata builds the controller as it ships, once.
func (o *options) buildStrata(ctx context.Context) (string, error) {
	path := filepath.Join(o.programs, "strata")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	o.logf("builds strata")
	return strata.Build(ctx, o.programs, "-buildvcs=auto")
}

// Report returns what it is, with the flags of the chart.
func (s *strataSystem) Report() report.System {
	return report.System{
		Name: report.Strata, Flags: s.flags,
		About: "the controller with the rights and flags of its chart, one AddonsLayer for each layer",
	}
}

// Start installs the chart and runs it.
func (s *strataSystem) Start(ctx context.Context, b *bed) error {
	dir := filepath.Join(b.dir, "strata")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	binary, err := s.build(ctx)
	if err != nil {
		return err
	}
	var values map[string]any
	if b.remote != nil {
		values = map[string]any{"remoteClusters": map[string]any{"enabled": true}}
	}
	if b.work.key != nil {
		values = map[string]any{"rbac": map[string]any{
			"kinds":       []any{map[string]any{"apiGroup": "", "resources": []any{"secrets"}, "verbs": []any{"get", "list", "watch"}}},
			"impersonate": []any{map[string]any{"namespace": namespace, "names": []any{deployer}}},
		}}
	}
	identity, err := strata.Install(ctx, b.plane, values)
	if err != nil {
		return err
	}
	args, env, err := s.shipped(ctx, b)
	if err != nil {
		return err
	}
	args = append(args, s.more...)
	s.version = treeVersion(binary)
	help, err := exec.CommandContext(ctx, binary, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot ask for the controller's flags: %w", err)
	}
	s.flags = report.ParseFlags(string(help), args)
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		s.flags = append(s.flags, report.Flag{Name: name, Value: value, Given: true})
	}
	s.controller, err = strata.Prepare(strata.Options{
		Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir, Args: args, Env: env,
	})
	if err != nil {
		return err
	}
	return s.controller.Start(ctx)
}

// shipped returns the flags and the environment of the chart's Deployment,
// but for those that say where things are.
func (s *strataSystem) shipped(ctx context.Context, b *bed) (args, env []string, err error) {
	path := "/apis/apps/v1/namespaces/" + strata.Namespace + "/deployments"
	data, err := b.client.Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the chart's Deployment: %w", err)
	}
	var found appsv1.DeploymentList
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, nil, fmt.Errorf("cannot read the chart's Deployment: %w", err)
	}
	if len(found.Items) != 1 || len(found.Items[0].Spec.Template.Spec.Containers) != 1 {
		return nil, nil, fmt.Errorf("the chart installs %d Deployments, and not one with one container", len(found.Items))
	}
	container := &found.Items[0].Spec.Template.Spec.Containers[0]
	for _, arg := range container.Args {
		if name, _, _ := strings.Cut(arg, "="); !slices.Contains(placeFlags, name) {
			args = append(args, strings.ReplaceAll(arg, "$(RUNTIME_NAMESPACE)", strata.Namespace))
		}
	}
	if limit := container.Resources.Limits.Memory(); !limit.IsZero() {
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%d", limit.Value()))
	}
	return args, env, nil
}

// Program returns the commit that the controller was built of.
func (s *strataSystem) Program() report.Program {
	return report.Program{Name: report.Strata, Version: s.version}
}

// Profiles returns where the controller serves them.
func (s *strataSystem) Profiles() string {
	return strings.TrimSuffix(s.controller.MetricsURL, "/metrics") + "/debug/pprof"
}

// Kill ends the controller as a crash would.
func (s *strataSystem) Kill() error { return s.controller.Kill() }

// Restart runs it again.
func (s *strataSystem) Restart(ctx context.Context) error { return s.controller.Start(ctx) }

// Stop ends the controller.
func (s *strataSystem) Stop() error {
	if s.controller == nil {
		return nil
	}
	defer s.controller.Close()
	return s.controller.Stop(stopGrace)
}

// PIDs returns the controller's process.
func (s *strataSystem) PIDs() []int { return pidsOf(s.controller.Runner) }

// pidsOf returns the process of a runner, if it has one.
func pidsOf(runner *controlplane.Runner) []int {
	if pid := runner.PID(); pid != 0 {
		return []int{pid}
	}
	return nil
}

// User returns the name of the chart's ServiceAccount.
func (s *strataSystem) User() string {
	return "system:serviceaccount:" + strata.Namespace + ":strata"
}

// Lease is that of the controller that leads.
func (s *strataSystem) Lease() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + strata.Namespace + "/leases/" + leaderelection.GenerateID("strata.kraan.io", "")
}

// Path is where AddonsLayers are.
func (s *strataSystem) Path() string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/addonslayers"
}

// Object returns the AddonsLayer of a layer.
func (s *strataSystem) Object(l layer) any {
	object := &v1alpha1.AddonsLayer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddonsLayerKind},
		ObjectMeta: metav1.ObjectMeta{Name: l.Name},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0",
			Source:  v1alpha1.SourceSpec{Name: l.Source, Namespace: namespace, Path: l.path()},
		},
	}
	if l.Cluster != "" {
		object.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: namespace, Name: l.Cluster}
	}
	if l.Built {
		object.Spec.ServiceAccountName = deployer
		object.Spec.TargetNamespace, object.Spec.Components = namespace, []string{componentPath}
		object.Spec.PostBuild = &v1alpha1.PostBuild{Substitute: l.variables()}
		object.Spec.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.SecretName{Name: keySecret}}
	}
	for _, name := range l.DependsOn {
		object.Spec.Prereqs.DependsOn = append(object.Spec.Prereqs.DependsOn, name+"@1.0.0")
	}
	// The status is the controller's, also an empty one.
	return struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              v1alpha1.AddonsLayerSpec `json:"spec"`
	}{object.TypeMeta, object.ObjectMeta, object.Spec}
}

// Settled returns the revision that an AddonsLayer has deployed.
func (s *strataSystem) Settled(o object) string {
	var status struct {
		State              v1alpha1.State `json:"state"`
		Revision           string         `json:"revision"`
		ObservedGeneration int64          `json:"observedGeneration"`
	}
	if len(o.Status) == 0 || json.Unmarshal(o.Status, &status) != nil {
		return ""
	}
	if status.State != v1alpha1.StateDeployed || status.ObservedGeneration != o.Metadata.Generation {
		return ""
	}
	return status.Revision
}
