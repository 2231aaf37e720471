// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot holds what was read of a cluster at one moment, so that all
// that an answer says is of that moment. It may import nothing of the answers, and
// reads nothing: package gather does.
package snapshot

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// Part is a kind of objects that a snapshot may hold.
type Part struct {
	schema.GroupVersionResource
	// Kind of the objects.
	Kind string
}

func flux(group, resource, version, kind string) Part {
	return Part{schema.GroupVersionResource{Group: group + ".toolkit.fluxcd.io", Version: version, Resource: resource}, kind}
}

func builtin(group, resource, kind string) Part {
	return Part{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: kind}
}

func own(resource, kind string) Part {
	return Part{v1alpha1.GroupVersion.WithResource(resource), kind}
}

// The parts of a snapshot.
var (
	Layers       = own("addonslayers", v1alpha1.AddonsLayerKind)
	Clusters     = own("remoteclusters", v1alpha1.RemoteClusterKind)
	Bundles      = own("applicationbundles", v1alpha1.ApplicationBundleKind)
	Applications = own("helmapplications", v1alpha1.HelmApplicationKind)
	Platforms    = own("platforms", v1alpha1.PlatformKind)
	Providers    = own("capabilityproviders", v1alpha1.CapabilityProviderKind)
	Claims       = own("capabilityclaims", v1alpha1.CapabilityClaimKind)
	HostClusters = own("hostclusters", v1alpha1.HostClusterKind)

	Releases          = flux("helm", "helmreleases", "v2", "HelmRelease")
	Kustomizations    = flux("kustomize", "kustomizations", "v1", "Kustomization")
	GitRepositories   = flux("source", "gitrepositories", "v1", "GitRepository")
	OCIRepositories   = flux("source", "ocirepositories", "v1", "OCIRepository")
	Buckets           = flux("source", "buckets", "v1", "Bucket")
	ExternalArtifacts = flux("source", "externalartifacts", "v1", "ExternalArtifact")
	HelmRepositories  = flux("source", "helmrepositories", "v1", "HelmRepository")
	HelmCharts        = flux("source", "helmcharts", "v1", "HelmChart")

	Namespaces = Part{corev1.SchemeGroupVersion.WithResource("namespaces"), "Namespace"}

	ConfigMaps = Part{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap"}

	Pods   = Part{corev1.SchemeGroupVersion.WithResource("pods"), "Pod"}
	Events = Part{corev1.SchemeGroupVersion.WithResource("events"), "Event"}
)

// Sources are the parts that hold what layers come from.
var Sources = []Part{GitRepositories, OCIRepositories, Buckets, ExternalArtifacts}

// ReplicaSets stand between Deployments and Pods.
var ReplicaSets = builtin("apps", "replicasets", "ReplicaSet")

// Jobs are made by CronJobs, too.
var Jobs = builtin("batch", "jobs", "Job")

// Workloads are the kinds that have Pods.
var Workloads = []Part{
	builtin("apps", "deployments", "Deployment"), builtin("apps", "statefulsets", "StatefulSet"), builtin("apps", "daemonsets", "DaemonSet"), Jobs,
}

// Snapshot is what was read of a cluster. Objects are sorted by namespace and
// name, and nobody changes them.
type Snapshot struct {
	// Now is when it was read.
	Now time.Time
	// Version of the API server, such as v1.36.3; empty where it was not asked for.
	Version string

	Layers       []*v1alpha1.AddonsLayer
	Clusters     []*v1alpha1.RemoteCluster
	Bundles      []*v1alpha1.ApplicationBundle
	Applications []*v1alpha1.HelmApplication
	Platforms    []*v1alpha1.Platform
	Providers    []*v1alpha1.CapabilityProvider
	Claims       []*v1alpha1.CapabilityClaim
	HostClusters []*v1alpha1.HostCluster
	// Objects holds everything of all other parts by its ID.
	Objects map[objects.ID]*unstructured.Unstructured
	// Unread says of parts that were asked for why they could not be read: the
	// cluster does not serve them, or whoever asks may not list them.
	Unread map[Part]error
}

// Layer returns a layer by its name, or nil.
func (s *Snapshot) Layer(name string) *v1alpha1.AddonsLayer {
	for _, layer := range s.Layers {
		if layer.Name == name {
			return layer
		}
	}
	return nil
}

// Cluster returns a RemoteCluster by its name, or nil.
func (s *Snapshot) Cluster(name types.NamespacedName) *v1alpha1.RemoteCluster {
	for _, cluster := range s.Clusters {
		if cluster.Namespace == name.Namespace && cluster.Name == name.Name {
			return cluster
		}
	}
	return nil
}

// Of returns the objects of a part, sorted by namespace and name.
func (s *Snapshot) Of(part Part) []*unstructured.Unstructured {
	var ids []objects.ID
	for id := range s.Objects {
		if id.Group == part.Group && id.Kind == part.Kind {
			ids = append(ids, id)
		}
	}
	found := make([]*unstructured.Unstructured, 0, len(ids))
	for _, id := range objects.SortIDs(ids) {
		found = append(found, s.Objects[id])
	}
	return found
}

// LayerNames returns the names of all layers, sorted.
func (s *Snapshot) LayerNames() []string {
	names := make([]string, 0, len(s.Layers))
	for _, layer := range s.Layers {
		names = append(names, layer.Name)
	}
	return names
}
