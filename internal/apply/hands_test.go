// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
)

// deployment returns a Deployment that says no replicas.
func (f *fixture) deployment(name string) *unstructured.Unstructured {
	obj := parse(`
apiVersion: apps/v1
kind: Deployment
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.invalid/web:1
        env: [{name: KEEP, value: "1"}, {name: LEGACY, value: "1"}]
        resources: {requests: {cpu: 1000m}}
`)
	obj.SetNamespace(f.namespace)
	obj.SetName(name)
	return obj
}

func (f *fixture) service(name string) *unstructured.Unstructured {
	obj := parse(`
apiVersion: v1
kind: Service
spec:
  selector: {app: web}
  ports: [{name: http, port: 8080}, {name: metrics, port: 9090}]
`)
	obj.SetNamespace(f.namespace)
	obj.SetName(name)
	return obj
}

// jsonPatch changes an object as somebody else, as kubectl patch --type=json does.
func (f *fixture) jsonPatch(obj *unstructured.Unstructured, manager, patch string) {
	f.Helper()
	f.must(f.others.Patch(f.ctx, obj.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner(manager)))
}

// correction writes an object again that is as it was written last but for what others have
// changed.
func (f *fixture) correction(obj *unstructured.Unstructured) dependents.Result {
	f.Helper()
	action := seen(writeOf(owner, obj), f.live(obj))
	action.Correction, action.Again = true, true
	return f.done(action)[0]
}

