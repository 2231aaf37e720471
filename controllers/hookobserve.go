// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hooks"
	"github.com/strata-project/strata/internal/impact"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/templates"
)

// observeAwaited looks at the objects that the layer waits for, and follows them.
func (o *observer) observeAwaited(ctx context.Context) error {
	if !o.Layer.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, wait := range hooks.Waits(o.Layer, o.Settings.Namespace) {
		id, version, err := wait.ID(o.cluster())
		if err != nil {
			return nil //nolint:nilerr // a gate says so
		}
		seen := layers.Awaited{ID: o.scoped(id, version, wait.Defaulted)}
		seen.Live, seen.Unserved, seen.Err = o.awaited(ctx, seen.ID, version)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if seen.Err != nil {
			o.reads.unnoted()
		}
		o.Awaited = append(o.Awaited, seen)
	}
	return nil
}

// scoped returns an object without the namespace that nobody has said, where its kind has
// none.
func (o *observer) scoped(id objects.ID, version string, defaulted bool) objects.ID {
	k := o.r.kindsOf(id.Cluster)
	if !defaulted || k == nil {
		return id
	}
	if mapping, err := k.Mapping(id.GroupKind(), version); err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		id.Namespace = ""
	}
	return id
}

// errMayNotRead says of an account that it lacks the right to follow an object.
var errMayNotRead = errors.New("may not get, list and watch it")

// awaited reads one object that is waited for at a version of its API, and tells whether
// its kind is not served there.
func (o *observer) awaited(ctx context.Context, id objects.ID, version string) (live *unstructured.Unstructured, unserved bool, err error) {
	account := o.Settings.AccountFor(o.Layer)
	return o.r.readAs(id, version, account, func(resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
		return o.reads.followedAs(ctx, id, resource, version, account)
	})
}

// readAs finds out of which resource an object is, and has it read as an account, which
// lacks the right to where the error says so. It tells whether its kind is not served.
func (r *AddonsLayerReconciler) readAs(
	id objects.ID, version string, account types.NamespacedName, get func(schema.GroupVersionResource) (*unstructured.Unstructured, error),
) (live *unstructured.Unstructured, unserved bool, err error) {
	k := r.kindsOf(id.Cluster)
	if k == nil {
		return nil, false, informers.ErrNotConnected
	}
	mapping, err := k.Mapping(id.GroupKind(), version)
	if meta.IsNoMatchError(err) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (id.Namespace != "") {
		if namespaced {
			return nil, false, fmt.Errorf("namespace is missing: objects of kind %s are in one", id.Kind)
		}
		return nil, false, fmt.Errorf("namespace must be left out: objects of kind %s are in none", id.Kind)
	}
	live, err = get(mapping.Resource)
	switch {
	case apierrors.IsForbidden(err) && account.Name != "":
		return nil, false, fmt.Errorf(
			"ServiceAccount %s %w: a Role and RoleBinding for %s named %s let it", account, errMayNotRead, mapping.Resource.Resource, id.Name,
		)
	case err != nil:
		return nil, false, err
	}
	return live, false, nil
}

// chartVersion is the version of the API at which HelmCharts are read.
const chartVersion = "v1"

// observeCharts looks whether the charts are there that releases of the layer wait for, and
// follows them. What cannot be read is waited for by Flux alone.
func (o *observer) observeCharts(ctx context.Context) error {
	o.Charts = map[objects.ID]bool{}
	for release, chart := range o.AwaitedCharts() {
		nobody := types.NamespacedName{}
		live, _, err := o.r.readAs(chart, chartVersion, nobody, func(resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
			return o.reads.followedAs(ctx, chart, resource, chartVersion, nobody)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			o.reads.unnoted()
		case live != nil:
			o.Charts[release] = objects.AssessObject(objects.AssessCondition, live).Health == objects.Ready
		}
	}
	return nil
}

// observeHealth looks at what the layer's releases have made, and follows it. It ends at
// the first object that cannot be read for a reason that holds for all.
func (o *observer) observeHealth(ctx context.Context) error {
	workloads, total := o.WatchedWorkloads()
	if o.IsAway() {
		return nil
	}
	o.Workloads, o.MoreWorkloads = workloads, total-len(workloads)
	for i := range o.Workloads {
		seen := &o.Workloads[i]
		live, unserved, err := o.awaited(ctx, seen.ID, seen.APIVersion)
		seen.Live, seen.Err = live, err
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case unserved:
			seen.Err = fmt.Errorf("the cluster does not serve %s at %s", seen.ID.GroupKind(), seen.APIVersion)
		case apierrors.IsForbidden(seen.Err) && seen.ID.Cluster != "":
			seen.Err = fmt.Errorf("the kubeconfig of RemoteCluster %s may not get, list and watch it", seen.ID.Cluster)
		case apierrors.IsForbidden(seen.Err):
			seen.Err = fmt.Errorf("the controller may not get, list and watch it; healthWatch.enabled of the chart gives it that right")
		case seen.Err != nil && !errors.Is(seen.Err, errMayNotRead):
			o.reads.unnoted()
			o.Workloads = o.Workloads[:i+1]
			return nil
		}
		if seen.Err != nil {
			o.reads.unnoted()
		}
	}
	return nil
}

