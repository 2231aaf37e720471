// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/moments"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// FieldManager owns the fields of the objects that are applied.
	FieldManager = fields.Manager
	// MarksManager owns labels and annotations that say where an object
	// stands, and a suspension; they are never part of what is applied.
	MarksManager = "strata-marks"
)

// Keys names the labels and annotations by which objects are owned.
type Keys struct {
	// Owner is the label with the name of the owning primary.
	Owner string
	// Orphaned is the label that marks what its primary no longer wants.
	Orphaned string
	// SuspendedByHold is the annotation on what a hold suspended.
	SuspendedByHold string
	// SuspendedByLoss is the annotation on what was suspended while its cluster
	// was away; empty where there are no other clusters.
	SuspendedByLoss string
	// SupersededBy is the annotation that names a successor.
	SupersededBy string
	// CreatedFor is the annotation that names the primary that an object was created
	// for; empty where nothing notes its origin. It goes with the owner: what nobody
	// owns is not known to be anybody's making.
	CreatedFor string
	// Abandon is the annotation by which people give up what a suspended
	// release installed; messages name it.
	Abandon string
	// AllowPrune is the annotation by which people say that what may be listed by
	// others goes all the same; messages name it.
	AllowPrune string
	// Requested is the annotation by which Flux is asked to look at an object.
	Requested string
	// FormerOwner is the API group and kind whose ownerReferences are taken
	// off, because garbage collection knows neither grace nor order.
	FormerOwner schema.GroupKind
}

// Claim is another primary's wish for an object.
type Claim struct {
	// Owner is the name of the primary.
	Owner string
	// Origin is the file that lists the object.
	Origin string
	// ID of the object it lists; differs from the object asked about where
	// only their Exclusive is the same.
	ID objects.ID
}

// Others is what the other primaries of the same cluster want. It need only
// speak of the objects in question.
type Others struct {
	// Listed holds the claims on an object.
	Listed map[objects.ID][]Claim
	// Exclusive holds the claims on what only one object may stand for.
	Exclusive map[string][]Claim
	// Holds names the primary whose inventory has an object; at least for objects
	// that stand for something exclusive. A label alone says nothing: who may write
	// the object may write that, too.
	Holds map[objects.ID]string
	// Existing names every primary there is, but those without finalizer that
	// are gone.
	Existing map[string]bool
	// Unreadable names primaries of which it is not known what they list.
	Unreadable map[string]bool
	// Elsewhere names the primaries that reach the same cluster by another name, and
	// says by which. What they have is never taken over.
	Elsewhere map[string]string
	// MayList names those of Unreadable that may list an object which has left this
	// primary: they share its source, and what they hold may mean the object.
	MayList map[objects.ID][]Doubt
}

// Doubt says that another primary may list an object.
type Doubt struct {
	// Owner is the name of that primary.
	Owner string
	// Why it may, as what follows its name; empty where it is only not known.
	Why string
}

// Input is everything that Make decides from.
type Input struct {
	// Owner is the name of the primary, the value of its label.
	Owner string
	Keys  Keys
	// Now is the time of the observation.
	Now time.Time
	// Grace is how long an unwanted object waits to be adopted. Below 0 it is deleted without
	// being marked before: nobody could adopt it.
	Grace time.Duration
	// Waited says how long orphans have waited at most, by a clock that is
	// never set: Now, and Entry.Since, are the wall clock's. One that it lacks
	// is judged by those two alone.
	Waited map[objects.ID]time.Duration

	// Wanted is what the primary wants.
	Wanted []Dependent
	// Keep holds objects that are not unwanted although Wanted lacks them:
	// the primary will want them once it may.
	Keep map[objects.ID]bool
	// Inventory is what the primary had.
	Inventory []Entry
	// Others is what the other primaries want.
	Others Others
	Found
	Limits
}

