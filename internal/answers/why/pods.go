// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// Depths are the kinds that are looked at below a HelmRelease.
var Depths = append([]snapshot.Part{snapshot.ReplicaSets, snapshot.Pods, snapshot.Events}, snapshot.Workloads...)

// Place is where the objects are that may explain the end of a chain.
type Place struct {
	// Cluster as namespace/name of a RemoteCluster; empty for the one that was read.
	Cluster string
	// Namespace of the objects; empty for all.
	Namespace string
}

// Deeper returns where to look for what keeps the end of a chain from being ready;
// false where nothing deeper can be found.
func (w Answer) Deeper(s *snapshot.Snapshot) (place Place, ok bool) {
	last := w.Chain[len(w.Chain)-1]
	switch {
	case len(w.Chain) < 2:
		return Place{}, false
	case slices.ContainsFunc(snapshot.Workloads, func(p snapshot.Part) bool { return p.Kind == last.Kind }):
		return Place{last.Cluster, last.Namespace}, true
	case last.Cluster != "" || last.Kind != "HelmRelease":
		return Place{}, false
	}
	release := releases.Named(s, last.Namespace, last.Name)
	if release == nil {
		return Place{}, false
	}
	if releases.IsElsewhere(release) {
		// The cluster of a kubeconfig that no RemoteCluster has made is nobody's here.
		if place.Cluster = layers.TargetOf(release); place.Cluster == "" {
			return Place{}, false
		}
	}
	target, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace")
	place.Namespace = cmp.Or(target, release.GetNamespace())
	for _, made := range releases.Inventory(release) {
		if made.Namespace != "" && made.Namespace != place.Namespace && (made.Group == "apps" || made.Group == "batch") {
			place.Namespace = ""
		}
	}
	return place, true
}

// Deepen follows a chain on into what Helm has made: the workload that is not
// ready, its Pod, and what is said of that. below holds what was read at the place.
func (w Answer) Deepen(s, below *snapshot.Snapshot, place Place) Answer {
	last := w.Chain[len(w.Chain)-1]
	linkTo := func(object *unstructured.Unstructured, reason, message string) Link {
		return Link{Kind: object.GetKind(), Cluster: place.Cluster, Namespace: object.GetNamespace(), Name: object.GetName(), Reason: reason, Message: message}
	}
	workload := worstWorkload(s, below, last)
	if workload == nil {
		return w
	}
	if standing := objects.AssessObject("", workload); workload.GetKind() != last.Kind {
		w.Chain = append(w.Chain, linkTo(workload, standing.Status, standing.Said))
	}
	owner := workload
	var pod *unstructured.Unstructured
	var problem trouble
	for _, candidate := range podsOf(below, workload) {
		if found := troubleOf(candidate); found.rank > problem.rank {
			pod, problem = candidate, found
		}
	}
	if pod != nil {
		if set := ownerOf(below, pod, snapshot.ReplicaSets); set != nil {
			w.Chain = append(w.Chain, linkTo(set, "", ""))
		}
		link := linkTo(pod, problem.reason, problem.message)
		link.Since = problem.since
		w.Chain = append(w.Chain, link)
		owner = pod
	} else if set := worstSet(below, workload); set != nil {
		owner = set
	}
	if event, found := events.Telling(below, owner); found {
		if owner != pod && owner != workload {
			w.Chain = append(w.Chain, linkTo(owner, event.Reason, ""))
		}
		w.Chain = append(w.Chain, Link{
			Kind: "Event", Cluster: place.Cluster, Namespace: owner.GetNamespace(), Name: owner.GetName(), Reason: event.Reason,
			Message: event.Message, Since: event.First, Count: event.Count,
		})
	}
	return w
}

// worstWorkload returns the workload that keeps the end of a chain: what it is
// itself, or what Helm has made for it; nil where all of them are ready.
func worstWorkload(s, below *snapshot.Snapshot, last Link) *unstructured.Unstructured {
	wanted := map[objects.ID]bool{}
	if release := releases.Named(s, last.Namespace, last.Name); release != nil {
		for _, made := range releases.Inventory(release) {
			wanted[made.ID] = true
		}
	}
	var worst *unstructured.Unstructured
	health := objects.Ignored
	for _, kind := range snapshot.Workloads {
		for _, object := range below.Of(kind) {
			named := object.GetKind() == last.Kind && object.GetNamespace() == last.Namespace && object.GetName() == last.Name
			labels := object.GetLabels()
			labelled := last.Kind == "HelmRelease" && labels[releases.NameLabel] == last.Name && labels[releases.NamespaceLabel] == last.Namespace
			if !named && !labelled && !wanted[objects.IDOf(object)] {
				continue
			}
			if is := objects.AssessObject("", object).Health; is > health {
				worst, health = object, is
			}
		}
	}
	return worst
}

// owns tells whether an object is the controller of another.
func owns(owner, object *unstructured.Unstructured) bool {
	for _, ref := range object.GetOwnerReferences() {
		if ref.Kind == owner.GetKind() && ref.Name == owner.GetName() && owner.GetNamespace() == object.GetNamespace() && ref.UID == owner.GetUID() {
			return true
		}
	}
	return false
}

