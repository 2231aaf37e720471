// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hostplans"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/looks"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/provision"
	"github.com/strata-project/strata/internal/reach"
)

// RangesFlag is the flag that says where hosts may be.
const RangesFlag = "--allowed-host-ranges"

const (
	// defaultInterval is how often hosts are looked at of which nothing is known to change.
	defaultInterval = 10 * time.Minute
	// intervalJitter spreads the looks at many clusters.
	intervalJitter = 0.1
	// tellEvery is how often it is written what goes on.
	tellEvery = 2 * time.Second
	// maxEventNote is how long the API server lets the note of an event be, in bytes.
	maxEventNote = 1024
)

// Reconciler keeps HostClusters.
type Reconciler struct {
	// Client reads HostClusters and RemoteClusters from the cache, and writes; Reader reads
	// past the cache.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	// Allowed says where hosts, and bastions, may be; nowhere without ranges.
	Allowed reach.Allowed
	// SnapshotDir is the folder of all snapshots; empty for none.
	SnapshotDir string
	// SnapshotQuota is how many bytes the snapshots of one cluster may have at most; 0 for any.
	SnapshotQuota int64
	// Hub identifies the cluster that this runs in: the UID of its namespace kube-system.
	Hub string
	// Retry is how soon hosts are looked at again that are not as they should be.
	Retry time.Duration
	// Concurrent is how many clusters are worked on side by side.
	Concurrent int
	// Now returns the time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watch.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	of := client.Object(&v1alpha1.HostCluster{})
	c, err := looks.NewController("hostcluster", mgr, of, controller.Options{Reconciler: r, MaxConcurrentReconciles: max(r.Concurrent, 1)})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), of, &handler.EnqueueRequestForObject{}, looked)); err != nil {
		return fmt.Errorf("cannot watch HostClusters: %w", err)
	}
	return nil
}

// keeper is one look at one HostCluster, and what is done then.
type keeper struct {
	*Reconciler
	object *v1alpha1.HostCluster
	// plan and sight of the last look.
	plan  *hostplans.Plan
	sight *observe.Sight
	// told is when it was last written what goes on.
	told time.Time
}

// errChanged says that the HostCluster is not the one any more that is worked on.
var errChanged = errors.New("the HostCluster has changed")

// Reconcile looks at one HostCluster, and brings its hosts to what it says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.HostCluster{}
	if err := r.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	k := &keeper{Reconciler: r, object: object}
	if !object.DeletionTimestamp.IsZero() {
		if !controllerutil.ContainsFinalizer(object, v1alpha1.HostClusterFinalizer) {
			return ctrl.Result{}, nil
		}
		return k.conclude(ctx, k.finish(ctx))
	}
	if !controllerutil.ContainsFinalizer(object, v1alpha1.HostClusterFinalizer) {
		if err := k.change(ctx, func(o *v1alpha1.HostCluster) { controllerutil.AddFinalizer(o, v1alpha1.HostClusterFinalizer) }); err != nil {
			return ctrl.Result{}, err
		}
	}
	return k.conclude(ctx, k.keep(ctx))
}

// keep brings the hosts to what the HostCluster says. The error is why it could not be done.
func (k *keeper) keep(ctx context.Context) error {
	if k.object.Spec.Hold {
		return &problem{v1alpha1.ReasonHold, "spec.hold is set: the hosts are left as they are", false}
	}
	options, err := k.options(ctx)
	if err != nil {
		return err
	}
	defer options.Machines.Close()
	if options.TakeOver, err = k.takesOver(ctx, options); err != nil {
		return err
	}
	if _, err = provision.Run(ctx, options); err != nil || k.plan.Outcome == hosts.Error {
		return err
	}
	if k.sight.Cluster != nil {
		says := handed{k.plan.ID, k.sight.Observation.Cluster.Version}
		if err := k.handOut(ctx, options.Cluster, k.sight.Cluster, says); err != nil {
			return err
		}
	}
	used := []string{}
	if options.TakeOver {
		used = append(used, v1alpha1.TakeOverClusterAnnotation)
	}
	if k.plan.Outcome == hosts.Done {
		used = append(used, v1alpha1.TakeOverClusterAnnotation, v1alpha1.WithoutSnapshotAnnotation)
	}
	return k.consume(ctx, used)
}

