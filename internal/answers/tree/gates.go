// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/versions"
)

// The kinds of gates.
const (
	GateHold       = "Hold"
	GateSource     = "Source"
	GateCluster    = "Cluster"
	GateKubernetes = "Kubernetes"
	GateDependency = "Dependency"
	GateWaitFor    = "WaitFor"
)

// The states of gates.
const (
	// Open lets the layer through.
	Open = "Open"
	// Closed keeps it.
	Closed = "Closed"
	// Unseen could not be looked at.
	Unseen = "Unseen"
)

// Gate is something that must hold before a layer is deployed.
type Gate struct {
	Kind string `json:"kind"`
	// Wants is what must hold.
	Wants string `json:"wants"`
	State string `json:"state"`
	// Seen is what is there now.
	Seen string `json:"seen,omitempty"`
	// Until is when it opens by itself, as RFC 3339; empty where that is not known.
	Until string `json:"until,omitempty"`
	// Layer is the dependency; empty for other gates.
	Layer string `json:"layer,omitempty"`
	// Needs are the dependencies of the dependency.
	Needs []Gate `json:"needs,omitempty"`
}

// gatesOf returns the gates of a layer in the order in which they are asked.
func gatesOf(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, live *releases.Live, depth int) []Gate {
	var gates []Gate
	if hold := layers.HoldOf(layer, s.Now); hold.Active {
		gate := Gate{Kind: GateHold, Wants: "nobody holds it", State: Closed, Seen: hold.Reason}
		if !hold.Until.IsZero() {
			gate.Until = hold.Until.UTC().Format(time.RFC3339)
		}
		gates = append(gates, gate)
	}
	if layer.Spec.Cluster != nil {
		gates = append(gates, clusterGate(s, layer))
	}
	gates = append(gates, sourceGate(s, layer))
	if layer.Spec.Prereqs.K8sVersion != "" {
		gates = append(gates, kubernetesGate(s, layer))
	}
	gates = append(gates, dependencyGates(s, layer, map[string]bool{layer.Name: true}, depth)...)
	for _, wait := range hooks.Waits(layer, "") {
		gates = append(gates, waitForGate(layer, wait, live))
	}
	return gates
}

