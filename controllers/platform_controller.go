// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/catalogue"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/sources"
)

// PlatformReconciler keeps Platforms: it makes the layers of their bundles, moves
// them to other versions, and says how they fare. The layers do the rest.
type PlatformReconciler struct {
	*Process
	// due holds until when statuses wait that were put off, and written what the caches
	// may not show yet.
	due     memory.Due[string]
	written memory.Platforms
}

// Reconcile looks at one Platform.
func (r *PlatformReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *PlatformReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	name := req.Name
	platform := &v1alpha1.Platform{}
	found, err := r.getShared(ctx, name, platform)
	if err != nil {
		return 0, err
	}
	if !found || !r.isOwn(platform) {
		r.follows.Keep(platformReader(name), nil)
		r.due.Forget(name)
		r.written.Forget(name)
		return 0, nil
	}
	platform = r.written.Newest(platform)
	if !platform.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(platform, v1alpha1.Finalizer) {
		return 0, nil
	}
	o, err := r.observe(ctx, platforms.Trusted(platform, r.seal()))
	if err != nil || ctx.Err() != nil {
		return 0, err
	}
	began := r.now()
	decision := platforms.Decide(o)
	if !r.Fence.Holds() || r.PlanValid > 0 && r.now().Sub(began) > r.PlanValid {
		return 0, nil
	}
	if decision.StatusFirst {
		// What is to be done follows from what is written here, and from nothing that
		// could be decided again in another way.
		if platform, err = r.tell(ctx, platform, decision.Status); err != nil {
			return 0, err
		}
	} else if platform, err = r.mark(ctx, platform, platform.Annotations[v1alpha1.DecidedAnnotation]); err != nil {
		return 0, err
	}
	if err := r.carryOut(ctx, platform, decision); err != nil {
		return 0, err
	}
	if platforms.OnlyProgress(platform, decision, r.seal()) {
		if late := r.due.PutOff(name, r.now(), platforms.ProgressLag); late > 0 {
			return min(late, r.next(decision)), nil
		}
	}
	r.due.Forget(name)
	if platform, err = r.tell(ctx, platform, decision.Status); err != nil {
		return 0, err
	}
	if decision.Gone {
		return 0, r.finalize(ctx, platform)
	}
	return r.next(decision), nil
}

// next returns when to look again though nothing has happened.
func (r *PlatformReconciler) next(decision platforms.Decision) time.Duration {
	after := jittered(r.Settings.Interval)
	if !decision.Until.IsZero() {
		after = min(after, max(decision.Until.Sub(r.now()), time.Millisecond))
	}
	return after
}

// finalize lets a Platform go that has no layers any more. That the caches know of
// none is not enough: one may have been made a moment ago.
func (r *PlatformReconciler) finalize(ctx context.Context, platform *v1alpha1.Platform) error {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Reader.List(ctx, list, client.MatchingLabels{v1alpha1.PlatformLabel: platform.Name}); err != nil {
		return fmt.Errorf("cannot list the layers of Platform %s: %w", platform.Name, err)
	}
	for i := range list.Items {
		if platforms.IsMade(&list.Items[i]) {
			return fmt.Errorf("layer %s of Platform %s is still there", list.Items[i].Name, platform.Name)
		}
	}
	patched := platform.DeepCopy()
	controllerutil.RemoveFinalizer(patched, v1alpha1.Finalizer)
	err := apply.PatchLocked(ctx, r.Client, patched, platform)
	return client.IgnoreNotFound(err)
}

// tell writes the status where that differs, with the resourceVersion that it was
// decided from. What was decided goes into an annotation before, which counts from then
// on.
func (r *PlatformReconciler) tell(ctx context.Context, platform *v1alpha1.Platform, status v1alpha1.PlatformStatus) (*v1alpha1.Platform, error) {
	platform, err := r.mark(ctx, platform, platforms.Decided(platform, status, r.seal()))
	if err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(platform.Status, status) {
		return platform, nil
	}
	patched := platform.DeepCopy()
	patched.Status = status
	err = apply.PatchStatus(ctx, r.Client, patched, platform)
	if err != nil {
		return nil, fmt.Errorf("cannot write the status of Platform %s: %w", platform.Name, err)
	}
	r.written.Wrote(patched)
	r.tellApprovals(patched, platform.Status.Approvals)
	r.tellReady(patched, v1alpha1.PlatformKind, status.Version, status.Conditions, platform.Status.Conditions)
	return patched, nil
}

