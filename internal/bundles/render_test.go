// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/placement"
)

func TestApplicationsOfALayer(t *testing.T) {
	bundle := loadBundle(t)
	for path, want := range map[string][]string{
		"./apps": {"podinfo", "tool"}, "./network/": {"cilium"}, "./objects": nil, "./none": nil,
	} {
		if diff := cmp.Diff(want, Applications(bundle, path)); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", path, diff)
		}
	}
	if diff := cmp.Diff([]string{"cilium", "podinfo", "tool"}, Named(bundle)); diff != "" {
		t.Errorf("the bundle names (-want +got):\n%s", diff)
	}
	if got := Applications(nil, "./apps"); got != nil {
		t.Errorf("no bundle reads %v", got)
	}
}

// What cannot be rendered says where and why, and never comes half filled.
func TestRenderRefuses(t *testing.T) {
	application := func(change func(*v1alpha1.BundleApplication)) func(*Request) {
		return func(r *Request) { change(&r.Bundle.Spec.Layers[0].Applications[0]) }
	}
	values := func(raw string) func(*Request) {
		return application(func(a *v1alpha1.BundleApplication) { a.Values = rawJSON(raw) })
	}
	object := func(raw string) func(*Request) {
		return func(r *Request) {
			r.Path = "./objects"
			r.Bundle.Spec.Layers[2].Objects[1] = v1alpha1.Manifest{JSON: *rawJSON(raw)}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*Request)
		want   string
		// waits is true where it may come by itself.
		waits bool
	}{
		"no bundle": {
			"it may be made", func(r *Request) { r.Bundle = nil },
			"waits for its ApplicationBundle, which does not exist", true,
		},
		"no layer": {
			"a bundle's layers never change", func(r *Request) { r.Path = "./mesh" },
			"ApplicationBundle web-1: has no layer \"./mesh\": spec.source.path must be ./ and the name of one, such as ./network", false,
		},
		"a changed bundle": {
			"what is published never changes", func(r *Request) { r.Bundle.Status.Digest = "sha256:other" },
			"ApplicationBundle web-1: was published with other content", false,
		},
		"no application": {
			"it may be added", func(r *Request) { delete(r.Applications, "cilium") },
			"waits for HelmApplication cilium, which does not exist", true,
		},
		"no version": {
			"it may be added", application(func(a *v1alpha1.BundleApplication) { a.Version = "1.17.0" }),
			"waits for version 1.17.0 of HelmApplication cilium, which it does not have", true,
		},
		"a changed version": {
			"nobody has tested that", func(r *Request) {
				r.Applications["cilium"].Status.Published = []v1alpha1.PublishedVersion{{Version: "1.16.1", Digest: "sha256:other"}}
			},
			"HelmApplication cilium: versions[1.16.1]: was published with other content", false,
		},
		"no endpoint": {
			"the cluster may come up", func(r *Request) { r.Cluster.Endpoint = "" },
			"waits for the host of RemoteCluster fleet/prod, which is not known yet", true,
		},
		"no version of a cluster": {
			"the cluster may answer", func(r *Request) {
				r.Cluster = Cluster{}
				values(`{"v": "${cluster.version}"}`)(r)
			},
			"waits for the version of the cluster that Strata runs in, which is not known yet", true,
		},
		"all of a cluster": {
			"something of it is not known", func(r *Request) {
				r.Cluster.Version = ""
				values(`{"v": "${cluster}"}`)(r)
			},
			"waits for the version of RemoteCluster fleet/prod", true,
		},
		"a source": {
			"it is a directory already", func(r *Request) { r.Path = "./innermost" },
			"ApplicationBundle web-1: layers[innermost].source: is a directory of its own", false,
		},
		"an unknown input": {
			"the path says where", values(`{"a": {"b": ["x", "${inputs.nothing}"]}}`),
			"ApplicationBundle web-1: layers[network].applications[cilium].values.a.b[1]: ${inputs.nothing}: there is no nothing", false,
		},
		"a broken template": {
			"as soon as it is used", values(`{"a": "${inputs."}`),
			"ApplicationBundle web-1: layers[network].applications[cilium].values.a: ", false,
		},
		"an object where a text must be": {
			"it has no text", values(`{"a": "x${inputs}"}`),
			"values.a: ${inputs} is an object", false,
		},
		"values that are none": {
			"they are fields", values(`["a"]`),
			"layers[network].applications[cilium].values: is an Array, and must be an Object", false,
		},
		"too much": {
			"a bundle cannot take all memory", values(`{"a": "${[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, 'xxxxxxxxxxxxxxxxxxxx'))))}"}`),
			"layers[network].applications[cilium].values.a: ", false,
		},
		"a namespace that is none": {
			"whoever gives the input sees why", application(func(a *v1alpha1.BundleApplication) { a.Namespace = "${inputs.domain}/x" }),
			"layers[network].applications[cilium].namespace: \"example.com/x\" is not the name of a namespace", false,
		},
		"a namespace that is null": {
			"it must be a text", application(func(a *v1alpha1.BundleApplication) { a.Namespace = "${inputs.pool}" }),
			"layers[network].applications[cilium].namespace: ${inputs.pool} is null", false,
		},
		"a release name that is too long": {
			"Helm would refuse it", application(func(a *v1alpha1.BundleApplication) { a.ReleaseName = strings.Repeat("x", 54) }),
			"applications[cilium].releaseName: \"xxx", false,
		},
		"a parameter": {
			"its name is no path", application(func(a *v1alpha1.BundleApplication) {
				a.Parameters = []v1alpha1.Parameter{{Name: "a[x]", Value: "1"}}
			}),
			"applications[cilium].parameters[a[x]]: \"a[x]\" cannot be set", false,
		},
		"a parameter below a text": {
			"a text has no fields", application(func(a *v1alpha1.BundleApplication) {
				a.Parameters = []v1alpha1.Parameter{{Name: "tag.name", Value: "1"}}
			}),
			"applications[cilium].parameters[tag.name]: \"tag.name\" cannot be set", false,
		},
		"another application": {
			"a layer knows its own only", application(func(a *v1alpha1.BundleApplication) { a.DependsOn = []string{"podinfo"} }),
			"layers[network].applications[cilium].dependsOn: the layer has no application podinfo", false,
		},
		"inputs of another shape": {
			"they are fields", func(r *Request) { r.Inputs = rawJSON("[1]") },
			"spec.inputs: is an Array", false,
		},
		"inputs that do not fit": {
			"all of it is said at once", func(r *Request) { r.Inputs = rawJSON(`{"replicas": "three", "size": 1}`) },
			"spec.inputs: input replicas is the String \"three\", and must be of the type Integer; input domain is required, and has no value; there is no input size: there are domain, pool, replicas, secret, zones", false,
		},
		"an object without a name": {
			"nothing could be applied", object(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}`),
			"ApplicationBundle web-1: layers[objects].objects[1].metadata.name: is missing", false,
		},
		"an object with a label that is no text": {
			"the cluster would refuse it", object(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"n": "${inputs.replicas}"}}}`),
			"layers[objects].objects[1].metadata.labels[n]: must be a text, and is the Number 3", false,
		},
		"an object with an owner": {
			"owners are of one cluster", object(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "ownerReferences": []}}`),
			"layers[objects].objects[1].metadata.ownerReferences: is not for objects that are applied", false,
		},
		"an object twice": {
			"which one would it be", object(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config-prod", "namespace": "default"}}`),
			"ApplicationBundle web-1 layers[objects].objects[1]: lists ConfigMap default/config-prod, which ApplicationBundle web-1 layers[objects].objects[0] lists too", false,
		},
		"an object that is a text": {
			"it has no fields", object(`"x"`), "layers[objects].objects[1]: is the String \"x\", and must be an Object", false,
		},
		"a cluster that is known too late": {
			"where its Secret is must be known before", func(r *Request) {
				r.Path = "./tenant"
				r.Bundle.Spec.Layers[3].RemoteCluster.KubeConfig.SecretRef.Name = "${cluster.name}"
			},
			"layers[tenant].remoteCluster.kubeConfig.secretRef.name: ${cluster.name} is no expression of CEL", false,
		},
		"one namespace with two labels": {
			"it can have one of them", func(r *Request) {
				r.Path = "./apps"
				other := *r.Applications["podinfo"].Spec.Versions[0].DeepCopy()
				other.Namespace.Labels["team"] = "other"
				other.Version = "7.0.0"
				r.Applications["podinfo"].Spec.Versions = append(r.Applications["podinfo"].Spec.Versions, other)
				r.Bundle.Spec.Layers[1].Applications[1].Version = "7.0.0"
			},
			"layers[apps].applications[podinfo2].namespace: namespace podinfo would get two values of team", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := requestOf(t, "network")
			tc.change(&request)
			manifests, err := Render(request)
			if err == nil {
				t.Fatalf("it renders %s: %s", written(t, manifests), tc.reason)
			}
			if !strings.Contains(err.Error(), tc.want) || manifests != nil {
				t.Errorf("it says %q, want %q: %s", err, tc.want, tc.reason)
			}
			var waiting *Waiting
			var content *directories.ContentError
			if errors.As(err, &waiting) != tc.waits || errors.As(err, &content) == tc.waits {
				t.Errorf("%T: %s", err, tc.reason)
			}
		})
	}
}

