// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles the kinds of kraan.io: it observes, has the
// pure rules decide, carries out and reports. One file per kind, plus its
// watches.
package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/repos"
)

const (
	// lookAgain is how soon a layer is looked at again that was not as the
	// plan had seen it, when no watch comes first.
	lookAgain = 200 * time.Millisecond
	// intervalJitter spreads the safety net's looks, by this part of the
	// interval, so that layers made together are not looked at together.
	intervalJitter = 0.05
	// othersUnread is how soon a layer looks again at what another one lists
	// that could not be fetched.
	othersUnread = 5 * time.Second
	// discoveryLag is how soon a layer looks again for a kind whose definition
	// is there already; discovery follows it a moment later.
	discoveryLag = 500 * time.Millisecond
	// afterProgress is how soon a layer is looked at again of which some objects
	// were written and others were not.
	afterProgress = time.Second
	// minRetry and maxRetry bound the back-off after errors.
	minRetry = 200 * time.Millisecond
	maxRetry = 2 * time.Minute
	// writeTimeout bounds the write of a status.
	writeTimeout = 15 * time.Second
)

// Artifacts hands out what the artifacts of sources hold.
type Artifacts interface {
	// Directory returns a directory of an artifact.
	Directory(ctx context.Context, artifact repos.Artifact, path string) (*layers.Directory, error)
	// ByDigest returns a directory by its content, as long as it is cached.
	ByDigest(digest string) (*layers.Directory, bool)
	// Remember caches a directory, so that ByDigest returns it.
	Remember(directory *layers.Directory)
}

// AddonsLayerReconciler keeps AddonsLayers as they are specified.
type AddonsLayerReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Cache that Client reads from.
	Cache cache.Cache
	// Artifacts of the sources.
	Artifacts Artifacts
	// Cluster knows the API server's version.
	Cluster *ClusterVersion
	// Events receives what happens to layers.
	Events events.EventRecorder
	// Notifier receives the same, for people; nil means that nobody listens.
	Notifier Notifier
	// Instance names this process in what Notifier receives.
	Instance string
	// Meters count what is done; nil means that nobody does.
	Meters *Meters
	// Settings of the rules.
	Settings layers.Settings
	// Selector narrows the layers that this controller looks after; nil means
	// all. It sees the others, and takes nothing from them.
	Selector labels.Selector
	// Concurrent is how many layers are looked at side by side.
	Concurrent int
	// PlanValid is how long after it was made a plan may be acted on. With
	// leader election it is the time between giving up the lead and losing it,
	// so that a process that was stopped meanwhile writes nothing old; 0 is no
	// limit.
	PlanValid time.Duration
	// Fence says whether the process may still act; nil means that it may.
	Fence *Fence
	// Now returns the time; nil means time.Now.
	Now func() time.Time

	executor   *apply.Executor
	accounts   *accounts
	controller controller.Controller
	kinds      *kinds
	sources    *kinds
	listings   *listings
	recent     *recent
	waits      *waits
	revisions  *revisions
	untold     untold
	wakeups    chan event.GenericEvent
	// spacing says how far apart statuses are written; nil means
	// layers.Spacing.
	spacing func(last, next v1alpha1.AddonsLayerStatus) time.Duration
}

