// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/internal/moments"
)

// OnFailure says what happens when more clusters of a stage fail than may.
type OnFailure string

const (
	// Halt starts nothing more until enough of them have healed; what is under way
	// goes on. It is also what an unknown value does.
	Halt OnFailure = "Halt"
	// Rollback also sends the clusters of the stage back to what they had, and
	// does not try the version again. It is Halt where none of them had anything.
	Rollback OnFailure = "Rollback"
)

// Progress is what a roll-out remembers from one decision to the next. It is the
// caller's to keep; that of another target counts for nothing.
type Progress struct {
	// Target is the version that it is about.
	Target string
	// Passed are the names of the stages that are over. A cluster of those that
	// comes late, because it was unreachable or is new, is moved without holding
	// up the others.
	Passed []string
	// RolledBack is the name of the stage that was rolled back; empty for none.
	RolledBack string
}

// Input is everything that Plan decides from.
type Input struct {
	Now time.Time
	// UID of the Platform.
	UID string
	// Target is the version that is rolled out, and Since when it became that.
	Target  string
	Since   time.Time
	Windows []Window
	Spread  time.Duration
	Stages  []Stage
	// MaxUnavailable is that of the clusters that no stage has, as a stage has it.
	MaxUnavailable *intstr.IntOrString
	OnFailure      OnFailure
	// Approved are the values of ApprovalFor that somebody has given.
	Approved map[string]bool
	Clusters []Cluster
	Progress Progress
}

// Move sends one cluster to a version.
type Move struct{ Cluster, To string }

// StageProgress counts the clusters of a stage. The others add up to Total.
type StageProgress struct {
	Name                                                                          string
	Total, Updated, Waiting, Moving, Failed, Unhealthy, Stuck, Unreachable, Unfit int
	// Done is true where the stage is over, although clusters that were missing
	// may still be moved.
	Done bool
	// Approval is what somebody has to approve before the stage begins, as
	// ApprovalFor has it; empty where nothing is waited for.
	Approval string
	// Soaked is when the soak of what has been updated ends; zero where nothing has
	// been, or the stage has none.
	Soaked time.Time
}

// Trouble is what is wrong with a cluster.
type Trouble struct{ Cluster, Stage, Reason string }

// mostTrouble bounds how many clusters a decision names.
const mostTrouble = 10

// Decision says what is to be done now. Only Moves and Back grow with the fleet,
// and they hold no more clusters than may be moving.
type Decision struct {
	// Moves are the clusters that are to begin now, and Back those that are to go
	// back to what they had; by stage, and in it as the spread has them.
	Moves, Back []Move
	// Stages are those of the input, and Rest where it has clusters.
	Stages []StageProgress
	// Stage is the one that is at work; empty where all are over.
	Stage string
	// Why says why nothing begins; empty where something does.
	Why string
	// Halted is the stage in which more has failed than may, so that nothing begins;
	// empty where none has.
	Halted string
	// Worst are the clusters that are worst off, at most 10.
	Worst []Trouble
	// Until is when the decision may differ although nothing else has changed; zero
	// where that will not be.
	Until    time.Time
	Progress Progress
}

// Plan says which clusters are to be moved now.
//
// A stage begins when those before it are over and, where it asks for that, when
// somebody has approved it. It is over when every cluster that can be reached is
// at the target and well, but for as many as MaxFailures allows to be missing, and
// the last of them has soaked. One that cannot run the target is over where it is as far
// as it can be. Only clusters that are well begin, within windows,
// spread over them, and no more at a time than MaxUnavailable. One that cannot be
// reached counts for none of this.
//
// A first installation waits for no window and is not spread: it takes nothing
// from anybody. A roll-back does not wait either, since every hour until a window
// is one of an outage; but it too moves no more clusters at a time than may be
// unavailable, those first that failed.
func Plan(in Input) Decision {
	p := &plan{Input: in, progress: Progress{Target: in.Target}}
	if in.Progress.Target == in.Target {
		p.progress.RolledBack = in.Progress.RolledBack
		p.passed = in.Progress.Passed
	}
	p.groups = groups(in, p.progress.RolledBack != "")
	p.current = len(p.groups)
	why := "there is no version to go to"
	if in.Target != "" {
		why = p.decide()
	}
	return p.decision(why)
}

