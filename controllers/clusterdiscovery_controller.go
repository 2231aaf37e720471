// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/apply"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/discoveries"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/round"
	"github.com/strata-project/strata/internal/trim"
)

// ClusterDiscoveryReconciler makes RemoteClusters of the clusters that others make.
type ClusterDiscoveryReconciler struct {
	*Process

	// found are the kinds that stand for clusters, and the labelled Secrets.
	found *informers.Kinds
}

// secretKind is the kind of the Secrets that say of which ClusterProfile they are.
var secretKind = schema.GroupKind{Kind: "Secret"}

// Reconcile looks at one ClusterDiscovery.
func (r *ClusterDiscoveryReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return fenced(ctx, r.Fence, req, r.reconcile)
}

func (r *ClusterDiscoveryReconciler) reconcile(ctx context.Context, req ctrl.Request) (time.Duration, error) {
	discovery := &v1alpha1.ClusterDiscovery{}
	if err := r.Client.Get(ctx, req.NamespacedName, discovery); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		return 0, fmt.Errorf("cannot read ClusterDiscovery %s: %w", req.NamespacedName, err)
	}
	// The RemoteClusters of one that goes stay as they are.
	if !discovery.DeletionTimestamp.IsZero() || !r.isOwn(discovery) {
		return 0, nil
	}
	o, err := r.observe(ctx, discovery)
	if err != nil {
		return 0, err
	}
	decision := discoveries.Decide(o)
	if err := r.act(ctx, discovery, decision); err != nil {
		return 0, err
	}
	if o.Unserved && r.found.IsComing(discoveries.GroupKindOf(discovery).Group, o.Now) {
		return round.LookAgain, nil
	}
	return jittered(r.Settings.Interval), nil
}

// observe reads the objects and the RemoteClusters of the discovery's namespace, all from
// caches.
func (r *ClusterDiscoveryReconciler) observe(ctx context.Context, discovery *v1alpha1.ClusterDiscovery) (discoveries.Observation, error) {
	o := discoveries.Observation{
		Now: r.now(), Discovery: discovery, Clusters: map[string]*v1alpha1.RemoteCluster{}, Silent: map[string]bool{}, MaxPrunePercent: r.Settings.MaxPrunePercent,
	}
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(discovery.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return o, fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		o.Clusters[cluster.Name] = cluster
		o.Silent[cluster.Name] = !cluster.DeletionTimestamp.IsZero() && r.isSilent(client.ObjectKeyFromObject(cluster))
	}
	gk := discoveries.GroupKindOf(discovery)
	found, err := r.list(ctx, gk, discovery.Namespace)
	switch {
	case errors.Is(err, errKindUnserved):
		o.Unserved = true
		return o, nil
	case apierrors.IsForbidden(err):
		o.Unread = fmt.Sprintf("the controller may not list %s: allow it what chart/files/rbac/remote-clusters.yaml does", gk)
		return o, nil
	case err != nil:
		return o, err
	}
	secrets := discoveries.Secrets{Profiles: map[string][]string{}, Handed: map[string]discoveries.Handed{}}
	if discovery.Spec.Kind == v1alpha1.DiscoveredClusterProfile {
		labelled, err := r.list(ctx, secretKind, discovery.Namespace)
		if err != nil {
			return o, err
		}
		for i := range labelled {
			profile := labelled[i].GetLabels()[discoveries.ProfileLabel]
			secrets.Profiles[profile] = append(secrets.Profiles[profile], labelled[i].GetName())
		}
	}
	if discovery.Spec.Kind == v1alpha1.DiscoveredHostCluster {
		for i := range found {
			if secrets.Handed[found[i].GetName()], err = r.handed(ctx, &found[i]); err != nil {
				return o, err
			}
		}
	}
	for i := range found {
		o.Found = append(o.Found, discoveries.Parse(&found[i], secrets))
	}
	return o, nil
}

// isSilent tells whether a cluster does not answer, as this process has asked it. One that it has
// not connected to, though it has tried, does not.
func (r *ClusterDiscoveryReconciler) isSilent(cluster types.NamespacedName) bool {
	connected := r.remotes.Raw(cluster.String())
	if connected == nil {
		return r.remotes.Judged(cluster.String())
	}
	return connected.Answers() != nil
}

// handed reads what was handed out of a HostCluster, past the cache, which has no such Secrets.
// A change of it is one of the HostCluster's status a moment later.
func (r *ClusterDiscoveryReconciler) handed(ctx context.Context, cluster *unstructured.Unstructured) (discoveries.Handed, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind.WithVersion("v1"))
	name := types.NamespacedName{Namespace: cluster.GetNamespace(), Name: discoveries.KubeConfigOf(cluster.GetName())}
	if err := r.home().Past.Get(ctx, name, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return discoveries.Handed{}, nil
		}
		return discoveries.Handed{}, fmt.Errorf("cannot read Secret %s: %w", name, err)
	}
	return discoveries.HandedIn(secret, cluster.GetName()), nil
}

