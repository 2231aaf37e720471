// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/strata-project/strata/internal/dependents"
)

func TestCreate(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	results := f.done(writeOf(owner, release))
	if diff := cmp.Diff([]string{"POST"}, f.requests.taken()); diff != "" {
		t.Errorf("requests of a creation (-want +got):\n%s", diff)
	}
	live := f.live(release)
	if live.GetLabels()[testKeys.Owner] != owner {
		t.Errorf("labels are %v, want the owner's", live.GetLabels())
	}
	result := results[0]
	if !result.Changed || result.Generation != 1 || result.ResourceVersion != live.GetResourceVersion() {
		t.Errorf("result is %+v, want changed, generation 1 and resourceVersion %s", result, live.GetResourceVersion())
	}
}

func TestRequestsOfAChange(t *testing.T) {
	for name, test := range map[string]struct {
		memory *Known
		want   [][]string
	}{
		// What was created by POST is made the applier's once.
		"claimed":        {nil, [][]string{{"GET", "PATCH", "PATCH"}, {"GET", "PATCH"}, {"GET", "PATCH"}}},
		"in one request": {&Known{}, [][]string{{"PATCH"}, {"PATCH"}, {"PATCH"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.executor.Known = test.memory
			release := f.release("podinfo")
			f.written(release)
			f.requests.taken()
			for i, want := range test.want {
				set(release, int64(i+2), "spec", "values", "replicas")
				live := f.rewritten(release)
				if diff := cmp.Diff(want, f.requests.taken()); diff != "" {
					t.Errorf("requests of change %d (-want +got):\n%s", i+1, diff)
				}
				if diff := cmp.Diff(release.Object["spec"], live.Object["spec"]); diff != "" {
					t.Errorf("spec after change %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func TestApplyWithoutDifferenceWritesNothing(t *testing.T) {
	for _, kind := range []string{"HelmRelease", "ConfigMap"} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			obj := f.release("podinfo")
			if kind == "ConfigMap" {
				obj = f.configMap("settings", "a", "1")
			}
			f.written(obj)
			before := f.rewritten(obj)
			result := f.done(seen(writeOf(owner, obj), before))[0]
			if result.Changed || result.ResourceVersion != before.GetResourceVersion() {
				t.Errorf("result is %+v, want resourceVersion %s and no change", result, before.GetResourceVersion())
			}
			if after := f.live(obj); after.GetResourceVersion() != before.GetResourceVersion() {
				t.Errorf("resourceVersion went from %s to %s", before.GetResourceVersion(), after.GetResourceVersion())
			}
		})
	}
}

func TestAlreadyExistsIsReadAgain(t *testing.T) {
	tests := map[string]struct {
		reason string
		// layer has the object already; "" for nobody.
		layer    string
		from     []string
		outdated bool
	}{
		"nobody's":         {reason: "objects that nobody owns are adopted"},
		"own":              {reason: "the cache may lag behind a creation of one's own", layer: owner},
		"another's":        {reason: "an object of another owner is left alone", layer: other, outdated: true},
		"another's, given": {reason: "the plan takes it from its owner", layer: other, from: []string{other}},
		"a third's":        {reason: "the plan takes it from somebody else", layer: "third", from: []string{other}, outdated: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			existing := f.configMap("settings", "a", "theirs", "b", "theirs")
			if test.layer != "" {
				existing = ownedBy(test.layer, existing)
			}
			created := f.create(existing, "somebody")
			action := writeOf(owner, f.configMap("settings", "a", "ours"))
			action.From = test.from
			if test.outdated {
				f.outdated(action)
				if live := f.live(existing); live.GetResourceVersion() != created.GetResourceVersion() {
					t.Errorf("it was changed: %s", test.reason)
				}
				return
			}
			f.done(action)
			live := f.live(existing)
			if live.GetUID() != created.GetUID() || live.GetLabels()[testKeys.Owner] != owner || field(live, "data", "a") != `"ours"` {
				t.Errorf("it is %v, want it adopted: %s", live.Object, test.reason)
			}
			if field(live, "data", "b") != `"theirs"` {
				t.Errorf("data is %s: what others have in a ConfigMap is theirs", field(live, "data"))
			}
		})
	}
}

func TestClaimNeedsWhatWasRead(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	f.create(release, "somebody")
	// Another owner is faster, between the look and the claim.
	c := interceptor.NewClient(f.others, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			f.patch(release, "somebody", `{"metadata":{"labels":{"kraan/layer":"apps"}}}`)
			return err
		},
	})
	f.executor = f.newExecutor(c)
	f.outdated(writeOf(owner, release))
	if live := f.live(release); live.GetLabels()[testKeys.Owner] != other || strings.Contains(strings.Join(managers(live), " "), dependents.FieldManager+"/") {
		t.Errorf("labels %v and managers %v, want the other's", live.GetLabels(), managers(live))
	}
}

func TestBeingDeletedIsOutdated(t *testing.T) {
	f := newFixture(t)
	release := ownedBy(owner, f.release("podinfo"))
	release.SetFinalizers([]string{"finalizers.fluxcd.io"})
	created := f.create(release, "somebody")
	f.must(f.others.Delete(f.ctx, created.DeepCopy()))
	before := f.live(release)
	f.outdated(seen(writeOf(owner, f.release("podinfo")), created))
	if after := f.live(release); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("an object that is being deleted was written")
	}
	f.patch(release, "somebody", `{"metadata":{"finalizers":null}}`)
}

