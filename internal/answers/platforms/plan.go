// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/dependencies"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/placement"
	"github.com/strata-project/strata/internal/platforms"
)

// Plan is what the controller would do for a Platform.
type Plan struct {
	Name   string      `json:"name"`
	Family string      `json:"family"`
	At     metav1.Time `json:"at"`
	// Target is the version that the clusters go to in the end.
	Target string `json:"target"`
	// Read counts what was read for it.
	Read Read `json:"read"`
	// Missing says what could not be read.
	Missing []string `json:"missing"`
	// Ready and Why are what the Platform would say.
	Ready    string    `json:"ready"`
	Why      string    `json:"why"`
	Stages   []Stage   `json:"stages"`
	Clusters []Cluster `json:"clusters"`
	// Layers in the order in which they are written and, after those, deleted.
	Layers []LayerChange `json:"layers"`
	// Lock holds the picked applications whose versions would be other ones.
	Lock []v1alpha1.LockedApplication `json:"lock"`
	// Next is when it may differ although nothing else has changed.
	Next *metav1.Time `json:"next"`
}

// Read counts what a plan was made from.
type Read struct {
	Bundles      int `json:"bundles"`
	Applications int `json:"applications"`
	Clusters     int `json:"clusters"`
	Layers       int `json:"layers"`
	ConfigMaps   int `json:"configMaps"`
}

// LayerChange is what is done to one layer.
type LayerChange struct {
	// Verb is create, change or delete.
	Verb    string `json:"verb"`
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
	// From and To are versions.
	From string `json:"from"`
	To   string `json:"to"`
	// After are the layers that must be deployed before it or, of one that is
	// deleted, gone.
	After []string `json:"after"`
	// Waits says what keeps the layer from following: that it is held, or that its
	// cluster does not answer.
	Waits string `json:"waitsFor"`
	// Fields that change beside the version.
	Fields []string `json:"fields"`
}

// PlanOf says what would be done for a Platform, as the controller decides.
func PlanOf(o platforms.Observation, missing []string) Plan {
	look := platforms.Look(o)
	p := Plan{
		Name: o.Platform.Name, At: metav1.NewTime(o.Now.UTC()), Target: look.Target, Missing: append([]string{}, missing...),
		Read:   Read{Bundles: len(o.Bundles), Applications: len(o.Catalogue), Clusters: len(o.Clusters), Layers: len(o.Layers), ConfigMaps: len(o.ConfigMaps)},
		Stages: stages(o, look), Clusters: clustersOf(look), Layers: layerChanges(o, look.Decision), Lock: []v1alpha1.LockedApplication{},
	}
	if o.Platform.Spec.Bundle != nil {
		p.Family = o.Platform.Spec.Bundle.Family
	}
	if ready := meta.FindStatusCondition(look.Status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		p.Ready, p.Why = string(ready.Status), ready.Message
	}
	if !look.Until.IsZero() {
		next := metav1.NewTime(look.Until.UTC())
		p.Next = &next
	}
	if lock := look.Status.Lock; lock != nil && (o.Platform.Status.Lock == nil || o.Platform.Status.Lock.Digest != lock.Digest) {
		p.Lock = append(p.Lock, lock.Applications...)
	}
	return p
}

// Changes tells whether anything would be done now.
func (p Plan) Changes() bool { return len(p.Layers)+len(p.Lock) > 0 }

func layerChanges(o platforms.Observation, decision platforms.Decision) []LayerChange {
	own := map[string]*v1alpha1.AddonsLayer{}
	for _, layer := range o.Layers {
		own[layer.Name] = layer
	}
	going := map[string]bool{}
	for _, layer := range decision.Delete {
		going[layer.Name] = true
	}
	found := []LayerChange{}
	for _, layer := range decision.Write {
		was := own[layer.Name]
		if going[layer.Name] {
			continue // told as being deleted
		}
		change := LayerChange{
			Verb: "create", Name: layer.Name, Cluster: fleet.NameOf(placement.Of(layer, o.Namespace)), To: layer.Spec.Version,
			After: dependencies.Names(layer.Spec.Prereqs.DependsOn), Fields: []string{},
		}
		if was != nil {
			change.Verb, change.From, change.Fields = "change", was.Spec.Version, changedFields(was, layer)
			change.Waits = keeps(o, was)
		}
		found = append(found, change)
	}
	for _, departure := range layers.Departures(decision.Delete, o.Layers, o.Now) {
		layer := own[departure.Name]
		if layer == nil {
			continue
		}
		found = append(found, LayerChange{
			Verb: "delete", Name: layer.Name, Cluster: fleet.NameOf(placement.Of(layer, o.Namespace)), From: layer.Spec.Version,
			After: append([]string{}, departure.After...), Waits: keeps(o, layer), Fields: []string{},
		})
	}
	return found
}

