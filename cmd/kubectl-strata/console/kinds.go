// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/near"
)

// Kind is how the plug-in speaks of a kind of object.
type Kind struct {
	// Resource is what the API server calls the kind.
	Resource schema.GroupVersionResource
	// Noun is what people call one.
	Noun string
	// Plural is what people call several.
	Plural string
	// Command shows them all.
	Command string
	// Unknown says what to do about a cluster that does not know the kind.
	Unknown string
	// Instead says what to do where a word that is no name stands for another kind.
	Instead map[string]string
}

const othersAreClusters = "kubectl strata clusters shows RemoteClusters"

// Layers is the kind of AddonsLayers.
var Layers = Kind{
	Resource: snapshot.Layers.GroupVersionResource,
	Noun:     "layer",
	Plural:   "layers",
	Command:  "kubectl strata get",
	Unknown:  "this cluster has no Strata, for it knows no AddonsLayers; install the chart (docs/install.md), or choose another cluster with --context",
	Instead: map[string]string{
		"cluster":        othersAreClusters,
		"clusters":       othersAreClusters,
		"remotecluster":  othersAreClusters,
		"remoteclusters": othersAreClusters,
	},
}

// Clusters is the kind of RemoteClusters.
var Clusters = ownKind(snapshot.Clusters, "RemoteCluster", "kubectl strata clusters")

// kinds are those that commands name in what they say.
var kinds = map[snapshot.Part]Kind{
	snapshot.Layers:       Layers,
	snapshot.Clusters:     Clusters,
	snapshot.Applications: ownKind(snapshot.Applications, "HelmApplication", "kubectl strata app list"),
	snapshot.Bundles:      ownKind(snapshot.Bundles, "ApplicationBundle", "kubectl strata bundle list"),
	snapshot.Platforms:    ownKind(snapshot.Platforms, "Platform", "kubectl strata platform list"),
	snapshot.Providers:    ownKind(snapshot.Providers, "CapabilityProvider", "kubectl strata capability list"),
	snapshot.Claims:       ownKind(snapshot.Claims, "CapabilityClaim", "kubectl strata capability claims"),
	snapshot.Kustomizations: {
		Resource: snapshot.Kustomizations.GroupVersionResource, Noun: "Kustomization", Plural: "Kustomizations",
		Command: "kubectl get kustomizations.kustomize.toolkit.fluxcd.io --all-namespaces",
		Unknown: "this cluster has no Kustomizations of Flux; name a repository with --from-dir, or choose another cluster with --context",
	},
}

func ownKind(part snapshot.Part, noun, command string) Kind {
	return Kind{
		Resource: part.GroupVersionResource,
		Noun:     noun,
		Plural:   noun + "s",
		Command:  command,
		Unknown: fmt.Sprintf(
			"this cluster has no Strata that knows %ss; install or upgrade the chart (docs/install.md), or choose another cluster with --context",
			noun,
		),
	}
}

// MissingError is an object that does not exist.
type MissingError struct {
	Kind Kind
	// Wanted is what somebody has written.
	Wanted string
	// Near are names that may be meant.
	Near []string
	// Cause is the API server's answer, or nil.
	Cause error
}

// Error suggests what may have been meant.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("there is no %s %s; ", e.Kind.Noun, e.Wanted)
	switch {
	case len(e.Near) > 0:
		return text + fmt.Sprintf("did you mean %s?", strings.Join(e.Near, " or "))
	case e.Kind.Instead[e.Wanted] != "":
		return text + e.Kind.Instead[e.Wanted]
	}
	return text + e.Kind.Command + " lists those there are"
}

// Unwrap returns the API server's answer.
func (e *MissingError) Unwrap() error { return e.Cause }

// NoSuch says that an object does not exist, and which one of names may be meant.
func NoSuch(part snapshot.Part, name string, names []string) error {
	return &MissingError{Kind: kinds[part], Wanted: name, Near: near.Near(name, names)}
}

// NoLayer says that there is no such layer, and which one may be meant.
func NoLayer(s *snapshot.Snapshot, name string) error {
	return NoSuch(snapshot.Layers, name, s.LayerNames())
}
