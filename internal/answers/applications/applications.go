// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applications says which applications there are in which versions, and who
// has which of them. It may import fleet, and the rules of the controller; it reads
// nothing but what it is given.
package applications

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/catalogue"
)

// App is an application of the catalogue.
type App struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Newest is the newest version that anybody may be given; empty for none.
	Newest string `json:"newest"`
	// Tested is the newest version in a bundle that may be installed; empty for none.
	Tested string `json:"tested"`
	// Versions of the catalogue, the newest first, and those that are used although
	// the catalogue has them no more.
	Versions []Version `json:"versions"`
	// Problems of the entry, in the controller's words.
	Problems []string `json:"problems"`
}

// Version is a version of an application.
type Version struct {
	Version     string       `json:"version"`
	Chart       string       `json:"chart"`
	KubeVersion string       `json:"kubeVersion"`
	Preview     bool         `json:"preview"`
	Withdrawn   string       `json:"withdrawn"`
	EndOfLife   *metav1.Time `json:"endOfLife"`
	Ended       bool         `json:"ended"`
	DependsOn   []string     `json:"dependsOn"`
	Recommends  []string     `json:"recommends"`
	// Missing is true where the catalogue does not have the version.
	Missing bool `json:"missing"`
	// Outdated says why who has it should have another; empty where it is fine.
	Outdated string `json:"outdated"`
	// Bundles that have it, Platforms and clusters that these are installed on, and
	// the layers there, each sorted. A cluster without a name is the one that Strata
	// runs in, and is called (home).
	Bundles   []string `json:"bundles"`
	Platforms []string `json:"platforms"`
	Clusters  []string `json:"clusters"`
	Layers    []string `json:"layers"`
}

// Used tells whether the version is on some cluster.
func (v Version) Used() bool { return len(v.Layers) > 0 }

// Of returns the applications of a catalogue, by name.
func Of(w fleet.World) []App {
	uses := usesOf(w)
	tested := testedIn(w)
	apps := make([]App, 0, len(w.Applications))
	for _, entry := range w.Applications {
		decision := catalogue.Decide(catalogue.Observation{Now: w.Now, Application: entry, Catalogue: w.Catalogue()})
		app := App{
			Name: entry.Name, Description: entry.Spec.Description, Newest: decision.Status.Latest, Tested: tested[entry.Name],
			Problems: append([]string{}, decision.Status.Problems...), Versions: []Version{},
		}
		for i := range entry.Spec.Versions {
			app.Versions = append(app.Versions, versionOf(w, &entry.Spec.Versions[i]))
		}
		for version := range uses[entry.Name] {
			if catalogue.VersionOf(entry, version) == nil {
				app.Versions = append(app.Versions, Version{Version: version, Missing: true, DependsOn: []string{}, Recommends: []string{}})
			}
		}
		slices.SortFunc(app.Versions, func(a, b Version) int {
			return cmp.Or(fleet.Compare(b.Version, a.Version), cmp.Compare(a.Version, b.Version))
		})
		for i := range app.Versions {
			v := &app.Versions[i]
			use := uses[entry.Name][catalogue.Plain(v.Version)]
			v.Bundles, v.Platforms, v.Clusters, v.Layers = use.bundles.Sorted(), use.platforms.Sorted(), use.clusters.Sorted(), use.layers.Sorted()
			v.Outdated = v.outdated(app.Newest)
		}
		apps = append(apps, app)
	}
	slices.SortFunc(apps, func(a, b App) int { return cmp.Compare(a.Name, b.Name) })
	return apps
}

func versionOf(w fleet.World, of *v1alpha1.HelmApplicationVersion) Version {
	return Version{
		Version: of.Version, Chart: ChartOf(of), KubeVersion: of.KubeVersion, Preview: of.Preview, Withdrawn: of.Withdrawn, EndOfLife: of.EndOfLife,
		Ended: fleet.Ended(of.EndOfLife, w.Now), DependsOn: requirements(of.DependsOn), Recommends: requirements(of.Recommends),
	}
}

// outdated says why another version should take the place of one.
func (v Version) outdated(newest string) string {
	switch {
	case v.Missing:
		return "is not in the catalogue any more"
	case v.Withdrawn != "":
		return "is withdrawn: " + v.Withdrawn
	case v.Ended:
		return "is past its end of life"
	case newest != "" && fleet.Compare(v.Version, newest) < 0:
		return newest + " is newer"
	}
	return ""
}

// ChartOf names the chart of a version of an application, with the chart's own
// version.
func ChartOf(version *v1alpha1.HelmApplicationVersion) string {
	chart := version.Chart
	switch {
	case chart.Repository != nil:
		return chart.Repository.Chart + " " + cmp.Or(chart.Repository.Version, version.Version)
	case chart.OCI != nil:
		return chart.OCI.URL + ":" + cmp.Or(chart.OCI.Tag, version.Version)
	case chart.Git != nil:
		return strings.TrimSuffix(chart.Git.URL, "/") + "//" + chart.Git.Path + "@" + cmp.Or(chart.Git.Tag, chart.Git.Commit)
	}
	return ""
}

func requirements(of []v1alpha1.ApplicationRequirement) []string {
	texts := make([]string, 0, len(of))
	for _, one := range of {
		texts = append(texts, strings.TrimSpace(one.Name+" "+one.Range))
	}
	slices.Sort(texts)
	return texts
}

// Filter is which versions of applications somebody asks for.
type Filter struct {
	// Outdated shows those in use that should be others.
	Outdated bool
	// EndOfLife shows those in use whose life ends within this time, or has; 0 for
	// all.
	EndOfLife time.Duration
}

// Some tells whether anything is asked for that nobody wants to have.
func (f Filter) Some() bool { return f.Outdated || f.EndOfLife > 0 }

// Filtered returns the applications with those of their versions that are in use
// and that a filter shows. Without one it returns all.
func Filtered(apps []App, f Filter, now time.Time) []App {
	if !f.Some() {
		return apps
	}
	found := []App{}
	for _, app := range apps {
		app.Versions = slices.DeleteFunc(slices.Clone(app.Versions), func(v Version) bool {
			soon := f.EndOfLife > 0 && v.EndOfLife != nil && !v.EndOfLife.After(now.Add(f.EndOfLife))
			return !v.Used() || !soon && (!f.Outdated || v.Outdated == "")
		})
		if len(app.Versions) > 0 {
			found = append(found, app)
		}
	}
	return found
}

// Note says what there is to know of a version of the catalogue for who has it; empty
// where it is fine.
func Note(w fleet.World, of *v1alpha1.HelmApplicationVersion) string {
	return versionOf(w, of).outdated("")
}