// What people write by kubectl is taken back, whatever it is, and that is said; what others
// write beside what is applied stays, and is no correction.
func TestHandEditsAreTakenBack(t *testing.T) {
	deployment, service, settings := (*fixture).deployment, (*fixture).service, func(f *fixture, name string) *unstructured.Unstructured {
		return f.configMap(name, "a", "1")
	}
	for name, test := range map[string]struct {
		reason string
		of     func(*fixture, string) *unstructured.Unstructured
		// merge or json is the change, and by who makes it.
		merge, json, by string
		// changed is what the correction says; stays is the part of spec or data that is not as before.
		changed bool
		stays   bool
		rivals  []fields.Rival
	}{
		"a field is added": {
			reason: "no git has it", of: deployment, by: "kubectl-edit", merge: `{"spec":{"template":{"spec":{"hostNetwork":true}}}}`,
			changed: true, rivals: []fields.Rival{{Field: "spec.template.spec.hostNetwork", Manager: "kubectl-edit"}},
		},
		"an entry of a list is added": {
			reason: "no git has it", of: deployment, by: "kubectl-edit", changed: true,
			json: `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"HACK","value":"1"}}]`,
		},
		"a value is changed": {
			reason: "git has another", of: deployment, by: "kubectl-set", changed: true,
			json: `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.invalid/web:2"}]`,
		},
		"a value is changed by a controller": {
			reason: "git has another", of: deployment, by: "some-controller", changed: true,
			json:   `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.invalid/web:2"}]`,
			rivals: []fields.Rival{{Field: `spec.template.spec.containers[name="web"].image`, Manager: "some-controller"}},
		},
		"a key is added": {reason: "no git has it", of: settings, by: "kubectl-edit", merge: `{"data":{"b":"2"}}`, changed: true},
		"a key is added by a controller": {
			reason: "it may", of: settings, by: "some-controller", merge: `{"data":{"b":"2"}}`, stays: true,
		},
		"it is scaled": {
			reason: "git says no replicas", of: deployment, by: "kubectl", merge: `{"spec":{"replicas":5}}`, stays: true,
		},
		"it is restarted": {
			reason: "a restart is no change of what is wanted", of: deployment, by: "kubectl-rollout", stays: true,
			merge: `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-29T10:00:00Z"}}}}}`,
		},
		"a port is changed": {
			reason: "an item whose key is changed is another one", of: service, by: "kubectl-patch", changed: true,
			json: `[{"op":"replace","path":"/spec/ports/1/port","value":9091}]`,
		},
		"ports change places": {
			reason: "the order is git's", of: service, by: "kubectl-edit", changed: true,
			json: `[{"op":"replace","path":"/spec/ports","value":[{"name":"metrics","port":9090,"protocol":"TCP","targetPort":9090},{"name":"http","port":8080,"protocol":"TCP","targetPort":8080}]}]`,
		},
		"an entry is there twice": {
			reason: "the second one counts, so that the first one is not what git says", of: deployment, by: "kubectl-edit", changed: true,
			json: `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"KEEP","value":"2"}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			obj := test.of(f, "web")
			f.written(obj)
			before := f.rewritten(obj)
			if test.merge != "" {
				f.patch(obj, test.by, test.merge)
			} else {
				f.jsonPatch(obj, test.by, test.json)
			}
			edited := f.live(obj)
			result := f.correction(obj)
			after := f.live(obj)
			if result.Changed != test.changed {
				t.Errorf("changed is %t: %s", result.Changed, test.reason)
			}
			wanted := before
			if test.stays {
				wanted = edited
			}
			for _, part := range []string{"spec", "data"} {
				if diff := cmp.Diff(wanted.Object[part], after.Object[part]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", part, test.reason, diff)
				}
			}
			for _, rival := range test.rivals {
				if !slices.Contains(result.Rivals, rival) {
					t.Errorf("rivals are %v, want %v", result.Rivals, rival)
				}
			}
			if again := f.correction(obj); again.Changed || len(again.Rivals) > 0 {
				t.Errorf("a second time it is %+v", again)
			}
			if note := fields.NoteOf(f.live(obj)); note.Own != result.Fields && !test.stays || note.Hands {
				t.Errorf("the note is %+v, want the fields %s", note, result.Fields)
			}
		})
	}
}

// What others applied before an object was adopted goes when it leaves git, whatever they
// applied it with; what Helm installed stays Helm's.
func TestWhatWasAdoptedLosesFields(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(*fixture, *unstructured.Unstructured)
		stays bool
		// marked is true where the label stays all the same: it may have been set by hand.
		marked bool
	}{
		"kubectl create": {make: func(f *fixture, obj *unstructured.Unstructured) { f.create(obj, "kubectl-create") }, marked: true},
		"kubectl apply": {make: func(f *fixture, obj *unstructured.Unstructured) {
			obj = obj.DeepCopy()
			obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
			f.create(obj, "kubectl-client-side-apply")
		}},
		"kubectl apply --server-side": {make: func(f *fixture, obj *unstructured.Unstructured) { f.apply(obj, "kubectl") }},
		"Argo CD":                     {make: func(f *fixture, obj *unstructured.Unstructured) { f.create(obj, "argocd-controller") }},
		"Argo CD, server-side":        {make: func(f *fixture, obj *unstructured.Unstructured) { f.apply(obj, "argocd-controller") }},
		"Flux":                        {make: func(f *fixture, obj *unstructured.Unstructured) { f.apply(obj, "kustomize-controller") }},
		"Helm":                        {make: func(f *fixture, obj *unstructured.Unstructured) { f.create(obj, "helm") }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, obj := range []*unstructured.Unstructured{f.configMap("settings", "keep", "1", "legacy", "1"), f.deployment("web")} {
				obj.SetLabels(map[string]string{"legacy": "yes"})
				test.make(f, obj)
				f.rewritten(obj) // it is adopted with the same content
				obj.SetLabels(nil)
				unstructured.RemoveNestedField(obj.Object, "data", "legacy")
				if obj.GetKind() == "Deployment" {
					containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
					containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "KEEP", "value": "1"}}
					set(obj, containers, "spec", "template", "spec", "containers")
				}
				live := f.rewritten(obj)
				text := field(live, "data") + field(live, "spec")
				if marked := live.GetLabels()["legacy"] != ""; marked != (test.stays || test.marked) {
					t.Errorf("%s: the label that left git stays is %t", live.GetKind(), marked)
				}
				if stays := strings.Contains(text, "LEGACY") || strings.Contains(text, "legacy"); stays != test.stays {
					t.Errorf("%s: what left git stays is %t: %s", live.GetKind(), stays, text)
				}
				if live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
					t.Error("kubectl would still take its last configuration for what was applied")
				}
			}
		})
	}
}

// A new object is refused for what a changed one is refused for.
func TestCreatedAsChanged(t *testing.T) {
	f := newFixture(t)
	typo := f.release("typo")
	set(typo, map[string]any{"mode": "enabled"}, "spec", "driftDetecton")
	typed := f.deployment("typed")
	set(typed, "many", "spec", "replica")
	for _, obj := range []*unstructured.Unstructured{typo, typed} {
		results := f.run(writeOf(owner, obj))
		if err := results[0].Err; err == nil || !dependents.IsMistake(err) {
			t.Errorf("%s: the error is %v, want one that its author has to mend", obj.GetKind(), err)
		}
		if !f.gone(obj) {
			t.Errorf("%s is there", obj.GetKind())
		}
		unstructured.RemoveNestedField(obj.Object, "spec", "driftDetecton")
		unstructured.RemoveNestedField(obj.Object, "spec", "replica")
		f.written(obj)
	}
	set(typo, map[string]any{"mode": "enabled"}, "spec", "driftDetecton")
	if err := f.run(seen(writeOf(owner, typo), f.live(typo)))[0].Err; err == nil || !dependents.IsMistake(err) {
		t.Errorf("changed: the error is %v, want one that its author has to mend", err)
	}
}

// A refusal because of what an object is now is not blamed on its manifest: of a field that
// cannot be changed, and of what another manager holds.
func TestLiveStateIsNotTheManifestsFault(t *testing.T) {
	f := newFixture(t)
	deployment := f.deployment("web")
	f.written(deployment)
	set(deployment, map[string]any{"app": "other"}, "spec", "selector", "matchLabels")
	set(deployment, map[string]any{"app": "other"}, "spec", "template", "metadata", "labels")
	result := f.run(seen(writeOf(owner, deployment), f.live(deployment)))[0]
	var live *dependents.LiveStateError
	if !errors.As(result.Err, &live) || live.Field != "spec.selector" {
		t.Errorf("the error is %#v, want the live state's about spec.selector", result.Err)
	}

	service := f.service("web")
	address, _, _ := unstructured.NestedString(f.written(service).Object, "spec", "clusterIP")
	set(service, address, "spec", "clusterIP") // which nobody else may have
	f.rewritten(service)
	f.jsonPatch(service, "some-controller", `[{"op":"replace","path":"/spec/ports/1/port","value":9091}]`)
	result = f.run(seen(writeOf(owner, service), f.live(service)))[0]
	if !errors.As(result.Err, &live) || live.Field != "spec.ports" || !slices.Equal(live.Managers, []string{"some-controller"}) {
		t.Errorf("the error is %#v, want the live state's about spec.ports, which some-controller has", result.Err)
	}

	// A manifest that is wrong by itself is its author's to mend.
	set(service, []any{map[string]any{"name": "http", "port": int64(70000)}}, "spec", "ports")
	result = f.run(seen(writeOf(owner, service), f.live(service)))[0]
	if errors.As(result.Err, &live) || !dependents.IsMistake(result.Err) {
		t.Errorf("the error is %v, want a mistake", result.Err)
	}
}

// What the API server filled in when an object was created is nobody's once the object is
// applied, as that of an object that was made by apply. So a default is not taken back that
// cannot be changed, or that is another one because of what others have changed beside.
func TestDefaultsOfCreationAreNobodys(t *testing.T) {
	job := parse(`
apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: web, image: "example.invalid/web:1"}]
`)
	daemons := parse(`
apiVersion: apps/v1
kind: DaemonSet
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "example.invalid/web:1"}]
`)
	for name, test := range map[string]struct {
		of    *unstructured.Unstructured
		merge string
		// later is what git says of the specification beside afterwards.
		later map[string]any
	}{
		"a Job's completions, which cannot be changed":      {job, `{"spec":{"parallelism":3}}`, map[string]any{"backoffLimit": int64(3)}},
		"how a DaemonSet rolls out, which follows its type": {daemons, `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`, map[string]any{"minReadySeconds": int64(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			obj := test.of.DeepCopy()
			obj.SetNamespace(f.namespace)
			obj.SetName("web")
			f.written(obj)
			f.patch(obj, "some-controller", test.merge)
			edited := f.live(obj)
			if result := f.correction(obj); result.Changed {
				t.Errorf("the correction is %+v, want one that changes nothing", result)
			}
			for field, value := range test.later {
				set(obj, value, "spec", field)
				set(edited, value, "spec", field)
			}
			after := f.rewritten(obj)
			if diff := cmp.Diff(edited.Object["spec"], after.Object["spec"]); diff != "" {
				t.Errorf("what git does not say has changed (-want +got):\n%s", diff)
			}
			for _, entry := range after.GetManagedFields() {
				if entry.Manager == "before-first-apply" || entry.Manager == dependents.FieldManager && entry.Operation != "Apply" {
					t.Errorf("%s has fields by %s", entry.Manager, entry.Operation)
				}
			}
		})
	}
}

// Managers of subresources write what is not the manifest's.
func TestStatusAndScaleAreNoCorrection(t *testing.T) {
	f := newFixture(t)
	deployment := f.deployment("web")
	f.written(deployment)
	f.rewritten(deployment)
	live := f.live(deployment)
	set(live, int64(1), "status", "observedGeneration")
	f.must(f.others.Status().Update(f.ctx, live, client.FieldOwner("kube-controller-manager")))
	scale := parse("apiVersion: autoscaling/v1\nkind: Scale\nspec: {replicas: 4}\n")
	f.must(f.others.SubResource("scale").Update(f.ctx, f.live(deployment), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
	before := f.live(deployment)
	if result := f.correction(deployment); result.Changed {
		t.Errorf("it is %+v", result)
	}
	after := f.live(deployment)
	if field(after, "spec", "replicas") != "4" || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("replicas are %s, generation %d", field(after, "spec", "replicas"), after.GetGeneration())
	}
}
