// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// ladder are the versions of the simulation; each is entered from the one before.
var ladder = []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0"}

// fleet is a simulated fleet with whoever looks after it: it carries out what Plan
// decides, and keeps its progress.
type fleet struct {
	t  *rapid.T
	in Input
	// stuck are the clusters for which there is no way.
	stuck map[string]bool
	// away is how a cluster was when it became unreachable.
	away map[string]Condition
	// done are the stages that were seen to be over, by a reckoning of the test's own.
	done map[int]bool
}

func drawFleet(t *rapid.T) *fleet {
	limit := rapid.Custom(func(t *rapid.T) *intstr.IntOrString {
		v := rapid.SampledFrom([]intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("25%"), intstr.FromString("60%")}).Draw(t, "limit")
		return rapid.SampledFrom([]*intstr.IntOrString{nil, &v}).Draw(t, "or none")
	})
	f := &fleet{t: t, stuck: map[string]bool{}, away: map[string]Condition{}, done: map[int]bool{}}
	f.in = Input{
		Now: now, UID: "uid", Target: ladder[rapid.IntRange(1, 2).Draw(t, "target")], Since: now, Approved: map[string]bool{},
		Spread:    time.Duration(rapid.IntRange(0, 3).Draw(t, "spread")) * time.Hour,
		OnFailure: rapid.SampledFrom([]OnFailure{Halt, Rollback}).Draw(t, "on failure"),
		Windows:   rapid.SampledFrom([][]Window{nil, {{Start: "22:00", Duration: 5 * time.Hour}}}).Draw(t, "windows"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "stages") {
		f.in.Stages = append(f.in.Stages, Stage{
			Name: fmt.Sprintf("s%d", i), MaxUnavailable: limit.Draw(t, "unavailable"), MaxFailures: limit.Draw(t, "failures"),
			Soak: time.Duration(rapid.IntRange(0, 2).Draw(t, "soak")) * time.Hour, Approval: rapid.Bool().Draw(t, "approval"),
		})
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "clusters") {
		f.in.Clusters = append(f.in.Clusters, Cluster{
			Name: fmt.Sprintf("c%d", i), Stage: rapid.IntRange(-1, len(f.in.Stages)-1).Draw(t, "stage"), Condition: Ready,
			Current: rapid.SampledFrom([]string{"", "1.0.0", "1.0.0", "2.0.0"}).Draw(t, "current"), Reached: now.Add(-100 * time.Hour),
		})
	}
	return f
}

func rung(version string) int { return slices.Index(ladder, version) }

// steer gives every cluster its next step.
func (f *fleet) steer() {
	for i := range f.in.Clusters {
		c := &f.in.Clusters[i]
		c.Next = ""
		switch {
		case f.stuck[c.Name]:
		case c.Current == "":
			c.Next = f.in.Target
		case rung(c.Current) < rung(f.in.Target):
			c.Next = ladder[rung(c.Current)+1]
		}
	}
}

// limits returns the limits of a stage, reckoned anew.
func (f *fleet) limits(stage int) (unavailable, failures int) {
	total := 0
	for _, c := range f.in.Clusters {
		if f.stageOf(c) == stage {
			total++
		}
	}
	if stage == len(f.in.Stages) {
		return 1, 0
	}
	of := func(v *intstr.IntOrString, otherwise int) int {
		switch {
		case v == nil:
			return otherwise
		case v.Type == intstr.Int:
			return int(v.IntVal)
		case v.StrVal == "25%":
			return total / 4
		}
		return total * 3 / 5
	}
	return max(1, of(f.in.Stages[stage].MaxUnavailable, 1)), of(f.in.Stages[stage].MaxFailures, 0)
}

func (f *fleet) stageOf(c Cluster) int {
	if c.Stage < 0 {
		return len(f.in.Stages)
	}
	return c.Stage
}

func (f *fleet) atTarget(c Cluster) bool { return c.Current == f.in.Target && c.Moving == "" }

// failures counts the clusters of a stage that this roll-out broke.
func (f *fleet) failures(stage int) int {
	count := 0
	for _, c := range f.in.Clusters {
		bad := c.Condition == Failed || c.Condition == Unhealthy
		if f.stageOf(c) == stage && bad && (f.atTarget(c) || c.Moving != "" && (c.Moving == c.Next || c.Moving == f.in.Target)) {
			count++
		}
	}
	return count
}

// isDone reckons whether a stage may be over, from the clusters alone.
func (f *fleet) isDone(stage int) bool {
	_, failures := f.limits(stage)
	missing := 0
	for _, c := range f.in.Clusters {
		if f.stageOf(c) != stage {
			continue
		}
		asks := stage < len(f.in.Stages) && f.in.Stages[stage].Approval
		if asks && !f.atTarget(c) && !f.in.Approved[f.in.Stages[stage].Name+"@"+f.in.Target] {
			return false
		}
		switch {
		case c.Condition == Unreachable:
		case !f.atTarget(c) || c.Condition != Ready:
			missing++
		case stage < len(f.in.Stages) && f.in.Now.Before(c.Reached.Add(f.in.Stages[stage].Soak)):
			return false
		}
	}
	return missing <= failures
}

