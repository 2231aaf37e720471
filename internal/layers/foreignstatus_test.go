// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

// notCounting are the conditions of an object whose status does not count.
func notCounting() []metav1.Condition {
	return []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonForeignStatus, Message: "has a status that was not written with this controller's key",
	}}
}

// stripped takes off a layer's status what others act on.
func stripped(of *v1alpha1.AddonsLayer) *v1alpha1.AddonsLayer {
	l := of.DeepCopy()
	l.Status = v1alpha1.AddonsLayerStatus{ObservedGeneration: -1, Conditions: notCounting(), Resources: l.Status.Resources, History: l.Status.History}
	for i := range l.Status.Resources {
		l.Status.Resources[i].Status = ""
	}
	return l
}

// A layer whose version is refused for its dependants does not get it because its status, or that
// of a dependant, does not count: not at that look, and not at the next.
func TestStatusThatDoesNotCountOpensNoBreakGate(t *testing.T) {
	base := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	own := layer(isDeployed(base))
	own.Status.History = []v1alpha1.HistoryEntry{{ID: "1", Version: "1.0.0", Result: v1alpha1.ResultDeployed}}
	dependant := layer(needs(own.Name+"@>=1.0.0 <2.0.0"), isDeployed(base))
	dependant.Name = "apps"
	own.Spec.Version = "2.0.0"
	own.Generation++
	for reason, o := range map[string]Observation{
		"both count":                       observation(own, base, others(Other{Layer: dependant})),
		"the layer's does not count":       observation(stripped(own), base, others(Other{Layer: dependant})),
		"the dependant's does not count":   observation(own, base, others(Other{Layer: stripped(dependant)})),
		"neither counts":                   observation(stripped(own), base, others(Other{Layer: stripped(dependant)})),
		"nothing is listed of a dependant": observation(own, base, others(Other{Layer: func() *v1alpha1.AddonsLayer { l := stripped(dependant); l.Status.Resources = nil; return l }()})),
	} {
		d := Decide(o)
		if d.Reason != v1alpha1.ReasonWouldBreakDependants {
			t.Errorf("%s: the layer says %s: %s", reason, d.Reason, d.Message)
			continue
		}
		again := o.Layer.DeepCopy()
		again.Status, _ = Report(o, d, nil)
		o.Layer = again
		if d = Decide(o); d.Reason != v1alpha1.ReasonWouldBreakDependants {
			t.Errorf("%s: at the next look the layer says %s: %s", reason, d.Reason, d.Message)
		}
	}
}

// What depends on a layer that is being deleted is in its way, although its status does not count.
func TestStatusThatDoesNotCountLetsNoLayerGo(t *testing.T) {
	base := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	own := layer(isDeployed(base))
	now := metav1.NewTime(time.Unix(1, 0))
	own.DeletionTimestamp = &now
	dependant := layer(needs(own.Name))
	dependant.Name = "apps"
	dependant.Status = v1alpha1.AddonsLayerStatus{ObservedGeneration: -1, Conditions: notCounting()}
	d := Decide(observation(own, base, others(Other{Layer: dependant})))
	if d.Reason != v1alpha1.ReasonDeletionBlocked || d.Deleting || d.Finalized {
		t.Errorf("it says %s, and does %v", d.Reason, decisionsOf(d))
	}
	empty := stripped(own)
	empty.Status.Resources = nil
	if d := Decide(observation(empty, base)); d.Finalized {
		t.Error("a layer goes that lists nothing in a status that does not count")
	}
}

// A deletion that has begun goes on: what was decided counts, whatever the status says.
func TestDeletionThatHasBegunIsKnownAgain(t *testing.T) {
	own := layer()
	own.Status.Conditions = append(own.Status.Conditions, metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue})
	now := metav1.NewTime(time.Unix(1, 0))
	own.DeletionTimestamp = &now
	own.Annotations = map[string]string{v1alpha1.DecidedAnnotation: Decided(own, decisions.Seal{})}
	if own.Annotations[v1alpha1.DecidedAnnotation] == "" {
		t.Fatal("nothing was decided")
	}
	own.Status = v1alpha1.AddonsLayerStatus{Conditions: notCounting()}
	if trusted := Trusted(own, decisions.Seal{}); !hasBegun(trusted) || !v1alpha1.IsForeign(trusted.Status.Conditions) {
		t.Errorf("it says %+v", trusted.Status.Conditions)
	}
}

// Nothing goes on that was suspended for a cluster that is away because what its RemoteCluster says
// does not count.
func TestRemoteClusterThatDoesNotCountResumesNothing(t *testing.T) {
	dir := directoriestest.Of(newRevision, directoriestest.HelmRelease("a"))
	for _, conditions := range [][]metav1.Condition{notCounting(), nil} {
		o := observation(layer(isDeployed(dir)), dir)
		o.Remote = &Remote{
			Name: types.NamespacedName{Namespace: "fleet", Name: "prod"}, Connected: true,
			Object: &v1alpha1.RemoteCluster{Status: v1alpha1.RemoteClusterStatus{Conditions: conditions}},
		}
		blocked := clusterGate(o)
		if conditions == nil {
			if blocked != nil {
				t.Errorf("a RemoteCluster without conditions says %s", blocked.Message)
			}
			continue
		}
		if blocked == nil || blocked.Reason != v1alpha1.ReasonClusterNotReady || !o.keepEverything().Held {
			t.Errorf("it says %v, and what is suspended may go on: %t", blocked, !o.keepEverything().Held)
		}
		if done := decisionsOf(Decide(o)); slices.ContainsFunc(done, func(one string) bool { return one != "" }) {
			t.Errorf("it does %v", done)
		}
	}
}
