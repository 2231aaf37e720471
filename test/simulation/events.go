// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
)

// event is something that happens to a layer, or to all of them.
type event struct {
	name   string
	weight int
	// global events concern all layers.
	global bool
	// do has it happen; it returns false where it cannot.
	do func(s *simulation, layer string) bool
}

// events that are drawn from. To add one, write it here; the coverage then asks
// for it in every state.
var events = []event{
	{name: "value changed", weight: 8, do: changeValue},
	{name: "release added", weight: 4, do: addRelease},
	{name: "release removed", weight: 5, do: removeRelease},
	{name: "release moved", weight: 7, do: moveRelease},
	{name: "release renamed", weight: 5, do: renameRelease},
	{name: "release moved and renamed", weight: 4, do: moveAndRename},
	{name: "release listed twice", weight: 2, do: listTwice},
	{name: "folder emptied", weight: 3, do: emptyFolder},
	{name: "most releases removed", weight: 3, do: removeMost},
	{name: "folder gone", weight: 2, do: loseFolder},
	{name: "broken file", weight: 3, do: breakFile},
	{name: "mended commit", weight: 5, do: mendCommit},
	{name: "content that fails", weight: 3, do: commitFailing},
	{name: "content that is refused", weight: 2, do: commitRefused},
	{name: "version and content", weight: 4, do: bumpBoth},
	{name: "version", weight: 5, do: bumpVersion},
	{name: "prereqs", weight: 6, do: changePrereqs},
	{name: "prereqs in a circle", weight: 2, do: closeCircle},
	{name: "prereqs of the cluster", weight: 6, do: changeKubernetes},
	{name: "hold by annotation", weight: 3, do: holdLayer},
	{name: "hold until", weight: 3, do: holdUntil},
	{name: "hold by spec", weight: 2, do: holdSpec},
	{name: "hold with releases", weight: 2, do: holdReleases},
	{name: "hold ends", weight: 6, do: endHold},
	{name: "interval", weight: 2, do: changeInterval},
	{name: "grace", weight: 3, do: changeGrace},
	{name: "rollback enabled", weight: 3, do: enableRollback},
	{name: "rollback asked for", weight: 2, do: askRollback},
	{name: "allow-empty", weight: 3, do: allowEmpty},
	{name: "allow-prune", weight: 3, do: allowPrune},
	{name: "allow-break", weight: 2, do: allowBreak},
	{name: "force-delete", weight: 2, do: forceDelete},
	{name: "layer deleted", weight: 4, do: deleteLayer},
	{name: "layer created again", weight: 6, do: recreateLayer},
	{name: "release drifts", weight: 4, do: driftRelease},
	{name: "release deleted by hand", weight: 4, do: deleteRelease},
	{name: "release suspended by hand", weight: 2, do: suspendRelease},
	{name: "release resumed by hand", weight: 3, do: resumeRelease},
	{name: "label taken off", weight: 2, do: unlabelRelease},
	{name: "orphaned label forged", weight: 2, do: forgeLabel},
	{name: "release fails", weight: 4, do: failRelease},
	{name: "release heals", weight: 6, do: healRelease},
	{name: "object drifts", weight: 3, do: driftObject},
	{name: "object deleted by hand", weight: 3, do: deleteObject},
	{name: "foreign Namespace listed", weight: 3, do: adoptSpace},
	{name: "Namespace loses its label", weight: 8, do: unlabelSpace},
	{name: "layer moved to a cluster", weight: 6, do: moveLayer},
	{name: "layer flees its cluster", weight: 4, do: flee},
	{name: "layer abandoned", weight: 3, do: abandonLayer},
	{name: "cluster away shortly", weight: 4, global: true, do: leaveShortly},
	{name: "cluster away for long", weight: 6, global: true, do: leaveForLong},
	{name: "clusters back", weight: 4, global: true, do: comeBack},
	{name: "credentials gone", weight: 2, global: true, do: loseCredentials},
	{name: "credentials rotated", weight: 2, global: true, do: rotateCredentials},
	{name: "credentials swapped", weight: 1, global: true, do: swapCredentials},
	{name: "copy deleted by hand", weight: 3, global: true, do: deleteCopy},
	{name: "RemoteCluster deleted", weight: 2, global: true, do: deleteRemote},
	{name: "RemoteCluster given up", weight: 2, global: true, do: destroy},
	{name: "RemoteCluster back", weight: 6, global: true, do: registerAgain},
	{name: "crash", weight: 5, global: true, do: crash},
	{name: "events lost", weight: 3, global: true, do: loseEvents},
	{name: "events repeated", weight: 2, global: true, do: repeatEvents},
	{name: "cache lags", weight: 4, global: true, do: freezeCache},
	{name: "caches listed anew", weight: 2, global: true, do: relist},
	{name: "API server away", weight: 3, global: true, do: outage},
	{name: "cluster version", weight: 3, global: true, do: upgradeCluster},
	{name: "source not ready", weight: 2, global: true, do: breakSource},
	{name: "artifact away", weight: 2, global: true, do: loseArtifact},
	{name: "source fetched anew", weight: 2, global: true, do: refetchSource},
	{name: "source heals", weight: 6, global: true, do: healSource},
}

