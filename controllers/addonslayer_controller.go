// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles the kinds of kraan.io: it observes, has the
// pure rules decide, carries out and reports. One file per kind, plus its
// watches.
package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/round"
	"github.com/strata-project/strata/internal/signals"
)

const (
	// intervalJitter spreads the safety net's looks, by this part of the
	// interval, so that layers made together are not looked at together.
	intervalJitter = 0.05
	// minRetry and maxRetry bound the back-off after errors.
	minRetry = 200 * time.Millisecond
	maxRetry = 2 * time.Minute
	// writeTimeout bounds the write of a status.
	writeTimeout = 15 * time.Second
	// extraWrites is how many objects all layers together write side by side
	// beyond one each. More of them make an API server of two cores answer
	// nobody sooner, and keep helm-controller and the watches waiting (ADR 0018).
	extraWrites = 16
)

// Artifacts hands out what the artifacts of sources hold.
type Artifacts interface {
	// Directory returns a directory of an artifact.
	Directory(ctx context.Context, artifact repos.Artifact, path string) (*layers.Directory, error)
	// Digest returns the digest of a directory's objects, and whether it is
	// missing. It costs less than the directory.
	Digest(ctx context.Context, artifact repos.Artifact, path string) (digest string, missing bool, err error)
	// ByDigest returns a directory by its content, as long as it is cached.
	ByDigest(digest string) (*layers.Directory, bool)
	// Assemble returns the directory of objects that no artifact has, made anew
	// where it is not cached under a key.
	Assemble(key, revision string, made func() ([]layers.Manifest, error)) (*layers.Directory, error)
	// AssembledDigest returns the digest of what Assemble returns. It costs less.
	AssembledDigest(key string, made func() ([]layers.Manifest, error)) (string, error)
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
	Meters *signals.Meters
	// Settings of the rules.
	Settings layers.Settings
	// Selector narrows the layers, RemoteClusters, HelmApplications and
	// ApplicationBundles that this controller looks after; nil means all. It sees
	// the others, and takes nothing from them.
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
	accounts   *informers.Accounts
	controller controller.Controller
	kinds      *informers.Kinds
	sources    *informers.Kinds
	remotes    *informers.Remotes
	follows    *informers.Follows
	// metas follows the metadata of what may be given to other clusters, and reviews
	// knows what accounts may.
	metas     *informers.Follows
	reviews   *informers.Reviews
	listings  *memory.Listings
	recent    *memory.Writes
	waits     *memory.Waits
	revisions *revisions
	looks     *looks
	begun     *begun
	// started is closed when the controller starts; what it is to watch from then
	// on it does not wait for.
	started chan struct{}
	heard   heard
	untold  untold
	wakeups chan event.GenericEvent
	// clusterWakeups are those of RemoteClusters.
	clusterWakeups chan event.GenericEvent
	// platformWakeups are those of Platforms.
	platformWakeups chan event.GenericEvent
	// spacing says how far apart statuses are written; nil means
	// layers.Spacing.
	spacing func(last, next v1alpha1.AddonsLayerStatus, wrote bool) time.Duration
	// patience bounds the back-off after errors; 0 means maxRetry.
	patience time.Duration
	// reviewed is how long it is taken for true what an account may; 0 means
	// informers.ReviewKept.
	reviewed time.Duration
}

// Reconcile looks at one layer: observe, decide, act, report.
func (r *AddonsLayerReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *AddonsLayerReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	layer, err := r.read(ctx, req.Name)
	if err != nil || layer == nil {
		return 0, err
	}
	defer r.Meters.Looked(layer.Name, time.Now())
	if after, same := r.settled(ctx, layer); same {
		return after, nil
	}
	r.looks.set(layer.Name, nil)
	stored := layer.DeepCopy()
	layer = r.recent.WithWithheld(layers.Trusted(stored))
	observed, err := r.observe(ctx, layer)
	if err != nil || ctx.Err() != nil {
		// What is seen while the controller stops may lack something.
		return 0, err
	}
	if observed.awaitsConnection(ctx) {
		return time.Second, nil
	}
	h := &hands{AddonsLayerReconciler: r, stored: stored}
	after, err := round.Run(ctx, h, observed.Observation)
	if err != nil {
		return after, err
	}
	if last := observed.settledLook(ctx, h, r.intervalOf(layer)); last != nil {
		after = r.rest(last, last.heard, observed.Observation.Now)
		r.looks.set(layer.Name, last)
	}
	return after, nil
}

