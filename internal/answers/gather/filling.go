// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/placement"
)

// fillingRequest gathers what a layer of a bundle is filled from.
func (g *Plan) fillingRequest(ctx context.Context, layer *v1alpha1.AddonsLayer, bundle *v1alpha1.ApplicationBundle) bundles.Request {
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
	for _, sought := range request.Sought() {
		if request.Objects == nil {
			request.Objects = map[string]bundles.Seen{}
		}
		request.Objects[sought.As] = g.seen(ctx, sought, g.settings.AccountFor(layer).Name != "")
	}
	return request
}

// seen reads an object that templates read, as whoever asks.
func (g *Plan) seen(ctx context.Context, sought bundles.Sought, hasAccount bool) bundles.Seen {
	if refused := sought.Refusal(hasAccount); refused != "" {
		return bundles.Seen{Refused: refused}
	}
	if g.isOffline() || sought.Cluster.Name != "" {
		return bundles.Seen{Waits: "a plan does not read it there"}
	}
	id, _, err := sought.ID()
	if err != nil {
		return bundles.Seen{Waits: err.Error()}
	}
	live, err := g.get(ctx, id)
	if err != nil && !apierrors.IsNotFound(err) {
		return bundles.Seen{Waits: fmt.Sprintf("it cannot be read: %v", err)}
	}
	return sought.See(live, false)
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
