// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundles says what is in ApplicationBundles and where these are, how clusters
// get from one version to another, and what differs between two. It may import fleet
// and applications, and the rules of the controller; it reads nothing but what it is
// given.
package bundles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/applications"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/platforms"
)

// Bundle is a version of a set of applications.
type Bundle struct {
	Name         string       `json:"name"`
	Family       string       `json:"family"`
	Version      string       `json:"version"`
	Description  string       `json:"description"`
	KubeVersion  string       `json:"kubeVersion"`
	UpgradesFrom []string     `json:"upgradesFrom"`
	EndOfLife    *metav1.Time `json:"endOfLife"`
	Ended        bool         `json:"ended"`
	Preview      bool         `json:"preview"`
	Withdrawn    string       `json:"withdrawn"`
	// Problems say why it cannot be installed.
	Problems []string `json:"problems"`
	// Platform that it was made for; empty for one that somebody has published.
	Platform string  `json:"platform"`
	Inputs   []Input `json:"inputs"`
	// Layers in the order in which they are deployed.
	Layers []Layer `json:"layers"`
	// Installed says where layers of it are.
	Installed []Installation `json:"installed"`
}

// Input is what whoever installs a bundle decides.
type Input struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Default  string   `json:"default"`
	Enum     []string `json:"enum"`
	// Schema of its values as JSON; empty where it has none.
	Schema      string `json:"schema,omitempty"`
	Description string `json:"description"`
}

// Layer is a layer of a bundle.
type Layer struct {
	Name      string   `json:"name"`
	DependsOn []string `json:"dependsOn"`
	When      string   `json:"when"`
	// On is the layer whose cluster it goes to.
	On string `json:"onClusterOf"`
	// Holds says what it is made of where that is not applications.
	Holds        string   `json:"holds"`
	Applications []App    `json:"applications"`
	Hooks        []string `json:"hooks"`
}

// App is an application of a layer.
type App struct {
	Name        string   `json:"name"`
	Application string   `json:"application"`
	Version     string   `json:"version"`
	Chart       string   `json:"chart"`
	DependsOn   []string `json:"dependsOn"`
	// When it is there; empty for always.
	When string `json:"when,omitempty"`
	// ForEach is the list for whose items it is there; empty for once.
	ForEach string `json:"forEach,omitempty"`
	// Note says what is to be known of the version: that it is withdrawn, past its
	// end of life, or not in the catalogue.
	Note string `json:"note"`
}

// Installation is a cluster that has layers of a bundle.
type Installation struct {
	// Platform that has put them there; empty for layers that somebody wrote.
	Platform string `json:"platform"`
	Cluster  string `json:"cluster"`
	Deployed int    `json:"deployed"`
	Layers   int    `json:"layers"`
}

