// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accounts says which ServiceAccount a layer acts as, and which none may act as.
package accounts

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
)

// Of returns the ServiceAccount that writes a layer's objects: the one
// that the layer names, or else byDefault, in the layer's namespace; for a layer of
// another cluster, on that cluster. The namespace given is that of a source without one. The zero value means
// the controller itself.
func Of(layer *v1alpha1.AddonsLayer, byDefault, namespace string) types.NamespacedName {
	name := cmp.Or(layer.Spec.ServiceAccountName, byDefault)
	if name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: NamespaceOf(layer, namespace), Name: name}
}

// NamespaceOf returns where the account, the ConfigMaps and the Secrets are that a layer
// names: the namespace that it says, or that of its source. For a layer of another cluster
// it is the one that the RemoteCluster has here, in which Flux looks for the account of a
// release of the layer, too. The namespace given is that of a source without one.
func NamespaceOf(layer *v1alpha1.AddonsLayer, namespace string) string {
	if cluster := placement.Of(layer, namespace); cluster.Name != "" {
		return cluster.Namespace
	}
	return cmp.Or(layer.Spec.Namespace, sources.Of(layer, namespace).Namespace)
}

// Check refuses an account whose parts are no names: of those the name
// of a user is made, in which a colon would name somebody else.
func Check(account types.NamespacedName) error {
	if problems := validation.IsDNS1123Label(account.Namespace); len(problems) > 0 {
		return fmt.Errorf("%q is no namespace: %s", account.Namespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(account.Name); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a ServiceAccount: %s", account.Name, strings.Join(problems, "; "))
	}
	return nil
}

// MissingError says that a layer's account does not exist. RBAC would
// still give an account that was deleted the rights that are bound to its name.
type MissingError struct{ Account types.NamespacedName }

// Error names the account.
func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no ServiceAccount %s", e.Account)
}

// OfFlux are the names of the accounts of Flux's controllers, which may do
// nearly everything where Flux is installed with its defaults.
var OfFlux = []string{
	"helm-controller", "image-automation-controller", "image-reflector-controller", "kustomize-controller",
	"notification-controller", "source-controller", "source-watcher",
}
