// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/placement"
)

// fillingRequest gathers what a layer of a bundle is filled from.
func (g *Plan) fillingRequest(layer *v1alpha1.AddonsLayer, bundle *v1alpha1.ApplicationBundle) bundles.Request {
	request := bundles.RequestOf(layer, bundle)
	named := bundles.Applications(request.Bundle, request.Path)
	for _, app := range g.Applications {
		if slices.Contains(named, app.Name) {
			request.Applications[app.Name] = app
		}
	}
	request.Cluster = g.factsOf(placement.Of(layer, g.settings.Namespace))
	request.Clusters = map[string]bundles.Cluster{}
	for of, name := range request.ClustersFor() {
		request.Clusters[of] = g.factsOf(name)
	}
	return request
}

// factsOf returns what templates may use of a cluster.
func (g *Plan) factsOf(name types.NamespacedName) bundles.Cluster {
	if name.Name == "" {
		return bundles.Cluster{Version: g.Version}
	}
	if cluster := g.Cluster(name); cluster != nil {
		return bundles.FactsOf(cluster)
	}
	return bundles.Cluster{Name: name}
}
