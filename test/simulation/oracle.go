// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// view is what could be known when a look began. What is done is judged by it:
// nobody can know of a commit that comes a moment later.
type view struct {
	own        *v1alpha1.AddonsLayer
	layers     map[string]*v1alpha1.AddonsLayer
	sources    map[string]*source
	folders    map[string]listing
	remotes    map[string]*v1alpha1.RemoteCluster
	kubernetes string
	at         moment
	// mistaken holds the clusters of which it was known that they are not the right
	// ones.
	mistaken map[string]bool
	// back is true while the layer goes back: then it lists what it had.
	back bool
}

// listing is what a layer lists, as far as that can be read.
type listing struct {
	folder
	revision string
	digest   string
	readable bool
}

func (h *hands) viewOf(own *v1alpha1.AddonsLayer) view {
	v := view{
		own: own, layers: map[string]*v1alpha1.AddonsLayer{}, sources: map[string]*source{},
		folders: map[string]listing{}, remotes: map[string]*v1alpha1.RemoteCluster{}, kubernetes: h.kubernetes, at: h.now, mistaken: map[string]bool{},
	}
	for _, name := range h.layerNames() {
		v.layers[name] = h.cachedLayer(name)
	}
	v.layers[own.Name] = own
	for _, name := range remoteNames {
		if c := h.connections[name]; c != nil && c.store != h.remotes[name].cluster && c.identity.Known() {
			v.mistaken[name] = true
		}
		if cached := h.cachedRemote(name); cached != nil {
			v.remotes[name] = cached
		}
	}
	if r := v.remotes[clusterOf(own)]; r != nil {
		v.kubernetes = r.Status.Version
	}
	for name, cached := range h.caches[kindSource].objects {
		v.sources[name] = cached.(*source)
	}
	for name, layer := range v.layers {
		from := v.sources[layer.Spec.Source.Name]
		if name == own.Name && own.Status.ObservedGeneration != own.Generation {
			from = h.cluster.source(layer.Spec.Source.Name)
		}
		v.folders[name] = h.listingAt(from, layer)
	}
	return v
}

// listingAt reads what a source's artifact holds for a layer, by the names that it
// has where the layer belongs.
func (s *simulation) listingAt(from *source, layer *v1alpha1.AddonsLayer) listing {
	if from == nil || from.seen.Digest == "" || from.seen.Generation != from.seen.ObservedGeneration || s.cluster.source(from.Name).away {
		return listing{}
	}
	found := listing{revision: from.seen.Revision}
	name := s.folderOf(layer.Name)
	written := s.repositories[from.Name].commits[found.revision][name]
	found.folder = s.put(layer.Name, clusterOf(layer), written)
	found.readable = !found.broken
	if found.readable {
		directory, _ := s.contents.directory(written, name, found.revision)
		found.digest = directory.Digest
	}
	return found
}

// lists tells who lists a release, by its name or as a Helm release; "" for
// nobody. A layer that is being deleted lists nothing.
func (v view) lists(name, helm string) string {
	for _, layer := range sortedKeys(v.layers) {
		if v.layers[layer].DeletionTimestamp != nil || layer == v.own.Name && v.back {
			continue
		}
		for _, f := range v.folders[layer].files {
			if v.folders[layer].readable && (name != "" && f.name == name || helm != "" && f.helm == helm) {
				return layer
			}
		}
	}
	return ""
}

// allowance is what people have allowed a layer.
type allowance struct {
	layer      types.UID
	annotation string
}

// written names a release as a layer has it.
type written struct {
	layer   types.UID
	release string
}

// evidence is what the rules of the simulation remember.
type evidence struct {
	allowed map[allowance]bool
	// content is what a layer wrote last, deployed what it had when it was
	// deployed, and marked when its inventory first said that it lets a release
	// go: the grace begins with that, also where the label comes later.
	content  map[written]string
	deployed map[written]string
	marked   map[written]moment
	// abandoned holds objects that were suspended when Strata deleted them.
	abandoned map[types.UID]bool
	// left counts Helm releases that people have left behind.
	left map[string]int
	// created holds objects that Strata has created, and that a layer has had since.
	created map[types.UID]bool
	// forsaken holds objects of clusters on which people have given them up.
	forsaken map[string]bool
}

func newEvidence() evidence {
	return evidence{
		allowed:   map[allowance]bool{},
		content:   map[written]string{},
		deployed:  map[written]string{},
		marked:    map[written]moment{},
		abandoned: map[types.UID]bool{},
		left:      map[string]int{},
		created:   map[types.UID]bool{},
		forsaken:  map[string]bool{},
	}
}

// violation is an invariant that does not hold.
type violation struct{ text string }

func (s *simulation) violated(invariant, format string, args ...any) {
	panic(violation{invariant + ": " + fmt.Sprintf(format, args...)})
}

