// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/applications"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/platforms"
)

// The verbs of changes.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
	Moved   = "moved"
)

// Change is one difference between two bundles.
type Change struct {
	// Layer that it is in; empty for what is of the whole bundle.
	Layer string `json:"layer"`
	// What differs: the layer, an application, an object, an input, or a field.
	What string `json:"what"`
	// Verb is added, removed, changed or moved.
	Verb string `json:"verb"`
	// From and To are what was and will be; what may be secret is left out.
	From string `json:"from"`
	To   string `json:"to"`
}

// Diff returns what differs between two bundles: first what is of the whole, then
// by layer in the order in which they are deployed.
func Diff(w fleet.World, a, b *v1alpha1.ApplicationBundle) []Change {
	d := &diff{World: w, changes: []Change{}}
	d.whole(a.Spec, b.Spec)
	order := platforms.Order(b)
	for _, name := range platforms.Order(a) {
		if bundles.LayerOf(b, name) == nil {
			order = append(order, name)
		}
	}
	moved := movedApps(a, b)
	for _, name := range order {
		d.layer(name, bundles.LayerOf(a, name), bundles.LayerOf(b, name), moved)
	}
	return d.changes
}

// diff is a difference in the making.
type diff struct {
	fleet.World
	changes []Change
}

func (d *diff) add(layer, what, from, to string) {
	switch {
	case from == to:
	case from == "":
		d.changes = append(d.changes, Change{layer, what, Added, "", to})
	case to == "":
		d.changes = append(d.changes, Change{layer, what, Removed, from, ""})
	default:
		d.changes = append(d.changes, Change{layer, what, Changed, from, to})
	}
}

func (d *diff) whole(a, b v1alpha1.ApplicationBundleSpec) {
	d.add("", "family", a.Family, b.Family)
	d.add("", "version", a.Version, b.Version)
	d.add("", "kubeVersion", a.KubeVersion, b.KubeVersion)
	d.add("", "upgradesFrom", strings.Join(a.UpgradesFrom, " or "), strings.Join(b.UpgradesFrom, " or "))
	inputs := func(of []v1alpha1.BundleInput) map[string]string {
		found := map[string]string{}
		for _, input := range of {
			found[input.Name] = describeInput(input)
		}
		return found
	}
	d.values("", "input ", inputs(a.Inputs), inputs(b.Inputs))
}

// both adds what differs between two sets of named texts.
func (d *diff) both(layer, what string, a, b map[string]string) {
	for _, name := range fleet.Union(a, b) {
		d.add(layer, what+name, a[name], b[name])
	}
}

// values adds what differs between two sets of values by their paths, without what
// may be secret.
func (d *diff) values(layer, what string, a, b map[string]string) {
	for _, path := range fleet.Union(a, b) {
		if a[path] == b[path] {
			continue
		}
		d.add(layer, what+path, a[path], b[path])
		last := &d.changes[len(d.changes)-1]
		last.From, last.To = shownAt(path, last.From), shownAt(path, last.To)
	}
}

func describeInput(input v1alpha1.BundleInput) string {
	text := cmp.Or(string(input.Type), string(v1alpha1.InputString))
	if input.Required {
		text += ", required"
	}
	if input.Default != nil {
		text += ", default " + string(input.Default.Raw)
	}
	if len(input.Enum) > 0 {
		text += ", one of " + strings.Join(input.Enum, ", ")
	}
	return text
}

// home is a layer, and the application that is in it.
type home struct {
	layer string
	app   *v1alpha1.BundleApplication
}

func homesOf(bundle *v1alpha1.ApplicationBundle) map[string][]home {
	found := map[string][]home{}
	for i := range bundle.Spec.Layers {
		layer := &bundle.Spec.Layers[i]
		for j := range layer.Applications {
			app := &layer.Applications[j]
			found[app.Name] = append(found[app.Name], home{layer.Name, app})
		}
	}
	return found
}

// movedApps returns, for each application that one layer had and now another has,
// where it was. One that several layers have is not followed.
func movedApps(a, b *v1alpha1.ApplicationBundle) map[string]home {
	before, moved := homesOf(a), map[string]home{}
	for name, after := range homesOf(b) {
		if was := before[name]; len(was) == 1 && len(after) == 1 && was[0].layer != after[0].layer {
			moved[name] = was[0]
		}
	}
	return moved
}

