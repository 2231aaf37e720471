// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

const (
	// patience bounds every wait for something that must happen.
	patience = 2 * time.Minute
	// promptly bounds what a watch must bring about: far less than the hour after which
	// something is looked at here without a cause, and far more than it takes on any
	// machine. How long it took is logged.
	promptly = 5 * time.Minute
)

var fixtures atomic.Int32

// fixture is a namespace, a git repository with its GitRepository, and a
// HelmRepository, for one test alone. Names of layers have its prefix.
type fixture struct {
	*testing.T
	ctx    context.Context
	prefix string
	repo   *controlplane.Repo
}

// newFixture makes a fixture that is taken down with the test. The test runs
// beside others.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newSerialFixture(t)
}

// newSerialFixture is newFixture for a test that disturbs others.
func newSerialFixture(t *testing.T) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	f := &fixture{T: t, ctx: context.Background(), prefix: fmt.Sprintf("t%d", fixtures.Add(1))}
	f.must(stack.plane.CreateNamespace(f.ctx, f.prefix))
	var err error
	f.repo, err = stack.git.NewRepo(f.prefix)
	f.must(err)
	f.commit(map[string]string{"README.md": "layers\n"})
	f.must(stack.client.Create(f.ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "addons"},
		Spec: sourcev1.GitRepositorySpec{
			URL: f.repo.URL(), Interval: metav1.Duration{Duration: time.Hour},
			Reference: &sourcev1.GitRepositoryRef{Branch: controlplane.Branch},
		},
	}))
	f.must(stack.client.Create(f.ctx, &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "charts"},
		Spec:       sourcev1.HelmRepositorySpec{URL: stack.charts.URL(), Interval: metav1.Duration{Duration: time.Hour}},
	}))
	t.Cleanup(f.takeDown)
	return f
}

// takeDown has nobody work any longer on what the test has left, so that later tests
// have the machine to themselves: layers and releases go without their finalizers, and
// what Helm has installed stays. To uninstall it is as much work as to install it, and
// the tests of deletion show that it is done.
func (f *fixture) takeDown() {
	if f.Failed() {
		f.describe()
	}
	list := &v1alpha1.AddonsLayerList{}
	f.must(stack.client.List(f.ctx, list))
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, f.prefix+"-") {
			f.letGo(&list.Items[i])
		}
	}
	clusters := &v1alpha1.RemoteClusterList{}
	f.must(stack.client.List(f.ctx, clusters, client.InNamespace(f.prefix)))
	for i := range clusters.Items {
		f.letGo(&clusters.Items[i])
	}
	releases := &helmv2.HelmReleaseList{}
	f.must(stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)))
	for i := range releases.Items {
		f.letGo(&releases.Items[i])
	}
	for _, source := range []client.Object{&sourcev1.GitRepository{}, &sourcev1.HelmRepository{}, &sourcev1.HelmChart{}, &sourcev1.OCIRepository{}, &sourcev1.Bucket{}} {
		f.must(stack.client.DeleteAllOf(f.ctx, source, client.InNamespace(f.prefix)))
	}
}

// letGo deletes an object without its finalizers. They are taken away first and last:
// its controller begins nothing at the deletion, and puts none back.
func (f *fixture) letGo(obj client.Object) {
	for _, act := range []func() error{
		func() error { return f.withoutFinalizers(obj) },
		func() error { return stack.client.Delete(f.ctx, obj) },
		func() error { return f.withoutFinalizers(obj) },
	} {
		if err := act(); apierrors.IsNotFound(err) {
			return
		} else if err != nil {
			f.Errorf("cannot let go of %s: %v", obj.GetName(), err)
		}
	}
}

func (f *fixture) withoutFinalizers(obj client.Object) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return stack.client.Patch(f.ctx, obj, patch)
}

