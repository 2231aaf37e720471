// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/catalogue"
)

type entries = map[string]*v1alpha1.HelmApplication

func TestCheck(t *testing.T) {
	layer := func(i int, change func(*v1alpha1.BundleLayer)) func(*v1alpha1.ApplicationBundle, entries) {
		return func(b *v1alpha1.ApplicationBundle, _ entries) { change(&b.Spec.Layers[i]) }
	}
	inputs := func(inputs ...v1alpha1.BundleInput) func(*v1alpha1.ApplicationBundle, entries) {
		return func(b *v1alpha1.ApplicationBundle, _ entries) { b.Spec.Inputs = append(b.Spec.Inputs, inputs...) }
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ApplicationBundle, entries)
		want   []string
	}{
		"sound": {func(*v1alpha1.ApplicationBundle, entries) {}, nil},
		"no application": {
			func(_ *v1alpha1.ApplicationBundle, e entries) { delete(e, "tool") },
			[]string{"layers[apps].applications[tool]: there is no HelmApplication tool"},
		},
		"no version": {
			layer(0, func(l *v1alpha1.BundleLayer) { l.Applications[0].Version = "1.17.0" }),
			[]string{
				"layers[network].applications[cilium].version: HelmApplication cilium has no version 1.17.0",
			},
		},
		"a changed version": {
			func(_ *v1alpha1.ApplicationBundle, e entries) {
				e["tool"].Status.Published = []v1alpha1.PublishedVersion{{Version: "v0.1.0", Digest: "sha256:other"}}
			},
			[]string{"layers[apps].applications[tool].version: version 0.1.0 of HelmApplication tool was published with other content"},
		},
		"a withdrawn version, which somebody may have": {
			func(_ *v1alpha1.ApplicationBundle, e entries) { e["tool"].Spec.Versions[0].Withdrawn = "it is slow" }, nil,
		},
		"a dependency at another version": {
			layer(0, func(l *v1alpha1.BundleLayer) { l.Applications[0].Version = "1.15.0" }),
			[]string{
				"layers[apps].applications[podinfo]: version v6.5.0 of HelmApplication podinfo needs cilium ^1.16, and the bundle has 1.15.0",
				"layers[apps].applications[podinfo2]: version v6.5.0 of HelmApplication podinfo needs cilium ^1.16, and the bundle has 1.15.0",
			},
		},
		"a dependency that is not there": {
			func(_ *v1alpha1.ApplicationBundle, e entries) {
				e["tool"].Spec.Versions[0].DependsOn = []v1alpha1.ApplicationRequirement{{Name: "db"}}
			},
			[]string{"layers[apps].applications[tool]: version 0.1.0 of HelmApplication tool needs db at any version, and the bundle has none"},
		},
		"ranges": {
			func(b *v1alpha1.ApplicationBundle, _ entries) {
				b.Spec.UpgradesFrom, b.Spec.KubeVersion = []string{"1.x", "from 1"}, ">=1.x.y"
			},
			[]string{
				`upgradesFrom[1]: "from 1" is no range of versions such as >=1.1 <1.3`,
				`kubeVersion: ">=1.x.y" is neither a version such as 1.30 nor a range such as >=1.30 <2`,
			},
		},
		"inputs": {
			inputs(
				v1alpha1.BundleInput{Name: "pool"},
				v1alpha1.BundleInput{Name: "a", Type: v1alpha1.InputInteger, Enum: []string{"1"}},
				v1alpha1.BundleInput{Name: "b", Default: rawJSON("1")},
				v1alpha1.BundleInput{Name: "c", Default: rawJSON(`"x"`), Required: true},
				v1alpha1.BundleInput{Name: "d", Default: rawJSON(`"x"`), Enum: []string{"y"}},
				v1alpha1.BundleInput{Name: "e", Default: rawJSON("null"), Required: true},
			),
			[]string{
				"inputs[pool]: is there twice",
				"inputs[a].enum: only a String can have one",
				"inputs[b].default: is the Number 1, and must be of the type String",
				"inputs[c]: has a default and is required: it can be one of them only",
				`inputs[d].default: is "x", and must be one of y`,
			},
		},
		"unknown layers": {
			func(b *v1alpha1.ApplicationBundle, _ entries) {
				b.Spec.Layers[0].DependsOn = []string{"network", "mesh"}
				b.Spec.Layers[1].On = "mesh"
				b.Spec.Layers[2].On = "network"
				b.Spec.Layers[2].TeardownAfter = []string{"mesh"}
				b.Spec.Layers[3].On = "tenant"
			},
			[]string{
				"layers[network].dependsOn: names the layer itself",
				"layers[network].dependsOn: there is no layer mesh",
				"layers[apps].onClusterOf: there is no layer mesh",
				"layers[objects].teardownAfter: there is no layer mesh",
				"layers[objects].onClusterOf: layer network has no remoteCluster, so that nothing can be on it",
				"layers[tenant].onClusterOf: names the layer itself",
			},
		},
		"a circle through a cluster": {
			layer(3, func(l *v1alpha1.BundleLayer) { l.DependsOn = []string{"innermost"} }),
			[]string{"layers: they wait for each other: tenant -> innermost -> inner -> tenant"},
		},
		"a circle when they go": {
			layer(4, func(l *v1alpha1.BundleLayer) { l.TeardownAfter = []string{"network"} }),
			[]string{"layers: when they go, they wait for each other: network -> tenant -> inner -> network; mend their teardownAfter"},
		},
		"a layer twice": {
			func(b *v1alpha1.ApplicationBundle, _ entries) {
				b.Spec.Layers = append(b.Spec.Layers, b.Spec.Layers[5])
			},
			[]string{"layers[innermost]: is there twice"},
		},
		"templates": {
			layer(0, func(l *v1alpha1.BundleLayer) {
				l.When = "inputs.none == 1"
				l.Applications[0].Values = rawJSON(`{"a": ["${cluster.region}", "${x.y}"], "b": "${inputs['gone']}", "c": "${instance.id}", "d": "${"}`)
				l.Applications[0].Namespace = "${inputs.nothing}"
				l.Applications[0].Parameters[0].Value = "${inputs.nobody}"
				l.Applications[0].ValuesFrom[0].Name = "${inputs.nowhere}"
			}),
			[]string{
				"layers[network].when: there is no input none: there are domain, pool, replicas, secret, zones",
				"layers[network].applications[cilium].namespace: there is no input nothing: there are domain, pool, replicas, secret, zones",
				"layers[network].applications[cilium].values.a[1]: ${x.y} is no expression of CEL: column 1: undeclared reference to 'x'; there are the variables cluster, clusters, inputs, instance, objects",
				"layers[network].applications[cilium].values.d: ${ has no } at its end; write $${ for ${ itself",
				"layers[network].applications[cilium].values: cluster has no region: it has endpoint, host, labels, name, namespace, port, version",
				"layers[network].applications[cilium].values: there is no input gone: there are domain, pool, replicas, secret, zones",
				"layers[network].applications[cilium].values: instance has no id: it has name",
				"layers[network].applications[cilium].valuesFrom[0].name: there is no input nowhere: there are domain, pool, replicas, secret, zones",
				"layers[network].applications[cilium].parameters[cluster.name]: there is no input nobody: there are domain, pool, replicas, secret, zones",
			},
		},
		"a when that is a number": {
			layer(0, func(l *v1alpha1.BundleLayer) { l.When = "1 + 1" }),
			[]string{"layers[network].when: 1 + 1 is of the type int, and must be true or false"},
		},
		"where a cluster is": {
			layer(3, func(l *v1alpha1.BundleLayer) { l.RemoteCluster.KubeConfig.SecretRef.Namespace = "${cluster.name}" }),
			[]string{"layers[tenant].remoteCluster.kubeConfig.secretRef.namespace: ${cluster.name} is no expression of CEL: column 1: undeclared reference to 'cluster'; there are the variables inputs, instance"},
		},
		"hooks": {
			layer(4, func(l *v1alpha1.BundleLayer) {
				l.WaitFor[0].ReadyExpr, l.WaitFor[0].Namespace = "inputs.pool == ''", "${inputs.nothing}"
				l.DeleteBefore[0].Where, l.DeleteBefore[0].APIVersion = "'x'", "a/b/c"
			}),
			[]string{
				"layers[inner].waitFor[0].namespace: there is no input nothing: there are domain, pool, replicas, secret, zones",
				"layers[inner].waitFor[0].readyExpr: ${inputs.pool == ''} is no expression of CEL: column 1: undeclared reference to 'inputs'; there are the variables object",
				"layers[inner].deleteBefore[0].apiVersion: must be a version such as v1 or a group and a version such as apps/v1",
				"layers[inner].deleteBefore[0].where: 'x' is of the type string, and must be true or false",
			},
		},
		"objects": {
			layer(2, func(l *v1alpha1.BundleLayer) {
				l.Objects = []v1alpha1.Manifest{
					{JSON: *rawJSON(`{"apiVersion": "v1", "kind": "ConfigMap"}`)},
					{JSON: *rawJSON(`{"apiVersion": "v1", "kind": "${inputs.domain}", "metadata": {"name": "${inputs.nothing}"}}`)},
				}
			}),
			[]string{
				"layers[objects].objects[0].metadata: is missing or no object: every object needs metadata.name",
				"layers[objects].objects[1]: there is no input nothing: there are domain, pool, replicas, secret, zones",
			},
		},
		"a job of nothing": {
			layer(1, func(l *v1alpha1.BundleLayer) { l.Job.Spec = *rawJSON(`{"ttlSecondsAfterFinished": 60}`) }),
			[]string{
				"layers[apps].job.spec.template: is missing: a Job needs it",
			},
		},
		"a directory": {
			layer(5, func(l *v1alpha1.BundleLayer) {
				l.Source.Kind = "ApplicationBundle"
				l.Job = &v1alpha1.BundleJob{Name: "x", Namespace: "x", Spec: *rawJSON(`{"template": {}}`)}
			}),
			[]string{
				"layers[innermost].source.kind: a bundle cannot be a layer of another",
				"layers[innermost].job: a layer that is a directory cannot have one: put the Job into the directory",
			},
		},
		"applications of a layer": {
			layer(1, func(l *v1alpha1.BundleLayer) {
				l.Applications[2].DependsOn = []string{"podinfo", "cilium"}
				l.Applications[1].Parameters = []v1alpha1.Parameter{{Name: "a[b]", Value: "1"}}
				l.Applications[1].Values = rawJSON("1")
			}),
			[]string{
				"layers[apps].applications[podinfo2].values: is the Number 1, and must be an Object",
				`layers[apps].applications[podinfo2].parameters[a[b]]: "a[b]" cannot be set: `,
				"layers[apps].applications[tool].dependsOn: the layer has no application cilium",
				"layers[apps].applications: they wait for each other: podinfo -> tool -> podinfo",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, known := loadBundle(t), loadCatalogue(t)
			tc.change(bundle, known)
			got := Check(bundle, known)
			same := slices.EqualFunc(tc.want, got, func(want, got string) bool {
				return got == want || strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)
			})
			if !same {
				t.Errorf("the problems are (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
		})
	}
}

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestDecide(t *testing.T) {
	published := func(bundle *v1alpha1.ApplicationBundle, known entries) v1alpha1.ApplicationBundleStatus {
		return Decide(Observation{Now: testNow, Bundle: bundle, Catalogue: known, PlatformsUsing: 2}).Status
	}
	bundle, apps := loadBundle(t), loadCatalogue(t)
	status := published(bundle, apps)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	if ready.Status != metav1.ConditionTrue || ready.Message != "6 layers, 4 applications" || status.Layers != 6 || status.Applications != 4 || status.Platforms != 2 || status.ObservedGeneration != 2 {
		t.Errorf("a sound bundle is %+v", status)
	}
	bundle.Status = status
	if again := published(bundle, apps); !cmp.Equal(status, again) {
		t.Errorf("it is another the second time: %s", cmp.Diff(status, again))
	}
	apps["tool"].Spec.Versions[0].Withdrawn = "it is slow"
	if ready := meta.FindStatusCondition(published(bundle, apps).Conditions, v1alpha1.ReadyCondition); ready.Status != metav1.ConditionTrue ||
		!strings.HasSuffix(ready.Message, "; version 0.1.0 of HelmApplication tool is withdrawn: it is slow") {
		t.Errorf("with something withdrawn it is %+v", ready)
	}
	sick := published(bundle, nil)
	ready = meta.FindStatusCondition(sick.Conditions, v1alpha1.ReadyCondition)
	if ready.Reason != v1alpha1.ReasonProblems || len(sick.Problems) != 4 || !meta.IsStatusConditionTrue(sick.Conditions, v1alpha1.StalledCondition) || sick.Digest != status.Digest {
		t.Errorf("without its applications it is %+v", sick)
	}
	bundle.Spec.Layers[0].Applications[0].Values = rawJSON(`{"other": true}`)
	changed := published(bundle, apps)
	stalled := meta.FindStatusCondition(changed.Conditions, v1alpha1.StalledCondition)
	if stalled == nil || stalled.Reason != v1alpha1.ReasonContentChanged || changed.Digest != status.Digest || !slices.Equal(changed.Problems, []string{changedContent}) {
		t.Errorf("with other values it is %+v", changed)
	}
}

