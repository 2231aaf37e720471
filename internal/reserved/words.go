// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Sort is the place of a word on an object.
type Sort string

// The sorts of words.
const (
	Label      Sort = "label"
	Annotation Sort = "annotation"
	Finalizer  Sort = "finalizer"
	Type       Sort = "type of Secrets"
)

// Author is whoever may set a word.
type Author string

const (
	// Controllers set a word, or the plug-in does on their behalf. A directory that
	// says it is not believed: the word is taken off.
	Controllers Author = "Strata"
	// People set a word, by hand or in git.
	People Author = "people"
)

// Word is a label, an annotation, a finalizer or a type by which Strata knows something of
// an object.
type Word struct {
	Key  string
	Sort Sort
	By   Author
	// Keeps says what a live object with the word is kept for; empty where any layer may
	// have the object.
	Keeps string
	// Only is the one kind of which the word keeps objects; the zero value stands for
	// every kind.
	Only schema.GroupKind
	// Refused is true where a directory's object with the word is refused. Otherwise the
	// word is taken off it.
	Refused bool
	// On says which objects have the word, for documents.
	On string
}

// secrets is the kind of Secrets.
var secrets = schema.GroupKind{Kind: "Secret"}

// words lists every word of Strata's. A constant of the API that is missing here fails a
// test.
var words = []Word{
	{Key: v1alpha1.LayerLabel, Sort: Label, By: Controllers, On: "objects of layers"},
	{Key: v1alpha1.OrphanedLabel, Sort: Label, By: Controllers, On: "objects that their layer no longer lists"},
	{Key: v1alpha1.ClusterLabel, Sort: Label, By: Controllers, Keeps: KeptForCluster, Refused: true, On: "copies of kubeconfigs"},
	{Key: v1alpha1.RevisionOfLabel, Sort: Label, By: Controllers, Keeps: KeptRevision, Refused: true, On: "kept deployments"},
	{Key: v1alpha1.JoinedLabel, Sort: Label, By: Controllers, Keeps: KeptCredential, Only: secrets, Refused: true, On: "what joins a cluster"},
	{Key: v1alpha1.ClaimLabel, Sort: Label, By: Controllers, Keeps: KeptForClaim, On: "objects, bindings, passwords and records of claims"},
	{Key: v1alpha1.HostClusterLabel, Sort: Label, By: Controllers, Keeps: KeptForHosts, On: "kubeconfigs of HostClusters"},
	{Key: v1alpha1.ProviderLabel, Sort: Label, By: Controllers, Keeps: KeptRecord, On: "records of providers"},
	{Key: v1alpha1.PluginLabel, Sort: Label, By: Controllers, Keeps: KeptForPlugin, On: "what runs the plug-in of a CapabilityProvider"},
	{Key: v1alpha1.DiscoveryLabel, Sort: Label, By: Controllers, Keeps: KeptDiscovered, On: "RemoteClusters that a ClusterDiscovery has made"},
	{Key: v1alpha1.PlatformLabel, Sort: Label, By: Controllers, Keeps: KeptForPlatform, On: "layers and bundles of Platforms"},
	{Key: v1alpha1.PlatformLayerLabel, Sort: Label, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformClusterLabel, Sort: Label, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformFamilyLabel, Sort: Label, By: Controllers, On: "layers of Platforms"},

	{Key: v1alpha1.CopyOfAnnotation, Sort: Annotation, By: Controllers, Keeps: KeptCopy, Refused: true, On: "copies for releases of other clusters"},
	{Key: v1alpha1.SharedByAnnotation, Sort: Annotation, By: Controllers, On: "the same"},
	{Key: v1alpha1.PlacedForAnnotation, Sort: Annotation, By: Controllers, On: "the same, and sources beside a RemoteCluster"},
	{Key: v1alpha1.ClusterUIDAnnotation, Sort: Annotation, By: Controllers, On: "copies of kubeconfigs"},
	{Key: v1alpha1.CopyMACAnnotation, Sort: Annotation, By: Controllers, On: "copies of kubeconfigs"},
	{Key: v1alpha1.DigestAnnotation, Sort: Annotation, By: Controllers, On: "kept deployments"},
	{Key: v1alpha1.DecidedAnnotation, Sort: Annotation, By: Controllers, On: "layers and Platforms"},
	{Key: v1alpha1.SuspendedByHoldAnnotation, Sort: Annotation, By: Controllers, On: "HelmReleases of layers that are held"},
	{Key: v1alpha1.SuspendedByLossAnnotation, Sort: Annotation, By: Controllers, On: "HelmReleases of clusters that are away"},
	{Key: v1alpha1.SupersededByAnnotation, Sort: Annotation, By: Controllers, On: "HelmReleases that were renamed"},
	{Key: v1alpha1.CreatedForAnnotation, Sort: Annotation, By: Controllers, On: "Namespaces, CRDs and PersistentVolumeClaims of layers"},
	{Key: v1alpha1.TakenOverAnnotation, Sort: Annotation, By: Controllers, On: "layers that were Kustomizations"},
	{Key: v1alpha1.HandOverAnnotation, Sort: Annotation, By: Controllers, On: "Kustomizations that become layers"},
	{Key: v1alpha1.HubAnnotation, Sort: Annotation, By: Controllers, On: "the Namespace kube-system of another cluster"},
	{Key: v1alpha1.HoldsDataAnnotation, Sort: Annotation, By: Controllers, On: "objects of claims that hold data"},
	{Key: v1alpha1.RotationAnnotation, Sort: Annotation, By: Controllers, On: "bindings of claims"},
	{Key: v1alpha1.PluginAnnotation, Sort: Annotation, By: Controllers, On: "what runs the plug-in of a CapabilityProvider"},
	{Key: v1alpha1.RecordMACAnnotation, Sort: Annotation, By: Controllers, Keeps: KeptRecord, On: "records of claims and providers"},
	{Key: v1alpha1.SignRecordsAnnotation, Sort: Annotation, By: Controllers, Keeps: KeptSigned, On: "the note that records are signed"},
	{Key: v1alpha1.HostClusterIDAnnotation, Sort: Annotation, By: Controllers, On: "kubeconfigs of HostClusters"},
	{Key: v1alpha1.HostClusterVersionAnnotation, Sort: Annotation, By: Controllers, On: "the same"},
	{Key: v1alpha1.UpgradingAnnotation, Sort: Annotation, By: Controllers, On: "Nodes that are upgraded"},
	{Key: v1alpha1.DiscoveredUIDAnnotation, Sort: Annotation, By: Controllers, On: "RemoteClusters that a ClusterDiscovery has made"},
	{Key: v1alpha1.DiscoveredLabelsAnnotation, Sort: Annotation, By: Controllers, On: "the same"},
	{Key: v1alpha1.ReportedVersionAnnotation, Sort: Annotation, By: Controllers, On: "the same"},
	{Key: v1alpha1.PlatformBeforeAnnotation, Sort: Annotation, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformMovedAnnotation, Sort: Annotation, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformInputsAnnotation, Sort: Annotation, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformInputsBeforeAnnotation, Sort: Annotation, By: Controllers, On: "layers of Platforms"},
	{Key: v1alpha1.PlatformDroppedAnnotation, Sort: Annotation, By: Controllers, On: "layers of Platforms"},

	{Key: v1alpha1.Finalizer, Sort: Finalizer, By: Controllers, On: "layers and Platforms"},
	{Key: v1alpha1.ClusterFinalizer, Sort: Finalizer, By: Controllers, On: "RemoteClusters"},
	{Key: v1alpha1.KubeConfigFinalizer, Sort: Finalizer, By: Controllers, Keeps: KeptKubeConfig, Refused: true, On: "copies of kubeconfigs"},
	{Key: v1alpha1.HostClusterFinalizer, Sort: Finalizer, By: Controllers, On: "HostClusters"},
	{Key: v1alpha1.ClaimFinalizer, Sort: Finalizer, By: Controllers, On: "CapabilityClaims"},
	{Key: v1alpha1.OutsideFinalizer, Sort: Finalizer, By: Controllers, On: "CapabilityClaims with something outside of clusters"},

	{Key: v1alpha1.RevisionType, Sort: Type, By: Controllers, Keeps: KeptRevision, Only: secrets, Refused: true, On: "kept deployments"},
	{Key: v1alpha1.RecordsType, Sort: Type, By: Controllers, Keeps: KeptSigned, Only: secrets, Refused: true, On: "the note that records are signed"},
	{Key: v1alpha1.DecisionsSignedType, Sort: Type, By: Controllers, Keeps: KeptSigned, Only: secrets, Refused: true, On: "the note that decisions are signed"},
	{Key: v1alpha1.DigestKeyType, Sort: Type, By: Controllers, Keeps: KeptDigestKey, Only: secrets, Refused: true, On: "the key of digests"},

	{Key: v1alpha1.HoldAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.HoldUntilAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.HoldReleasesAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.AllowEmptyAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.AllowReinstallAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.AllowPruneAnnotation, Sort: Annotation, By: People, On: "layers and ClusterDiscoveries"},
	{Key: v1alpha1.AllowBreakAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.ForceDeleteAnnotation, Sort: Annotation, By: People, On: "layers and Platforms"},
	{Key: v1alpha1.ConfirmDeletionAnnotation, Sort: Annotation, By: People, On: "layers, Platforms, claims and HostClusters"},
	{Key: v1alpha1.RollbackToAnnotation, Sort: Annotation, By: People, On: "layers"},
	{Key: v1alpha1.AbandonAnnotation, Sort: Annotation, By: People, On: "layers, Platforms, RemoteClusters and claims"},
	{Key: v1alpha1.AcceptClusterAnnotation, Sort: Annotation, By: People, On: "RemoteClusters"},
	{Key: v1alpha1.TakeOverAnnotation, Sort: Annotation, By: People, On: "RemoteClusters"},
	{Key: v1alpha1.TakeOverClusterAnnotation, Sort: Annotation, By: People, On: "HostClusters"},
	{Key: v1alpha1.WithoutSnapshotAnnotation, Sort: Annotation, By: People, On: "HostClusters"},
	{Key: v1alpha1.ReconcileRequestAnnotation, Sort: Annotation, By: People, On: "objects of Strata and of Flux"},
	{Key: v1alpha1.ShareWithAnnotation, Sort: Annotation, By: People, On: "ConfigMaps and Secrets"},
	{Key: v1alpha1.RebindAnnotation, Sort: Annotation, By: People, On: "CapabilityClaims"},
	{Key: v1alpha1.ApproveAnnotation, Sort: Annotation, By: People, On: "Platforms"},
	{Key: v1alpha1.ApproveReasonAnnotation, Sort: Annotation, By: People, On: "Platforms"},
	{Key: v1alpha1.ApprovedByAnnotation, Sort: Annotation, By: People, On: "Platforms"},
	{Key: v1alpha1.UpdateVersionAnnotation, Sort: Annotation, By: People, On: "HelmReleases of layers"},
	{Key: v1alpha1.PruneAnnotation, Sort: Annotation, By: People, On: "objects of layers"},
	{Key: v1alpha1.FluxPruneAnnotation, Sort: Annotation, By: People, On: "objects of layers"},
	{Key: v1alpha1.FluxReconcileAnnotation, Sort: Annotation, By: People, On: "objects of layers"},
	{Key: v1alpha1.FluxSSAAnnotation, Sort: Annotation, By: People, On: "objects of layers"},
	{Key: v1alpha1.FluxForceAnnotation, Sort: Annotation, By: People, On: "objects of layers"},
}