// flatSpec returns the specification of a layer by its paths.
func flatSpec(layer *v1alpha1.AddonsLayer) map[string]string {
	var value any
	if err := json.Unmarshal([]byte(fleet.JSON(layer.Spec)), &value); err != nil {
		return nil
	}
	return fleet.Flat(value)
}

// changedFields names what differs in two specifications of a layer beside the
// version.
func changedFields(was, is *v1alpha1.AddonsLayer) []string {
	before, after := flatSpec(was), flatSpec(is)
	names := fleet.Set{}
	for _, path := range fleet.Union(before, after) {
		field, _, _ := strings.Cut(path, ".")
		field, _, _ = strings.Cut(field, "[")
		if before[path] != after[path] && field != "version" {
			names.Add(field)
		}
	}
	return names.Sorted()
}

// keeps says what keeps a layer from following a change.
func keeps(o platforms.Observation, layer *v1alpha1.AddonsLayer) string {
	if hold := layers.HoldOf(layer, o.Now); hold.Active {
		return strings.TrimSuffix("is held: "+hold.Reason, ": ")
	}
	remote := o.Clusters[placement.Of(layer, o.Namespace)]
	if remote == nil {
		return ""
	}
	if reachable := meta.FindStatusCondition(
		remote.Status.Conditions,
		v1alpha1.ReachableCondition,
	); reachable != nil &&
		reachable.Status == metav1.ConditionFalse {
		return fmt.Sprintf("RemoteCluster %s/%s does not answer", remote.Namespace, remote.Name)
	}
	return ""
}

// Approval is what somebody approves.
type Approval struct {
	Platform string `json:"platform"`
	// Value is what the annotation gets, as STAGE@VERSION.
	Value   string `json:"value"`
	Stage   string `json:"stage"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
	// Clusters that may begin with it.
	Clusters []string `json:"clusters"`
	// Waits says what the stage still waits for; empty where it begins.
	Waits string `json:"waitsFor"`
	// Annotation is the whole of what it is now.
	Annotation string `json:"annotation"`
}

// Approve says what is approved with a stage of a Platform. The error says why there
// is nothing to approve; its second value are the stages that there are.
func Approve(o platforms.Observation, stage, reason string) (*Approval, []string, error) {
	name := o.Platform.Name
	look := platforms.Look(o)
	var names []string
	for _, known := range o.Platform.Spec.Rollout.Stages {
		names = append(names, known.Name)
	}
	at := slices.Index(names, stage)
	switch {
	case at < 0:
		return nil, names, fmt.Errorf("platform %s has no stage %s", name, stage)
	case !o.Platform.Spec.Rollout.Stages[at].Approval:
		return nil, nil, fmt.Errorf("stage %s of platform %s needs no approval", stage, name)
	case o.Platform.Spec.Hold:
		return nil, nil, fmt.Errorf("platform %s is held (spec.hold): nothing begins, whatever is approved", name)
	}
	for _, s := range stages(o, look) {
		if s.Name != stage {
			continue
		}
		if s.Approval == "" {
			break
		}
		a := &Approval{Platform: name, Value: s.Approval, Stage: stage, Version: look.Target, Reason: reason, Clusters: []string{}}
		for _, cluster := range clustersOf(look) {
			if cluster.Stage == stage && len(cluster.Hops) > 0 {
				a.Clusters = append(a.Clusters, cluster.Name)
			}
		}
		if look.Stage != stage {
			a.Waits = "stage " + look.Stage
		}
		a.Annotation = strings.Trim(strings.TrimSpace(o.Platform.Annotations[v1alpha1.ApproveAnnotation]), ",")
		a.Annotation = strings.TrimPrefix(a.Annotation+","+s.Approval, ",")
		return a, nil, nil
	}
	return nil, nil, fmt.Errorf(
		"nothing of stage %s waits for approval: it is approved already, or all of its clusters are at %s",
		stage,
		cmp.Or(look.Target, "what they are to have"),
	)
}