// All returns all bundles, by family and version, the newest first. Those made
// for Platforms come last.
func All(w fleet.World) []Bundle {
	all := make([]Bundle, 0, len(w.Bundles))
	for _, bundle := range w.Bundles {
		all = append(all, Of(w, bundle))
	}
	slices.SortFunc(all, func(a, b Bundle) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Family, b.Family), fleet.Compare(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Of says what is in a bundle, and where it is.
func Of(w fleet.World, of *v1alpha1.ApplicationBundle) Bundle {
	spec := of.Spec
	b := Bundle{
		Name: of.Name, Family: spec.Family, Version: spec.Version, Description: spec.Description, KubeVersion: spec.KubeVersion,
		UpgradesFrom: append([]string{}, spec.UpgradesFrom...), EndOfLife: spec.EndOfLife, Ended: fleet.Ended(spec.EndOfLife, w.Now),
		Preview: spec.Preview, Withdrawn: spec.Withdrawn, Platform: of.Labels[v1alpha1.PlatformLabel],
		Problems: append([]string{}, bundles.Decide(bundles.Observation{Now: w.Now, Bundle: of, Catalogue: w.Catalogue()}).Status.Problems...),
		Inputs:   []Input{}, Layers: []Layer{}, Installed: installed(w, of.Name),
	}
	for _, input := range spec.Inputs {
		one := Input{
			Name: input.Name, Type: cmp.Or(string(input.Type), string(v1alpha1.InputString)), Required: input.Required,
			Enum: append([]string{}, input.Enum...), Description: input.Description,
		}
		if input.Default != nil {
			one.Default = string(input.Default.Raw)
		}
		if input.Schema != nil {
			one.Schema = string(input.Schema.Raw)
		}
		b.Inputs = append(b.Inputs, one)
	}
	for _, name := range platforms.Order(of) {
		b.Layers = append(b.Layers, layerOf(w, bundles.LayerOf(of, name)))
	}
	return b
}

func layerOf(w fleet.World, of *v1alpha1.BundleLayer) Layer {
	l := Layer{
		Name: of.Name, DependsOn: sortedCopy(of.DependsOn), When: of.When, On: of.On, Holds: holds(of), Applications: []App{}, Hooks: hooks(of),
	}
	for _, app := range of.Applications {
		one := App{
			Name: app.Name, Application: cmp.Or(app.Application, app.Name), Version: app.Version,
			DependsOn: sortedCopy(app.DependsOn), When: app.When, ForEach: app.ForEach,
		}
		if version := w.VersionOf(app); version != nil {
			one.Chart, one.Note = applications.ChartOf(version), applications.Note(w, version)
		} else {
			one.Note = "is not in the catalogue"
		}
		l.Applications = append(l.Applications, one)
	}
	return l
}

// holds says what a layer is made of that has no applications.
func holds(of *v1alpha1.BundleLayer) string {
	switch {
	case len(of.Objects) == 1:
		return "1 object"
	case len(of.Objects) > 1:
		return fmt.Sprintf("%d objects", len(of.Objects))
	case of.RemoteCluster != nil:
		return fmt.Sprintf("a cluster, by Secret %s/%s", of.RemoteCluster.KubeConfig.SecretRef.Namespace, of.RemoteCluster.KubeConfig.SecretRef.Name)
	case of.Source != nil:
		return fmt.Sprintf("%s %s of %s %s", "directory", cmp.Or(of.Source.Path, "./"), cmp.Or(of.Source.Kind, "GitRepository"), of.Source.Name)
	}
	return ""
}

// hooks says in words what a layer has of waitFor, deleteBefore, job and teardown.
func hooks(of *v1alpha1.BundleLayer) []string {
	found := []string{}
	for _, wait := range of.WaitFor {
		found = append(found, "waits for "+wait.Kind+" "+strings.TrimPrefix(wait.Namespace+"/"+wait.Name, "/"))
	}
	if of.Job != nil {
		found = append(found, "runs job "+of.Job.Namespace+"/"+of.Job.Name)
	}
	for _, before := range of.DeleteBefore {
		found = append(found, strings.TrimSpace("deletes each "+before.Kind+" "+before.Where)+" first")
	}
	if of.TeardownAfter != nil {
		found = append(found, "goes after "+cmp.Or(strings.Join(sortedCopy(of.TeardownAfter), ", "), "nothing"))
	}
	return found
}

// installed says which clusters have layers of a bundle.
func installed(w fleet.World, bundle string) []Installation {
	found := []Installation{}
	for _, layer := range w.Layers {
		if layer.Spec.Source.Kind != v1alpha1.ApplicationBundleKind || layer.Spec.Source.Name != bundle {
			continue
		}
		on := Installation{Platform: layer.Labels[v1alpha1.PlatformLabel], Cluster: w.ClusterOf(layer)}
		at := slices.IndexFunc(found, func(i Installation) bool { return i.Platform == on.Platform && i.Cluster == on.Cluster })
		if at < 0 {
			at = len(found)
			found = append(found, on)
		}
		found[at].Layers++
		if layer.Status.State == v1alpha1.StateDeployed && layer.Status.Version == layer.Spec.Version && layer.Status.ObservedGeneration == layer.Generation {
			found[at].Deployed++
		}
	}
	slices.SortFunc(found, func(a, b Installation) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Cluster, b.Cluster))
	})
	return found
}

// Note says what there is to know of a bundle: what is wrong with it first.
func (b Bundle) Note() string {
	var notes []string
	if b.Withdrawn != "" {
		notes = append(notes, "withdrawn: "+b.Withdrawn)
	}
	if len(b.Problems) > 0 {
		notes = append(notes, b.Problems[0])
	}
	if b.Ended {
		notes = append(notes, "past its end of life")
	}
	if b.Preview {
		notes = append(notes, "preview")
	}
	if b.Platform != "" {
		notes = append(notes, "made for Platform "+b.Platform)
	}
	return strings.Join(notes, "; ")
}

func sortedCopy(texts []string) []string {
	copied := append([]string{}, texts...)
	slices.Sort(copied)
	return copied
}
