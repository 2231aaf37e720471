// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// withRollback has a layer go back by itself, after a short time.
func withRollback(l *v1alpha1.AddonsLayer) {
	l.Spec.Rollback = true
	l.Spec.Timeout = &metav1.Duration{Duration: 6 * time.Second}
}

// refusing returns a release that cannot be installed or upgraded.
func (f *fixture) refusing(name, value string) string {
	return strings.Replace(f.configMapRelease(name, value), "  values: {", "  values: {fail: it is meant to fail, ", 1)
}

// versioned returns a release that gets the layer's version as a value.
func (f *fixture) versioned(name, value string) string {
	return strings.Replace(f.configMapRelease(name, value), "metadata: {", "metadata: {annotations: {kraan.updateVersion: \"true\"}, ", 1)
}

// rolledBack waits until a layer is back at a version and revision.
func (f *fixture) rolledBack(layer, version, revision string) *v1alpha1.AddonsLayer {
	f.Helper()
	var found *v1alpha1.AddonsLayer
	f.eventually(fmt.Sprintf("layer %s has gone back to %s", layer, version), func() error {
		found = f.get(layer)
		status := found.Status
		got := []string{string(status.State), status.Version, status.Revision}
		for _, kind := range []string{"Ready", "Stalled", "Deployed"} {
			c := condition(found, kind)
			got = append(got, string(c.Status)+" "+c.Reason)
		}
		want := []string{"Deployed", version, revision, "False RolledBack", "True RolledBack", "True Deployed"}
		if diff := cmp.Diff(want, got); diff != "" || status.ObservedGeneration != found.Generation {
			return fmt.Errorf("it is not (-want +got):\n%s%s", diff, readyMessage(found))
		}
		return nil
	})
	return found
}

// results returns what a layer's history says, the newest first.
func results(layer *v1alpha1.AddonsLayer) []string {
	var found []string
	for _, entry := range layer.Status.History {
		found = append(found, fmt.Sprintf("%s %s %s", entry.ID, entry.Version, entry.Result))
	}
	return found
}

// configMapValue returns the value that Helm has written for a release.
func (f *fixture) configMapValue(name string) string {
	f.Helper()
	configMap := &corev1.ConfigMap{}
	err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, configMap)
	f.must(client.IgnoreNotFound(err))
	return configMap.Data["value"]
}

// A revision of which one release fails is taken back as a whole: what was
// changed, what was added, and the version; and not what holds other things.
// The next revision, and no resync, ends it.
func TestFailedRevisionIsTakenBackAsAWhole(t *testing.T) {
	f := newFixture(t)
	first := f.push(map[string]string{
		"apps/good.yaml": f.versioned("good", "one"),
		"apps/bad.yaml":  f.configMapRelease("bad", "one"),
	})
	f.layer("apps", withRollback)
	deployed := f.deployed("apps", first)
	if diff := cmp.Diff([]string{"1 1.0.0 Deployed"}, results(deployed)); diff != "" {
		t.Errorf("the history of a first deployment (-want +got):\n%s", diff)
	}
	kept := f.keptRevisions("apps")
	if len(kept) != 1 {
		t.Errorf("the cluster keeps %v, want what is deployed", kept)
	}
	uids := f.uids()

	f.push(map[string]string{
		"apps/good.yaml":  f.versioned("good", "two"),
		"apps/bad.yaml":   f.refusing("bad", "two"),
		"apps/added.yaml": f.configMapRelease("added", "two"),
		"apps/space.yaml": fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-added}\n", f.prefix),
	})
	f.edit("apps", `{"spec":{"version":"2.0.0"}}`)
	back := f.rolledBack("apps", "1.0.0", first)
	for _, word := range []string{"version 2.0.0", "it is meant to fail", f.prefix + "/bad"} {
		if !strings.Contains(readyMessage(back), word) {
			t.Errorf("the message lacks %q: %s", word, readyMessage(back))
		}
	}
	if diff := cmp.Diff([]string{"3 1.0.0 Deployed", "2 2.0.0 RolledBack", "1 1.0.0 Deployed"}, results(back)); diff != "" {
		t.Errorf("the history after a roll-back (-want +got):\n%s", diff)
	}
	f.eventually("Helm has gone back, too", func() error {
		if good, bad := f.configMapValue("good"), f.configMapValue("bad"); good != "one" || bad != "one" {
			return fmt.Errorf("good holds %q and bad %q", good, bad)
		}
		return nil
	})
	if version := f.values("good")["kraanVersion"]; version != "1.0.0" {
		t.Errorf("kraanVersion is %v, want that of the deployment that the layer went back to", version)
	}
	if !f.absent(&helmv2.HelmRelease{}, "added") {
		t.Error("the release that the failed revision added is there")
	}
	namespace := &corev1.Namespace{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.prefix + "-added"}, namespace))
	f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, namespace))) })
	if namespace.DeletionTimestamp != nil || namespace.Labels[v1alpha1.LayerLabel] != "" {
		t.Errorf("the Namespace that the failed revision added is deleted %v with labels %v, want it released", namespace.DeletionTimestamp, namespace.Labels)
	}
	f.stillThere(uids)

	// A commit that leaves the directory as it is does not try again.
	f.push(map[string]string{"README.md": "touches no layer\n"})
	f.throughout(2*time.Second, "the layer stays where it went back to", func() error {
		if layer := f.get("apps"); layer.Status.State != v1alpha1.StateDeployed || layer.Status.Revision != first || condition(layer, "Ready").Reason != v1alpha1.ReasonRolledBack {
			return fmt.Errorf("it is %s at %s: %s", layer.Status.State, layer.Status.Revision, readyMessage(layer))
		}
		return nil
	})

	mended := f.deployed("apps", f.push(map[string]string{"apps/bad.yaml": f.configMapRelease("bad", "two")}))
	if mended.Status.Rollback != nil || mended.Status.Version != "2.0.0" || condition(mended, "Ready").Status != metav1.ConditionTrue {
		t.Errorf("after the next revision the layer is at %s, rollback %+v: %s", mended.Status.Version, mended.Status.Rollback, readyMessage(mended))
	}
	if value := f.configMapValue("added"); value != "two" {
		t.Errorf("added holds %q after the next revision", value)
	}
}

