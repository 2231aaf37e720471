// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test tests Strata against a real API server and the real Flux
// controllers, as a process with nothing but the rights of its chart.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/reads"
	"github.com/strata-project/strata/test/strata"
)

// stack is what all tests of the package share.
var stack struct {
	plane      *controlplane.ControlPlane
	git        *controlplane.GitServer
	charts     *controlplane.ChartServer
	oci        *controlplane.OCIServer
	buckets    *controlplane.S3Server
	controller *strata.Controller
	client     client.WithWatch
	conformity *conformity
	// kustomize is Flux's kustomize-controller; nil where no test needs it.
	kustomize *controlplane.Runner
}

// kindsOfTheSuite are the kinds that the layers of the tests hold beside those
// that the chart allows anyway.
var kindsOfTheSuite = []any{
	map[string]any{"apiGroup": "", "resources": []any{"configmaps", "serviceaccounts"}},
	map[string]any{"apiGroup": "example.dev", "resources": []any{"widgets"}},
	map[string]any{"apiGroup": groupBeside, "resources": []any{"gadgets"}},
	map[string]any{"apiGroup": groupEarlier, "resources": []any{"gadgets"}},
	map[string]any{"apiGroup": groupLater, "resources": []any{"gadgets"}},
	map[string]any{"apiGroup": groupOwned, "resources": []any{"boxes", "crates", "kegs", "tins", "jars", "cups"}},
	map[string]any{"apiGroup": groupMoving, "resources": []any{"movers", "leavers"}},
	map[string]any{"apiGroup": "", "resources": []any{"persistentvolumeclaims", "resourcequotas", "services"}},
	map[string]any{"apiGroup": "apps", "resources": []any{"statefulsets"}},
	map[string]any{"apiGroup": "batch", "resources": []any{"jobs"}},
	map[string]any{"apiGroup": "cluster.x-k8s.io", "resources": []any{"clusters"}},
	map[string]any{"apiGroup": "postgresql.cnpg.io", "resources": []any{"clusters"}},
	map[string]any{"apiGroup": "apiextensions.k8s.io", "resources": []any{"customresourcedefinitions"}},
}

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, controlplane.Options{HelmConcurrency: 20, After: tearDown}, setUp))
}

func setUp(plane *controlplane.ControlPlane) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	stack.plane = plane
	scheme, err := strata.Scheme(apiextensionsv1.AddToScheme)
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
	if stack.oci, err = controlplane.NewOCIServer(); err != nil {
		return err
	}
	if stack.buckets, err = controlplane.NewS3Server(); err != nil {
		return err
	}
	for name, versions := range map[string][]string{
		"podinfo": {"5.0.0", "6.0.0"}, "configmap": {"1.0.0", "2.0.0"}, "deployment": {"1.0.0"}, "crd": {"1.0.0"}, "widget": {"1.0.0"}, "cluster": {"1.0.0"},
	} {
		if err := stack.charts.AddBuiltin(name, versions...); err != nil {
			return err
		}
	}
	if err := alertOnLayers(ctx); err != nil {
		return err
	}
	return startController(ctx)
}

// alertOnLayers lets Alerts name layers, with the patch that users apply, where
// the suite's controller tells the notification-controller.
func alertOnLayers(ctx context.Context) error {
	if stack.plane.EventsURL() == "" {
		return nil
	}
	const patched = "../../config/notification/alert-kinds.yaml"
	reads.Add(patched)
	text, err := os.ReadFile(patched)
	if err != nil {
		return err
	}
	patch, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("the patch of the Alert CRD is no YAML: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "alerts.notification.toolkit.fluxcd.io"}}
	if err := stack.client.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("cannot patch the Alert CRD: %w", err)
	}
	return nil
}

// startController installs the chart and runs a controller as the chart's
// ServiceAccount. With STRATA_RACE=1 it looks for races, as those controllers always do
// that tests run themselves: the detector takes several times the CPU time.
func startController(ctx context.Context) error {
	identity, err := strata.Install(ctx, stack.plane, map[string]any{
		"rbac": map[string]any{"kinds": kindsOfTheSuite, "impersonate": accountsOfTheSuite}, "remoteClusters": map[string]any{"enabled": true},
		"capabilities": map[string]any{"enabled": true},
	})
	if err != nil {
		return err
	}
	if stack.conformity, err = watchConformity(stack.client); err != nil {
		return err
	}
	dir := filepath.Join(stack.plane.Dir(), "strata")
	for _, folder := range []string{dir, capabilityPlugins()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	binary, err := testedBinary()
	if err != nil {
		return err
	}
	stack.controller, err = strata.Prepare(strata.Options{
		Binary: binary, Kubeconfig: identity.Kubeconfig, Dir: dir,
		// make nightly sets it: client-go compares all that is in a cache every second, and
		// ends the process where something has changed it. The tests of the controllers
		// have it always.
		Env: []string{"KUBE_CACHE_MUTATION_DETECTOR=" + os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")},
		Args: []string{
			"--log-level", "debug", "--watch-label-selector", "!" + ownController, "--events-addr", stack.plane.EventsURL(),
			"--plugin-processes", capabilityPlugins(), "--plugin-process-images", strings.TrimSuffix(strings.TrimPrefix(stack.oci.URL(""), "oci://"), "/"),
			"--plugin-cache", filepath.Join(stack.plane.Dir(), "plugin-cache"),
		},
	})
	if err != nil {
		return err
	}
	return stack.controller.Start(ctx)
}

// capabilityPlugins is the folder of the programs that serve capabilities.
func capabilityPlugins() string { return filepath.Join(stack.plane.Dir(), "capability-plugins") }

// tearDown stops what setUp has started, and fails when a status did not
// conform or the controller has data races.
func tearDown() error {
	var problems []error
	if stack.controller != nil {
		problems = append(problems, stack.controller.Stop(30*time.Second), stack.conformity.report(), stack.controller.Races())
		stack.controller.Close()
	}
	if stack.kustomize != nil {
		problems = append(problems, stack.kustomize.Stop(5*time.Second))
	}
	if stack.charts != nil {
		problems = append(problems, stack.charts.Close())
	}
	if stack.oci != nil {
		problems = append(problems, stack.oci.Close())
	}
	if stack.buckets != nil {
		problems = append(problems, stack.buckets.Close())
	}
	if stack.git != nil {
		problems = append(problems, stack.git.Close())
	}
	problems = append(problems, stopFar())
	return errors.Join(problems...)
}
