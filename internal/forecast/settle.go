// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// settle lets the controllers of others do what they were given: each object that
// was written becomes ready, and what defines kinds has them served.
func (f *future) settle() {
	for id := range f.dirty {
		live := f.objects[id]
		if live == nil || objects.IsReleaseKind(id.GroupKind()) && objects.IsSuspended(live) {
			continue
		}
		ready := live.DeepCopy()
		if why := f.world.Failing[id]; why != "" {
			makeFailed(ready, why)
			f.set(id, ready)
			continue
		}
		makeReady(ready)
		f.set(id, ready)
		for _, definition := range f.world.Brings[id] {
			f.serve(definition)
		}
		if id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition" {
			for _, definition := range DefinitionsOf(live, id.Cluster) {
				f.serve(definition)
			}
		}
	}
	clear(f.dirty)
}

// serve has a kind be served.
func (f *future) serve(definition Definition) {
	kind := objects.ServedKind{Cluster: definition.Cluster, GroupKind: definition.GroupKind()}
	if f.scopes[kind] != definition.Scope || f.unserved[definition.ServedVersion] {
		f.changed = true
	}
	f.scopes[kind] = definition.Scope
	delete(f.unserved, definition.ServedVersion)
}

// DefinitionsOf returns the kinds that a CustomResourceDefinition defines.
func DefinitionsOf(crd *unstructured.Unstructured, cluster string) []Definition {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope := objects.ScopeNamespaced
	if where, _, _ := unstructured.NestedString(crd.Object, "spec", "scope"); where == "Cluster" {
		scope = objects.ScopeCluster
	}
	var found []Definition
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		if served, _ := fields["served"].(bool); !served || name == "" {
			continue
		}
		definition := Definition{Scope: scope}
		definition.Cluster = cluster
		definition.Group, definition.Version, definition.Kind = group, name, kind
		found = append(found, definition)
	}
	return found
}

// makeFailed has a release say that it is not ready, and does not get there by
// itself.
func makeFailed(release *unstructured.Unstructured, why string) {
	var conditions []any
	for _, each := range [][2]string{{"Ready", "False"}, {"Stalled", "True"}} {
		conditions = append(conditions, map[string]any{
			"type": each[0], "status": each[1], "reason": "Forecast", "message": why, "observedGeneration": release.GetGeneration(),
			"lastTransitionTime": time.Unix(0, 0).UTC().Format(time.RFC3339),
		})
	}
	release.Object["status"] = map[string]any{"observedGeneration": release.GetGeneration(), "conditions": conditions}
}

// makeReady has an object say that it is ready as it is now, the way that its
// controller does.
func makeReady(obj *unstructured.Unstructured) {
	generation := obj.GetGeneration()
	status := map[string]any{}
	if has, is := obj.Object["status"].(map[string]any); is {
		status = has
	}
	replicas := int64(1)
	if wanted, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); found {
		replicas = wanted
	}
	kind := obj.GroupVersionKind().GroupKind()
	conditions := []string{}
	switch kind.String() {
	case "Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps":
		for _, field := range []string{"replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas", "fullyLabeledReplicas"} {
			status[field] = replicas
		}
		status["currentRevision"], status["updateRevision"] = "forecast", "forecast"
		conditions = append(conditions, "Available")
	case "DaemonSet.apps":
		for _, field := range []string{"desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"} {
			status[field] = int64(1)
		}
	case "Job.batch":
		status["startTime"] = time.Unix(0, 0).UTC().Format(time.RFC3339)
		status["succeeded"] = int64(1)
		conditions = append(conditions, "Complete")
	case "PersistentVolumeClaim":
		status["phase"] = "Bound"
	case "Pod":
		status["phase"] = "Succeeded"
		conditions = append(conditions, "Ready")
	case "Service":
		_ = unstructured.SetNestedField(obj.Object, "10.0.0.1", "spec", "clusterIP")
		status["loadBalancer"] = map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}
	case "CustomResourceDefinition.apiextensions.k8s.io":
		conditions = append(conditions, "Established", "NamesAccepted")
	case "APIService.apiregistration.k8s.io":
		conditions = append(conditions, "Available")
	case "Namespace":
		status["phase"] = "Active"
	case "ConfigMap", "Secret":
		return
	default:
		conditions = append(conditions, "Ready")
	}
	if generation != 0 {
		status["observedGeneration"] = generation
	}
	if version, found, _ := unstructured.NestedString(obj.Object, "spec", "chart", "spec", "version"); found && kind == kinds.HelmReleaseKind {
		status["lastAttemptedRevision"] = version
	}
	if len(conditions) > 0 {
		status["conditions"] = allTrue(conditions, generation)
	}
	obj.Object["status"] = status
}

// allTrue returns conditions that are True of a generation.
func allTrue(types []string, generation int64) []any {
	list := make([]any, 0, len(types))
	for _, condition := range types {
		list = append(list, map[string]any{
			"type": condition, "status": "True", "reason": "Forecast", "observedGeneration": generation, "message": "",
			"lastTransitionTime": time.Unix(0, 0).UTC().Format(time.RFC3339),
		})
	}
	return list
}
