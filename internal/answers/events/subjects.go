// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// subject is what an event is about, as events name it.
type subject struct{ kind, namespace, name string }

// Subjects are the objects of a layer whose events are its own.
type Subjects struct {
	its map[subject]bool
	// others are objects that exist and are not the layer's.
	others    map[subject]bool
	workloads []objects.ID
	// pending are the namespaces of what Helm is about to make, of which no inventory says
	// yet what it is.
	pending map[string]bool
	// Elsewhere names the clusters whose events are not here, each once.
	Elsewhere []string
}

// Makers are the kinds that have Pods, which an inventory lists only once Helm is done, and
// those that these make, which none lists. Owners come before what they own.
var Makers = append(slices.Clone(snapshot.Workloads), snapshot.ReplicaSets, snapshot.Pods)

// SubjectsOf returns the layer, its HelmReleases with their charts, and what Helm
// has made for them.
func SubjectsOf(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *Subjects {
	found := &Subjects{its: map[subject]bool{{v1alpha1.AddonsLayerKind, "", layer.Name}: true}, others: map[subject]bool{}, pending: map[string]bool{}}
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		if entry.ID.Cluster != "" {
			found.elsewhere(entry.ID.Cluster)
			continue
		}
		found.add(entry.ID)
		release := s.Objects[entry.ID]
		if release == nil || !objects.IsReleaseKind(entry.ID.GroupKind()) {
			continue
		}
		if chart, _, _ := unstructured.NestedString(release.Object, "status", "helmChart"); chart != "" {
			namespace, name, _ := strings.Cut(chart, "/")
			found.its[subject{"HelmChart", namespace, name}] = true
		}
		if ref, is, _ := unstructured.NestedStringMap(release.Object, "spec", "chartRef"); is {
			found.its[subject{ref["kind"], cmp.Or(ref["namespace"], release.GetNamespace()), ref["name"]}] = true
		}
		if releases.IsElsewhere(release) {
			found.elsewhere(releases.Elsewhere(release))
			continue
		}
		made := releases.Inventory(release)
		for _, each := range made {
			found.add(each.ID)
		}
		if len(made) == 0 {
			target, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace")
			found.pending[cmp.Or(target, release.GetNamespace())] = true
		}
	}
	return found
}

// SubjectsNamed returns objects alone, without what they have made.
func SubjectsNamed(ids ...objects.ID) *Subjects {
	found := &Subjects{its: map[subject]bool{}, others: map[subject]bool{}}
	for _, id := range ids {
		found.its[subject{id.Kind, id.Namespace, id.Name}] = true
	}
	return found
}

func (s *Subjects) elsewhere(cluster string) {
	if !slices.Contains(s.Elsewhere, cluster) {
		s.Elsewhere = append(s.Elsewhere, cluster)
	}
}

func (s *Subjects) add(id objects.ID) {
	s.its[subject{id.Kind, id.Namespace, id.Name}] = true
	switch id.Kind {
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob":
		s.workloads = append(s.workloads, id)
	}
}

// Namespace returns the one namespace that all workloads are in, or will be; empty for several.
// It returns false where there are none, and nothing is made by others.
func (s *Subjects) Namespace() (string, bool) {
	in := maps.Clone(s.pending)
	if in == nil {
		in = map[string]bool{}
	}
	for _, id := range s.workloads {
		in[id.Namespace] = true
	}
	if len(in) == 1 {
		return slices.Collect(maps.Keys(in))[0], true
	}
	return "", len(in) > 0
}

// Namespaces returns the namespaces that events of the objects are in, sorted: Kubernetes
// has those of objects without a namespace in default.
func (s *Subjects) Namespaces() []string {
	found := map[string]bool{}
	maps.Copy(found, s.pending)
	for each := range s.its {
		found[cmp.Or(each.namespace, metav1.NamespaceDefault)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Adopt adds what the layer's objects have made, by who owns it, and what Helm has made for
// releases of which no inventory says it yet, by Flux's labels.
func (s *Subjects) Adopt(made *snapshot.Snapshot) {
	for _, part := range Makers {
		for _, object := range made.Of(part) {
			is := subject{object.GetKind(), object.GetNamespace(), object.GetName()}
			labels := object.GetLabels()
			mine := s.its[is]
			release := subject{"HelmRelease", labels[releases.NamespaceLabel], labels[releases.NameLabel]}
			if release.name != "" && !mine && s.pending[is.namespace] && s.its[release] {
				s.add(objects.IDOf(object))
				mine = true
			}
			for _, owner := range object.GetOwnerReferences() {
				mine = mine || s.its[subject{owner.Kind, object.GetNamespace(), owner.Name}]
			}
			if mine {
				s.its[is] = true
			} else {
				s.others[is] = true
			}
		}
	}
}

// Has tells whether an event is of one of the objects. What is gone, or has come
// only since they were read, is known by the names that Kubernetes gives.
func (s *Subjects) Has(event Event) bool {
	is := subject{event.Kind, event.Namespace, event.Name}
	if s.its[is] || s.others[is] {
		return s.its[is]
	}
	for _, workload := range s.workloads {
		if workload.Namespace == is.namespace && madeBy(workload, is) {
			return true
		}
	}
	return false
}

// The ends of names that Kubernetes makes: a hash of a template, a suffix, an
// ordinal, and the minute of a CronJob.
const (
	hashEnd    = `-[bcdfghjklmnpqrstvwxz2456789]{1,10}`
	suffixEnd  = `-[bcdfghjklmnpqrstvwxz2456789]{5}`
	ordinalEnd = `-[0-9]+`
)

var nameEnds = map[string]map[string]*regexp.Regexp{
	"Deployment":  {"ReplicaSet": regexp.MustCompile("^" + hashEnd + "$"), "Pod": regexp.MustCompile("^" + hashEnd + suffixEnd + "$")},
	"StatefulSet": {"Pod": regexp.MustCompile("^" + ordinalEnd + "$")},
	"DaemonSet":   {"Pod": regexp.MustCompile("^" + suffixEnd + "$")},
	"Job":         {"Pod": regexp.MustCompile("^(" + ordinalEnd + ")?" + suffixEnd + "$")},
	"CronJob":     {"Job": regexp.MustCompile("^" + ordinalEnd + "$"), "Pod": regexp.MustCompile("^" + ordinalEnd + suffixEnd + "$")},
}

// madeBy tells whether a workload would name something so that it makes.
func madeBy(workload objects.ID, is subject) bool {
	end := nameEnds[workload.Kind][is.kind]
	rest, begins := strings.CutPrefix(is.name, workload.Name)
	return end != nil && begins && end.MatchString(rest)
}
