// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// startFleet runs the controllers of all kinds, of RemoteClusters only where the fixture says so. They look at what
// is settled so often.
func (f *fixture) startFleet(period time.Duration, options ...func(*AddonsLayerReconciler)) {
	f.Helper()
	counted := plane.Config()
	counted.Wrap(f.count)
	mgr, reconciler := f.assemble(counted, managerOptions(), period)
	for _, option := range options {
		option(reconciler)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	f.cancel = cancel
	f.must(reconciler.Setup(ctx, mgr))
	f.must(reconciler.SetupWithManager(mgr))
	f.must((&HelmApplicationReconciler{Process: reconciler.Process}).SetupWithManager(mgr))
	f.must((&ApplicationBundleReconciler{Process: reconciler.Process}).SetupWithManager(mgr))
	f.must((&PlatformReconciler{Process: reconciler.Process}).SetupWithManager(mgr))
	if f.withClusters {
		f.must((&RemoteClusterReconciler{Process: reconciler.Process, Reach: f.reach}).SetupWithManager(mgr))
	}
	go func() { f.ended <- mgr.Start(ctx) }()
	f.Cleanup(func() {
		cancel()
		f.stopped()
		f.clear()
	})
}

// clear removes the Platforms, bundles and layers of the test, which nobody looks
// after any more.
func (f *fixture) clear() {
	f.Helper()
	platforms, layers, bundles := &v1alpha1.PlatformList{}, &v1alpha1.AddonsLayerList{}, &v1alpha1.ApplicationBundleList{}
	var all []client.Object
	for _, list := range []client.ObjectList{platforms, layers, bundles} {
		f.must(f.client.List(f.ctx, list, client.MatchingLabels{"test": f.namespace}))
	}
	for i := range platforms.Items {
		all = append(all, &platforms.Items[i])
	}
	for i := range layers.Items {
		all = append(all, &layers.Items[i])
	}
	for i := range bundles.Items {
		all = append(all, &bundles.Items[i])
	}
	f.each(len(all), func(i int) error {
		if len(all[i].GetFinalizers()) > 0 {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := f.client.Patch(f.ctx, all[i], patch); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
		return client.IgnoreNotFound(f.client.Delete(f.ctx, all[i]))
	})
}

// platform makes the Platform NAMESPACE-name from the YAML of its spec, in which
// NAMESPACE is the test's.
func (f *fixture) platform(name, spec string) {
	f.Helper()
	platform := &v1alpha1.Platform{}
	text := fmt.Sprintf("metadata: {name: NAMESPACE-%s, labels: {test: NAMESPACE}}\nspec:\n%s", name, spec)
	f.must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "NAMESPACE", f.namespace)), platform))
	f.must(f.client.Create(f.ctx, platform))
}

func (f *fixture) getPlatform(name string) *v1alpha1.Platform {
	f.Helper()
	found := &v1alpha1.Platform{}
	f.must(f.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, found))
	return found
}

func (f *fixture) patchPlatform(name, patch string) {
	f.Helper()
	obj := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: f.name(name)}}
	f.must(f.client.Patch(f.ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (f *fixture) deletePlatform(name string) {
	f.Helper()
	f.must(f.client.Delete(f.ctx, &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: f.name(name)}}))
}

// platformSays waits until a Platform is Ready for a reason, and its message has all
// of the words.
func (f *fixture) platformSays(name, reason string, words ...string) *v1alpha1.Platform {
	f.Helper()
	var platform *v1alpha1.Platform
	f.eventually(fmt.Sprintf("Platform %s says %s %q", name, reason, words), func() error {
		platform = f.getPlatform(name)
		ready := meta.FindStatusCondition(platform.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != reason || platform.Status.ObservedGeneration != platform.Generation {
			return fmt.Errorf("it says %+v", ready)
		}
		for _, word := range words {
			if !strings.Contains(ready.Message, word) {
				return fmt.Errorf("its message lacks %q: %s", word, ready.Message)
			}
		}
		return nil
	})
	return platform
}

// installed waits until a Platform is well, with so many layers.
func (f *fixture) installed(name, version string, layers int32) *v1alpha1.Platform {
	f.Helper()
	var platform *v1alpha1.Platform
	f.eventually(fmt.Sprintf("Platform %s is well at %s with %d layers", name, version, layers), func() error {
		platform = f.getPlatform(name)
		status := platform.Status
		if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition) || status.ObservedGeneration != platform.Generation ||
			status.Version != version || status.Layers != (v1alpha1.LayerCount{Deployed: layers, Total: layers}) {
			return fmt.Errorf("it is %+v", status)
		}
		return nil
	})
	return platform
}