var totalWeight = func() (sum int) {
	for _, e := range events {
		sum += e.weight
	}
	return sum
}()

// editLayer changes a layer that is there.
func (s *simulation) editLayer(name string, do func(*v1alpha1.AddonsLayer)) bool {
	if s.cluster.layer(name) == nil {
		return false
	}
	s.cluster.changeLayer(name, do)
	return true
}

var versions = []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0"}

func bumpVersion(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Version = pick(s, versions) })
}

func bumpBoth(s *simulation, layer string) bool {
	return changeValue(s, layer) && bumpVersion(s, layer)
}

func changePrereqs(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.DependsOn = s.dependencies(layer) })
}

func closeCircle(s *simulation, layer string) bool {
	other := pick(s, s.people.names)
	return other != layer && s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.DependsOn = []string{other} })
}

// kubernetesVersions that layers ask for, each met from a minor version on.
var kubernetesVersions = []string{"", "1.9", "v1.30", ">= 1.31", "1.31.0"}

func changeKubernetes(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Prereqs.K8sVersion = pick(s, kubernetesVersions) })
}

func (s *simulation) annotateLayer(name, key, value string) bool {
	return s.editLayer(name, func(l *v1alpha1.AddonsLayer) {
		l.Annotations[key] = value
		if value == "" {
			delete(l.Annotations, key)
		}
	})
}

func holdLayer(s *simulation, layer string) bool {
	return s.annotateLayer(layer, v1alpha1.HoldAnnotation, "freeze")
}

func holdUntil(s *simulation, layer string) bool {
	until := s.now.time().Add(s.between(time.Second, time.Minute)).UTC().Format(time.RFC3339)
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Annotations[v1alpha1.HoldAnnotation], l.Annotations[v1alpha1.HoldUntilAnnotation] = "for a while", until
	})
}

func holdSpec(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Hold = true })
}

func holdReleases(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Annotations[v1alpha1.HoldAnnotation], l.Annotations[v1alpha1.HoldReleasesAnnotation] = "freeze all", "true"
	})
}

func endHold(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Spec.Hold = false
		for _, key := range []string{v1alpha1.HoldAnnotation, v1alpha1.HoldUntilAnnotation, v1alpha1.HoldReleasesAnnotation} {
			delete(l.Annotations, key)
		}
	})
}

func changeInterval(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Spec.Interval = &metav1.Duration{Duration: pick(s, []time.Duration{15 * time.Second, 30 * time.Second, time.Minute})}
	})
}

func changeGrace(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) {
		l.Spec.OrphanGrace = &metav1.Duration{Duration: pick(s, []time.Duration{2 * time.Second, 10 * time.Second, 25 * time.Second})}
	})
}

func enableRollback(s *simulation, layer string) bool {
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.Spec.Rollback = !l.Spec.Rollback })
}

