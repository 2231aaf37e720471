// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WhoAmI returns the ServiceAccount as which a client acts; the zero value where it
// acts as somebody else, or where the API server does not say who that is.
func WhoAmI(ctx context.Context, c client.Writer) (types.NamespacedName, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	review := &authenticationv1.SelfSubjectReview{}
	switch err := c.Create(ctx, review); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return types.NamespacedName{}, nil
	case err != nil:
		return types.NamespacedName{}, fmt.Errorf("cannot ask the API server as whom the controller acts: %w", err)
	}
	namespace, name, err := serviceaccount.SplitUsername(review.Status.UserInfo.Username)
	if err != nil {
		return types.NamespacedName{}, nil //nolint:nilerr // it is somebody else
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