// judge judges one write, before it is carried out.
func (h *hands) judge(o *layers.Observation, action dependents.Action) {
	name, owner := nameOf(action.ID), o.Layer.Name
	if action.Verb != dependents.VerbMark {
		delete(h.evidence.forsaken, name)
	}
	stored := h.cluster.layer(owner)
	if stored == nil || !slices.Contains(inventoryOf(stored), name) {
		h.violated("inventory", "%s of %s is not in the inventory of %s", action.Verb, name, owner)
	}
	h.view.back = h.goesBack()
	v := h.view
	live := h.object(name)
	h.judgeOrigin(live, action)
	h.judgeAbsence(live, action)
	if v.gaveUp(targetOf(live, action.ID)) {
		h.judgeForsaken(live, action)
		return
	}
	if v.held() && v.own.DeletionTimestamp == nil && action.Verb != dependents.VerbSuspend {
		h.violated("gates", "%s of %s although %s is held", action.Verb, name, owner)
	}
	key := written{o.Layer.UID, name}
	switch action.Verb {
	case dependents.VerbWrite:
		h.judgeOwner(live, o.Live[action.ID], action)
		h.judgeWrite(action, key)
	case dependents.VerbAdopt, dependents.VerbSupersede:
		h.judgeOwner(live, o.Live[action.ID], action)
	case dependents.VerbMark:
		h.judgeRemoval(action.Verb, name)
	case dependents.VerbDelete:
		h.judgeDelete(live, key)
	case dependents.VerbResume:
		h.judgeResume(live)
	}
}

// inventoryOf names what a layer says that it has.
func inventoryOf(layer *v1alpha1.AddonsLayer) []string {
	var found []string
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		found = append(found, nameOf(entry.ID))
	}
	return found
}

// held tells whether the layer is held.
func (v view) held() bool {
	if v.own.Spec.Hold {
		return true
	}
	if _, is := v.own.Annotations[v1alpha1.HoldAnnotation]; !is {
		return false
	}
	until, err := time.Parse(time.RFC3339, v.own.Annotations[v1alpha1.HoldUntilAnnotation])
	return err != nil || v.at.time().Before(until)
}

// judgeOwner judges whether a release may be taken from who has it.
func (h *hands) judgeOwner(live, seen *unstructured.Unstructured, action dependents.Action) {
	owner, v := "", h.view
	if live != nil {
		owner = live.GetLabels()[v1alpha1.LayerLabel]
	}
	if owner == "" || owner == v.own.Name {
		return
	}
	other := v.layers[owner]
	if other == nil {
		return
	}
	name := nameOf(action.ID)
	if other.DeletionTimestamp == nil && v.folders[owner].find(name) >= 0 && v.folders[owner].readable {
		h.violated("adopt", "%s of %s, which layer %s has and lists", action.Verb, name, owner)
	}
	if seen == nil || seen.GetLabels()[v1alpha1.OrphanedLabel] == "" {
		h.violated("adopt", "%s of %s, which layer %s has not let go", action.Verb, name, owner)
	}
}

// judgeDelete judges whether a release may be deleted.
func (h *hands) judgeDelete(live *unstructured.Unstructured, key written) {
	v, name := h.view, key.release
	if by := v.lists(name, ""); by != "" {
		h.violated("listed", "%s is deleted while layer %s lists it", name, by)
	}
	if isSuspended(live) && live.GetAnnotations()[v1alpha1.SupersededByAnnotation] != "" {
		h.evidence.abandoned[live.GetUID()] = true
		return
	}
	if by := v.lists("", helmOf(live)); by != "" {
		h.violated("moved", "%s is uninstalled while layer %s lists Helm release %s", name, by, helmOf(live))
	}
	if isSuspended(live) && v.own.Annotations[v1alpha1.AbandonAnnotation] != "true" {
		h.violated("orphans", "%s is deleted while it is suspended, which uninstalls nothing", name)
	}
	for other, layer := range v.layers {
		same := layer.Spec.Source.Name == v.own.Spec.Source.Name && other != v.own.Name && layer.DeletionTimestamp == nil
		if same && !v.folders[other].readable && !h.allowed(v1alpha1.AllowPruneAnnotation) {
			h.violated("listed", "%s is deleted while it is not known what layer %s lists", name, other)
		}
	}
	marked, is := h.evidence.marked[key]
	if grace := v.own.Spec.OrphanGrace.Duration; !is || h.now-marked < moment(grace) {
		h.violated("prune", "%s is deleted before its grace of %s is over, marked: %t", name, grace, is)
	}
	h.judgeRemoval(dependents.VerbDelete, name)
}

