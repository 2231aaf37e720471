// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh"
)

const (
	// actionTime is how long a script may run on a host.
	actionTime = 20 * time.Minute
	// healthyTime is how long a host may take to be healthy after its action.
	healthyTime = 5 * time.Minute
	// busyTime is how long what an earlier actor has begun is waited for.
	busyTime = actionTime
	// startTime is how long what an action has started just now may take to be healthy, whose
	// actor was killed.
	startTime = time.Minute
	// endpointTime is how long the endpoint may take to lead to a new cluster.
	endpointTime = 2 * time.Minute
	// lookEvery is how often a host is looked at that is waited for.
	lookEvery = time.Second
)

// Options say what to work on.
type Options struct {
	// Cluster with its defaults, and its Machines.
	Cluster  *v1alpha1.HostCluster
	Machines *machines.Machines
	// Keys are those of whoever works on it, who signs snapshots with the one that hosts have
	// let in; nil for nobody who signs.
	Keys *ssh.Keys
	// ID is that of the cluster that Reset may take away; empty for the one of the manifest.
	ID string
	// TakeOver has the cluster be taken from another manager.
	TakeOver bool
	// SnapshotDir is where the snapshots of the manifest are kept; empty for nowhere.
	SnapshotDir string
	// Bucket is where they are kept in place of that; nil for none.
	Bucket *snapshots.Bucket
	// MaxQuota is how many bytes the snapshots of one cluster may have at most, whatever the
	// manifest says; 0 for any.
	MaxQuota int64
	// WithoutSnapshot has members of etcd change without one.
	WithoutSnapshot bool
	// RenewCertificates has those of all hosts renewed, whenever they end.
	RenewCertificates bool
	// Actor is whoever works on it, as others are told: a line such as root@admin.
	Actor string
	// Manager is as whom the manifest is applied; observe.Manager where it is empty.
	Manager string
	// Approve is asked once, before the first action; its error ends the run.
	Approve func(*hostplans.Plan) error
	// MayGoOn is asked before each action; its error ends the run. It may be nil.
	MayGoOn func() error
	// Looked hears what was seen at each look; it may be nil.
	Looked func(*hostplans.Plan, *observe.Sight)
	// Report hears what is done.
	Report func(Event)
	// Filling is what comes once the hosts are as the manifest says; nil for nothing.
	Filling Filling
	// Now returns the time.
	Now func() time.Time
}

// Filling brings into a cluster what it needs before anything else.
type Filling interface {
	// Steps returns what is to be done in the cluster that was seen, or in the one that is
	// to be made where none answers.
	Steps(ctx context.Context, sight *observe.Sight) ([]hostplans.Step, error)
	// Fill does what Steps has returned last.
	Fill(ctx context.Context, report func(Event)) error
}

// Event is one thing that is said while work goes on.
type Event struct {
	// Host that it is about; empty for the cluster.
	Host string
	// Message says what is done or waited for.
	Message string
	// Until is when a wait ends; zero for what is none.
	Until time.Time
}

// ErrChanged says that something else is to be done than what was agreed to.
var ErrChanged = errors.New("the hosts have changed since the plan was agreed to: look at the new plan, and run it again")

// worker is one Run.
type worker struct {
	Options
	// identity says who this is, for locks and the Lease: nobody else's is the same.
	identity string
	// fallen are the identities whose locks have fallen: they have ended, or are cut off
	// from the hosts.
	fallen []string
	// id of the cluster, once it is known.
	id    string
	lease *lease
	// agreed are the actions of the plan that was agreed to, and steps what comes after them.
	agreed []hosts.Action
	steps  []hostplans.Step
	sight  *observe.Sight
	// saved is true once this run has a snapshot, and restored once it has restored one.
	saved, restored bool
	// renewed are hosts that have new certificates.
	renewed []string
}

