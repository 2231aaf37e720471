// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
)

// maxLabel is how long the value of a label may be.
const maxLabel = 63

// layerName returns the name of the AddonsLayer of a bundle's layer on a cluster.
// The digest of the cluster keeps apart what its name and that of the layer would
// run together to, and clusters of one name.
func layerName(platform string, cluster types.NamespacedName, layer string) string {
	if cluster.Name == "" {
		return bundles.Name(platform, layer)
	}
	return bundles.Name(platform, cluster.Name, digestOf(cluster.String(), 8), layer)
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
