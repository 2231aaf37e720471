// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// twoLayers install an application of version %[1]s on top of another; both tell the
// text of the input.
const twoLayers = `
  upgradesFrom: [">=0.1"]
  inputs: [{name: text, default: none}]
  layers:
  - name: base
    applications: [{name: base, application: PREFIX-app, version: %[1]s, releaseName: "${instance.name}-base", values: {data: {text: "${inputs.text}"}}}]
  - name: apps
    dependsOn: [base]
    applications: [{name: apps, application: PREFIX-app, version: %[1]s, releaseName: "${instance.name}-apps", values: {data: {text: "${inputs.text}"}}}]
`

// Two Platforms share an API server by two RemoteClusters: when one of them is
// deleted, the other keeps what it has, and works on.
func TestPlatformsShareAnEndpoint(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	f.must(far.CreateNamespace(f.ctx, f.prefix))
	for _, name := range []string{"goes", "stays"} {
		f.joined(name, far)
		f.platform(name, fmt.Sprintf("  bundle: {family: PREFIX}\n  clusters: [{name: %[1]s, namespace: PREFIX}]\n  inputs: {text: %[1]s}\n", name))
	}
	f.platformReady("goes", "1.0.0")
	f.platformReady("stays", "1.0.0")
	onFar := func(platform, layer, text string) error {
		// What is on a cluster is named after the Platform and the cluster.
		name := fmt.Sprintf("%s-%s-%s-%s", f.name(platform), f.prefix, platform, layer)
		data, err := f.configMapOn(far.client, f.prefix, name)
		if err == nil && data["text"] != text {
			return fmt.Errorf("the text of %s is %q", name, data["text"])
		}
		return err
	}
	for _, name := range []string{"goes", "stays"} {
		f.must(onFar(name, "base", name))
		f.must(onFar(name, "apps", name))
	}

	f.platformGone("goes")
	if onFar("goes", "base", "goes") == nil || onFar("goes", "apps", "goes") == nil {
		t.Error("what the Platform had is left")
	}
	f.clusterSays(types.NamespacedName{Namespace: f.prefix, Name: "stays"}, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	f.must(onFar("stays", "base", "stays"))
	f.must(onFar("stays", "apps", "stays"))
	f.editPlatform("stays", `{"spec":{"inputs":{"text":"changed"}}}`)
	f.eventually("the change arrives", func() error { return onFar("stays", "apps", "changed") })
	f.platformReady("stays", "1.0.0")
}

// What has failed is told although something else beside it still waits.
func TestPlatformTellsOfAFailureBesideWaiting(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0")
	f.application("slow", "deployment", "1.0.0")
	f.bundle("1.0.0", `
  inputs: [{name: fail, default: ""}]
  layers:
  - name: both
    timeout: 15s
    applications:
    - {name: broken, application: PREFIX-app, version: 1.0.0, values: {fail: "${inputs.fail}"}}
    - {name: waiting, application: PREFIX-slow, version: 1.0.0, values: {nodeSelector: {there-is: none}}}
`)
	f.platform("mixed", "  bundle: {family: PREFIX}\n  inputs: {fail: will-not-render}\n")
	platform := f.platformSays("mixed", v1alpha1.ReadyCondition, metav1.ConditionUnknown, f.name("mixed-both"), "HelmRelease "+f.prefix+"/broken", "will-not-render")
	if worst := platform.Status.Worst; len(worst) != 1 || !contains(worst[0].Reason, "will-not-render") {
		t.Errorf("worst off are %+v", worst)
	}
	platform = f.platformSays("mixed", v1alpha1.ReadyCondition, metav1.ConditionFalse, f.name("mixed-both"), "not deployed within 15s", "will-not-render")
	if worst := platform.Status.Worst; len(worst) != 1 || !contains(worst[0].Reason, "will-not-render") {
		t.Errorf("worst off are %+v", worst)
	}
	if got := platform.Status.Clusters; got.Failed != 1 || got.Total != 1 {
		t.Errorf("it counts clusters %+v", got)
	}
	f.state("mixed-both", v1alpha1.StateFailed, "will-not-render")
	waiting := f.release("waiting")
	for _, condition := range waiting.Status.Conditions {
		if condition.Type == "Ready" && condition.Status != metav1.ConditionUnknown {
			t.Errorf("the other does not wait: %+v", condition)
		}
	}
	f.editPlatform("mixed", `{"spec":{"inputs":{"fail":""}}}`)
	f.eventually("the other one is told of", func() error {
		found := f.getPlatform("mixed")
		if worst := found.Status.Worst; len(worst) != 1 || contains(worst[0].Reason, "will-not-render") || !contains(worst[0].Reason, "waiting") {
			return fmt.Errorf("worst off are %+v", worst)
		}
		return nil
	})
}

// An upgrade goes through the layers one after the other: the second has the new
// version only when Helm has installed it in the first.
func TestPlatformUpgradesLayerByLayer(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0", "2.0.0")
	f.bundle("1.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	f.platform("shop", "  bundle: {family: PREFIX}\n")
	f.platformReady("shop", "1.0.0")
	w := f.witness()
	f.bundle("2.0.0", fmt.Sprintf(twoLayers, "2.0.0"))
	f.editPlatform("shop", `{"spec":{"bundle":{"version":"2.0.0"}}}`)
	f.platformReady("shop", "2.0.0")
	installed := w.firstRelease("base", "is installed at 2.0.0", func(release *helmv2.HelmRelease) bool {
		latest := release.Status.History.Latest()
		return latest != nil && latest.ChartVersion == "2.0.0" && latest.Status == "deployed"
	})
	wanted := w.firstRelease("apps", "is to be at 2.0.0", func(release *helmv2.HelmRelease) bool {
		return release.Spec.Chart != nil && release.Spec.Chart.Spec.Version == "2.0.0"
	})
	w.after(wanted, installed, "the second is changed when the first is installed")
	first, second := w.firstDeployed("shop-base", "2.0.0", "2.0.0"), w.firstDeployed("shop-apps", "2.0.0", "2.0.0")
	w.after(first, installed, "the first layer is deployed when its release is installed")
	w.after(wanted, first, "the second is changed when the first layer is deployed")
	w.after(second, first, "the second layer is deployed after the first")
}

// What a published version leaves out of the one that it is entered from goes on every
// cluster without another word. Whatever else would empty a layer waits for one.
func TestPlatformDropsWhatAVersionHasLeftOut(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0")
	holding := func(name, from string, applications int) string {
		text := "  layers:\n  - name: apps\n    applications:\n"
		for i := range applications {
			text += fmt.Sprintf("    - {name: %s-%d, application: PREFIX-app, version: 1.0.0}\n", name, i)
		}
		return from + text
	}
	releases := func() int {
		list := &helmv2.HelmReleaseList{}
		f.must(stack.client.List(f.ctx, list, client.InNamespace(f.prefix)))
		return len(list.Items)
	}
	f.bundle("1.0.0", holding("app", "", 6))
	f.bundle("2.0.0", holding("app", "  upgradesFrom: [1.0.x]\n", 1))
	f.platform("shop", "  bundle: {family: PREFIX, version: 1.0.0}\n")
	f.platformReady("shop", "1.0.0")
	if got := releases(); got != 6 {
		t.Fatalf("there are %d releases", got)
	}
	f.edit("shop-apps", `{"spec":{"orphanGrace":"1s"}}`)
	f.moveTo("shop", "2.0.0")
	f.platformReady("shop", "2.0.0")
	if got := releases(); got != 1 {
		t.Errorf("%d releases are left", got)
	}

	// The same step beside what its publisher has tested.
	own := func(name string) func(*v1alpha1.AddonsLayer) {
		return func(layer *v1alpha1.AddonsLayer) {
			layer.Spec.Source = v1alpha1.SourceSpec{Kind: v1alpha1.ApplicationBundleKind, Name: f.name(name), Path: "./apps"}
		}
	}
	f.bundle("3.0.0", holding("own", "", 6))
	f.bundle("4.0.0", holding("own", "  upgradesFrom: [3.1.x]\n", 1))
	f.layer("own", own("3.0.0"))
	f.deployed("own", "3.0.0")
	f.edit("own", fmt.Sprintf(`{"spec":{"version":"4.0.0","source":{"name":%q}}}`, f.name("4.0.0")))
	f.stalled("own", v1alpha1.ReasonMassPrune, "removes 5 of the layer's 6 releases")
}

// What a bundle brings is not installed again for what is picked beside it. Where a version
// of the bundle ceases to bring it, it is handed over to what needs it, as it runs, and it
// goes with the last that needed it.
func TestPlatformPicksBesideWhatItsBundleBrings(t *testing.T) {
	f := newFixture(t)
	f.shopOnDatabase()
	f.application("own", "configmap", "1.0.0")
	const own = "{name: PREFIX-own, version: 1.0.0}"
	f.bundle("1.0.0", "  layers:\n  - name: base\n    applications: ["+own+", {name: PREFIX-db, version: 1.0.0}]\n")
	f.bundle("2.0.0", "  upgradesFrom: [1.x]\n  layers:\n  - name: base\n    applications: ["+own+"]\n")
	f.platform("shop", "  bundle: {family: PREFIX, version: 1.0.0}\n  applications: [{name: PREFIX-shop}]\n")
	found := f.platformReady("shop", "1.0.0")
	if lock := found.Status.Lock; lock == nil || len(lock.Applications) != 1 || lock.Applications[0].Name != f.name("shop") {
		t.Errorf("locked is %+v", lock)
	}
	db := &helmv2.HelmRelease{}
	ownerOf := func() string {
		if f.absent(db, f.name("db")) {
			return "nobody"
		}
		return db.Labels[v1alpha1.LayerLabel]
	}
	if got := ownerOf(); got != f.name("shop-base") {
		t.Errorf("the database belongs to %s", got)
	}
	installed := db.UID

	f.edit("shop-base", `{"spec":{"orphanGrace":"5s"}}`)
	f.moveTo("shop", "2.0.0")
	f.platformReady("shop", "2.0.0")
	f.eventually("what is picked has the database", func() error {
		if got := ownerOf(); got != f.name("shop-picked.applications") || db.UID != installed || db.DeletionTimestamp != nil {
			return fmt.Errorf("it belongs to %s, and is %s, not %s", got, db.UID, installed)
		}
		return nil
	})
	f.platformReady("shop", "2.0.0")

	f.edit("shop-picked.applications", `{"spec":{"orphanGrace":"1s"}}`)
	f.editPlatform("shop", fmt.Sprintf(`{"spec":{"applications":[{"name":%q}]}}`, f.name("own")))
	f.eventually("nobody needs the database any more", func() error {
		if got := ownerOf(); got != "nobody" {
			return fmt.Errorf("it belongs to %s", got)
		}
		return nil
	})
	if f.absent(&helmv2.HelmRelease{}, f.name("own")) {
		t.Error("what the bundle brings has gone with what was picked")
	}
}

// shopOnDatabase has the catalogue hold the application PREFIX-shop, which depends on
// PREFIX-db.
func (f *fixture) shopOnDatabase() {
	f.Helper()
	f.application("db", "configmap", "1.0.0")
	shop := &v1alpha1.HelmApplication{}
	f.written(shop, "metadata: {name: PREFIX-shop}\nspec:\n  versions:\n  - {version: 1.0.0, namespace: {name: PREFIX}, chart: {repository: {url: CHARTS, chart: configmap}}, "+
		"dependsOn: [{name: PREFIX-db, range: 1.x}]}\n")
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, shop))) })
}

