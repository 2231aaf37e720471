// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// A layer of another cluster is installed there, and nothing of it here but what
// Flux installs from; its other objects go there, too. When it is deleted, what
// it had there goes.
func TestLayerOnRemoteCluster(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	cluster := f.joined("prod", far)
	revision := f.push(map[string]string{
		"base/release.yaml":  f.configMapRelease("base", "one"),
		"base/settings.yaml": settingsOf(f.prefix, "one"),
	})
	f.layer("base", on(cluster))
	layer := f.deployed("base", revision)

	if got := layer.Status.Cluster; got != cluster.String() {
		t.Errorf("it is deployed on %q", got)
	}
	if data, err := f.configMapOn(far.client, f.prefix, "settings"); err != nil || data["value"] != "one" {
		t.Errorf("the ConfigMap there: %v, %v", data, err)
	}
	if _, err := f.configMapOn(stack.client, f.prefix, "settings"); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap here: %v", err)
	}
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	if len(releases.Items) != 1 {
		t.Fatalf("there are %d HelmReleases", len(releases.Items))
	}
	release := releases.Items[0]
	if release.Spec.ReleaseName != "base" || release.Spec.TargetNamespace != f.prefix || release.Spec.StorageNamespace != f.prefix {
		t.Errorf("it installs %s/%s, stored in %s", release.Spec.TargetNamespace, release.Spec.ReleaseName, release.Spec.StorageNamespace)
	}
	installed := &corev1.ConfigMapList{}
	f.must(far.client.List(f.ctx, installed, client.InNamespace(f.prefix), client.MatchingLabels{"app.kubernetes.io/managed-by": "Helm"}))
	if len(installed.Items) != 1 {
		t.Errorf("Helm has installed %d ConfigMaps there", len(installed.Items))
	}
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	f.clusterHas(cluster, v1alpha1.LayerCount{Deployed: 1, Total: 1})

	f.must(stack.client.Delete(f.ctx, layer))
	f.eventually("the layer is gone", func() error {
		return isGone(stack.client.Get(f.ctx, types.NamespacedName{Name: layer.Name}, &v1alpha1.AddonsLayer{}))
	})
	if _, err := f.configMapOn(far.client, f.prefix, "settings"); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap there is left: %v", err)
	}
	f.must(far.client.List(f.ctx, installed, client.InNamespace(f.prefix), client.MatchingLabels{"app.kubernetes.io/managed-by": "Helm"}))
	if len(installed.Items) != 0 {
		t.Errorf("Helm has left %d ConfigMaps there", len(installed.Items))
	}
}

func isGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("it is there: %w", err)
}

// One directory on two clusters and at home is three layers that do not know of
// each other, sources included.
func TestOneDirectoryOnThreeClusters(t *testing.T) {
	f := newFixture(t)
	first, second := f.joined("first", f.far(0)), f.joined("second", f.far(1))
	revision := f.push(map[string]string{
		"base/source.yaml":   fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: own, namespace: %s}\nspec: {interval: 1h, url: %q}\n", f.prefix, stack.charts.URL()),
		"base/release.yaml":  strings.Replace(f.configMapRelease("base", "one"), "name: charts", "name: own", 1),
		"base/settings.yaml": settingsOf(f.prefix, "one"),
	})
	directory := func(layer *v1alpha1.AddonsLayer) { layer.Spec.Source.Path = "./base" }
	f.layer("home", directory)
	f.layer("first", directory, on(first))
	f.layer("second", directory, on(second))
	for _, layer := range []string{"home", "first", "second"} {
		f.deployed(layer, revision)
	}
	for name, cluster := range map[string]client.Client{"home": stack.client, "first": f.far(0).client, "second": f.far(1).client} {
		for _, configMap := range []string{"settings", "base"} {
			if data, err := f.configMapOn(cluster, f.prefix, configMap); err != nil || data["value"] != "one" {
				t.Errorf("ConfigMap %s of %s: %v, %v", configMap, name, data, err)
			}
		}
	}
}

// A layer that is moved to another cluster is removed from the one that it was on.
func TestLayerMovesBetweenClusters(t *testing.T) {
	f := newFixture(t)
	from, to := f.joined("from", f.far(0)), f.joined("to", f.far(1))
	files := map[string]string{"base/settings.yaml": settingsOf(f.prefix, "one")}
	// More than a revision may remove by itself.
	for i := range 5 {
		name := fmt.Sprintf("r%d", i)
		files["base/"+name+".yaml"] = f.configMapRelease(name, "one")
	}
	revision := f.push(files)
	f.layer("base", on(from))
	f.deployed("base", revision)

	check := func(layer *v1alpha1.AddonsLayer, has, hasNot client.Client, cluster string) {
		t.Helper()
		if layer.Status.Cluster != cluster {
			t.Errorf("it says that it is on %q", layer.Status.Cluster)
		}
		for _, name := range []string{"settings", "r0", "r4"} {
			if data, err := f.configMapOn(has, f.prefix, name); err != nil || data["value"] != "one" {
				t.Errorf("%s where it is now: %v, %v", name, data, err)
			}
			_, err := f.configMapOn(hasNot, f.prefix, name)
			if isGone(err) != nil {
				t.Errorf("%s where it was: %v", name, err)
			}
		}
	}
	f.edit("base", fmt.Sprintf(`{"spec":{"cluster":{"namespace":%q,"name":"to"}}}`, f.prefix))
	check(f.deployed("base", revision), f.far(1).client, f.far(0).client, to.String())
	f.edit("base", `{"spec":{"cluster":null}}`)
	check(f.deployed("base", revision), stack.client, f.far(1).client, "")
}

// A kubeconfig of its own in a release of such a layer is refused, with the file.
func TestKubeConfigInGitIsRefused(t *testing.T) {
	f := newFixture(t)
	cluster := f.joined("refuses", f.far(0))
	f.push(map[string]string{"base/release.yaml": strings.Replace(f.configMapRelease("base", "one"), "interval: 1h", "interval: 1h\n  kubeConfig: {secretRef: {name: mine}}", 1)})
	f.layer("base", on(cluster))
	f.reason("base", v1alpha1.ReasonInvalidManifest, "base/release.yaml:1: spec.kubeConfig", "remove it")
}
