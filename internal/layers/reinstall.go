// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// reinstalled tells whether Flux uninstalls what a release of the layer has installed on
// its cluster once it, and what find has of its chart, are written as wanted, and installs it
// anew. A release whose chart may have another name is not taken for one.
func (o Observation) reinstalled(id objects.ID, wanted *unstructured.Unstructured, find kinds.Find) (kinds.Reinstall, bool) {
	live := o.Live[id]
	if id.GroupKind() != kinds.HelmReleaseKind || live == nil || !live.GetDeletionTimestamp().IsZero() || !o.isUninstalled(live) {
		return kinds.Reinstall{}, false
	}
	found, is := kinds.ReinstallBySpec(live, wanted, kinds.Charts{Live: o.findLive, Wanted: find})
	return found, is && !found.Maybe
}

// findLive returns an object of the cluster that Flux runs in.
func (o Observation) findLive(gk schema.GroupKind, key types.NamespacedName) *unstructured.Unstructured {
	return o.Live[objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: key.Namespace, Name: key.Name}]
}

// orLive finds what is to be written, and otherwise what is there.
func (o Observation) orLive(wanted func(objects.ID) *unstructured.Unstructured) kinds.Find {
	return func(gk schema.GroupKind, key types.NamespacedName) *unstructured.Unstructured {
		if object := wanted(objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: key.Namespace, Name: key.Name}); object != nil {
			return object
		}
		return o.findLive(gk, key)
	}
}

// listedIn finds what a directory lists. It is asked for charts alone, which are few.
func listedIn(directory *directories.Directory) func(objects.ID) *unstructured.Unstructured {
	return func(id objects.ID) *unstructured.Unstructured {
		for _, manifest := range directory.Manifests {
			if manifest.ID() == id {
				return manifest.Object
			}
		}
		return nil
	}
}

// writtenOf finds what is to be written of some dependents.
func writtenOf(wanted []dependents.Dependent) func(objects.ID) *unstructured.Unstructured {
	return func(id objects.ID) *unstructured.Unstructured {
		for _, d := range wanted {
			if object, written := d.Object.Get(); written && d.ID == id {
				return object
			}
		}
		return nil
	}
}

// Reinstalled returns, in order, the HelmReleases that Flux would uninstall and install
// anew, whichever of its contents the layer is given.
func (o Observation) Reinstalled() []objects.ID {
	if isDeleting(o.Layer) {
		return nil
	}
	found := map[objects.ID]bool{}
	for _, directory := range []*directories.Directory{o.Directory, o.Deployed, o.Restored} {
		if directory == nil {
			continue
		}
		find := o.orLive(listedIn(directory))
		for _, manifest := range directory.Manifests {
			if _, is := o.reinstalled(manifest.ID(), manifest.Object, find); is {
				found[manifest.ID()] = true
			}
		}
	}
	ids := make([]objects.ID, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	return objects.SortIDs(ids)
}

// chartSource returns the ID of what a HelmRelease refers to for its chart.
func chartSource(release *unstructured.Unstructured) objects.ID {
	gk, key := kinds.ChartRef(release)
	return objects.ID{Group: gk.Group, Kind: gk.Kind, Namespace: key.Namespace, Name: key.Name}
}

// losesVolumes tells whether volumes would go with releases that are installed anew, or be
// left behind, or whether that is not known.
func (o Observation) losesVolumes() bool { return len(o.Volumes) > 0 || o.VolumesError != nil }

// withoutReinstalls leaves out what Flux would install anew with the loss of volumes. A
// repair is no reason for that.
func (o Observation) withoutReinstalls(wanted []dependents.Dependent) []dependents.Dependent {
	if !o.losesVolumes() {
		return wanted
	}
	left, find := map[objects.ID]bool{}, o.orLive(writtenOf(wanted))
	for _, d := range wanted {
		object, written := d.Object.Get()
		if _, is := o.reinstalled(d.ID, object, find); written && is {
			left[d.ID], left[chartSource(object)] = true, true
		}
	}
	return slices.DeleteFunc(wanted, func(d dependents.Dependent) bool { return left[d.ID] })
}

// reinstallGuard stops a plan that has Flux uninstall releases with volumes, unless somebody
// said that this revision may.
func reinstallGuard(
	o Observation,
	revision string,
	plan dependents.Plan,
	wanted []dependents.Dependent,
	allowed []string,
) (consume, opened []string, blocked *Blocked) {
	if slices.Contains(allowed, allowedReinstall) {
		return o.leftOver(v1alpha1.AllowReinstallAnnotation), allowed, nil
	}
	if !o.losesVolumes() {
		return nil, allowed, nil
	}
	var named []string
	writes, find := map[objects.ID]bool{}, o.orLive(writtenOf(wanted))
	for _, action := range plan.Of(dependents.VerbWrite) {
		writes[action.ID] = true
	}
	for _, d := range wanted {
		object, written := d.Object.Get()
		if !written {
			continue
		}
		// Flux also installs anew where a write changes the source alone.
		if again, is := o.reinstalled(d.ID, object, find); is && (writes[d.ID] || writes[chartSource(object)]) {
			named = append(named, fmt.Sprintf("%s (%s: %s -> %s)", d.ID, again.What, again.From, again.To))
		}
	}
	if len(named) == 0 {
		return nil, allowed, nil
	}
	if consume, yes := o.allows(v1alpha1.AllowReinstallAnnotation); yes {
		return consume, append(slices.Clone(allowed), allowedReinstall), nil
	}
	slices.Sort(named)
	blocked = &Blocked{State: v1alpha1.StateFailed, Reason: v1alpha1.ReasonWouldReinstall, Stalled: true, Again: o.Now.Add(blockersPeriod)}
	does := fmt.Sprintf("revision %s has Flux uninstall and install anew %s", revision, listed(named))
	if o.VolumesError != nil {
		blocked.Stalled, blocked.Retry = false, o.VolumesError
		blocked.Message = fmt.Sprintf("%s, and it cannot be looked up whether they have volumes: %v", does, o.VolumesError)
		return nil, nil, blocked
	}
	blocked.Message = fmt.Sprintf("%s, while %s: if that is meant set the annotation %s to that revision or to %q (kubectl annotate al %s %s=%s)",
		does, volumesText(o.Volumes), v1alpha1.AllowReinstallAnnotation, v1alpha1.AllowNext, o.Layer.Name, v1alpha1.AllowReinstallAnnotation, v1alpha1.AllowNext)
	return nil, nil, blocked
}

// volumesText says which volumes there are, and what becomes of them.
func volumesText(volumes []Blocker) string {
	var parts []string
	for _, each := range volumes {
		parts = append(parts, each.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", and ")
}
