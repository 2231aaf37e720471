// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package discoveries

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
)

// ProfileLabel on a Secret names the ClusterProfile, of its namespace, that the Secret has
// the kubeconfig of (KEP-4322 of Kubernetes).
const ProfileLabel = "x-k8s.io/cluster-profile"

// groupKinds are the kinds that stand for clusters.
var groupKinds = map[v1alpha1.DiscoveredKind]schema.GroupKind{
	v1alpha1.DiscoveredCluster:        {Group: "cluster.x-k8s.io", Kind: "Cluster"},
	v1alpha1.DiscoveredClusterProfile: {Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"},
	v1alpha1.DiscoveredHostCluster:    {Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.HostClusterKind},
}

// GroupKindOf returns the kind of the objects that a discovery finds.
func GroupKindOf(discovery *v1alpha1.ClusterDiscovery) schema.GroupKind {
	return groupKinds[discovery.Spec.Kind]
}

// Found is an object that stands for a cluster.
type Found struct {
	Name string
	// UID of the object, or of its cluster: a cluster that is made anew has another one.
	UID string
	// Coming is true where there is no cluster yet that could have a RemoteCluster.
	Coming bool
	// Labels of the object, and of a ClusterProfile what its properties say.
	Labels map[string]string
	// Deleting is true where the object is being deleted.
	Deleting bool
	// Version of Kubernetes that the object tells of; empty where it tells of none.
	Version string
	// Secret of the kubeconfig, in the object's namespace, and Key of its data; an empty
	// key stands for the usual ones.
	Secret, Key string
	// Ambiguous says why it is not known which Secret has the kubeconfig; empty where it is.
	Ambiguous string
}

// Handed is what the Secret with the kubeconfig of a HostCluster says of the cluster: its ID and
// version. The zero value is for a HostCluster that has handed out none.
type Handed struct{ ID, Version string }

// HandedIn reads what the metadata of a Secret say that has the name for the kubeconfig of a
// HostCluster. One that is somebody else's says nothing.
func HandedIn(secret metav1.Object, hostCluster string) Handed {
	if secret.GetLabels()[v1alpha1.HostClusterLabel] != hostCluster || secret.GetDeletionTimestamp() != nil {
		return Handed{}
	}
	said := secret.GetAnnotations()
	return Handed{ID: said[v1alpha1.HostClusterIDAnnotation], Version: said[v1alpha1.HostClusterVersionAnnotation]}
}

// Secrets are what those of a namespace say of the objects that stand for clusters.
type Secrets struct {
	// Profiles has the names of those that say that they have the kubeconfig of a ClusterProfile,
	// by its name.
	Profiles map[string][]string
	// Handed is what was handed out of HostClusters, by their names. A user who may write the status of
	// one says nothing of which cluster it is.
	Handed map[string]Handed
}

// KubeConfigOf returns the name of the Secret with the kubeconfig of a HostCluster.
func KubeConfigOf(hostCluster string) string { return hostCluster + "-kubeconfig" }

// Parse reads an object of a kind that stands for clusters.
func Parse(obj *unstructured.Unstructured, secrets Secrets) Found {
	found := Found{
		Name: obj.GetName(), UID: string(obj.GetUID()), Labels: maps.Clone(obj.GetLabels()), Deleting: obj.GetDeletionTimestamp() != nil,
		Secret: obj.GetName() + "-kubeconfig",
	}
	if obj.GroupVersionKind().GroupKind() == groupKinds[v1alpha1.DiscoveredCluster] {
		found.Key = "value"
		found.Version, _, _ = unstructured.NestedString(obj.Object, "spec", "topology", "version")
		return found
	}
	if obj.GroupVersionKind().GroupKind() == groupKinds[v1alpha1.DiscoveredHostCluster] {
		// The hosts may be made into another cluster under the same HostCluster.
		found.Key = "value"
		handed := secrets.Handed[found.Name]
		found.UID, found.Version, found.Secret = handed.ID, handed.Version, KubeConfigOf(found.Name)
		found.Coming = found.UID == ""
		return found
	}
	found.Version, _, _ = unstructured.NestedString(obj.Object, "status", "version", "kubernetes")
	found.Labels = withProperties(found.Labels, obj)
	switch named := secrets.Profiles[found.Name]; len(named) {
	case 0:
	case 1:
		found.Secret = named[0]
	default:
		found.Ambiguous = fmt.Sprintf("%d Secrets have the label %s=%s (%s): leave it to one of them",
			len(named), ProfileLabel, found.Name, strings.Join(catalogue.FirstOf(slices.Sorted(slices.Values(named))), ", "))
	}
	return found
}

// withProperties adds the properties of a ClusterProfile that can be labels to its own
// labels, which win.
func withProperties(own map[string]string, profile *unstructured.Unstructured) map[string]string {
	all := map[string]string{}
	properties, _, _ := unstructured.NestedSlice(profile.Object, "status", "properties")
	for _, one := range properties {
		property, _ := one.(map[string]any)
		name, _ := property["name"].(string)
		value, _ := property["value"].(string)
		if len(validation.IsQualifiedName(name)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			all[name] = value
		}
	}
	maps.Copy(all, own)
	return all
}

// fill gives a RemoteCluster what it has of its object and of the template. What people
// have added to it stays.
func (d *decider) fill(cluster *v1alpha1.RemoteCluster, found Found) {
	template := d.Discovery.Spec.Template
	wanted := map[string]string{}
	for key, value := range found.Labels {
		if !isKept(key) {
			wanted[key] = value
		}
	}
	maps.Copy(wanted, template.Labels)
	given := strings.Join(slices.Sorted(maps.Keys(wanted)), ",")
	all := maps.Clone(cluster.Labels)
	for _, key := range strings.Split(cluster.Annotations[v1alpha1.DiscoveredLabelsAnnotation], ",") {
		if key != v1alpha1.DiscoveryLabel {
			delete(all, key)
		}
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	all[v1alpha1.DiscoveryLabel] = d.Discovery.Name
	cluster.Labels = all
	annotate(cluster, v1alpha1.DiscoveredUIDAnnotation, found.UID)
	annotate(cluster, v1alpha1.DiscoveredLabelsAnnotation, given)
	annotate(cluster, v1alpha1.ReportedVersionAnnotation, found.Version)
	cluster.Spec.KubeConfig = v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: found.Secret, Key: found.Key}}
	cluster.Spec.Interval = template.Interval
	cluster.Spec.Unreachable = template.Unreachable
	cluster.Spec.DeletionPolicy = template.DeletionPolicy
	if template.DeletionPolicy == "" {
		cluster.Spec.DeletionPolicy = v1alpha1.ClusterDeletionAbandon
	}
}

func annotate(cluster *v1alpha1.RemoteCluster, key, value string) {
	if value == "" {
		delete(cluster.Annotations, key)
		return
	}
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[key] = value
}

// isKept tells whether a label is left on the object that has it, since on another one
// it would say something wrong: that Strata has made it, or that Flux, Argo CD, Helm or
// Rancher has, some of which delete what seems to be theirs.
func isKept(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch key {
	case v1alpha1.OrphanedLabel, "app.kubernetes.io/instance", "app.kubernetes.io/managed-by":
		return true
	}
	if !strings.Contains(key, "/") {
		return false
	}
	for _, kept := range []string{"kraan", "kraan.io", "toolkit.fluxcd.io", "argocd.argoproj.io", "helm.sh", "cattle.io"} {
		if domain == kept || strings.HasSuffix(domain, "."+kept) {
			return true
		}
	}
	return false
}
