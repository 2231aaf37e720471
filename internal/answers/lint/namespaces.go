// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/objects"
)

// noteNamespace remembers objects with a namespace until the scopes of kinds are known.
func (l *linter) noteNamespace(found object) {
	namespace, _, _ := unstructured.NestedString(found.Object, "metadata", "namespace")
	if namespace == "" {
		return
	}
	identity := &unstructured.Unstructured{Object: map[string]any{}}
	identity.SetAPIVersion(found.GetAPIVersion())
	identity.SetKind(found.GetKind())
	identity.SetNamespace(namespace)
	identity.SetName(nameOf(found.Unstructured))
	l.written = append(l.written, object{found.place, identity})
}

// checkNamespaces warns of a namespace on objects whose kinds have none.
func (l *linter) checkNamespaces() {
	for _, each := range l.written {
		if l.scopeOf(each.Unstructured) == objects.ScopeCluster {
			l.add(ruleNamespace, each.place, "metadata.namespace", "",
				"%s is of a kind without namespaces, and it is dropped: remove it", objects.IDOf(each.Unstructured))
		}
	}
}
