// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
	"github.com/strata-project/strata/test/strata"
)

// chainOfRestarts are the layers of the tests below, each after the one before.
var chainOfRestarts = []string{"base", "mesh", "apps"}

// chainFiles returns three releases for each layer, with a value.
func (f *fixture) chainFiles(value string) map[string]string {
	files := map[string]string{}
	for _, layer := range chainOfRestarts {
		for i := range 3 {
			name := fmt.Sprintf("%s-%d", layer, i)
			files[layer+"/"+name+".yaml"] = f.configMapRelease(name, value)
		}
	}
	return files
}

// chain makes the layers.
func (f *fixture) chain(options ...func(*v1alpha1.AddonsLayer)) {
	f.Helper()
	f.layer("base", options...)
	f.layer("mesh", append(options, f.dependsOn("base@1.0.0"))...)
	f.layer("apps", append(options, f.dependsOn("mesh@1.0.0"))...)
}

func (f *fixture) chainDeployed(revision string) {
	f.Helper()
	for _, layer := range chainOfRestarts {
		f.deployed(layer, revision)
	}
}

// uids returns the identities of the releases.
func (f *fixture) uids() map[string]types.UID {
	f.Helper()
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	found := map[string]types.UID{}
	for _, release := range releases.Items {
		found[release.Name] = release.UID
	}
	return found
}

// stillThere checks that releases are those that they were.
func (f *fixture) stillThere(before map[string]types.UID) {
	f.Helper()
	now := f.uids()
	for name, uid := range before {
		if now[name] != uid {
			f.Errorf("release %s was %s and is %q", name, uid, now[name])
		}
	}
}

// begun waits until the roll-out of a value has reached a release.
func (f *fixture) begun(release, value string) {
	f.Helper()
	f.eventually("the roll-out reaches "+release, func() error {
		if f.absent(&helmv2.HelmRelease{}, release) {
			return errors.New("it does not exist")
		}
		if data, _ := f.values(release)["data"].(map[string]any); data["value"] != value {
			return fmt.Errorf("its values are %v", data)
		}
		return nil
	})
}

// crash kills a controller and starts it again.
func (f *fixture) crash(controller *strata.Controller) {
	f.Helper()
	f.must(controller.Kill())
	f.must(controller.Start(f.ctx))
}

// A controller that is killed again and again in the middle of a roll-out goes
// on where it was: nothing is installed twice, nothing is told twice.
func TestKilledControllerGoesOnWithTheRollOut(t *testing.T) {
	f := newFixture(t)
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	revision := f.push(f.chainFiles("one"))
	f.chain(f.own)
	for _, release := range []string{"base-0", "mesh-0", "apps-0"} {
		f.begun(release, "one")
		before := f.uids()
		f.crash(controller)
		f.stillThere(before)
	}
	f.chainDeployed(revision)
	f.toldOnce(revision, chainOfRestarts...)

	before := f.uids()
	for i := range 3 {
		value := fmt.Sprintf("upgrade %d", i)
		revision = f.push(f.chainFiles(value))
		f.begun(chainOfRestarts[i]+"-0", value)
		f.crash(controller)
	}
	f.chainDeployed(revision)
	f.stillThere(before)
}

// The same for a commit that removes a release, moves one to another layer and
// renames a third: the removed one goes, the others are never uninstalled.
func TestKilledControllerDeletesNothingThatShouldStay(t *testing.T) {
	f := newFixture(t)
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	files := f.chainFiles("one")
	revision := f.push(files)
	f.chain(f.own)
	f.chainDeployed(revision)
	before := f.uids()
	made := f.footprints()

	moved := files["base/base-1.yaml"]
	_, err := f.repo.Remove("remove and move", "base/base-1.yaml", "base/base-2.yaml")
	f.must(err)
	revision = f.push(map[string]string{"apps/base-1.yaml": moved})
	f.eventually("the removed release is marked", func() error {
		release := &helmv2.HelmRelease{}
		if f.absent(release, "base-2") || release.Labels[v1alpha1.OrphanedLabel] != "" {
			return nil
		}
		return fmt.Errorf("its labels are %v", release.Labels)
	})
	f.crash(controller)
	f.chainDeployed(revision)
	f.crash(controller)
	f.eventually("the removed release is uninstalled", func() error {
		if !f.absent(&helmv2.HelmRelease{}, "base-2") || f.configMap("base-2") != nil {
			return errors.New("it is still there")
		}
		return nil
	})
	delete(before, "base-2")
	f.stillThere(before)
	if owner := f.release("base-1").Labels[v1alpha1.LayerLabel]; owner != f.name("apps") {
		t.Errorf("the moved release belongs to layer %q", owner)
	}
	if now := f.footprints()["base-1"].Made; now != made["base-1"].Made {
		t.Errorf("what the moved release installed was %s and is %s", made["base-1"].Made, now)
	}
}

