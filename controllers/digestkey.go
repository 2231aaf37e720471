// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/digests"
)

// digestKeyField is where the key is in its Secret.
const digestKeyField = "key"

// DigestKey returns the key of the digests of Secrets, which the controller's
// namespace keeps for all of its processes. Where there is none it makes one. Its
// error says what to do about a key that cannot be used.
func DigestKey(ctx context.Context, reader client.Reader, writer client.Writer, namespace string) (digests.Key, error) {
	name := types.NamespacedName{Namespace: namespace, Name: v1alpha1.DigestKeyName}
	key, err := readDigestKey(ctx, reader, name)
	if !apierrors.IsNotFound(err) {
		return key, err
	}
	yes, data := true, make([]byte, 32)
	_, _ = rand.Read(data) // which never fails
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.DigestKeyName},
		Type:       v1alpha1.DigestKeyType, Immutable: &yes, Data: map[string][]byte{digestKeyField: data},
	}
	if err := writer.Create(ctx, secret, client.FieldOwner(dependents.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return digests.Key{}, fmt.Errorf("cannot keep the key of digests in Secret %s: %w", name, err)
	}
	// Another process may have been faster: what is there counts.
	return readDigestKey(ctx, reader, name)
}

func readDigestKey(ctx context.Context, reader client.Reader, name types.NamespacedName) (digests.Key, error) {
	secret := &corev1.Secret{}
	if err := reader.Get(ctx, name, secret); err != nil {
		return digests.Key{}, fmt.Errorf("cannot read the key of digests in Secret %s: %w", name, err)
	}
	const mend = "delete the Secret and start the controller again, which makes another and applies each Secret of a layer once more"
	if secret.Type != v1alpha1.DigestKeyType {
		return digests.Key{}, fmt.Errorf(
			"cannot use the key of digests in Secret %s: the Secret is of the type %q, not %s: %s",
			name,
			secret.Type,
			v1alpha1.DigestKeyType,
			mend,
		)
	}
	key, err := digests.NewKey(secret.Data[digestKeyField])
	if err != nil {
		return digests.Key{}, fmt.Errorf("cannot use the key of digests in Secret %s: %w: %s", name, err, mend)
	}
	return key, nil
}