// keptRevisions returns the names of the Secrets that keep what a layer has
// deployed.
func (f *fixture) keptRevisions(layer string) []string {
	f.Helper()
	list := &corev1.SecretList{}
	f.must(stack.client.List(f.ctx, list, client.MatchingLabels{"kraan.io/revision-of": f.name(layer)}))
	var found []string
	for i := range list.Items {
		found = append(found, list.Items[i].Name)
	}
	return found
}

// A healthy upgrade that takes longer than the layer's timeout is Failed for
// that long, and never rolled back, and neither is the release behind it.
func TestHealthyUpgradeIsNeverRolledBack(t *testing.T) {
	f := newFixture(t)
	files := func(selector, value string) map[string]string {
		return map[string]string{
			"slow/slow.yaml": fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: slow, namespace: %s}
spec:
  interval: 1h
  chart:
    spec: {chart: deployment, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts, namespace: %s}}
  values: {nodeSelector: {%s}}
`, f.prefix, f.prefix, selector),
			"slow/after.yaml": f.releaseDependingOn("after", value, "slow"),
		}
	}
	first := f.push(files("", "one"))
	f.layer("slow", withRollback)
	f.deployed("slow", first)

	w := f.witness()
	label := "example.dev/" + f.prefix
	second := f.push(files(label+": ready", "two"))
	f.state("slow", v1alpha1.StateFailed, "not deployed within 6s", "goes back to version 1.0.0 when nothing of the roll-out is under way")
	f.throughout(10*time.Second, "the layer does not go back while Helm is at work", func() error {
		if layer := f.get("slow"); layer.Status.Rollback != nil {
			return fmt.Errorf("it goes back: %s", readyMessage(layer))
		}
		return nil
	})
	f.labelNodes(label)
	f.deployed("slow", second)
	if revisions := f.helmRevisions("slow"); revisions != 2 {
		t.Errorf("Helm has %d revisions of the slow release: it was rolled back or tried again", revisions)
	}
	for _, status := range w.statuses("slow") {
		if status.Rollback != nil {
			t.Errorf("the layer went back: %+v", status.Rollback)
		}
	}
	if diff := cmp.Diff([]string{"2 1.0.0 Deployed", "1 1.0.0 Deployed"}, results(f.get("slow"))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// The annotation takes a layer back to a deployment of its history, once; what
// cannot be done says why and does nothing.
func TestRollbackOnRequest(t *testing.T) {
	f := newFixture(t)
	first := f.push(map[string]string{"apps/a.yaml": f.configMapRelease("a", "one")})
	f.layer("apps", func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = true })
	f.deployed("apps", first)
	second := f.push(map[string]string{"apps/a.yaml": f.configMapRelease("a", "two")})
	f.deployed("apps", second)

	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/rollback-to":"7"}}}`)
	f.reason("apps", v1alpha1.ReasonRollbackNotPossible, `cannot go back to deployment "7"`, "2 (version 1.0.0), 1 (version 1.0.0)")
	if value := f.configMapValue("a"); value != "two" {
		t.Errorf("a holds %q while the layer refuses to go back", value)
	}

	f.edit("apps", `{"metadata":{"annotations":{"kraan.io/rollback-to":"1"}}}`)
	back := f.rolledBack("apps", "1.0.0", first)
	f.eventually("the annotation is used up", func() error {
		if value, set := f.get("apps").Annotations[v1alpha1.RollbackToAnnotation]; set {
			return fmt.Errorf("it is %q", value)
		}
		return nil
	})
	if value := f.configMapValue("a"); value != "one" {
		t.Errorf("a holds %q after it went back", value)
	}
	if diff := cmp.Diff([]string{"3 1.0.0 Deployed", "2 1.0.0 Deployed", "1 1.0.0 Deployed"}, results(back)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	third := f.push(map[string]string{"apps/a.yaml": f.configMapRelease("a", "three")})
	f.deployed("apps", third)
	if value := f.configMapValue("a"); value != "three" {
		t.Errorf("a holds %q after the next revision", value)
	}
}

