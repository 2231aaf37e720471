// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/answers/applications"
	"github.com/strata-project/strata/internal/answers/bundles"
	"github.com/strata-project/strata/internal/answers/deprovision"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/answers/platforms"
)

// AppRows returns a row for each version that is in use, and one for each
// application of which none is, in the columns NAME, VERSION, NEWEST, TESTED, END OF
// LIFE, BUNDLES, PLATFORMS, CLUSTERS, LAYERS and NOTE.
func AppRows(apps []applications.App, now time.Time) [][]string {
	rows := [][]string{}
	for _, app := range apps {
		inUse := false
		for _, v := range app.Versions {
			if !v.Used() {
				continue
			}
			inUse = true
			rows = append(rows, []string{
				app.Name,
				v.Version,
				app.Newest,
				app.Tested,
				date(v.EndOfLife, now),
				number(v.Bundles),
				few(v.Platforms),
				number(v.Clusters),
				few(v.Layers),
				noteOfVersion(v),
			})
		}
		if !inUse {
			rows = append(rows, []string{app.Name, "", app.Newest, app.Tested, "", "0", "", "0", "", noteOfApp(app)})
		}
	}
	return rows
}

func noteOfApp(a applications.App) string {
	if len(a.Problems) > 0 {
		return a.Problems[0]
	}
	return ""
}