// options says how to work on the hosts. The machines are to be closed.
func (k *keeper) options(ctx context.Context) (provision.Options, error) {
	cluster := k.object.DeepCopy()
	hostclusters.Default(cluster)
	problems := hostclusters.Check(cluster)
	dir := cluster.Spec.Snapshots.Directory
	const field = "spec.snapshots.directory"
	switch {
	case dir != "" && k.SnapshotDir == "":
		problems = append(problems, hostclusters.Problem{
			Field: field, Message: "the controller has no place for snapshots: hosts.snapshots.claim of its chart gives it one",
		})
	case dir != "" && !filepath.IsLocal(dir):
		problems = append(problems, hostclusters.Problem{Field: field, Message: "must be below the place that the controller has for snapshots, such as etcd"})
	}
	if quota := cluster.Spec.Snapshots.Quota; quota != nil && k.SnapshotQuota > 0 && quota.Value() > k.SnapshotQuota {
		problems = append(problems, hostclusters.Problem{
			Field:   "spec.snapshots.quota",
			Message: fmt.Sprintf("must be at most %d MiB, which hosts.snapshots.quota of the controller's chart gives", k.SnapshotQuota>>20),
		})
	}
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, each := range problems {
			lines[i] = strings.TrimPrefix(each.Field+": "+each.Message, ": ")
		}
		return provision.Options{}, &problem{v1alpha1.ReasonInvalidSpec, strings.Join(lines, "; "), false}
	}
	access, keys, err := k.access(ctx, cluster)
	if err != nil {
		return provision.Options{}, err
	}
	if dir != "" {
		dir = filepath.Join(k.SnapshotDir, cluster.Namespace, cluster.Name, dir)
	}
	bucket, err := k.bucket(ctx, cluster)
	if err != nil {
		return provision.Options{}, err
	}
	return provision.Options{
		Cluster: cluster, Machines: machines.Open(cluster, access), Keys: keys, SnapshotDir: dir, MaxQuota: k.SnapshotQuota, Bucket: bucket,
		WithoutSnapshot: cluster.Annotations[v1alpha1.WithoutSnapshotAnnotation] == v1alpha1.AllowNext,
		Actor:           fmt.Sprintf("HostCluster %s/%s", cluster.Namespace, cluster.Name),
		Manager:         fmt.Sprintf("HostCluster %s/%s of the management cluster %s", cluster.Namespace, cluster.Name, k.Hub),
		Approve:         func(*hostplans.Plan) error { return nil },
		MayGoOn:         func() error { return k.isUnchanged(ctx) },
		Looked:          func(plan *hostplans.Plan, sight *observe.Sight) { k.plan, k.sight = plan, sight },
		Report:          func(event provision.Event) { k.report(ctx, event) },
		Now:             k.Now,
	}, nil
}

// isUnchanged tells whether the HostCluster is still the one that is worked on.
func (k *keeper) isUnchanged(ctx context.Context) error {
	now := &v1alpha1.HostCluster{}
	err := k.Client.Get(ctx, client.ObjectKeyFromObject(k.object), now)
	switch {
	case apierrors.IsNotFound(err):
		return errChanged
	case err != nil:
		return err
	case now.UID != k.object.UID || now.Generation != k.object.Generation:
		return errChanged // a deletion changes the generation, too
	}
	return nil
}

// takesOver tells whether the annotation takes over the cluster that is on the hosts.
func (k *keeper) takesOver(ctx context.Context, options provision.Options) (bool, error) {
	asked := k.object.Annotations[v1alpha1.TakeOverClusterAnnotation]
	if asked == "" {
		return false, nil
	}
	sight, err := observe.Look(ctx, observe.Options{Cluster: options.Cluster, Machines: options.Machines, Manager: options.Manager, Now: k.Now})
	if err != nil || sight.Cluster == nil {
		return false, err
	}
	if sight.Cluster.Saved.Manager == options.Manager {
		return false, nil // it is taken already
	}
	id := sight.Cluster.Saved.ID
	if id == "" {
		id = v1alpha1.AnyCluster
	}
	if asked != id {
		return false, &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the annotation %s is %s, and the cluster on the hosts is %s: name that one to take it over",
			v1alpha1.TakeOverClusterAnnotation, printable.Line(asked, 200), printable.Line(id, 200)), false}
	}
	return true, nil
}

