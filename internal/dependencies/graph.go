// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependencies

import (
	"slices"
	"strings"
)

// Names returns the names of the layers that a layer depends on, each
// once, in the order in which they are listed. A dependency whose version
// cannot be understood counts like any other: the layer needs that layer, at
// whatever version.
func Names(dependsOn []string) []string {
	names := make([]string, 0, len(dependsOn))
	for _, text := range dependsOn {
		name, _, _ := strings.Cut(text, "@")
		if isLayerName(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Cycle returns the path from a layer back to itself along its dependencies,
// beginning and ending with its name, or nil where there is none. The path is
// a shortest one. next returns the names a layer depends on; it is asked once
// for each layer that can be reached.
func Cycle(name string, next func(string) []string) []string {
	from := map[string]string{}
	queue := []string{name}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		for _, dependency := range next(current) {
			if dependency == name {
				path := []string{name}
				for step := current; step != name; step = from[step] {
					path = append(path, step)
				}
				path = append(path, name)
				slices.Reverse(path)
				return path
			}
			if _, seen := from[dependency]; !seen {
				from[dependency] = current
				queue = append(queue, dependency)
			}
		}
	}
	return nil
}

// Graph says of layers by name which layers each depends on.
type Graph map[string][]string

// Circle returns the layers that lie on a cycle with a layer, itself among
// them, sorted; nil where it lies on none. Each of them depends on every other,
// directly or not.
func (g Graph) Circle(name string) []string {
	dependants := map[string][]string{}
	reached := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		for _, dependency := range g[queue[0]] {
			dependants[dependency] = append(dependants[dependency], queue[0])
			if !reached[dependency] {
				reached[dependency] = true
				queue = append(queue, dependency)
			}
		}
	}
	if len(dependants[name]) == 0 {
		return nil
	}
	// Whoever reaches the layer and is reached from it, is on a cycle with it.
	members := map[string]bool{name: true}
	circle := []string{name}
	for i := 0; i < len(circle); i++ {
		for _, dependant := range dependants[circle[i]] {
			if !members[dependant] {
				members[dependant] = true
				circle = append(circle, dependant)
			}
		}
	}
	slices.Sort(circle)
	return circle
}
