// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"

	"github.com/strata-project/strata/internal/answers/snapshot/snapshottest"
	"github.com/strata-project/strata/internal/objects"
)

// Pods that are gone are known by their names, and those of another workload whose
// name begins alike are not.
func TestNamesThatKubernetesMakes(t *testing.T) {
	for _, test := range []struct {
		kind, workload, made, name string
		want                       bool
	}{
		{"Deployment", "web", "ReplicaSet", "web-7d9c5b8f6", true},
		{"Deployment", "web", "Pod", "web-7d9c5b8f6-x2x4z", true},
		{"Deployment", "web", "Pod", "web-admin-7d9c5b8f6-x2x4z", false},
		{"Deployment", "web", "Pod", "web", false},
		{"Deployment", "web", "Pod", "web-0", false},
		{"Deployment", "web", "Service", "web-7d9c5b8f6", false},
		{"StatefulSet", "db", "Pod", "db-12", true},
		{"StatefulSet", "db", "Pod", "db-12-x2x4z", false},
		{"DaemonSet", "agent", "Pod", "agent-x2x4z", true},
		{"Job", "migrate", "Pod", "migrate-x2x4z", true},
		{"Job", "migrate", "Pod", "migrate-3-x2x4z", true},
		{"CronJob", "backup", "Pod", "backup-29384756-x2x4z", true},
		{"CronJob", "backup", "Job", "backup-29384756", true},
	} {
		workload := objects.ID{Kind: test.kind, Namespace: "ns", Name: test.workload}
		if got := madeBy(workload, subject{test.made, "ns", test.name}); got != test.want {
			t.Errorf("%s %s makes %s %s: %v", test.kind, test.workload, test.made, test.name, got)
		}
	}
}

// What exists and belongs to somebody else is not taken for its name.
func TestEventsOfOthersAreLeft(t *testing.T) {
	s := snapshottest.New(t, `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a}
status:
  resources:
  - {namespace: ns, name: web, kind: helmreleases.helm.toolkit.fluxcd.io, status: Deployed}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: ns, name: web}
spec: {chartRef: {kind: OCIRepository, name: chart}}
status: {inventory: {entries: [{id: ns_web_apps_Deployment, v: v1}]}}
`)
	subjects := SubjectsOf(s, s.Layer("a"))
	if namespace, has := subjects.Namespace(); namespace != "ns" || !has {
		t.Errorf("workloads are in %q: %v", namespace, has)
	}
	pod := Event{Kind: "Pod", Namespace: "ns", Name: "web-7d9c5b8f6-x2x4z"}
	if !subjects.Has(pod) || !subjects.Has(Event{Kind: "OCIRepository", Namespace: "ns", Name: "chart"}) {
		t.Error("a Pod that is gone, or the chart, is not the layer's")
	}
	subjects.Adopt(snapshottest.New(t, `apiVersion: v1
kind: Pod
metadata: {namespace: ns, name: web-7d9c5b8f6-x2x4z, ownerReferences: [{kind: DaemonSet, name: other, uid: x}]}
`))
	if subjects.Has(pod) {
		t.Error("a Pod of somebody else is the layer's")
	}
}

// While Helm installs, no inventory says what it makes: Flux's labels do, in the namespace
// that it installs into, and nowhere else.
func TestEventsOfWhatHelmIsMaking(t *testing.T) {
	s := snapshottest.New(t, `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: a}
status:
  resources:
  - {namespace: ns, name: web, kind: helmreleases.helm.toolkit.fluxcd.io, status: NotReady}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {namespace: ns, name: web}
spec: {targetNamespace: apps}
`)
	subjects := SubjectsOf(s, s.Layer("a"))
	if namespace, has := subjects.Namespace(); namespace != "apps" || !has {
		t.Errorf("it is made in %q: %v", namespace, has)
	}
	subjects.Adopt(snapshottest.New(t, `apiVersion: apps/v1
kind: Deployment
metadata: {namespace: apps, name: web, labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: ns}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {namespace: apps, name: web-1, ownerReferences: [{kind: Deployment, name: web, uid: x}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: apps, name: web-1-a, ownerReferences: [{kind: ReplicaSet, name: web-1, uid: x}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: mine, name: says-so, labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: ns}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: apps, name: of-others, labels: {helm.toolkit.fluxcd.io/name: other, helm.toolkit.fluxcd.io/namespace: ns}}
`))
	for event, want := range map[Event]bool{
		{Kind: "Deployment", Namespace: "apps", Name: "web"}:        true,
		{Kind: "Pod", Namespace: "apps", Name: "web-1-a"}:           true,
		{Kind: "Deployment", Namespace: "mine", Name: "says-so"}:    false,
		{Kind: "Deployment", Namespace: "apps", Name: "of-others"}:  false,
		{Kind: "HelmRelease", Namespace: "ns", Name: "web"}:         true,
		{Kind: "HelmRelease", Namespace: "apps", Name: "something"}: false,
	} {
		if got := subjects.Has(event); got != want {
			t.Errorf("%s is the layer's: %v", event.Object(), got)
		}
	}
}
