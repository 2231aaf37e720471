// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// spaceKind is that of Namespaces, and spacePrefix begins the keys of those that
// directories list.
var spaceKind = schema.GroupKind{Kind: "Namespace"}

const spacePrefix = "Namespace//n"

// newSpace returns the file of a Namespace that nobody has listed yet.
func (s *simulation) newSpace() file {
	s.people.used++
	return file{name: fmt.Sprintf("n%d", s.people.used), plain: true, space: true, value: s.value()}
}

// adoptSpace has a folder list a Namespace that is somebody's already, on the cluster
// that the layer belongs on.
func adoptSpace(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil || clusterOf(found) != "" && s.away(s.remotes[clusterOf(found)]) || len(s.folder(layer).files) > 6 {
		return false
	}
	space := s.newSpace()
	there := manifestOf(space)
	there.SetAnnotations(nil)
	s.store(clusterOf(found)).createRelease(there)
	s.edit(layer, func(f *folder) { f.missing = false; f.files = append(f.files, space) })
	return true
}

// unlabelSpace takes a layer's label off one of its Namespaces.
func unlabelSpace(s *simulation, layer string) bool {
	spaces := slices.DeleteFunc(s.objectsOf(layer), func(name string) bool { return s.object(name).GetKind() != spaceKind.Kind })
	if len(spaces) == 0 {
		return false
	}
	name := pick(s, spaces)
	cluster, key := split(name)
	delete(s.evidence.created, s.object(name).GetUID())
	s.store(cluster).changeRelease(key, func(r *unstructured.Unstructured) { label(r, v1alpha1.LayerLabel, "") })
	return true
}

// judgeOrigin wants a Namespace to be deleted where Strata has created it and layers
// have had it since, and to stay in any other case.
func (h *hands) judgeOrigin(live *unstructured.Unstructured, action dependents.Action) {
	if live == nil || action.ID.GroupKind() != spaceKind {
		return
	}
	created := h.evidence.created[live.GetUID()]
	switch own := h.view.own; action.Verb {
	case dependents.VerbDelete:
		if !created {
			h.violated("origin", "%s deletes %s, which was there before", own.Name, nameOf(action.ID))
		}
		h.people.covered.saw(spaceDeleted)
	case dependents.VerbRelease:
		leaves := own.DeletionTimestamp != nil && own.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan
		if created && !leaves && !h.goesBack() {
			h.violated("origin", "%s keeps %s, which was created for a layer", own.Name, nameOf(action.ID))
		}
		delete(h.evidence.created, live.GetUID())
		h.people.covered.saw(spaceKept)
	}
}