func askRollback(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil {
		return false
	}
	id := "1"
	if len(found.Status.History) > 0 {
		id = pick(s, found.Status.History).ID
	}
	return s.annotateLayer(layer, v1alpha1.RollbackToAnnotation, id)
}

func allowEmpty(s *simulation, layer string) bool {
	return s.allow(layer, v1alpha1.AllowEmptyAnnotation)
}

func allowPrune(s *simulation, layer string) bool {
	return s.allow(layer, v1alpha1.AllowPruneAnnotation)
}

// allow sets an annotation for what comes next, or for the present revision.
func (s *simulation) allow(layer, annotation string) bool {
	found := s.cluster.layer(layer)
	if found == nil {
		return false
	}
	s.evidence.allowed[allowance{found.UID, annotation}] = true
	return s.annotateLayer(layer, annotation, pick(s, []string{v1alpha1.AllowNext, s.repositoryOf(layer).revision()}))
}

func allowBreak(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil {
		return false
	}
	value := "true"
	if found.Annotations[v1alpha1.AllowBreakAnnotation] != "" {
		value = ""
	}
	return s.annotateLayer(layer, v1alpha1.AllowBreakAnnotation, value)
}

func forceDelete(s *simulation, layer string) bool {
	return s.annotateLayer(layer, v1alpha1.ForceDeleteAnnotation, "true")
}

func deleteLayer(s *simulation, layer string) bool {
	found := s.cluster.layer(layer)
	if found == nil || found.DeletionTimestamp != nil {
		return false
	}
	now := metav1.NewTime(s.now.time().Truncate(time.Second))
	return s.editLayer(layer, func(l *v1alpha1.AddonsLayer) { l.DeletionTimestamp = &now; l.Generation++ })
}

func recreateLayer(s *simulation, layer string) bool {
	if s.cluster.layer(layer) != nil {
		return false
	}
	s.createLayer(layer)
	return true
}

// editRelease changes a release of a layer.
func (s *simulation) editRelease(layer string, do func(*unstructured.Unstructured)) bool {
	owned := s.owned(layer)
	if len(owned) == 0 {
		return false
	}
	s.cluster.changeRelease(pick(s, owned), do)
	return true
}

func driftRelease(s *simulation, layer string) bool {
	return s.editRelease(layer, func(r *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(r.Object, s.value(), "spec", "values", "value")
	})
}

func deleteRelease(s *simulation, layer string) bool {
	owned := s.owned(layer)
	if len(owned) == 0 {
		return false
	}
	s.cluster.deleteRelease(pick(s, owned), metav1.NewTime(s.now.time()))
	return true
}

func suspendRelease(s *simulation, layer string) bool {
	return s.editRelease(layer, func(r *unstructured.Unstructured) { suspend(r, true) })
}

// resumeRelease takes back a suspension that is not Strata's.
func resumeRelease(s *simulation, layer string) bool {
	return s.editRelease(layer, func(r *unstructured.Unstructured) {
		if r.GetAnnotations()[v1alpha1.SupersededByAnnotation] == "" {
			suspend(r, false)
		}
	})
}

func unlabelRelease(s *simulation, layer string) bool {
	return s.editRelease(layer, func(r *unstructured.Unstructured) { label(r, v1alpha1.LayerLabel, "") })
}

func forgeLabel(s *simulation, layer string) bool {
	return s.editRelease(layer, func(r *unstructured.Unstructured) { label(r, v1alpha1.OrphanedLabel, "2026-11-21T12.00.00Z") })
}

func failRelease(s *simulation, layer string) bool {
	owned := s.owned(layer)
	if len(owned) == 0 {
		return false
	}
	name := pick(s, owned)
	s.failing[name] = s.chance(50)
	delete(s.looked, name)
	s.after(s.between(0, time.Second), func() { s.helm(name) })
	return true
}

func healRelease(s *simulation, layer string) bool {
	owned := s.owned(layer)
	if len(owned) == 0 {
		return false
	}
	for _, name := range owned {
		s.heal(name)
	}
	return true
}