// Found is what was found on the clusters.
type Found struct {
	// Live holds the objects on the cluster, perhaps as metadata only.
	Live map[objects.ID]*unstructured.Unstructured
	// Stale holds objects of which Live is known to be older than the
	// primary's own last write.
	Stale map[objects.ID]bool
	// NotServed holds kinds that their cluster does not serve.
	NotServed map[objects.ServedKind]bool
	// Twins holds the other names of clusters that have several: an object is the
	// same by each of them.
	Twins map[string][]string
	// Exclusive holds the live objects that stand for something exclusive.
	Exclusive map[string][]objects.ID
	// Idle holds live objects that do not get what they stand for by themselves.
	Idle map[objects.ID]bool
	// Apart holds live objects whose writers need no right to what they stand for, so
	// that their labels say nothing.
	Apart map[objects.ID]bool
	// LeftAlone says of live objects what has them left as they are.
	LeftAlone map[objects.ID]string
	// Disputes holds the objects that others change again and again.
	Disputes map[objects.ID]Dispute
}

// Limits say how far a plan may go. The zero value allows nothing.
type Limits struct {
	// Held stops all actions but Suspend.
	Held bool
	// SuspendHeld suspends the releases of a held primary.
	SuspendHeld bool
	// Away names a cluster that does not answer. The releases that install there
	// are suspended, and all else is stopped as Held does; empty for none.
	Away string
	// MayPrune allows what concerns ownership: adopt, mark, release, delete.
	MayPrune bool
	// MayWrite allows writing what is wanted.
	MayWrite bool
	// RepairOnly narrows MayWrite to objects that were last applied with the
	// very content that is wanted: drift is corrected, nothing is changed.
	RepairOnly bool
	// Reserved holds objects that others keep for themselves, with what they are:
	// nothing is done to them, whoever wants them and whatever the inventory says.
	Reserved map[objects.ID]string
	// Abandon allows deleting suspended releases, which uninstalls nothing.
	Abandon bool
	// EndDoubt allows deleting what others may list.
	EndDoubt bool
	// Forsaken holds clusters that are given up: what an unwanted object there
	// was is forgotten, and releases that installed there are suspended and
	// deleted, so that nobody asks the cluster for anything.
	Forsaken map[string]bool
}

// ReasonSuspended is the reason of a Standing that is in the way of a removal
// because somebody suspended it.
const ReasonSuspended = "SuspendedRelease"

// Verb is what an Action does.
type Verb string

// The verbs, in the order in which they are carried out within one stage.
const (
	// VerbDisown takes off ownerReferences of the former owner kind.
	VerbDisown Verb = "Disown"
	// VerbSuspend suspends a release, for a hold or while its cluster is away.
	VerbSuspend Verb = "Suspend"
	// VerbResume resumes a release that Strata suspended.
	VerbResume Verb = "Resume"
	// VerbUnmark takes the orphaned label off.
	VerbUnmark Verb = "Unmark"
	// VerbAdopt makes the primary the owner, without changing anything else.
	VerbAdopt Verb = "Adopt"
	// VerbSupersede suspends and owns an object that another one succeeds.
	VerbSupersede Verb = "Supersede"
	// VerbWrite creates the object, or claims and applies it.
	VerbWrite Verb = "Write"
	// VerbMark sets the orphaned label.
	VerbMark Verb = "Mark"
	// VerbRelease takes the labels off and leaves the object.
	VerbRelease Verb = "Release"
	// VerbDelete deletes the object.
	VerbDelete Verb = "Delete"
	// VerbRequest has Flux look at a release, and changes nothing of it.
	VerbRequest Verb = "Request"
)

var verbOrder = []Verb{
	VerbDisown, VerbSuspend, VerbResume, VerbUnmark, VerbAdopt, VerbSupersede,
	VerbWrite, VerbMark, VerbRelease, VerbDelete, VerbRequest,
}

// Action is one thing to do to one object.
type Action struct {
	Verb Verb
	ID   objects.ID
	// Stage orders actions; all Writes of one stage come before the next.
	Stage int
	// UID and ResourceVersion of the object as it was seen; empty where it
	// was not there.
	UID             types.UID
	ResourceVersion string
	// Wanted is what to write, with VerbWrite only.
	Wanted *Dependent
	// From names owners that the object may be taken from; nobody's objects
	// and one's own always may be.
	From []string
	// Successor is the object that succeeds it, with VerbSupersede.
	Successor objects.ID
	// Mark is the annotation that says who suspended it, with VerbSuspend.
	Mark string
	// Moment is the time that the orphaned label says, with VerbMark, and the request, with
	// VerbRequest.
	Moment time.Time
	// Correction is true where the write undoes somebody else's change.
	Correction bool
	// Again is true where the object got the very content before, by the last apply or by its
	// creation, so that nothing has left the content since.
	Again bool
	// KeptFor names the primary that will have the object, with VerbMark.
	KeptFor string
	// Spared is that of the object's entry, with VerbRelease.
	Spared string
}