// An object that the plan has not seen, because no cache shows it, and that is
// on its way out, is an error that backs off: it may take days.
func TestUnseenAndBeingDeletedIsAnError(t *testing.T) {
	f := newFixture(t)
	config := f.configMap("settings")
	config.SetFinalizers([]string{"example.dev/slow"})
	created := f.create(config, "somebody")
	f.must(f.others.Delete(f.ctx, created.DeepCopy()))
	results := f.run(writeOf(owner, f.configMap("settings")))
	if len(results) != 1 || !errors.Is(results[0].Err, errTerminating) || results[0].Outdated {
		t.Errorf("results are %+v", results)
	}
	f.patch(config, "somebody", `{"metadata":{"finalizers":null}}`)
}

func TestGoneIsCreatedAgain(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	live := f.written(release)
	f.must(f.others.Delete(f.ctx, live.DeepCopy()))
	f.done(seen(writeOf(owner, release), live))
	if again := f.live(release); again.GetUID() == live.GetUID() {
		t.Error("the object was not created again")
	}
}

// recreate replaces an object by one of the same name.
func (f *fixture) recreate(obj *unstructured.Unstructured) {
	f.Helper()
	f.must(f.others.Delete(f.ctx, obj.DeepCopy()))
	f.create(obj, "somebody")
}

func TestRecreatedMeanwhileIsOutdated(t *testing.T) {
	tests := map[string]func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs{
		"before the claim": func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs {
			return interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					f.recreate(release)
					return c.Patch(ctx, obj, patch, opts...)
				},
			}
		},
		"before the apply": func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs {
			return interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					f.recreate(release)
					return c.Apply(ctx, obj, opts...)
				},
			}
		},
		"deleted before the claim": func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs {
			return interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					f.must(f.others.Delete(ctx, release.DeepCopy()))
					return c.Patch(ctx, obj, patch, opts...)
				},
			}
		},
		"deleted before the apply": func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs {
			return interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					f.must(f.others.Delete(ctx, release.DeepCopy()))
					return c.Apply(ctx, obj, opts...)
				},
			}
		},
		"deleted before the look": func(f *fixture, release *unstructured.Unstructured) interceptor.Funcs {
			return interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					err := c.Create(ctx, obj, opts...)
					f.must(f.others.Delete(ctx, release.DeepCopy()))
					return err
				},
			}
		},
	}
	for name, intercept := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			release := f.release("podinfo")
			f.create(release, "somebody")
			f.executor = f.newExecutor(interceptor.NewClient(f.others, intercept(f, release)))
			f.outdated(writeOf(owner, release))
			if f.gone(release) {
				return
			}
			if live := f.live(release); live.GetLabels()[testKeys.Owner] != "" {
				t.Errorf("an object that the plan had not seen was claimed: %v", live.GetLabels())
			}
		})
	}
}

func TestCreateOnceIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	once := func() dependents.Action {
		action := writeOf(owner, f.configMap("settings", "a", "ours"))
		action.Wanted.Mode = dependents.ModeCreateOnce
		return action
	}
	f.done(once())
	f.patch(f.configMap("settings"), "somebody", `{"data":{"a":"theirs"}}`)
	before := f.live(f.configMap("settings"))
	f.requests.taken()
	result := f.done(seen(once(), before))[0]
	if diff := cmp.Diff([]string{"GET"}, f.requests.taken()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if live := f.live(before); result.Changed || field(live, "data", "a") != `"theirs"` {
		t.Errorf("data is %s, want it left alone", field(live, "data"))
	}
}

// Two owners that want one object at the same moment: one of them gets it, and
// it is written once.
func TestOnlyOneOfTwoWins(t *testing.T) {
	const rounds = 20
	tests := map[string]struct{ existing bool }{"a new object": {false}, "an object that nobody owns": {true}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			counts := map[string]*requests{owner: {}, other: {}}
			executors := map[string]*Executor{}
			for layer, count := range counts {
				executors[layer] = f.newExecutor(f.client(server.plane.Config(), count))
			}
			for range rounds {
				obj := f.configMap("settings", "winner", "nobody")
				if test.existing {
					f.create(obj, "somebody")
				}
				var mu sync.Mutex
				results := map[string]dependents.Result{}
				start := make(chan struct{})
				var wg sync.WaitGroup
				for layer, executor := range executors {
					counts[layer].taken()
					wg.Go(func() {
						<-start
						action := writeOf(layer, f.configMap("settings", "winner", layer))
						found := executor.Run(f.ctx, layer, dependents.Plan{Actions: []dependents.Action{action}})
						mu.Lock()
						defer mu.Unlock()
						results[layer] = found[0]
					})
				}
				close(start)
				wg.Wait()
				f.checkWinner(obj, results, counts, test.existing)
				f.must(f.others.Delete(f.ctx, f.live(obj)))
			}
		})
	}
}

func (f *fixture) checkWinner(obj *unstructured.Unstructured, results map[string]dependents.Result, counts map[string]*requests, existing bool) {
	f.Helper()
	live := f.live(obj)
	winner := live.GetLabels()[testKeys.Owner]
	loser := map[string]string{owner: other, other: owner}[winner]
	if won := results[winner]; won.Err != nil || won.Outdated || won.ResourceVersion != live.GetResourceVersion() {
		f.Fatalf("the winner %s got %+v", winner, won)
	}
	if lost := results[loser]; lost.Err != nil || !lost.Outdated {
		f.Fatalf("the loser %s got %+v", loser, lost)
	}
	if field(live, "data", "winner") != `"`+winner+`"` {
		f.Fatalf("data is %s, want it to be of %s", field(live, "data"), winner)
	}
	if requests := counts[winner].taken(); !existing && len(requests) != 1 {
		f.Fatalf("the winner made requests %v, want one", requests)
	}
}

