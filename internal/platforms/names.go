// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// maxLabel is how long the value of a label may be.
const maxLabel = 63

// namer gives the layers of a platform their names. One that exists keeps its name; a new
// one has the shortest that nothing else has: with its cluster's name, with a digest of that
// where another cluster has the same name or runs together with a layer to it, and with a
// digest of all.
type namer struct {
	platform string
	taken    map[string]*v1alpha1.AddonsLayer
	// there has the names of layers by what they are, and used what has a name.
	there, used map[string]string
	// instances has the names of installations by cluster, and wrong why there is none.
	instances map[string]string
	wrong     map[string]error
}

func newNamer(o Observation) *namer {
	n := &namer{platform: o.Platform.Name, taken: o.Taken, there: map[string]string{}, used: map[string]string{}}
	n.instances, n.wrong = map[string]string{}, map[string]error{}
	for _, layer := range o.Layers {
		what := ""
		if IsMade(layer) {
			what = layer.Labels[v1alpha1.PlatformClusterLabel] + "/" + layer.Labels[v1alpha1.PlatformLayerLabel]
			if first := n.there[what]; first == "" || layer.Name < first {
				n.there[what] = layer.Name
			}
			if name := layer.Spec.Instance; name != "" {
				n.instances[layer.Labels[v1alpha1.PlatformClusterLabel]] = name
			}
		}
		n.used[layer.Name] = what
	}
	return n
}

// name returns the name of the AddonsLayer of a bundle's layer on a cluster.
func (n *namer) name(cluster types.NamespacedName, layer string) string {
	what := clusterValue(cluster) + "/" + layer
	if name := n.there[what]; name != "" {
		return name
	}
	names := layerNames(n.platform, cluster, layer)
	for i, name := range names {
		_, isUsed := n.used[name]
		if (isUsed || n.taken[name] != nil) && i < len(names)-1 {
			continue
		}
		n.there[what], n.used[name] = name, what
		return name
	}
	return "" // there always is a last one
}

// instance returns the name of the installation on a cluster.
func (n *namer) instance(cluster types.NamespacedName) (string, error) {
	value := clusterValue(cluster)
	if name := n.instances[value]; name != "" {
		return name, nil
	}
	if err := n.wrong[value]; err != nil {
		return "", err
	}
	return instanceOf(n.platform, cluster), nil
}

// layerNames returns the names that the AddonsLayer of a bundle's layer on a cluster may
// have, the shortest first.
func layerNames(platform string, cluster types.NamespacedName, layer string) []string {
	if cluster.Name == "" {
		return []string{bundles.Name(platform, layer)}
	}
	return []string{
		bundles.Name(platform, cluster.Name, layer),
		bundles.Name(platform, cluster.Name, digestOf(cluster.String(), 8), layer),
		bundles.Name(platform, cluster.Name, digestOf(cluster.String()+"/"+layer, 16)),
	}
}

// instanceOf returns the name of the installation on a cluster. The digest keeps apart
// namespaces and names that run together to one.
func instanceOf(platform string, cluster types.NamespacedName) string {
	if cluster.Name == "" {
		return platform
	}
	if !strings.Contains(cluster.Namespace, "-") {
		return bundles.Name(platform, cluster.Namespace, cluster.Name)
	}
	return bundles.Name(platform, cluster.Namespace, cluster.Name, digestOf(cluster.String(), 8))
}

// clusterValue returns the value of PlatformClusterLabel for a cluster. The name of
// a namespace has no dot, and a digest has none, so that no two are the same.
func clusterValue(cluster types.NamespacedName) string {
	if cluster.Name == "" {
		return ""
	}
	if value := cluster.Namespace + "." + cluster.Name; len(value) <= maxLabel {
		return value
	}
	return "sha256-" + digestOf(cluster.String(), 48)
}

// digestOf returns so many hexadecimal digits of the digest of a text.
func digestOf(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// foreignDomains are those of labels by which other programs find what they have
// made: on a layer they would have the wrong meaning.
var foreignDomains = []string{
	"kubectl.kubernetes.io", "helm.sh", "meta.helm.sh", "app.kubernetes.io", "toolkit.fluxcd.io", "argoproj.io", "kraan.io",
}

// labelsOf returns the labels of what is made for a platform: those of the platform,
// so that who looks after some platforms only looks after their layers too, and those of
// its template for layers.
func labelsOf(platform *v1alpha1.Platform) map[string]string {
	labels := plain(platform.Labels)
	if template := platform.Spec.LayerTemplate; template != nil {
		labels = with(labels, plain(template.Labels))
	}
	labels[v1alpha1.PlatformLabel] = platform.Name
	return labels
}

// plain returns labels without those by which kubectl, Helm, Flux, Argo CD and Strata know
// their own.
func plain(all map[string]string) map[string]string {
	labels := map[string]string{}
	for key, value := range all {
		domain, _, hasDomain := strings.Cut(key, "/")
		foreign := hasDomain && slices.ContainsFunc(foreignDomains, func(of string) bool {
			return domain == of || strings.HasSuffix(domain, "."+of)
		})
		if !foreign && key != v1alpha1.LayerLabel && key != v1alpha1.OrphanedLabel {
			labels[key] = value
		}
	}
	return labels
}

// with returns a copy of a map with more in it.
func with(base, more map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// madeBundle returns a bundle that is made for a platform.
func madeBundle(platform *v1alpha1.Platform, name string, spec v1alpha1.ApplicationBundleSpec) *v1alpha1.ApplicationBundle {
	bundle := &v1alpha1.ApplicationBundle{Spec: spec}
	bundle.Name, bundle.Labels = name, labelsOf(platform)
	isController := true
	bundle.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.PlatformKind, Name: platform.Name, UID: platform.UID, Controller: &isController,
	}}
	return bundle
}