// read returns a layer with its finalizer, or nil where there is nothing to do
// for it. It may be the cache's own, and must not be changed.
func (r *AddonsLayerReconciler) read(ctx context.Context, name string) (*v1alpha1.AddonsLayer, error) {
	cached := &v1alpha1.AddonsLayer{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, cached, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("cannot read layer %s: %w", name, err)
		}
		r.listings.Forget(name)
		r.recent.Forget(name)
		r.untold.forget(name)
		r.Meters.Forget(name)
		r.waits.Forget(name)
		r.revisions.forget(name)
		r.follows.Keep(layerReader(name), nil)
		r.metas.Keep(layerReader(name), nil)
		r.letGo(name)
		r.wake(r.listings.WhoWaits()...)
		return nil, nil
	}
	if !r.isOwn(cached) {
		r.Meters.Forget(name)
		r.letGo(name)
		return nil, nil
	}
	layer := r.recent.Newest(cached)
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
	err := patchLocked(ctx, r.Client, patched, layer)
	if err != nil {
		return nil, fmt.Errorf("cannot add the finalizer to layer %s: %w", name, err)
	}
	r.recent.WroteLayer(patched.DeepCopy())
	return patched, nil
}

// isOwn tells whether an object is this controller's to look after.
func (r *AddonsLayerReconciler) isOwn(obj client.Object) bool {
	return r.Selector == nil || r.Selector.Matches(labels.Set(obj.GetLabels()))
}

// letGo forgets how a layer that is none of this controller's was looked at.
func (r *AddonsLayerReconciler) letGo(name string) {
	r.looks.set(name, nil)
	r.begun.set(name, false)
}

func (r *AddonsLayerReconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// steady returns a clock that nobody sets.
func steady() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// SetupWithManager registers the controller, its indexes and its watches.
func (r *AddonsLayerReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.listings, r.recent, r.waits = memory.NewListings(), memory.NewWrites(), memory.NewWaits(steady())
	if r.spacing == nil {
		r.spacing = layers.Spacing
	}
	r.looks, r.begun, r.started = newLooks(), &begun{}, make(chan struct{})
	r.wakeups, r.clusterWakeups = make(chan event.GenericEvent, 4096), make(chan event.GenericEvent, 4096)
	r.platformWakeups = make(chan event.GenericEvent, 4096)
	wiring := r.wiring()
	r.kinds = informers.NewKinds(r.home(), wiring)
	r.remotes = informers.NewRemotes(informers.Options{Scheme: r.Client.Scheme(), Wiring: wiring, Wake: r.wakeCluster})
	home, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	r.follows = informers.NewFollows(func(cluster string, account types.NamespacedName) dynamic.Interface {
		switch {
		case cluster != "":
			return r.remotes.Dynamic(cluster, account)
		case account.Name != "":
			return r.accounts.Dynamic(account)
		}
		return home
	}, r.wakeReaders)
	metas, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	r.metas = informers.NewMetadataFollows(metas, r.wakeReaders)
	r.executor = &apply.Executor{
		Cluster: clusterOf(r.kinds), Other: r.writesTo, Keys: layers.Keys, Strict: layers.IsStrict, Valid: r.PlanValid,
		Reserved: func(owner string, live *unstructured.Unstructured) string {
			return r.Settings.ReservedFor(owner, dependents.IDOf(live), live)
		},
		Known: &apply.Known{}, ExtraWorkers: semaphore.NewWeighted(extraWrites),
	}
	r.accounts = informers.NewAccounts(mgr, r.Reader)
	r.reviews = informers.NewReviews(r.Client, r.accounts)
	if err := setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, err := controller.New("addonslayer", mgr, controller.Options{
		Reconciler:              r,
		NewQueue:                r.newQueue,
		MaxConcurrentReconciles: max(r.Concurrent, 1),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, cmp.Or(r.patience, maxRetry)),
	})
	if err != nil {
		return fmt.Errorf("cannot make the controller: %w", err)
	}
	r.controller = c
	sources, err := newSourceCache(mgr, r.sourcesUnserved)
	if err != nil {
		return err
	}
	r.sources = newSources(r, sources)
	r.revisions = &revisions{AddonsLayerReconciler: r, tooLarge: map[string]bool{}, had: map[string]contents{}}
	for _, run := range []manager.RunnableFunc{r.net, r.tellWithheld, r.follows.UntilDone, r.metas.UntilDone} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("cannot set the controller up: %w", err)
		}
	}
	return r.setupWatches()
}
