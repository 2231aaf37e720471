// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package firstlayers

import (
	"strings"
	"testing"

	releasecommon "helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

var (
	settings = objects.ID{Kind: "ConfigMap", Namespace: "kube-system", Name: "settings"}
	plugin   = objects.ID{Group: kinds.HelmReleaseKind.Group, Kind: kinds.HelmReleaseKind.Kind, Namespace: "kube-system", Name: "plugin"}
	source   = objects.ID{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository", Namespace: "flux-system", Name: "addons"}
)

const identity = "kube-system/plugin"

var chart = Release{Chart: "plugin", Version: "1.0.0", Config: "sha256:0"}

func deployed(r Release) Release {
	r.Status = releasecommon.StatusDeployed
	return r
}

// wants is a folder with one first layer, of a ConfigMap and a release, and its source.
func wants(install bool) Wanted {
	w := Wanted{Install: install, Layers: []Layer{{
		Name:     "network",
		Objects:  []dependents.Dependent{{ID: settings}, {ID: plugin, Exclusive: identity}},
		Releases: map[objects.ID]Release{plugin: chart},
	}}}
	if install {
		w.Objects = []*unstructured.Unstructured{stub(source, "source.toolkit.fluxcd.io/v1"), stub(layerID("network"), v1alpha1.GroupVersion.String())}
	}
	return w
}

func stub(id objects.ID, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(id.Kind)
	object.SetNamespace(id.Namespace)
	object.SetName(id.Name)
	return object
}

func TestDecide(t *testing.T) {
	const (
		object   = "Create ConfigMap kube-system/settings of layer network"
		install  = "Install HelmRelease kube-system/plugin of layer network: plugin 1.0.0"
		upgrade  = "Upgrade HelmRelease kube-system/plugin of layer network: plugin 1.0.0"
		nodes    = "Await nodes: all of them are Ready"
		flux     = "Install Flux"
		handOver = "HandOver HelmRelease kube-system/plugin of layer network: it goes on as it runs"
		runs     = "Await Flux: its controllers run"
		strata   = "Install Strata"
		from     = "Create GitRepository flux-system/addons"
		layer    = "Create AddonsLayer network"
		await    = "Await layers: all of them are deployed"
	)
	// full is a cluster that has all but what a row takes away.
	full := func(change func(*Seen)) Seen {
		seen := Seen{
			NodesReady: true, Releases: map[string]Release{identity: deployed(chart)}, Managed: map[objects.ID]bool{plugin: true}, Flux: true, FluxReady: true, Strata: true,
			There: map[objects.ID]bool{settings: true, source: true, layerID("network"): true},
		}
		change(&seen)
		return seen
	}
	// before is one that has no layer yet.
	before := func(change func(*Seen)) Seen {
		return full(func(seen *Seen) {
			seen.There[layerID("network")], seen.Managed = false, nil
			change(seen)
		})
	}
	for name, row := range map[string]struct {
		wanted Wanted
		seen   Seen
		want   []string
	}{
		"a cluster that is yet to be made": {wants(true), Seen{}, []string{object, install, nodes, flux, handOver, runs, strata, from, layer, await}},
		"the first layers alone":           {wants(false), Seen{}, []string{object, install, nodes}},
		"all is there":                     {wants(true), full(func(*Seen) {}), nil},
		"a layer owns its release, whatever it is": {wants(true), full(func(seen *Seen) {
			seen.Releases[identity], seen.There[settings], seen.Managed = Release{Chart: "other", Status: releasecommon.StatusFailed}, false, nil
		}), nil},
		"killed before Flux": {
			wants(true), before(func(seen *Seen) {
				seen.Flux, seen.FluxReady, seen.Strata, seen.There[source] = false, false, false, false
			}),
			[]string{flux, handOver, runs, strata, from, layer, await},
		},
		"killed while Helm was at work": {wants(true), before(func(seen *Seen) {
			pending := chart
			pending.Status = releasecommon.StatusPendingInstall
			seen.Releases[identity] = pending
		}), []string{upgrade, handOver, layer, await}},
		"another version in the folder": {wants(true), before(func(seen *Seen) {
			seen.Releases[identity] = deployed(Release{Chart: "plugin", Version: "0.9.0", Config: chart.Config})
		}), []string{upgrade, handOver, layer, await}},
		"other values in the folder": {wants(true), before(func(seen *Seen) {
			seen.Releases[identity] = deployed(Release{Chart: "plugin", Version: "1.0.0", Config: "sha256:1"})
		}), []string{upgrade, handOver, layer, await}},
		"helm-controller has the release already": {wants(true), before(func(seen *Seen) {
			seen.Managed, seen.Releases = map[objects.ID]bool{plugin: true}, nil
		}), []string{layer, await}},
		"a node has gone from a cluster that is filled": {wants(true), full(func(seen *Seen) { seen.NodesReady = false }), nil},
		"a layer is not deployed yet":                   {wants(true), full(func(seen *Seen) { seen.Undeployed = true }), []string{await}},
	} {
		var got []string
		for _, step := range StepsOf(Decide(row.wanted, row.seen)) {
			got = append(got, step.String())
		}
		if strings.Join(got, "\n") != strings.Join(row.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// An object comes after what it needs, whatever the order in which a directory lists them.
func TestInOrder(t *testing.T) {
	id := func(name string) objects.ID { return objects.ID{Name: name} }
	listed := []dependents.Dependent{
		{ID: id("c"), Stage: 2, DependsOn: []objects.ID{id("b")}},
		{ID: id("left out"), Stage: 0},
		{ID: id("b"), Stage: 2, DependsOn: []objects.ID{id("a"), id("left out")}},
		{ID: id("a"), Stage: 2},
		{ID: id("first"), Stage: 1},
	}
	var got []string
	for _, each := range inOrder(listed, func(d dependents.Dependent) bool { return d.ID.Name != "left out" }) {
		got = append(got, each.ID.Name)
	}
	if text := strings.Join(got, " "); text != "first a b c" {
		t.Error(text)
	}
}