// isGone waits until an object without a namespace has gone.
func (f *fixture) isGone(obj client.Object, name string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%T %s is gone", obj, name), func() error {
		err := f.client.Get(f.ctx, types.NamespacedName{Name: f.name(name)}, obj)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// text waits until a ConfigMap of the test holds a text.
func (f *fixture) text(name, key, want string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%s of ConfigMap %s is %q", key, name, want), func() error {
		found := &corev1.ConfigMap{}
		if err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, found); err != nil {
			return err
		}
		if found.Data[key] != want {
			return fmt.Errorf("it is %q", found.Data[key])
		}
		return nil
	})
}

// settings are three layers of one ConfigMap each, one after the other; the middle
// one can be turned off.
const settings = `
  inputs:
  - {name: middle, type: Boolean, default: true}
  - {name: text, default: none}
  layers:
  - name: first
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${instance.name}-first", namespace: NAMESPACE}, data: {text: "${inputs.text}"}}]
  - name: middle
    dependsOn: [first]
    when: inputs.middle
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${instance.name}-middle", namespace: NAMESPACE}, data: {text: "${inputs.text}"}}]
  - name: last
    dependsOn: [middle]
    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${instance.name}-last", namespace: NAMESPACE}, data: {text: "${inputs.text}"}}]
`

// A Platform makes its layers in their order, and where an input turns one off, what
// came after it comes after what was before it, before it goes.
func TestPlatformMakesLayersInOrder(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Minute)
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n")
	f.installed("shop", "1.0.0", 3)
	dependsOn := func(layer string) []string { return f.get(layer).Spec.Prereqs.DependsOn }
	if got, want := dependsOn("shop-last"), []string{f.name("shop-middle") + "@1.0.0"}; !slices.Equal(got, want) {
		t.Errorf("the last layer depends on %v, want %v", got, want)
	}
	since := func(layer string) time.Time { return f.get(layer).CreationTimestamp.Time }
	if since("shop-middle").Before(since("shop-first")) || since("shop-last").Before(since("shop-middle")) {
		t.Error("layers were made before those that they depend on")
	}

	f.patchLayer("shop-middle", `{"spec":{"orphanGrace":"0s"}}`)
	layers := f.watched(&v1alpha1.AddonsLayerList{})
	f.patchPlatform("shop", `{"spec":{"inputs":{"middle":false}}}`)
	f.isGone(&v1alpha1.AddonsLayer{}, "shop-middle")
	f.installed("shop", "1.0.0", 2)
	contracted := firstRevision(t, layers(), func(_ watch.EventType, layer *v1alpha1.AddonsLayer) bool {
		return layer.Name == f.name("shop-last") && slices.Equal(layer.Spec.Prereqs.DependsOn, []string{f.name("shop-first") + "@1.0.0"})
	})
	deleted := firstRevision(t, layers(), func(_ watch.EventType, layer *v1alpha1.AddonsLayer) bool {
		return layer.Name == f.name("shop-middle") && layer.DeletionTimestamp != nil
	})
	if contracted == 0 || deleted < contracted {
		t.Errorf("the edge was contracted at %d, and the layer deleted at %d", contracted, deleted)
	}
	f.patchPlatform("shop", `{"spec":{"inputs":null}}`)
	f.installed("shop", "1.0.0", 3)
	if got, want := dependsOn("shop-last"), []string{f.name("shop-middle") + "@1.0.0"}; !slices.Equal(got, want) {
		t.Errorf("the last layer depends on %v, want %v", got, want)
	}
}

