// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/internal/reserved"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// DefaultOwnName is the name of the controller's own objects unless it is told
// otherwise.
const DefaultOwnName = "strata"

// ownSuffixes follow the name of the controller's own objects.
var ownSuffixes = []string{
	"", "-leader-election", "-revisions", "-kinds", "-cluster-admin", "-view", "-remote-clusters", "-impersonate",
	suffixAtFlux, "-metrics", "-metrics-auth", "-metrics-reader", "-dashboard", "-capabilities",
	"-hosts", "-hosts-identity", "-hosts-leader-election", "-hosts-metrics", "-hosts-metrics-auth",
}

// suffixAtFlux follows the name of what the chart makes in Flux's namespace.
const suffixAtFlux = "-artifacts"

// rbacGroup is the group of roles and of their bindings.
const rbacGroup = "rbac.authorization.k8s.io"

// ownKinds are those of what the chart makes, beside roles and bindings.
var ownKinds = map[schema.GroupKind]bool{
	{Kind: "ServiceAccount"}: true, {Kind: "Service"}: true, {Kind: "ConfigMap"}: true, {Group: "apps", Kind: "Deployment"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true, {Group: "policy", Kind: "PodDisruptionBudget"}: true,
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}: true, {Group: "monitoring.coreos.com", Kind: "PrometheusRule"}: true,
}

// Reserved says what an object is for Strata, Flux, Helm or the cluster, which
// keep it for themselves: by its name, also before it exists, and by what it says
// of itself. It is empty for what layers may write. Of an object that does not
// exist obj is nil.
func (s Settings) Reserved(id objects.ID, obj *unstructured.Unstructured) string {
	if why := s.reservedName(id); why != "" || obj == nil {
		return why
	}
	return reserved.Live(id.GroupKind(), obj)
}

// ReservedFor is Reserved for a layer, which has copies of its own.
func (s Settings) ReservedFor(layer string, id objects.ID, obj *unstructured.Unstructured) string {
	why := s.Reserved(id, obj)
	if why == reserved.KeptCopy && obj != nil && obj.GetLabels()[v1alpha1.LayerLabel] == layer {
		return ""
	}
	return why
}

// ReservedForClaims is Reserved for CapabilityClaims, whose own objects say that they are
// kept for claims. Which claim has one, its label tells.
func (s Settings) ReservedForClaims(id objects.ID, obj *unstructured.Unstructured) string {
	why := s.Reserved(id, obj)
	if why == reserved.KeptForClaim {
		return ""
	}
	return why
}

// reservedName says what the object of a name is kept for, whoever exists.
func (s Settings) reservedName(id objects.ID) string {
	return cmp.Or(reserved.Name(id, s.Namespace), s.reservedOwn(id))
}

// reservedOwn tells what the chart has made for the controller: what it runs as,
// and the rights that it has.
func (s Settings) reservedOwn(id objects.ID) string {
	isRole := id.Group == rbacGroup
	if id.Cluster != "" || !isRole && !ownKinds[id.GroupKind()] {
		return ""
	}
	if id.Kind == "ServiceAccount" && s.Account.Name != "" && id.Key() == s.Account {
		return reserved.KeptOwn
	}
	suffix, found := strings.CutPrefix(id.Name, cmp.Or(s.OwnName, DefaultOwnName))
	if found && slices.Contains(ownSuffixes, suffix) && (isRole || id.Namespace == s.Namespace || suffix == suffixAtFlux) {
		return reserved.KeptOwn
	}
	return ""
}

// reserves says what an object is kept for that a directory lists; empty for what
// the layer may write.
func (o Observation) reserves(manifest directories.Manifest) string {
	if manifest.IsStratas() {
		return ""
	}
	id := manifest.ID()
	if why := cmp.Or(o.Settings.reservedName(id), reserved.Written(id.GroupKind(), manifest.Object)); why != "" {
		return why
	}
	if live := o.Live[id]; live != nil {
		if why := reserved.Live(id.GroupKind(), live); why != "" {
			return why
		}
	}
	return cmp.Or(o.reservedSource(id), o.reservedByOwner(id))
}