func TestUnknownFieldsAndBigNumbersSurvive(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	set(release, "as written", "spec", "fieldOfTheFuture")
	set(release, int64(9007199254740993), "spec", "values", "big")
	set(release, 0.1, "spec", "values", "fraction")
	f.written(release)
	set(release, int64(2), "spec", "values", "replicas")
	live := f.rewritten(release)
	if diff := cmp.Diff(release.Object["spec"], live.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestFieldsRemovedFromGitGoAway(t *testing.T) {
	f := newFixture(t)
	release, settings := f.release("podinfo"), f.configMap("settings", "a", "1", "b", "2")
	set(release, true, "spec", "suspend")
	set(release, "5m", "spec", "timeout")
	set(release, "on", "spec", "values", "metrics", "enabled")
	release.SetAnnotations(map[string]string{"kraan.updateVersion": "true"})
	release.SetLabels(map[string]string{"team": "platform"})
	f.written(release)
	f.written(settings)

	release, settings = f.release("podinfo"), f.configMap("settings", "a", "1")
	live := f.rewritten(release)
	if diff := cmp.Diff(release.Object["spec"], live.Object["spec"]); diff != "" {
		t.Errorf("spec of the HelmRelease (-want +got):\n%s", diff)
	}
	if len(live.GetAnnotations()) != 0 || len(live.GetLabels()) != 1 {
		t.Errorf("annotations %v and labels %v, want the owner's label only", live.GetAnnotations(), live.GetLabels())
	}
	if diff := cmp.Diff([]string{"strata/Apply"}, managers(live)); diff != "" {
		t.Errorf("managers of the HelmRelease (-want +got):\n%s", diff)
	}
	live = f.rewritten(settings)
	if diff := cmp.Diff(map[string]any{"a": "1"}, live.Object["data"]); diff != "" {
		t.Errorf("data of the ConfigMap (-want +got):\n%s", diff)
	}
	live = f.rewritten(f.configMap("settings"))
	if field(live, "data") != "" {
		t.Errorf("data of the ConfigMap is %s, want none", field(live, "data"))
	}
}

// A kind may be written in another version from one day to the next. What the
// former version had and the new one lacks goes away all the same.
func TestFieldsRemovedWithAVersionGoAway(t *testing.T) {
	f := newFixture(t)
	autoscaler := func(version, more string) *unstructured.Unstructured {
		obj := parse(`
apiVersion: autoscaling/` + version + `
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
` + more)
		obj.SetNamespace(f.namespace)
		return obj
	}
	for _, again := range []bool{false, true} {
		old := autoscaler("v1", "  minReplicas: 3\n")
		f.written(old)
		if again {
			f.rewritten(old)
		}
		live := f.rewritten(autoscaler("v2", ""))
		if got := field(live, "spec", "minReplicas"); got != "1" {
			t.Errorf("minReplicas is %s, want the default", got)
		}
		if diff := cmp.Diff([]string{"strata/Apply"}, managers(live)); diff != "" {
			t.Errorf("managers (-want +got):\n%s", diff)
		}
		f.must(f.others.Delete(f.ctx, live))
	}
}

func TestFieldsOthersAddedAreTakenBack(t *testing.T) {
	tests := map[string]func(f *fixture, release *unstructured.Unstructured){
		"kubectl edit": func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
		},
		"kubectl edit, nested in values": func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"values":{"service":{"port":8080},"extra":{"deep":[1,2]}}}}`)
		},
		"kubectl replace": func(f *fixture, release *unstructured.Unstructured) {
			live := f.live(release)
			set(live, "9m", "spec", "timeout")
			set(live, "changed", "spec", "values", "service", "type")
			f.must(f.others.Update(f.ctx, live, client.FieldOwner("kubectl-replace")))
		},
		"another applier": func(f *fixture, release *unstructured.Unstructured) {
			obj := parse("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {timeout: 9m, values: {extra: {deep: true}}}\n")
			obj.SetNamespace(f.namespace)
			obj.SetName(release.GetName())
			f.apply(obj, "kustomize-controller")
		},
		"another applier of the same": func(f *fixture, release *unstructured.Unstructured) {
			obj := release.DeepCopy()
			set(obj, "9m", "spec", "timeout")
			f.apply(obj, "kubectl")
		},
		"a removed field": func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"values":{"service":null}}}`)
		},
		"the field of the future": func(f *fixture, release *unstructured.Unstructured) {
			f.patch(release, "kubectl-edit", `{"spec":{"fieldOfTheFuture":"theirs"}}`)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.executor.Known = nil // direct_test.go has the same with it
			release := f.release("podinfo")
			f.written(release)
			change(f, release)
			if cmp.Equal(release.Object["spec"], f.live(release).Object["spec"]) {
				t.Fatal("the change has changed nothing")
			}
			live := f.rewritten(release)
			if diff := cmp.Diff(release.Object["spec"], live.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			f.requests.taken()
			f.rewritten(release)
			if diff := cmp.Diff([]string{"GET", "PATCH"}, f.requests.taken()); diff != "" {
				t.Errorf("requests of the next write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsOthersAddedBeforeTheClaimAreTakenBack(t *testing.T) {
	f := newFixture(t)
	theirs := f.release("podinfo")
	set(theirs, "9m", "spec", "timeout")
	f.create(theirs, "helm")
	release := f.release("podinfo")
	f.done(writeOf(owner, release))
	if diff := cmp.Diff(release.Object["spec"], f.live(release).Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestSuspendIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	f.written(release)
	f.patch(release, "flux", `{"spec":{"suspend":true}}`)
	f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"}}`)
	live := f.rewritten(release)
	if field(live, "spec", "suspend") != "true" || field(live, "spec", "timeout") != "" {
		t.Errorf("spec is %s, want it suspended and without timeout", field(live, "spec"))
	}
	set(release, false, "spec", "suspend")
	if live = f.rewritten(release); field(live, "spec", "suspend") != "false" {
		t.Errorf("suspend is %s, want the word of git", field(live, "spec", "suspend"))
	}
}

func TestMetadataOfOthersIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	release.SetAnnotations(map[string]string{"ours": "1"})
	f.written(release)
	f.patch(release, "helm-controller", `{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)
	f.patch(release, "flux", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"},"labels":{"seen":"yes"}}}`)
	f.patch(release, "kubectl-edit", `{"spec":{"timeout":"9m"},"metadata":{"annotations":{"theirs":"2"}}}`)
	set(release, int64(2), "spec", "values", "replicas")
	live := f.rewritten(release)
	if diff := cmp.Diff([]string{"finalizers.fluxcd.io"}, live.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"ours": "1", "theirs": "2", "reconcile.fluxcd.io/requestedAt": "now"}, live.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"seen": "yes", testKeys.Owner: owner}, live.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if field(live, "spec", "timeout") != "" {
		t.Error("what kubectl-edit added to spec is still there")
	}
	f.patch(release, "somebody", `{"metadata":{"finalizers":null}}`)
}

func TestOrphanedIsNeverApplied(t *testing.T) {
	f := newFixture(t)
	release := f.release("podinfo")
	f.written(release)
	live := f.rewritten(release)
	mark := on(dependents.VerbMark, live)
	mark.Moment = time.Date(2026, 11, 21, 8, 30, 15, 999, time.FixedZone("", 3600))
	f.done(mark)
	live = f.live(release)
	if got := live.GetLabels()[testKeys.Orphaned]; got != "2026-11-21T07.30.15Z" {
		t.Errorf("the label is %q", got)
	}
	if applied := fieldsOfManager(live, dependents.FieldManager, metav1.ManagedFieldsOperationApply); strings.Contains(applied, testKeys.Orphaned) {
		t.Errorf("the applier owns %s", applied)
	}
	live = f.rewritten(release)
	if _, marked := live.GetLabels()[testKeys.Orphaned]; marked {
		t.Error("the label is still there after the object was written")
	}
	f.patch(release, "somebody", `{"metadata":{"labels":{"orphaned":"forged"}}}`)
	f.done(on(dependents.VerbUnmark, f.live(release)))
	live = f.live(release)
	if _, marked := live.GetLabels()[testKeys.Orphaned]; marked || live.GetLabels()[testKeys.Owner] != owner {
		t.Errorf("labels are %v, want the owner's only", live.GetLabels())
	}
}

// withOwners gives an object ownerReferences of a layer and of somebody else.
func withOwners(obj *unstructured.Unstructured, kinds ...string) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	var refs []metav1.OwnerReference
	yes := true
	for _, kind := range kinds {
		ref := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: "some", UID: "8a5ce9a1-2a0c-4d8c-9a1b-000000000000"}
		if kind == "AddonsLayer" {
			ref = metav1.OwnerReference{
				APIVersion: "kraan.io/v1alpha1", Kind: kind, Name: owner, Controller: &yes, BlockOwnerDeletion: &yes,
				UID: "8a5ce9a1-2a0c-4d8c-9a1b-000000000001",
			}
		}
		refs = append(refs, ref)
	}
	obj.SetOwnerReferences(refs)
	return obj
}

func TestFormerOwnerIsTakenOff(t *testing.T) {
	take := map[string]func(f *fixture, release, live *unstructured.Unstructured){
		"by a write": func(f *fixture, release, live *unstructured.Unstructured) {
			f.done(seen(writeOf(owner, release), live))
		},
		"by disown": func(f *fixture, _, live *unstructured.Unstructured) { f.done(on(dependents.VerbDisown, live)) },
	}
	for name, takeOff := range take {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for kept, kinds := range map[string][]string{
				"":          {"AddonsLayer"},
				"ConfigMap": {"ConfigMap", "AddonsLayer"},
			} {
				release := f.release("podinfo")
				live := f.create(withOwners(ownedBy(owner, release), kinds...), "kraan")
				takeOff(f, release, live)
				after := f.live(release)
				var names []string
				for _, ref := range after.GetOwnerReferences() {
					names = append(names, ref.Kind)
				}
				if got := strings.Join(names, ","); got != kept || after.GetUID() != live.GetUID() {
					t.Errorf("owners are %q, want %q, on the same object", got, kept)
				}
				f.must(f.others.Delete(f.ctx, after))
			}
		})
	}
}
