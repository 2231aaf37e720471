// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/objects"
)

// Settings are the controller's, the same for all layers.
type Settings struct {
	// Interval is the safety-net resync of layers that name none.
	Interval time.Duration
	// Namespace is that of sources whose namespace is not given.
	Namespace string
	// MaxPrunePercent of a layer's releases may go at once without being
	// allowed; 0 turns the guard off.
	MaxPrunePercent int
	// DefaultServiceAccount writes the objects of layers that name no account;
	// empty means the controller itself.
	DefaultServiceAccount string
	// NoCrossNamespaceRefs refuses sources outside Namespace and
	// SourceNamespaces, clusters outside the namespace of the source, and objects
	// that refer to another namespace than their own.
	NoCrossNamespaceRefs bool
	// SourceNamespaces may hold sources beside Namespace where
	// NoCrossNamespaceRefs is set; it means nothing where that is not.
	SourceNamespaces []string
	// RequireServiceAccount refuses layers that no account writes.
	RequireServiceAccount bool
	// NoSecretsInNames refuses objects whose names are made of values of Secrets.
	NoSecretsInNames bool
	// OwnName is the name that the chart gave what it made for the controller;
	// empty means DefaultOwnName. Account is the controller's own ServiceAccount;
	// the zero value means that it is not known.
	OwnName string
	Account types.NamespacedName
	// ReservedAccounts are ServiceAccounts that no layer and no release names: by
	// NAME in every namespace, or by NAMESPACE/NAME.
	ReservedAccounts []string
	// FluxNamespaces are those that Flux's controllers run in.
	FluxNamespaces []string
	// LayerKinds are kinds that layers without an account may hold, beside what
	// layers are made of; nil means any.
	LayerKinds LayerKinds
	// DigestKey keys the digests of Secrets in statuses.
	DigestKey digests.Key
}

// Observation is everything that Decide decides from, at one moment. What is seen of
// one thing is a group: a rule shows by what it reads of which groups it needs.
type Observation struct {
	Now      time.Time
	Settings Settings
	// Layer as it was read, with its last status.
	Layer *v1alpha1.AddonsLayer
	// Layers holds the other layers by name: at least those that this one
	// depends on, directly or not, and those that depend on it; for a layer that
	// is being deleted and names others in teardownAfter, also those, and what their
	// deletion waits for.
	Layers map[string]Other
	// Waited is handed on to dependents.Make, and UnderWay says the same of the
	// roll-out of the layer's last status; nil where it is not known.
	Waited   map[objects.ID]time.Duration
	UnderWay *time.Duration
	// AskAgain is when what the layer's account may has to be asked again; zero where
	// nothing hangs on that.
	AskAgain time.Time

	ObservedSource
	ObservedContents
	ObservedClusters
	ObservedObjects
	ObservedDeletion
}

// ObservedSource is what is seen of the layer's source.
type ObservedSource struct {
	// Source of the layer; nil where there is none.
	Source *Source
	// SourceUnserved is true where the cluster does not serve the source's
	// kind, and SourceError says that the controller must not read it.
	SourceUnserved bool
	SourceError    error
}

// ObservedContents are what the layer is to hold, holds, and goes back to.
type ObservedContents struct {
	// Directory at the source's current revision; nil where it could not be
	// read, and then DirectoryError says why: a ContentError is the author's
	// to mend, anything else passes.
	Directory      *directories.Directory
	DirectoryError error
	// Deployed is the directory that is deployed, as long as it is known.
	Deployed *directories.Directory
	// Restored is the content of the deployment that RestoreID names; nil where
	// it could not be read, and then RestoreError says why.
	Restored     *directories.Directory
	RestoreError string
	// Before is what the layer lists at the version that is deployed of a bundle, where the
	// version to deploy is entered from it; nil where that is not known.
	Before *directories.Directory
}

