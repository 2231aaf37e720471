// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/heldacts"
)

// runs is how often Flux applies what it has, between two looks at what people have decided.
const runs = 10

// applied is a Kustomization by which Flux applies Strata's own objects.
type applied struct {
	*handOver
	asked int
}

// run has Flux apply the objects once more, and waits until it has.
func (a *applied) run(times int) {
	a.Helper()
	for range times {
		a.asked++
		asked := fmt.Sprint("run-", a.asked)
		of := a.object(a.name("own"))
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReconcileRequestAnnotation, asked)
		a.must(stack.client.Patch(a.ctx, of, client.RawPatch(types.MergePatchType, patch)))
		a.within(patience, "Flux has applied the objects", func() error {
			if err := stack.client.Get(a.ctx, client.ObjectKeyFromObject(of), of); err != nil {
				return err
			}
			if handled, _, _ := unstructured.NestedString(of.Object, "status", "lastHandledReconcileAt"); handled != asked {
				return fmt.Errorf("it has handled %s", handled)
			}
			return nil
		})
	}
}

// annotationsOf returns the annotations of an object of Strata's.
func (a *applied) annotationsOf(kind, namespace, name string) map[string]string {
	a.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	a.must(stack.client.Get(a.ctx, types.NamespacedName{Namespace: namespace, Name: name}, object))
	return object.GetAnnotations()
}

// owned waits until Strata owns acts of an object, too.
func (a *applied) owned(kind, namespace, name string, want ...string) {
	a.Helper()
	a.within(patience, "Strata owns the acts of "+kind, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		if err := stack.client.Get(a.ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
			return err
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == heldacts.Manager && !slices.ContainsFunc(want, func(act string) bool { return !strings.Contains(entry.FieldsV1.GetRawString(), act) }) {
				return nil
			}
		}
		return fmt.Errorf("it does not: %v", object.GetManagedFields())
	})
}

