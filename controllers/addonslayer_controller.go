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
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/builtin"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/round"
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
	Directory(ctx context.Context, artifact repos.Artifact, path string, how builds.Build) (*directories.Directory, error)
	// Digest returns the digest of a directory's objects, and whether it is
	// missing. It costs less than the directory.
	Digest(ctx context.Context, artifact repos.Artifact, path string, how builds.Build) (digest string, missing bool, err error)
	// Mentions returns which of some names a directory may mean that cannot be read.
	Mentions(ctx context.Context, artifact repos.Artifact, path string, how builds.Build, names []string) (directories.Mentions, error)
	// ByDigest returns a directory by its content, as long as it is cached.
	ByDigest(digest string) (*directories.Directory, bool)
	// Assemble returns the directory of objects that no artifact has, made anew
	// where it is not cached under a key.
	Assemble(key, revision string, made func() ([]directories.Manifest, error)) (*directories.Directory, error)
	// AssembledDigest returns the digest of what Assemble returns. It costs less.
	AssembledDigest(key string, made func() ([]directories.Manifest, error)) (string, error)
	// Remember caches a directory, so that ByDigest returns it.
	Remember(directory *directories.Directory)
}

// AddonsLayerReconciler keeps AddonsLayers as they are specified.
type AddonsLayerReconciler struct {
	*Process
	// Artifacts of the sources.
	Artifacts Artifacts

	executor  *apply.Executor
	revisions *revisions
	// disputes are the corrections that others undo again and again.
	disputes memory.Disputes
	// filledBy has the names of the layers that are filled from objects, too.
	filledBy sync.Map
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
	r.lastLooks.set(layer.Name, nil)
	stored := layer.DeepCopy()
	layer = r.recentLayers.WithWithheld(layers.Trusted(stored, r.seal()))
	observed := r.newObserver(layer)
	err = observed.observeContent(ctx)
	if err == nil {
		r.announce(ctx, observed)
		err = observed.observeSurroundings(ctx)
	}
	if err != nil || ctx.Err() != nil {
		// An observation made while the controller stops may lack something.
		return 0, err
	}
	if observed.awaitsConnection(ctx) {
		return time.Second, nil
	}
	h := &hands{r: r, stored: stored}
	after, err := round.Run(ctx, h, observed.Observation)
	if err != nil {
		return after, err
	}
	if last := observed.settledLook(ctx, h, r.intervalOf(layer)); last != nil {
		after = r.leaveUntil(last, last.events, observed.Now)
		r.lastLooks.set(layer.Name, last)
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
		r.knownBuilds.Forget(name)
		r.recentLayers.Forget(name)
		r.untold.forget(name)
		r.Meters.Forget(name)
		r.waits.Forget(name)
		r.revisions.forget(name)
		r.follows.Keep(layerReader(name), nil)
		r.follows.Keep(fillingReader(name), nil)
		r.filledBy.Delete(name)
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
	layer := r.recentLayers.Newest(cached)
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
	err := apply.PatchLocked(ctx, r.Client, patched, layer)
	if err != nil {
		return nil, fmt.Errorf("cannot add the finalizer to layer %s: %w", name, err)
	}
	r.recentLayers.Wrote(patched.DeepCopy())
	return patched, nil
}

// letGo forgets how a layer that is none of this controller's was looked at.
func (r *AddonsLayerReconciler) letGo(name string) {
	r.lastLooks.set(name, nil)
	r.begun.set(name, false)
	r.lostVolumes.forget(name)
}

// SetupWithManager registers the controller and its watches. It comes before those of
// all other reconcilers: what is watched for layers is watched by it.
func (r *AddonsLayerReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.spacing == nil {
		r.spacing = layers.Spacing
	}
	r.executor = &apply.Executor{
		Cluster: clusterOf(r.kinds), Other: r.writesTo, Keys: layers.Keys, Strict: objects.IsStrict, Valid: r.PlanValid,
		Reserved: func(owner string, live *unstructured.Unstructured) string {
			return r.Settings.ReservedFor(owner, objects.IDOf(live), live)
		},
		Refuses: builtin.Refusal, Removing: r.removeChart, Known: &apply.Known{}, ExtraWorkers: semaphore.NewWeighted(extraWrites),
	}
	r.revisions = &revisions{
		client: r.Client, reader: r.Reader, artifacts: r.Artifacts, settings: r.Settings, refused: r.tellNotKept,
		tooLarge: map[string]bool{}, had: map[string]contents{},
	}
	c, err := looks.NewController("addonslayer", mgr, &v1alpha1.AddonsLayer{}, controller.Options{
		Reconciler:              r,
		NewQueue:                r.newQueue,
		MaxConcurrentReconciles: max(r.Concurrent, 1),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](minRetry, cmp.Or(r.patience, maxRetry)),
	})
	if err != nil {
		return err
	}
	r.watch = c.Watch
	for _, run := range []manager.RunnableFunc{r.resync, r.tellWithheld} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("cannot set the controller up: %w", err)
		}
	}
	return r.setupWatches()
}