// noteOfVersion says what there is to know of a version.
func noteOfVersion(v applications.Version) string {
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
func VersionRows(app applications.App, now time.Time) [][]string {
	rows := [][]string{}
	for _, v := range app.Versions {
		note := noteOfVersion(v)
		if v.Version == app.Newest {
			note = strings.TrimSuffix("the newest; "+note, "; ")
		}
		rows = append(rows, []string{
			v.Version, v.Chart, v.KubeVersion, date(v.EndOfLife, now), strings.Join(v.DependsOn, ", "), strings.Join(v.Recommends, ", "),
			few(v.Bundles), few(v.Platforms), few(v.Clusters), note,
		})
	}
	return rows
}

// date returns the day of an end of life, with a mark where it is past.
func date(end *metav1.Time, now time.Time) string {
	if end == nil {
		return ""
	}
	text := end.UTC().Format(time.DateOnly)
	if fleet.Ended(end, now) {
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

func number(names []string) string { return fmt.Sprint(len(names)) }

// ChangeRows returns a row for each change, in the columns LAYER, CHANGE, WHAT and
// FROM -> TO.
func ChangeRows(changes []bundles.Change) [][]string {
	rows := [][]string{}
	for _, c := range changes {
		rows = append(rows, []string{c.Layer, c.Verb, c.What, arrow(c)})
	}
	return rows
}

// arrow says what was and will be, each in a bounded number of characters.
func arrow(c bundles.Change) string {
	from, to := short(c.From), short(c.To)
	switch {
	case c.From == "":
		return to
	case c.To == "":
		return from
	}
	return from + " -> " + to
}

// mostShown bounds how much of a value a table shows.
const mostShown = 80

func short(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= mostShown {
		return string(runes)
	}
	return string(runes[:mostShown-3]) + "..."
}

// BundleRows returns a row for each bundle, in the columns NAME, FAMILY, VERSION,
// KUBERNETES, UPGRADES FROM, END OF LIFE, PLATFORMS, CLUSTERS and NOTE.
func BundleRows(all []bundles.Bundle, now time.Time) [][]string {
	rows := [][]string{}
	for _, b := range all {
		onPlatforms, onClusters := fleet.Set{}, fleet.Set{}
		for _, on := range b.Installed {
			onClusters.Add(on.Cluster)
			if on.Platform != "" {
				onPlatforms.Add(on.Platform)
			}
		}
		rows = append(rows, []string{
			b.Name, b.Family, b.Version, b.KubeVersion, strings.Join(b.UpgradesFrom, " or "), date(b.EndOfLife, now),
			few(onPlatforms.Sorted()), number(onClusters.Sorted()), b.Note(),
		})
	}
	return rows
}

// BundleLayerRows returns a row for each application, and for each layer without, in the
// columns LAYER, AFTER, APPLICATION, VERSION, CHART and NOTE. What a layer has in
// common is said in the first of its rows.
func BundleLayerRows(b bundles.Bundle) [][]string {
	rows := [][]string{}
	for _, layer := range b.Layers {
		after := strings.Join(layer.DependsOn, ", ")
		if layer.On != "" {
			after = strings.TrimPrefix(after+", on the cluster of "+layer.On, ", ")
		}
		var notes []string
		if layer.When != "" {
			notes = append(notes, "when "+layer.When)
		}
		about := strings.Join(append(notes, layer.Hooks...), "; ")
		if len(layer.Applications) == 0 {
			rows = append(rows, []string{layer.Name, after, layer.Holds, "", "", about})
		}
		for i, app := range layer.Applications {
			name := app.Name
			if app.Application != app.Name {
				name += " (" + app.Application + ")"
			}
			note := app.Note
			if len(app.DependsOn) > 0 {
				note = strings.TrimPrefix(note+"; after "+strings.Join(app.DependsOn, ", "), "; ")
			}
			if i == 0 && about != "" {
				note = strings.TrimSuffix(about+"; "+note, "; ")
			}
			rows = append(rows, []string{layer.Name, after, name, app.Version, app.Chart, note})
		}
	}
	return rows
}

// PlatformRows returns a row for each Platform, in the columns NAME, BUNDLE,
// VERSION, READY, CLUSTERS, FAILED, AWAY, STAGE and WHY. CLUSTERS counts those that
// are up to date, of all.
func PlatformRows(all []platforms.Standing) [][]string {
	rows := [][]string{}
	for _, s := range all {
		at := ""
		for _, stage := range s.Stages {
			if stage.State == "Active" || stage.State == "Halted" {
				at = stage.Name
			}
		}
		rows = append(rows, []string{
			s.Name, s.Family, s.Target(), s.Ready, fmt.Sprintf("%d/%d", s.Counts.Ready, s.Counts.Total),
			fmt.Sprint(s.Counts.Failed), fmt.Sprint(s.Counts.Unreachable), at, s.Why,
		})
	}
	return rows
}

// StageRows returns a row for each stage, in the columns STAGE, STATE, CLUSTERS,
// DONE, MOVING, FAILED, WAITING, AWAY, SOAK and WAITS FOR.
func StageRows(stages []platforms.Stage) [][]string {
	rows := [][]string{}
	for _, stage := range stages {
		soak := ""
		if stage.SoakLeft > 0 {
			soak = (time.Duration(stage.SoakLeft) * time.Second).String() + " left"
		}
		rows = append(rows, []string{
			stage.Name, stage.State, fmt.Sprint(stage.Total), fmt.Sprint(stage.Done), fmt.Sprint(stage.Moving), fmt.Sprint(stage.Failed),
			fmt.Sprint(stage.Waiting), fmt.Sprint(stage.Unreachable), soak, stage.Waits,
		})
	}
	return rows
}

// ClusterRows returns a row for each cluster, in the columns CLUSTER, STAGE, STATE,
// VERSIONS, LAYERS and WHY.
func ClusterRows(all []platforms.Cluster) [][]string {
	rows := [][]string{}
	for _, c := range all {
		versions := strings.Join(append([]string{cmp.Or(c.Version, "(none)")}, c.Hops...), " -> ")
		rows = append(rows, []string{c.Name, c.Stage, c.State, versions, fmt.Sprintf("%d/%d", c.Deployed, c.Layers), c.Why})
	}
	return rows
}

// PlatformPlanRows returns a row for each layer, in the columns ORDER, ACTION, LAYER,
// CLUSTER, VERSION, AFTER and NOTE.
func PlatformPlanRows(p platforms.Plan) [][]string {
	rows := [][]string{}
	for i, c := range p.Layers {
		version := c.From
		if c.To != "" {
			version = cmp.Or(c.From, "(none)") + " -> " + c.To
		}
		if c.From == c.To {
			version = c.To
		}
		note := c.Waits
		if len(c.Fields) > 0 {
			note = strings.TrimSuffix(strings.Join(c.Fields, ", ")+"; "+note, "; ")
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), c.Verb, c.Name, c.Cluster, version, strings.Join(c.After, ", "), note})
	}
	return rows
}

// LeavingRows returns a row for each layer, in the columns TURN, LAYER, CLUSTER,
// VERSION, RELEASES and AFTER.
func LeavingRows(all []deprovision.Leaving) [][]string {
	rows := [][]string{}
	for _, l := range all {
		turn := "-"
		if l.Turn > 0 {
			turn = fmt.Sprint(l.Turn)
		}
		rows = append(rows, []string{turn, l.Name, l.Cluster, l.Version, few(l.Releases), few(l.After)})
	}
	return rows
}
