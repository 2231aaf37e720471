// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/rollout"
)

// family are the versions of one bundle.
type family struct {
	name string
	// releases are the versions as the rules of roll-outs see them, each once.
	releases []rollout.Bundle
	// at holds the bundles by their versions without a v. Of a version that two
	// bundles have there is none.
	at map[string]*v1alpha1.ApplicationBundle
	// twice says of such versions which bundles these are.
	twice map[string]string
}

// familyOf returns the versions of a family, without those made for platforms.
func familyOf(o Observation, name string) family {
	f := family{name: name, at: map[string]*v1alpha1.ApplicationBundle{}, twice: map[string]string{}}
	var members []*v1alpha1.ApplicationBundle
	for _, bundle := range o.Bundles {
		if _, made := bundle.Labels[v1alpha1.PlatformLabel]; !made && bundle.Spec.Family == name {
			members = append(members, bundle)
		}
	}
	slices.SortFunc(members, func(a, b *v1alpha1.ApplicationBundle) int { return cmp.Compare(a.Name, b.Name) })
	first := map[string]*v1alpha1.ApplicationBundle{}
	for _, bundle := range members {
		version := catalogue.Plain(bundle.Spec.Version)
		if other := first[version]; other != nil {
			f.twice[version] = fmt.Sprintf("ApplicationBundles %s and %s both are version %s of %s", other.Name, bundle.Name, version, name)
			delete(f.at, version)
			continue
		}
		first[version], f.at[version] = bundle, bundle
	}
	for _, bundle := range members {
		version := catalogue.Plain(bundle.Spec.Version)
		if first[version] == bundle {
			f.releases = append(f.releases, release(o, bundle, f.twice[version]))
		}
	}
	return f
}

func release(o Observation, bundle *v1alpha1.ApplicationBundle, wrong string) rollout.Bundle {
	r := rollout.Bundle{
		Version: bundle.Spec.Version, Preview: bundle.Spec.Preview, Withdrawn: bundle.Spec.Withdrawn != "",
		UpgradesFrom: bundle.Spec.UpgradesFrom, Uninstallable: cmp.Or(wrong, unusable(o, bundle)),
	}
	if end := bundle.Spec.EndOfLife; end != nil {
		r.EndOfLife = end.Time
	}
	return r
}

// unusable says why a bundle is not installed anew; empty where it may be.
func unusable(o Observation, bundle *v1alpha1.ApplicationBundle) string {
	if bundle.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	if problems := bundles.Check(bundle, o.Catalogue); len(problems) > 0 {
		return problems[0]
	}
	return bundles.Changed(bundle)
}

// unfit says why a version does not run on a cluster of a version of Kubernetes; empty
// where it does.
func (f family) unfit(o Observation, version, kubernetes string) string {
	bundle := f.find(version)
	if bundle == nil {
		return ""
	}
	return bundles.Unfit(bundle, o.Catalogue, kubernetes)
}

// on returns the versions as they are for clusters of a version of Kubernetes.
func (f family) on(o Observation, kubernetes string) []rollout.Bundle {
	releases := slices.Clone(f.releases)
	for i := range releases {
		releases[i].Unfit = f.unfit(o, releases[i].Version, kubernetes)
	}
	return releases
}

// find returns the bundle of a version; nil where there is none, or two.
func (f family) find(version string) *v1alpha1.ApplicationBundle {
	return f.at[catalogue.Plain(version)]
}

// missing says why find finds nothing.
func (f family) missing(version string) string {
	return cmp.Or(f.twice[catalogue.Plain(version)], fmt.Sprintf("there is no bundle of version %s", version))
}
