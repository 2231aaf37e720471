// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/versions"
)

// need is a range of Kubernetes versions, and whose it is.
type need struct{ of, wanted string }

// needsOf returns the ranges that the cluster of an installation must be within: that of
// the bundle, and those of the applications on that cluster.
func needsOf(bundle *v1alpha1.ApplicationBundle, entries map[string]*v1alpha1.HelmApplication) []need {
	var needs []need
	if bundle.Spec.KubeVersion != "" {
		needs = append(needs, need{"", bundle.Spec.KubeVersion})
	}
	for _, layer := range bundle.Spec.Layers {
		if layer.On != "" {
			continue // that is a cluster of its own
		}
		for _, application := range layer.Applications {
			app := entries[ApplicationName(application)]
			if app == nil {
				continue
			}
			if version := catalogue.VersionOf(app, application.Version); version != nil && version.KubeVersion != "" {
				needs = append(needs, need{fmt.Sprintf("version %s of HelmApplication %s", version.Version, app.Name), version.KubeVersion})
			}
		}
	}
	return needs
}

// Unfit says why a bundle does not run on a cluster of a version of Kubernetes, such as
// v1.31.2; empty where it does. Of a version that is not known a bundle is unfit that is
// for some versions only.
func Unfit(bundle *v1alpha1.ApplicationBundle, entries map[string]*v1alpha1.HelmApplication, kubernetes string) string {
	for _, one := range needsOf(bundle, entries) {
		fits, err := versions.KubernetesSatisfied(one.wanted, kubernetes)
		if fits || err != nil {
			continue // Check says what is wrong with a range
		}
		is := "is for Kubernetes " + one.wanted
		if one.of != "" {
			is = fmt.Sprintf("has %s, which is for Kubernetes %s", one.of, one.wanted)
		}
		if kubernetes == "" {
			return is + ", and the cluster's version is not known yet"
		}
		return fmt.Sprintf("%s, and the cluster has %s", is, kubernetes)
	}
	return ""
}

// narrower says which application runs on fewer versions of Kubernetes than the bundle
// says, so that the bundle is not chosen for the others; empty where none does. It asks
// for the minor versions that there are and may yet be.
func (o Observation) narrower() string {
	needs := needsOf(o.Bundle, o.Catalogue)
	for minor := range 100 {
		version := fmt.Sprintf("v1.%d.99", minor)
		if fits, err := versions.KubernetesSatisfied(o.Bundle.Spec.KubeVersion, version); err != nil || !fits {
			continue
		}
		for _, one := range needs {
			if fits, err := versions.KubernetesSatisfied(one.wanted, version); one.of != "" && err == nil && !fits {
				return fmt.Sprintf("; %s is for Kubernetes %s alone, so that no Platform brings it to others", one.of, one.wanted)
			}
		}
	}
	return ""
}
