// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platforms says how Platforms fare, what the controller would do for one, and
// what is approved with a stage. It may import fleet, and the rules of the controller;
// it reads nothing but what it is given.
package platforms

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/fleet"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/rollout"
)

// Standing is how a Platform fares.
type Standing struct {
	Name   string `json:"name"`
	Family string `json:"family"`
	// Version that the clusters are moved to, and Available the newest one that could
	// be asked for, where that is another one.
	Version   string `json:"version"`
	Available string `json:"available"`
	// From are the versions that clusters have been at, the oldest first.
	From []string `json:"from"`
	// Ready is True, False or Unknown, and Why says why.
	Ready string `json:"ready"`
	Why   string `json:"why"`
	Held  bool   `json:"held"`
	// Stale is true where the controller has not looked at the latest generation.
	Stale    bool                  `json:"stale"`
	Counts   v1alpha1.ClusterCount `json:"counts"`
	Deployed int                   `json:"layersDeployed"`
	Layers   int                   `json:"layers"`
	Stages   []Stage               `json:"stages"`
	// Approvals of stages, the last first.
	Approvals []v1alpha1.StageApproval `json:"approvals"`
	// Next is when something may begin by itself; nil where that is not known.
	Next     *metav1.Time                 `json:"next"`
	Lock     []v1alpha1.LockedApplication `json:"lock"`
	Worst    []v1alpha1.ClusterTrouble    `json:"worst"`
	Clusters []Cluster                    `json:"clusters"`
}

// Stage is a stage of a roll-out.
type Stage struct {
	Name string `json:"name"`
	// State is Waiting, Active, Halted or Done.
	State       string `json:"state"`
	Total       int    `json:"total"`
	Done        int    `json:"done"`
	Moving      int    `json:"moving"`
	Failed      int    `json:"failed"`
	Waiting     int    `json:"waiting"`
	Unreachable int    `json:"unreachable"`
	// SoakLeft is how many seconds the soak still takes, and SoakUntil when it ends; 0 and nil
	// where nothing soaks.
	SoakLeft  int64        `json:"soakLeftSeconds"`
	SoakUntil *metav1.Time `json:"soakUntil"`
	// Approval is what has to be approved, as STAGE@VERSION; empty for nothing.
	Approval string `json:"approval"`
	// Waits says what the stage waits for.
	Waits string `json:"waitsFor"`
}

// Cluster is what becomes of one cluster of a Platform.
type Cluster struct {
	Name  string `json:"name"`
	Stage string `json:"stage"`
	// Version that it has been at, and Hops those that it goes to.
	Version string   `json:"version"`
	Hops    []string `json:"hops"`
	// State is Begins, Moving, Waiting, Done, or what is wrong.
	State    string `json:"state"`
	Why      string `json:"why"`
	Deployed int    `json:"layersDeployed"`
	Layers   int    `json:"layers"`
}

// Of says how a Platform fares: what its status counts, and what follows
// from what was read now.
func Of(o platforms.Observation) Standing {
	platform, look := o.Platform, platforms.Look(o)
	status := platform.Status
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	s := Standing{
		Name: platform.Name, Version: status.Version, Available: status.Available, Held: platform.Spec.Hold, Ready: "Unknown", Why: "has not been looked at yet",
		Stale: status.ObservedGeneration != platform.Generation, Counts: status.Clusters,
		Deployed: int(status.Layers.Deployed), Layers: int(status.Layers.Total), Next: status.NextChange,
		From: []string{}, Lock: []v1alpha1.LockedApplication{}, Worst: append([]v1alpha1.ClusterTrouble{}, status.Worst...),
		Stages: stages(o, look), Clusters: clustersOf(look), Approvals: append([]v1alpha1.StageApproval{}, status.Approvals...),
	}
	s.Family = familyOf(platform)
	if ready != nil {
		s.Ready, s.Why = string(ready.Status), ready.Message
	}
	if s.Stale {
		s.Why = "has not been looked at since it was changed"
	}
	if status.Lock != nil {
		s.Lock = append(s.Lock, status.Lock.Applications...)
	}
	for _, cluster := range s.Clusters {
		if cluster.Version != "" && !slices.Contains(s.From, cluster.Version) {
			s.From = append(s.From, cluster.Version)
		}
	}
	slices.SortFunc(s.From, fleet.Compare)
	return s
}

