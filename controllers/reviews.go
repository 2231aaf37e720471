// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/layers"
)

const (
	// reviewKept is how long it is taken for true what an account may, and so how
	// late it is noticed that it may not any more. No watch tells of that.
	reviewKept = 5 * time.Minute
	// refusalKept is the same of what an account may not, of which a layer waits for
	// the end.
	refusalKept = 30 * time.Second
	// maxReviews bounds the answers that are kept.
	maxReviews = 8192
)

// reviews asks what ServiceAccounts of this cluster may do, and remembers the
// answers for a while. It is safe for concurrent use.
type reviews struct {
	client   client.Client
	accounts *accounts

	mu    sync.Mutex
	known *lru.Cache
}

// reviewKey is a question: whether an account may get an object.
type reviewKey struct {
	account types.NamespacedName
	id      dependents.ID
}

// review is an answer.
type review struct {
	allowed bool
	// unasked says why nobody could ask.
	unasked string
	// until is when it has to be asked again.
	until time.Time
}

func newReviews(c client.Client, accounts *accounts) *reviews {
	return &reviews{client: c, accounts: accounts, known: lru.New(maxReviews)}
}

// mayGet tells whether an account may get a ConfigMap or a Secret. It asks where that
// is not known, or was asked longer ago than kept.
func (r *reviews) mayGet(ctx context.Context, account types.NamespacedName, id dependents.ID, now time.Time, kept time.Duration) (review, error) {
	key := reviewKey{account, id}
	r.mu.Lock()
	known, found := r.known.Get(key)
	r.mu.Unlock()
	if found && now.Before(known.(review).until) {
		return known.(review), nil
	}
	answer, err := r.ask(ctx, account, id)
	if err != nil {
		return review{}, err
	}
	answer.until = now.Add(kept)
	if !answer.allowed {
		answer.until = now.Add(min(kept, refusalKept))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Add(key, answer)
	return answer, nil
}

func (r *reviews) ask(ctx context.Context, account types.NamespacedName, id dependents.ID) (review, error) {
	if err := layers.CheckAccount(account); err != nil {
		return review{}, nil //nolint:nilerr // a gate says so
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var missing *layers.AccountMissingError
	if err := r.accounts.check(ctx, account); errors.As(err, &missing) {
		return review{}, nil
	} else if err != nil {
		return review{}, err
	}
	question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   serviceaccount.MakeUsername(account.Namespace, account.Name),
		Groups: append(serviceaccount.MakeGroupNames(account.Namespace), user.AllAuthenticated),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Version: "v1", Resource: followedResources[id.GroupKind()].Resource, Namespace: id.Namespace, Name: id.Name,
		},
	}}
	switch err := r.client.Create(ctx, question); {
	case apierrors.IsForbidden(err):
		return review{unasked: "the controller may not create subjectaccessreviews"}, nil
	case err != nil:
		return review{}, fmt.Errorf("cannot ask whether ServiceAccount %s may get %s: %w", account, id, err)
	}
	return review{allowed: question.Status.Allowed && !question.Status.Denied}, nil
}
