// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade says which layers are ready for another version of Kubernetes,
// and why others are not. It reads nothing but what it is given.
package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/charts"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/sources"
	"github.com/strata-project/strata/internal/versions"
)

// Verdicts of a report, a layer and a reason, which is never Yes.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Report says of layers whether they are ready.
type Report struct {
	// Kubernetes is the version that was asked for.
	Kubernetes string `json:"kubernetes"`
	// Upgrade is yes, no where one of the layers says no, and otherwise unknown where
	// one does not know.
	Upgrade string `json:"upgrade"`
	// Layers are sorted by name.
	Layers []Layer `json:"layers"`
}

// Layer says of one layer whether it is ready.
type Layer struct {
	Name string `json:"name"`
	// Cluster is the RemoteCluster that the layer belongs on; empty for the cluster
	// that Strata runs in.
	Cluster string `json:"cluster,omitempty"`
	Upgrade string `json:"upgrade"`
	// Reasons why it is not yes, those for no first.
	Reasons []Reason `json:"reasons"`
}

// Reason is why a layer is not ready, or why that is not known.
type Reason struct {
	Upgrade string `json:"upgrade"`
	// Release is the HelmRelease that it is about, as namespace/name; empty where it
	// is about the layer.
	Release string `json:"release,omitempty"`
	// Object and APIVersion are what is not served any more, where that is it.
	Object     string `json:"object,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	// Replacement is group/version/kind of what takes its place.
	Replacement string `json:"replacement,omitempty"`
	Message     string `json:"message"`
}

// Input is what a report is made of.
type Input struct {
	// Kubernetes is the version that is asked for, such as 1.37.
	Kubernetes string
	// Layers that are asked for.
	Layers       []*v1alpha1.AddonsLayer
	Bundles      []*v1alpha1.ApplicationBundle
	Applications []*v1alpha1.HelmApplication
	// Unread says of kinds, by their names, why their objects could not be read.
	Unread map[string]string
	// Releases are the HelmReleases of the layers.
	Releases map[objects.ID]Release
}

// Release is what is known of a HelmRelease.
type Release struct {
	// Chart is its name and version, as deployed; empty where it is not known.
	Chart string
	// Rendered holds what the chart renders that is not served, and Live what the
	// release has in the cluster, as Helm remembers it.
	Rendered, Live []charts.RemovedAPI
	// Problem says why the chart cannot be rendered for the version; empty where it
	// can.
	Problem string
	// Refuses is true where that is because of the version.
	Refuses bool
}

// ReleasesOf returns the HelmReleases that layers have, sorted.
func ReleasesOf(all ...*v1alpha1.AddonsLayer) []objects.ID {
	var ids []objects.ID
	for _, layer := range all {
		for _, resource := range layer.Status.Resources {
			kind := kinds.ParseResourceKind(resource.Kind)
			if kind != kinds.HelmReleaseKind || resource.Status == objects.StatusDeleting {
				continue
			}
			ids = append(ids, objects.ID{Cluster: resource.Cluster, Group: kind.Group, Kind: kind.Kind, Namespace: resource.Namespace, Name: resource.Name})
		}
	}
	return slices.Compact(objects.SortIDs(ids))
}

// Of returns the report.
func Of(in Input) Report {
	report := Report{Kubernetes: in.Kubernetes, Upgrade: Yes, Layers: []Layer{}}
	for _, layer := range in.Layers {
		ready := Layer{Name: layer.Name, Cluster: placement.ClusterName(placement.Of(layer, "")), Upgrade: Yes, Reasons: []Reason{}}
		ready.Cluster = strings.TrimPrefix(ready.Cluster, "/")
		ready.Reasons = append(ready.Reasons, in.ranges(layer)...)
		for _, id := range ReleasesOf(layer) {
			ready.Reasons = append(ready.Reasons, in.release(id)...)
		}
		slices.SortStableFunc(ready.Reasons, func(a, b Reason) int { return rank(b.Upgrade) - rank(a.Upgrade) })
		for _, reason := range ready.Reasons {
			ready.Upgrade = worse(ready.Upgrade, reason.Upgrade)
		}
		report.Upgrade = worse(report.Upgrade, ready.Upgrade)
		report.Layers = append(report.Layers, ready)
	}
	slices.SortFunc(report.Layers, func(a, b Layer) int { return strings.Compare(a.Name, b.Name) })
	return report
}

func rank(verdict string) int { return slices.Index([]string{Yes, Unknown, No}, verdict) }

func worse(a, b string) string {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// ranges compares the version with what a layer, its bundle and its applications
// say they are for.
func (in Input) ranges(layer *v1alpha1.AddonsLayer) []Reason {
	reasons := in.within("its prereqs.k8sVersion", layer.Spec.Prereqs.K8sVersion)
	if !sources.IsOfBundle(layer) {
		return reasons
	}
	name := layer.Spec.Source.Name
	at := slices.IndexFunc(in.Bundles, func(bundle *v1alpha1.ApplicationBundle) bool { return bundle.Name == name })
	if at < 0 {
		return append(reasons, in.lacking(v1alpha1.ApplicationBundleKind, name))
	}
	bundle := in.Bundles[at]
	reasons = append(reasons, in.within("ApplicationBundle "+name, bundle.Spec.KubeVersion)...)
	of := bundles.LayerAt(bundle, layer.Spec.Source.Path)
	if of == nil {
		return append(reasons, Reason{Upgrade: Unknown, Message: fmt.Sprintf("ApplicationBundle %s has no layer %s", name, layer.Spec.Source.Path)})
	}
	for _, application := range of.Applications {
		reasons = append(reasons, in.application(application)...)
	}
	return reasons
}

func (in Input) application(wanted v1alpha1.BundleApplication) []Reason {
	if wanted.Chart != nil {
		return nil // Its chart is rendered with all others.
	}
	name := bundles.ApplicationName(wanted)
	at := slices.IndexFunc(in.Applications, func(app *v1alpha1.HelmApplication) bool { return app.Name == name })
	if at < 0 {
		return []Reason{in.lacking(v1alpha1.HelmApplicationKind, name)}
	}
	version := catalogue.VersionOf(in.Applications[at], wanted.Version)
	if version == nil {
		return []Reason{{Upgrade: Unknown, Message: fmt.Sprintf("HelmApplication %s has no version %s", name, wanted.Version)}}
	}
	return in.within(fmt.Sprintf("HelmApplication %s %s", name, wanted.Version), version.KubeVersion)
}

func (in Input) lacking(kind, name string) Reason {
	if why := in.Unread[kind]; why != "" {
		return Reason{Upgrade: Unknown, Message: fmt.Sprintf("what %s %s is for is not known: %s", kind, name, why)}
	}
	return Reason{Upgrade: Unknown, Message: fmt.Sprintf("there is no %s %s, which says what the layer is for", kind, name)}
}

// within compares the version with a range.
func (in Input) within(what, wanted string) []Reason {
	satisfied, err := versions.KubernetesSatisfied(wanted, in.Kubernetes)
	switch {
	case err != nil:
		return []Reason{{Upgrade: Unknown, Message: fmt.Sprintf("%s cannot be understood: %v", what, err)}}
	case !satisfied:
		return []Reason{{Upgrade: No, Message: fmt.Sprintf("%s is for Kubernetes %s", what, wanted)}}
	}
	return nil
}

// release says what is wrong with a release. What the chart renders counts before
// what there is: an object that is in both is named once.
func (in Input) release(id objects.ID) []Reason {
	name := id.Key().String()
	release, found := in.Releases[id]
	if !found {
		why := cmp.Or(in.Unread[id.Kind], "it is not there")
		return []Reason{{Upgrade: Unknown, Release: name, Message: fmt.Sprintf("%s cannot be looked at: %s", id, why)}}
	}
	what := id.String()
	if release.Chart != "" {
		what += " (chart " + release.Chart + ")"
	}
	var reasons []Reason
	if release.Problem != "" {
		verdict := Unknown
		if release.Refuses {
			verdict = No
		}
		reasons = append(reasons, Reason{Upgrade: verdict, Release: name, Message: id.String() + ": " + release.Problem})
	}
	isOf := func(all []charts.RemovedAPI, one charts.RemovedAPI) bool {
		return slices.ContainsFunc(all, func(other charts.RemovedAPI) bool { return other.ID == one.ID && other.APIVersion == one.APIVersion })
	}
	for _, removed := range release.Rendered {
		if isOf(release.Live, removed) {
			reasons = append(reasons, reasonOf(removed, name, what+" renders, and is deployed with,", stuck))
			continue
		}
		reasons = append(reasons, reasonOf(removed, name, what+" renders", ""))
	}
	for _, removed := range release.Live {
		if !isOf(release.Rendered, removed) {
			reasons = append(reasons, reasonOf(removed, name, what+" is deployed with", stuck))
		}
	}
	return reasons
}

// stuck is what becomes of a release that is deployed with what is removed: Helm
// looks up all that it has applied before it applies anything else.
const stuck = ": upgrade it to a chart without that before, because Helm cannot do so afterwards"

func reasonOf(removed charts.RemovedAPI, release, what, then string) Reason {
	message := fmt.Sprintf("%s %s at %s, which ", what, removed.ID, removed.APIVersion)
	switch {
	case removed.RemovedIn != "":
		message += "Kubernetes " + removed.RemovedIn + " has removed"
	case removed.IntroducedIn != "":
		message += "Kubernetes has not before " + removed.IntroducedIn
	default:
		message += "Kubernetes does not have any more"
	}
	if removed.Replacement != "" {
		message += " (it is " + removed.Replacement + " now)"
	}
	return Reason{
		Upgrade: No, Release: release, Object: removed.ID.String(), APIVersion: removed.APIVersion, Replacement: removed.Replacement, Message: message + then,
	}
}