func namesOf(manifests []directories.Manifest, kind string) []string {
	var names []string
	for _, m := range manifests {
		if m.Object.GetKind() == kind {
			names = append(names, m.Object.GetNamespace()+"/"+m.Object.GetName())
		}
	}
	return names
}

// A Ready of another version must not be taken for this one's: whatever chart
// changes, the specification of the release does.
func TestEveryChartIsAnotherRelease(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.HelmApplication){
		"tag":    func(a *v1alpha1.HelmApplication) { a.Spec.Versions[0].Chart.OCI.Tag = "6.5.1" },
		"digest": func(a *v1alpha1.HelmApplication) { a.Spec.Versions[0].Chart.OCI.Digest = "sha256:0" },
		"url":    func(a *v1alpha1.HelmApplication) { a.Spec.Versions[0].Chart.OCI.URL += "2" },
		"secret": func(a *v1alpha1.HelmApplication) { a.Spec.Versions[0].Chart.OCI.SecretRef = nil },
	} {
		t.Run(name, func(t *testing.T) {
			request := requestOf(t, "apps")
			before := render(t, request)
			change(request.Applications["podinfo"])
			after := render(t, request)
			if slices.Equal(namesOf(before, "OCIRepository"), namesOf(after, "OCIRepository")) {
				t.Errorf("the source is still %v", namesOf(after, "OCIRepository"))
			}
			if !slices.Equal(namesOf(before, "GitRepository"), namesOf(after, "GitRepository")) {
				t.Error("the source of another application is another, too")
			}
		})
	}
	one, other := requestOf(t, "network"), requestOf(t, "network")
	other.Layer = "stage-network"
	if slices.Equal(namesOf(render(t, one), "HelmRepository"), namesOf(render(t, other), "HelmRepository")) {
		t.Error("two layers share a source, which only one of them can own")
	}
}

