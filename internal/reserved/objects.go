// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// RevisionPrefix begins the names of Secrets that keep what layers have
	// deployed.
	RevisionPrefix = "strata-revision."
	// CopyPrefix begins the names of copies beside a RemoteCluster.
	CopyPrefix = "strata-copy-"
	// LeaseName ends the names of the controllers' Leases.
	LeaseName = "strata.kraan.io"
	// FluxLease ends the names of the Leases of Flux's controllers.
	FluxLease = "-controller-leader-election"
	// HostsLease is the name of the Lease in kube-system that the worker on a cluster of
	// hosts holds.
	HostsLease = "strata-hosts"
	// SavedName is the name of the ConfigMap in kube-system with the manifest that was last
	// applied to a cluster of hosts.
	SavedName = "strata-hostcluster"
	// EncryptionName is the name of the ConfigMap in kube-system that says how all Secrets
	// of a cluster of hosts are encrypted.
	EncryptionName = "strata-encryption"
	// ClaimRecordPrefix begins the names of the records of claims.
	ClaimRecordPrefix = "claim."
	// ProviderRecordPrefix begins the names of the records of providers.
	ProviderRecordPrefix = "provider."
	// PluginPrefix begins the names of what runs the plug-ins of CapabilityProviders.
	PluginPrefix = "plugin-"

	kubeConfigPrefix = "strata-kubeconfig-"
	helmPrefix       = "sh.helm.release.v1."
	bootstrapPrefix  = "bootstrap-token-"
	systemNamespace  = "kube-system"
)

// What an object is kept for, as messages say it.
const (
	KeptKubeConfig  = "Strata's own copy of a kubeconfig"
	KeptCredential  = "the kubeconfig with which somebody joined a RemoteCluster" //nolint:gosec // words
	KeptSource      = "what a RemoteCluster has its kubeconfig from"
	KeptForCluster  = "what Strata has made for a RemoteCluster"
	KeptForClaim    = "what Strata has made for a CapabilityClaim"
	KeptForHosts    = "what Strata has made for a HostCluster"
	KeptForPlugin   = "what runs the plug-in of a CapabilityProvider"
	KeptForPlatform = "what Strata has made for a Platform"
	KeptDiscovered  = "what a ClusterDiscovery has made"
	KeptRecord      = "what Strata has recorded of a claim or a provider"
	KeptSigned      = "Strata's note of what it has signed"
	KeptCopy        = "a copy that Strata makes for releases of another cluster"
	KeptRevision    = "what Strata keeps of a deployment"
	KeptDigestKey   = "the key by which Strata knows Secrets again"
	KeptHelm        = "what Helm keeps of a release"
	KeptToken       = "a token of a ServiceAccount, which the cluster itself makes" //nolint:gosec // words
	KeptBootstrap   = "a token by which nodes join the cluster"
	KeptLease       = "the Lease of a controller"
	KeptHosts       = "what Strata records of a cluster of hosts"
	KeptOwn         = "the controller's own, made by its chart"
)

// Readers of an object, for documents.
const (
	readByFlux    = "Strata and Flux"
	readByStrata  = "Strata"
	readByHelm    = "Helm"
	readByAll     = "accounts with the right to get it"
	readByRelease = "the claim's releases, and accounts with the right to get it"
	readByPlugin  = "the plug-in's Pod, and Strata"
)

// Entry is a set of objects that are kept, as their names tell before they exist.
type Entry struct {
	// Kinds of the objects.
	Kinds []schema.GroupKind
	// Name for documents, with what stands for a name in capitals.
	Name string
	// Keeps says what the objects are kept for.
	Keeps string
	// Readers says who may read them.
	Readers string
	// Owner is the kind of the object that a name is made from; empty where the name alone
	// tells. Such a name is reserved while its owner exists.
	Owner string
	// Home is true where the objects are on the cluster that Strata runs in alone.
	Home bool
	// Namespace is the one of the objects; empty for any.
	Namespace string
	// Controller is true where they are in the controller's namespace alone.
	Controller bool
	// has tells whether a name is of the set, and which owner's it is: empty where the
	// owner cannot be told from the name.
	has func(name string) (owner string, found bool)
}

var (
	configMaps = schema.GroupKind{Kind: "ConfigMap"}
	leases     = schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}
	records    = schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}
)