// What people decide on objects that Flux applies stays for ten runs of kustomize-controller,
// whether they say it with kubectl, the plug-in or the page, and goes when they take it off.
func TestActsStayWhereFluxAppliesTheLayers(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	a := &applied{handOver: &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("operator", "cluster-admin")}}
	layer, platform, cluster := f.name("base"), f.name("apps"), "edge"
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"),
		"own/own.yaml": fmt.Sprintf(`apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: %[1]s}
spec: {version: 1.0.0, interval: 1h, source: {name: addons, namespace: %[4]s, path: ./base}}
---
apiVersion: kraan.io/v1alpha1
kind: Platform
metadata: {name: %[2]s}
spec: {bundle: {family: none, version: 1.0.0}}
---
apiVersion: kraan.io/v1alpha1
kind: RemoteCluster
metadata: {name: %[3]s, namespace: %[4]s}
spec: {kubeConfig: {secretRef: {name: none}}}
`, layer, platform, cluster, f.prefix),
	})
	kustomization := a.object(f.name("own"))
	kustomization.Object["spec"] = map[string]any{
		"interval": "1h", "path": "./own", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
	}
	f.must(stack.client.Create(f.ctx, kustomization))
	f.Cleanup(func() {
		f.letGo(kustomization)
		f.letGo(f.get("base"))
		f.letGo(f.getPlatform("apps"))
	})
	a.within(patience, "Flux has made the layer", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Name: layer}, &v1alpha1.AddonsLayer{})
	})
	f.deployed("base", revision)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	all := []struct {
		kind, namespace, name string
		says                  map[string]string
	}{
		{"AddonsLayer", "", layer, map[string]string{
			v1alpha1.HoldAnnotation: "driver freeze", v1alpha1.HoldUntilAnnotation: later, v1alpha1.HoldReleasesAnnotation: "true",
			v1alpha1.AllowEmptyAnnotation: "next", v1alpha1.AllowPruneAnnotation: "next", v1alpha1.AllowBreakAnnotation: "true",
			v1alpha1.ForceDeleteAnnotation: "true", v1alpha1.ConfirmDeletionAnnotation: "true", v1alpha1.AbandonAnnotation: "true", v1alpha1.RollbackToAnnotation: "99",
		}},
		{"Platform", "", platform, map[string]string{v1alpha1.ApproveAnnotation: "first@1.0.0", v1alpha1.ApprovedByAnnotation: "ann", v1alpha1.ApproveReasonAnnotation: "seen"}},
		{"RemoteCluster", f.prefix, cluster, map[string]string{v1alpha1.AcceptClusterAnnotation: "uid", v1alpha1.TakeOverAnnotation: "uid", v1alpha1.AbandonAnnotation: "false"}},
	}
	const note = "example.com/note"
	var takenOff []func()
	defer func() {
		for _, takeOff := range takenOff {
			takeOff()
		}
	}()
	for _, each := range all {
		args := []string{"annotate", strings.ToLower(each.kind), each.name, note + "=x"}
		off := []string{"annotate", strings.ToLower(each.kind), each.name}
		if each.namespace != "" {
			args, off = append(args, "--namespace", each.namespace), append(off, "--namespace", each.namespace)
		}
		for _, key := range slices.Sorted(maps.Keys(each.says)) {
			args, off = append(args, key+"="+each.says[key]), append(off, key+"-")
		}
		output, err := f.kubectl(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		a.owned(each.kind, each.namespace, each.name, slices.Collect(maps.Keys(each.says))...)
		takenOff = append(takenOff, func() {
			output, err := f.kubectl(off...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			a.run(2)
			has := a.annotationsOf(each.kind, each.namespace, each.name)
			for key := range each.says {
				if _, there := has[key]; there {
					t.Errorf("%s of %s is back, although somebody has taken it off", key, each.kind)
				}
			}
		})
	}
	a.run(runs)
	for _, each := range all {
		has := a.annotationsOf(each.kind, each.namespace, each.name)
		for key, value := range each.says {
			if has[key] != value {
				t.Errorf("%s of %s is %q after %d runs of Flux", key, each.kind, has[key], runs)
			}
		}
		if has[note] != "" {
			t.Errorf("Flux does not take over what kubectl writes of %s, so that this shows nothing", each.kind)
		}
	}
	f.held("base", "driver freeze")
}

// The plug-in and the page write as a manager that Flux leaves alone.
func TestActsOfThePluginStay(t *testing.T) {
	f := newFixture(t)
	f.must(kustomizeController())
	path, err := builtPlugin()
	f.must(err)
	a := &applied{handOver: &handOver{fixture: f, plugin: plugin{fixture: f, path: path}.of("operator", "cluster-admin")}}
	revision := f.push(map[string]string{
		"base/release.yaml": f.configMapRelease("base", "one"),
		"own/own.yaml": fmt.Sprintf("apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: %s}\nspec: {version: 1.0.0, interval: 1h, source: {name: addons, namespace: %s, path: ./base}}\n",
			f.name("base"), f.prefix),
	})
	kustomization := a.object(f.name("own"))
	kustomization.Object["spec"] = map[string]any{
		"interval": "1h", "path": "./own", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": "addons"},
	}
	f.must(stack.client.Create(f.ctx, kustomization))
	f.Cleanup(func() {
		f.letGo(kustomization)
		f.letGo(f.get("base"))
	})
	a.within(patience, "Flux has made the layer", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("base")}, &v1alpha1.AddonsLayer{})
	})
	f.deployed("base", revision)
	page := gather.New(gather.Options{Config: func() (*rest.Config, error) { return stack.plane.Config(), nil }, Now: time.Now})
	annotations, _, err := acts.HoldOf("freeze of the page", "", false, time.Now())
	f.must(err)
	for who, hold := range map[string]func() string{
		"plug-in": func() string {
			if code, output := a.plugin.run("hold", f.name("base"), "--reason", "freeze of the plug-in"); code != 0 {
				t.Fatal(output)
			}
			return "freeze of the plug-in"
		},
		"page": func() string {
			f.must(page.Annotate(f.ctx, acts.Patch{
				Resource: v1alpha1.GroupVersion.WithResource("addonslayers"), Name: f.name("base"), Annotations: annotations,
			}))
			return "freeze of the page"
		},
	} {
		reason := hold()
		a.run(runs)
		if has := f.get("base").Annotations[v1alpha1.HoldAnnotation]; has != reason {
			t.Errorf("the hold of the %s is %q after %d runs of Flux", who, has, runs)
		}
		if code, output := a.plugin.run("resume", f.name("base")); code != 0 {
			t.Fatal(output)
		}
		a.run(1)
		if has, there := f.get("base").Annotations[v1alpha1.HoldAnnotation]; there {
			t.Errorf("the hold of the %s is back: %q", who, has)
		}
	}
}
