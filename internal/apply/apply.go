// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply carries out a plan for the dependents of one primary, on its own
// cluster and on others. It decides nothing: what to do is in the plan, and an object that
// is not as the plan saw it is left alone and reported as outdated.
package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/fields"
	"github.com/strata-project/strata/internal/objects"
)

// defaultWorkers is how many objects of one stage are written at a time at most.
const defaultWorkers = 8

// callTimeout bounds one call to the API server.
const callTimeout = 15 * time.Second

// Cluster is how objects of one cluster are read and written.
type Cluster struct {
	// Client writes. Its RESTMapper must know the kinds of the plan.
	Client client.Client
	// Reader reads past every cache: what is about to be changed is looked at
	// as it is now, with its managedFields.
	Reader client.Reader
	// Seen returns an object as a cache has it, or nil; it is not changed. With
	// it and Known, objects of strict kinds are written in one request where
	// that is enough; without either they are always read and claimed first.
	Seen func(context.Context, objects.ID) (*unstructured.Unstructured, error)
	// Version returns the version at which a kind that has no manifest in the
	// plan is written, if it is known; otherwise the RESTMapper says.
	Version func(schema.GroupKind) (schema.GroupVersionKind, bool)
}

// ActingAs returns the cluster as another client reads and writes it, as whoever
// that client acts for.
func (c Cluster) ActingAs(other client.Client) Cluster {
	c.Client, c.Reader = other, other
	return c
}

// Executor carries out plans. It is safe for concurrent use.
type Executor struct {
	// Cluster of the primary.
	Cluster
	// Other returns another cluster, by the name that IDs have for it. Nil means
	// that there is none. An error is that of the action.
	Other func(cluster string) (Cluster, error)
	// Keys are the labels and annotations by which objects are owned.
	Keys dependents.Keys
	// Strict tells kinds of whose spec fields that others added are taken
	// back, all but suspend.
	Strict func(schema.GroupKind) bool
	// Reserved says what an object is that others keep for themselves; it is
	// written for nobody. Empty is any other. Nil means that there is none.
	Reserved func(owner string, live *unstructured.Unstructured) string
	// Refuses says what would be refused of a new object once it is applied, and is not when
	// it is created, as an error that says that the manifest is wrong. Nil means nothing.
	Refuses func(*unstructured.Unstructured) error
	// Removing does what comes before an object of the executor's own cluster is deleted; nil
	// means that nothing does.
	Removing func(ctx context.Context, id objects.ID, uid types.UID) error
	// Known remembers the objects of strict kinds that were written.
	Known *Known
	// Workers is how many objects of one stage are written at a time at most;
	// 0 means 8.
	Workers int
	// ExtraWorkers bounds how many objects all runs together write at a time,
	// beyond the one that each of them always may; nil means no bound. Copies that
	// OnClusters returns share it.
	ExtraWorkers *semaphore.Weighted
	// Valid is how long after the beginning of Run actions may begin; those
	// left then are outdated, so that the next look decides anew. 0 means no
	// limit.
	Valid time.Duration
	// now returns the time; nil means time.Now.
	now func() time.Time
}

// OnClusters returns an executor of other clusters. All else is as before, and
// shared.
func (e *Executor) OnClusters(own Cluster, other func(cluster string) (Cluster, error)) *Executor {
	moved := *e
	moved.Cluster, moved.Other = own, other
	return &moved
}

// at returns the cluster of that name.
func (e *Executor) at(cluster string) (Cluster, error) {
	switch {
	case cluster == "":
		return e.Cluster, nil
	case e.Other == nil:
		return Cluster{}, fmt.Errorf("there is no cluster %s", cluster)
	default:
		return e.Other(cluster)
	}
}

// Run carries out a plan for the primary named owner and returns what became
// of every action that was tried, in the order of the plan. Preparations that
// fail stop everything; a stage of writes that fails stops later stages, unless
// only detached objects failed; removals are tried all the same. When ctx ends,
// actions that have begun are finished and no other one begins.
func (e *Executor) Run(ctx context.Context, owner string, plan dependents.Plan) []dependents.Result {
	run := &run{Executor: e, owner: owner, began: e.time(), versions: map[objects.ID]string{}}
	var results []dependents.Result
	writesStopped := false
	for _, group := range groups(plan.Actions) {
		if group.writes && writesStopped {
			continue
		}
		outcome := run.group(ctx, group)
		results = append(results, outcome...)
		if !stops(outcome) {
			continue
		}
		if group.preparation {
			return results
		}
		writesStopped = writesStopped || group.writes
	}
	return results
}