// ObservedClusters is what is seen of the cluster that the layer belongs on, and of
// those that its objects name.
type ObservedClusters struct {
	// Remote is the cluster that the layer belongs on; nil where that is the one
	// that Strata runs in.
	Remote *Remote
	// ClusterVersion is the API server's version of the cluster that the layer
	// belongs on.
	ClusterVersion string
	// Forsaken holds the clusters that are given up, by their names.
	Forsaken map[string]bool
	// Twins holds the clusters that Strata knows by several names.
	Twins Twins
	// KubeConfigs names the RemoteClusters that have their kubeconfigs from Secrets in
	// question, and ClusterNamespaces those Namespaces in question that RemoteClusters
	// of this cluster are in.
	KubeConfigs       map[objects.ID][]types.NamespacedName
	ClusterNamespaces map[string]bool
	// Owned says what the names of objects in question are kept for by the HostClusters,
	// claims and providers that exist.
	Owned map[objects.ID]string
	// Scopes of the kinds in question, as the cluster serves them.
	Scopes map[objects.ServedKind]objects.Scope
	// Resources are the plural names by which the clusters serve those kinds.
	Resources map[objects.ServedKind]string
	// Unserved holds the versions that the layer's directories are written in
	// and that the cluster does not serve, also of kinds that it serves at
	// another version.
	Unserved map[objects.ServedVersion]bool
	// Classes holds the StorageClasses that ClassesInQuestion names.
	Classes map[objects.ID]VolumeClass
	// KindError says that a kind of the layer must not be watched or read.
	KindError error
}

// ObservedObjects is what is seen of the objects that the layer lists, has or waits
// for, and of those that others list.
type ObservedObjects struct {
	// Live, Stale, Exclusive and Others are handed on to dependents.Make.
	Live      map[objects.ID]*unstructured.Unstructured
	Stale     map[objects.ID]bool
	Exclusive map[string][]objects.ID
	Others    dependents.Others
	// Disputes holds the objects of the layer that others change again and again.
	Disputes map[objects.ID]dependents.Dispute
	// OthersUnread is true where another layer's directory could not be read
	// for a reason that passes.
	OthersUnread bool
	// Awaited holds the objects of spec.waitFor, in its order.
	Awaited []Awaited
	// Workloads are what releases of the layer have made and WatchedWorkloads names, as they
	// were seen; MoreWorkloads is how many more there are.
	Workloads     []Workload
	MoreWorkloads int
	// Volumes lists the claims for volumes of the releases that Reinstalled names. VolumesError
	// says why they could not be looked up, which passes.
	Volumes      []Blocker
	VolumesError error
	// Charts tells of releases of AwaitedCharts whether their charts are there.
	Charts map[objects.ID]bool
	// Taken holds objects that belong to the layer although its inventory
	// lacks them, because Kraan kept none.
	Taken []objects.ID
}

// ObservedDeletion is what is seen of what a deletion waits for.
type ObservedDeletion struct {
	// Blockers lists what stands in the way of the layer's deletion; only where
	// AsksForBlockers says so. BlockersError says why it could not be looked up,
	// which passes.
	Blockers      []Blocker
	BlockersError error
	// Doomed lists the objects of spec.deleteBefore that are left; only where
	// AsksForDoomed says so. DoomedError says why they could not be looked up.
	Doomed      []Doomed
	DoomedError error
}

// Other is another layer, as far as this one cares.
type Other struct {
	Layer *v1alpha1.AddonsLayer
	// SameSource is true where both layers come from one source object.
	SameSource bool
	// Digest is that of its directory in the artifact that this layer sees;
	// only for dependencies of the same source. Empty where it cannot be read.
	Digest string
}

// Keys are the labels and annotations by which layers own objects.
var Keys = dependents.Keys{
	Owner:           v1alpha1.LayerLabel,
	Orphaned:        v1alpha1.OrphanedLabel,
	SuspendedByHold: v1alpha1.SuspendedByHoldAnnotation,
	SuspendedByLoss: v1alpha1.SuspendedByLossAnnotation,
	SupersededBy:    v1alpha1.SupersededByAnnotation,
	CreatedFor:      v1alpha1.CreatedForAnnotation,
	Abandon:         v1alpha1.AbandonAnnotation,
	AllowPrune:      v1alpha1.AllowPruneAnnotation,
	Requested:       v1alpha1.ReconcileRequestAnnotation,
	FormerOwner:     schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddonsLayerKind},
}

