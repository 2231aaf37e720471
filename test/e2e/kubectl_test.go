// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// kubectl returns a command of the real kubectl as administrator.
func (f *fixture) kubectl(args ...string) *exec.Cmd {
	f.Helper()
	path, err := controlplane.Binary("kubectl")
	f.must(err)
	return exec.CommandContext(f.ctx, path, append([]string{"--kubeconfig", stack.plane.Kubeconfig()}, args...)...)
}

// kubectl wait waits for a layer on its way, and no longer than until it is
// deployed.
func TestKubectlWaitsForALayerToBeReady(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true })
	f.state("base", v1alpha1.StateHold)
	if output, err := f.kubectl("wait", "--for=condition=Ready", "al/"+f.name("base"), "--timeout=1s").CombinedOutput(); err == nil || !strings.Contains(string(output), "timed out") {
		t.Errorf("kubectl wait is content with a layer on hold: %s", output)
	}

	var output bytes.Buffer
	waiting := f.kubectl("wait", "--for=condition=Ready", "al/"+f.name("base"), "--timeout=120s")
	waiting.Stdout, waiting.Stderr = &output, &output
	f.must(waiting.Start())
	f.edit("base", `{"spec":{"hold":false}}`)
	if err := waiting.Wait(); err != nil {
		t.Fatalf("kubectl wait: %v\n%s", err, &output)
	}
	if got := f.get("base"); got.Status.State != v1alpha1.StateDeployed || got.Status.Revision != revision {
		t.Errorf("kubectl wait was content with state %s of revision %q", got.Status.State, got.Status.Revision)
	}
	// Waiting for Kraan's word gives the same answer.
	if output, err := f.kubectl("wait", "--for=condition=Deployed", "al/"+f.name("base"), "--timeout=60s").CombinedOutput(); err != nil {
		t.Errorf("kubectl wait for Deployed: %v\n%s", err, output)
	}
}

func TestKubectlWaitForAFailedLayerTimesOut(t *testing.T) {
	f := newFixture(t)
	f.push(map[string]string{"base/release.yaml": "nothing\n"})
	f.layer("base")
	f.reason("base", v1alpha1.ReasonInvalidManifest)
	output, err := f.kubectl("wait", "--for=condition=Ready", "al/"+f.name("base"), "--timeout=1s").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "timed out") {
		t.Errorf("kubectl wait: %v\n%s", err, output)
	}
	if output, err := f.kubectl("wait", "--for=condition=Stalled", "al/"+f.name("base"), "--timeout=30s").CombinedOutput(); err != nil {
		t.Errorf("kubectl wait for Stalled: %v\n%s", err, output)
	}
}

// kubectl get shows Kraan's columns under each of its short names.
func TestKubectlShowsLayersUnderTheirShortNames(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base")
	f.deployed("base", revision)
	for _, name := range []string{"al", "layer", "addonlayer", "addonslayers", "addonslayers.kraan.io"} {
		started := time.Now()
		output, err := f.kubectl("get", name, f.name("base")).CombinedOutput()
		if err != nil {
			t.Errorf("kubectl get %s after %s: %v\n%s", name, time.Since(started), err, output)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		if len(lines) != 2 {
			t.Errorf("kubectl get %s shows\n%s", name, output)
			continue
		}
		if got, want := strings.Join(strings.Fields(lines[0]), " "), "NAME VERSION SOURCE PATH STATUS MESSAGE"; got != want {
			t.Errorf("kubectl get %s has the columns %q, want %q", name, got, want)
		}
		want := fmt.Sprintf("%s 1.0.0 addons ./base Deployed version 1.0.0 of revision %s is deployed: 1 release", f.name("base"), revision)
		if got := strings.Join(strings.Fields(lines[1]), " "); got != want {
			t.Errorf("kubectl get %s shows %q, want %q", name, got, want)
		}
	}
	output, err := f.kubectl("get", "al", f.name("base"), "-o", "wide").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "REVISION") || !strings.Contains(string(output), "AGE") {
		t.Errorf("kubectl get -o wide: %v\n%s", err, output)
	}
}
