// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
)

// StoredSelector selects the Secrets of Helm that may hold what a release is now.
const StoredSelector = "owner=helm,status notin (superseded,uninstalled)"

// StoredType is the type of Helm's Secrets.
const StoredType = "helm.sh/release.v1"

// Stored is a Secret that holds a revision of a release, as its labels say.
type Stored struct {
	Namespace, Secret string
	Release           string
	Revision          int
}

// String names the Secret.
func (s Stored) String() string { return s.Namespace + "/" + s.Secret }

// StoredOf reads the labels of a Secret of Helm.
func StoredOf(namespace, secret string, labels map[string]string) (Stored, error) {
	revision, err := strconv.Atoi(labels["version"])
	if labels["name"] == "" || err != nil || revision < 1 {
		return Stored{}, fmt.Errorf("has no labels that name a release and its revision: %q, %q", labels["name"], labels["version"])
	}
	return Stored{Namespace: namespace, Secret: secret, Release: labels["name"], Revision: revision}, nil
}

// Newest returns the newest revision of each release, sorted.
func Newest(stored []Stored) []Stored {
	sorted := slices.Clone(stored)
	slices.SortFunc(sorted, func(a, b Stored) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Release, b.Release),
			cmp.Compare(b.Revision, a.Revision), strings.Compare(a.Secret, b.Secret))
	})
	return slices.CompactFunc(sorted, func(a, b Stored) bool { return a.Namespace == b.Namespace && a.Release == b.Release })
}

// Check says why a release is not what the labels of its Secret say; empty where
// it is.
func (s Stored) Check(r Release) string {
	if r.Namespace != s.Namespace || r.Name != s.Release || r.Revision != s.Revision {
		return fmt.Sprintf("holds revision %d of %s/%s, other than its labels say", r.Revision, r.Namespace, r.Name)
	}
	return ""
}

// Kept says who keeps a live HelmRelease, so that no layer may take it; empty
// where nobody does, or Flux from a Kustomization, of which note then speaks.
func Kept(live *unstructured.Unstructured) (by, note string) {
	if layer := live.GetLabels()[v1alpha1.LayerLabel]; layer != "" {
		return "layer " + layer + " has it", ""
	}
	for _, owner := range live.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			return fmt.Sprintf("it belongs to %s %s", owner.Kind, owner.Name), ""
		}
	}
	if !live.GetDeletionTimestamp().IsZero() {
		return "it is being deleted", ""
	}
	if _, found, _ := unstructured.NestedMap(live.Object, "spec", "kubeConfig"); found {
		return "it installs on another cluster: give that a RemoteCluster, and its layer spec.cluster", ""
	}
	if kustomization := live.GetLabels()["kustomize.toolkit.fluxcd.io/name"]; kustomization != "" {
		return "", fmt.Sprintf("Kustomization %s/%s writes it, too: set spec.prune: false there, then take it out, before the layer is created",
			live.GetLabels()["kustomize.toolkit.fluxcd.io/namespace"], kustomization)
	}
	return "", ""
}

// ChartOf returns the chart of a HelmRelease and its version, as it names them.
func ChartOf(release *unstructured.Unstructured) (chart, version string) {
	chart, _, _ = unstructured.NestedString(release.Object, "spec", "chart", "spec", "chart")
	version, _, _ = unstructured.NestedString(release.Object, "spec", "chart", "spec", "version")
	if chart == "" {
		kind, _, _ := unstructured.NestedString(release.Object, "spec", "chartRef", "kind")
		name, _, _ := unstructured.NestedString(release.Object, "spec", "chartRef", "name")
		chart = strings.Trim(kind+"/"+name, "/")
	}
	return chart, version
}

// ByIdentity returns live HelmReleases by the Helm release that each stands for.
func ByIdentity(releases []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	found := make(map[string]*unstructured.Unstructured, len(releases))
	for _, release := range releases {
		found[kinds.HelmReleaseIdentity(release)] = release
	}
	return found
}
