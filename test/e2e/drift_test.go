// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// drift is one way in which somebody changes an object that a layer has.
type drift struct {
	name string
	// object is what is changed: a release of configMapRelease or a ConfigMap.
	object client.Object
	// patch is what somebody merges into it; "" deletes it.
	patch string
}

var drifts = []drift{
	{"an edited value of a release", &helmv2.HelmRelease{}, `{"spec":{"values":{"data":{"value":"edited"}}}}`},
	{"a value added to a release", &helmv2.HelmRelease{}, `{"spec":{"values":{"data":{"extra":"added"}}}}`},
	{"a field added to the spec of a release", &helmv2.HelmRelease{}, `{"spec":{"timeout":"9m0s"}}`},
	{"the owner label removed from a release", &helmv2.HelmRelease{}, `{"metadata":{"labels":{"kraan/layer":null}}}`},
	{"the owner label of a release changed", &helmv2.HelmRelease{}, `{"metadata":{"labels":{"kraan/layer":"nobody"}}}`},
	{"a forged orphaned label on a release", &helmv2.HelmRelease{}, `{"metadata":{"labels":{"orphaned":"2020-01-01T00.00.00Z"}}}`},
	{"an edited ConfigMap", &corev1.ConfigMap{}, `{"data":{"value":"edited"}}`},
	{"the owner label removed from a ConfigMap", &corev1.ConfigMap{}, `{"metadata":{"labels":{"kraan/layer":null}}}`},
	{"a deleted ConfigMap", &corev1.ConfigMap{}, ""},
}

// manifest returns the object as it is in git.
func (d drift) manifest(f *fixture, name string) string {
	if _, isRelease := d.object.(*helmv2.HelmRelease); isRelease {
		return f.configMapRelease(name, "one")
	}
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: one}\n", name, f.prefix)
}

// happen changes the object.
func (d drift) happen(f *fixture, name string) {
	f.Helper()
	obj := d.object.DeepCopyObject().(client.Object)
	obj.SetNamespace(f.prefix)
	obj.SetName(name)
	if d.patch == "" {
		f.must(stack.client.Delete(f.ctx, obj))
		return
	}
	f.patch(obj, d.patch)
}

// difference says how the object differs from what git says; nil for not at
// all.
func (d drift) difference(f *fixture, name string) error {
	f.Helper()
	obj := d.object.DeepCopyObject().(client.Object)
	if f.absent(obj, name) {
		return errors.New("it does not exist")
	}
	_, marked := obj.GetLabels()[v1alpha1.OrphanedLabel]
	switch {
	case !obj.GetDeletionTimestamp().IsZero():
		return errors.New("it is being deleted")
	case obj.GetLabels()[v1alpha1.LayerLabel] != f.name("base") || marked:
		return fmt.Errorf("its labels are %v", obj.GetLabels())
	}
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		if obj.Data["value"] != "one" {
			return fmt.Errorf("it holds %v", obj.Data)
		}
	case *helmv2.HelmRelease:
		if obj.Spec.Timeout != nil || obj.Spec.Values == nil || string(obj.Spec.Values.Raw) != `{"data":{"value":"one"}}` {
			return fmt.Errorf("spec.timeout is %v and spec.values %s", obj.Spec.Timeout, obj.Spec.Values)
		}
	}
	return nil
}

// Whatever somebody changes by hand is as git says again because it was changed:
// without a cause the layer is looked at once an hour. What was never deleted is
// not created again.
func TestDriftIsCorrectedAtOnce(t *testing.T) {
	t.Parallel()
	for _, d := range drifts {
		t.Run(d.name, func(t *testing.T) {
			f := newFixture(t)
			revision := f.push(map[string]string{"base/one.yaml": d.manifest(f, "one")})
			f.layer("base")
			f.deployed("base", revision)
			f.must(d.difference(f, "one"))
			c := f.chronicle(&helmv2.HelmReleaseList{})
			began := time.Now()
			d.happen(f, "one")
			f.eventually("it is restored", func() error { return d.difference(f, "one") })
			t.Logf("restored after %s", time.Since(began).Round(time.Millisecond))

			f.deployed("base", revision)
			if _, isRelease := d.object.(*helmv2.HelmRelease); isRelease {
				c.neverDeleted("HelmRelease", "one")
			}
			if err := d.difference(f, "one"); err != nil {
				t.Errorf("it did not stay restored: %v", err)
			}
		})
	}
}

