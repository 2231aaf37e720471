// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Values that the layer lists reach its releases at once, long before their interval.
// What somebody else has put there does not, and why names it.
func TestChangedValuesAreSeenAtOnce(t *testing.T) {
	f := newFixture(t)
	release := strings.Replace(f.configMapRelease("base", "one"), "  values:", `  valuesFrom:
  - {kind: ConfigMap, name: listed}
  - {kind: ConfigMap, name: beside, optional: true}
  values:`, 1)
	listed := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: listed, namespace: %s}\ndata: {values.yaml: 'data: {listed: %s}'}\n", f.prefix, value)
	}
	installs := func(key, want string) {
		t.Helper()
		f.eventually("it is installed with the value "+want, func() error {
			data, err := f.configMapOn(stack.client, f.prefix, "base")
			if err == nil && data[key] != want {
				err = fmt.Errorf("it has %v", data)
			}
			return err
		})
	}
	f.must(stack.client.Create(f.ctx, valuesFile(f.prefix, "beside", "data: {beside: one}")))
	f.push(map[string]string{"base/release.yaml": release, "base/listed.yaml": listed("one")})
	f.layer("base")
	installs("listed", "one")
	f.push(map[string]string{"base/listed.yaml": listed("two")})
	installs("listed", "two")
	path, err := builtPlugin()
	f.must(err)
	asked := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	why := func() string {
		_, out := asked.run("why", f.name("base"))
		return strings.Join(strings.Fields(out), " ")
	}
	says := "a change of ConfigMap " + f.prefix + "/beside reaches HelmRelease " + f.prefix + "/base within its interval of 1h"
	if out := why(); !strings.Contains(out, says) || strings.Contains(out, "/listed reaches") {
		t.Errorf("why says\n%s", out)
	}
	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "beside"}}, `{"metadata":{"labels":{"reconcile.fluxcd.io/watch":"Enabled"}}}`)
	f.must(stack.client.Update(f.ctx, func() *corev1.ConfigMap {
		changed := valuesFile(f.prefix, "beside", "data: {beside: two}")
		changed.Labels = map[string]string{"reconcile.fluxcd.io/watch": "Enabled"}
		return changed
	}()))
	installs("beside", "two")
	if out := why(); strings.Contains(out, "a change of") {
		t.Errorf("why says\n%s", out)
	}
}

// A Platform says for all of its releases how soon what others change is taken back, and
// which labels they have.
func TestPlatformLooksAfterReleases(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	f.platform("fleet", "  bundle: {family: PREFIX}\n  layerTemplate: {labels: {team: edge}, releases: {interval: 10s}}\n")
	f.platformReady("fleet", "1.0.0")
	release := &helmv2.HelmRelease{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "apps"}, release))
	if release.Labels["team"] != "edge" || release.Spec.Interval.Seconds() != 10 || f.get("fleet-apps").Labels["team"] != "edge" {
		t.Errorf("the release has the labels %v and the interval %s", release.Labels, release.Spec.Interval.Duration)
	}
	tells := func(want string) error {
		data, err := f.configMapOn(stack.client, f.prefix, f.name("fleet-apps"))
		if err == nil && data["text"] != want {
			return fmt.Errorf("it tells %v", data)
		}
		return err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: f.name("fleet-apps")}}
	f.patch(configMap, `{"data":{"text":"changed"}}`)
	f.must(tells("changed"))
	f.eventually("it is taken back", func() error { return tells("none") })

	f.editPlatform("fleet", `{"spec":{"layerTemplate":{"releases":{"driftDetection":"Disabled"}}}}`)
	f.eventually("the release is no longer looked at", func() error {
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "apps"}, release))
		if release.Spec.DriftDetection == nil || release.Spec.DriftDetection.Mode != "disabled" {
			return fmt.Errorf("it has %+v", release.Spec.DriftDetection)
		}
		return nil
	})
	if got := f.get("fleet-apps").Spec.Releases; got == nil || got.DriftDetection != v1alpha1.DriftDetectionDisabled {
		t.Errorf("the layer has %+v", got)
	}
}