// ReleaseLabel and ReleaseNamespaceLabel name the HelmRelease that has installed an object.
// helm-controller sets them, and no directory says them.
const (
	ReleaseLabel          = "helm.toolkit.fluxcd.io/name"
	ReleaseNamespaceLabel = "helm.toolkit.fluxcd.io/namespace"
)

// Words returns every word of Strata's. The list is the caller's own.
func Words() []Word { return append([]Word(nil), words...) }

// wordsBy has the words of each sort by their keys.
var wordsBy = func() map[Sort]map[string]Word {
	found := map[Sort]map[string]Word{}
	for _, word := range words {
		if found[word.Sort] == nil {
			found[word.Sort] = map[string]Word{}
		}
		found[word.Sort][word.Key] = word
	}
	return found
}()

// MaySay tells whether a directory may say a word of one of its objects. A word of
// Strata's domain that is not known, or comes with a later version, is not among them.
func MaySay(sort Sort, key string) bool {
	if word, known := wordsBy[sort][key]; known {
		return word.By == People
	}
	if sort == Label && (key == ReleaseLabel || key == ReleaseNamespaceLabel) {
		return false
	}
	return !isStratas(key)
}

// isStratas tells whether a key is of a domain of Strata's.
func isStratas(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	group := v1alpha1.GroupVersion.Group
	return key == v1alpha1.Finalizer || qualified && (domain == "kraan" || domain == group || strings.HasSuffix(domain, "."+group))
}