// deployOne deploys the layer base with the release one.
func (f *fixture) deployOne() (revision string) {
	f.Helper()
	revision = f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "one")})
	f.layer("base")
	f.deployed("base", revision)
	return revision
}

// A release that somebody deletes is created again as soon as Helm has
// uninstalled it.
func TestDeletedReleaseIsCreatedAgain(t *testing.T) {
	f := newFixture(t)
	revision := f.deployOne()
	c := f.helmChronicle()
	before := f.release("one")
	f.must(stack.client.Delete(f.ctx, f.release("one")))
	since := func(event watch.EventType) func(happening) bool {
		return func(h happening) bool {
			return h.event == event && (event == watch.Deleted || h.object.GetUID() != before.UID)
		}
	}
	gone := c.when("HelmRelease", "one", "is gone", time.Time{}, since(watch.Deleted))
	again := c.when("HelmRelease", "one", "is created again", time.Time{}, since(watch.Added))
	t.Logf("created %s after it was gone", again.at.Sub(gone.at).Round(time.Millisecond))
	// The layer may say for a moment still that the release before is deployed.
	f.eventually("it is installed again", func() error {
		if f.absent(&corev1.ConfigMap{}, "one") || len(f.helmHistory("one")) != 1 {
			return fmt.Errorf("Helm's history is %v", f.helmHistory("one"))
		}
		return nil
	})
	f.deployed("base", revision)
	if got := f.resource("base", "one"); got != "Deployed" {
		t.Errorf("the layer shows it as %s", got)
	}
}

// A held layer is left as it is, whatever somebody does to it; all of that is
// corrected when the hold is lifted.
func TestDriftOfAHeldLayerIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	name := func(i int) string { return fmt.Sprintf("object-%d", i) }
	files := map[string]string{}
	for i, d := range drifts {
		files[fmt.Sprintf("base/%d.yaml", i)] = d.manifest(f, name(i))
	}
	revision := f.push(files)
	f.layer("base")
	f.deployed("base", revision)
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":"incident"}}}`)
	f.state("base", v1alpha1.StateHold, "incident")
	for i, d := range drifts {
		d.happen(f, name(i))
	}
	f.throughout(aWhile, "all stays as somebody left it", func() error {
		for i, d := range drifts {
			if d.difference(f, name(i)) == nil {
				return fmt.Errorf("%s: it is as git says", d.name)
			}
		}
		return nil
	})
	f.edit("base", `{"metadata":{"annotations":{"kraan.io/hold":null}}}`)
	f.eventually("all is restored after the hold", func() error {
		for i, d := range drifts {
			if err := d.difference(f, name(i)); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		return nil
	})
	f.deployed("base", revision)
}

func TestReleaseDeletedFromAHeldLayerStaysAway(t *testing.T) {
	f := newFixture(t)
	revision := f.deployOne()
	f.edit("base", `{"spec":{"hold":true}}`)
	f.state("base", v1alpha1.StateHold)
	f.must(stack.client.Delete(f.ctx, f.release("one")))
	f.eventually("it is gone", func() error {
		if !f.absent(&helmv2.HelmRelease{}, "one") {
			return errStillThere
		}
		return nil
	})
	f.throughout(aWhile, "it stays away", func() error {
		if !f.absent(&helmv2.HelmRelease{}, "one") {
			return errors.New("it was created again")
		}
		return nil
	})
	f.edit("base", `{"spec":{"hold":false}}`)
	f.deployed("base", revision)
	if len(f.helmHistory("one")) != 1 {
		t.Errorf("Helm's history is %v", f.helmHistory("one"))
	}
}