// entries lists all of them.
var entries = []Entry{
	{Kinds: []schema.GroupKind{secrets}, Name: kubeConfigPrefix + "CLUSTER", Keeps: KeptKubeConfig, Readers: readByFlux, has: begins(kubeConfigPrefix)},
	{Kinds: []schema.GroupKind{secrets, configMaps}, Name: CopyPrefix + "…", Keeps: KeptCopy, Readers: readByFlux, has: begins(CopyPrefix)},
	{Kinds: []schema.GroupKind{secrets}, Name: RevisionPrefix + "LAYER.…", Keeps: KeptRevision, Readers: readByStrata, has: begins(RevisionPrefix)},
	{Kinds: []schema.GroupKind{secrets}, Name: v1alpha1.DigestKeyName, Keeps: KeptDigestKey, Readers: readByStrata, has: is(v1alpha1.DigestKeyName)},
	{Kinds: []schema.GroupKind{secrets, configMaps}, Name: helmPrefix + "…", Keeps: KeptHelm, Readers: readByHelm, has: begins(helmPrefix)},
	{
		Kinds: []schema.GroupKind{secrets}, Name: bootstrapPrefix + "…", Keeps: KeptBootstrap, Readers: readByAll,
		Namespace: systemNamespace, has: begins(bootstrapPrefix),
	},
	{Kinds: []schema.GroupKind{leases}, Name: "…" + LeaseName, Keeps: KeptLease, Readers: readByAll, Home: true, has: ends(LeaseName)},
	{Kinds: []schema.GroupKind{leases}, Name: "…" + FluxLease, Keeps: KeptLease, Readers: readByAll, Home: true, has: ends(FluxLease)},
	{Kinds: []schema.GroupKind{leases}, Name: HostsLease, Keeps: KeptLease, Readers: readByAll, Namespace: systemNamespace, has: is(HostsLease)},
	{Kinds: []schema.GroupKind{leases}, Name: HostsLease, Keeps: KeptLease, Readers: readByAll, Home: true, Controller: true, has: is(HostsLease)},
	{Kinds: []schema.GroupKind{configMaps}, Name: SavedName, Keeps: KeptHosts, Readers: readByAll, Namespace: systemNamespace, has: is(SavedName)},
	{Kinds: []schema.GroupKind{configMaps}, Name: EncryptionName, Keeps: KeptHosts, Readers: readByAll, Namespace: systemNamespace, has: is(EncryptionName)},
	{
		Kinds: []schema.GroupKind{records}, Name: ClaimRecordPrefix + "UID.NUMBER", Keeps: KeptRecord, Readers: readByAll,
		Home: true, Controller: true, has: begins(ClaimRecordPrefix),
	},
	{
		Kinds: []schema.GroupKind{records}, Name: ProviderRecordPrefix + "UID.NUMBER", Keeps: KeptRecord, Readers: readByAll,
		Home: true, Controller: true, has: begins(ProviderRecordPrefix),
	},
	{Kinds: []schema.GroupKind{secrets}, Name: v1alpha1.RecordsName, Keeps: KeptSigned, Readers: readByStrata, has: is(v1alpha1.RecordsName)},
	{Kinds: []schema.GroupKind{secrets}, Name: v1alpha1.DecisionsSignedName, Keeps: KeptSigned, Readers: readByStrata, has: is(v1alpha1.DecisionsSignedName)},
	{
		Kinds: []schema.GroupKind{secrets}, Name: "HOSTCLUSTER" + kubeConfigSuffix, Keeps: KeptForHosts, Readers: readByStrata,
		Owner: v1alpha1.HostClusterKind, Home: true, has: ends(kubeConfigSuffix),
	},
	{
		Kinds: []schema.GroupKind{secrets}, Name: "CLAIM" + passwordsSuffix, Keeps: KeptForClaim, Readers: readByStrata,
		Owner: v1alpha1.CapabilityClaimKind, Home: true, has: ends(passwordsSuffix),
	},
	{
		Kinds: []schema.GroupKind{secrets}, Name: kinds.BindingNameOf("CLAIM"), Keeps: KeptForClaim, Readers: readByRelease,
		Owner: v1alpha1.CapabilityClaimKind, Home: true, has: kinds.ClaimOfBinding,
	},
	{
		Kinds: []schema.GroupKind{
			secrets, {Group: "apps", Kind: "Deployment"}, {Kind: "Service"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		},
		Name: PluginPrefix + "PROVIDER-…", Keeps: KeptForPlugin, Readers: readByPlugin,
		Owner: v1alpha1.CapabilityProviderKind, Home: true, has: func(name string) (string, bool) { return "", strings.HasPrefix(name, PluginPrefix) },
	},
}

const (
	kubeConfigSuffix = "-kubeconfig"
	passwordsSuffix  = "-passwords"
)

func begins(prefix string) func(string) (string, bool) {
	return func(name string) (string, bool) { return strings.CutPrefix(name, prefix) }
}

func ends(suffix string) func(string) (string, bool) {
	return func(name string) (string, bool) { return strings.CutSuffix(name, suffix) }
}

func is(whole string) func(string) (string, bool) {
	return func(name string) (string, bool) { return "", name == whole }
}

// Entries returns all sets of kept objects. The list is the caller's own.
func Entries() []Entry { return slices.Clone(entries) }

// KubeConfigName returns the name of Strata's own copy of a RemoteCluster's
// kubeconfig, in the namespace of the RemoteCluster.
func KubeConfigName(cluster string) string { return kubeConfigPrefix + cluster }

// HostKubeConfigName returns the name of the Secret with the kubeconfig of a HostCluster.
func HostKubeConfigName(cluster string) string { return cluster + kubeConfigSuffix }

// PluginName returns the name of all objects by which the plug-in of a provider runs, at a
// digest of its image.
func PluginName(provider, digest string) string {
	sum := sha256.Sum256([]byte(provider + " " + digest))
	name := strings.ReplaceAll(provider, ".", "-")
	return PluginPrefix + strings.TrimRight(name[:min(len(name), 40)], "-") + "-" + hex.EncodeToString(sum[:5])
}

// PasswordsName returns the name of the Secret with the passwords of a claim.
func PasswordsName(claim string) string { return claim + passwordsSuffix }

// IsBinding tells a name of bindings of claims. These are there to be read.
func IsBinding(id objects.ID) bool {
	_, is := kinds.ClaimOfBinding(id.Name)
	return is && id.GroupKind() == secrets
}

// Name says what an object of a name is kept for, whoever exists; empty for any other one.
// controller is the controller's namespace; objects that are kept there alone are not
// among them where it is empty.
func Name(id objects.ID, controller string) string {
	for i := range entries {
		if entry := &entries[i]; entry.Owner == "" && entry.covers(id, controller) {
			return entry.Keeps
		}
	}
	return ""
}

// Owner is an object for which a name is kept.
type Owner struct {
	// ID of the owner; without a name where any object of the kind may be it.
	ID objects.ID
	// Keeps says what the name is kept for while the owner exists.
	Keeps string
}

// Owners returns the objects for which the name of an object is kept, if they exist. It is
// nil for most objects.
func Owners(id objects.ID) []Owner {
	var found []Owner
	for i := range entries {
		entry := &entries[i]
		if entry.Owner == "" || !entry.covers(id, "") {
			continue
		}
		name, _ := entry.has(id.Name)
		owner := objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: entry.Owner, Namespace: id.Namespace, Name: name}
		if name == "" {
			owner.Namespace = ""
		}
		found = append(found, Owner{ID: owner, Keeps: entry.Keeps})
	}
	return found
}