func TestDigest(t *testing.T) {
	want, err := DigestOf(loadBundle(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ApplicationBundleSpec)
		same   bool
	}{
		"what is said of it": {func(s *v1alpha1.ApplicationBundleSpec) {
			s.Description, s.Preview, s.EndOfLife, s.Withdrawn = "x", true, &metav1.Time{Time: testNow}, "x"
			s.Inputs[0].Description = "x"
		}, true},
		"a v in front": {func(s *v1alpha1.ApplicationBundleSpec) { s.Version = "v1.0.0" }, true},
		"how it is written": {func(s *v1alpha1.ApplicationBundleSpec) {
			s.Layers[1].Applications[0].Values = rawJSON(`{"host":"podinfo.${inputs.domain}",  "replicas":"${inputs.replicas}"}`)
		}, true},
		"values":       {func(s *v1alpha1.ApplicationBundleSpec) { s.Layers[1].Applications[0].Values = nil }, false},
		"a hook":       {func(s *v1alpha1.ApplicationBundleSpec) { s.Layers[4].WaitFor = nil }, false},
		"a default":    {func(s *v1alpha1.ApplicationBundleSpec) { s.Inputs[0].Default = rawJSON("4") }, false},
		"upgradesFrom": {func(s *v1alpha1.ApplicationBundleSpec) { s.UpgradesFrom = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := loadBundle(t)
			tc.change(&bundle.Spec)
			got, err := DigestOf(bundle)
			if err != nil || (got == want) != tc.same {
				t.Errorf("the digest is %s, and was %s: %v", got, want, err)
			}
		})
	}
}

// The publisher of a bundle is told where an application of it runs on less than it says.
func TestABundleSaysWhichApplicationRunsOnLess(t *testing.T) {
	bundle, entries := loadBundle(t), loadCatalogue(t)
	said := func() string {
		return Decide(Observation{Bundle: bundle, Catalogue: entries}).Status.Conditions[0].Message
	}
	bundle.Spec.KubeVersion = ">=1.31 <1.36"
	if got := said(); strings.Contains(got, "is for Kubernetes") {
		t.Errorf("nothing is narrower: %s", got)
	}
	layer := bundle.Spec.Layers[0]
	app := entries[ApplicationName(layer.Applications[0])]
	catalogue.VersionOf(app, layer.Applications[0].Version).KubeVersion = ">=1.33"
	want := "of HelmApplication " + app.Name + " is for Kubernetes >=1.33 alone, so that no Platform brings it to others"
	if got := said(); !strings.Contains(got, want) {
		t.Errorf("it says %q, want %q", got, want)
	}
	bundle.Spec.KubeVersion = ">=1.33 <1.36"
	if got := said(); strings.Contains(got, "is for Kubernetes") {
		t.Errorf("the bundle says it, too: %s", got)
	}
}