// podsOf returns the Pods of a workload.
func podsOf(below *snapshot.Snapshot, workload *unstructured.Unstructured) []*unstructured.Unstructured {
	owners := append(setsOf(below, workload), workload)
	var found []*unstructured.Unstructured
	for _, pod := range below.Of(snapshot.Pods) {
		if slices.ContainsFunc(owners, func(owner *unstructured.Unstructured) bool { return owns(owner, pod) }) {
			found = append(found, pod)
		}
	}
	return found
}

// setsOf returns the snapshot.ReplicaSets of a Deployment.
func setsOf(below *snapshot.Snapshot, workload *unstructured.Unstructured) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	if workload.GetKind() != "Deployment" {
		return nil
	}
	for _, set := range below.Of(snapshot.ReplicaSets) {
		if owns(workload, set) {
			found = append(found, set)
		}
	}
	return found
}

// worstSet returns the ReplicaSet of which something bad is said, or nil.
func worstSet(below *snapshot.Snapshot, workload *unstructured.Unstructured) *unstructured.Unstructured {
	for _, set := range setsOf(below, workload) {
		if _, found := events.Telling(below, set); found {
			return set
		}
	}
	return nil
}

// ownerOf returns the object of a kind that controls another, or nil.
func ownerOf(below *snapshot.Snapshot, object *unstructured.Unstructured, kind snapshot.Part) *unstructured.Unstructured {
	for _, candidate := range below.Of(kind) {
		if owns(candidate, object) {
			return candidate
		}
	}
	return nil
}

// trouble is what is wrong with a Pod; rank 0 is nothing.
type trouble struct {
	rank                   int
	reason, message, since string
}

// The ranks of troubles, the worst last.
const (
	notReady = iota + 1
	waiting
	unschedulable
	hasFailed
	cannotStart
)

// troubleOf returns what is wrong with a Pod.
func troubleOf(pod *unstructured.Unstructured) trouble {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if phase == "Succeeded" {
		return trouble{}
	}
	worst := trouble{}
	if phase == "Failed" {
		reason, _, _ := unstructured.NestedString(pod.Object, "status", "reason")
		message, _, _ := unstructured.NestedString(pod.Object, "status", "message")
		worst = trouble{rank: hasFailed, reason: cmp.Or(reason, "Failed"), message: message}
	}
	if scheduled := snapshot.Condition(pod, "PodScheduled"); scheduled["status"] == "False" {
		worst = trouble{
			rank:    unschedulable,
			reason:  cmp.Or(scheduled["reason"], "Unschedulable"),
			message: scheduled["message"],
			since:   scheduled["lastTransitionTime"],
		}
	}
	ofContainers := false
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
		for _, item := range statuses {
			status, _ := item.(map[string]any)
			ofContainers = true
			if found := troubleOfContainer(status, field == "containerStatuses"); found.rank > worst.rank {
				worst = found
			}
		}
	}
	if worst.rank == 0 && !ofContainers && phase != "Running" {
		return trouble{rank: waiting, reason: cmp.Or(phase, "Pending"), message: "has not started"}
	}
	return worst
}

// troubleOfContainer returns what is wrong with a container by its status. One that
// begins before others need not be ready.
func troubleOfContainer(status map[string]any, mustBeReady bool) trouble {
	name, _ := status["name"].(string)
	wait, waits, _ := unstructured.NestedMap(status, "state", "waiting")
	ended, hasEnded, _ := unstructured.NestedMap(status, "state", "terminated")
	isReady, _ := status["ready"].(bool)
	switch {
	case waits:
		reason, _ := wait["reason"].(string)
		message, _ := wait["message"].(string)
		if reason == "ContainerCreating" || reason == "PodInitializing" || reason == "" {
			return trouble{rank: waiting, reason: cmp.Or(reason, "Waiting"), message: message}
		}
		if last, crashed, _ := unstructured.NestedMap(status, "lastState", "terminated"); crashed {
			message = strings.TrimPrefix(message+"; "+ending(last), "; ")
		}
		return trouble{rank: cannotStart, reason: reason, message: fmt.Sprintf("container %s: %s", name, message)}
	case hasEnded && snapshot.Number(ended["exitCode"]) != 0:
		reason, _ := ended["reason"].(string)
		at, _ := ended["finishedAt"].(string)
		return trouble{rank: hasFailed, reason: cmp.Or(reason, "Error"), message: fmt.Sprintf("container %s: %s", name, ending(ended)), since: at}
	case !isReady && mustBeReady && !hasEnded:
		return trouble{rank: notReady, reason: "NotReady", message: fmt.Sprintf("container %s runs and is not ready", name)}
	}
	return trouble{}
}

// ending says how a container has ended.
func ending(ended map[string]any) string {
	reason, _ := ended["reason"].(string)
	message, _ := ended["message"].(string)
	return strings.TrimSuffix(fmt.Sprintf("it has ended with exit code %d (%s): %s", snapshot.Number(ended["exitCode"]), cmp.Or(reason, "Error"), message), ": ")
}