// familyOf names the bundle of a Platform.
func familyOf(platform *v1alpha1.Platform) string {
	switch {
	case platform.Spec.Bundle != nil:
		return platform.Spec.Bundle.Family
	case len(platform.Spec.Layers) > 0:
		return "(its own layers)"
	}
	return ""
}

// Blocked tells whether the Platform does not get on by itself.
func (s Standing) Blocked() bool {
	waits := slices.ContainsFunc(s.Stages, func(stage Stage) bool { return stage.Approval != "" && stage.State == "Active" })
	return s.Ready == string(metav1.ConditionFalse) || s.Held || s.Stale || waits || s.Counts.Failed > 0 || s.Counts.Unreachable > 0
}

// Target returns the version that is gone to, behind those that clusters have.
func (s Standing) Target() string {
	from := slices.DeleteFunc(slices.Clone(s.From), func(version string) bool { return version == s.Version })
	return strings.TrimPrefix(strings.Join(from, ", ")+" -> "+s.Version, " -> ")
}

func stages(o platforms.Observation, look platforms.Outlook) []Stage {
	found := []Stage{}
	states := map[string]string{}
	for _, stage := range look.Status.Stages {
		states[stage.Name] = stage.State
	}
	for _, p := range look.Stages {
		stage := Stage{
			Name: p.Name, State: states[p.Name], Total: p.Total, Done: p.Updated, Moving: p.Moving, Failed: p.Failed + p.Unhealthy + p.Stuck,
			Waiting: p.Waiting, Unreachable: p.Unreachable, Approval: p.Approval,
		}
		if left := p.Soaked.Sub(o.Now); !p.Soaked.IsZero() && left > 0 {
			stage.SoakLeft = int64(left.Round(time.Second) / time.Second)
			until := metav1.NewTime(p.Soaked.UTC())
			stage.SoakUntil = &until
		}
		stage.Waits = stageWaits(stage, look)
		found = append(found, stage)
	}
	return found
}

// stageWaits says what a stage waits for: the one at work as the rules say it, the
// others for that.
func stageWaits(stage Stage, look platforms.Outlook) string {
	switch {
	case stage.State == "Done":
		return ""
	case stage.Name == look.Stage:
		return look.Why
	case stage.Approval != "":
		return fmt.Sprintf("stage %s, and approval: %s", look.Stage, stage.Approval)
	case look.Stage != "":
		return "stage " + look.Stage
	}
	return ""
}

func clustersOf(look platforms.Outlook) []Cluster {
	found := []Cluster{}
	for _, c := range look.Clusters {
		one := Cluster{
			Name: fleet.NameOf(c.Cluster), Stage: c.Stage, Version: c.Version, Hops: append([]string{}, c.Hops...),
			Deployed: int(c.Deployed), Layers: int(c.Total), Why: c.Message,
		}
		one.State = stateOf(c, look.Target)
		if one.Why == "" && one.State == "Waiting" {
			one.Why = waitsOf(c, look)
		}
		found = append(found, one)
	}
	return found
}

func stateOf(c platforms.ClusterOutlook, target string) string {
	switch {
	case c.Condition == rollout.Unreachable:
		return "Unreachable"
	case c.Condition == rollout.Failed, c.Condition == rollout.Unhealthy:
		return "Failed"
	case c.Begins:
		return "Begins"
	case c.Moving, c.Condition == rollout.Progressing:
		return "Moving"
	case c.Version == target && len(c.Hops) == 0:
		return "Done"
	case c.Problem != "":
		return "Stuck"
	}
	return "Waiting"
}

// waitsOf says what a cluster waits for that is well and not at the target.
func waitsOf(c platforms.ClusterOutlook, look platforms.Outlook) string {
	switch {
	case c.Stage != "" && c.Stage != look.Stage && look.Stage != "":
		return "waits for stage " + look.Stage
	case look.Why != "":
		return look.Why
	}
	return "waits for its turn"
}