// Reconcile looks at one layer: observe, decide, act, report.
func (r *AddonsLayerReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !r.Fence.Holds() {
		return ctrl.Result{}, nil // the process is about to end
	}
	result, err := r.reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		// Somebody else has changed the layer meanwhile, perhaps in a way that
		// wakes nobody.
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	if errors.Is(err, errGone) {
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *AddonsLayerReconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	layer, err := r.read(ctx, req.Name)
	if err != nil || layer == nil {
		return ctrl.Result{}, err
	}
	defer r.Meters.looked(layer.Name, time.Now())
	observation, err := r.observe(ctx, layer)
	if err != nil || ctx.Err() != nil {
		// What is seen while the controller stops may lack something.
		return ctrl.Result{}, err
	}
	decision := layers.Decide(*observation)
	if decision.Finalized {
		return r.finalize(ctx, observation.Layer)
	}
	before := observation.Layer.Status
	results, err := r.act(ctx, observation, decision)
	r.untold.add(layer.Name, before, results)
	r.Meters.did(layer.Name, results)
	if err != nil {
		return ctrl.Result{}, err
	}
	status, decision := layers.Report(*observation, decision, results)
	keeping := r.revisions.keep(ctx, observation, before.History, &status)
	if early := r.early(observation, status, decision, results); early > 0 && keeping == nil {
		r.note(observation, decision)
		result, err := r.again(observation, decision, results)
		result.RequeueAfter = min(result.RequeueAfter, early)
		return result, err
	}
	if err := r.persist(ctx, observation, status); err != nil {
		return ctrl.Result{}, err
	}
	before, done := r.untold.take(layer.Name)
	r.Meters.reported(observation.Layer, before, r.now())
	r.tell(observation.Layer, before, decision, done)
	r.note(observation, decision)
	if err := r.consume(ctx, observation, decision.Accept); err != nil || keeping != nil {
		return ctrl.Result{}, errors.Join(err, keeping)
	}
	return r.again(observation, decision, results)
}

// read returns a layer with its finalizer, or nil where there is nothing to do
// for it.
func (r *AddonsLayerReconciler) read(ctx context.Context, name string) (*v1alpha1.AddonsLayer, error) {
	cached := &v1alpha1.AddonsLayer{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, cached); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot read layer %s: %w", name, err)
		}
		r.listings.forget(name)
		r.recent.forget(name)
		r.untold.forget(name)
		r.Meters.forget(name)
		r.waits.forget(name)
		r.wake(r.listings.whoWaits()...)
		return nil, nil
	}
	if r.Selector != nil && !r.Selector.Matches(labels.Set(cached.Labels)) {
		r.Meters.forget(name)
		return nil, nil
	}
	layer := r.recent.newest(cached)
	if controllerutil.ContainsFinalizer(layer, v1alpha1.Finalizer) {
		return layer, nil
	}
	if !layer.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	// A patch of the metadata alone leaves the specification, and so the
	// generation, as it is.
	patched := layer.DeepCopy()
	controllerutil.AddFinalizer(patched, v1alpha1.Finalizer)
	err := r.Client.Patch(ctx, patched, client.MergeFromWithOptions(layer, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldManager))
	if err != nil {
		return nil, fmt.Errorf("cannot add the finalizer to layer %s: %w", name, err)
	}
	r.recent.wroteLayer(patched.DeepCopy())
	return patched, nil
}

// finalize lets a deleted layer go. That is the one step that nothing takes
// back, so what the layer had last is looked for past the cache once more.
func (r *AddonsLayerReconciler) finalize(ctx context.Context, layer *v1alpha1.AddonsLayer) (ctrl.Result, error) {
	left, err := r.leftBehind(ctx, layer)
	if err != nil || left {
		return ctrl.Result{RequeueAfter: lookAgain}, err
	}
	patched := layer.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.Finalizer)
	err = r.Client.Patch(ctx, patched, client.MergeFromWithOptions(layer, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("cannot remove the finalizer of layer %s: %w", layer.Name, err)
	}
	return ctrl.Result{}, nil
}

// leftBehind tells whether an object of a layer's inventory is there and the
// layer's, although the cache does not show it.
func (r *AddonsLayerReconciler) leftBehind(ctx context.Context, layer *v1alpha1.AddonsLayer) (bool, error) {
	for _, entry := range layers.Inventory(layer.Status.Resources, nil) {
		gvk, watched := r.kinds.version(entry.ID.GroupKind())
		if !watched {
			continue
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(gvk)
		if err := r.Reader.Get(ctx, entry.ID.Key(), live); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return false, fmt.Errorf("cannot make sure that %s has gone: %w", entry.ID, err)
		}
		if live.Labels[v1alpha1.LayerLabel] == layer.Name {
			return true, nil
		}
	}
	return false, nil
}