// flux suspend is left alone, shown, and neither blocks nor counts; a commit
// changes the release and leaves it suspended.
func TestReleaseSuspendedByHandStaysSuspendedAndIsShown(t *testing.T) {
	f := newFixture(t)
	f.deployOne()
	began := time.Now()
	f.suspend("one", true)
	shown := func(what string) {
		t.Helper()
		f.eventually(what, func() error {
			layer := f.get("base")
			if got := f.resource("base", "one"); got != "Suspended" || layer.Status.State != v1alpha1.StateDeployed ||
				!strings.Contains(readyMessage(layer), "1 of them suspended") {
				return fmt.Errorf("status.resources shows %s, the layer is %s: %s", got, layer.Status.State, readyMessage(layer))
			}
			return nil
		})
	}
	shown("the layer shows it")
	t.Logf("shown after %s", time.Since(began).Round(time.Millisecond))
	f.throughout(aWhile, "it stays suspended", func() error {
		if !f.release("one").Spec.Suspend {
			return errors.New("it is resumed")
		}
		return nil
	})

	revision := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "two")})
	f.deployed("base", revision)
	shown("the layer shows it after a commit")
	release := f.release("one")
	if !release.Spec.Suspend || !strings.Contains(string(release.Spec.Values.Raw), `"two"`) {
		t.Errorf("after a commit it is suspended %v with %s", release.Spec.Suspend, release.Spec.Values.Raw)
	}
	if got := f.configMap("one")["value"]; got != "one" {
		t.Errorf("Flux has upgraded a suspended release: %s", got)
	}

	f.suspend("one", false)
	f.eventually("the layer shows it as deployed again", func() error {
		layer := f.get("base")
		if got := f.resource("base", "one"); got != "Deployed" || strings.Contains(readyMessage(layer), "suspended") {
			return fmt.Errorf("status.resources shows %s: %s", got, readyMessage(layer))
		}
		return nil
	})
	if got := f.configMap("one")["value"]; got != "two" {
		t.Errorf("the value is %q", got)
	}
}

// suspend: true in git is git's word: nothing is installed, the layer is
// deployed without it, and a resume by hand is taken back.
func TestSuspendInGitIsHonoured(t *testing.T) {
	f := newFixture(t)
	suspended := strings.Replace(f.configMapRelease("one", "one"), "  interval: 1h\n", "  interval: 1h\n  suspend: true\n", 1)
	revision := f.push(map[string]string{"base/one.yaml": suspended, "base/other.yaml": f.configMapRelease("other", "one")})
	f.layer("base")
	layer := f.deployed("base", revision)
	if got := f.resource("base", "one"); got != "Suspended" || !strings.Contains(readyMessage(layer), "1 of them suspended") {
		t.Errorf("status.resources shows %s: %s", got, readyMessage(layer))
	}
	f.suspend("one", false)
	f.eventually("it is suspended again", func() error {
		if !f.release("one").Spec.Suspend {
			return errors.New("it is not suspended")
		}
		return nil
	})
	f.deployed("base", revision)

	revision = f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "one")})
	f.deployed("base", revision)
	if f.release("one").Spec.Suspend || f.configMap("one")["value"] != "one" {
		t.Errorf("without the line in git it is suspended %v, with the value %q", f.release("one").Spec.Suspend, f.configMap("one")["value"])
	}
}