// Inputs of a ConfigMap lose against those of the Platform, and later ones win; a
// change of one is seen although nobody asks for it.
func TestInputsFromConfigMaps(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Hour)
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n  inputsFrom: [{name: early}, {name: late, optional: true}, {name: other, namespace: default, optional: true}]\n")
	f.platformSays("shop", v1alpha1.ReasonInputsNotFound, "waits for ConfigMap "+f.namespace+"/early, which does not exist")
	configMap := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: data}
	}
	early := configMap("early", map[string]string{"text": "early", "middle": "false"})
	f.must(f.client.Create(f.ctx, early))
	f.text(f.name("shop-first"), "text", "early")
	f.installed("shop", "1.0.0", 2)
	early.Data["text"] = "changed"
	f.must(f.client.Update(f.ctx, early))
	f.text(f.name("shop-last"), "text", "changed")
	late := configMap("late", map[string]string{"text": "late"})
	f.must(f.client.Create(f.ctx, late))
	f.text(f.name("shop-first"), "text", "late")
	f.patchPlatform("shop", `{"spec":{"inputs":{"text":"own"}}}`)
	f.text(f.name("shop-first"), "text", "own")
	f.patchPlatform("shop", `{"spec":{"inputs":null}}`)
	f.text(f.name("shop-first"), "text", "late")
	f.must(f.client.Delete(f.ctx, late))
	f.text(f.name("shop-first"), "text", "changed")

	early.Data["middle"] = "perhaps"
	f.must(f.client.Update(f.ctx, early))
	f.platformSays("shop", v1alpha1.ReasonInvalidSpec, "spec.inputsFrom[0]", "ConfigMap "+f.namespace+"/early", "middle")
	early.Data["middle"] = "true"
	f.must(f.client.Update(f.ctx, early))
	f.installed("shop", "1.0.0", 3)
	f.must(f.client.Delete(f.ctx, early))
	f.platformSays("shop", v1alpha1.ReasonInputsNotFound, f.namespace+"/early")
	f.text(f.name("shop-first"), "text", "changed")
	f.settle()
	if got := f.get("shop-first").Spec.Inputs; !strings.Contains(string(got.Raw), "changed") {
		t.Errorf("without its inputs the layer has %s", got.Raw)
	}
}

// A layer that somebody else has made is named, and stays as it is; the Platform
// goes on when it is out of the way.
func TestLayerOfSomebodyElse(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Minute)
	f.layerWith("shop-middle", func(l *v1alpha1.AddonsLayer) {
		l.Spec.Source, l.Spec.Hold = v1alpha1.SourceSpec{Name: "addons", Path: "./mine"}, true
		l.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	})
	before := f.get("shop-middle")
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n")
	f.platformSays("shop", v1alpha1.ReasonOwnershipConflict, "AddonsLayer "+f.name("shop-middle"), "not of this platform")
	f.settle()
	after := f.get("shop-middle")
	if after.Generation != before.Generation || !maps.Equal(after.Labels, before.Labels) || after.UID != before.UID {
		t.Errorf("somebody else's layer is now %+v, %+v", after.ObjectMeta, after.Spec)
	}
	f.deletePlatform("shop")
	f.isGone(&v1alpha1.Platform{}, "shop")
	if after := f.get("shop-middle"); after.DeletionTimestamp != nil {
		t.Error("somebody else's layer goes with the Platform")
	}
	f.platform("shop", "  bundle: {family: NAMESPACE}\n")
	f.platformSays("shop", v1alpha1.ReasonOwnershipConflict)
	f.must(f.client.Delete(f.ctx, after))
	f.installed("shop", "1.0.0", 3)
}