// Conflict is an object that two want.
type Conflict struct {
	ID     objects.ID
	Origin string
	// Owner has the object and OwnerOrigin lists it.
	Owner       string
	OwnerOrigin string
	// With is the object in the way; it differs from ID where both stand for
	// the same exclusive thing.
	With objects.ID
}

// Contest is an object that no primary has, and that stands for the same exclusive
// thing as a wanted one. It stops nothing that is there already.
type Contest struct {
	ID     objects.ID
	Origin string
	// With is the object that nobody vouches for.
	With objects.ID
	// Waits is true where the wanted object waits for it.
	Waits bool
}

// Plan is what to do and where every object stands.
type Plan struct {
	// Actions in the order in which they are to be carried out.
	Actions []Action
	// Standings of the wanted objects, then of the unwanted ones.
	Standings []objects.Standing
	// Inventory to be persisted before the first action.
	Inventory []Entry
	// Conflicts; when there are any, there are no actions.
	Conflicts []Conflict
	// Contested lists what stands for the same exclusive things as wanted objects,
	// and is nobody's.
	Contested []Contest
	// Disputes lists the wanted objects that others change again and again.
	Disputes []Dispute
	// Forsaken holds objects on clusters that were given up, and releases that
	// installed there: what they stand for is left behind.
	Forsaken []objects.ID
	// Undecided holds objects that are to go, as nobody else wants them, but not
	// yet: they were written a moment ago, or have to be resumed first.
	Undecided []objects.ID
	// Doubted holds the objects that others may list, and that go because of EndDoubt.
	Doubted []objects.ID
	// Unchanged holds the wanted objects that are as the last apply of what is
	// wanted left them.
	Unchanged []*Dependent
	// Until is the next moment at which the plan may differ although nothing
	// else has changed; zero where there is none.
	Until time.Time
}

// Writes tells whether the plan changes anything.
func (p Plan) Writes() bool { return len(p.Actions) > 0 }

// Of returns the actions with a verb.
func (p Plan) Of(verb Verb) []Action {
	var found []Action
	for _, action := range p.Actions {
		if action.Verb == verb {
			found = append(found, action)
		}
	}
	return found
}

// planner holds the input and the plan in the making.
type planner struct {
	Input
	wanted    map[objects.ID]*Dependent
	entries   map[objects.ID]Entry
	standings map[objects.ID]objects.Standing
	// standsFor names what exclusive thing a live object stands for.
	standsFor map[objects.ID][]string
	// successors holds the wanted objects by what they stand for.
	successors map[string][]*Dependent
	// superseding holds what this plan supersedes.
	superseding map[objects.ID]bool
	plan        Plan
}

// Make returns the plan for an input. It is deterministic, and the order of
// the input's slices does not matter.
func Make(in Input) Plan {
	p := newPlanner(in)
	p.findConflicts()
	if len(p.plan.Conflicts) > 0 {
		p.Held = true
		p.SuspendHeld, p.Away = false, ""
	}
	for i := range p.Wanted {
		p.planWanted(&p.Wanted[i])
	}
	for _, entry := range p.Inventory {
		if p.wanted[entry.ID] == nil {
			p.planUnwanted(entry)
		}
	}
	p.finish()
	return p.plan
}

