// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// leaving returns the objects that the layer has and that are to go: those that not each
// of its contents lists. What it only looks at, or leaves to others, it does not list.
func (o Observation) leaving() map[objects.ID]*unstructured.Unstructured {
	contents, listed := 0, map[objects.ID]int{}
	for _, directory := range []*directories.Directory{o.Directory, o.Restored} {
		if directory == nil || isDeleting(o.Layer) {
			continue
		}
		contents++
		for _, manifest := range directory.Manifests {
			if !manifest.Ensured && !manifest.Observed {
				listed[manifest.ID()]++
			}
		}
	}
	found := map[objects.ID]*unstructured.Unstructured{}
	for id, live := range o.Live {
		if live != nil && live.GetLabels()[v1alpha1.LayerLabel] == o.Layer.Name && (contents == 0 || listed[id] < contents) {
			found[id] = live
		}
	}
	return found
}

// shortened is the name of a Helm release that Flux has cut off, with the digest of the
// whole one.
var shortened = regexp.MustCompile(`^.{40}-[0-9a-f]{12}$`)

// meanings returns the ways in which a manifest can name an object or, of a release, what
// it stands for. Each of them is the words that such a manifest has.
func meanings(id objects.ID, live *unstructured.Unstructured) [][]string {
	ways := [][]string{{id.Name}}
	if id.GroupKind() != kinds.HelmReleaseKind {
		return ways
	}
	name, _ := kinds.HelmName(live)
	ways = append(ways, []string{name})
	// A release without a name of its own has that of its target namespace before its own.
	for i, r := range name {
		if r == '-' && i > 0 && i+1 < len(name) {
			ways = append(ways, []string{name[:i], name[i+1:]})
		}
	}
	if shortened.MatchString(name) {
		ways = append(ways, []string{"targetNamespace"})
	}
	return ways
}

// NamesSought returns the words by which another layer may mean an object that is to go,
// sorted.
func (o Observation) NamesSought() []string {
	found := map[string]bool{}
	for id, live := range o.leaving() {
		for _, words := range meanings(id, live) {
			for _, word := range words {
				found[word] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// AddDoubt adds that another layer of the same source cannot be read, and may list what
// the mentions mean.
func (o Observation) AddDoubt(others *dependents.Others, layer string, found directories.Mentions) {
	for id, live := range o.leaving() {
		why, may := found.Unknown, found.Unknown != ""
		for _, words := range meanings(id, live) {
			if file, has := mentioned(found, words); has && !may {
				why, may = file+" has its name", true
			}
		}
		if !may {
			continue
		}
		if others.MayList == nil {
			others.MayList = map[objects.ID][]dependents.Doubt{}
		}
		others.MayList[id] = append(others.MayList[id], dependents.Doubt{Owner: layer, Why: why})
	}
}

// mentioned returns the file of the last of some words, if all of them are mentioned.
func mentioned(found directories.Mentions, words []string) (file string, all bool) {
	for _, word := range words {
		if file, all = found.Names[word]; !all {
			return "", false
		}
	}
	return file, true
}

// LastListed returns what a layer's status says that it lists, where its source is gone
// and nothing else is known of it. What is on its way out it lists no more.
func (o Observation) LastListed(layer *v1alpha1.AddonsLayer) Listing {
	listing := Listing{Files: map[objects.ID]string{}, Exclusive: map[string][]objects.ID{}}
	for _, entry := range Inventory(layer.Status.Resources, nil) {
		switch entry.Status {
		case objects.StatusOrphaned, objects.StatusSuperseded, objects.StatusDeleting:
			continue
		}
		listing.Files[entry.ID] = entry.Origin
	}
	for identity, ids := range o.Exclusive {
		for _, id := range ids {
			if _, listed := listing.Files[id]; listed {
				listing.Exclusive[identity] = append(listing.Exclusive[identity], id)
			}
		}
	}
	return listing
}

// endsDoubt tells whether somebody said that what others may list goes all the same, by
// an annotation or earlier in this roll-out.
func (o Observation) endsDoubt() bool {
	if o.Directory != nil && slices.Contains(o.alreadyAllowed(), allowedDoubt) {
		return true
	}
	_, yes := o.allows(v1alpha1.AllowPruneAnnotation)
	return yes
}

// doubtGuard records that an annotation has ended a doubt, so that it is used up and
// holds for all that goes in this roll-out.
func doubtGuard(o Observation, plan dependents.Plan, allowed []string) (consume, opened []string) {
	if slices.Contains(allowed, allowedDoubt) {
		return o.leftOver(v1alpha1.AllowPruneAnnotation), allowed
	}
	if len(plan.Doubted) == 0 {
		return nil, allowed
	}
	consume, _ = o.allows(v1alpha1.AllowPruneAnnotation)
	return consume, append(slices.Clone(allowed), allowedDoubt)
}