// What another Platform brings to a cluster is not installed again either, and stays as
// long as somebody needs it: the Platform that brings it goes after the one that needs it.
func TestPlatformPicksBesideAnotherPlatform(t *testing.T) {
	f := newFixture(t)
	f.shopOnDatabase()
	f.bundle("1.0.0", "  layers:\n  - name: base\n    applications: [{name: PREFIX-db, version: 1.0.0}]\n")
	f.platform("infra", "  bundle: {family: PREFIX, version: 1.0.0}\n")
	f.platformReady("infra", "1.0.0")
	f.platform("shop", "  applications: [{name: PREFIX-shop}]\n")
	found := f.platformReady("shop", "")
	if lock := found.Status.Lock; lock == nil || len(lock.Applications) != 1 {
		t.Errorf("locked is %+v", lock)
	}
	db := &helmv2.HelmRelease{}
	if f.absent(db, f.name("db")) || db.Labels[v1alpha1.LayerLabel] != f.name("infra-base") {
		t.Errorf("the database is %+v", db.ObjectMeta)
	}

	f.must(stack.client.Delete(f.ctx, f.getPlatform("infra")))
	f.platformSays("infra", v1alpha1.ReadyCondition, metav1.ConditionFalse, "waits for 1 layer to be removed", f.name("shop-picked.applications"))
	f.throughout(2*time.Second, "the database stays", func() error {
		if f.absent(db, f.name("db")) || db.DeletionTimestamp != nil {
			return errors.New("it is gone")
		}
		return nil
	})
	f.must(stack.client.Delete(f.ctx, f.getPlatform("shop")))
	f.eventually("both are gone", func() error {
		for _, name := range []string{"infra", "shop"} {
			if err := stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, &v1alpha1.Platform{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there: %w", name, err)
			}
		}
		return nil
	})
	if !f.absent(db, f.name("db")) {
		t.Error("the database is left")
	}
}