func newPlanner(in Input) *planner {
	in.Held = in.Held || in.Away != ""
	in.Wanted = slices.Clone(in.Wanted)
	slices.SortFunc(in.Wanted, func(a, b Dependent) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), a.ID.Compare(b.ID))
	})
	in.Inventory = slices.Clone(in.Inventory)
	slices.SortFunc(in.Inventory, func(a, b Entry) int { return a.ID.Compare(b.ID) })
	p := &planner{
		Input:     in,
		wanted:    make(map[objects.ID]*Dependent, len(in.Wanted)),
		entries:   make(map[objects.ID]Entry, len(in.Inventory)),
		standings: make(map[objects.ID]objects.Standing, len(in.Wanted)),

		standsFor: map[objects.ID][]string{}, successors: map[string][]*Dependent{},
		superseding: map[objects.ID]bool{},
	}
	for i := range p.Wanted {
		d := &p.Wanted[i]
		p.wanted[d.ID] = d
		if d.Exclusive != "" {
			p.successors[d.Exclusive] = append(p.successors[d.Exclusive], d)
		}
	}
	for _, entry := range p.Inventory {
		p.entries[entry.ID] = entry
	}
	for exclusive, ids := range p.Exclusive {
		for _, id := range ids {
			p.standsFor[id] = append(p.standsFor[id], exclusive)
		}
	}
	return p
}

// inTheWay returns the live objects, in order, that stand for the same
// exclusive thing as a wanted one and are neither wanted nor kept.
func (p *planner) inTheWay(d *Dependent) []objects.ID {
	if d.Exclusive == "" {
		return nil
	}
	var found []objects.ID
	for _, id := range p.Exclusive[d.Exclusive] {
		if id != d.ID && p.Live[id] != nil && p.wanted[id] == nil && !p.Keep[id] {
			found = append(found, id)
		}
	}
	return objects.SortIDs(found)
}

// act adds an action, unless the primary is held.
func (p *planner) act(action Action) {
	if p.Held && action.Verb != VerbSuspend || p.Reserved[action.ID] != "" {
		return
	}
	if live := p.Live[action.ID]; live != nil {
		action.UID, action.ResourceVersion = live.GetUID(), live.GetResourceVersion()
	}
	p.plan.Actions = append(p.plan.Actions, action)
}

// stand records where an object stands, and keeps it in the inventory.
func (p *planner) stand(entry Entry, standing objects.Standing) {
	if d := p.wanted[entry.ID]; d != nil && d.Optional {
		standing.Health = min(standing.Health, objects.Ignored)
	}
	standing.ID = entry.ID
	standing.Origin = entry.Origin
	if entry.Status != standing.Status {
		entry.Status = standing.Status
		entry.Since = p.Now
	}
	p.standings[entry.ID] = standing
	p.plan.Standings = append(p.plan.Standings, standing)
	p.plan.Inventory = append(p.plan.Inventory, entry)
}

// until brings the next look forward to a moment.
func (p *planner) until(moment time.Time) {
	p.plan.Until = moments.Earlier(p.plan.Until, moment)
}

// owner returns the primary that owns an object; "" for nobody.
func (p *planner) owner(live *unstructured.Unstructured) string {
	return live.GetLabels()[p.Keys.Owner]
}

func (p *planner) finish() {
	slices.SortStableFunc(p.plan.Actions, func(a, b Action) int {
		return cmp.Or(
			cmp.Compare(a.Verb.Phase(), b.Verb.Phase()),
			cmp.Compare(a.Stage, b.Stage),
			cmp.Compare(slices.Index(verbOrder, a.Verb), slices.Index(verbOrder, b.Verb)),
			a.ID.Compare(b.ID),
		)
	})
	slices.SortFunc(p.plan.Inventory, func(a, b Entry) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(p.plan.Contested, func(a, b Contest) int {
		return cmp.Or(a.ID.Compare(b.ID), a.With.Compare(b.With))
	})
	slices.SortFunc(p.plan.Conflicts, func(a, b Conflict) int {
		return cmp.Or(a.ID.Compare(b.ID), a.With.Compare(b.With))
	})
}

// The phases of a plan, in their order.
const (
	// PhasePreparation makes room for what is written.
	PhasePreparation Phase = iota
	// PhaseWrite writes what is wanted.
	PhaseWrite
	// PhaseRemoval takes leave of what is not.
	PhaseRemoval
)

// Phase is a part of a plan that is carried out before the next one begins.
type Phase int

// Phase returns the part of a plan that actions of the verb belong to: an object
// that changes hands is written before anything is deleted.
func (v Verb) Phase() Phase {
	switch v {
	case VerbWrite:
		return PhaseWrite
	case VerbMark, VerbRelease, VerbDelete, VerbRequest:
		return PhaseRemoval
	default:
		return PhasePreparation
	}
}