// look decides, checks the decision, and carries it out.
func (f *fleet) look() Decision {
	f.steer()
	d := Plan(f.in)
	for stage := range len(f.in.Stages) + 1 {
		if f.isDone(stage) {
			f.done[stage] = true
		} else if !f.done[stage] {
			break
		}
	}
	f.checkUntil(d)
	f.checkShape(d)
	f.checkMoves(d)
	for i := range f.in.Clusters {
		c := &f.in.Clusters[i]
		for _, m := range append(slices.Clone(d.Moves), d.Back...) {
			if m.Cluster == c.Name {
				if c.Before == "" {
					c.Before = c.Current
				}
				c.Moving, c.Condition = m.To, Progressing
			}
		}
	}
	f.in.Progress = d.Progress
	return d
}

// checkUntil: the same question gets the same answer until then, in whatever order
// the clusters come.
func (f *fleet) checkUntil(d Decision) {
	if !d.Until.IsZero() && !d.Until.After(f.in.Now) {
		f.t.Fatalf("until %s is not after %s", rfc(d.Until), rfc(f.in.Now))
	}
	room := 40 * 24 * time.Hour
	if !d.Until.IsZero() {
		room = d.Until.Sub(f.in.Now) - 1
	}
	later := f.in
	later.Now = f.in.Now.Add(time.Duration(rapid.Int64Range(0, int64(room)).Draw(f.t, "later")))
	later.Clusters = slices.Clone(f.in.Clusters)
	slices.Reverse(later.Clusters)
	if diff := cmp.Diff(d, Plan(later)); diff != "" {
		f.t.Fatalf("at %s, before %s, it is otherwise than at %s: %s", rfc(later.Now), rfc(d.Until), rfc(f.in.Now), diff)
	}
}

func (f *fleet) checkShape(d Decision) {
	if (d.Why == "") != (len(d.Moves)+len(d.Back) > 0) {
		f.t.Fatalf("why %q, moves %v %v", d.Why, d.Moves, d.Back)
	}
	if len(d.Worst) > 10 || len(d.Stages) > len(f.in.Stages)+1 {
		f.t.Fatalf("too much: %+v", d)
	}
	total := 0
	for _, s := range d.Stages {
		total += s.Total
		if s.Total != s.Updated+s.Waiting+s.Moving+s.Failed+s.Unhealthy+s.Stuck+s.Unreachable {
			f.t.Fatalf("does not add up: %+v", s)
		}
	}
	if total != len(f.in.Clusters) {
		f.t.Fatalf("%d clusters of %d", total, len(f.in.Clusters))
	}
}

func (f *fleet) checkMoves(d Decision) {
	sent := map[int]int{}
	for _, m := range append(slices.Clone(d.Moves), d.Back...) {
		i := slices.IndexFunc(f.in.Clusters, func(c Cluster) bool { return c.Name == m.Cluster })
		sent[f.stageOf(f.in.Clusters[i])]++
	}
	for stage, count := range sent {
		most, _ := f.limits(stage)
		for _, c := range f.in.Clusters {
			if f.stageOf(c) == stage && c.Moving != "" && c.Condition == Progressing {
				count++
			}
		}
		if count > most {
			f.t.Fatalf("%d clusters of stage %d would be moving, %d may", count, stage, most)
		}
	}
	for _, m := range d.Moves {
		i := slices.IndexFunc(f.in.Clusters, func(c Cluster) bool { return c.Name == m.Cluster })
		f.checkMove(d, f.in.Clusters[i], m)
	}
	for _, m := range d.Back {
		i := slices.IndexFunc(f.in.Clusters, func(c Cluster) bool { return c.Name == m.Cluster })
		if c := f.in.Clusters[i]; d.Progress.RolledBack == "" || m.To != c.Before || m.To == "" || c.Condition == Unreachable || len(d.Moves) > 0 {
			f.t.Fatalf("goes back: %+v: %+v", m, c)
		}
	}
}