// observeDoomed looks up the objects of deleteBefore that are left, past every
// cache and as the layer's account: which there are may depend on who asks.
func (o *observer) observeDoomed(ctx context.Context) error {
	if !o.AsksForDoomed() {
		return nil
	}
	o.DoomedError = o.lookUpDoomed(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

func (o *observer) lookUpDoomed(ctx context.Context) error {
	k := o.reads.unnoted().kindsOf(o.cluster())
	if k == nil {
		return informers.ErrNotConnected
	}
	reader, err := o.readerOn(ctx, k)
	if err != nil {
		return err
	}
	for i, hook := range o.Layer.Spec.DeleteBefore {
		if err := hooks.CheckDeleteBefore(hook); err != nil {
			return fmt.Errorf("spec.deleteBefore[%d].%w", i, err)
		}
		gv, err := schema.ParseGroupVersion(hook.APIVersion)
		if err != nil {
			return fmt.Errorf("spec.deleteBefore[%d].apiVersion: %w", i, err)
		}
		if _, err := k.Mapping(schema.GroupKind{Group: gv.Group, Kind: hook.Kind}, gv.Version); meta.IsNoMatchError(err) {
			continue // there can be none
		} else if err != nil {
			return err
		}
		if err := o.lookUpHook(ctx, reader, hook, gv.WithKind(hook.Kind)); err != nil {
			return err
		}
	}
	return nil
}

// readerOn returns what reads a cluster as the layer's account.
func (o *observer) readerOn(ctx context.Context, k *informers.Kinds) (client.Reader, error) {
	account := o.Settings.AccountFor(o.Layer)
	accounts := o.r.accounts
	if k.Name != "" {
		if err := o.r.remotes.Answers(k.Name); err != nil {
			return nil, err
		}
		accounts = o.r.remotes.Get(k.Name).Accounts
	}
	if account.Name == "" {
		return k.Past, nil
	}
	if err := accounts.Check(ctx, account); err != nil {
		return nil, err
	}
	return accounts.Client(account)
}

// lookUpHook adds the objects that one entry of deleteBefore is about.
func (o *observer) lookUpHook(ctx context.Context, reader client.Reader, hook v1alpha1.DeleteBefore, kind schema.GroupVersionKind) error {
	options := []client.ListOption{client.Limit(impact.Page)}
	if hook.Namespace != "" {
		options = append(options, client.InNamespace(hook.Namespace))
	}
	if hook.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(hook.Selector)
		if err != nil {
			return err
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := impact.Insist(ctx, func() error { return reader.List(ctx, list, append(options, client.Continue(next))...) })
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := o.doom(hook, &list.Items[i]); err != nil {
				return err
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// doom notes an object, if it is what an entry of deleteBefore is about. One that
// lacks a field that its where reads is not.
func (o *observer) doom(hook v1alpha1.DeleteBefore, obj *unstructured.Unstructured) error {
	id := objects.IDOf(obj).On(o.cluster())
	met, err := hooks.Meets(hook.Where, obj)
	var missing *templates.MissingError
	if err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("%s: where: %w", id, err)
	}
	if !met {
		return nil
	}
	for _, known := range o.Doomed {
		if known.UID == obj.GetUID() {
			return nil
		}
	}
	doomed := layers.Doomed{ID: id, UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Kept: objects.KeptBy(obj)}
	if since := obj.GetDeletionTimestamp(); since != nil {
		doomed.Since = since.Time
	}
	if hook.Timeout != nil {
		doomed.Timeout = hook.Timeout.Duration
	}
	o.Doomed = append(o.Doomed, doomed)
	return nil
}
