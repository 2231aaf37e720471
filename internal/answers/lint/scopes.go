// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// scopeOf says whether objects of a kind have a namespace: as Kubernetes itself, Flux and
// the definitions in the repository have it. A kind that none of them knows may do either.
func (l *linter) scopeOf(object *unstructured.Unstructured) objects.Scope {
	gvk := object.GroupVersionKind()
	switch {
	case strings.HasSuffix(gvk.Group, ".toolkit.fluxcd.io"):
		return objects.ScopeNamespaced
	case kinds.HasNoNamespaces(gvk.GroupKind()):
		return objects.ScopeCluster
	}
	if scope, known := l.scopes[gvk.GroupKind()]; known {
		return scope
	}
	switch namespaced, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: object.GetAPIVersion(), Kind: gvk.Kind}); {
	case gvk.Group == v1alpha1.GroupVersion.Group, !known:
		return ""
	case namespaced:
		return objects.ScopeNamespaced
	default:
		return objects.ScopeCluster
	}
}

// findScopes reads the scopes of kinds that the repository defines.
func (l *linter) findScopes() {
	l.scopes = map[schema.GroupKind]objects.Scope{}
	for _, each := range l.objects {
		if each.GroupVersionKind().GroupKind() != kinds.DefinitionKind {
			continue
		}
		group, _, _ := unstructured.NestedString(each.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(each.Object, "spec", "names", "kind")
		scope := objects.ScopeCluster
		if said, _, _ := unstructured.NestedString(each.Object, "spec", "scope"); said == "Namespaced" {
			scope = objects.ScopeNamespaced
		}
		l.scopes[schema.GroupKind{Group: group, Kind: kind}] = scope
	}
}