// layer adds what differs in a layer; a or b is nil where there is none.
func (d *diff) layer(name string, a, b *v1alpha1.BundleLayer, moved map[string]home) {
	was, is := "", ""
	if a == nil {
		a = &v1alpha1.BundleLayer{}
	} else {
		was = describeLayer(a)
	}
	if b == nil {
		b = &v1alpha1.BundleLayer{}
	} else {
		is = describeLayer(b)
	}
	if was == "" || is == "" {
		d.add(name, "layer", was, is)
	}
	if was != "" && is != "" {
		d.add(name, "dependsOn", strings.Join(sortedCopy(a.DependsOn), ", "), strings.Join(sortedCopy(b.DependsOn), ", "))
		d.add(name, "onClusterOf", a.On, b.On)
		d.add(name, "when", a.When, b.When)
		d.add(name, "timeout", fleet.JSON(a.Timeout), fleet.JSON(b.Timeout))
		d.add(name, "source", fleet.JSON(a.Source), fleet.JSON(b.Source))
		d.add(name, "remoteCluster", fleet.JSON(a.RemoteCluster), fleet.JSON(b.RemoteCluster))
		d.both(name, "", named(hookTexts(a)), named(hookTexts(b)))
	}
	d.both(name, "object ", objectsOf(a), objectsOf(b))
	d.fields(name, a, b)
	apps := func(of *v1alpha1.BundleLayer) map[string]*v1alpha1.BundleApplication {
		found := map[string]*v1alpha1.BundleApplication{}
		for i := range of.Applications {
			found[of.Applications[i].Name] = &of.Applications[i]
		}
		return found
	}
	before, after := apps(a), apps(b)
	for _, app := range fleet.Union(before, after) {
		d.application(name, app, before[app], after[app], moved)
	}
}

func (d *diff) application(layer, name string, a, b *v1alpha1.BundleApplication, moved map[string]home) {
	from, hasMoved := moved[name]
	switch {
	case b == nil && hasMoved:
		return // told where it is now
	case a == nil && hasMoved:
		d.changes = append(d.changes, Change{layer, "application " + name, Moved, from.layer, layer})
		a = from.app
	case a == nil:
		d.add(layer, "application "+name, "", cmp.Or(b.Application, b.Name)+" "+b.Version)
		return
	case b == nil:
		d.add(layer, "application "+name, cmp.Or(a.Application, a.Name)+" "+a.Version, "")
		return
	}
	what := "application " + name
	d.add(layer, what+" application", cmp.Or(a.Application, a.Name), cmp.Or(b.Application, b.Name))
	d.add(layer, what+" version", a.Version, b.Version)
	chart := func(app *v1alpha1.BundleApplication) string {
		if version := d.VersionOf(*app); version != nil {
			return applications.ChartOf(version)
		}
		return "unknown"
	}
	if was, is := chart(a), chart(b); was != "unknown" && is != "unknown" {
		d.add(layer, what+" chart", was, is)
	}
	d.add(layer, what+" when", a.When, b.When)
	d.add(layer, what+" namespace", a.Namespace, b.Namespace)
	d.add(layer, what+" releaseName", a.ReleaseName, b.ReleaseName)
	d.add(layer, what+" ready", string(a.Ready), string(b.Ready))
	d.add(layer, what+" dependsOn", strings.Join(sortedCopy(a.DependsOn), ", "), strings.Join(sortedCopy(b.DependsOn), ", "))
	d.add(layer, what+" valuesFrom", references(a.ValuesFrom), references(b.ValuesFrom))
	d.values(layer, what+" values.", valuesOf(a), valuesOf(b))
}

// describeLayer says what a layer that is new, or goes, is.
func describeLayer(of *v1alpha1.BundleLayer) string {
	text := cmp.Or(holds(of), fmt.Sprintf("%d applications", len(of.Applications)))
	if len(of.Applications) == 1 {
		text = "1 application"
	}
	if len(of.DependsOn) > 0 {
		text += ", after " + strings.Join(sortedCopy(of.DependsOn), ", ")
	}
	return text
}

// fields adds what differs in objects that both layers have.
func (d *diff) fields(layer string, a, b *v1alpha1.BundleLayer) {
	before, after := manifestsOf(a), manifestsOf(b)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			continue
		}
		if strings.HasPrefix(name, "Secret ") {
			if fmt.Sprint(before[name]) != fmt.Sprint(after[name]) {
				d.changes = append(d.changes, Change{layer, "object " + name, Changed, hidden, hidden})
			}
			continue
		}
		d.values(layer, "object "+name+" ", fleet.Flat(before[name]), fleet.Flat(after[name]))
	}
}

// hookTexts returns the hooks of a layer, each with all that it says.
func hookTexts(of *v1alpha1.BundleLayer) []string {
	var found []string
	for _, one := range of.WaitFor {
		found = append(found, "waitFor "+fleet.JSON(one))
	}
	for _, one := range of.DeleteBefore {
		found = append(found, "deleteBefore "+fleet.JSON(one))
	}
	if of.Job != nil {
		found = append(found, "job "+of.Job.Namespace+"/"+of.Job.Name)
	}
	if of.TeardownAfter != nil {
		found = append(found, "teardownAfter "+cmp.Or(strings.Join(sortedCopy(of.TeardownAfter), ", "), "nothing"))
	}
	return found
}

// named makes texts that are there or not, such as hooks, into what both compares.
func named(texts []string) map[string]string {
	found := map[string]string{}
	for _, text := range texts {
		kind, rest, _ := strings.Cut(text, " ")
		found[kind] = strings.TrimPrefix(found[kind]+"; "+cmp.Or(rest, "yes"), "; ")
	}
	return found
}

func references(of []v1alpha1.ValuesReference) string {
	var texts []string
	for _, one := range of {
		text := one.Kind + " " + one.Name
		if one.ValuesKey != "" {
			text += ":" + one.ValuesKey
		}
		if one.TargetPath != "" {
			text += " at " + one.TargetPath
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