// plan is a decision in the making.
type plan struct {
	Input
	groups []*group
	// passed are the names of the stages that are over.
	passed []string
	// current is the index of the stage at work, the number of stages for none.
	current     int
	moves, back []Move
	until       time.Time
	progress    Progress
	haltedBy    string
}

func (p *plan) over(g *group) bool { return slices.Contains(p.passed, g.Name) }

// decide makes the decision and returns why nothing begins, should that be so.
func (p *plan) decide() string {
	if p.progress.RolledBack != "" {
		return p.goBack()
	}
	if g := p.brokenBefore(); g != nil {
		p.findCurrent()
		return p.halted(g)
	}
	why := p.findCurrent()
	if p.current < len(p.groups) {
		if g := p.groups[p.current]; g.broken() {
			if p.OnFailure == Rollback && g.moved() {
				p.progress.RolledBack = g.Name
				return p.goBack()
			}
			return p.halted(g)
		}
	}
	waits := p.start()
	if waits != "" && (p.current == len(p.groups) || !p.groups[p.current].needsApproval(p.Input)) {
		return waits
	}
	return why
}

func (p *plan) halted(g *group) string {
	p.haltedBy = g.Name
	return fmt.Sprintf("halted: %d of %d clusters of stage %s failed, and %d may", g.counts[failed], len(g.members), g.Name, g.failures(len(g.members)))
}

// brokenBefore returns the first stage that is over and in which too much has
// failed since; nil for none.
func (p *plan) brokenBefore() *group {
	for _, g := range p.groups {
		if p.over(g) && g.broken() {
			return g
		}
	}
	return nil
}

// findCurrent finds the stage at work and notes which are over. It returns what
// that stage waits for.
func (p *plan) findCurrent() string {
	for i, g := range p.groups {
		if p.over(g) {
			continue
		}
		why := p.heldUp(g)
		if why != "" {
			p.current = i
			return why
		}
		// One that was not approved because it had nothing to move is not noted: it
		// is asked about again should that change.
		if !g.Approval || p.Approved[g.asks(p.Target)] {
			p.passed = append(slices.Clone(p.passed), g.Name)
		}
	}
	return "every stage is done"
}

// heldUp says why a stage is not over; empty where it is.
func (p *plan) heldUp(g *group) string {
	soaked := g.soaked()
	switch {
	case g.needsApproval(p.Input):
		return fmt.Sprintf("stage %s waits for approval: %s", g.Name, g.asks(p.Target))
	case g.counts[moving] > 0:
		return fmt.Sprintf("%d clusters of stage %s are moving, and %d may at a time", g.counts[moving], g.Name, g.unavailable(len(g.members)))
	case g.missing() > g.failures(len(g.members)):
		return p.missing(g)
	case g.counts[waiting] > 0:
		return fmt.Sprintf("stage %s has clusters that are not ready to begin", g.Name)
	case p.Now.Before(soaked):
		p.until = moments.Earlier(p.until, soaked)
		return fmt.Sprintf("stage %s soaks until %s", g.Name, soaked.UTC().Format(time.RFC3339))
	}
	return ""
}

// missing names the first of the clusters without which a stage does not end.
func (p *plan) missing(g *group) string {
	first := worst([]*group{g})[0]
	more := ""
	if n := g.missing() - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Sprintf("stage %s does not end: cluster %s %s%s", g.Name, first.Cluster, first.Reason, more)
}