// errKindUnserved says that the cluster does not serve a kind.
var errKindUnserved = errors.New("the cluster does not serve the kind")

// list returns the objects of a kind of a namespace, and sees to it that they are watched.
func (r *ClusterDiscoveryReconciler) list(ctx context.Context, gk schema.GroupKind, namespace string) ([]unstructured.Unstructured, error) {
	if err := r.found.Revise(ctx, gk); err != nil {
		return nil, err
	}
	if !r.found.Watched(gk) {
		scope, err := r.found.Scope(gk, "")
		if err != nil {
			return nil, err
		}
		if scope == objects.ScopeUnknown {
			return nil, errKindUnserved
		}
		if err := r.found.Watch(ctx, gk); err != nil {
			return nil, err
		}
	}
	return r.found.List(ctx, gk, client.InNamespace(namespace))
}

// act carries out what was decided, and writes the status. What it makes it may not see
// yet the next time: then it is there already.
func (r *ClusterDiscoveryReconciler) act(ctx context.Context, discovery *v1alpha1.ClusterDiscovery, decision discoveries.Decision) error {
	var failed []error
	for _, cluster := range decision.Make {
		err := r.Client.Create(ctx, cluster, client.FieldOwner(dependents.FieldManager))
		if err == nil {
			r.say(discovery, v1alpha1.ReasonDiscovered, "RemoteCluster %s was made", cluster.Name)
		} else if !apierrors.IsAlreadyExists(err) {
			failed = append(failed, fmt.Errorf("cannot make RemoteCluster %s: %w", cluster.Name, err))
		}
	}
	for _, change := range decision.Change {
		err := apply.PatchLocked(ctx, r.Client, change.After, change.Before)
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("cannot change RemoteCluster %s: %w", change.Before.Name, err))
		}
	}
	for _, cluster := range decision.Delete {
		err := r.Client.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID, ResourceVersion: ptr.To(cluster.ResourceVersion)})
		if err == nil {
			r.say(discovery, v1alpha1.ReasonPruned, "RemoteCluster %s is deleted, as its deletionPolicy says", cluster.Name)
		} else if !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("cannot delete RemoteCluster %s: %w", cluster.Name, err))
		}
	}
	if decision.Consume && len(failed) == 0 {
		failed = append(failed, r.consume(ctx, discovery))
	}
	return errors.Join(append(failed, r.write(ctx, discovery, decision, failed))...)
}

// consume removes the annotation that has allowed to delete many.
func (r *ClusterDiscoveryReconciler) consume(ctx context.Context, discovery *v1alpha1.ClusterDiscovery) error {
	patched := discovery.DeepCopy()
	delete(patched.Annotations, v1alpha1.AllowPruneAnnotation)
	err := apply.PatchLocked(ctx, r.Client, patched, discovery)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot remove the annotation %s: %w", v1alpha1.AllowPruneAnnotation, err)
	}
	discovery.ResourceVersion = patched.ResourceVersion
	return nil
}

// write writes the status where it has changed. What has failed is said in it.
func (r *ClusterDiscoveryReconciler) write(
	ctx context.Context,
	discovery *v1alpha1.ClusterDiscovery,
	decision discoveries.Decision,
	failed []error,
) error {
	patched := discovery.DeepCopy()
	patched.Status = decision.Status
	if err := errors.Join(failed...); err != nil && !apierrors.IsConflict(err) {
		texts := strings.ReplaceAll(err.Error(), "\n", "; ")
		patched.Status.Conditions = discoveries.Failed(discovery, texts, r.now())
	}
	if equality.Semantic.DeepEqual(discovery.Status, patched.Status) {
		return nil
	}
	before := discovery.Status.Conditions
	if err := apply.PatchStatus(ctx, r.Client, patched, discovery); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.tellReady(patched, v1alpha1.ClusterDiscoveryKind, "", patched.Status.Conditions, before)
	return nil
}

// say writes an event.
func (r *ClusterDiscoveryReconciler) say(discovery *v1alpha1.ClusterDiscovery, reason, format string, values ...any) {
	r.Events.Eventf(discovery, nil, "Normal", reason, "Reconcile", format, values...)
}

// SetupWithManager registers the controller and its watches.
func (r *ClusterDiscoveryReconciler) SetupWithManager(mgr manager.Manager) error {
	c, err := looks.NewController("clusterdiscovery", mgr, &v1alpha1.ClusterDiscovery{}, controllerOptions(r, 1))
	if err != nil {
		return err
	}
	if r.found, err = newDiscoveryKinds(r, mgr, c.Watch); err != nil {
		return err
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(definitionVersion)
	for _, watch := range []source.Source{
		source.Kind(r.Cache, client.Object(&v1alpha1.ClusterDiscovery{}), &handler.EnqueueRequestForObject{},
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})),
		source.Kind(r.Cache, client.Object(&v1alpha1.RemoteCluster{}), handler.EnqueueRequestsFromMapFunc(r.discoveriesOf), madeChanged),
		source.Kind(r.Cache, client.Object(crd), handler.EnqueueRequestsFromMapFunc(r.redefined)),
	} {
		if err := c.Watch(watch); err != nil {
			return fmt.Errorf("cannot watch: %w", err)
		}
	}
	return nil
}

