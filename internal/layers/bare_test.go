// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/objects/objectstest"
)

// observedOnly is what a release of another cluster takes values from and nobody has: no
// more than its identity is known.
func observedOnly(name string, changes ...func(*directories.Manifest)) directories.Manifest {
	m := directories.Manifest{File: "base/values.yaml", Object: directoriestest.Any("v1", "Secret", "default", name).Object, Observed: true, Optional: true}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// TestObservedOnlyObjects is the regression test of looks that ended in a panic: what a
// layer only observes has no content, and gates that are closed ask for it.
func TestObservedOnlyObjects(t *testing.T) {
	dir := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"), observedOnly("values"))
	away := func(o *Observation) {
		o.Remote = &Remote{Object: &v1alpha1.RemoteCluster{Status: v1alpha1.RemoteClusterStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ReachableCondition, Status: metav1.ConditionFalse, LastTransitionTime: longAgo},
		}}}}
	}
	for _, tc := range []struct {
		name    string
		layer   []layerChange
		changes []func(*Observation)
		state   v1alpha1.State
		reason  string
	}{
		{"deployed", nil, nil, v1alpha1.StateDeployed, "an optional one counts as empty"},
		{"held", []layerChange{annotation(v1alpha1.HoldAnnotation, "freeze")}, nil, v1alpha1.StateHold, "a hold is shown"},
		{"waiting", []layerChange{needs("nothing@1.0.0")}, nil, v1alpha1.StateApplyPending, "a closed gate is told"},
		{"Kubernetes", []layerChange{k8s("99.0")}, nil, v1alpha1.StateK8sVersion, "a closed gate is told"},
		{"away", nil, []func(*Observation){away}, v1alpha1.StateUnknown, "a cluster that does not answer is noticed"},
		{"deleted", []layerChange{deleted}, nil, v1alpha1.StatePruning, "its deletion begins"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := layer(append([]layerChange{isDeployed(dir)}, tc.layer...)...)
			_, report, _ := decide(t, observation(l, dir, append([]func(*Observation){lives(live("a"))}, tc.changes...)...))
			if report.State != tc.state {
				t.Errorf("%s: %s, not %s", tc.reason, report.State, tc.state)
			}
		})
	}
}

// drawBare returns an observation of a layer in any state, on this cluster or another one,
// that lacks any of its optional parts.
func drawBare(t *rapid.T) Observation {
	o := drawObservation(t)
	for _, of := range []**directories.Directory{&o.Directory, &o.Deployed, &o.Restored, &o.Before} {
		if *of == nil && !chance(t, 20, "any other content") {
			continue
		}
		dir := directoriestest.Of(oldRevision)
		if *of != nil {
			*dir = **of
		}
		for _, name := range []string{"values", "more"} {
			m := observedOnly(name)
			m.Optional, m.Ensured = chance(t, 60, "optional"), chance(t, 10, "ensured")
			if m.Ensured {
				m.Observed = false
			}
			if chance(t, 20, "withheld") {
				m.Withheld = "is not given"
			}
			dir.Manifests = append(dir.Manifests[:len(dir.Manifests):len(dir.Manifests)], m)
		}
		if chance(t, 20, "a release that others make") {
			m := directoriestest.HelmRelease("z")
			m.Observed = true
			dir.Manifests = append(dir.Manifests, m)
		}
		*of = dir
	}
	if chance(t, 50, "elsewhere") {
		o.Remote = &Remote{Name: prod.Cluster, Connected: chance(t, 60, "connected"), Object: &v1alpha1.RemoteCluster{}}
		o.Layer.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: prod.Cluster.Namespace, Name: prod.Cluster.Name}
		if chance(t, 50, "away") {
			o.Remote.Object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReachableCondition, Status: metav1.ConditionFalse, LastTransitionTime: longAgo}}
		}
		if chance(t, 20, "mistaken") {
			o.Remote.Mistaken = "is another one"
		}
		if chance(t, 20, "unread") {
			o.Remote.Err = errors.New("timed out")
		}
	}
	if chance(t, 30, "back") {
		o.Layer.Status.Rollback = &v1alpha1.Rollback{}
		annotation(v1alpha1.RollbackToAnnotation, rapid.SampledFrom([]string{"1", "x"}).Draw(t, "back to"))(o.Layer)
	}
	if chance(t, 30, "hooks") {
		o.Layer.Spec.WaitFor = []v1alpha1.WaitFor{{APIVersion: "v1", Kind: "Secret", Name: "x"}}
		o.Awaited = []Awaited{{ID: objects.ID{Kind: "Secret", Name: "x"}}}
	}
	return objectstest.Bare(t, o, "Observation.Layer", "Other.Layer", "Manifest.Object")
}

// TestNoObservationPanics has each optional part of an observation missing, in every state.
func TestNoObservationPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawBare(t)
		decision := Decide(o)
		Report(o, decision, nil)
		o.NeedsOthers()
		o.AsksForBlockers()
		o.AsksForDoomed()
		results := make([]dependents.Result, 0, len(decision.Plan.Actions))
		for _, action := range decision.Plan.Actions {
			results = append(results, dependents.Result{Action: action, Err: rapid.SampledFrom([]error{nil, errors.New("refused")}).Draw(t, "result")})
		}
		report, _ := Report(o, decision, results)
		o.Layer = withStatus(o.Layer, report)
		o.Now = o.Now.Add(time.Minute)
		Report(o, Decide(o), nil)
	})
}