// start begins what may begin, in the stages that are over and in the one at work.
// It returns what the next of those waits for that could begin otherwise; empty
// for nothing.
func (p *plan) start() string {
	why, first := "", time.Time{}
	c := p.opened()
	for i, g := range p.groups {
		if i != p.current && !p.over(g) || i == p.current && g.needsApproval(p.Input) {
			continue
		}
		free := g.free()
		for _, m := range g.members {
			if m.standing != waiting || m.Condition != Ready {
				continue
			}
			when, waits := p.begins(m, c)
			switch {
			case waits != "" && (why == "" || when.Before(first)):
				why, first = waits, when
			case waits == "" && free > 0:
				p.moves = append(p.moves, Move{m.Name, m.Next})
				free--
			}
		}
	}
	return why
}

// clock is how the windows are at the moment.
type clock struct {
	open bool
	// from is when it opened or, where that was later, when the target became one;
	// zero where neither is known. until is when it closes; zero where that is not
	// in sight.
	from, until time.Time
	// next is when it opens where it is closed; zero where that is not in sight.
	next time.Time
}

func (p *plan) opened() clock {
	var c clock
	if c.from, c.until, c.open = opening(p.Windows, p.Now); !c.open {
		c.next = Next(p.Windows, p.Now)
	}
	if p.Since.After(c.from) {
		c.from = p.Since
	}
	return c
}

// begins returns when a cluster may begin that may not now, and what it waits for
// until then; nothing where it may begin.
func (p *plan) begins(m member, c clock) (when time.Time, waits string) {
	switch {
	case m.Current == "":
		return time.Time{}, ""
	case !c.open && c.next.IsZero():
		return time.Time{}, "waits for a window, and none opens"
	case !c.open:
		p.until = moments.Earlier(p.until, c.next)
		return c.next, "waits for the window that opens at " + c.next.UTC().Format(time.RFC3339)
	}
	p.until = moments.Earlier(p.until, c.until)
	spread := p.Spread
	if !c.until.IsZero() {
		spread = min(spread, c.until.Sub(c.from))
	}
	when = c.from.Add(Offset(p.UID, m.Name, spread))
	if c.from.IsZero() || !when.After(p.Now) {
		return time.Time{}, ""
	}
	p.until = moments.Earlier(p.until, when)
	return when, fmt.Sprintf("the next cluster begins at %s, spread over %s", when.UTC().Format(time.RFC3339), spread)
}

// goBack sends the clusters of the stage that failed back to what they had. What is
// under way comes to its end first.
func (p *plan) goBack() string {
	why := fmt.Sprintf("%s failed in stage %s, which goes back to what it had; it is not tried again until another version was", p.Target, p.progress.RolledBack)
	for i, g := range p.groups {
		if g.Name != p.progress.RolledBack {
			continue
		}
		p.current = i
		free := g.free()
		for _, worstFirst := range []bool{true, false} {
			for _, m := range g.members {
				if m.mustGoBack() && (m.standing == failed) == worstFirst && free > 0 {
					p.back = append(p.back, Move{m.Name, m.Before})
					free--
				}
			}
		}
	}
	return why
}

// mustGoBack tells whether a cluster has been moved and can be sent back now.
func (m member) mustGoBack() bool {
	if m.Before == "" || m.standing == unreachable || m.standing == moving {
		return false
	}
	if m.Moving != "" {
		return m.Moving != m.Before
	}
	return m.Current != m.Before
}

// decision puts together what was decided.
func (p *plan) decision(why string) Decision {
	d := Decision{Moves: p.moves, Back: p.back, Halted: p.haltedBy, Worst: worst(p.groups), Until: p.until, Progress: p.progress}
	if len(d.Moves)+len(d.Back) == 0 {
		d.Why = why
	}
	for i, g := range p.groups {
		progress := g.progress(p.Input)
		progress.Done = p.over(g) || p.Target != "" && p.progress.RolledBack == "" && i < p.current
		if p.over(g) {
			d.Progress.Passed = append(d.Progress.Passed, g.Name)
		}
		if g.Name != Rest || len(g.members) > 0 {
			d.Stages = append(d.Stages, progress)
		}
	}
	if p.current < len(p.groups) {
		d.Stage = p.groups[p.current].Name
	}
	return d
}