// tellApprovals tells of approvals that were not there before.
func (r *PlatformReconciler) tellApprovals(platform *v1alpha1.Platform, before []v1alpha1.StageApproval) {
	for _, approval := range slices.Backward(platform.Status.Approvals) {
		if approval.Reason != "" && approval.By == "" && approval.Selector == "-" {
			continue // it covers nothing
		}
		if slices.ContainsFunc(before, func(known v1alpha1.StageApproval) bool { return known.Approval == approval.Approval }) {
			continue
		}
		message := approval.Approval + " is approved"
		if approval.By != "" {
			message += " by " + approval.By
		}
		if approval.Reason != "" {
			message += ": " + approval.Reason
		}
		r.tellCondition(platform, v1alpha1.PlatformKind, platform.Status.Version, corev1.EventTypeNormal, &metav1.Condition{
			Reason: v1alpha1.ReasonApproved, Message: message,
		})
	}
}

// mark writes what was decided where it is not what the annotation says, and the
// finalizer where it is not there yet, in one.
func (r *PlatformReconciler) mark(ctx context.Context, platform *v1alpha1.Platform, text string) (*v1alpha1.Platform, error) {
	patched := platform.DeepCopy()
	changed := platform.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(patched, v1alpha1.Finalizer)
	if platform.Annotations[v1alpha1.DecidedAnnotation] != text {
		changed = true
		metav1.SetMetaDataAnnotation(&patched.ObjectMeta, v1alpha1.DecidedAnnotation, text)
		if text == "" {
			delete(patched.Annotations, v1alpha1.DecidedAnnotation)
		}
	}
	if !changed {
		return platform, nil
	}
	err := apply.PatchLocked(ctx, r.Client, patched, platform)
	if err != nil {
		return nil, fmt.Errorf("cannot write the finalizer or the annotation %s of Platform %s: %w", v1alpha1.DecidedAnnotation, platform.Name, err)
	}
	r.written.Wrote(patched)
	return patched, nil
}

// carryOut makes, changes and deletes what a decision says, in its order, and
// stops at the first error: what comes later may rest on what comes before.
func (r *PlatformReconciler) carryOut(ctx context.Context, platform *v1alpha1.Platform, decision platforms.Decision) error {
	for _, name := range decision.GiveUp {
		if err := r.giveUp(ctx, name); err != nil {
			return err
		}
	}
	for _, bundle := range decision.Bundles {
		err := r.Client.Create(ctx, bundle.DeepCopy(), client.FieldOwner(dependents.FieldManager))
		if err != nil && !apierrors.IsAlreadyExists(err) { // its name says what is in it
			return fmt.Errorf("cannot create ApplicationBundle %s: %w", bundle.Name, err)
		}
	}
	for _, layer := range decision.Write {
		if err := r.write(ctx, platform, layer); err != nil {
			return err
		}
	}
	for _, layer := range decision.Delete {
		if !layer.DeletionTimestamp.IsZero() {
			continue
		}
		err := r.Client.Delete(ctx, layer.DeepCopy(), client.Preconditions{UID: &layer.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete layer %s: %w", layer.Name, err)
		}
	}
	for _, name := range decision.DeleteBundles {
		bundle := &v1alpha1.ApplicationBundle{}
		bundle.Name = name
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, bundle)); err != nil {
			return fmt.Errorf("cannot delete ApplicationBundle %s: %w", name, err)
		}
	}
	return nil
}