// interval returns the layer's safety-net resync.
func (o Observation) interval() time.Duration {
	if o.Layer.Spec.Interval != nil {
		return o.Layer.Spec.Interval.Duration
	}
	return o.Settings.Interval
}

// grace returns how long an orphan waits.
func (o Observation) grace() time.Duration {
	if o.Layer.Spec.OrphanGrace != nil {
		return o.Layer.Spec.OrphanGrace.Duration
	}
	return o.interval()
}

// deployed tells whether the layer's Deployed condition is True.
func deployed(layer *v1alpha1.AddonsLayer) bool {
	return meta.IsStatusConditionTrue(layer.Status.Conditions, v1alpha1.DeployedCondition)
}

// hasDeployed tells whether the layer has anything on the cluster, or may have.
// One that only waits lists what it will have. Of one whose status does not count that is
// not known.
func hasDeployed(layer *v1alpha1.AddonsLayer) bool {
	if v1alpha1.IsForeign(layer.Status.Conditions) || layer.Status.Revision != "" || layer.Status.Attempt != nil && len(layer.Status.Resources) > 0 {
		return true
	}
	return slices.ContainsFunc(layer.Status.Resources, func(r v1alpha1.Resource) bool {
		return r.Digest != "" || r.Status != objects.StatusMissing && r.Status != objects.StatusNotServed
	})
}

func isDeleting(layer *v1alpha1.AddonsLayer) bool { return !layer.DeletionTimestamp.IsZero() }

// readyMessage returns what a layer says of itself.
func readyMessage(layer *v1alpha1.AddonsLayer) string {
	if ready := meta.FindStatusCondition(layer.Status.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.Status != metav1.ConditionTrue {
		return ready.Message
	}
	return ""
}

// inventory returns what the layer has, with what was taken over from Kraan.
func (o Observation) inventory() []dependents.Entry {
	entries := longFiles(o.Layer, Inventory(o.Layer.Status.Resources, o.Live))
	known := make(map[objects.ID]bool, len(entries))
	for _, entry := range entries {
		known[entry.ID] = true
	}
	for _, id := range o.Taken {
		if !known[id] {
			entries = append(entries, entryOf(dependents.Entry{ID: id, Status: objects.StatusProgress, Since: o.Now}, o.Live[id]))
		}
	}
	foreign := v1alpha1.IsForeign(o.Layer.Status.Conditions)
	for i := range entries {
		entry := &entries[i]
		entry.Completed = entry.Completed && !foreign // what somebody else has written was not seen
		if !o.Layer.Spec.Prunes() && (!isDeleting(o.Layer) || o.Layer.Spec.OnDeletion() != v1alpha1.DeletionPolicyDelete) {
			entry.Deletion, entry.Spared = dependents.DeletionOrphan, ""
		}
		if o.isLasting(entry.ID) && (entry.Deletion != dependents.DeletionOrphan || entry.Spared != "") {
			entry.Deletion, entry.Spared = dependents.DeletionOrphan, sparedLasting
		}
	}
	return entries
}

// notServed returns the kinds that the cluster does not serve, or not at the
// version that a directory, if there is one, is written in.
func (o Observation) notServed(directory *directories.Directory) map[objects.ServedKind]bool {
	unserved := map[objects.ServedKind]bool{}
	for kind, scope := range o.Scopes {
		if scope == objects.ScopeUnknown {
			unserved[kind] = true
		}
	}
	if directory == nil {
		return unserved
	}
	for _, manifest := range directory.Manifests {
		if o.Unserved[objects.ServedVersion{Cluster: manifest.Cluster, GroupVersionKind: manifest.Object.GroupVersionKind()}] {
			unserved[manifest.ID().ServedKind()] = true
		}
	}
	return unserved
}
