// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/objects"
)

// question is one thing that a look asks of the caches. Its answer is versions, and
// not content; it is empty where there is nothing. Questions that are equal ask for
// the same.
type question interface {
	// ask answers it by what the caches hold now.
	ask(ctx context.Context, r *AddonsLayerReconciler) (answer string, err error)
}

// readable is a question that is answered by what it reads.
type readable[T any] interface {
	question
	read(ctx context.Context, r *AddonsLayerReconciler) (T, error)
	// answer names what was read.
	answer(found T) string
}

// answerOf reads what a question asks for, and names it.
func answerOf[T any](ctx context.Context, r *AddonsLayerReconciler, q readable[T]) (string, error) {
	found, err := q.read(ctx, r)
	if err != nil {
		return "", err
	}
	return q.answer(found), nil
}

// layerQuestion asks for a layer.
type layerQuestion struct{ name string }

func (q layerQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

// read returns the cache's own layer, or nil. It must not be changed: a graph of
// layers may be large.
func (q layerQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (*v1alpha1.AddonsLayer, error) {
	layer := &v1alpha1.AddonsLayer{}
	switch err := r.Client.Get(ctx, types.NamespacedName{Name: q.name}, layer, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read layer %s: %w", q.name, err)
	}
	return layer, nil
}

func (q layerQuestion) answer(found *v1alpha1.AddonsLayer) string {
	if found == nil {
		return ""
	}
	return informers.VersionOf(found)
}

// dependantsQuestion asks for the layers that depend on a layer.
type dependantsQuestion struct{ of string }

func (q dependantsQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q dependantsQuestion) read(ctx context.Context, r *AddonsLayerReconciler) ([]v1alpha1.AddonsLayer, error) {
	list := &v1alpha1.AddonsLayerList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexDependsOn: q.of}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the dependants of layer %s: %w", q.of, err)
	}
	return list.Items, nil
}

func (q dependantsQuestion) answer(found []v1alpha1.AddonsLayer) string {
	versions := make([]string, 0, len(found))
	for i := range found {
		versions = append(versions, informers.VersionOf(&found[i]))
	}
	return versionsOf(versions)
}

// clusterQuestion asks for what layers read of a RemoteCluster.
type clusterQuestion struct{ name types.NamespacedName }

func (q clusterQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q clusterQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (*v1alpha1.RemoteCluster, error) {
	cluster := &v1alpha1.RemoteCluster{}
	switch err := r.Client.Get(ctx, q.name, cluster, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read RemoteCluster %s: %w", q.name, err)
	}
	return cluster, nil
}

func (q clusterQuestion) answer(found *v1alpha1.RemoteCluster) string {
	if found == nil {
		return ""
	}
	return readOf(found)
}

// clustersInQuestion asks whether there are RemoteClusters in a namespace.
type clustersInQuestion struct{ namespace string }

func (q clustersInQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q clustersInQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (bool, error) {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(q.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	return len(list.Items) > 0, nil
}

func (q clustersInQuestion) answer(some bool) string {
	if some {
		return "some"
	}
	return ""
}

// kubeConfigQuestion asks for the RemoteClusters that have their kubeconfig from a
// Secret.
type kubeConfigQuestion struct{ secret objects.ID }

func (q kubeConfigQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q kubeConfigQuestion) read(ctx context.Context, r *AddonsLayerReconciler) ([]types.NamespacedName, error) {
	list := &v1alpha1.RemoteClusterList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{indexKubeConfig: q.secret.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list RemoteClusters: %w", err)
	}
	found := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return found, nil
}

func (q kubeConfigQuestion) answer(found []types.NamespacedName) string {
	names := make([]string, 0, len(found))
	for _, cluster := range found {
		names = append(names, cluster.String())
	}
	return versionsOf(names)
}

// objectQuestion asks for an object of a kind that is watched.
type objectQuestion struct{ id objects.ID }

func (q objectQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q objectQuestion) read(ctx context.Context, r *AddonsLayerReconciler) (*unstructured.Unstructured, error) {
	k := r.kindsOf(q.id.Cluster)
	if k == nil {
		return nil, informers.ErrNotConnected
	}
	return k.Get(ctx, q.id)
}

func (q objectQuestion) answer(found *unstructured.Unstructured) string { return objectVersion(found) }

// sourceQuestion asks for a source.
type sourceQuestion struct{ id objects.ID }

func (q sourceQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	found, err := r.sources.Get(ctx, q.id)
	return objectVersion(found), err
}

// indexedQuestion asks for the objects of a kind that an index finds.
type indexedQuestion struct {
	kind         schema.GroupKind
	field, value string
}

func (q indexedQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	return answerOf(ctx, r, q)
}

func (q indexedQuestion) read(ctx context.Context, r *AddonsLayerReconciler) ([]unstructured.Unstructured, error) {
	return r.kinds.List(ctx, q.kind, client.MatchingFields{q.field: q.value})
}

func (q indexedQuestion) answer(found []unstructured.Unstructured) string {
	versions := make([]string, 0, len(found))
	for i := range found {
		versions = append(versions, informers.VersionOf(&found[i]))
	}
	return versionsOf(versions)
}

// followedQuestion asks for an object that is followed with what it holds, at a version
// of its API and as an account may read it, where these are told apart.
type followedQuestion struct {
	id      objects.ID
	version string
	account types.NamespacedName
}

func (q followedQuestion) ask(_ context.Context, r *AddonsLayerReconciler) (string, error) {
	if r.kindsOf(q.id.Cluster) == nil {
		return "", informers.ErrNotConnected
	}
	return r.follows.VersionAs(q.id, q.version, q.account)
}

// noticedQuestion asks for an object of which the metadata is followed.
type noticedQuestion struct{ id objects.ID }

func (q noticedQuestion) ask(_ context.Context, r *AddonsLayerReconciler) (string, error) {
	return r.metas.Version(q.id)
}

// fillingQuestion asks for what a layer of a bundle is filled from.
type fillingQuestion struct{ layer string }

func (q fillingQuestion) ask(ctx context.Context, r *AddonsLayerReconciler) (string, error) {
	layer, err := layerQuestion{q.layer}.read(ctx, r)
	if layer == nil || err != nil {
		return "", err
	}
	source, _, err := r.fill(ctx, layer)
	return fillingAnswer(source), err
}

// fillingAnswer names what a layer is filled from.
func fillingAnswer(source *layers.Source) string {
	if source == nil {
		return ""
	}
	return source.Digest + " " + source.Message
}

// objectVersion names an object; empty for none.
func objectVersion(found *unstructured.Unstructured) string {
	if found == nil {
		return ""
	}
	return informers.VersionOf(found)
}

// versionsOf is the answer that names several objects.
func versionsOf(versions []string) string {
	slices.Sort(versions)
	return strings.Join(versions, " ")
}

// readOf is how an answer names a RemoteCluster: by what layers read of it. By its
// version each layer that is deployed would have all others of the cluster decide
// anew, because it counts there.
func readOf(cluster *v1alpha1.RemoteCluster) string {
	return fmt.Sprintf("%s@%d %t %q %q %s %s %v", cluster.UID, cluster.Generation, cluster.DeletionTimestamp.IsZero(), cluster.Annotations, cluster.Labels,
		cluster.Status.Version, cluster.Status.Endpoint, cluster.Status.Conditions)
}