// giveUp says of a RemoteCluster that what is there is left behind.
func (r *PlatformReconciler) giveUp(ctx context.Context, name types.NamespacedName) error {
	cluster := &v1alpha1.RemoteCluster{}
	if err := r.Client.Get(ctx, name, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	patched := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&patched.ObjectMeta, v1alpha1.AbandonAnnotation, "true")
	err := apply.PatchLocked(ctx, r.Client, patched, cluster)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot give up RemoteCluster %s: %w", name, err)
	}
	return nil
}

// write creates a layer, or updates the one that was read. One of that name that
// the caches did not know of is looked at again when they do, if it is the
// platform's.
func (r *PlatformReconciler) write(ctx context.Context, platform *v1alpha1.Platform, layer *v1alpha1.AddonsLayer) error {
	if layer.ResourceVersion != "" {
		updated := layer.DeepCopy()
		updated.SetManagedFields(nil) // what the cache has left of them would take the place of all
		if err := r.Client.Update(ctx, updated, client.FieldOwner(dependents.FieldManager)); err != nil {
			return fmt.Errorf("cannot update layer %s: %w", layer.Name, err)
		}
		return nil
	}
	// With the finalizer that its first look would have to add.
	created := layer.DeepCopy()
	controllerutil.AddFinalizer(created, v1alpha1.Finalizer)
	err := r.Client.Create(ctx, created, client.FieldOwner(dependents.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("cannot create layer %s: %w", layer.Name, err)
		}
		r.written.Made(platform.Name, created, r.now())
		return nil
	}
	live := &v1alpha1.AddonsLayer{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(layer), live); err != nil {
		return fmt.Errorf("cannot read layer %s: %w", layer.Name, err)
	}
	if live.Labels[v1alpha1.PlatformLabel] == platform.Name {
		return nil
	}
	return fmt.Errorf("there is a layer %s that is not of Platform %s: %w", layer.Name, platform.Name, err)
}

// observe gathers everything that the rules decide from. What it returns is the
// caches' own, and must not be changed.
func (r *PlatformReconciler) observe(ctx context.Context, platform *v1alpha1.Platform) (platforms.Observation, error) {
	o := platforms.Observation{
		Now: r.now(), Namespace: r.Settings.Namespace, Platform: platform, Version: r.Cluster.Version(),
		Catalogue: map[string]*v1alpha1.HelmApplication{}, Clusters: map[types.NamespacedName]*v1alpha1.RemoteCluster{},
		ConfigMaps: map[types.NamespacedName]map[string]string{}, ConfigMapErrors: map[types.NamespacedName]error{},
		Taken: map[string]*v1alpha1.AddonsLayer{}, Platforms: map[string]*v1alpha1.Platform{},
	}
	bundles, apps := &v1alpha1.ApplicationBundleList{}, &v1alpha1.HelmApplicationList{}
	clusters, owned := &v1alpha1.RemoteClusterList{}, &v1alpha1.AddonsLayerList{}
	for _, question := range []struct {
		list client.ObjectList
		opts []client.ListOption
	}{
		{bundles, nil},
		{apps, nil},
		{clusters, nil},
		{owned, []client.ListOption{client.MatchingFields{indexPlatform: platform.Name}}},
	} {
		if err := r.Client.List(ctx, question.list, append(question.opts, client.UnsafeDisableDeepCopy)...); err != nil {
			return o, fmt.Errorf("cannot list %T: %w", question.list, err)
		}
	}
	for i := range bundles.Items {
		o.Bundles = append(o.Bundles, &bundles.Items[i])
	}
	for i := range apps.Items {
		o.Catalogue[apps.Items[i].Name] = catalogue.WithDefaults(&apps.Items[i])
	}
	for i := range clusters.Items {
		o.Clusters[client.ObjectKeyFromObject(&clusters.Items[i])] = &clusters.Items[i]
	}
	for i := range owned.Items {
		o.Layers = append(o.Layers, &owned.Items[i])
	}
	o.Layers = append(o.Layers, r.written.Unseen(platform.Name, o.Layers, r.now())...)
	if err := r.observeInputs(ctx, &o); err != nil {
		return o, err
	}
	if err := r.observeOthers(ctx, &o); err != nil {
		return o, err
	}
	for _, name := range platforms.Names(o) {
		layer := &v1alpha1.AddonsLayer{}
		found, err := r.getShared(ctx, name, layer)
		if err != nil {
			return o, err
		}
		if found && layer.Labels[v1alpha1.PlatformLabel] != platform.Name {
			o.Taken[name] = layer
		}
	}
	return o, nil
}