// consume removes annotations that are used up, when the attempt they allow has
// been recorded and before they have their effect: after a crash in between the
// next look finds both, and neither refuses what was allowed nor allows another
// revision.
func (r *AddonsLayerReconciler) consume(ctx context.Context, o *layers.Observation, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[key] = nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations, "resourceVersion": o.Layer.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("cannot write the patch: %w", err)
	}
	patched := o.Layer.DeepCopy()
	err = r.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	if err != nil {
		return fmt.Errorf("cannot use up annotations of layer %s: %w", o.Layer.Name, err)
	}
	r.recent.wroteLayer(patched.DeepCopy())
	o.Layer = patched
	return nil
}

// act carries out a decision's plan, after the inventory of what it is about
// to touch has been persisted.
func (r *AddonsLayerReconciler) act(ctx context.Context, o *layers.Observation, d layers.Decision) ([]dependents.Result, error) {
	if !d.Plan.Writes() && len(d.Consume) == 0 {
		return nil, nil
	}
	executor := r.executor
	if d.Plan.Writes() {
		var err error
		if executor, err = r.executorFor(ctx, o); err != nil {
			return refused(d.Plan, err), nil
		}
	}
	status, _ := layers.Report(*o, d, nil)
	if layers.NeedsRecord(o.Layer.Status, status) {
		if status.Rollback != nil {
			// What the layer goes back to must be at hand until it is there.
			if err := r.revisions.keep(ctx, o, o.Layer.Status.History, &status); err != nil {
				return nil, err
			}
		}
		if err := r.persist(ctx, o, status); err != nil {
			return nil, err
		}
	}
	if err := r.consume(ctx, o, d.Consume); err != nil {
		return nil, err
	}
	results := executor.Run(ctx, o.Layer.Name, d.Plan)
	r.recent.wrote(results, r.now())
	return results, nil
}

