// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// fromSource makes a layer come from another source of the fixture's namespace.
func fromSource(name string) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) { layer.Spec.Source.Name = name }
}

// source creates a GitRepository in the fixture's namespace.
func (f *fixture) source(name, url string) *sourcev1.GitRepository {
	f.Helper()
	source := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: name},
		Spec: sourcev1.GitRepositorySpec{
			URL: url, Interval: metav1.Duration{Duration: time.Hour},
			Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}
	f.must(stack.client.Create(f.ctx, source))
	return source
}

func TestKubernetesVersionThatIsMetPasses(t *testing.T) {
	f := newFixture(t)
	wanted := map[string]string{"plain": "1.16", "prefixed": "v1.16", "range": ">=1.30 <2"}
	files := map[string]string{}
	for name := range wanted {
		files[name+"/release.yaml"] = f.configMapRelease(name, "x")
	}
	revision := f.push(files)
	w := f.witness()
	for name, version := range wanted {
		f.layer(name, func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = version })
	}
	for name, version := range wanted {
		f.deployed(name, revision)
		for _, status := range w.statuses(name) {
			if status.State == v1alpha1.StateK8sVersion {
				t.Errorf("k8sVersion %q waited: %v", version, status.Conditions)
			}
		}
	}
}

// A layer that wants a version to come waits for it: that is no error, and no
// look at it fails.
func TestKubernetesVersionToComeIsWaitedForWithoutError(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"future/release.yaml": f.configMapRelease("future", "x")})
	w := f.witness()
	f.layer("future", func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = "v99.0" })
	layer := f.state("future", v1alpha1.StateK8sVersion, "waits for Kubernetes v99.0: the cluster is at v1.")
	if stalled := condition(layer, v1alpha1.StalledCondition); stalled.Status == metav1.ConditionTrue {
		t.Errorf("it is stalled: %v", stalled)
	}
	f.throughout(3*time.Second, "the layer waits", func() error {
		if state := f.get("future").Status.State; state != v1alpha1.StateK8sVersion {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	if !f.absent(&helmv2.HelmRelease{}, "future") {
		t.Error("a release was applied")
	}
	if errs := f.errorsLogged("future"); len(errs) > 0 {
		t.Errorf("the controller reports errors:\n%s", strings.Join(errs, "\n"))
	}
	for _, status := range w.statuses("future") {
		if status.State == v1alpha1.StateFailed {
			t.Errorf("the layer was Failed: %v", status.Conditions)
		}
	}
	f.edit("future", `{"spec":{"prereqs":{"k8sVersion":"1.30"}}}`)
	f.deployed("future", revision)
}

// errorsLogged returns what the controller's log says of a layer as an error.
func (f *fixture) errorsLogged(layer string) []string {
	f.Helper()
	content, err := os.ReadFile(stack.controller.Log())
	f.must(err)
	var found []string
	mentioned := false
	for line := range bytes.Lines(content) {
		if bytes.Contains(line, []byte(f.name(layer))) {
			mentioned = true
			if bytes.Contains(line, []byte(`"level":"error"`)) {
				found = append(found, string(line))
			}
		}
	}
	if !mentioned {
		f.Errorf("the controller's log does not mention layer %s", layer)
	}
	return found
}

func TestSourceThatIsMissingIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	commit := f.commit(map[string]string{"late/release.yaml": f.configMapRelease("late", "x")})
	f.layer("late", fromSource("later"))
	f.reason("late", v1alpha1.ReasonSourceNotFound, "GitRepository "+f.prefix+"/later, which does not exist")
	f.state("late", v1alpha1.StatePending)
	f.source("later", f.repo.URL())
	f.deployed("late", controlplane.Branch+"@sha1:"+commit)
}

func TestSourceWithoutArtifactIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	repo, err := stack.git.NewRepo(f.prefix + "-empty")
	f.must(err)
	source := f.source("empty", repo.URL())
	f.layer("late", fromSource("empty"))
	f.reason("late", v1alpha1.ReasonSourceNotReady, "GitRepository "+f.prefix+"/empty, which has no artifact yet: ")
	f.state("late", v1alpha1.StatePending)
	commit, err := repo.Commit("first", map[string]string{"late/release.yaml": f.configMapRelease("late", "x")})
	f.must(err)
	f.patch(source, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"first"}}}`)
	f.deployed("late", controlplane.Branch+"@sha1:"+commit)
}

// A layer that is moved to a new version together with its source waits until
// the source has fetched what it is specified to be now: the old artifact is
// never reported as the new version. Nothing runs beside the test, because it
// takes source-controller away.
func TestSourceThatHasNotSeenItsNewGenerationIsWaitedFor(t *testing.T) {
	f := newSerialFixture(t)
	if !stack.plane.Managed() {
		t.Skip("needs to stop source-controller")
	}
	first := f.push(map[string]string{"apps/release.yaml": f.configMapRelease("apps", "first")})
	f.layer("apps")
	f.deployed("apps", first)
	w := f.witness()
	commit := f.commit(map[string]string{
		"apps/release.yaml":     f.configMapRelease("apps", "second"),
		"newcomer/release.yaml": f.configMapRelease("newcomer", "x"),
	})
	f.must(f.repo.Tag("v2"))

	f.must(stack.plane.StopComponent(controlplane.SourceController))
	t.Cleanup(func() { f.must(stack.plane.StartComponent(f.ctx, controlplane.SourceController)) })
	f.patch(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "addons"}},
		`{"spec":{"ref":{"branch":null,"tag":"v2"}}}`)
	f.state("apps", v1alpha1.StatePending)
	f.edit("apps", `{"spec":{"version":"2.0.0"}}`)
	f.layer("newcomer")
	for _, name := range []string{"apps", "newcomer"} {
		f.state(name, v1alpha1.StatePending, "GitRepository "+f.prefix+"/addons: generation 2 is not fetched yet, generation 1 is")
	}
	if status := f.get("apps").Status; status.Version != "1.0.0" || status.Revision != first {
		t.Errorf("version %s of revision %s is reported", status.Version, status.Revision)
	}

	f.must(stack.plane.StartComponent(f.ctx, controlplane.SourceController))
	second := "v2@sha1:" + commit
	w.after(w.firstDeployed("apps", "2.0.0", second), w.holds("apps", "second"), "2.0.0 is reported")
	f.deployed("newcomer", second)
	for _, status := range w.statuses("apps") {
		if (status.Version == "2.0.0") != (status.Revision == second) {
			t.Errorf("version %s of revision %s is reported", status.Version, status.Revision)
		}
	}
}

// When the git server goes away a layer stays what it is, drift is repaired
// from the last artifact, and a condition says what the source says.
func TestSourceThatTurnsNotReadyUndeploysNothing(t *testing.T) {
	f := newFixture(t)
	server, err := controlplane.NewGitServer()
	f.must(err)
	t.Cleanup(func() { f.must(server.Close()) })
	repo, err := server.NewRepo("elsewhere")
	f.must(err)
	commit, err := repo.Commit("layer", map[string]string{"apps/release.yaml": f.configMapRelease("apps", "wanted")})
	f.must(err)
	source := f.source("elsewhere", repo.URL())
	f.layer("apps", fromSource("elsewhere"))
	revision := controlplane.Branch + "@sha1:" + commit
	f.deployed("apps", revision)
	w := f.witness()

	f.must(server.Stop())
	f.patch(source, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"away"}}}`)
	f.eventually("the layer says that its source is not ready", func() error {
		return sourceReady(f.get("apps"), metav1.ConditionFalse)
	})
	layer := f.deployed("apps", revision)
	if said := condition(layer, v1alpha1.SourceReadyCondition); said.Reason != v1alpha1.ReasonSourceNotReady ||
		!strings.Contains(said.Message, "the last artifact is used: ") || !strings.Contains(said.Message, "failed to checkout") {
		t.Errorf("the condition does not say what the source says: %v", said)
	}

	f.patch(f.release("apps"), `{"spec":{"values":{"data":{"value":"drifted"}}}}`)
	f.within(promptly, "drift is repaired", func() error {
		if values := string(f.release("apps").Spec.Values.Raw); !strings.Contains(values, `"wanted"`) {
			return fmt.Errorf("the values are %s", values)
		}
		return nil
	})
	f.deployed("apps", revision)
	f.must(sourceReady(f.get("apps"), metav1.ConditionFalse))
	for _, status := range w.statuses("apps") {
		if status.State == v1alpha1.StatePending || status.State == v1alpha1.StateFailed || status.Revision != revision {
			t.Errorf("the layer was %s at %s: %v", status.State, status.Revision, status.Conditions)
		}
	}

	f.must(server.Start())
	f.patch(source, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"back"}}}`)
	f.eventually("the layer no longer says that its source is not ready", func() error {
		return sourceReady(f.get("apps"), "")
	})
	f.deployed("apps", revision)
}

// sourceReady wants the condition SourceReady to have a status; "" for none.
func sourceReady(layer *v1alpha1.AddonsLayer, want metav1.ConditionStatus) error {
	if found := condition(layer, v1alpha1.SourceReadyCondition); found.Status != want {
		return fmt.Errorf("the condition is %v", found)
	}
	return nil
}