// reservedByOwner says that a name is kept for an object that exists. A layer may have
// it that has it already.
func (o Observation) reservedByOwner(id objects.ID) string {
	if live := o.Live[id]; live != nil && live.GetLabels()[v1alpha1.LayerLabel] == o.Layer.Name {
		return ""
	}
	return o.Owned[id]
}

// reservedSource says that a RemoteCluster has its kubeconfig from a Secret. A layer
// may have it that has it already, or that lists the RemoteCluster, too.
func (o Observation) reservedSource(id objects.ID) string {
	clusters := o.KubeConfigs[id]
	if live := o.Live[id]; len(clusters) == 0 || live != nil && live.GetLabels()[v1alpha1.LayerLabel] == o.Layer.Name {
		return ""
	}
	listed := map[objects.ID]bool{}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			listed[manifest.ID()] = true
		}
	}
	for _, cluster := range clusters {
		if !listed[objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.RemoteClusterKind, Namespace: cluster.Namespace, Name: cluster.Name}] {
			return reserved.KeptSource
		}
	}
	return ""
}

// namespaceKind is that of Namespaces.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// defaultFluxNamespace is where Flux runs unless it is installed elsewhere.
const defaultFluxNamespace = "flux-system"

// sparedLasting says why such a Namespace stays.
const sparedLasting = "no layer deletes the Namespaces of the cluster, of Flux, of Strata and of RemoteClusters"

// isLasting tells Namespaces that go with no layer, whatever their annotations say:
// too much of others lies in them. A layer that lists one may have adopted it.
func (o Observation) isLasting(id objects.ID) bool {
	switch {
	case id.GroupKind() != namespaceKind:
		return false
	case id.Name == "default", id.Name == defaultFluxNamespace, strings.HasPrefix(id.Name, "kube-"):
		return true
	}
	return id.Cluster == "" && (id.Name == o.Settings.Namespace || o.ClusterNamespaces[id.Name] || slices.Contains(o.Settings.FluxNamespaces, id.Name))
}

// FluxNamespacesOf returns the namespaces of those hosts of artifacts that are
// source-controller's Service.
func FluxNamespacesOf(hosts []string) []string {
	var namespaces []string
	for _, host := range hosts {
		if rest, found := strings.CutPrefix(host, "source-controller."); found {
			namespace, _, _ := strings.Cut(rest, ".")
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// reserved returns which of the objects in question a layer writes, adopts, lets
// go and deletes in no case, whatever its status says that it has.
func (o Observation) reserved() map[objects.ID]string {
	stratas := map[objects.ID]bool{}
	found := map[objects.ID]string{}
	note := func(id objects.ID, live *unstructured.Unstructured) {
		if why := o.Settings.ReservedFor(o.Layer.Name, id, live); why != "" && !stratas[id] {
			found[id] = why
		}
	}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		for _, manifest := range directory.Manifests {
			if manifest.IsStratas() {
				stratas[manifest.ID()] = true
			} else if why := o.reserves(manifest); why != "" {
				found[manifest.ID()] = why
			}
		}
	}
	for id, live := range o.Live {
		note(id, live)
	}
	for _, resource := range o.Layer.Status.Resources {
		gk := kinds.ParseResourceKind(resource.Kind)
		id := objects.ID{Cluster: resource.Cluster, Group: gk.Group, Kind: gk.Kind, Namespace: resource.Namespace, Name: resource.Name}
		note(id, o.Live[id])
	}
	return found
}

// reservedGate wants the directory to list nothing that Strata, Flux, Helm or the
// cluster keeps for itself.
func reservedGate(o Observation) *Blocked {
	if o.Directory == nil {
		return nil
	}
	for _, manifest := range o.Directory.Manifests {
		if why := o.reserves(manifest); why != "" {
			return contentBlocked(&directories.ContentError{
				Reason: v1alpha1.ReasonReservedObject, File: manifest.File, Line: manifest.Line,
				Message: fmt.Sprintf("%s is %s, and no layer writes it: remove it from the directory, or give it another name, type or label", manifest.ID(), why),
			})
		}
	}
	return nil
}
