// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Condition says how a cluster fares.
type Condition string

const (
	// Ready is a cluster that is well at the version that it is at.
	Ready Condition = "Ready"
	// Progressing is one that something is done on.
	Progressing Condition = "Progressing"
	// Failed is one on which something has failed.
	Failed Condition = "Failed"
	// Unhealthy is one that is not well, whatever the reason.
	Unhealthy Condition = "Unhealthy"
	// Unreachable is one that does not answer, so that nothing is known of it.
	Unreachable Condition = "Unreachable"
)

// Cluster is one cluster that a Platform installs its bundle on. Its versions and
// the target of a roll-out are compared as they are written, which is as the
// bundles have them.
type Cluster struct {
	Name string
	// Stage is the index of its stage; -1 where none has it.
	Stage int
	// Current is the version that it is at; empty where it has none yet.
	Current string
	// Next is the version to go to from there, as Choose says; empty where there is
	// nothing to go to, and then Problem says why where it is not at the target.
	Next, Problem string
	// Unfit says why it cannot run the target, by its version of Kubernetes; empty where
	// it can. It goes as far as it can, and no stage waits for more.
	Unfit string
	// Moving is the version that it has been sent to and has not reached; empty
	// where it is at rest. It stays while the move has failed.
	Moving string
	// Before is the version that it had before this roll-out first moved it; empty
	// where it was not moved, or had none.
	Before string
	// Condition of the cluster, and what there is to say of it.
	Condition Condition
	Message   string
	// Reached is since when it is at Current.
	Reached time.Time
}

// standing is what a roll-out sees in a cluster.
type standing int

const (
	// updated: at the target and well.
	updated standing = iota
	// waiting: to be moved.
	waiting
	// moving: on its way, or settling at the target.
	moving
	// failed: on its way or at the target.
	failed
	// unhealthy: not well before its move, so that it is not started.
	unhealthy
	// stuck: not at the target, and there is no way to it.
	stuck
	// unreachable: nothing is known.
	unreachable
	// unfit: as far as its version of Kubernetes lets it be, which is not the target.
	unfit
)

// standingOf says how a cluster stands to a target. A cluster fails in a roll-out
// where that has moved it: what failed under an earlier target is unhealthy.
func standingOf(c Cluster, target string, back bool) standing {
	unwell := c.Condition == Failed || c.Condition == Unhealthy
	switch {
	case c.Condition == Unreachable:
		return unreachable
	case c.Moving != "" && !unwell:
		return moving
	case c.Moving != "" && (c.Moving == c.Next || c.Moving == target || back && c.Moving == c.Before):
		return failed
	case c.Moving != "":
		return unhealthy
	case c.Current == target && unwell:
		return failed
	case c.Current == target && c.Condition == Progressing:
		return moving
	case c.Current == target:
		return updated
	case c.Unfit != "" && c.Next == "":
		return unfit
	case unwell:
		return unhealthy
	case c.Next == "":
		return stuck
	}
	return waiting
}

// member is a cluster with its standing.
type member struct {
	Cluster
	standing
	// order is that of the spread, so that who begins first also comes first.
	order time.Duration
}

// group is a stage with its clusters.
type group struct {
	Stage
	members []member
	counts  [unfit + 1]int
}

// groups sorts clusters into their stages; the last one is the rest.
func groups(in Input, back bool) []*group {
	var all []*group
	for _, stage := range in.Stages {
		all = append(all, &group{Stage: stage})
	}
	all = append(all, &group{Stage: Stage{Name: Rest, MaxUnavailable: in.MaxUnavailable}})
	for _, c := range in.Clusters {
		i := c.Stage
		if i < 0 || i >= len(in.Stages) {
			i = len(in.Stages)
		}
		m := member{Cluster: c, standing: standingOf(c, in.Target, back), order: Offset(in.UID, c.Name, math.MaxInt64)}
		all[i].members = append(all[i].members, m)
		all[i].counts[m.standing]++
	}
	for _, g := range all {
		slices.SortFunc(g.members, func(a, b member) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Name, b.Name)) })
	}
	return all
}

// missing is how many reachable clusters will not come to the target by
// themselves.
func (g *group) missing() int { return g.counts[failed] + g.counts[unhealthy] + g.counts[stuck] }

// broken tells whether more clusters have failed than may.
func (g *group) broken() bool { return g.counts[failed] > g.failures(len(g.members)) }

// moved tells whether the roll-out has moved a cluster that had something before.
func (g *group) moved() bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.Before != "" && (m.Moving != "" || m.Current != m.Before) })
}

// free is how many more clusters may be moving.
func (g *group) free() int { return g.unavailable(len(g.members)) - g.counts[moving] }

// soaked returns when the soak of what has been updated ends.
func (g *group) soaked() time.Time {
	var last time.Time
	for _, m := range g.members {
		if m.standing == updated && m.Reached.After(last) {
			last = m.Reached
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(g.Soak)
}

// needsApproval tells whether somebody must approve the stage who has not. One
// that has nothing to move needs none.
func (g *group) needsApproval(in Input) bool {
	return g.Approval && !in.Approved[g.asks(in.Target)] &&
		slices.ContainsFunc(g.members, func(m member) bool {
			return m.standing != unfit && (m.Moving != "" || m.Current != in.Target)
		})
}

func (g *group) progress(in Input) StageProgress {
	progress := StageProgress{
		Name: g.Name, Total: len(g.members), Updated: g.counts[updated], Waiting: g.counts[waiting], Moving: g.counts[moving],
		Failed: g.counts[failed], Unhealthy: g.counts[unhealthy], Stuck: g.counts[stuck], Unreachable: g.counts[unreachable], Unfit: g.counts[unfit],
	}
	if g.needsApproval(in) {
		progress.Approval = g.asks(in.Target)
	}
	if g.Soak > 0 {
		progress.Soaked = g.soaked()
	}
	return progress
}

// trouble says what is wrong with a cluster; empty where nothing is.
func (m member) trouble() string {
	message := ""
	if m.Message != "" {
		message = ": " + m.Message
	}
	switch m.standing {
	case failed:
		if m.Moving != "" {
			return fmt.Sprintf("the move to %s has failed%s", m.Moving, message)
		}
		return fmt.Sprintf("has failed at %s%s", m.Current, message)
	case unhealthy:
		return "is not started: it is unhealthy" + message
	case stuck:
		return "is not started: " + cmp.Or(m.Problem, "there is no version to go to")
	case unreachable:
		return "cannot be reached" + message
	case unfit:
		return "stays at " + cmp.Or(m.Current, "no version") + ": " + m.Unfit
	default:
		return ""
	}
}

// worst returns the clusters that are worst off, at most mostTrouble: those that
// failed first, and of the same trouble those of the first stage.
func worst(all []*group) []Trouble {
	type ranked struct {
		Trouble
		standing
		stage int
	}
	var found []ranked
	for i, g := range all {
		for _, m := range g.members {
			if reason := m.trouble(); reason != "" {
				found = append(found, ranked{Trouble{Cluster: m.Name, Stage: g.Name, Reason: reason}, m.standing, i})
			}
		}
	}
	slices.SortFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.standing, b.standing), cmp.Compare(a.stage, b.stage), cmp.Compare(a.Cluster, b.Cluster))
	})
	var most []Trouble
	for _, r := range found[:min(len(found), mostTrouble)] {
		most = append(most, r.Trouble)
	}
	return most
}
