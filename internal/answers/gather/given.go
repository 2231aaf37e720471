// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/reserved"
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
	refusals := &placement.Refusals{}
	for _, at := range place.Places(origin) {
		if at.Cluster != "" {
			continue
		}
		seen := refusals.Looked()
		if !placement.IsReserved(at) {
			g.look(ctx, place, origin, at, &seen)
		}
		verdict := place.Judge(origin, at, seen)
		if verdict.Ask {
			g.noteOf([]string{place.Layer}, "whether ServiceAccount %s may get %s is not asked: it is taken to have no right to", place.ReadsAs(), at)
			seen.Unasked = "a plan does not ask"
			verdict = place.Judge(origin, at, seen)
		}
		if verdict.Given {
			return placement.Given{Object: seen.Object, By: verdict.By, Ending: verdict.Ending}
		}
		refusals.Add(verdict)
	}
	return refusals.Given()
}

// look reads what decides whether an object of this cluster is given.
func (g *Plan) look(ctx context.Context, place placement.Place, origin, at objects.ID, seen *placement.Looked) {
	seen.Object = g.read(ctx, []objects.ID{at})[at]
	if at.Kind != "Secret" {
		return
	}
	if claim := g.claimOf(at); claim != nil && claim.Spec.Cluster == place.Cluster.Name && at.Namespace == place.Cluster.Namespace {
		seen.IsBinding = seen.Object != nil && seen.Object.GetLabels()[v1alpha1.ClaimLabel] == string(claim.UID)
	}
	seen.Kept = placement.Referrers{
		Clusters: g.Clusters, Hosts: g.HostClusters, Providers: g.Providers, Layers: g.Planned, NamespaceOf: g.settings.NamespaceFor,
	}.Kept(at)
	if why := g.ownedName(at); seen.Kept == "" && why != "" && !reserved.IsBinding(at) {
		seen.Kept = why
	}
	copied := place.CopyOf(origin)
	seen.Copied = place.WasGiven(origin, g.read(ctx, []objects.ID{copied})[copied])
}

// claimOf returns the claim that a Secret is the binding of, or nil.
func (g *Plan) claimOf(secret objects.ID) *v1alpha1.CapabilityClaim {
	name, is := kinds.ClaimOfBinding(secret.Name)
	at := slices.IndexFunc(g.Claims, func(claim *v1alpha1.CapabilityClaim) bool {
		return is && claim.Namespace == secret.Namespace && claim.Name == name
	})
	if at < 0 {
		return nil
	}
	return g.Claims[at]
}

// ownedName says what the name of an object is kept for by the HostClusters, claims and
// providers that exist; empty for any other name.
func (g *Plan) ownedName(id objects.ID) string {
	for _, owner := range reserved.Owners(id) {
		if g.exists(id, owner.ID) {
			return owner.Keeps
		}
	}
	return ""
}

func (g *Plan) exists(of, owner objects.ID) bool {
	switch owner.Kind {
	case v1alpha1.HostClusterKind:
		return slices.ContainsFunc(g.HostClusters, func(cluster *v1alpha1.HostCluster) bool {
			return cluster.Namespace == owner.Namespace && cluster.Name == owner.Name
		})
	case v1alpha1.CapabilityClaimKind:
		return slices.ContainsFunc(g.Claims, func(claim *v1alpha1.CapabilityClaim) bool {
			return claim.Namespace == owner.Namespace && claim.Name == owner.Name
		})
	case v1alpha1.CapabilityProviderKind:
		return slices.ContainsFunc(g.Providers, func(provider *v1alpha1.CapabilityProvider) bool {
			return slices.Contains(placement.PluginNames(provider), of.Key().String())
		})
	}
	return false
}
