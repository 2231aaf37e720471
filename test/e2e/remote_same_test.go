// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// placed is a fixture with a cluster that its layers belong on: the one that
// Strata runs in, or another one.
type placed struct {
	*fixture
	there client.Client
	on    func(*v1alpha1.AddonsLayer)
}

// everywhere runs a test at home and on another cluster.
func everywhere(t *testing.T, test func(p placed)) {
	t.Parallel()
	t.Run("home", func(t *testing.T) {
		f := newFixture(t)
		test(placed{fixture: f, there: stack.client, on: func(*v1alpha1.AddonsLayer) {}})
	})
	t.Run("remote", func(t *testing.T) {
		f := newFixture(t)
		far := f.far(0)
		f.must(far.CreateNamespace(f.ctx, f.prefix))
		test(placed{fixture: f, there: far.client, on: on(f.joined("there", far))})
	})
}

// helmRelease returns the HelmRelease that installs a Helm release.
func (p placed) helmRelease(name string) *helmv2.HelmRelease {
	p.Helper()
	list := &helmv2.HelmReleaseList{}
	p.must(stack.client.List(p.ctx, list, client.InNamespace(p.prefix)))
	for i := range list.Items {
		if list.Items[i].GetReleaseName() == name {
			return &list.Items[i]
		}
	}
	p.Fatalf("no HelmRelease installs %s", name)
	return nil
}

// holds waits until a ConfigMap of the cluster has a value.
func (p placed) holds(name, value string) *corev1.ConfigMap {
	p.Helper()
	found := &corev1.ConfigMap{}
	p.eventually(fmt.Sprintf("ConfigMap %s holds %s", name, value), func() error {
		if err := p.there.Get(p.ctx, types.NamespacedName{Namespace: p.prefix, Name: name}, found); err != nil {
			return err
		}
		if found.Data["value"] != value {
			return fmt.Errorf("it holds %v", found.Data)
		}
		return nil
	})
	return found
}

// lacks waits until the cluster has no such ConfigMap.
func (p placed) lacks(name string) {
	p.Helper()
	p.eventually("ConfigMap "+name+" is gone", func() error {
		_, err := p.configMapOn(p.there, p.prefix, name)
		return isGone(err)
	})
}

func (p placed) patchThere(name, patch string) {
	p.Helper()
	p.must(p.there.Patch(p.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.prefix, Name: name}}, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// both returns the files of a layer with a release and a ConfigMap.
func (p placed) both(layer, value string) map[string]string {
	return map[string]string{layer + "/release.yaml": p.configMapRelease("app", value), layer + "/settings.yaml": settingsOf(p.prefix, value)}
}

func TestDriftIsTakenBackEverywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		revision := p.push(p.both("base", "one"))
		p.layer("base", p.on)
		p.deployed("base", revision)
		p.patchThere("settings", `{"data":{"value":"by hand"}}`)
		p.holds("settings", "one")
		p.patch(p.helmRelease("app"), `{"spec":{"values":{"data":{"value":"by hand"}}}}`)
		p.eventually("the release is as it was", func() error {
			if values := string(p.helmRelease("app").Spec.Values.Raw); values != `{"data":{"value":"one"}}` {
				return fmt.Errorf("its values are %s", values)
			}
			return nil
		})
		p.must(p.there.Delete(p.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.prefix, Name: "settings"}}))
		p.holds("settings", "one")
		p.deployed("base", revision)
	})
}

func TestWhatLeavesIsRemovedEverywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		files := p.both("base", "one")
		files["base/stays.yaml"] = p.configMapRelease("stays", "one")
		p.deployedFiles("base", files)
		p.remove("base/release.yaml", "base/settings.yaml")
		p.lacks("app")
		p.lacks("settings")
		p.holds("stays", "one")
		p.state("base", v1alpha1.StateDeployed)
	})
}

// deployedFiles deploys files as a layer.
func (p placed) deployedFiles(layer string, files map[string]string) *v1alpha1.AddonsLayer {
	p.Helper()
	revision := p.push(files)
	p.layer(layer, p.on)
	return p.deployed(layer, revision)
}

func TestAdoptionUninstallsNothingAnywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		p.deployedFiles("one", map[string]string{
			"one/release.yaml": p.configMapRelease("app", "one"), "one/settings.yaml": settingsOf(p.prefix, "one"), "one/stays.yaml": p.configMapRelease("stays", "one"),
			"two/other.yaml": p.configMapRelease("other", "one"),
		})
		p.layer("two", p.on)
		p.state("two", v1alpha1.StateDeployed)
		release, installed, settings := p.helmRelease("app").UID, p.holds("app", "one").UID, p.holds("settings", "one").UID

		_, err := p.repo.Remove("move", "one/release.yaml", "one/settings.yaml")
		p.must(err)
		revision := p.push(map[string]string{"two/release.yaml": p.configMapRelease("app", "one"), "two/settings.yaml": settingsOf(p.prefix, "one")})
		p.deployed("one", revision)
		p.deployed("two", revision)
		if got := p.helmRelease("app"); got.UID != release || got.Labels[v1alpha1.LayerLabel] != p.name("two") {
			p.Errorf("the release is another one, or has the labels %v", got.Labels)
		}
		if got := p.holds("app", "one"); got.UID != installed {
			p.Error("what it had installed was uninstalled")
		}
		if got := p.holds("settings", "one"); got.UID != settings || got.Labels[v1alpha1.LayerLabel] != p.name("two") {
			p.Errorf("the ConfigMap is another one, or has the labels %v", got.Labels)
		}
	})
}

func TestTwoLayersOfOneObjectAreRefusedEverywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		p.deployedFiles("one", map[string]string{"one/settings.yaml": settingsOf(p.prefix, "one"), "two/settings.yaml": settingsOf(p.prefix, "two")})
		p.layer("two", p.on)
		p.reason("two", v1alpha1.ReasonOwnershipConflict, "two/settings.yaml", "one/settings.yaml")
		p.holds("settings", "one")
	})
}

func TestHoldStopsAllEverywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		p.deployedFiles("base", p.both("base", "one"))
		p.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":"freeze","kraan.io/hold-releases":"true"}}}`)
		p.state("base", v1alpha1.StateHold)
		p.eventually("its release is suspended", func() error {
			if !p.helmRelease("app").Spec.Suspend {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		revision := p.push(p.both("base", "two"))
		p.patchThere("settings", `{"data":{"value":"by hand"}}`)
		p.state("base", v1alpha1.StateHold)
		p.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
		p.deployed("base", revision)
		p.holds("settings", "two")
		p.holds("app", "two")
	})
}

func TestDeletedLayerLeavesNothingAnywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		layer := p.deployedFiles("base", p.both("base", "one"))
		p.must(stack.client.Delete(p.ctx, layer))
		p.eventually("the layer is gone", func() error {
			return isGone(stack.client.Get(p.ctx, types.NamespacedName{Name: layer.Name}, &v1alpha1.AddonsLayer{}))
		})
		p.lacks("app")
		p.lacks("settings")
		list := &helmv2.HelmReleaseList{}
		p.must(stack.client.List(p.ctx, list, client.InNamespace(p.prefix)))
		if len(list.Items) > 0 {
			p.Errorf("%d HelmReleases are left", len(list.Items))
		}
	})
}

func TestOrphanedLayerLeavesAllEverywhere(t *testing.T) {
	everywhere(t, func(p placed) {
		layer := p.deployedFiles("base", p.both("base", "one"))
		p.edit("base", `{"spec":{"deletionPolicy":"Orphan"}}`)
		p.must(stack.client.Delete(p.ctx, layer))
		p.eventually("the layer is gone", func() error {
			return isGone(stack.client.Get(p.ctx, types.NamespacedName{Name: layer.Name}, &v1alpha1.AddonsLayer{}))
		})
		p.holds("app", "one")
		if labels := p.holds("settings", "one").Labels; labels[v1alpha1.LayerLabel] != "" {
			p.Errorf("the ConfigMap has an owner: %v", labels)
		}
	})
}