func (f *fleet) checkMove(d Decision, c Cluster, m Move) {
	stage := f.stageOf(c)
	open, _ := Open(f.in.Windows, f.in.Now)
	switch {
	case c.Condition != Ready || c.Moving != "":
		f.t.Fatalf("begins on %+v", c)
	case rung(m.To) <= rung(c.Current) || m.To != c.Next:
		f.t.Fatalf("goes to %s: %+v", m.To, c)
	case c.Current != "" && !open:
		f.t.Fatalf("begins outside of windows: %+v", c)
	case d.Progress.RolledBack != "":
		f.t.Fatalf("begins after a roll-back: %+v", c)
	case stage < len(f.in.Stages) && f.in.Stages[stage].Approval && !f.in.Approved[f.in.Stages[stage].Name+"@"+f.in.Target]:
		f.t.Fatalf("begins without approval: %+v", c)
	}
	for before := range stage {
		if !f.done[before] {
			f.t.Fatalf("stage %d begins before stage %d is done", stage, before)
		}
	}
	for other := range len(f.in.Stages) + 1 {
		if _, most := f.limits(other); f.failures(other) > most && other <= stage {
			f.t.Fatalf("begins although stage %d has %d failures", other, f.failures(other))
		}
	}
}

// chaos lets something happen to some clusters.
func (f *fleet) chaos() {
	for i := range f.in.Clusters {
		c := &f.in.Clusters[i]
		switch rapid.IntRange(0, 13).Draw(f.t, "happens") {
		case 0:
			if _, away := f.away[c.Name]; !away {
				f.away[c.Name], c.Condition = c.Condition, Unreachable
			}
		case 1:
			f.comeBack(c)
		case 2:
			if c.Condition != Unreachable {
				c.Condition = Failed
			}
		case 3:
			if c.Condition == Ready {
				c.Condition = Unhealthy
			}
		case 4:
			f.stuck[c.Name] = !f.stuck[c.Name]
		case 5, 6, 7, 8:
			if c.Condition != Unreachable {
				f.heal(c)
			}
		}
	}
	if len(f.in.Stages) > 0 && rapid.IntRange(0, 3).Draw(f.t, "approves") == 0 {
		stage := rapid.SampledFrom(f.in.Stages).Draw(f.t, "stage")
		f.in.Approved[stage.Name+"@"+f.in.Target] = true
	}
	if rapid.IntRange(0, 30).Draw(f.t, "retargets") == 0 {
		f.retarget(ladder[rapid.IntRange(rung(f.in.Target), 3).Draw(f.t, "target")])
	}
}

func (f *fleet) comeBack(c *Cluster) {
	if was, away := f.away[c.Name]; away {
		c.Condition = was
		delete(f.away, c.Name)
	}
}

// heal brings a cluster to the end of its move, or makes it well.
func (f *fleet) heal(c *Cluster) {
	c.Condition = Ready
	if c.Moving != "" {
		c.Current, c.Moving, c.Reached = c.Moving, "", f.in.Now
	}
}

func (f *fleet) retarget(version string) {
	if version == f.in.Target {
		return
	}
	f.in.Target, f.in.Since, f.done = version, f.in.Now, map[int]bool{}
	for i := range f.in.Clusters {
		f.in.Clusters[i].Before = ""
	}
}

// calm ends all faults but for what is away, and lets the roll-out come to its end.
func (f *fleet) calm() {
	f.stuck = map[string]bool{}
	for _, stage := range f.in.Stages {
		f.in.Approved[stage.Name+"@"+f.in.Target] = true
	}
	for range 400 {
		for i := range f.in.Clusters {
			if f.in.Clusters[i].Condition != Unreachable {
				f.heal(&f.in.Clusters[i])
			}
		}
		d := f.look()
		if len(d.Moves)+len(d.Back) > 0 {
			f.in.Now = f.in.Now.Add(time.Minute)
			continue
		}
		if d.Until.IsZero() {
			break
		}
		f.in.Now = d.Until
	}
	for _, c := range f.in.Clusters {
		switch {
		case c.Condition == Unreachable:
		case f.in.Progress.RolledBack == "" && !f.atTarget(c):
			f.t.Fatalf("never came to %s: %+v, %s", f.in.Target, c, Plan(f.in).Why)
		case f.inStage(c, f.in.Progress.RolledBack) && c.Before != "" && (c.Current != c.Before || c.Moving != ""):
			f.t.Fatalf("never went back: %+v, %s", c, Plan(f.in).Why)
		}
	}
}

func (f *fleet) inStage(c Cluster, name string) bool {
	if c.Stage < 0 {
		return name == Rest
	}
	return f.in.Stages[c.Stage].Name == name
}

// TestFleets lets random fleets live through failures, absences, approvals and new
// targets, and checks every decision on the way and where it ends.
func TestFleets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			d := f.look()
			f.chaos()
			step := time.Duration(rapid.IntRange(0, 180).Draw(t, "minutes")) * time.Minute
			if !d.Until.IsZero() && rapid.Bool().Draw(t, "waits") {
				step = d.Until.Sub(f.in.Now)
			}
			f.in.Now = f.in.Now.Add(step)
		}
		f.calm()
		for i := range f.in.Clusters {
			f.comeBack(&f.in.Clusters[i])
		}
		f.calm()
	})
}