// report tells what is done, as an event and in the status.
func (k *keeper) report(ctx context.Context, event provision.Event) {
	text := printable.Line(strings.TrimSpace(event.Host+" "+event.Message), maxEventNote)
	k.Events.Eventf(k.object, nil, corev1.EventTypeNormal, v1alpha1.ReasonProgressing, "Reconcile", "%s", text)
	if !event.Until.IsZero() {
		text += " (until " + event.Until.UTC().Format(time.TimeOnly) + ")"
	}
	if now := k.Now(); now.Sub(k.told) >= tellEvery {
		k.told = now
		_ = k.write(ctx, moment{plan: k.plan, sight: k.sight, doing: text}) // the next one, or the end, says it again
	}
}

// conclude says how it has ended, and when to look again.
func (k *keeper) conclude(ctx context.Context, err error) (ctrl.Result, error) {
	var wrong *problem
	switch {
	case ctx.Err() != nil, apierrors.IsConflict(err):
		return ctrl.Result{}, err // what goes on is said already
	case errors.Is(err, errChanged):
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	case errors.Is(err, errGone):
		return ctrl.Result{}, nil
	}
	if failed := k.write(ctx, moment{plan: k.plan, sight: k.sight, err: err}); failed != nil {
		return ctrl.Result{}, client.IgnoreNotFound(failed)
	}
	switch {
	case errors.As(err, &wrong) && !wrong.passes:
		return ctrl.Result{}, nil // a change of it has it looked at
	case err == nil && k.plan.Outcome == hosts.Done:
		interval := defaultInterval
		if k.object.Spec.Interval != nil {
			interval = k.object.Spec.Interval.Duration
		}
		return ctrl.Result{RequeueAfter: wait.Jitter(interval, intervalJitter)}, nil
	case err == nil && isLeft(k.plan):
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: k.Retry}, nil
}

// write writes the status where it differs, and tells of it where the cluster is another
// thing than before.
func (k *keeper) write(ctx context.Context, m moment) error {
	m.now = k.Now()
	before, status := k.object.Status, statusOf(k.object, m)
	if m.sight != nil && m.sight.Cluster != nil && m.doing == "" && m.err == nil {
		status.KubeConfig = kubeconfigName(k.object)
	}
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	// The answer has what others have changed meanwhile, which was not worked on.
	patched := k.object.DeepCopy()
	patched.Status = status
	if err := k.Client.Status().Patch(ctx, patched, client.MergeFrom(k.object), fieldOwner); err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	k.object.Status = status
	is, was := meta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition), meta.FindStatusCondition(before.Conditions, v1alpha1.ReadyCondition)
	if m.doing == "" && (was == nil || was.Reason != is.Reason || was.Status != is.Status) {
		kind := corev1.EventTypeNormal
		if is.Status == metav1.ConditionFalse {
			kind = corev1.EventTypeWarning
		}
		k.Events.Eventf(k.object, nil, kind, is.Reason, "Reconcile", "%s", printable.Line(is.Message, maxEventNote))
	}
	return nil
}

// consume removes annotations that were for once.
func (k *keeper) consume(ctx context.Context, once []string) error {
	if !slices.ContainsFunc(once, func(key string) bool { return k.object.Annotations[key] != "" }) {
		return nil
	}
	return k.change(ctx, func(o *v1alpha1.HostCluster) {
		for _, key := range once {
			delete(o.Annotations, key)
		}
	})
}

// change changes the metadata of the HostCluster as it is now.
func (k *keeper) change(ctx context.Context, how func(*v1alpha1.HostCluster)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		is := &v1alpha1.HostCluster{}
		if err := k.Reader.Get(ctx, client.ObjectKeyFromObject(k.object), is); err != nil {
			return client.IgnoreNotFound(err)
		}
		changed := is.DeepCopy()
		how(changed)
		if is.UID != k.object.UID || equality.Semantic.DeepEqual(changed.ObjectMeta, is.ObjectMeta) {
			return nil
		}
		err := k.Client.Patch(ctx, changed, client.MergeFromWithOptions(is, client.MergeFromWithOptimisticLock{}), fieldOwner)
		return client.IgnoreNotFound(err)
	})
}

// looked passes what has a HostCluster looked at: a change of what it says, of its
// annotations, and its deletion.
var looked = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
