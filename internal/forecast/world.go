// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// World is what layers are decided from. Nothing of it is changed.
type World struct {
	Now      time.Time
	Settings layers.Settings
	// Version of the API server.
	Version string
	// Layers with the specification that is planned, and the status that they have.
	// A specification that differs from what the status speaks of has a generation
	// of its own; a layer with a deletionTimestamp goes.
	Layers []*v1alpha1.AddonsLayer
	// Contents says by the names of layers what they would list.
	Contents map[string]Content
	Clusters []*v1alpha1.RemoteCluster
	// Owned says what the name of an object is kept for by owners that exist; empty for
	// nothing. Nil knows of none.
	Owned func(objects.ID) string
	// Objects on the cluster, and those of others that are taken to be there.
	Objects map[objects.ID]*unstructured.Unstructured
	// Scopes of kinds, their plural names, and versions that are not served.
	Scopes    map[objects.ServedKind]objects.Scope
	Resources map[objects.ServedKind]string
	Unserved  map[objects.ServedVersion]bool
	// Brings says which kinds are served once a release is there, because its chart
	// defines them.
	Brings map[objects.ID][]Definition
	// Failing says of releases that cannot become ready as they would be written why
	// they cannot.
	Failing map[objects.ID]string
	// Volumes says by the names of layers which claims for volumes belong to releases that
	// Flux would install anew.
	Volumes map[string][]layers.Blocker
	// Complete fills in what the API server fills in where an object leaves it out;
	// nil for nothing.
	Complete func(*unstructured.Unstructured)
	// Refuses says what the API server would refuse of an object; nil for nothing.
	Refuses func(*unstructured.Unstructured) error
	// Horizon is how long what goes on by itself is waited for; 0 means
	// DefaultHorizon.
	Horizon time.Duration
}

// Definition is a kind that something brings.
type Definition struct {
	objects.ServedVersion
	Scope objects.Scope
}

// Content is what a layer would list.
type Content struct {
	// Source of the layer; nil where there is none.
	Source *layers.Source
	// Directory on the layer's cluster; nil where it cannot be read, and then Err
	// says why.
	Directory *directories.Directory
	Err       error
	// Unread is what there is of a directory with a mistake; nil where that is not known.
	Unread *directories.Unread
	// Deployed is what is deployed, where it is known and is not Directory.
	Deployed *directories.Directory
	// Restored is what the layer goes back to; nil where it cannot be read, and
	// then RestoreError says why.
	Restored     *directories.Directory
	RestoreError string
	// Before is what the layer lists at the version of a bundle that this one is entered
	// from.
	Before *directories.Directory
	// Fixed is true for a layer that stays as it is: it is not looked at, and lists
	// what its status does.
	Fixed bool
}

// mentions searches what cannot be read.
func (c Content) mentions(names []string) directories.Mentions {
	if c.Unread == nil {
		return directories.Mentions{Unknown: "it is not known what it lists"}
	}
	return c.Unread.Find(names)
}

// NameInScope names what directories list as the cluster does, once Scopes are known: without
// a namespace where the kind has none.
func (w *World) NameInScope() {
	for name, content := range w.Contents {
		for _, directory := range []**directories.Directory{&content.Directory, &content.Deployed, &content.Restored, &content.Before} {
			*directory = layers.InScope(*directory, w.Scopes)
		}
		w.Contents[name] = content
	}
}