// telling is a bundle's layer that tells its version, or refuses to.
func telling(version, fail string) string {
	timeout := "10m"
	if fail != "" {
		timeout = "8s" // Helm tries again and again
	}
	return fmt.Sprintf(`
  upgradesFrom: [">=0.1"]
  layers:
  - name: apps
    timeout: %s
    applications: [{name: apps, application: PREFIX-app, version: 1.0.0, values: {fail: %q, data: {text: %q}}}]
`, timeout, fail, version)
}

// Production begins after the canary, and when somebody approves. A canary that
// fails halts it; a version that mends it goes on, and one that is to be taken back
// is.
func TestPlatformStages(t *testing.T) {
	f := newFixture(t)
	canary, production := f.far(0), f.far(1)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", telling("1.0.0", ""))
	for name, far := range map[string]*farCluster{"canary": canary, "production": production} {
		f.must(far.CreateNamespace(f.ctx, f.prefix))
		f.joined(name, far, func(c *v1alpha1.RemoteCluster) { c.Labels = map[string]string{"stage": name, "of": f.prefix} })
	}
	f.platform("fleet", `
  bundle: {family: PREFIX, version: 1.0.0}
  clusterSelector: {namespace: PREFIX, matchLabels: {of: PREFIX}}
  rollout:
    stages:
    - {name: canary, selector: {matchLabels: {stage: canary}}}
    - {name: production, selector: {matchLabels: {stage: production}}, approval: true}
`)
	tells := func(on *farCluster, version string) error {
		data, err := f.configMapOn(on.client, f.prefix, "apps")
		if err == nil && data["text"] != version {
			return fmt.Errorf("it tells %q, want %q", data["text"], version)
		}
		return err
	}
	f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionUnknown, "production@1.0.0")
	f.must(tells(canary, "1.0.0"))
	if tells(production, "1.0.0") == nil {
		t.Error("production began without an approval")
	}
	f.approve("fleet", "production@1.0.0")
	f.platformReady("fleet", "1.0.0")
	f.must(tells(production, "1.0.0"))

	t.Log("production waits until it is approved")
	f.bundle("1.1.0", telling("1.1.0", ""))
	f.moveTo("fleet", "1.1.0")
	platform := f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionUnknown, "production@1.1.0")
	f.must(tells(canary, "1.1.0"))
	f.must(tells(production, "1.0.0"))
	if got := platform.Status.Clusters; got.Ready != 1 || got.Waiting != 1 {
		t.Errorf("it counts clusters %+v", got)
	}
	f.approve("fleet", "production@1.1.0")
	f.platformReady("fleet", "1.1.0")
	f.must(tells(production, "1.1.0"))

	t.Log("a canary that fails halts production, until another version mends it")
	f.bundle("1.2.0", telling("1.2.0", "is broken"))
	f.approve("fleet", "production@1.2.0, production@1.3.0, production@1.4.0")
	f.moveTo("fleet", "1.2.0")
	platform = f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionFalse, "canary", "is broken")
	if ready := f.readyOf(platform); ready.Reason != v1alpha1.ReasonHalted {
		t.Errorf("it says %+v", ready)
	}
	f.throughout(2*time.Second, "production stays", func() error { return tells(production, "1.1.0") })
	f.bundle("1.3.0", telling("1.3.0", ""))
	f.moveTo("fleet", "1.3.0")
	f.platformReady("fleet", "1.3.0")
	f.must(tells(canary, "1.3.0"))
	f.must(tells(production, "1.3.0"))

	t.Log("one that is to be taken back is")
	f.bundle("1.4.0", telling("1.4.0", "is broken again"))
	w := f.witness()
	f.editPlatform("fleet", `{"spec":{"bundle":{"version":"1.4.0"},"rollout":{"onFailure":"Rollback"}}}`)
	f.eventually("the canary is back", func() error {
		found := f.getPlatform("fleet")
		if rollout := found.Status.Rollout; rollout == nil || rollout.RolledBack != "canary" || found.Status.Clusters.Failed+found.Status.Clusters.Progressing > 0 {
			return fmt.Errorf("it says %+v", found.Status)
		}
		return tells(canary, "1.3.0")
	})
	f.must(tells(production, "1.3.0"))
	tried := map[string]bool{}
	for _, s := range w.all() {
		if layer, isLayer := s.object.(*v1alpha1.AddonsLayer); isLayer && layer.Spec.Cluster != nil && layer.Spec.Version == "1.4.0" {
			tried[layer.Spec.Cluster.Name] = true
		}
	}
	if !tried["canary"] || tried["production"] {
		t.Errorf("1.4.0 was tried on %v", tried)
	}
}