// The signal to end is obeyed within seconds, in the middle of a roll-out, and
// is no failure.
func TestTerminatedControllerEndsInTheMiddleOfARollOut(t *testing.T) {
	f := newFixture(t)
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	revision := f.push(f.chainFiles("one"))
	f.chain(f.own)
	f.begun("base-0", "one")
	began := time.Now()
	f.must(controller.Stop(patience))
	if took := time.Since(began); took > promptly {
		t.Errorf("it took %s to end", took)
	}
	if code := controller.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	before := f.uids()
	f.must(controller.Start(f.ctx))
	f.chainDeployed(revision)
	f.stillThere(before)
	f.toldOnce(revision, chainOfRestarts...)
}

// reconciles returns how often a controller has looked at layers, by its own
// metrics.
func (f *fixture) reconciles(controller *strata.Controller) int {
	f.Helper()
	request, err := http.NewRequestWithContext(f.ctx, http.MethodGet, controller.MetricsURL, http.NoBody)
	f.must(err)
	response, err := http.DefaultClient.Do(request)
	f.must(err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	f.must(err)
	total := 0
	for _, found := range regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="addonslayer".*\} (\d+)$`).FindAllSubmatch(body, -1) {
		count, err := strconv.Atoi(string(found[1]))
		f.must(err)
		total += count
	}
	return total
}

// Of two controllers with leader election one acts; the other is ready all the
// time and takes over when the first one ends, or is killed.
func TestOnlyTheLeaderActs(t *testing.T) {
	f := newFixture(t)
	first, second := f.controller(testedBinary, quickLead...), f.controller(testedBinary, quickLead...)
	f.must(first.Start(f.ctx))
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", f.own)
	f.deployed("base", revision)
	f.must(second.Start(f.ctx))

	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.deployed("base", revision)
	f.throughout(2*time.Second, "only the first one looks at layers", func() error {
		if leader, other := f.reconciles(first), f.reconciles(second); leader == 0 || other != 0 {
			return fmt.Errorf("the leader has looked %d times, the other one %d times", leader, other)
		}
		return nil
	})

	f.must(first.Kill())
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "three")})
	f.deployed("base", revision)
	f.must(first.Start(f.ctx))
	f.must(second.Stop(patience))
	if code := second.ExitCode(); code != 0 {
		t.Errorf("the leader ended with exit code %d", code)
	}
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "four")})
	f.deployed("base", revision)
}

// A controller with --watch-label-selector leaves other layers alone, and sees
// at once when a layer becomes its own or another's.
func TestControllerLooksAfterTheLayersOfItsSelectorOnly(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", func(l *v1alpha1.AddonsLayer) { l.Labels = map[string]string{ownController: "nobody"} })
	f.throughout(2*time.Second, "the layer of nobody is left alone", func() error {
		if layer := f.get("base"); len(layer.Finalizers) > 0 || layer.Status.State != "" {
			return fmt.Errorf("finalizers %v, state %s", layer.Finalizers, layer.Status.State)
		}
		return nil
	})
	f.edit("base", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, ownController))
	f.deployed("base", revision)

	// The suite's controller leaves it to the test's own, which goes on.
	f.edit("base", fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, ownController, f.prefix))
	before := f.uids()
	revision = f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	f.throughout(2*time.Second, "the layer is left alone", func() error {
		if layer := f.get("base"); layer.Status.Revision == revision {
			return errors.New("the suite's controller has deployed it")
		}
		return nil
	})
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	f.deployed("base", revision)
	f.stillThere(before)
}

// The same goes for RemoteClusters; layers are put on those of others, too, and
// two controllers do not both write and tell of one.
func TestControllerLooksAfterTheClustersOfItsSelectorOnly(t *testing.T) {
	f := newFixture(t)
	far := f.far(0)
	f.kubeconfigSecret(stack.client, f.prefix, "prod", far.kubeconfig(t))
	cluster := f.remoteCluster("prod", func(c *v1alpha1.RemoteCluster) { c.Labels = map[string]string{ownController: "nobody"} })
	revision := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	f.throughout(3*time.Second, "the RemoteCluster of nobody is left alone", func() error {
		found := &v1alpha1.RemoteCluster{}
		if err := stack.client.Get(f.ctx, cluster, found); err != nil {
			return err
		}
		if len(found.Finalizers) > 0 || len(found.Status.Conditions) > 0 || len(found.Status.Resources) > 0 {
			return fmt.Errorf("finalizers %v, status %+v", found.Finalizers, found.Status)
		}
		return nil
	})
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, ownController))
	f.must(stack.client.Patch(f.ctx, &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}, patch))
	f.clusterSays(cluster, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable)

	// The suite's controller looks after the RemoteCluster, and the test's own after
	// the layer on it.
	f.layer("base", on(cluster), func(l *v1alpha1.AddonsLayer) { l.Labels = map[string]string{ownController: f.prefix} })
	f.deployed("base", revision)
	f.deleteLayer("base")
	f.layerGone("base")
	log, err := os.ReadFile(controller.Log())
	f.must(err)
	if told := strings.Count(string(log), `"object":{"name":"prod","namespace":"`+f.prefix+`"}`); told > 0 {
		t.Errorf("the test's own controller told of the RemoteCluster %d times", told)
	}
}

// disturb is for tests that take the control plane's programs away. They run
// alone.
func (f *fixture) disturb() {
	f.Helper()
	if !stack.plane.Managed() {
		f.Skip("the programs of this cluster cannot be restarted")
	}
}

// A restart of the API server in the middle of a roll-out delays it.
func TestRolloutSurvivesARestartOfTheAPIServer(t *testing.T) {
	f := newSerialFixture(t)
	f.disturb()
	revision := f.push(f.chainFiles("one"))
	f.chain()
	f.begun("mesh-0", "one")
	before := f.uids()
	f.must(stack.plane.KillComponent(controlplane.APIServer))
	f.must(stack.plane.StartComponent(f.ctx, controlplane.APIServer))
	f.chainDeployed(revision)
	f.stillThere(before)
	f.toldOnce(revision, chainOfRestarts...)
}

// source-controller away: what is deployed stays, even for a controller that
// starts without a cache; a roll-out that needs it goes on when it is back.
func TestRolloutSurvivesARestartOfSourceController(t *testing.T) {
	f := newSerialFixture(t)
	f.disturb()
	controller := f.controller(testedBinary)
	f.must(controller.Start(f.ctx))
	revision := f.push(f.chainFiles("one"))
	f.chain(f.own)
	f.begun("mesh-0", "one")
	uids := f.uids()
	f.must(stack.plane.KillComponent(controlplane.SourceController))
	f.must(stack.plane.StartComponent(f.ctx, controlplane.SourceController))
	f.chainDeployed(revision)
	f.stillThere(uids)
	f.toldOnce(revision, chainOfRestarts...)

	before := f.footprints()
	f.must(stack.plane.KillComponent(controlplane.SourceController))
	f.must(controller.Kill())
	f.must(os.RemoveAll(filepath.Join(filepath.Dir(controller.Log()), "artifacts")))
	f.must(controller.Start(f.ctx))
	f.eventually("the layers say that the artifact cannot be fetched", func() error {
		for _, layer := range chainOfRestarts {
			found := f.get(layer)
			if !meta.IsStatusConditionFalse(found.Status.Conditions, v1alpha1.SourceReadyCondition) {
				return fmt.Errorf("layer %s: %v", layer, found.Status.Conditions)
			}
			if found.Status.State != v1alpha1.StateDeployed {
				f.Fatalf("layer %s is %s: %s", layer, found.Status.State, readyMessage(found))
			}
		}
		return nil
	})
	f.untouched(before)
	f.must(stack.plane.StartComponent(f.ctx, controlplane.SourceController))
	f.eventually("the layers are well again", func() error {
		for _, layer := range chainOfRestarts {
			if found := f.get(layer); meta.FindStatusCondition(found.Status.Conditions, v1alpha1.SourceReadyCondition) != nil {
				return fmt.Errorf("layer %s: %v", layer, found.Status.Conditions)
			}
		}
		return nil
	})
	f.untouched(before)
}
