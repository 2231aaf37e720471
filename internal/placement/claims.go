// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// claim puts a claim beside the RemoteCluster, where its binding is for the release that reads
// it. One that it is bound to, and that the directory lists, too, is there as well.
func (p *putting) claim(manifest directories.Manifest) *unstructured.Unstructured {
	obj := manifest.Object.DeepCopy()
	id := manifest.ID()
	if spec, is := obj.Object["spec"].(map[string]any); is {
		spec["cluster"] = p.Cluster.Name
		if namespace, _ := spec["clusterNamespace"].(string); namespace == "" {
			spec["clusterNamespace"] = id.Namespace
		}
		p.ensureNamespace(manifest, spec["clusterNamespace"].(string))
		to, _ := spec["boundTo"].(map[string]any)
		name, _ := to["name"].(string)
		namespace, _ := to["namespace"].(string)
		lender := objects.ID{Group: id.Group, Kind: id.Kind, Namespace: cmp.Or(namespace, id.Namespace), Name: name}
		if _, listed := p.own[lender]; listed {
			to["name"] = p.name(lender)
			delete(to, "namespace")
		}
	}
	obj.SetNamespace(p.Cluster.Namespace)
	obj.SetName(p.name(id))
	return obj
}

// provider has what an application offers claimed by those of its cluster. It lies where Strata
// runs, and has no objects: they would be made there with the rights of accounts that the
// directory names.
func (p *putting) provider(manifest directories.Manifest) (*unstructured.Unstructured, error) {
	obj := manifest.Object.DeepCopy()
	spec, _ := obj.Object["spec"].(map[string]any)
	if spec == nil {
		return obj, nil // which the API server refuses
	}
	wrong := func(field, message string) error {
		return &directories.ContentError{
			Reason: v1alpha1.ReasonInvalidManifest, File: manifest.File, Line: manifest.Line, Field: "spec." + field,
			Message: fmt.Sprintf("%s is of a layer on RemoteCluster %s, %s", manifest.ID(), p.cluster(), message),
		}
	}
	for _, field := range []string{"objects", "passwords", "placement", "cluster", "allowedClusters", "allowedClusterNamespaces"} {
		if spec[field] != nil {
			return nil, wrong(field, "and a provider there may only publish values: list it in a layer of the cluster that Strata runs in")
		}
	}
	namespace, _ := spec["namespace"].(string)
	if allowed, has := spec["allowedNamespaces"].(map[string]any); has && len(allowed) > 0 {
		return nil, wrong("allowedNamespaces", "and the labels of its namespaces are not known here: write {} for all of them, or leave it out for its own alone")
	} else if !has {
		spec["allowedClusterNamespaces"] = []any{namespace}
	}
	delete(spec, "allowedNamespaces")
	spec["allowedClusters"] = []any{p.Cluster.Name}
	spec["namespace"] = p.Cluster.Namespace
	obj.SetName(p.name(manifest.ID()))
	return obj, nil
}

// binding returns the name of the Secret with the connection details of a claim that the
// directory lists, beside the RemoteCluster; empty for any other Secret.
func (p *putting) binding(secret objects.ID) string {
	name, is := kinds.ClaimOfBinding(secret.Name)
	claim := objects.ID{Group: kinds.ClaimKind.Group, Kind: kinds.ClaimKind.Kind, Namespace: secret.Namespace, Name: name}
	if _, listed := p.own[claim]; !is || !listed || secret.Kind != secretKind {
		return ""
	}
	return kinds.BindingNameOf(p.name(claim))
}
