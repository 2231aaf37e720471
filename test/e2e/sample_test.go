// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// sampleRelease is a user's manifest, in the API version it was written in.
func (f *fixture) sampleRelease(name string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2beta1
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  install: {remediation: {retries: -1}}
  upgrade: {remediation: {retries: -1}}
  chart:
    spec:
      chart: podinfo
      sourceRef: {kind: HelmRepository, name: charts, namespace: %s}
      version: '>4.0.0'
  values: {podinfo: {service: {enabled: true, type: ClusterIP}, replicaCount: 1, message: podinfo}}
  interval: 1m0s
`, name, f.prefix, f.prefix)
}

// A held layer does nothing and holds up what depends on it; when the hold is
// lifted both are deployed, in order.
func TestSampleDeploysInOrder(t *testing.T) {
	f := newFixture(t)
	minute := &metav1.Duration{Duration: time.Minute}
	revision := f.push(map[string]string{
		"addons/bootstrap/podinfo.yaml": f.sampleRelease("bootstrap"),
		"addons/base/podinfo.yaml":      f.sampleRelease("base"),
	})
	f.layer("bootstrap", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Hold, l.Spec.Interval = true, minute
		l.Spec.Source.Path = "./addons/bootstrap"
		l.Spec.Prereqs.K8sVersion = "1.16"
	})
	f.layer("base", f.dependsOn("bootstrap@1.0.0"), func(l *v1alpha1.AddonsLayer) {
		l.Spec.Version, l.Spec.Interval = "1.0.1", minute
		l.Spec.Source.Path = "./addons/base"
		l.Spec.Prereqs.K8sVersion = "1.16"
	})
	f.state("bootstrap", v1alpha1.StateHold)
	f.state("base", v1alpha1.StateApplyPending, f.name("bootstrap")+"@1.0.0", "Hold")
	if !f.absent(&helmv2.HelmRelease{}, "bootstrap") || !f.absent(&helmv2.HelmRelease{}, "base") {
		t.Fatal("a held layer, or one that waits for it, has applied something")
	}

	f.edit("bootstrap", `{"spec":{"hold":false}}`)
	bootstrap := f.deployed("bootstrap", revision)
	base := f.deployed("base", revision)
	if base.Status.Version != "1.0.1" || bootstrap.Status.Version != "1.0.0" {
		t.Errorf("deployed versions are %s and %s", bootstrap.Status.Version, base.Status.Version)
	}
	first, second := f.release("bootstrap"), f.release("base")
	ready := first.Status.Conditions[0].LastTransitionTime
	for _, condition := range first.Status.Conditions {
		if condition.Type == "Ready" {
			ready = condition.LastTransitionTime
		}
	}
	if second.CreationTimestamp.Time.Before(ready.Time) {
		t.Errorf("base's release was created at %s, before bootstrap's was ready at %s", second.CreationTimestamp, ready)
	}
}