// A hold stops everything but the deletion, for which neither the bundle nor what
// it is made of is needed.
func TestPlatformIsHeldAndDeleted(t *testing.T) {
	f := newSerialBareFixture(t)
	f.startFleet(time.Minute)
	f.must(f.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "inputs"}, Data: map[string]string{"text": "given"}}))
	app := f.application("net", func(v *v1alpha1.HelmApplicationVersion) {
		v.Namespace = &v1alpha1.ApplicationNamespace{Name: f.namespace}
	})
	bundle := f.bundleOf("one", "1.0.0", settings+"  - name: net\n    applications: [{name: net, application: NAMESPACE-net, version: 1.0.0}]\n")
	f.platform("shop", "  bundle: {family: NAMESPACE}\n  inputsFrom: [{name: inputs}]\n")
	f.indexed()
	f.ready("net")
	f.installed("shop", "1.0.0", 4)

	f.patchPlatform("shop", `{"spec":{"hold":true,"inputs":{"text":"held"}}}`)
	f.platformSays("shop", v1alpha1.ReasonHold, "spec.hold is true")
	generations := f.generations("shop-first", "shop-middle", "shop-last", "shop-net")
	f.bundleOf("two", "1.1.0", "  upgradesFrom: [\">=1.0\"]\n"+settings)
	f.patchPlatform("shop", `{"spec":{"bundle":{"version":"1.1.0"},"inputs":{"middle":false}}}`)
	f.platformSays("shop", v1alpha1.ReasonHold)
	f.settle()
	if got := f.generations("shop-first", "shop-middle", "shop-last", "shop-net"); !slices.Equal(got, generations) {
		t.Errorf("a held Platform changes its layers: their generations are %v and were %v", got, generations)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.name("shop-first")}}
	f.must(f.client.Patch(f.ctx, configMap, client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"drifted"}}`))))
	f.text(f.name("shop-first"), "text", "given")

	for _, obj := range []client.Object{bundle, app, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "inputs"}}} {
		f.must(f.client.Delete(f.ctx, obj))
	}
	f.says("shop-first", "which does not exist")
	f.deletePlatform("shop")
	f.isGone(&v1alpha1.Platform{}, "shop")
	for _, layer := range []string{"shop-first", "shop-middle", "shop-last", "shop-net"} {
		f.isGone(&v1alpha1.AddonsLayer{}, layer)
	}
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(configMap), configMap); !apierrors.IsNotFound(err) {
		t.Errorf("a ConfigMap of it is left: %v", err)
	}
}

// unapproved is a Platform shop at 1.0.0 whose move to 1.1.0 waits for an approval.
func unapproved(t *testing.T) (*fixture, *v1alpha1.Platform) {
	t.Helper()
	f := newBareFixture(t)
	f.startFleet(time.Hour)
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE, version: 1.0.0}\n  rollout: {stages: [{name: all, approval: true}]}\n")
	f.approve("shop", "all@1.0.0")
	f.installed("shop", "1.0.0", 3)
	f.bundleOf("two", "1.1.0", "  upgradesFrom: [\">=1.0\"]\n"+settings)
	f.patchPlatform("shop", `{"spec":{"bundle":{"version":"1.1.0"}}}`)
	return f, f.platformSays("shop", v1alpha1.ReasonWaiting, "all@1.1.0")
}

// A stage that wants an approval begins when the annotation has it, and for that
// version only.
func TestApproval(t *testing.T) {
	f, platform := unapproved(t)
	if stages := platform.Status.Stages; len(stages) != 1 || stages[0].Waiting != 1 || stages[0].Moving != 0 {
		t.Errorf("its stages are %+v", stages)
	}
	f.settle()
	if got := f.get("shop-first").Spec.Version; got != "1.0.0" {
		t.Errorf("without an approval the layer is at %s", got)
	}
	f.patchPlatform("shop", fmt.Sprintf(`{"metadata":{"annotations":{%q:"other@1.1.0, all@1.1.0",%q:"somebody",%q:"it is tested"}}}`,
		v1alpha1.ApproveAnnotation, v1alpha1.ApprovedByAnnotation, v1alpha1.ApproveReasonAnnotation))
	f.installed("shop", "1.1.0", 3)
	approvals := f.getPlatform("shop").Status.Approvals
	if len(approvals) != 2 || approvals[0].Approval != "all@1.1.0" || approvals[0].By != "somebody" || approvals[0].Reason != "it is tested" || approvals[1].By != "" {
		t.Errorf("its approvals are %+v", approvals)
	}
	f.eventually("an event says who has approved", func() error {
		const want = "all@1.1.0 is approved by somebody: it is tested"
		if told := f.eventsOf("shop"); !strings.Contains(told, want) {
			return fmt.Errorf("they say %s", told)
		}
		return nil
	})
}

// Inputs that go in stages wait for their approval, and what waits keeps those that it has,
// whoever starts anew and whatever is changed by hand.
func TestInputsWaitForApproval(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Hour)
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n  inputs: {text: one}\n  rollout: {stageInputs: true, stages: [{name: all}]}\n")
	f.installed("shop", "1.0.0", 3)
	f.patchPlatform("shop", `{"spec":{"inputs":{"text":"two","middle":false},"rollout":{"stages":[{"name":"all","approval":true}]}}}`)
	f.platformSays("shop", v1alpha1.ReasonWaiting, "stage all waits for approval: all@1.0.0+")
	f.patchLayer("shop-first", `{"spec":{"inputs":{"text":"three","middle":true}}}`)
	f.eventually("what was changed by hand is taken back", func() error {
		if got := string(f.get("shop-first").Spec.Inputs.Raw); !strings.Contains(got, `"one"`) {
			return fmt.Errorf("it has %s", got)
		}
		return nil
	})
	f.settle()
	f.text(f.name("shop-last"), "text", "one")
	waits := f.getPlatform("shop")
	if waits.Status.Layers.Total != 3 || waits.Status.Clusters.Waiting != 1 {
		t.Errorf("before the approval it is %+v", waits.Status)
	}
	f.patchLayer("shop-middle", `{"spec":{"orphanGrace":"0s"}}`)
	f.approve("shop", waits.Status.Stages[0].Approval)
	f.installed("shop", "1.0.0", 2)
	f.text(f.name("shop-last"), "text", "two")
}

// approve approves stages of a Platform.
func (f *fixture) approve(platform, stages string) {
	f.Helper()
	f.patchPlatform(platform, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ApproveAnnotation, stages))
}

func (f *fixture) generations(layers ...string) []int64 {
	f.Helper()
	var all []int64
	for _, layer := range layers {
		all = append(all, f.get(layer).Generation)
	}
	return all
}

// A layer that somebody has given the label of a Platform is nobody's to delete, and
// keeps no Platform from going; one that was made for it and has lost its labels is
// somebody else's from then on.
func TestLabelsOfSomebodyElse(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Hour)
	f.bundleOf("one", "1.0.0", settings)
	f.layerWith("mine", func(l *v1alpha1.AddonsLayer) { l.Labels[v1alpha1.PlatformLabel] = f.name("shop") })
	f.platform("shop", "  bundle: {family: NAMESPACE}\n")
	f.installed("shop", "1.0.0", 3)

	f.patchLayer("shop-last", fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, v1alpha1.PlatformLabel))
	f.platformSays("shop", v1alpha1.ReasonOwnershipConflict, "AddonsLayer "+f.name("shop-last"))
	f.patchLayer("shop-last", fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.PlatformLabel, f.name("shop")))
	f.installed("shop", "1.0.0", 3)

	f.deletePlatform("shop")
	f.isGone(&v1alpha1.Platform{}, "shop")
	if f.get("mine").DeletionTimestamp != nil {
		t.Error("a layer of somebody else goes with the Platform")
	}
}

// What is to stay is said in the moment before: the layers leave it without owner.
func TestPlatformLeavesWhatItHas(t *testing.T) {
	f := newBareFixture(t)
	f.startFleet(time.Hour)
	f.bundleOf("one", "1.0.0", settings)
	f.platform("shop", "  bundle: {family: NAMESPACE}\n  inputs: {text: stays}\n")
	f.installed("shop", "1.0.0", 3)
	f.patchPlatform("shop", `{"spec":{"hold":true,"deletionPolicy":"Orphan"}}`)
	f.deletePlatform("shop")
	f.isGone(&v1alpha1.Platform{}, "shop")
	for _, layer := range []string{"shop-first", "shop-middle", "shop-last"} {
		f.isGone(&v1alpha1.AddonsLayer{}, layer)
		f.text(f.name(layer), "text", "stays")
	}
}
