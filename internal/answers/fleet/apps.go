// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet says in values and words what there is to install, what is
// installed where, and what becomes of it: applications, bundles, Platforms and
// clusters. It reads no clock, no cluster and no file; the rules are those of the
// controller.
package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
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
	Versions []AppVersion `json:"versions"`
	// Problems of the entry, in the controller's words.
	Problems []string `json:"problems"`
}

// AppVersion is a version of an application.
type AppVersion struct {
	Version         string       `json:"version"`
	Chart           string       `json:"chart"`
	Kubernetes      string       `json:"kubernetes"`
	Preview         bool         `json:"preview"`
	Withdrawn       string       `json:"withdrawn"`
	EndOfLife       *metav1.Time `json:"endOfLife"`
	Ended           bool         `json:"ended"`
	Dependencies    []string     `json:"dependencies"`
	Recommendations []string     `json:"recommendations"`
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
func (v AppVersion) Used() bool { return len(v.Layers) > 0 }

// Apps returns the applications of a catalogue, by name.
func Apps(w World) []App {
	uses := w.uses()
	tested := w.tested()
	apps := make([]App, 0, len(w.Applications))
	for _, entry := range w.Applications {
		decision := catalogue.Decide(catalogue.Observation{Now: w.Now, Application: entry, Catalogue: w.catalogue()})
		app := App{
			Name: entry.Name, Description: entry.Spec.Description, Newest: decision.Status.Latest, Tested: tested[entry.Name],
			Problems: append([]string{}, decision.Status.Problems...), Versions: []AppVersion{},
		}
		for i := range entry.Spec.Versions {
			app.Versions = append(app.Versions, w.appVersion(&entry.Spec.Versions[i]))
		}
		for version := range uses[entry.Name] {
			if catalogue.VersionOf(entry, version) == nil {
				app.Versions = append(app.Versions, AppVersion{Version: version, Missing: true, Dependencies: []string{}, Recommendations: []string{}})
			}
		}
		slices.SortFunc(app.Versions, func(a, b AppVersion) int {
			return cmp.Or(compare(b.Version, a.Version), cmp.Compare(a.Version, b.Version))
		})
		for i := range app.Versions {
			v := &app.Versions[i]
			use := uses[entry.Name][catalogue.Plain(v.Version)]
			v.Bundles, v.Platforms, v.Clusters, v.Layers = use.bundles.sorted(), use.platforms.sorted(), use.clusters.sorted(), use.layers.sorted()
			v.Outdated = outdated(*v, app.Newest)
		}
		apps = append(apps, app)
	}
	slices.SortFunc(apps, func(a, b App) int { return cmp.Compare(a.Name, b.Name) })
	return apps
}

func (w World) appVersion(of *v1alpha1.HelmApplicationVersion) AppVersion {
	return AppVersion{
		Version: of.Version, Chart: ChartOf(of), Kubernetes: of.Kubernetes, Preview: of.Preview, Withdrawn: of.Withdrawn, EndOfLife: of.EndOfLife,
		Ended: ended(of.EndOfLife, w.Now), Dependencies: requirements(of.Dependencies), Recommendations: requirements(of.Recommendations),
	}
}

// outdated says why another version should take the place of one.
func outdated(v AppVersion, newest string) string {
	switch {
	case v.Missing:
		return "is not in the catalogue any more"
	case v.Withdrawn != "":
		return "is withdrawn: " + v.Withdrawn
	case v.Ended:
		return "is past its end of life"
	case newest != "" && compare(v.Version, newest) < 0:
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
		app.Versions = slices.DeleteFunc(slices.Clone(app.Versions), func(v AppVersion) bool {
			soon := f.EndOfLife > 0 && v.EndOfLife != nil && !v.EndOfLife.After(now.Add(f.EndOfLife))
			return !v.Used() || !soon && (!f.Outdated || v.Outdated == "")
		})
		if len(app.Versions) > 0 {
			found = append(found, app)
		}
	}
	return found
}

// AppRows returns a row for each version that is in use, and one for each
// application of which none is, in the columns NAME, VERSION, NEWEST, TESTED, END OF
// LIFE, BUNDLES, PLATFORMS, CLUSTERS, LAYERS and NOTE.
func AppRows(apps []App, now time.Time) [][]string {
	rows := [][]string{}
	for _, app := range apps {
		inUse := false
		for _, v := range app.Versions {
			if !v.Used() {
				continue
			}
			inUse = true
			rows = append(rows, []string{
				app.Name, v.Version, app.Newest, app.Tested, date(v.EndOfLife, now), count(v.Bundles), few(v.Platforms), count(v.Clusters), few(v.Layers), v.note(),
			})
		}
		if !inUse {
			rows = append(rows, []string{app.Name, "", app.Newest, app.Tested, "", "0", "", "0", "", app.note()})
		}
	}
	return rows
}

func (a App) note() string {
	if len(a.Problems) > 0 {
		return a.Problems[0]
	}
	return ""
}

// note says what there is to know of a version.
func (v AppVersion) note() string {
	var notes []string
	if v.Preview {
		notes = append(notes, "preview")
	}
	if v.Outdated != "" {
		notes = append(notes, v.Outdated)
	}
	return strings.Join(notes, "; ")
}

// VersionRows returns a row for each version of an application, in the columns
// VERSION, CHART, KUBERNETES, END OF LIFE, NEEDS, RECOMMENDS, BUNDLES, PLATFORMS,
// CLUSTERS and NOTE.
func VersionRows(app App, now time.Time) [][]string {
	rows := [][]string{}
	for _, v := range app.Versions {
		note := v.note()
		if v.Version == app.Newest {
			note = strings.TrimSuffix("the newest; "+note, "; ")
		}
		rows = append(rows, []string{
			v.Version, v.Chart, v.Kubernetes, date(v.EndOfLife, now), strings.Join(v.Dependencies, ", "), strings.Join(v.Recommendations, ", "),
			few(v.Bundles), few(v.Platforms), few(v.Clusters), note,
		})
	}
	return rows
}

// compare orders versions, the older first. One that cannot be understood is older
// than all others.
func compare(a, b string) int {
	left, errLeft := semver.NewVersion(a)
	right, errRight := semver.NewVersion(b)
	switch {
	case errLeft != nil && errRight != nil:
		return cmp.Compare(a, b)
	case errLeft != nil:
		return -1
	case errRight != nil:
		return 1
	}
	return left.Compare(right)
}

func ended(end *metav1.Time, now time.Time) bool { return end != nil && !now.Before(end.Time) }

// date returns the day of an end of life, with a mark where it is past.
func date(end *metav1.Time, now time.Time) string {
	if end == nil {
		return ""
	}
	text := end.UTC().Format(time.DateOnly)
	if ended(end, now) {
		text += " (past)"
	}
	return text
}

// mostNamed bounds how many names a cell has.
const mostNamed = 3

// few names the first of some names, and counts the others.
func few(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}

func count(names []string) string { return fmt.Sprint(len(names)) }