// Carry carries out a plan whose inventory must be known before anything of it is
// done: record writes it down. A plan that writes nothing records nothing.
func (e *Executor) Carry(ctx context.Context, owner string, plan dependents.Plan, record func(context.Context) error) ([]dependents.Result, error) {
	if !plan.Writes() {
		return nil, nil
	}
	if err := record(ctx); err != nil {
		return nil, err
	}
	return e.Run(ctx, owner, plan), nil
}

// stops tells whether results forbid what comes after them.
func stops(results []dependents.Result) bool {
	for _, result := range results {
		detached := result.Action.Wanted != nil && result.Action.Wanted.Detached
		if !detached && (result.Err != nil || result.Outdated) {
			return true
		}
	}
	return false
}

// group is a run of actions that may be carried out side by side, those on one
// object in their order.
type group struct {
	writes, preparation bool
	objects             [][]dependents.Action
}

// groups cuts the actions of a plan, which come in order, into groups.
func groups(actions []dependents.Action) []group {
	var found []group
	index := map[objects.ID]int{}
	var last dependents.Action
	for i, action := range actions {
		phase := action.Verb.Phase()
		if i == 0 || phase != last.Verb.Phase() || phase == dependents.PhaseWrite && action.Stage != last.Stage {
			found = append(found, group{writes: phase == dependents.PhaseWrite, preparation: phase == dependents.PhasePreparation})
			index = map[objects.ID]int{}
		}
		last = action
		current := &found[len(found)-1]
		at, known := index[action.ID]
		if !known {
			at = len(current.objects)
			index[action.ID] = at
			current.objects = append(current.objects, nil)
		}
		current.objects[at] = append(current.objects[at], action)
	}
	return found
}

// run is one Run: it remembers the resourceVersions of what it changed, for
// the next action on the same object.
type run struct {
	*Executor
	owner    string
	began    time.Time
	mu       sync.Mutex
	versions map[objects.ID]string
}

// group carries out a group of actions. Objects are taken in their order by one
// worker that nothing holds up and by others as far as there are extra workers, so
// that runs that are many, or that wait long, leave each other room.
func (r *run) group(ctx context.Context, g group) []dependents.Result {
	outcomes := make([][]dependents.Result, len(g.objects))
	var taken atomic.Int64
	// take returns the place of the next object; it is false where none is left.
	take := func() (int, bool) {
		at := int(taken.Add(1)) - 1
		return at, at < len(g.objects)
	}
	waiting, stopWaiting := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	for range min(r.workers(), len(g.objects)) - 1 {
		helpers.Go(func() {
			for r.takeExtra(waiting) {
				at, is := take()
				if is {
					outcomes[at] = r.object(ctx, g.objects[at])
				}
				r.returnExtra()
				if !is {
					return
				}
			}
		})
	}
	for at, is := take(); is; at, is = take() {
		outcomes[at] = r.object(ctx, g.objects[at])
	}
	stopWaiting()
	helpers.Wait()
	return slices.Concat(outcomes...)
}

// object carries out the actions on one object in their order, until one fails.
func (r *run) object(ctx context.Context, actions []dependents.Action) []dependents.Result {
	var results []dependents.Result
	for _, action := range actions {
		if ctx.Err() != nil {
			break
		}
		if r.expired() {
			return append(results, dependents.Result{Action: action, Outdated: true})
		}
		result := r.do(ctx, action)
		results = append(results, result)
		if result.Err != nil || result.Outdated {
			break
		}
	}
	return results
}

func (r *run) workers() int {
	if r.Workers <= 0 {
		return defaultWorkers
	}
	return r.Workers
}

// takeExtra waits for the turn of an extra worker, and returns false where ctx ends
// before.
func (r *run) takeExtra(ctx context.Context) bool {
	return ctx.Err() == nil && (r.ExtraWorkers == nil || r.ExtraWorkers.Acquire(ctx, 1) == nil)
}

// returnExtra gives the turn of an extra worker back.
func (r *run) returnExtra() {
	if r.ExtraWorkers != nil {
		r.ExtraWorkers.Release(1)
	}
}