// persist writes a status where it differs from the last one. It fails with a
// conflict where somebody else has changed the layer meanwhile. It does not end
// with ctx: what was done must be known to whoever comes next.
func (r *AddonsLayerReconciler) persist(ctx context.Context, o *layers.Observation, status v1alpha1.AddonsLayerStatus) error {
	if !r.Fence.Holds() {
		return errStopped
	}
	if equality.Semantic.DeepEqual(o.Layer.Status, status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	patched := o.Layer.DeepCopy()
	patched.Status = status
	err := r.Client.Status().Patch(ctx, patched, client.MergeFromWithOptions(o.Layer, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apply.FieldManager))
	if err != nil {
		if apierrors.IsNotFound(err) {
			return errGone
		}
		return err
	}
	r.recent.wroteLayer(patched.DeepCopy())
	r.recent.wroteStatus(patched.Name, r.now())
	o.Layer = patched
	r.waits.of(patched, o.Now)
	return nil
}

// early returns how long a status is kept back that says only how the layer
// gets on, because the last one was written a moment ago; the look that follows
// computes it anew. Nothing is kept back after a write or an error.
func (r *AddonsLayerReconciler) early(o *layers.Observation, status v1alpha1.AddonsLayerStatus, d layers.Decision, results []dependents.Result) time.Duration {
	if len(results) > 0 || len(d.Accept) > 0 || d.Retry != nil {
		return 0
	}
	spacing := r.spacing(o.Layer.Status, status)
	since, known := r.recent.sinceStatus(o.Layer.Name, r.now())
	if spacing == 0 || !known || since < 0 {
		return 0
	}
	return spacing - since
}

// errGone says that a layer is no longer there, so that nothing more is done
// for it.
var errGone = errors.New("the layer is gone")

// again says when the layer is looked at next, when nothing wakes it before.
func (r *AddonsLayerReconciler) again(o *layers.Observation, d layers.Decision, results []dependents.Result) (ctrl.Result, error) {
	switch {
	case d.Retry == nil || d.Stalled:
	case progressed(results):
		return ctrl.Result{RequeueAfter: afterProgress}, nil
	default:
		return ctrl.Result{}, d.Retry
	}
	for _, result := range results {
		if result.Outdated || wakesNobody(o, result) {
			return ctrl.Result{RequeueAfter: lookAgain}, nil
		}
	}
	interval := r.Settings.Interval
	if o.Layer.Spec.Interval != nil {
		interval = o.Layer.Spec.Interval.Duration
	}
	result := ctrl.Result{RequeueAfter: wait.Jitter(interval, intervalJitter)}
	if r.kindIsComing(o, d) {
		result.RequeueAfter = min(result.RequeueAfter, discoveryLag)
	}
	if o.OthersUnread {
		result.RequeueAfter = min(result.RequeueAfter, othersUnread)
	}
	if len(o.Stale) > 0 {
		result.RequeueAfter = min(result.RequeueAfter, staleFor)
	}
	if !d.Until.IsZero() {
		result.RequeueAfter = min(result.RequeueAfter, max(d.Until.Sub(r.now()), time.Millisecond))
	}
	return result, nil
}

// progressed tells whether something new has been written, so that an error
// beside it is no reason to wait ever longer.
func progressed(results []dependents.Result) bool {
	return slices.ContainsFunc(results, func(result dependents.Result) bool {
		return result.Err == nil && !result.Outdated && result.Changed && !result.Action.Correction
	})
}

// wakesNobody tells whether a write has found an object to be as it is wanted,
// so that no event follows it although the object now counts as applied.
func wakesNobody(o *layers.Observation, result dependents.Result) bool {
	live := o.Live[result.Action.ID]
	switch {
	case result.Action.Verb != dependents.VerbWrite || result.Err != nil || live == nil:
		return false
	case live.GetGeneration() != 0:
		return live.GetGeneration() == result.Generation
	default:
		return !result.Changed
	}
}

// note remembers what the layer waits for, so that events find it.
func (r *AddonsLayerReconciler) note(o *layers.Observation, d layers.Decision) {
	waits := len(d.Plan.Conflicts) > 0 || !o.Layer.DeletionTimestamp.IsZero()
	groups := map[string]bool{}
	if o.SourceUnserved {
		groups[layers.SourceGroup] = true
	}
	for _, standing := range d.Plan.Standings {
		waits = waits || standing.Unwanted || standing.Health == dependents.Blocked
		if standing.Status == dependents.StatusNotServed {
			groups[standing.ID.Group] = true
		}
	}
	r.listings.setWaiting(o.Layer.Name, waits, groups)
}

func (r *AddonsLayerReconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// SetupWithManager registers the controller, its indexes and its watches.
func (r *AddonsLayerReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.listings, r.recent, r.waits = newListings(), newRecent(), newWaits()
	if r.spacing == nil {
		r.spacing = layers.Spacing
	}
	r.wakeups = make(chan event.GenericEvent, 4096)
	r.kinds = newKinds(r)
	r.executor = &apply.Executor{Client: r.Client, Reader: r.Reader, Keys: layers.Keys, Strict: layers.IsStrict, Version: r.kinds.version, Valid: r.PlanValid}
	r.accounts = newAccounts(mgr, r.Reader)
	if err := setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, err := controller.New("addonslayer", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: max(r.Concurrent, 1),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, maxRetry),
	})
	if err != nil {
		return fmt.Errorf("cannot make the controller: %w", err)
	}
	r.controller = c
	sources, err := newSourceCache(mgr)
	if err != nil {
		return err
	}
	r.sources = newSources(r, sources)
	r.revisions = &revisions{AddonsLayerReconciler: r, tooLarge: map[string]bool{}}
	return r.setupWatches()
}
