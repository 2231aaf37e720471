// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/memory"
)

// ApplicationBundleReconciler says which bundles can be installed.
type ApplicationBundleReconciler struct {
	*Process
	// due holds until when statuses wait that were put off.
	due memory.Due[string]
}

// Reconcile looks at one ApplicationBundle.
func (r *ApplicationBundleReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *ApplicationBundleReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	bundle := &v1alpha1.ApplicationBundle{}
	if err := r.Client.Get(ctx, req.NamespacedName, bundle, client.UnsafeDisableDeepCopy); err != nil {
		r.due.Forget(req.Name)
		return 0, client.IgnoreNotFound(err)
	}
	if !bundle.DeletionTimestamp.IsZero() || !r.isOwn(bundle) {
		return 0, nil
	}
	observed, err := r.observe(ctx, bundle)
	if err != nil {
		return 0, err
	}
	decision := bundles.Decide(observed)
	if equality.Semantic.DeepEqual(bundle.Status, decision.Status) {
		r.due.Forget(req.Name)
		return 0, nil
	}
	if bundles.OnlyCounted(bundle.Status, decision.Status) {
		if late := r.due.PutOff(req.Name, r.now(), bundles.CountLag); late > 0 {
			return late, nil
		}
	}
	r.due.Forget(req.Name)
	patched := bundle.DeepCopy()
	patched.Status = decision.Status
	// The lock sees to it that nothing is published anew by a look that has yet to
	// see what was.
	err = apply.PatchStatus(ctx, r.Client, patched, bundle)
	return 0, client.IgnoreNotFound(err)
}

// observe reads the applications of a bundle and the layers that use it.
func (r *ApplicationBundleReconciler) observe(ctx context.Context, bundle *v1alpha1.ApplicationBundle) (bundles.Observation, error) {
	observed := bundles.Observation{Now: r.now(), Bundle: bundle, Catalogue: map[string]*v1alpha1.HelmApplication{}}
	for _, name := range bundles.Named(bundle) {
		app := &v1alpha1.HelmApplication{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, app, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return bundles.Observation{}, fmt.Errorf("cannot get HelmApplication %s: %w", name, err)
		}
		observed.Catalogue[name] = catalogue.WithDefaults(app)
	}
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexSource: bundle.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return bundles.Observation{}, fmt.Errorf("cannot list the layers of ApplicationBundle %s: %w", bundle.Name, err)
	}
	platforms := map[string]bool{}
	for i := range list.Items {
		if platform, of := platformOf(&list.Items[i]); platform != "" && of == bundle.Name && !platforms[platform] {
			platforms[platform] = true
			observed.PlatformsUsing++
		}
	}
	return observed, nil
}

// platformOf returns the Platform that a layer was made for, and the bundle that it
// is of; both are empty for a layer of another source.
func platformOf(obj client.Object) (platform, bundle string) {
	layer, is := obj.(*v1alpha1.AddonsLayer)
	if !is || layer.Spec.Source.Kind != v1alpha1.ApplicationBundleKind {
		return "", ""
	}
	return layer.Labels[v1alpha1.PlatformLabel], layer.Spec.Source.Name
}

// SetupWithManager registers the controller and its watches.
func (r *ApplicationBundleReconciler) SetupWithManager(mgr manager.Manager) error {
	c, err := looks.NewController("applicationbundle", mgr, &v1alpha1.ApplicationBundle{}, controllerOptions(r, 1))
	if err != nil {
		return err
	}
	for _, watch := range []source.Source{
		source.Kind(r.Cache, client.Object(&v1alpha1.ApplicationBundle{}), &handler.EnqueueRequestForObject{}, specOrLabelsChanged),
		source.Kind(r.Cache, client.Object(&v1alpha1.HelmApplication{}), handler.EnqueueRequestsFromMapFunc(r.whoNames), publishedChanged),
		source.Kind(r.Cache, client.Object(&v1alpha1.AddonsLayer{}), handler.EnqueueRequestsFromMapFunc(bundleOf), usedChanged),
	} {
		if err := c.Watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

// usedChanged passes the layers of Platforms that begin or cease to use a bundle.
var usedChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return usesBundle(e.Object) },
	DeleteFunc: func(e event.DeleteEvent) bool { return usesBundle(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		wasFor, was := platformOf(e.ObjectOld)
		isFor, is := platformOf(e.ObjectNew)
		return wasFor != isFor || was != is
	},
}

func usesBundle(obj client.Object) bool {
	platform, _ := platformOf(obj)
	return platform != ""
}

// bundleOf returns the bundle that a layer is of.
func bundleOf(_ context.Context, obj client.Object) []ctrl.Request {
	if _, bundle := platformOf(obj); bundle != "" {
		return requests(bundle)
	}
	return nil
}

// whoNames returns the bundles that name an application.
func (r *ApplicationBundleReconciler) whoNames(ctx context.Context, obj client.Object) []ctrl.Request {
	names, err := namingBundles(ctx, r.Client, obj.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot look up which bundles name an application", "application", obj.GetName())
		return nil
	}
	return requests(names...)
}

// namingBundles returns the names of the bundles that name an application.
func namingBundles(ctx context.Context, reader client.Reader, application string) ([]string, error) {
	list := &v1alpha1.ApplicationBundleList{}
	if err := reader.List(ctx, list, client.MatchingFields{indexApplication: application}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the ApplicationBundles that name HelmApplication %s: %w", application, err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