// clusterOf returns the RemoteCluster of a layer, or nil. Where a layer gives no
// namespace, which only the controller knows, the one cluster of that name is meant.
func clusterOf(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *v1alpha1.RemoteCluster {
	ref := layer.Spec.Cluster
	if ref == nil {
		return nil
	}
	if ref.Namespace != "" {
		return s.Cluster(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	}
	var found *v1alpha1.RemoteCluster
	for _, cluster := range s.Clusters {
		if cluster.Name == ref.Name {
			if found != nil {
				return nil
			}
			found = cluster
		}
	}
	return found
}

func clusterGate(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) Gate {
	ref := layer.Spec.Cluster
	gate := Gate{Kind: GateCluster, Wants: snapshot.Named(ref.Namespace, ref.Name), State: Unseen, Seen: "not looked up"}
	cluster := clusterOf(s, layer)
	if cluster == nil {
		if _, unread := s.Unread[snapshot.Clusters]; !unread {
			gate.State, gate.Seen = Closed, "there is no RemoteCluster of that name"
		}
		return gate
	}
	gate.Wants = snapshot.Named(cluster.Namespace, cluster.Name)
	found := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ReadyCondition)
	switch {
	case found == nil:
		gate.Seen = "the controller has not looked at it yet"
	case found.Status == "True":
		gate.State, gate.Seen = Open, strings.TrimSpace("ready "+cluster.Status.Version)
	default:
		gate.State, gate.Seen = Closed, found.Reason+": "+found.Message
	}
	return gate
}

// sourceObject returns the object that a layer comes from, or nil.
func sourceObject(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) *unstructured.Unstructured {
	ref := sources.Of(layer, "")
	if ref.Namespace != "" {
		return s.Objects[ref.ID()]
	}
	var found *unstructured.Unstructured
	for _, part := range snapshot.Sources {
		if part.Kind != ref.Kind {
			continue
		}
		for _, source := range s.Of(part) {
			if source.GetName() == ref.Name {
				if found != nil {
					return nil
				}
				found = source
			}
		}
	}
	return found
}

func sourceGate(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) Gate {
	ref := sources.Of(layer, "")
	gate := Gate{
		Kind:  GateSource,
		Wants: fmt.Sprintf("%s %s %s", ref.Kind, snapshot.Named(ref.Namespace, ref.Name), layer.Spec.Source.Path),
		State: Unseen,
		Seen:  "not looked up",
	}
	if sources.IsOfBundle(layer) {
		for _, bundle := range s.Bundles {
			if bundle.Name == ref.Name {
				gate.State, gate.Seen = Open, "exists"
			}
		}
		return gate
	}
	source := sourceObject(s, layer)
	if source == nil {
		for part := range s.Unread {
			if part.Kind == ref.Kind {
				return gate
			}
		}
		if ref.Namespace != "" {
			gate.State, gate.Seen = Closed, "there is none"
		}
		return gate
	}
	revision, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
	status, reason, message := snapshot.Ready(source)
	gate.Wants = fmt.Sprintf("%s %s %s", ref.Kind, snapshot.Named(source.GetNamespace(), ref.Name), layer.Spec.Source.Path)
	switch {
	case revision == "":
		gate.State, gate.Seen = Closed, strings.TrimSuffix("has nothing yet: "+message, ": ")
	case status == "False":
		gate.State, gate.Seen = Open, fmt.Sprintf("%s, and cannot be updated (%s): %s", revision, reason, message)
	default:
		gate.State, gate.Seen = Open, revision
	}
	return gate
}

// versionFor returns the version of Kubernetes of a layer's cluster; empty where
// it is not known.
func versionFor(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) string {
	if layer.Spec.Cluster == nil {
		return s.Version
	}
	if cluster := clusterOf(s, layer); cluster != nil {
		return cluster.Status.Version
	}
	return ""
}

func kubernetesGate(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) Gate {
	wanted, is := layer.Spec.Prereqs.K8sVersion, versionFor(s, layer)
	gate := Gate{Kind: GateKubernetes, Wants: wanted, State: Unseen, Seen: "the version of the cluster is not known"}
	satisfied, err := versions.KubernetesSatisfied(wanted, is)
	switch {
	case err != nil:
		gate.State, gate.Seen = Closed, err.Error()
	case is == "":
	case satisfied:
		gate.State, gate.Seen = Open, is
	default:
		gate.State, gate.Seen = Closed, is
	}
	return gate
}

// dependencyGates returns what a layer depends on, with what that depends on, to a
// depth: of each layer once, so that a circle ends and no graph makes an endless
// tree.
func dependencyGates(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer, told map[string]bool, depth int) []Gate {
	wanted, err := dependencies.ParseAll(layer.Spec.Prereqs.DependsOn)
	var gates []Gate
	if err != nil {
		gates = append(gates, Gate{Kind: GateDependency, Wants: "dependencies that can be understood", State: Closed, Seen: err.Error()})
	}
	for _, dependency := range wanted {
		other := s.Layer(dependency.Name)
		gate := Gate{Kind: GateDependency, Wants: dependency.String(), Layer: dependency.Name, State: Open}
		reason, seen := layers.Observation{
			Layer: layer, Now: s.Now, Layers: map[string]layers.Other{dependency.Name: {Layer: other}},
		}.Unmet(dependency)
		if reason != "" {
			gate.State, gate.Seen = Closed, seen
		} else if other != nil {
			gate.Seen = fmt.Sprintf("%s %s", other.Status.Version, other.Status.State)
		}
		if other != nil && !told[other.Name] && depth > 1 {
			told[other.Name] = true
			gate.Needs = dependencyGates(s, other, told, depth-1)
		}
		gates = append(gates, gate)
	}
	return gates
}

// waitForGate says whether an object is as it is waited for: by the object where
// it was read, and else by what the layer says.
func waitForGate(layer *v1alpha1.AddonsLayer, wait hooks.Wait, live *releases.Live) Gate {
	id, _, _ := wait.ID("")
	var object *unstructured.Unstructured
	if live != nil && layer.Spec.Cluster == nil {
		object = live.Objects[id]
		if bare := id; object == nil && wait.Defaulted {
			bare.Namespace = ""
			if object = live.Objects[bare]; object != nil {
				id = bare
			}
		}
	}
	gate := Gate{
		Kind:  GateWaitFor,
		Wants: fmt.Sprintf("%s %s %s", wait.Kind, snapshot.Named(id.Namespace, id.Name), wait.Wanted()),
		State: Unseen,
	}
	if object != nil {
		gate.State = Open
		switch unmet := wait.Unmet(object); {
		case unmet == "":
		case strings.HasSuffix(unmet, " "+wait.Condition):
			gate.State, gate.Seen = Closed, "is not so yet"
		default:
			gate.State, gate.Seen = Closed, unmet
		}
		return gate
	}
	if layer.Status.State == v1alpha1.StateDeployed && layer.Status.ObservedGeneration == layer.Generation {
		gate.State = Open
		return gate
	}
	for _, cause := range layer.Status.BlockedBy {
		if cause.Depth == 0 && cause.Kind == id.Kind && (cause.Namespace == id.Namespace || wait.Defaulted) && cause.Name == id.Name {
			gate.State, gate.Seen = Closed, cause.Message
		}
	}
	return gate
}