// What the failed revision handed to another layer stays there.
func TestRollbackLeavesWhatAnotherLayerHasGot(t *testing.T) {
	f := newFixture(t)
	first := f.push(map[string]string{
		"apps/moved.yaml": f.configMapRelease("moved", "one"),
		"apps/bad.yaml":   f.configMapRelease("bad", "one"),
		"team/own.yaml":   f.configMapRelease("own", "one"),
	})
	f.layer("apps", withRollback)
	f.layer("team")
	f.deployed("apps", first)
	f.deployed("team", first)
	uids := f.uids()
	helm := f.helmHistory("moved")

	second := f.rewrite(map[string]string{
		"apps/moved.yaml": "",
		"apps/bad.yaml":   f.refusing("bad", "two"),
		"team/moved.yaml": f.configMapRelease("moved", "one"),
		"team/own.yaml":   f.configMapRelease("own", "one"),
	})
	f.deployed("team", second)
	f.rolledBack("apps", "1.0.0", first)
	if owner := f.release("moved").Labels[v1alpha1.LayerLabel]; owner != f.name("team") {
		t.Errorf("the release that was handed over belongs to %q", owner)
	}
	f.stillThere(uids)
	if diff := cmp.Diff(helm[0].uid, f.helmHistory("moved")[0].uid); diff != "" {
		t.Errorf("the release that was handed over was installed again: %s", diff)
	}
	f.throughout(2*time.Second, "both layers rest", func() error {
		if f.get("team").Status.State != v1alpha1.StateDeployed || f.get("apps").Status.State != v1alpha1.StateDeployed {
			return errors.New("they do not")
		}
		return nil
	})
}

// A revision of which the API server refuses an object is taken back at once.
func TestRefusedRevisionIsTakenBack(t *testing.T) {
	f := newFixture(t)
	first := f.push(map[string]string{"apps/a.yaml": f.configMapRelease("a", "one"), "apps/b.yaml": f.configMapRelease("b", "one")})
	f.layer("apps", withRollback)
	f.deployed("apps", first)
	f.push(map[string]string{
		"apps/a.yaml": f.configMapRelease("a", "two"),
		"apps/b.yaml": strings.Replace(f.configMapRelease("b", "two"), "interval: 1h", "interval: soon", 1),
	})
	back := f.rolledBack("apps", "1.0.0", first)
	if !strings.Contains(readyMessage(back), "interval") {
		t.Errorf("the message does not say what was refused: %s", readyMessage(back))
	}
	f.eventually("what was written before is back", func() error {
		if value := f.configMapValue("a"); value != "one" {
			return fmt.Errorf("a holds %q", value)
		}
		return nil
	})
}
