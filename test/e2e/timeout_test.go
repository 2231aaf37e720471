// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// A release that cannot be installed makes its layer Failed after the timeout,
// not sooner, in helm-controller's own words; a commit that mends it heals the
// layer.
func TestReleaseThatFailsIsNamedAfterTheTimeoutAndHeals(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]struct {
		manifest func(*fixture) string
		words    string
	}{
		"chart version": {
			manifest: func(f *fixture) string { return f.releaseWithoutChart("apps", "x") },
			words:    "HelmChart",
		},
		"chart that refuses": {
			manifest: func(f *fixture) string {
				return strings.Replace(f.configMapRelease("apps", "x"), "  values: {", "  values: {fail: it is meant to fail, ", 1)
			},
			words: "it is meant to fail",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			const timeout = 8 * time.Second
			f.push(map[string]string{"apps/release.yaml": broken.manifest(f)})
			w := f.witness()
			f.layer("apps", func(l *v1alpha1.AddonsLayer) { l.Spec.Timeout = &metav1.Duration{Duration: timeout} })
			begun := w.firstLayer("apps", "has begun", func(layer *v1alpha1.AddonsLayer) bool {
				return layer.Status.Attempt != nil
			})
			failed := w.firstLayer("apps", "is Failed", func(layer *v1alpha1.AddonsLayer) bool {
				return layer.Status.State == v1alpha1.StateFailed
			})
			took := failed.at.Sub(begun.at)
			t.Logf("Failed after %s", took.Round(time.Millisecond))
			// A status counts in whole seconds, cut off, and is seen a moment late.
			if took < timeout-3*time.Second/2 || took > timeout+promptly {
				t.Errorf("the layer was Failed after %s, with a timeout of %s", took, timeout)
			}
			f.saysWhatHelmSays("apps", timeout, broken.words)
			for _, status := range w.statuses("apps") {
				if status.Version != "" || status.Revision != "" {
					t.Errorf("a layer that has deployed nothing reports version %q of %q", status.Version, status.Revision)
				}
			}
			f.deployed("apps", f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "x")}))
		})
	}
}

// saysWhatHelmSays waits until a Failed layer names its release of the same
// name and repeats what helm-controller says of it.
func (f *fixture) saysWhatHelmSays(layer string, timeout time.Duration, words string) {
	f.Helper()
	f.eventually("the layer repeats what helm-controller says", func() error {
		said := meta.FindStatusCondition(f.release(layer).Status.Conditions, "Ready")
		if said == nil || said.Status != metav1.ConditionFalse || !strings.Contains(said.Message, words) {
			return fmt.Errorf("helm-controller says %v", said)
		}
		found := f.get(layer)
		if found.Status.State != v1alpha1.StateFailed {
			return fmt.Errorf("the layer is %s", found.Status.State)
		}
		message := readyMessage(found)
		for _, word := range []string{
			fmt.Sprintf("not deployed within %s: HelmRelease %s/%s ", timeout, f.prefix, layer), said.Message,
		} {
			if !strings.Contains(message, word) {
				return fmt.Errorf("the message lacks %q: %s", word, message)
			}
		}
		return nil
	})
}

// A healthy upgrade may take as long as Flux gives it: with the defaults a
// layer of a short interval is Applying all the while and never Failed.
func TestHealthyUpgradeThatTakesLongIsNeverFailed(t *testing.T) {
	f := newFixture(t)
	const duration = 15 * time.Second // three intervals of the layer
	manifest := func(selector string) string {
		return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: slow, namespace: %s}
spec:
  interval: 1h
  chart:
    spec: {chart: deployment, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
  values: {nodeSelector: {%s}}
`, f.prefix, f.prefix, selector)
	}
	first := f.push(map[string]string{"slow/release.yaml": manifest("")})
	f.layer("slow", func(l *v1alpha1.AddonsLayer) { l.Spec.Interval = &metav1.Duration{Duration: 5 * time.Second} })
	f.deployed("slow", first)

	w := f.witness()
	label := "example.dev/" + f.prefix
	second := f.push(map[string]string{"slow/release.yaml": manifest(label + ": ready")})
	begun := w.firstLayer("slow", "is Applying", func(layer *v1alpha1.AddonsLayer) bool {
		return layer.Status.State == v1alpha1.StateApplying
	})
	f.throughout(time.Until(begun.at.Add(duration)), "the layer is Applying", func() error {
		if layer := f.get("slow"); layer.Status.State != v1alpha1.StateApplying || layer.Status.Revision != first {
			return fmt.Errorf("it is %s at %s: %s", layer.Status.State, layer.Status.Revision, readyMessage(layer))
		}
		return nil
	})
	f.labelNodes(label)
	f.deployed("slow", second)
	if revisions := f.helmRevisions("slow"); revisions != 2 {
		t.Errorf("Helm has %d revisions: the upgrade was tried again or rolled back", revisions)
	}
	for _, status := range w.statuses("slow") {
		if status.State != v1alpha1.StateDeployed && status.State != v1alpha1.StateApplying {
			t.Errorf("the layer was %s: %v", status.State, status.Conditions)
		}
	}
}

// labelNodes gives all nodes a label, so that the pods that select it can run.
func (f *fixture) labelNodes(label string) {
	f.Helper()
	nodes := &corev1.NodeList{}
	f.must(stack.client.List(f.ctx, nodes))
	for i := range nodes.Items {
		f.patch(&nodes.Items[i], fmt.Sprintf(`{"metadata":{"labels":{%q:"ready"}}}`, label))
		f.Cleanup(func() { f.patch(&nodes.Items[i], fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label)) })
	}
}