// What Flux and others keep in the metadata of a release survives corrections,
// commits and adoptions.
func TestFinalizersAndAnnotationsOfOthersAreKept(t *testing.T) {
	f := newFixture(t)
	f.independentLayers()
	content := f.configMapRelease("one", "one")
	f.deployed("base", f.push(map[string]string{"base/one.yaml": content}))
	const slow = "example.dev/slow"
	f.patch(&helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "one"}}, `{"metadata":{
		"labels":{"example.dev/team":"web"},
		"annotations":{"example.dev/note":"kept","reconcile.fluxcd.io/requestedAt":"now","reconcile.fluxcd.io/forceAt":"now"},
		"finalizers":["finalizers.fluxcd.io","`+slow+`"]}}`)
	t.Cleanup(func() {
		release := &helmv2.HelmRelease{}
		if f.absent(release, "one") {
			return
		}
		patch := client.MergeFrom(release.DeepCopy())
		release.Finalizers = slices.DeleteFunc(release.Finalizers, func(s string) bool { return s == slow })
		f.must(client.IgnoreNotFound(stack.client.Patch(f.ctx, release, patch)))
	})
	kept := func(when string) {
		t.Helper()
		release := f.release("one")
		if finalizers := slices.Sorted(slices.Values(release.Finalizers)); !slices.Equal(finalizers, []string{slow, "finalizers.fluxcd.io"}) {
			t.Errorf("%s the finalizers are %v", when, finalizers)
		}
		want := map[string]string{"example.dev/note": "kept", "reconcile.fluxcd.io/requestedAt": "now", "reconcile.fluxcd.io/forceAt": "now"}
		if !maps.Equal(release.Annotations, want) {
			t.Errorf("%s the annotations are %v", when, release.Annotations)
		}
		if release.Labels["example.dev/team"] != "web" {
			t.Errorf("%s the labels are %v", when, release.Labels)
		}
	}
	f.patch(f.release("one"), `{"spec":{"timeout":"9m0s"}}`)
	f.eventually("it is restored", func() error {
		if timeout := f.release("one").Spec.Timeout; timeout != nil {
			return fmt.Errorf("spec.timeout is %s", timeout.Duration)
		}
		return nil
	})
	kept("after a correction")

	content = f.configMapRelease("one", "two")
	f.deployed("base", f.push(map[string]string{"base/one.yaml": content}))
	kept("after a commit")

	revision := f.rewrite(map[string]string{"base/one.yaml": "", "apps/one.yaml": content})
	f.deployed("apps", revision)
	f.deployed("base", revision)
	if owner := f.release("one").Labels[v1alpha1.LayerLabel]; owner != f.name("apps") {
		t.Errorf("it belongs to %s", owner)
	}
	kept("after an adoption")
}

// The API server's definition of a HelmRelease may know fields that the
// controller's libraries do not: they arrive, survive and are corrected like
// any other.
func TestFieldsThatOurTypesDoNotKnowSurvive(t *testing.T) {
	f := newSerialFixture(t)
	f.futureHelmRelease()
	manifest := func(mode, value string) string {
		return strings.Replace(f.configMapRelease("one", value), "  interval: 1h\n",
			"  interval: 1h\n  futureOption: {mode: "+mode+", exact: 9007199254740993}\n", 1)
	}
	option := func() string {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(helmv2.GroupVersion.WithKind("HelmRelease"))
		f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "one"}, live))
		found, _, _ := unstructured.NestedMap(live.Object, "spec", "futureOption")
		return fmt.Sprint(found)
	}
	expect := func(want string) {
		t.Helper()
		if got := option(); got != want {
			t.Errorf("spec.futureOption is %s, want %s", got, want)
		}
	}
	f.push(map[string]string{"base/one.yaml": manifest("fast", "one")})
	f.layer("base")
	f.deployed("base", f.push(map[string]string{"base/one.yaml": manifest("fast", "two")}))
	expect("map[exact:9007199254740993 mode:fast]")

	f.patch(f.release("one"), `{"spec":{"futureOption":null}}`)
	f.eventually("it is restored", func() error {
		if option() == "map[]" {
			return errors.New("it is gone")
		}
		return nil
	})
	expect("map[exact:9007199254740993 mode:fast]")

	f.deployed("base", f.push(map[string]string{"base/one.yaml": manifest("slow", "two")}))
	expect("map[exact:9007199254740993 mode:slow]")
	f.deployed("base", f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "two")}))
	expect("map[]")
}

