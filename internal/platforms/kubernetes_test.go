// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
)

// for131 has the newest version of the ladder run on Kubernetes 1.31 and later: by its own
// range, or by that of one of its applications.
func for131(w *world, byApplication bool) {
	if !byApplication {
		w.Bundles[2].Spec.KubeVersion = ">=1.31"
		return
	}
	app := application("app", "1.0.0", "2.0.0")
	app.Spec.Versions[1].KubeVersion = ">=1.31"
	w.Catalogue["app"] = app
	w.Bundles[2].Spec.Layers[1].Applications[0].Version = "2.0.0"
}

func (w *world) kubernetes(cluster, version string) {
	w.Clusters[types.NamespacedName{Namespace: "fleet", Name: cluster}].Status.Version = version
}

// A version that a cluster cannot run is not chosen for it. It has the newest that it can
// run, holds up nobody, and counts as ready.
func TestAVersionThatDoesNotFitIsNotChosen(t *testing.T) {
	for name, byApplication := range map[string]bool{"the bundle's range": false, "an application's range": true} {
		t.Run(name, func(t *testing.T) {
			w := fleet(t, 3, "1.0.0")
			w.kubernetes("c0", "v1.29.4")
			for131(w, byApplication)
			auto(w.Platform)
			w.Platform.Spec.Bundle.Version = ""
			w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{
				{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}, Approval: true},
				{Name: "rest", Selector: metav1.LabelSelector{}},
			}
			w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "canary@1.2.0"}
			d := w.settle(t)
			if got, want := w.versionsOf(), "1.1.0 1.2.0 1.2.0"; got != want {
				t.Errorf("the clusters are at %s, want %s: %s", got, want, said(d.Status))
			}
			says := said(d.Status)
			if conditionsOf(d.Status) != installed || !strings.Contains(says, "fleet/c0 stays at 1.1.0: 1.2.0 ") ||
				!strings.Contains(says, "is for Kubernetes >=1.31, and the cluster has v1.29.4") || byApplication != strings.Contains(says, "version 2.0.0 of HelmApplication app") {
				t.Errorf("%s: %s", conditionsOf(d.Status), says)
			}
			if stage := d.Status.Stages[0]; stage.Unfit != 1 || stage.State != "Done" || d.Status.Clusters.Ready != 3 {
				t.Errorf("%+v, and %d are ready", stage, d.Status.Clusters.Ready)
			}

			// With another Kubernetes it goes on.
			w.kubernetes("c0", "v1.31.0")
			if d := w.settle(t); w.versionsOf() != "1.2.0 1.2.0 1.2.0" || d.Status.Stages[0].Unfit != 0 {
				t.Errorf("the clusters are at %s: %s", w.versionsOf(), said(d.Status))
			}
			// What runs stays, whatever Kubernetes its cluster gets.
			w.kubernetes("c0", "v1.29.4")
			if d := w.settle(t); w.versionsOf() != "1.2.0 1.2.0 1.2.0" || conditionsOf(d.Status) != installed || strings.Contains(said(d.Status), "stays at") {
				t.Errorf("the clusters are at %s: %s", w.versionsOf(), said(d.Status))
			}
		})
	}
}

// What is asked for by name and does not fit is waited for, and the message says what does.
func TestAVersionThatIsNamedAndDoesNotFitIsWaitedFor(t *testing.T) {
	w := fleet(t, 2, "1.1.0")
	w.kubernetes("c0", "v1.29.4")
	for131(w, false)
	w.Platform.Spec.Bundle.Version = "1.2.0"
	d := w.settle(t)
	const says = "1.2.0 is for Kubernetes >=1.31, and the cluster has v1.29.4; 1.1.0 is the newest that fits"
	if w.versionsOf() != "1.1.0 1.2.0" || conditionsOf(d.Status) != "Ready=Unknown/Waiting Reconciling=True/Waiting" || !strings.Contains(said(d.Status), says) {
		t.Errorf("the clusters are at %s, %s: %s", w.versionsOf(), conditionsOf(d.Status), said(d.Status))
	}
	w.kubernetes("c1", "v1.30.1")
	w.Platform.Spec.Clusters = w.Platform.Spec.Clusters[:1]
	d = w.settle(t)
	if conditionsOf(d.Status) != "Ready=Unknown/K8sVersion Reconciling=True/K8sVersion" || !strings.Contains(said(d.Status), says) {
		t.Errorf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}

	fresh := newWorld(platform("p", ">=1.2"), ladder()...)
	for131(fresh, false)
	fresh.Version = "v1.29.4"
	d = fresh.settle(t)
	if len(fresh.Layers) > 0 || conditionsOf(d.Status) != "Ready=Unknown/K8sVersion Reconciling=True/K8sVersion" || !strings.Contains(said(d.Status), "1.1.0 is the newest that fits") {
		t.Errorf("%s, %s: %s", fresh.names(), conditionsOf(d.Status), said(d.Status))
	}
}

// Where the version of a cluster is not known, nothing is chosen that depends on it. A
// cluster that was sent to what it cannot run, and has nothing of it, goes to what it can
// run; one that has a part of it stays.
func TestAClusterThatWasSentToWhatItCannotRun(t *testing.T) {
	sent := func() *world {
		w := newWorld(platform("p", "", auto, on("c0")), ladder()...)
		for131(w, false)
		w.cluster("c0", nil)
		w.apply(t)
		if w.versionsOf() != "1.2.0!" {
			t.Fatalf("it is sent to %s", w.versionsOf())
		}
		return w
	}
	w := sent()
	w.kubernetes("c0", "v1.29.4")
	if d := w.settle(t); w.versionsOf() != "1.1.0" || conditionsOf(d.Status) != installed {
		t.Errorf("sent to what it cannot run: %s, %s: %s", w.versionsOf(), conditionsOf(d.Status), said(d.Status))
	}
	w = sent()
	w.engine()
	w.kubernetes("c0", "v1.29.4")
	w.settle(t)
	if w.versionsOf() != "1.2.0/1.2.0!" {
		t.Errorf("with a part of it: %s", w.versionsOf())
	}
	w = newWorld(platform("p", "", auto, on("c0")), ladder()...)
	for131(w, false)
	w.cluster("c0", nil)
	w.kubernetes("c0", "")
	w.settle(t)
	if w.versionsOf() != "1.1.0" {
		t.Errorf("not known: %s", w.versionsOf())
	}
	w.kubernetes("c0", "v1.31.2")
	w.settle(t)
	if w.versionsOf() != "1.2.0" {
		t.Errorf("known: %s", w.versionsOf())
	}
}
