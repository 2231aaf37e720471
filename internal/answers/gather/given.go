// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// given judges what releases of another cluster read beside them, by what is on this
// cluster. It notes what that leaves open.
func (g *Plan) given(ctx context.Context, place layers.Place, origins []objects.ID) map[objects.ID]layers.Given {
	found := map[objects.ID]layers.Given{}
	if g.isOffline() {
		return found
	}
	for _, origin := range origins {
		given := g.givenOne(ctx, place, origin)
		if given.Object == nil {
			g.note("whether %s is on RemoteCluster %s is not looked up", origin, layers.ClusterName(place.Cluster))
		}
		if given != (layers.Given{}) {
			found[origin] = given
		}
	}
	return found
}

func (g *Plan) givenOne(ctx context.Context, place layers.Place, origin objects.ID) layers.Given {
	var withheld string
	for _, at := range place.Places(origin) {
		if at.Cluster != "" {
			continue
		}
		var seen layers.Looked
		if !layers.IsReserved(at) {
			seen.Object = g.read(ctx, []objects.ID{at})[at]
			seen.IsKubeConfig = slices.ContainsFunc(g.Clusters, func(cluster *v1alpha1.RemoteCluster) bool {
				return layers.KubeConfigSecret(cluster) == at
			})
		}
		verdict := place.Judge(origin, at, seen)
		if verdict.Ask {
			g.note("whether ServiceAccount %s may get %s is not asked: it is taken to have no right to", place.ReadsAs(), at)
			seen.Unasked = "a plan does not ask"
			verdict = place.Judge(origin, at, seen)
		}
		if verdict.Given {
			return layers.Given{Object: seen.Object}
		}
		if withheld == "" {
			withheld = verdict.Withheld
		}
	}
	return layers.Given{Withheld: withheld}
}
