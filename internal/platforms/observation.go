// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms holds the rules of a Platform as pure functions: which layers
// it has on which clusters, when these are moved to another version of the bundle,
// and what is said of it all. It reads no clock, no cluster and no file.
package platforms

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Observation is everything that Decide decides from. Nothing in it is changed.
type Observation struct {
	Now time.Time
	// Namespace is the controller's own.
	Namespace string
	// Platform as it was read, with its last status.
	Platform *v1alpha1.Platform
	// Bundles are all that there are, in any order.
	Bundles []*v1alpha1.ApplicationBundle
	// Catalogue holds all applications by name.
	Catalogue map[string]*v1alpha1.HelmApplication
	// Clusters holds all RemoteClusters.
	Clusters map[types.NamespacedName]*v1alpha1.RemoteCluster
	// Version is the Kubernetes version of the cluster that Strata runs in; empty
	// where it is not known.
	Version string
	// ConfigMaps holds the data of those that inputsFrom names and that exist.
	ConfigMaps map[types.NamespacedName]map[string]string
	// ConfigMapErrors says of others why they cannot be read.
	ConfigMapErrors map[types.NamespacedName]error
	// Layers are those with the name of the Platform in PlatformLabel, in any order.
	Layers []*v1alpha1.AddonsLayer
	// Others are layers that are not the Platform's, in any order. Those of bundles matter
	// where it picks applications; those of Platforms that come before it, or that depend on
	// it, and all on clusters that its layers have made, matter always.
	Others []*v1alpha1.AddonsLayer
	// Platforms are all that there are, by name.
	Platforms map[string]*v1alpha1.Platform
	// Taken holds layers that are not among Layers although they have names that
	// Names returns.
	Taken map[string]*v1alpha1.AddonsLayer
}

// Decision is what is to be done for a Platform, in the order of the fields, and
// what to say of it.
type Decision struct {
	Status v1alpha1.PlatformStatus
	// StatusFirst is true where Status must be stored before anything else is done:
	// it has a lock, or the beginning of a roll-out, that must not be lost.
	StatusFirst bool
	// GiveUp names RemoteClusters that layers of the Platform have made and that are given up
	// with it: they get AbandonAnnotation before any layer is written.
	GiveUp []types.NamespacedName
	// Bundles are to be created.
	Bundles []*v1alpha1.ApplicationBundle
	// Write are the layers to be created, which have no resourceVersion, or to be
	// updated, each after those that it depends on.
	Write []*v1alpha1.AddonsLayer
	// Delete are the layers to be deleted once all of Write has been written: only
	// then does nothing depend on them any more. It is by name.
	Delete []*v1alpha1.AddonsLayer
	// DeleteBundles names the bundles that were made for the Platform and that
	// nothing uses any more.
	DeleteBundles []string
	// Gone is true where the Platform is being deleted and nothing of it is left.
	Gone bool
	// Until is when the decision may differ although nothing else has changed; zero
	// where that will not be.
	Until time.Time
}

// Names returns the names that a decision would give to new layers, and those that it would
// give them instead, sorted. The caller looks whether they are taken.
func Names(o Observation) []string {
	o.Taken = nil
	d := decided(o)
	targets := map[string]types.NamespacedName{}
	for _, m := range d.members {
		targets[clusterValue(m.target)] = m.target
	}
	var names []string
	for _, layer := range d.decision.Write {
		target, known := targets[layer.Labels[v1alpha1.PlatformClusterLabel]]
		if known && layer.ResourceVersion == "" {
			names = append(names, layerNames(d.Platform.Name, target, layer.Labels[v1alpha1.PlatformLayerLabel])...)
		}
	}
	return sorted(names)
}
