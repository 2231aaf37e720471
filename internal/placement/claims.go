// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// binding returns the name of the Secret with the connection details of a claim that the
// directory lists, beside the RemoteCluster; empty for any other Secret.
func (p *putting) binding(secret objects.ID) string {
	name, is := kinds.ClaimOfBinding(secret.Name)
	claim := objects.ID{Group: kinds.ClaimKind.Group, Kind: kinds.ClaimKind.Kind, Namespace: secret.Namespace, Name: name}
	if _, listed := p.own[claim]; !is || !listed || secret.Kind != "Secret" {
		return ""
	}
	return kinds.BindingNameOf(p.name(claim))
}