// expired tells whether a plan is too old to be acted on.
func (r *run) expired() bool { return r.Valid > 0 && r.time().Sub(r.began) > r.Valid }

func (e *Executor) time() time.Time {
	if e.now != nil {
		return e.now()
	}
	return time.Now()
}

// clusterRun is a run where it acts on one cluster.
type clusterRun struct {
	*run
	Cluster
}

// do carries out one action.
func (r *run) do(ctx context.Context, action dependents.Action) dependents.Result {
	cluster, err := r.at(action.ID.Cluster)
	if err != nil {
		return dependents.Result{Action: action, Err: err}
	}
	before := r.version(action)
	made, err := (&clusterRun{r, cluster}).dispatch(ctx, action, before)
	result := dependents.Result{Action: action}
	switch {
	case err == nil && made.live == nil:
		result.Outdated = true
	case err == nil:
		result.UID, result.Generation, result.ResourceVersion = made.live.GetUID(), made.live.GetGeneration(), made.live.GetResourceVersion()
		if result.Changed = made.changed(before); action.Verb == dependents.VerbWrite && !r.strict(action.ID) {
			result.Fields = fields.NoteOf(made.live).Own
		}
		if action.Correction && result.Changed && made.before != nil {
			result.Rivals = fields.Rivals(made.before, made.live)
		}
		r.remember(action.ID, result.ResourceVersion)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && action.Verb != dependents.VerbWrite:
		result.Outdated = true
	default:
		result.Err = withoutSecrets(action, err)
	}
	return result
}

// changed tells whether an object says something else than before, which was at a version.
// Of an object that was only marked, the version says so.
func (w written) changed(version string) bool {
	if w.before != nil {
		return !fields.SameContent(w.before, w.live)
	}
	return version == "" || w.live.GetResourceVersion() != version
}

// dispatch carries an action out.
func (r *clusterRun) dispatch(ctx context.Context, action dependents.Action, version string) (written, error) {
	if action.Verb == dependents.VerbWrite {
		return r.write(ctx, action)
	}
	live, err := r.mark(ctx, action, version)
	return written{live: live}, err
}

// mark changes the marks of an object, or deletes it, and returns it afterwards; nil where it
// is not as it was seen.
func (r *clusterRun) mark(ctx context.Context, action dependents.Action, version string) (*unstructured.Unstructured, error) {
	switch {
	case action.UID == "":
		return nil, nil // the plan has not seen it
	case action.Verb == dependents.VerbDelete:
		return r.delete(ctx, action, version)
	default:
		patch := action.Patch(r.owner, r.Keys)
		if patch == nil {
			return nil, fmt.Errorf("cannot carry out the unknown verb %s", action.Verb)
		}
		if action.Verb == dependents.VerbDisown {
			return r.disown(ctx, action, version)
		}
		return r.patch(ctx, action, version, patch)
	}
}

// call makes one call, which ends in its own time and not with ctx: a caller
// that gave up half way would not know what it has written.
func call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return do(ctx)
}

func (r *run) version(action dependents.Action) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version, changed := r.versions[action.ID]; changed {
		return version
	}
	return action.ResourceVersion
}

func (r *run) remember(id objects.ID, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[id] = version
}

// withoutSecrets keeps the content of a Secret, and of an object that was made with values
// of one, out of errors: the API server or a webhook quotes it when it refuses one.
func withoutSecrets(action dependents.Action, err error) error {
	confidential := action.Wanted != nil && action.Wanted.Confidential
	if !confidential && action.ID.GroupKind() != (schema.GroupKind{Kind: "Secret"}) || !mayQuote(err) {
		return err
	}
	withheld := fmt.Errorf("the API server refuses it as %s; what it says is withheld, because it may quote a Secret", apierrors.ReasonForError(err))
	if inTheWay := (*dependents.LiveStateError)(nil); errors.As(err, &inTheWay) {
		return &dependents.LiveStateError{Err: withheld, Field: inTheWay.Field, Managers: inTheWay.Managers}
	}
	return withheld
}

// mayQuote tells whether an error is about what was sent, and not about a right
// that is missing or a server that is busy.
func mayQuote(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusForbidden:
		_, denied := dependents.DenialOf(err)
		return !denied
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