func newWorker(o Options) *worker {
	var saying sync.Mutex
	report := o.Report
	o.Report = func(event Event) { // also of actions that are taken side by side
		saying.Lock()
		defer saying.Unlock()
		report(event)
	}
	return &worker{Options: o, identity: printable.Line(o.Actor, 200) + ", since " + o.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
}

// Run does what is to be done, and returns the plan that is left: with nothing to do, or
// with what stops it. The error says that an action has failed, and where.
func Run(ctx context.Context, o Options) (*hostplans.Plan, error) {
	w := newWorker(o)
	plan, err := w.lookAtRest(ctx)
	if err == nil {
		err = w.addSteps(ctx, plan)
	}
	if err != nil || !plan.Acts() {
		return plan, err
	}
	if err := w.Approve(plan); err != nil {
		return plan, err
	}
	ctx, cancel, release, err := w.hold(ctx, plan)
	if err != nil {
		return plan, err
	}
	defer release()
	w.agreed, w.steps = plan.Actions, plan.Steps
	if plan, err = w.look(ctx); err != nil {
		return plan, err
	}
	if plan, err = w.work(ctx, cancel, plan); err != nil || plan.Outcome != hosts.Done {
		return plan, err
	}
	return w.fill(ctx, cancel, plan)
}

// addSteps adds to a plan what is done in the cluster, unless something stops the hosts
// from being as the manifest says.
func (w *worker) addSteps(ctx context.Context, plan *hostplans.Plan) error {
	if w.Filling == nil || plan.Outcome == hosts.Error || plan.Outcome == hosts.Blocked {
		return nil
	}
	steps, err := w.Filling.Steps(ctx, w.sight)
	if err != nil {
		return err
	}
	plan.SetSteps(w.Cluster, steps)
	return nil
}

// fill does what is to be done in the cluster, where that was agreed to.
func (w *worker) fill(ctx context.Context, cancel context.CancelCauseFunc, plan *hostplans.Plan) (*hostplans.Plan, error) {
	if err := w.addSteps(ctx, plan); err != nil || len(plan.Steps) == 0 {
		return plan, err
	}
	for _, step := range plan.Steps {
		if !slices.Contains(w.steps, step) {
			return plan, fmt.Errorf("%s: %w", step, ErrChanged)
		}
	}
	if err := w.holdLease(ctx, cancel); err != nil {
		return plan, err
	}
	if err := w.Filling.Fill(ctx, w.Report); err != nil {
		return plan, err
	}
	plan, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	return plan, w.addSteps(ctx, plan)
}

// look looks at everything, and says what is to be done.
func (w *worker) look(ctx context.Context) (*hostplans.Plan, error) {
	sight, err := observe.Look(ctx, observe.Options{
		Cluster: w.Cluster, Machines: w.Machines, Manager: w.Manager, TakeOver: w.TakeOver, Snapshots: w.snapshots(), Renew: w.toRenew(), Now: w.Now,
	})
	if err != nil {
		return nil, err
	}
	w.sight = sight
	if sight.Observation.ClusterID == "" {
		// Its first action may have made one that no journal has yet.
		sight.Observation.ClusterID = w.id
	} else {
		w.id = sight.Observation.ClusterID
	}
	plan := hostplans.New(w.Cluster, sight)
	if w.Looked != nil {
		w.Looked(plan, sight)
	}
	return plan, nil
}

// toRenew returns the hosts that are to have new certificates, whenever theirs end.
func (w *worker) toRenew() []string {
	var found []string
	for _, host := range w.Cluster.Spec.ControlPlane {
		if w.RenewCertificates && !slices.Contains(w.renewed, host.Name) {
			found = append(found, host.Name)
		}
	}
	return found
}

// lookAtRest looks when no action goes on any more that somebody has begun who was killed:
// until then the hosts change by themselves. A host on which one went on gets its time to
// become healthy, and so does one on which one has ended a moment ago.
func (w *worker) lookAtRest(ctx context.Context) (*hostplans.Plan, error) {
	until, said := w.Now().Add(busyTime), map[string]bool{}
	var healthyUntil time.Time
	for {
		plan, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		busy := w.busy()
		switch {
		case len(busy) > 0 && w.Now().After(until):
			return nil, fmt.Errorf("%s: an action that somebody has begun before has not ended in %s: see what runs there", strings.Join(busy, ", "), busyTime)
		case len(busy) > 0:
			for _, name := range busy {
				if !said[name] {
					said[name] = true
					w.Report(Event{Host: name, Message: "waits for what somebody has begun before", Until: until})
				}
			}
		default:
			waits := healthyTime
			if len(said) == 0 {
				waits, said = startTime, w.justWorked()
			}
			host := brokenOf(plan, said)
			if healthyUntil.IsZero() {
				healthyUntil = w.Now().Add(waits)
				if host != nil {
					w.Report(Event{Host: host.Name, Message: "waits: " + host.Note, Until: healthyUntil})
				}
			}
			if host == nil || w.Now().After(healthyUntil) {
				return plan, nil
			}
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// justWorked returns the hosts on which an action has ended a moment ago.
func (w *worker) justWorked() map[string]bool {
	found := map[string]bool{}
	for name, facts := range w.sight.Facts {
		if !facts.Worked.IsZero() && facts.Time.Sub(facts.Worked) < startTime {
			found[name] = true
		}
	}
	return found
}

// busy returns the hosts on which an action goes on, in order.
func (w *worker) busy() []string {
	var busy []string
	for name, facts := range w.sight.Facts {
		if facts.Busy {
			busy = append(busy, name)
		}
	}
	slices.Sort(busy)
	return busy
}

// brokenOf returns the first of some hosts that is broken; nil where none is.
func brokenOf(plan *hostplans.Plan, some map[string]bool) *hostplans.Host {
	i := slices.IndexFunc(plan.Hosts, func(h hostplans.Host) bool { return some[h.Name] && h.Class == hosts.Broken })
	if i < 0 {
		return nil
	}
	return &plan.Hosts[i]
}

// work takes the first action of the plan, until there is none.
func (w *worker) work(ctx context.Context, cancel context.CancelCauseFunc, plan *hostplans.Plan) (*hostplans.Plan, error) {
	// Every action brings a host further, so there cannot be many more than hosts.
	for left := 4*len(plan.Hosts) + 10; len(plan.Actions) > 0; left-- {
		actions := together(w.Cluster.Spec, plan.Actions)
		if left == 0 {
			return plan, errors.New("the same is to be done again and again: kubectl strata hosts logs has what hosts say")
		}
		for _, action := range actions {
			if !w.isAgreed(action) {
				return plan, fmt.Errorf("%s of %s: %w", action.Verb, action.Host, ErrChanged)
			}
		}
		if w.MayGoOn != nil {
			if err := w.MayGoOn(); err != nil {
				return plan, err
			}
		}
		if err := w.holdLease(ctx, cancel); err != nil {
			return plan, err
		}
		tookOver, lost := w.sight.Observation.TakesOver, w.sight.Cluster == nil
		done, err := w.actTogether(ctx, actions)
		if err != nil {
			return plan, err
		}
		if tookOver {
			return w.look(ctx) // what the manifest wants besides is another plan
		}
		next, err := w.settleAll(ctx, actions, done, lost)
		if err != nil {
			return plan, err
		}
		plan = next
	}
	return plan, nil
}

// actTogether takes actions side by side. done is false where a host is still at work for an
// earlier actor: that is waited for.
func (w *worker) actTogether(ctx context.Context, actions []hosts.Action) (done bool, err error) {
	if drains(actions[0]) && !actions[0].Continues {
		// A run that was killed may have left other hosts without Pods.
		var names []string
		for _, action := range actions {
			names = append(names, action.Host)
		}
		if err := w.uncordon(ctx, names...); err != nil {
			return false, err
		}
	}
	ended := make([]bool, len(actions))
	failures := make([]error, len(actions))
	var group sync.WaitGroup
	for i, action := range actions {
		group.Go(func() { ended[i], failures[i] = w.act(ctx, action) })
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return false, err
	}
	if slices.Contains(ended, false) {
		_, err = w.lookAtRest(ctx)
		return false, err
	}
	return true, nil
}

// settleAll waits until the hosts of actions are healthy. Hosts that were upgraded take Pods
// again.
func (w *worker) settleAll(ctx context.Context, actions []hosts.Action, done, lost bool) (plan *hostplans.Plan, err error) {
	upgraded := false
	for _, action := range actions {
		if plan, err = w.settle(ctx, action, done, lost); err != nil {
			return nil, err
		}
		upgraded = drains(action) && !slices.ContainsFunc(plan.Actions, action.IsSameAs)
	}
	if upgraded {
		err = w.uncordon(ctx)
	}
	return plan, err
}

// isAgreed tells whether an action is one of those that were agreed to: also one that is
// gone on with, and the settings of hosts that have come by what was agreed to.
func (w *worker) isAgreed(action hosts.Action) bool {
	if action.Verb == hosts.VerbUpdate {
		return true
	}
	return slices.ContainsFunc(w.agreed, action.IsSameAs)
}

// settle looks again until the host of an action that is done is healthy, or its time is
// over; what is then to be done is decided as ever. Where the cluster was lost before, a host
// may need others to be healthy: then what is to be done there is not waited with.
func (w *worker) settle(ctx context.Context, action hosts.Action, done, lost bool) (*hostplans.Plan, error) {
	until := w.Now().Add(healthyTime)
	said := ""
	for {
		plan, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		note, settled := standing(plan, action)
		goesOn := lost && w.sight.Cluster == nil && len(plan.Actions) > 0 && action.Verb != hosts.VerbInit && !plan.Actions[0].IsSameAs(action)
		if !done || settled || goesOn || w.Now().After(until) {
			return plan, nil
		}
		if note != said {
			said = note
			w.Report(Event{Host: action.Host, Message: "waits: " + note, Until: until})
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// standing tells whether a host stands as its action leaves it, and what is missing.
func standing(plan *hostplans.Plan, action hosts.Action) (note string, settled bool) {
	if plan.NotQueried != "" && action.Verb != hosts.VerbReset {
		return plan.NotQueried, false
	}
	if slices.Contains([]hosts.Verb{hosts.VerbRemoveMember, hosts.VerbRemoveNode, hosts.VerbSnapshot}, action.Verb) {
		return "", true // its host is as it was
	}
	for _, host := range plan.Hosts {
		if host.Name != action.Host {
			continue
		}
		want := hosts.Healthy
		if action.Verb == hosts.VerbReset {
			want = hosts.Empty
		}
		isAt := action.Verb != hosts.VerbUpgrade || host.Version == action.Version
		return host.Note, host.Class == want && isAt
	}
	return "", true
}

// pause waits for a moment before the next look, and ends with the context.
func pause(ctx context.Context) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
