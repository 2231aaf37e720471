// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Deployment is what a HelmRelease has deployed last; zero where it has not.
type Deployment struct {
	Chart, Version string
	// Digest of the artifact, where the chart came from an OCIRepository.
	Digest string
	// Revision of the Helm release.
	Revision int
}

// DeployedBy returns what a HelmRelease has deployed last.
func DeployedBy(release *unstructured.Unstructured) Deployment {
	history, _, _ := unstructured.NestedSlice(release.Object, "status", "history")
	var found Deployment
	for _, each := range history {
		entry, _ := each.(map[string]any)
		status, _ := entry["status"].(string)
		revision, _ := entry["version"].(int64)
		if status != "deployed" && status != "superseded" || int(revision) <= found.Revision {
			continue
		}
		found.Revision = int(revision)
		found.Chart, _ = entry["chartName"].(string)
		found.Version, _ = entry["chartVersion"].(string)
		found.Digest, _ = entry["ociDigest"].(string)
	}
	return found
}

// Pin returns a HelmRelease, HelmChart or OCIRepository with the chart that is
// deployed in the place of the one that it would take now: of a range there may be
// a newer one.
func Pin(object *unstructured.Unstructured, deployed Deployment) *unstructured.Unstructured {
	if object == nil || deployed.Version == "" {
		return object
	}
	pinned := object.DeepCopy()
	switch spec, _ := pinned.Object["spec"].(map[string]any); {
	case spec == nil:
	case object.GetKind() == "OCIRepository" && deployed.Digest != "":
		spec["ref"] = map[string]any{"digest": deployed.Digest}
	case object.GetKind() == "HelmChart":
		spec["version"] = deployed.Version
	case object.GetKind() == "HelmRelease":
		chart, _ := spec["chart"].(map[string]any)
		if template, _ := chart["spec"].(map[string]any); template != nil {
			template["version"] = deployed.Version
		}
	}
	return pinned
}

// InventoryOf returns the objects that a HelmRelease has in its status, with the API
// versions that Helm applied them with, and nothing else.
func InventoryOf(release *unstructured.Unstructured) []*unstructured.Unstructured {
	entries, _, _ := unstructured.NestedSlice(release.Object, "status", "inventory", "entries")
	var found []*unstructured.Unstructured
	for _, each := range entries {
		entry, _ := each.(map[string]any)
		id, _ := entry["id"].(string)
		version, _ := entry["v"].(string)
		object := objectOf(id, version)
		if object != nil {
			found = append(found, object)
		}
	}
	return found
}

// objectOf reads an ID of Flux: namespace_name_group_kind, where the name of an
// object of RBAC has __ for each colon.
func objectOf(id, version string) *unstructured.Unstructured {
	namespace, rest, found := strings.Cut(id, "_")
	end := strings.LastIndex(rest, "_")
	if !found || end < 0 || version == "" {
		return nil
	}
	kind, rest := rest[end+1:], rest[:end]
	end = strings.LastIndex(rest, "_")
	if end < 0 {
		return nil
	}
	group, name := rest[end+1:], strings.ReplaceAll(rest[:end], "__", ":")
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(strings.TrimPrefix(group+"/"+version, "/"))
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
