// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
)

// given judges what releases of another cluster read beside them, by what is on this
// cluster. It notes what that leaves open.
func (g *Plan) given(ctx context.Context, place placement.Place, origins []objects.ID) map[objects.ID]placement.Given {
	found := map[objects.ID]placement.Given{}
	if g.isOffline() {
		return found
	}
	for _, origin := range origins {
		given := g.givenOne(ctx, place, origin)
		if given.Object == nil {
			g.noteOf([]string{place.Layer}, "whether %s is on RemoteCluster %s is not looked up", origin, placement.ClusterName(place.Cluster))
		}
		if given != (placement.Given{}) {
			found[origin] = given
		}
	}
	return found
}

func (g *Plan) givenOne(ctx context.Context, place placement.Place, origin objects.ID) placement.Given {
	var withheld string
	for _, at := range place.Places(origin) {
		if at.Cluster != "" {
			continue
		}
		var seen placement.Looked
		if !placement.IsReserved(at) {
			seen.Object = g.read(ctx, []objects.ID{at})[at]
			seen.IsKubeConfig = slices.ContainsFunc(g.Clusters, func(cluster *v1alpha1.RemoteCluster) bool {
				return placement.KubeConfigSecret(cluster) == at
			})
		}
		verdict := place.Judge(origin, at, seen)
		if verdict.Ask {
			g.noteOf([]string{place.Layer}, "whether ServiceAccount %s may get %s is not asked: it is taken to have no right to", place.ReadsAs(), at)
			seen.Unasked = "a plan does not ask"
			verdict = place.Judge(origin, at, seen)
		}
		if verdict.Given {
			return placement.Given{Object: seen.Object}
		}
		if withheld == "" {
			withheld = verdict.Withheld
		}
	}
	return placement.Given{Withheld: withheld}
}
