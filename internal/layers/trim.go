// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
)

// maxCauses bounds how many causes a layer names.
const maxCauses = 12

// trimCauses bounds causes to maxCauses. What is nearest and what is at the
// root of a chain stays longest: links in between go first, the deepest before
// all, then roots beside others, the last before all. Depths stay as they are,
// so that a gap shows where something was left out, and nothing comes to stand
// behind what it does not explain.
func trimCauses(list []v1alpha1.Cause) []v1alpha1.Cause {
	list = slices.Clone(list)
	for len(list) > maxCauses {
		at := deepestLink(list)
		if at < 0 {
			at = lastBeside(list)
		}
		list = slices.Delete(list, at, at+1)
	}
	return list
}

// isRoot tells whether nothing in the list explains a cause.
func isRoot(list []v1alpha1.Cause, i int) bool {
	return i+1 == len(list) || list[i+1].Depth <= list[i].Depth
}

// deepestLink returns the deepest cause that is neither the nearest nor the
// root of its chain, the last one of its depth; -1 where there is none. One
// that has another beside it before it is left, because what explains it would
// seem to explain that one.
func deepestLink(list []v1alpha1.Cause) int {
	at := -1
	for i := 1; i < len(list); i++ {
		isLink := list[i].Depth > list[i-1].Depth && !isRoot(list, i)
		if isLink && (at < 0 || list[i].Depth >= list[at].Depth) {
			at = i
		}
	}
	return at
}

// lastBeside returns the last root that has another one beside it, or else the
// last one but for that of the first chain.
func lastBeside(list []v1alpha1.Cause) int {
	first := slices.IndexFunc(list, func(c v1alpha1.Cause) bool { return c.Depth == 0 })
	for !isRoot(list, first) {
		first++
	}
	last := len(list) - 1
	for i := len(list) - 1; i > first; i-- {
		if !isRoot(list, i) || list[i].Depth == 0 {
			continue
		}
		if list[i-1].Depth >= list[i].Depth {
			return i
		}
		if list[last].Depth == 0 {
			last = i
		}
	}
	return last
}

// RootCause returns what is at the bottom of the first chain of causes, of
// those that do not merely take their time where there are any; false where
// there are no causes.
func RootCause(list []v1alpha1.Cause) (v1alpha1.Cause, bool) {
	var first *v1alpha1.Cause
	for i := range list {
		if !isRoot(list, i) {
			continue
		}
		if !inProgress(list[i]) {
			return list[i], true
		}
		if first == nil {
			first = &list[i]
		}
	}
	if first == nil {
		return v1alpha1.Cause{}, false
	}
	return *first, true
}

// inProgress tells of an object that is merely on its way.
func inProgress(cause v1alpha1.Cause) bool {
	switch cause.Reason {
	case objects.StatusProgress, objects.StatusMissing, objects.StatusReady, reasonWaits,
		"Progressing", v1alpha1.ReasonProgressingWithRetry, v1alpha1.ReasonDeleting:
		return cause.Kind != v1alpha1.AddonsLayerKind
	}
	return false
}

// reasonWaits is helm-controller's word for a release that waits for another.
const reasonWaits = "DependencyNotReady"