// describe prints what helps to understand a failed test.
func (f *fixture) describe() {
	list := &v1alpha1.AddonsLayerList{}
	if err := stack.client.List(f.ctx, list); err != nil {
		f.Logf("cannot list layers: %v", err)
		return
	}
	for _, layer := range list.Items {
		if strings.HasPrefix(layer.Name, f.prefix+"-") {
			data, _ := yaml.Marshal(layer.Status)
			f.Logf("layer %s generation %d deleted %v:\n%s", layer.Name, layer.Generation, layer.DeletionTimestamp, data)
		}
	}
	releases := &helmv2.HelmReleaseList{}
	if err := stack.client.List(f.ctx, releases, client.InNamespace(f.prefix)); err != nil {
		return
	}
	for _, release := range releases.Items {
		f.Logf("HelmRelease %s labels %v annotations %v generation %d suspend %v conditions %v",
			release.Name, release.Labels, release.Annotations, release.Generation, release.Spec.Suspend, release.Status.Conditions)
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// commit commits files and returns the commit; fetch has source-controller
// fetch it.
func (f *fixture) commit(files map[string]string) string {
	f.Helper()
	commit, err := f.repo.Commit("change", files)
	f.must(err)
	return commit
}

// push commits files and waits until source-controller has fetched them.
func (f *fixture) push(files map[string]string) string {
	f.Helper()
	return f.fetched(f.commit(files))
}

// remove removes files and waits until source-controller has fetched that.
func (f *fixture) remove(paths ...string) string {
	f.Helper()
	commit, err := f.repo.Remove("remove", paths...)
	f.must(err)
	return f.fetched(commit)
}

// fetched asks source-controller to fetch and waits for a commit. It returns
// the revision.
func (f *fixture) fetched(commit string) string {
	f.Helper()
	f.fetch()
	revision := controlplane.Branch + "@sha1:" + commit
	f.eventually("source-controller fetches "+commit, func() error {
		source := &sourcev1.GitRepository{}
		if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "addons"}, source); err != nil {
			return err
		}
		if source.Status.Artifact == nil || source.Status.Artifact.Revision != revision {
			return fmt.Errorf("the artifact is %v", source.Status.Artifact)
		}
		return nil
	})
	return revision
}

// fetch asks source-controller to fetch.
func (f *fixture) fetch() {
	f.Helper()
	f.patch(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "addons"}},
		fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano)))
}

// patch merges JSON into an object.
func (f *fixture) patch(obj client.Object, patch string) {
	f.Helper()
	f.must(stack.client.Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (f *fixture) patchLayer(name, patch string) error {
	return stack.client.Patch(f.ctx, &v1alpha1.AddonsLayer{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.RawPatch(types.MergePatchType, []byte(patch)))
}

// name returns the full name of a layer.
func (f *fixture) name(layer string) string { return f.prefix + "-" + layer }

// edit merges JSON into a layer.
func (f *fixture) edit(layer, patch string) {
	f.Helper()
	f.must(f.patchLayer(f.name(layer), patch))
}

// layer creates a layer with a directory of its name, at version 1.0.0 and a
// short grace, changed as the options say.
func (f *fixture) layer(name string, options ...func(*v1alpha1.AddonsLayer)) {
	f.Helper()
	layer := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: f.name(name)},
		Spec: v1alpha1.AddonsLayerSpec{
			Version:     "1.0.0",
			Source:      v1alpha1.SourceSpec{Name: "addons", Namespace: f.prefix, Path: "./" + name},
			Interval:    &metav1.Duration{Duration: time.Hour},
			OrphanGrace: &metav1.Duration{Duration: time.Second},
		},
	}
	for _, option := range options {
		option(layer)
	}
	f.must(stack.client.Create(f.ctx, layer))
}

// dependsOn makes a layer depend on others, each as name@version.
func (f *fixture) dependsOn(others ...string) func(*v1alpha1.AddonsLayer) {
	return func(layer *v1alpha1.AddonsLayer) {
		for _, other := range others {
			layer.Spec.Prereqs.DependsOn = append(layer.Spec.Prereqs.DependsOn, f.name(other))
		}
	}
}

// get returns a layer.
func (f *fixture) get(layer string) *v1alpha1.AddonsLayer {
	f.Helper()
	found := &v1alpha1.AddonsLayer{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name(layer)}, found))
	return found
}

