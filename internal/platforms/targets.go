// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/placement"
)

// Targets returns the clusters that the platform is installed on, sorted; the zero
// name is the cluster that Strata runs in. A cluster that is named need not exist.
func Targets(o Observation) []types.NamespacedName {
	targets, _ := targetsOf(o)
	return targets
}

// targetsOf returns the clusters, and what is wrong with how they are selected.
func targetsOf(o Observation) (targets []types.NamespacedName, problem string) {
	spec := o.Platform.Spec
	if len(spec.Clusters) == 0 && spec.ClusterSelector == nil {
		return []types.NamespacedName{{}}, ""
	}
	for _, ref := range spec.Clusters {
		targets = append(targets, types.NamespacedName{Namespace: cmp.Or(ref.Namespace, o.Namespace), Name: ref.Name})
	}
	if selected := spec.ClusterSelector; selected != nil {
		selector, err := metav1.LabelSelectorAsSelector(&selected.LabelSelector)
		if err != nil {
			return nil, fmt.Sprintf("spec.clusterSelector: %v", err)
		}
		for name, cluster := range o.Clusters {
			if (selected.Namespace == "" || selected.Namespace == name.Namespace) && selector.Matches(labels.Set(cluster.Labels)) {
				targets = append(targets, name)
			}
		}
	}
	slices.SortFunc(targets, compareNames)
	return slices.Compact(targets), ""
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// stageOf returns the index of the first stage that selects a cluster, -1 for none.
// The cluster that Strata runs in has no labels.
func stageOf(o Observation, selectors []labels.Selector, cluster types.NamespacedName) int {
	set := labelsOn(o, cluster)
	return slices.IndexFunc(selectors, func(s labels.Selector) bool { return s.Matches(set) })
}

// labelsOn returns the labels of a cluster.
func labelsOn(o Observation, cluster types.NamespacedName) labels.Set {
	if remote := o.Clusters[cluster]; remote != nil {
		return remote.Labels
	}
	return nil
}

// factsOf returns what is known of a cluster.
func factsOf(o Observation, cluster types.NamespacedName) bundles.Cluster {
	facts := bundles.Cluster{Name: cluster}
	if cluster.Name == "" {
		facts.Version = o.Version
		return facts
	}
	if remote := o.Clusters[cluster]; remote != nil {
		return bundles.FactsOf(remote)
	}
	return facts
}

// home names the cluster that Strata runs in where a name is needed. No cluster can
// be named so.
const home = "(home)"

// nameOf returns how messages name a cluster.
func nameOf(cluster types.NamespacedName) string { return cmp.Or(placement.ClusterName(cluster), home) }