// futureHelmRelease adds a field to the definition of HelmReleases until the
// test ends.
func (f *fixture) futureHelmRelease() {
	f.Helper()
	key := types.NamespacedName{Name: "helmreleases.helm.toolkit.fluxcd.io"}
	change := func(edit func(map[string]apiextensionsv1.JSONSchemaProps)) {
		f.Helper()
		definition := &apiextensionsv1.CustomResourceDefinition{}
		f.must(stack.client.Get(f.ctx, key, definition))
		for i := range definition.Spec.Versions {
			edit(definition.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"].Properties)
		}
		f.must(stack.client.Update(f.ctx, definition))
	}
	yes := true
	change(func(fields map[string]apiextensionsv1.JSONSchemaProps) {
		fields["futureOption"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	})
	f.Cleanup(func() {
		change(func(fields map[string]apiextensionsv1.JSONSchemaProps) { delete(fields, "futureOption") })
	})
	f.eventually("the API server knows the new field", func() error {
		probe := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
			"metadata": map[string]any{"name": "probe", "namespace": f.prefix},
			"spec": map[string]any{
				"interval": "1h", "futureOption": map[string]any{"mode": "probe"},
				"chartRef": map[string]any{"kind": "HelmChart", "name": "probe"},
			},
		}}
		if err := stack.client.Create(f.ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if _, found, _ := unstructured.NestedMap(probe.Object, "spec", "futureOption"); !found {
			return errors.New("it drops the field")
		}
		return nil
	})
}

// The finalizer is put into the metadata and nothing else is written back: the
// specification stays as its author wrote it, in every letter.
func TestFinalizerDoesNotBumpTheGeneration(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "one")})
	layer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kraan.io/v1alpha1", "kind": "AddonsLayer",
		"metadata": map[string]any{"name": f.name("base")},
		"spec": map[string]any{
			"version": "1.0.0", "interval": "3600s", "orphanGrace": "1000ms", "hold": false,
			"source":  map[string]any{"kind": "", "name": "addons", "namespace": f.prefix, "path": "./base"},
			"prereqs": map[string]any{},
		},
	}}
	f.must(stack.client.Create(f.ctx, layer))
	written := layer.Object["spec"]
	f.deployed("base", revision)
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, layer))
	if !slices.Contains(layer.GetFinalizers(), v1alpha1.Finalizer) || layer.GetGeneration() != 1 {
		t.Errorf("finalizers %v, generation %d", layer.GetFinalizers(), layer.GetGeneration())
	}
	if fmt.Sprint(layer.Object["spec"]) != fmt.Sprint(written) {
		t.Errorf("the specification became %v, written was %v", layer.Object["spec"], written)
	}
	if !meta.IsStatusConditionTrue(f.get("base").Status.Conditions, v1alpha1.ReadyCondition) {
		t.Error("the layer is not Ready")
	}
}

// A kind without a generation whose status others write disturbs nobody: the layer stays
// Deployed, and writes nothing. What was applied is still repaired.
func TestStatusOfAKindWithoutGeneration(t *testing.T) {
	f := newFixture(t)
	revision := f.push(map[string]string{"limits/quota.yaml": `apiVersion: v1
kind: ResourceQuota
metadata: {name: limits, namespace: ` + f.prefix + `}
spec: {hard: {count/configmaps: "50"}}
`, "limits/release.yaml": f.configMapRelease("limits", "one")})
	f.layer("limits")
	f.deployed("limits", revision)
	quota := &corev1.ResourceQuota{}
	at := client.ObjectKey{Namespace: f.prefix, Name: "limits"}
	used := func() string {
		f.must(stack.client.Get(f.ctx, at, quota))
		amount := quota.Status.Used["count/configmaps"]
		return amount.String()
	}
	f.eventually("the quota is counted", func() error {
		if used() == "0" {
			return errors.New("nothing is counted")
		}
		return nil
	})
	since, before := f.get("limits").Status.StateSince, used()
	f.must(stack.client.Create(f.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "one-more"}}))
	f.eventually("one more is counted", func() error {
		if used() == before {
			return errors.New("it is not counted")
		}
		return nil
	})
	// A look that has certainly seen it.
	f.must(f.patchLayer(f.name("limits"), `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"now"}}}`))
	f.eventually("the layer is looked at", func() error {
		if f.get("limits").Status.LastHandledReconcileAt != "now" {
			return errors.New("it is not")
		}
		return nil
	})
	if now := f.get("limits").Status.StateSince; !now.Equal(&since) {
		t.Errorf("it is Deployed since %s, and was since %s", now, since)
	}
	for _, entry := range quota.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Time.After(since.Add(2*time.Second)) {
			t.Errorf("%s has written at %s", entry.Manager, entry.Time)
		}
	}
	f.must(stack.client.Patch(f.ctx, quota, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hard":{"count/configmaps":"60"}}}`))))
	f.eventually("the quota is as it was applied", func() error {
		f.must(stack.client.Get(f.ctx, at, quota))
		if hard := quota.Spec.Hard["count/configmaps"]; hard.String() != "50" {
			return fmt.Errorf("it is %s", hard.String())
		}
		return nil
	})
}
