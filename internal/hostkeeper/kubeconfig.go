// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/reserved"
)

// KubeconfigKey is the key of the Secret NAME-kubeconfig that has the kubeconfig. Names and
// key are those of Cluster API.
const KubeconfigKey = "value"

// fieldOwner is as whom objects are written.
const fieldOwner = client.FieldOwner("strata-hosts")

func kubeconfigName(cluster *v1alpha1.HostCluster) string {
	return reserved.HostKubeConfigName(cluster.Name)
}

// handed is what the Secret with the kubeconfig of a cluster says of it.
type handed struct{ id, version string }

// on tells whether a Secret says so.
func (h handed) on(secret *corev1.Secret) bool {
	return secret.Annotations[v1alpha1.HostClusterIDAnnotation] == h.id && secret.Annotations[v1alpha1.HostClusterVersionAnnotation] == h.version
}

// say has a Secret say so.
func (h handed) say(secret *corev1.Secret) {
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	for key, value := range map[string]string{v1alpha1.HostClusterIDAnnotation: h.id, v1alpha1.HostClusterVersionAnnotation: h.version} {
		if secret.Annotations[key] = value; value == "" {
			delete(secret.Annotations, key)
		}
	}
}

// handOut writes the kubeconfig of a cluster into its Secret, with what others may know of the
// cluster, where it differs. A Secret that somebody else has made is left alone.
func (r *Reconciler) handOut(ctx context.Context, cluster *v1alpha1.HostCluster, seen *observe.Cluster, says handed) error {
	content, err := seen.Kubeconfig(cluster.Name, cluster.Spec.Endpoint)
	if err != nil {
		return err
	}
	name := kubeconfigName(cluster)
	secret := &corev1.Secret{}
	err = r.Reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name, Labels: map[string]string{v1alpha1.HostClusterLabel: cluster.Name}},
			Data:       map[string][]byte{KubeconfigKey: content},
		}
		says.say(made)
		if err := r.Client.Create(ctx, made, fieldOwner); err != nil {
			return fmt.Errorf("cannot write the Secret %s: %w", name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot read the Secret %s: %w", name, err)
	case secret.Labels[v1alpha1.HostClusterLabel] != cluster.Name:
		return &problem{v1alpha1.ReasonOwnershipConflict, fmt.Sprintf(
			"the kubeconfig is not written, for the Secret %s is not this HostCluster's: it lacks the label %s=%s", name, v1alpha1.HostClusterLabel, cluster.Name), true}
	case bytes.Equal(secret.Data[KubeconfigKey], content) && says.on(secret):
		return nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[KubeconfigKey] = content
	says.say(secret)
	if err := r.Client.Update(ctx, secret, fieldOwner); err != nil {
		return fmt.Errorf("cannot write the Secret %s: %w", name, err)
	}
	return nil
}

// handedOut returns the ID of the cluster that the kubeconfig was handed out of; empty where none
// was.
func (r *Reconciler) handedOut(ctx context.Context, cluster *v1alpha1.HostCluster) (string, error) {
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: kubeconfigName(cluster)}, secret)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("cannot read the Secret %s: %w", kubeconfigName(cluster), err)
	}
	if err != nil || secret.Labels[v1alpha1.HostClusterLabel] != cluster.Name {
		return "", nil
	}
	return secret.Annotations[v1alpha1.HostClusterIDAnnotation], nil
}

// takeBack deletes the Secret of a cluster that is gone, if it is this HostCluster's.
func (r *Reconciler) takeBack(ctx context.Context, cluster *v1alpha1.HostCluster) error {
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: kubeconfigName(cluster)}, secret)
	if apierrors.IsNotFound(err) || err == nil && secret.Labels[v1alpha1.HostClusterLabel] != cluster.Name {
		return nil
	}
	if err == nil {
		err = r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
	}
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("cannot delete the Secret %s: %w", kubeconfigName(cluster), err)
	}
	return nil
}