// newDiscoveryKinds returns the kinds that discoveries read. They have a cache of their
// own, which holds the objects whoever owns them, and of the Secrets those that say of
// which ClusterProfile they are.
func newDiscoveryKinds(r *ClusterDiscoveryReconciler, mgr manager.Manager, watch func(source.Source) error) (*informers.Kinds, error) {
	labelled, err := labels.NewRequirement(discoveries.ProfileLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select Secrets: %w", err)
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(secretKind.WithVersion("v1"))
	made, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: trim.Object,
		ByObject: map[client.Object]cache.ByObject{secret: {Label: labels.NewSelector().Add(*labelled)}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of what stands for clusters: %w", err)
	}
	if err := mgr.Add(sourceCache{made}); err != nil {
		return nil, fmt.Errorf("cannot add a cache: %w", err)
	}
	home, wiring := r.home(), r.wiring()
	home.Cache, home.Reader = made, made
	wiring.Watch = watch
	wiring.Handle = func(string, schema.GroupKind) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(r.discoveriesBeside)
	}
	wiring.Passes = func(string, schema.GroupKind) predicate.Predicate { return foundChanged }
	return informers.NewKinds(home, wiring), nil
}

// foundChanged passes what a discovery reads of an object. Most changes of a Cluster are of
// conditions.
var foundChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, errWas := informers.ToUnstructured(e.ObjectOld, e.ObjectOld.GetObjectKind().GroupVersionKind())
		is, errIs := informers.ToUnstructured(e.ObjectNew, e.ObjectNew.GetObjectKind().GroupVersionKind())
		return errWas != nil || errIs != nil || !equality.Semantic.DeepEqual(foundIn(was), foundIn(is))
	},
}

// foundIn returns what a discovery reads of an object, and, of a HostCluster, what says that its
// Secret may be another one.
func foundIn(obj *unstructured.Unstructured) any {
	said := map[string]string{}
	for _, field := range []string{"id", "version", "kubeConfig"} {
		said[field], _, _ = unstructured.NestedString(obj.Object, "status", field)
	}
	return []any{discoveries.Parse(obj, discoveries.Secrets{}), said}
}

// madeChanged passes what a discovery reads of RemoteClusters.
var madeChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.RemoteCluster), e.ObjectNew.(*v1alpha1.RemoteCluster)
		return was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
			!equality.Semantic.DeepEqual(was.Annotations, is.Annotations) || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
			statusOf(was, v1alpha1.ReadyCondition) != statusOf(is, v1alpha1.ReadyCondition) ||
			statusOf(was, v1alpha1.ReachableCondition) != statusOf(is, v1alpha1.ReachableCondition)
	},
}

func statusOf(cluster *v1alpha1.RemoteCluster, kind string) metav1.ConditionStatus {
	for _, condition := range cluster.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}

// discoveriesOf returns the discoveries that a RemoteCluster has to do with: the one that
// has made it, and, since it may be in the way of others, all where nobody has.
func (r *ClusterDiscoveryReconciler) discoveriesOf(ctx context.Context, obj client.Object) []ctrl.Request {
	if name := obj.GetLabels()[v1alpha1.DiscoveryLabel]; name != "" && obj.GetDeletionTimestamp().IsZero() {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
	}
	return r.discoveriesBeside(ctx, obj)
}

// discoveriesBeside returns the discoveries of an object's namespace.
func (r *ClusterDiscoveryReconciler) discoveriesBeside(ctx context.Context, obj client.Object) []ctrl.Request {
	return r.discoveriesIn(ctx, client.InNamespace(obj.GetNamespace()))
}

// redefined returns the discoveries whose kind may be served in another way now.
func (r *ClusterDiscoveryReconciler) redefined(ctx context.Context, obj client.Object) []ctrl.Request {
	_, group, _ := strings.Cut(obj.GetName(), ".")
	r.found.Define(group, r.now())
	r.found.Redefined(obj.GetName())
	var concerned []ctrl.Request
	for _, kind := range []v1alpha1.DiscoveredKind{v1alpha1.DiscoveredCluster, v1alpha1.DiscoveredClusterProfile, v1alpha1.DiscoveredHostCluster} {
		of := &v1alpha1.ClusterDiscovery{Spec: v1alpha1.ClusterDiscoverySpec{Kind: kind}}
		if discoveries.GroupKindOf(of).Group == group {
			concerned = append(concerned, r.discoveriesIn(ctx)...)
		}
	}
	return concerned
}

func (r *ClusterDiscoveryReconciler) discoveriesIn(ctx context.Context, options ...client.ListOption) []ctrl.Request {
	list := &v1alpha1.ClusterDiscoveryList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "cannot list ClusterDiscoveries")
		return nil
	}
	found := make([]ctrl.Request, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return found
}