func (e *Entry) covers(id objects.ID, controller string) bool {
	if !slices.Contains(e.Kinds, id.GroupKind()) || e.Home && id.Cluster != "" || e.Namespace != "" && id.Namespace != e.Namespace {
		return false
	}
	if e.Controller && (controller == "" || id.Namespace != controller) {
		return false
	}
	_, found := e.has(id.Name)
	return found
}

// Written says what an object of a directory is kept for by what it says of itself; empty
// for what any layer may write.
func Written(gk schema.GroupKind, obj *unstructured.Unstructured) string {
	return keeps(gk, obj, func(word Word) bool { return word.Refused })
}

// Live says what a live object is kept for by its labels, annotations, finalizers and
// type, as far as they are known; empty for what any layer may have.
func Live(gk schema.GroupKind, obj *unstructured.Unstructured) string {
	return keeps(gk, obj, func(Word) bool { return true })
}

// Unreadable says what a live ConfigMap or Secret is kept for that is read for nobody;
// empty for all else, and for the binding of a claim.
func Unreadable(id objects.ID, obj *unstructured.Unstructured) string {
	why := Live(id.GroupKind(), obj)
	if why == KeptForClaim && IsBinding(id) {
		return ""
	}
	return why
}

func keeps(gk schema.GroupKind, obj *unstructured.Unstructured, counts func(Word) bool) string {
	for i := range words {
		word := &words[i]
		if word.Keeps != "" && counts(*word) && (word.Only == schema.GroupKind{} || word.Only == gk) && word.isOn(obj) {
			return word.Keeps
		}
	}
	return foreign(gk, obj)
}

// isOn tells whether an object has the word. A word that keeps objects says so by its key:
// a value may be changed.
func (w *Word) isOn(obj *unstructured.Unstructured) bool {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	switch w.Sort {
	case Label:
		return hasKey(metadata["labels"], w.Key)
	case Annotation:
		return hasKey(metadata["annotations"], w.Key)
	case Finalizer:
		finalizers, _ := metadata["finalizers"].([]any)
		return slices.Contains(finalizers, any(w.Key))
	case Type:
		return obj.Object["type"] == w.Key
	}
	return false
}

func hasKey(in any, key string) bool {
	texts, _ := in.(map[string]any)
	_, found := texts[key]
	return found
}

// foreign says what Helm or the cluster keeps an object for, by what it says of itself.
func foreign(gk schema.GroupKind, obj *unstructured.Unstructured) string {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	isSecret := gk == secrets
	switch {
	case (isSecret || gk == configMaps) && labels["owner"] == "helm" && hasKey(labels, "name") && hasKey(labels, "version"):
		return KeptHelm
	case !isSecret:
		return ""
	case hasKey(metadata["annotations"], "kubernetes.io/service-account.name"):
		return KeptToken
	}
	switch kind, _ := obj.Object["type"].(string); kind {
	case "kubernetes.io/service-account-token":
		return KeptToken
	case "bootstrap.kubernetes.io/token":
		return KeptBootstrap
	case "helm.sh/release.v1":
		return KeptHelm
	}
	return ""
}
