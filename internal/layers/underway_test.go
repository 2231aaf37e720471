// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

// ofPlatform makes a layer one of a Platform.
func ofPlatform(name string) layerChange {
	return func(l *v1alpha1.AddonsLayer) { l.Labels = map[string]string{v1alpha1.PlatformLabel: name} }
}

// A layer that has all that it wants stays Deployed while what another Platform brings is on its
// way to something else. What it has yet to apply waits for that, also through a layer that stays
// Deployed meanwhile.
func TestLayerStaysDeployedWhileAnotherPlatformChanges(t *testing.T) {
	was := directoriestest.Of(oldRevision, directoriestest.HelmRelease("a"))
	news := directoriestest.Of(newRevision, directoriestest.HelmRelease("a", "timeout", "3m"))
	changed := func(l *v1alpha1.AddonsLayer) { l.Generation++ }
	in := func(state v1alpha1.State) layerChange {
		return func(l *v1alpha1.AddonsLayer) {
			l.Status.State = state
			l.Status.Conditions = []metav1.Condition{
				{Type: "Ready", Status: "Unknown", Reason: string(state), Message: "is under way", ObservedGeneration: l.Generation},
				{Type: "Deployed", Status: "False", Reason: string(state), ObservedGeneration: l.Generation},
			}
		}
	}
	stalled := func(l *v1alpha1.AddonsLayer) {
		in(v1alpha1.StateFailed)(l)
		l.Status.Conditions = append(l.Status.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: "Failed"})
	}
	never := func(l *v1alpha1.AddonsLayer) { l.Status.Version = "" }
	network := func(changes ...layerChange) Other {
		return Other{Layer: layer(append([]layerChange{named("network"), ofPlatform("maker"), isDeployed(was)}, changes...)...)}
	}
	apps := Other{Layer: layer(named("apps"), ofPlatform("guest"), isDeployed(was), needs("network"))}
	mine := []layerChange{ofPlatform("guest"), isDeployed(was), needs("network")}
	for name, tc := range map[string]struct {
		reason string
		layer  []layerChange
		news   bool
		others []Other
		want   v1alpha1.State
	}{
		"changed":           {"nobody has looked at it yet", mine, false, []Other{network(changed)}, v1alpha1.StateDeployed},
		"applying":          {"what is there stays as it is", mine, false, []Other{network(in(v1alpha1.StateApplying))}, v1alpha1.StateDeployed},
		"waiting":           {"as applying", mine, false, []Other{network(in(v1alpha1.StateApplyPending))}, v1alpha1.StateDeployed},
		"failed":            {"that does not pass by itself", mine, false, []Other{network(in(v1alpha1.StateFailed))}, v1alpha1.StateApplyPending},
		"stalled":           {"somebody has to mend it", mine, false, []Other{network(stalled, changed)}, v1alpha1.StateApplyPending},
		"being deleted":     {"it does not come back", mine, false, []Other{network(deleted)}, v1alpha1.StateApplyPending},
		"never deployed":    {"what is there was for another one", mine, false, []Other{network(in(v1alpha1.StateApplying), never)}, v1alpha1.StateApplyPending},
		"gone":              {"it is named", mine, false, nil, v1alpha1.StateApplyPending},
		"with news":         {"it has something to apply", mine, true, []Other{network(changed)}, v1alpha1.StateApplyPending},
		"not deployed":      {"it is under way itself", append(mine, in(v1alpha1.StateApplyPending)), false, []Other{network(changed)}, v1alpha1.StateApplyPending},
		"of one Platform":   {"the order of a Platform is as ever", append(mine, ofPlatform("maker")), false, []Other{network(changed)}, v1alpha1.StateApplyPending},
		"of no Platform":    {"as ever", append(mine, ofPlatform("")), false, []Other{network(changed)}, v1alpha1.StateApplyPending},
		"behind, with news": {"it may need what apps does not wait for", []layerChange{ofPlatform("third"), isDeployed(was), needs("apps")}, true, []Other{apps, network(changed)}, v1alpha1.StateApplyPending},
		"behind":            {"nothing of it changes", []layerChange{ofPlatform("third"), isDeployed(was), needs("apps")}, false, []Other{apps, network(changed)}, v1alpha1.StateDeployed},
		"beside, with news": {"another layer of apps' Platform waits as well", []layerChange{ofPlatform("guest"), isDeployed(was), needs("apps")}, true, []Other{apps, network(changed)}, v1alpha1.StateApplyPending},
		"behind what rests": {"all is deployed", []layerChange{ofPlatform("third"), isDeployed(was), needs("apps")}, true, []Other{apps, network()}, v1alpha1.StateApplying},
	} {
		t.Run(name, func(t *testing.T) {
			directory := was
			if tc.news {
				directory = news
			}
			d := Decide(observation(layer(tc.layer...), directory, lives(live("a")), others(tc.others...)))
			if d.State != tc.want {
				t.Errorf("%s: it is %s, %s: %s", tc.reason, d.State, d.Reason, d.Message)
			}
		})
	}
	// A circle among others ends.
	circle := Other{Layer: layer(named("network"), ofPlatform("maker"), isDeployed(was), needs("apps"))}
	Decide(observation(layer(ofPlatform("third"), isDeployed(was), needs("apps")), news, lives(live("a")), others(apps, circle)))
}
