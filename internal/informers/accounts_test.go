// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// All accounts of a cluster have one rate limit among them.
func TestAccountsShareTheirRate(t *testing.T) {
	accounts := accountsOf(&rest.Config{QPS: 5}, http.DefaultClient, client.Options{}, nil)
	if accounts.config.RateLimiter == nil {
		t.Error("each account has a rate limit of its own")
	}
}

// refused may read nothing.
type refused struct{ client.Reader }

// Get says so.
func (refused) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, key.Name, errors.New("no rights"))
}

// An account that is looked up in vain is no error of its own while the
// controller may not read it: its rights will tell.
func TestAccountThatMayNotBeRead(t *testing.T) {
	accounts := accountsOf(&rest.Config{}, http.DefaultClient, client.Options{}, refused{})
	if err := accounts.Check(t.Context(), types.NamespacedName{Namespace: "default", Name: "missing"}); err != nil {
		t.Errorf("the error is %v", err)
	}
}