// judgeRemoval judges whether a layer may let a release go.
func (h *hands) judgeRemoval(verb dependents.Verb, name string) {
	v := h.view
	listed := v.folders[v.own.Name]
	if v.own.DeletionTimestamp != nil || h.goesBack() {
		return
	}
	switch {
	case !listed.readable:
		h.violated("prune", "%s of %s while the folder of %s cannot be read", verb, name, v.own.Name)
	case listed.find(name) >= 0:
		h.violated("listed", "%s of %s, which its layer %s lists", verb, name, v.own.Name)
	case len(listed.files) == 0 && !h.allowed(v1alpha1.AllowEmptyAnnotation):
		h.violated("guard", "%s of %s because the folder of %s is empty", verb, name, v.own.Name)
	}
	total, removed := 0, 0
	for _, entry := range layers.Inventory(v.own.Status.Resources, nil) {
		live := h.object(nameOf(entry.ID))
		// What is on a cluster that the layer has left may go at once.
		if entry.Status == objects.StatusOrphaned || entry.ID.GroupKind() != kinds.HelmReleaseKind || live != nil && layers.TargetOf(live) != clusterOf(v.own) {
			continue
		}
		total++
		if live != nil && live.GetLabels()[v1alpha1.LayerLabel] == v.own.Name && live.GetAnnotations()[v1alpha1.SupersededByAnnotation] == "" &&
			live.GetDeletionTimestamp() == nil && v.lists(nameOf(entry.ID), helmOf(live)) == "" {
			removed++
		}
	}
	if removed > 3 && removed*2 > total && !h.allowed(v1alpha1.AllowPruneAnnotation) && !h.allowed(v1alpha1.AllowEmptyAnnotation) && verb == dependents.VerbMark {
		h.violated("guard", "%s of %s, one of %d of %d releases of %s", verb, name, removed, total, v.own.Name)
	}
}

func (h *hands) allowed(annotation string) bool {
	return h.evidence.allowed[allowance{h.view.own.UID, annotation}]
}

// goesBack tells whether the layer says that it goes back to what it had.
func (h *hands) goesBack() bool {
	stored := h.cluster.layer(h.view.own.Name)
	return h.view.own.Status.Rollback != nil || stored != nil && stored.Status.Rollback != nil
}

// judgeWrite judges whether a release may be written. What a layer has written
// before may always be repaired; anything else wants its gates open.
func (h *hands) judgeWrite(action dependents.Action, key written) {
	v := h.view
	content := fmt.Sprint(action.Wanted.Manifest().Object["spec"], action.Wanted.Manifest().Object["data"])
	repair := h.evidence.content[key] == content || h.evidence.deployed[key] == content
	if !repair && !h.goesBack() {
		h.judgeGates(action)
	}
	if v.own.DeletionTimestamp != nil && !repair {
		h.violated("gates", "%s is applied although layer %s is being deleted", action.ID.Name, v.own.Name)
	}
	h.evidence.content[key] = content
}

// judgeStatus judges whether a layer may say that it is deployed: all it lists
// has been Ready with that very content.
func (h *hands) judgeStatus(o *layers.Observation, status *v1alpha1.AddonsLayerStatus) {
	was := o.Layer.Status
	h.judgeUnknown(o.Layer, status)
	h.noteForsaken(o.Layer, status)
	for _, r := range layers.Inventory(status.Resources, nil) {
		key := written{o.Layer.UID, nameOf(r.ID)}
		if _, known := h.evidence.marked[key]; r.Status != objects.StatusOrphaned {
			delete(h.evidence.marked, key)
		} else if !known {
			h.evidence.marked[key] = h.view.at
		}
		if status.State == v1alpha1.StateDeployed {
			h.evidence.deployed[key] = h.evidence.content[key]
		}
	}
	if status.State != v1alpha1.StateDeployed || was.State == v1alpha1.StateDeployed && was.Digest == status.Digest && was.Cluster == status.Cluster ||
		o.Directory == nil ||
		o.Directory.Digest != status.Digest {
		return
	}
	seen := map[string]*unstructured.Unstructured{}
	for id, live := range o.Live {
		seen[nameOf(id)] = live
	}
	for _, f := range h.view.folders[o.Layer.Name].files {
		live := seen[f.name]
		if live == nil {
			h.violated("deployed", "%s says that it is deployed without %s", o.Layer.Name, f.name)
		}
		if !isSuspended(live) && !h.wasReady[live.GetUID()][f.value] {
			h.violated("deployed", "%s says that it is deployed, and %s was never ready with value %d", o.Layer.Name, f.name, f.value)
		}
	}
}

// judgeUninstall judges what helm-controller takes away.
func (s *simulation) judgeUninstall(release *unstructured.Unstructured) {
	if s.evidence.abandoned[release.GetUID()] {
		s.violated("moved", "%s is uninstalled, which layer %s has renamed", helmOf(release), s.deletedBy[release.GetUID()])
	}
}

// judgeLeaving judges whether a layer leaves nothing behind, but for what people
// have given up.
func (h *hands) judgeLeaving(layer *v1alpha1.AddonsLayer) {
	for _, name := range h.everything() {
		live := h.object(name)
		if live.GetLabels()[v1alpha1.LayerLabel] != layer.Name || live.GetDeletionTimestamp() != nil || h.evidence.forsaken[name] {
			continue
		}
		cluster, _ := split(name)
		if cluster == "" || layer.Annotations[v1alpha1.AbandonAnnotation] != "true" && !h.remotes[cluster].givenUp {
			h.violated("orphans", "layer %s goes and leaves %s", layer.Name, name)
		}
		h.evidence.forsaken[name] = true
	}
	maps.DeleteFunc(h.evidence.marked, func(w written, _ moment) bool { return w.layer == layer.UID })
}

func condition(layer *v1alpha1.AddonsLayer, kind string) metav1.Condition {
	return conditionIn(layer.Status.Conditions, kind)
}

func conditionIn(conditions []metav1.Condition, kind string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