// state waits until a layer is in a state at its present generation, and its
// Ready message contains all of the words. It returns the layer.
func (f *fixture) state(layer string, want v1alpha1.State, words ...string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s is %s %q", layer, want, words), func() error {
		found = f.get(layer)
		message := readyMessage(found)
		if found.Status.State != want || found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("it is %s (generation %d of %d): %s", found.Status.State, found.Status.ObservedGeneration, found.Generation, message)
		}
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, message)
			}
		}
		return nil
	})
	return found
}

// deployed waits until a layer has deployed a revision.
func (f *fixture) deployed(layer, revision string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s has deployed %s", layer, revision), func() error {
		found = f.get(layer)
		if found.Status.State != v1alpha1.StateDeployed || found.Status.Revision != revision || found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("it is %s at %s: %s", found.Status.State, found.Status.Revision, readyMessage(found))
		}
		return nil
	})
	return found
}

// reason waits until a layer's Ready condition has a reason.
func (f *fixture) reason(layer, want string, words ...string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s gives the reason %s %q", layer, want, words), func() error {
		found = f.get(layer)
		ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != want || found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("it is %s: %+v", found.Status.State, ready)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, ready.Message)
			}
		}
		return nil
	})
	return found
}

func readyMessage(layer *v1alpha1.AddonsLayer) string {
	if ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		return ready.Message
	}
	return ""
}

// release returns a HelmRelease of the fixture's namespace.
func (f *fixture) release(name string) *helmv2.HelmRelease {
	f.Helper()
	release := &helmv2.HelmRelease{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, release))
	return release
}

// absent tells whether an object does not exist.
func (f *fixture) absent(obj client.Object, name string) bool {
	f.Helper()
	err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return err != nil
}

// eventually polls until a check passes.
func (f *fixture) eventually(what string, check func() error) {
	f.Helper()
	f.within(patience, what, check)
}

// within polls until a check passes, for a limited time.
func (f *fixture) within(limit time.Duration, what string, check func() error) {
	f.Helper()
	err := controlplane.WaitFor(f.ctx, limit, func(context.Context) error { return check() })
	if err != nil {
		f.Fatalf("%s: %v", what, err)
	}
}

// throughout checks again and again that something stays as it is, for a while, and until the
// suite's controller has had nothing to do: one that is starved would leave it as it is, too.
func (f *fixture) throughout(period time.Duration, what string, check func() error) {
	f.Helper()
	end := time.Now().Add(period)
	for idle := false; !idle || time.Now().Before(end); {
		if time.Now().After(end.Add(patience)) {
			f.Fatalf("%s: the controller has something to do all the time", what)
		}
		idle = idle || f.idle()
		if err := check(); err != nil {
			f.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond) // between looks at what must not change
	}
}

// idle tells whether the suite's controller looks at nothing, and has nothing in its queues. One
// that does not run has nothing to do.
func (f *fixture) idle() bool {
	f.Helper()
	if stack.controller.PID() == 0 {
		return true
	}
	for _, value := range f.scrape(regexp.MustCompile(`^(?:workqueue_depth|controller_runtime_active_workers)\b`)) {
		if value > 0 {
			return false
		}
	}
	return true
}

// configMapRelease returns the manifest of a HelmRelease that is quick to
// install: one ConfigMap with a value.
func (f *fixture) configMapRelease(name, value string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  chart:
    spec: {chart: configmap, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
  values: {data: {value: %q}}
`, name, f.prefix, f.prefix, value)
}
