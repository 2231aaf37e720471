// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

// Release is a Helm release: as a layer wants it, or as it is.
type Release struct {
	// Chart is its name, and Version its version.
	Chart, Version string
	// Config is the digest of its values, as Flux has it.
	Config string
	// Status is what Helm says of it; empty for what is wanted.
	Status releasecommon.Status
}

// Layer is a first layer, as it is wanted.
type Layer struct {
	Name string
	// Objects in the order in which they are written.
	Objects []dependents.Dependent
	// Releases of its HelmReleases.
	Releases map[objects.ID]Release
}

// Wanted is what a cluster is to have.
type Wanted struct {
	// Layers that come before Flux and Strata.
	Layers []Layer
	// Install has Flux and Strata be brought, and then Objects: sources, layers, and what
	// else of Strata's kinds there is. Where it is false, the rest is left to somebody else.
	Install bool
	Objects []*unstructured.Unstructured
}

// Seen is what a cluster has. The zero value is a cluster that is yet to be made.
type Seen struct {
	// NodesReady tells whether all Nodes are Ready.
	NodesReady bool
	// Releases by their identities, namespace/name.
	Releases map[string]Release
	// There are the objects of Wanted that exist.
	There map[objects.ID]bool
	// Managed are the HelmReleases that exist, and that helm-controller may work on.
	Managed map[objects.ID]bool
	// Flux and Strata tell whether they are installed, and FluxReady whether Flux runs.
	Flux, FluxReady, Strata bool
	// Undeployed tells whether a layer among the objects that exist is not deployed.
	Undeployed bool
}

// work is what a Task does.
type work int

const (
	writeObject work = iota
	installRelease
	awaitNodes
	bringFlux
	handOver
	awaitFlux
	bringStrata
	createObject
	awaitLayers
)

// Task is a step with what it works on.
type Task struct {
	hostplans.Step
	work   work
	object *dependents.Dependent
	create *unstructured.Unstructured
}

// Decide says what is to be done, in order. A layer that the cluster has as an AddonsLayer
// is the controller's, whatever its releases are.
func Decide(wanted Wanted, seen Seen) []Task {
	var tasks []Task
	add := func(t Task, verb hostplans.StepVerb, object, note string) {
		t.Verb, t.Object, t.Note = verb, object, note
		tasks = append(tasks, t)
	}
	var first []Layer
	for _, layer := range wanted.Layers {
		if !seen.There[layerID(layer.Name)] {
			first = append(first, layer)
		}
	}
	for _, layer := range first {
		for i := range layer.Objects {
			object := &layer.Objects[i]
			task := Task{Step: hostplans.Step{Layer: layer.Name}, object: object}
			release, is := layer.Releases[object.ID]
			has, exists := seen.Releases[object.Exclusive]
			note := release.Chart + " " + release.Version
			switch {
			case !is && !seen.There[object.ID]:
				add(task, hostplans.Create, object.ID.String(), "")
			case !is || seen.Managed[object.ID]:
			case !exists:
				task.work = installRelease
				add(task, hostplans.Install, object.ID.String(), note)
			case has.Status != releasecommon.StatusDeployed || has.Chart != release.Chart || has.Version != release.Version || has.Config != release.Config:
				task.work = installRelease
				add(task, hostplans.Upgrade, object.ID.String(), note)
			}
		}
	}
	if fresh := len(first) > 0 || wanted.Install && (!seen.Flux || !seen.Strata); fresh && !seen.NodesReady {
		add(Task{work: awaitNodes}, hostplans.Await, "nodes", "all of them are Ready")
	}
	if !wanted.Install {
		return tasks
	}
	if !seen.Flux {
		add(Task{work: bringFlux}, hostplans.Install, "Flux", "")
	}
	for _, layer := range first {
		for i := range layer.Objects {
			if object := &layer.Objects[i]; object.ID.GroupKind() == kinds.HelmReleaseKind && !seen.Managed[object.ID] {
				add(Task{Step: hostplans.Step{Layer: layer.Name}, work: handOver, object: object}, hostplans.HandOver, object.ID.String(), "it goes on as it runs")
			}
		}
	}
	if !seen.Strata {
		if !seen.FluxReady {
			add(Task{work: awaitFlux}, hostplans.Await, "Flux", "its controllers run")
		}
		add(Task{work: bringStrata}, hostplans.Install, "Strata", "")
	}
	waits := seen.Undeployed
	for _, object := range wanted.Objects {
		id := objects.IDOf(object)
		if seen.There[id] {
			continue
		}
		add(Task{work: createObject, create: object}, hostplans.Create, id.String(), "")
		waits = waits || id == layerID(id.Name)
	}
	if waits {
		add(Task{work: awaitLayers}, hostplans.Await, "layers", "all of them are deployed")
	}
	return tasks
}

func layerID(name string) objects.ID {
	return objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddonsLayerKind, Name: name}
}

// StepsOf returns what tasks are to people.
func StepsOf(tasks []Task) []hostplans.Step {
	var steps []hostplans.Step
	for _, task := range tasks {
		steps = append(steps, task.Step)
	}
	return steps
}
