// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/looks"
)

// HelmApplicationReconciler says how the entries of the catalogue fare.
type HelmApplicationReconciler struct {
	*Process
}

// Reconcile looks at one HelmApplication.
func (r *HelmApplicationReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *HelmApplicationReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	entries, err := r.catalogue(ctx)
	if err != nil {
		return 0, err
	}
	app := entries[req.Name]
	if app == nil || !app.DeletionTimestamp.IsZero() || !r.isOwn(app) {
		return 0, nil
	}
	named, err := namingBundles(ctx, r.Client, req.Name)
	if err != nil {
		return 0, err
	}
	now := r.now()
	decision := catalogue.Decide(catalogue.Observation{Now: now, Application: app, Catalogue: entries, BundlesUsing: int32(min(len(named), math.MaxInt32))})
	if !equality.Semantic.DeepEqual(app.Status, decision.Status) {
		patched := app.DeepCopy()
		patched.Status = decision.Status
		// The lock sees to it that nothing is published anew by a look that has yet
		// to see what was.
		err := apply.PatchStatus(ctx, r.Client, patched, app)
		if err != nil {
			return 0, client.IgnoreNotFound(err)
		}
	}
	if decision.Until.IsZero() {
		return 0, nil
	}
	return max(decision.Until.Sub(now), time.Millisecond), nil
}

// catalogue returns all HelmApplications by name. They are the cache's own, and
// must not be changed.
func (r *HelmApplicationReconciler) catalogue(ctx context.Context) (map[string]*v1alpha1.HelmApplication, error) {
	list := &v1alpha1.HelmApplicationList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot list HelmApplications: %w", err)
	}
	entries := make(map[string]*v1alpha1.HelmApplication, len(list.Items))
	for i := range list.Items {
		entries[list.Items[i].Name] = catalogue.WithDefaults(&list.Items[i])
	}
	return entries, nil
}

// SetupWithManager registers the controller and its watches.
func (r *HelmApplicationReconciler) SetupWithManager(mgr manager.Manager) error {
	c, err := looks.NewController("helmapplication", mgr, &v1alpha1.HelmApplication{}, controllerOptions(r, 1))
	if err != nil {
		return err
	}
	for _, handle := range []handler.EventHandler{&handler.EnqueueRequestForObject{}, handler.EnqueueRequestsFromMapFunc(r.whoNeeds)} {
		if err := c.Watch(source.Kind(r.Cache, client.Object(&v1alpha1.HelmApplication{}), handle, specOrLabelsChanged)); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	if err := c.Watch(
		source.Kind(
			r.Cache,
			client.Object(&v1alpha1.ApplicationBundle{}),
			handler.EnqueueRequestsFromMapFunc(applicationsOf),
			predicate.GenerationChangedPredicate{},
		),
	); err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	return nil
}

// applicationsOf returns the applications that a bundle names. They do not change
// while it lives, but for mistakes that are undone.
func applicationsOf(_ context.Context, obj client.Object) []ctrl.Request {
	return requests(indexedApplications(obj)...)
}

// whoNeeds returns the applications of which some version needs or recommends an
// application, directly or not.
func (r *HelmApplicationReconciler) whoNeeds(ctx context.Context, obj client.Object) []ctrl.Request {
	entries, err := r.catalogue(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot look up who needs an application", "application", obj.GetName())
		return nil
	}
	var found []ctrl.Request
	for _, name := range catalogue.Dependants(entries, obj.GetName()) {
		found = append(found, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return found
}
