// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/sources"
)

// LayerKinds lists the kinds that a layer without an account may hold on the
// cluster that Strata runs in, beside those of builtInKinds. Nil means any.
type LayerKinds []schema.GroupResource

// anyName stands for all groups or all resources.
const anyName = "*"

// builtInKinds are what layers are made of.
var builtInKinds = LayerKinds{
	{Group: kinds.HelmReleaseKind.Group, Resource: "helmreleases"},
	{Group: sources.Group, Resource: "buckets"},
	{Group: sources.Group, Resource: "gitrepositories"},
	{Group: sources.Group, Resource: "helmrepositories"},
	{Group: sources.Group, Resource: "ocirepositories"},
	{Resource: "namespaces"},
	{Group: kinds.ClaimKind.Group, Resource: "capabilityclaims"},
}

// ParseLayerKinds reads kinds as kubectl names them: configmaps,
// clusterissuers.cert-manager.io, *.cert-manager.io; "*" is every kind, and "*." is
// every kind without a group.
func ParseLayerKinds(texts []string) (LayerKinds, error) {
	parsed := LayerKinds{}
	for _, text := range texts {
		resource, group, _ := strings.Cut(text, ".")
		if text == anyName {
			group = anyName
		}
		isName := func(part string) bool { return part == anyName || len(validation.IsDNS1123Subdomain(part)) == 0 }
		resource, _, _ = strings.Cut(resource, "/") // a subresource is no kind
		if !isName(resource) || group != "" && !isName(group) {
			return nil, fmt.Errorf("%q is no kind such as configmaps or clusterissuers.cert-manager.io", text)
		}
		parsed = append(parsed, schema.GroupResource{Group: group, Resource: resource})
	}
	return parsed, nil
}

// Has tells whether the list has a kind.
func (k LayerKinds) Has(kind schema.GroupResource) bool {
	return slices.ContainsFunc(k, func(listed schema.GroupResource) bool {
		return (listed.Group == anyName || listed.Group == kind.Group) && (listed.Resource == anyName || listed.Resource == kind.Resource)
	})
}

// mayHold tells whether the layer may hold an object of its directory. What an
// account writes is bounded by the rights of that, what goes to another cluster by
// those of the kubeconfig, and what the controller makes itself by its own.
func (o Observation) mayHold(manifest directories.Manifest) bool {
	id := manifest.ID()
	if o.Settings.LayerKinds == nil || id.Cluster != "" || manifest.IsStratas() || o.actor(id).Name != "" {
		return true
	}
	kind, served := o.resourceOf(id)
	return !served || builtInKinds.Has(kind) || o.Settings.LayerKinds.Has(kind)
}

// resourceOf returns the resource by which a kind is served. served is false for a
// kind that the cluster does not serve, of which nothing can be written.
func (o Observation) resourceOf(id objects.ID) (kind schema.GroupResource, served bool) {
	resource := o.Resources[id.ServedKind()]
	return schema.GroupResource{Group: id.Group, Resource: resource}, resource != ""
}

// kindListGate wants the directory to hold kinds only that the layer may hold.
func kindListGate(o Observation) *Blocked {
	if o.Directory == nil {
		return nil
	}
	for _, manifest := range o.Directory.Manifests {
		if o.mayHold(manifest) {
			continue
		}
		id := manifest.ID()
		kind, _ := o.resourceOf(id)
		message := fmt.Sprintf("%s: layers without an account may not hold %s: add the kind to rbac.kinds of the chart (--layer-kinds)", id, kind)
		if o.Remote == nil {
			message += ", or give the layer a serviceAccountName that may write it"
		}
		return contentBlocked(&directories.ContentError{Reason: v1alpha1.ReasonApplyFailed, File: manifest.File, Line: manifest.Line, Message: message})
	}
	return nil
}

// CheckAccountUse refuses an account as which neither a layer nor what it installs
// may act: the controller's own, and those of ReservedAccounts. Of an account on
// another cluster only its name counts.
func (s Settings) CheckAccountUse(account types.NamespacedName, elsewhere bool) error {
	switch {
	case account.Name == "":
		return nil
	case !elsewhere && account == s.Account:
		return fmt.Errorf("ServiceAccount %s is the controller's own: name one that has the rights of this layer only", account)
	case !elsewhere && account.Namespace == s.Account.Namespace && account.Name == cmp.Or(s.OwnName, DefaultOwnName)+"-hosts":
		return fmt.Errorf("ServiceAccount %s has the keys of hosts: name one that has the rights of this layer only", account)
	}
	for _, reserved := range s.ReservedAccounts {
		if reserved == account.Name || !elsewhere && reserved == account.String() {
			return fmt.Errorf("ServiceAccount %s is reserved (--reserved-service-accounts): name one that has the rights of this layer only", account)
		}
	}
	return nil
}

// accountsOfContentGate wants no release to be installed as an account that is
// reserved.
func accountsOfContentGate(o Observation) *Blocked {
	if o.Directory == nil {
		return nil
	}
	for _, manifest := range o.Directory.Manifests {
		id := manifest.ID()
		if !objects.IsReleaseKind(id.GroupKind()) {
			continue
		}
		name, _, _ := unstructured.NestedString(manifest.Object.Object, "spec", "serviceAccountName")
		elsewhere := o.Remote != nil
		if err := o.Settings.CheckAccountUse(types.NamespacedName{Namespace: id.Namespace, Name: name}, elsewhere); err != nil {
			return contentBlocked(&directories.ContentError{
				Reason: v1alpha1.ReasonInvalidManifest, File: manifest.File, Line: manifest.Line, Field: "spec.serviceAccountName", Message: err.Error(),
			})
		}
	}
	return nil
}
