// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Held is what a manager has of an object beside what is applied.
type Held struct {
	Manager string `json:"manager"`
	// Fields are paths such as spec.replicas. What is below one of them is not listed.
	Fields []string `json:"fields"`
	// Goes is true for fields that go with the next change of the object in git, because
	// applying takes them back; what stays is not.
	Goes bool `json:"goes,omitempty"`
}

// Beside returns which managers have which fields that are not Strata's: by a rule for the
// object, those that stay, and after them those of the same manager that applying takes back.
// Metadata and status do not count, nor do some managers: marks of Strata's own. It is sorted.
func (r Rule) Beside(obj metav1.Object, marks ...string) []Held {
	ours, byManager, going := &fieldpath.Set{}, map[string]*fieldpath.Set{}, map[string]*fieldpath.Set{}
	var managers []string
	for _, entry := range obj.GetManagedFields() {
		set, err := Of(entry)
		switch {
		case err != nil || entry.Subresource == "status" || slices.Contains(marks, entry.Manager):
		case entry.Manager == Manager:
			ours = ours.Union(set)
		default:
			if byManager[entry.Manager] == nil {
				byManager[entry.Manager], going[entry.Manager] = &fieldpath.Set{}, &fieldpath.Set{}
				managers = append(managers, entry.Manager)
			}
			taken := r.Taken(entry, set)
			byManager[entry.Manager] = byManager[entry.Manager].Union(set.Difference(taken))
			going[entry.Manager] = going[entry.Manager].Union(taken)
		}
	}
	slices.Sort(managers)
	var found []Held
	for _, manager := range managers {
		if paths := pathsOf(byManager[manager].Difference(ours)); len(paths) > 0 {
			found = append(found, Held{Manager: manager, Fields: paths})
		}
		if paths := pathsOf(going[manager].Difference(ours)); len(paths) > 0 {
			found = append(found, Held{Manager: manager, Fields: paths, Goes: true})
		}
	}
	return found
}

// pathsOf writes the fields of a set, sorted, without what is below another one of them.
func pathsOf(set *fieldpath.Set) []string {
	var paths []string
	set.Iterate(func(path fieldpath.Path) {
		if top := nameOf(path, 0); top == "metadata" || top == "status" || top == "apiVersion" || top == "kind" {
			return
		}
		paths = append(paths, strings.TrimPrefix(path.String(), "."))
	})
	slices.Sort(paths)
	var kept []string
	for _, path := range paths {
		if len(kept) > 0 {
			rest, below := strings.CutPrefix(path, kept[len(kept)-1])
			if below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				continue
			}
		}
		kept = append(kept, path)
	}
	return kept
}