// A Job is another one as soon as anything of it is, and the same otherwise.
func TestJobsAreNamedAfterTheirContent(t *testing.T) {
	request := requestOf(t, "apps")
	first := namesOf(render(t, request), "Job")
	request.Inputs = rawJSON(`{"domain": "example.com", "replicas": 5}`)
	if got := namesOf(render(t, request), "Job"); !slices.Equal(first, got) {
		t.Errorf("%v became %v, and reads no replicas", first, got)
	}
	request.Inputs = rawJSON(`{"domain": "example.org"}`)
	if got := namesOf(render(t, request), "Job"); slices.Equal(first, got) || len(got) != 1 {
		t.Errorf("%v became %v", first, got)
	}
}

// A layer on a RemoteCluster keeps its RemoteCluster where Strata is, and its Job
// waits for what the others have become.
func TestRenderedLayersCanBePut(t *testing.T) {
	put := func(layer string) []directories.Manifest {
		t.Helper()
		place := placement.Place{Layer: "prod-" + layer, Cluster: known.Name}
		dir, err := place.Put(&directories.Directory{Manifests: render(t, requestOf(t, layer))})
		if err != nil {
			t.Fatal(err)
		}
		return dir.Manifests
	}
	tenant := put("tenant")
	if len(tenant) != 1 || tenant[0].Cluster != "" || tenant[0].Object.GetName() != "prod-tenant" {
		t.Errorf("the RemoteCluster became %+v", tenant)
	}
	all := map[string]bool{}
	apps := put("apps")
	for _, m := range apps {
		all[m.ID().String()] = true
	}
	for _, m := range apps {
		if m.Object.GetKind() != "Job" {
			continue
		}
		if len(m.Needs) != 5 || m.Cluster != "fleet/prod" {
			t.Errorf("the Job is on %q and needs %v", m.Cluster, m.Needs)
		}
		for _, id := range m.Needs {
			if !all[id.String()] {
				t.Errorf("the Job needs %s, which is not there: %v", id, all)
			}
		}
	}
}
