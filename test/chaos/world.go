// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"
)

// namespace is where all releases live, with the sources.
const namespace = "chaos"

// chartVersions are the charts that releases are made from, each with the
// versions that it may have.
var chartVersions = map[string][]string{
	"configmap": {"1.0.0", "2.0.0"}, "podinfo": {"5.0.0", "6.0.0"}, "deployment": {"1.0.0", "1.1.0"},
}

// content is what one commit says of one release.
type content struct {
	Chart, Version, Value string
}

// values returns the values of the HelmRelease.
func (c content) values() map[string]any {
	switch c.Chart {
	case "deployment":
		return map[string]any{"image": "chaos.invalid/pause:" + c.Value}
	case "podinfo":
		return map[string]any{"message": c.Value}
	default:
		return map[string]any{"data": map[string]any{"value": c.Value}}
	}
}

// manifest returns the HelmRelease. Helm forgets none of its revisions, and
// what fails because something was killed is tried again soon.
func (c content) manifest(name string) string {
	values := map[string]string{
		"deployment": fmt.Sprintf("{image: %q}", "chaos.invalid/pause:"+c.Value),
		"podinfo":    fmt.Sprintf("{message: %q}", c.Value),
		"configmap":  fmt.Sprintf("{data: {value: %q}}", c.Value),
	}
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  timeout: 2m
  maxHistory: 0
  install: {strategy: {name: RetryOnFailure, retryInterval: 2s}}
  upgrade: {strategy: {name: RetryOnFailure, retryInterval: 2s}}
  chart:
    spec: {chart: %s, version: %s, interval: 1h, sourceRef: {kind: HelmRepository, name: charts}}
  values: %s
`, name, namespace, c.Chart, c.Version, values[c.Chart])
}

// layer is one AddonsLayer.
type layer struct {
	Name string
	// Minor is the number that its version has in the middle.
	Minor int
	// Needs are the layers that it depends on; Exact of them by their very
	// version, the others by a range that takes all.
	Needs []string
	Exact bool
	// Releases of the layer, by name.
	Releases map[string]content
	// Settings is the value of a ConfigMap that the layer holds beside them.
	Settings string
	// former is the directory of the version before, until the next commit.
	former map[string]string
}

// version returns the layer's version, and directory the folder that holds it.
func (l *layer) version() string   { return fmt.Sprintf("1.%d.0", l.Minor) }
func (l *layer) directory() string { return path.Join("layers", l.Name, l.version()) }

// settings returns the name of the layer's ConfigMap.
func (l *layer) settings() string { return "settings-" + l.Name }

// files returns what is in the layer's directory.
func (l *layer) files() map[string]string {
	files := map[string]string{path.Join(l.directory(), "settings.yaml"): fmt.Sprintf(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {value: %q}\n", l.settings(), namespace, l.Settings)}
	for name, c := range l.Releases {
		files[path.Join(l.directory(), name+".yaml")] = c.manifest(name)
	}
	return files
}

// life is what the record says of one release from its first commit on.
type life struct {
	// Contents in the order of the commits that made them.
	Contents []content
	// Removed is when it was taken out; zero while it is listed.
	Removed time.Time
	// Moves counts how often it went from one layer to another.
	Moves int
}

// world is the record of what was committed: what everything must be like in
// the end, whatever happened on the way. It knows nothing of the cluster.
type world struct {
	Layers []*layer
	Lives  map[string]*life
	// Commits counts them.
	Commits int
	made    int // releases so far
}

// newWorld returns layers that depend on each other in several ways, with
// releases in each.
func newWorld(random *rand.Rand, releases int) *world {
	w := &world{Lives: map[string]*life{}}
	for _, l := range []*layer{
		{Name: "base"},
		{Name: "network", Needs: []string{"base"}, Exact: true},
		{Name: "storage", Needs: []string{"base"}},
		{Name: "platform", Needs: []string{"network", "storage"}, Exact: true},
		{Name: "apps", Needs: []string{"platform"}},
		{Name: "extras"},
	} {
		l.Releases, l.Settings = map[string]content{}, w.value()
		w.Layers = append(w.Layers, l)
		for range releases {
			w.add(random, l)
		}
	}
	return w
}

func (w *world) layer(name string) *layer {
	return w.Layers[slices.IndexFunc(w.Layers, func(l *layer) bool { return l.Name == name })]
}

// home returns the layer that lists a release; nil where none does.
func (w *world) home(release string) *layer {
	for _, l := range w.Layers {
		if _, listed := l.Releases[release]; listed {
			return l
		}
	}
	return nil
}

// set gives a release a content, which the record remembers.
func (w *world) set(l *layer, name string, c content) {
	l.Releases[name] = c
	if w.Lives[name] == nil {
		w.Lives[name] = &life{}
	}
	w.Lives[name].Contents = append(w.Lives[name].Contents, c)
}

// value is one that no other commit gives.
func (w *world) value() string { return fmt.Sprintf("c%d", w.Commits) }

// add lists a new release. No name is used twice.
func (w *world) add(random *rand.Rand, l *layer) string {
	w.made++
	name := fmt.Sprintf("%s-%d", l.Name, w.made)
	chart := pick(random, slices.Sorted(maps.Keys(chartVersions)))
	w.set(l, name, content{Chart: chart, Version: chartVersions[chart][0], Value: w.value()})
	return name
}

// files returns the whole tree of the repository.
func (w *world) files() map[string]string {
	files := map[string]string{"README.md": fmt.Sprintf("commit %d\n", w.Commits)}
	for _, l := range w.Layers {
		maps.Copy(files, l.files())
		maps.Copy(files, l.former)
	}
	return files
}

// dependsOn returns what the layer's specification says.
func (w *world) dependsOn(l *layer) []string {
	var all []string
	for _, name := range l.Needs {
		if l.Exact {
			name += "@" + w.layer(name).version()
		} else {
			name += "@^1"
		}
		all = append(all, name)
	}
	return all
}

// commit makes one random change and says what it is.
func (w *world) commit(random *rand.Rand, now time.Time) string {
	w.Commits++
	for _, l := range w.Layers {
		l.former = nil
	}
	l := pick(random, w.Layers)
	switch n := random.IntN(100); {
	case n < 40:
		return "change " + w.change(random, l, 1+random.IntN(2))
	case n < 45:
		l.Settings = w.value()
		return "change " + l.settings()
	case n < 55:
		return "change " + w.change(random, l, len(l.Releases)) // the whole layer
	case n < 67:
		return "add " + w.add(random, l) + " to " + l.Name
	case n < 79:
		return w.remove(random, l, now)
	case n < 89:
		return w.move(random, l)
	case n < 97:
		return w.bump(random, l)
	default:
		return "change nothing of the layers"
	}
}

// change gives some releases of a layer another value, and now and then
// another version of their chart.
func (w *world) change(random *rand.Rand, l *layer, count int) string {
	names := slices.Sorted(maps.Keys(l.Releases))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:min(count, len(names))]
	for _, name := range names {
		c := l.Releases[name]
		c.Value = w.value()
		if random.IntN(4) == 0 {
			c.Version = pick(random, chartVersions[c.Chart])
		}
		w.set(l, name, c)
	}
	return strings.Join(names, ", ")
}

// fewest is how many releases a layer keeps, so that no guard stops a commit.
const fewest = 2

func (w *world) remove(random *rand.Rand, l *layer, now time.Time) string {
	if len(l.Releases) <= fewest {
		return "add " + w.add(random, l) + " to " + l.Name
	}
	name := pick(random, slices.Sorted(maps.Keys(l.Releases)))
	delete(l.Releases, name)
	w.Lives[name].Removed = now
	return "remove " + name + " from " + l.Name
}

func (w *world) move(random *rand.Rand, l *layer) string {
	to := pick(random, w.Layers)
	if to == l || len(l.Releases) <= fewest {
		return "change " + w.change(random, l, 1)
	}
	name := pick(random, slices.Sorted(maps.Keys(l.Releases)))
	to.Releases[name] = l.Releases[name]
	delete(l.Releases, name)
	w.Lives[name].Moves++
	return fmt.Sprintf("move %s from %s to %s", name, l.Name, to.Name)
}

// bump gives a layer its next version, in a directory of its own. The one of
// the version before stays for this commit.
func (w *world) bump(random *rand.Rand, l *layer) string {
	l.former = l.files()
	l.Minor++
	changed := w.change(random, l, 1)
	return fmt.Sprintf("move layer %s to %s and change %s", l.Name, l.version(), changed)
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