// A cluster that does not answer is counted apart, keeps nobody from anything, and
// catches up when it is back.
func TestPlatformWithAnUnreachableCluster(t *testing.T) {
	f := newFixture(t)
	near, away := f.far(0), f.far(1)
	gateway := f.gateway(away, "127.0.0.1:0")
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	for _, far := range []*farCluster{near, away} {
		f.must(far.CreateNamespace(f.ctx, f.prefix))
	}
	f.joined("near", near)
	f.kubeconfigSecret(stack.client, f.prefix, "away", kubeconfigOf(t, gateway.config))
	f.remoteCluster("away", func(c *v1alpha1.RemoteCluster) {
		c.Spec.Unreachable.After = &metav1.Duration{Duration: 2 * time.Second}
	})
	f.platform("fleet", "  bundle: {family: PREFIX, version: 1.0.0}\n  clusters: [{name: near, namespace: PREFIX}, {name: away, namespace: PREFIX}]\n  inputs: {text: first}\n")
	f.platformReady("fleet", "1.0.0")
	tells := func(on *farCluster, cluster, text string) error {
		data, err := f.configMapOn(on.client, f.prefix, fmt.Sprintf("%s-%s-%s-apps", f.name("fleet"), f.prefix, cluster))
		if err == nil && data["text"] != text {
			return fmt.Errorf("it tells %q, want %q", data["text"], text)
		}
		return err
	}
	f.must(tells(near, "near", "first"))
	f.must(tells(away, "away", "first"))

	gateway.sever()
	platform := f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionUnknown, "1 of 2 clusters cannot be reached", f.prefix+"/away")
	if got := platform.Status.Clusters; got != (v1alpha1.ClusterCount{Total: 2, Ready: 1, Unreachable: 1}) {
		t.Errorf("it counts clusters %+v", got)
	}
	f.bundle("2.0.0", fmt.Sprintf(twoLayers, "1.0.0"))
	f.editPlatform("fleet", `{"spec":{"bundle":{"version":"2.0.0"},"inputs":{"text":"second"}}}`)
	f.eventually("the other cluster has all of it", func() error {
		if got := f.getPlatform("fleet").Status; got.Version != "2.0.0" || got.Clusters != (v1alpha1.ClusterCount{Total: 2, Ready: 1, Unreachable: 1}) {
			return fmt.Errorf("it is %+v", got)
		}
		return tells(near, "near", "second")
	})
	f.must(tells(away, "away", "first"))
	gateway.join()
	f.platformReady("fleet", "2.0.0")
	f.must(tells(away, "away", "second"))
}