// observeOthers adds the layers of others that matter to the Platform.
func (r *PlatformReconciler) observeOthers(ctx context.Context, o *platforms.Observation) error {
	list := &v1alpha1.PlatformList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("cannot list Platforms: %w", err)
	}
	for i := range list.Items {
		o.Platforms[list.Items[i].Name] = &list.Items[i]
	}
	seen := map[string]bool{}
	add := func(matters func(*v1alpha1.AddonsLayer) bool, opts ...client.ListOption) error {
		layers := &v1alpha1.AddonsLayerList{}
		if err := r.Client.List(ctx, layers, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
			return fmt.Errorf("cannot list layers: %w", err)
		}
		for i := range layers.Items {
			layer := &layers.Items[i]
			if layer.Labels[v1alpha1.PlatformLabel] != o.Platform.Name && !seen[layer.Name] && matters(layer) {
				seen[layer.Name] = true
				o.Others = append(o.Others, layer)
			}
		}
		return nil
	}
	if len(o.Platform.Spec.Applications) > 0 {
		if err := add(sources.IsOfBundle); err != nil {
			return err
		}
	}
	near, clusters, err := r.neighbours(ctx, *o)
	if err != nil {
		return err
	}
	all := func(*v1alpha1.AddonsLayer) bool { return true }
	for _, name := range near {
		if err := add(all, client.MatchingFields{indexPlatform: name}); err != nil {
			return err
		}
	}
	for _, name := range clusters {
		if err := add(all, client.MatchingFields{indexCluster: name}); err != nil {
			return err
		}
	}
	return nil
}

// neighbours returns the names of the Platforms that come before one, and of those that
// depend on it, and the names of clusters that its layers have made.
func (r *PlatformReconciler) neighbours(ctx context.Context, o platforms.Observation) (names, clusters []string, err error) {
	names = platforms.Upstream(o, func(name string) *v1alpha1.AddonsLayer {
		layer := &v1alpha1.AddonsLayer{}
		found, wrong := r.getShared(ctx, name, layer)
		if err = errors.Join(err, wrong); !found {
			return nil
		}
		return layer
	})
	names = append(names, platforms.Downstream(o)...)
	own := map[string]bool{}
	for _, layer := range o.Layers {
		own[layer.Name] = true
	}
	for name, cluster := range o.Clusters {
		if own[cluster.Labels[v1alpha1.LayerLabel]] {
			clusters = append(clusters, name.Name)
		}
	}
	return names, clusters, err
}

// observeInputs reads the ConfigMaps that inputs come from, and follows them.
func (r *PlatformReconciler) observeInputs(ctx context.Context, o *platforms.Observation) error {
	following := map[objects.ID]bool{}
	who := platformReader(o.Platform.Name)
	if o.Platform.DeletionTimestamp.IsZero() {
		for _, ref := range o.Platform.Spec.InputsFrom {
			name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			if name.Namespace == "" {
				name.Namespace = o.Namespace
			}
			id := objects.ID{Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name}
			following[id] = true
			found, err := r.follows.Get(ctx, who, id)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				o.ConfigMapErrors[name] = err
				continue
			}
			if found != nil {
				o.ConfigMaps[name] = textsOf(found.Object["data"])
			}
		}
	}
	r.follows.Keep(who, following)
	return nil
}

// textsOf returns the texts of a mapping.
func textsOf(value any) map[string]string {
	found := map[string]string{}
	data, _ := value.(map[string]any)
	for key, value := range data {
		if text, ok := value.(string); ok {
			found[key] = text
		}
	}
	return found
}
