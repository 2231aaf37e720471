// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/objects"
)

const (
	// ReviewKept is how long it is taken for true what an account may, and so how
	// late it is noticed that it may not any more. No watch tells of that.
	ReviewKept = 5 * time.Minute
	// refusalKept is the same of what an account may not, of which a layer waits for
	// the end.
	refusalKept = 30 * time.Second
	// maxReviews bounds the answers that are kept.
	maxReviews = 8192
)

// Reviews asks what ServiceAccounts of one cluster may do, and remembers the answers
// for a while. It is safe for concurrent use.
type Reviews struct {
	// ask asks the cluster.
	ask func(ctx context.Context, account types.NamespacedName, id objects.ID) (Review, error)
	// lasting is true where the last answer counts as long as nobody can ask for
	// another one.
	lasting bool

	mu    sync.Mutex
	known *lru.Cache
}

// reviewKey is a question: whether an account may get an object.
type reviewKey struct {
	account types.NamespacedName
	id      objects.ID
}

// Review is an answer.
type Review struct {
	// Allowed is true where the account may.
	Allowed bool
	// Unasked says why nobody could ask.
	Unasked string
	// Until is when it has to be asked again.
	Until time.Time
}

// NewReviews returns reviews of the cluster that the controller runs in, which asks
// about others by its own right to.
func NewReviews(c client.Client, known *Accounts) *Reviews {
	return &Reviews{known: lru.New(maxReviews), ask: func(ctx context.Context, account types.NamespacedName, id objects.ID) (Review, error) {
		question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               serviceaccount.MakeUsername(account.Namespace, account.Name),
			Groups:             append(serviceaccount.MakeGroupNames(account.Namespace), user.AllAuthenticated),
			ResourceAttributes: toGet(id),
		}}
		return askAbout(
			ctx,
			known,
			account,
			id,
			"the controller may not create subjectaccessreviews",
			func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
				err := c.Create(ctx, question)
				return question.Status, err
			},
		)
	}}
}

// newRemoteReviews returns reviews of another cluster. There each account asks about
// itself, which every account may: so no kubeconfig needs a right for it beyond that
// to act as the account. While the cluster does not answer, what it said last counts.
func newRemoteReviews(known *Accounts, answers func() error) *Reviews {
	const unasked = "the kubeconfig may not act as it, or it may not create selfsubjectaccessreviews"
	return &Reviews{known: lru.New(maxReviews), lasting: true, ask: func(ctx context.Context, account types.NamespacedName, id objects.ID) (Review, error) {
		if err := answers(); err != nil {
			return Review{}, fmt.Errorf("cannot read %s: %w", id, err)
		}
		question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: toGet(id)}}
		return askAbout(ctx, known, account, id, unasked, func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
			as, err := known.Client(account)
			if err == nil {
				err = as.Create(ctx, question)
			}
			return question.Status, err
		})
	}}
}

// MayGet tells whether an account may get a ConfigMap or a Secret. It asks where that
// is not known, or was asked longer ago than kept.
func (r *Reviews) MayGet(ctx context.Context, account types.NamespacedName, id objects.ID, now time.Time, kept time.Duration) (Review, error) {
	key := reviewKey{account, id}
	r.mu.Lock()
	known, found := r.known.Get(key)
	r.mu.Unlock()
	if found && now.Before(known.(Review).Until) {
		return known.(Review), nil
	}
	answer, err := r.ask(ctx, account, id)
	switch {
	case err == nil && answer.Allowed:
		answer.Until = now.Add(kept)
	case err == nil:
		answer.Until = now.Add(min(kept, refusalKept))
	case found && r.lasting && ctx.Err() == nil:
		answer = known.(Review)
		answer.Until = now.Add(min(kept, refusalKept))
	default:
		return Review{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Add(key, answer)
	return answer, nil
}

// toGet is what is asked about: the right to get a ConfigMap or a Secret.
func toGet(id objects.ID) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: "get", Version: "v1", Resource: followedResources[id.GroupKind()].Resource, Namespace: id.Namespace, Name: id.Name,
	}
}

// askAbout puts a question about an account that exists. One that does not may do nothing,
// whatever rights its name has. unasked says what lacks the right to ask.
func askAbout(
	ctx context.Context, known *Accounts, account types.NamespacedName, id objects.ID, unasked string,
	ask func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error),
) (Review, error) {
	if err := accounts.Check(account); err != nil {
		return Review{}, nil //nolint:nilerr // a gate says so
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var missing *accounts.MissingError
	if err := known.Check(ctx, account); errors.As(err, &missing) {
		return Review{}, nil
	} else if err != nil {
		return Review{}, err
	}
	switch status, err := ask(ctx); {
	case apierrors.IsForbidden(err):
		return Review{Unasked: unasked}, nil
	case err != nil:
		return Review{}, fmt.Errorf("cannot ask whether ServiceAccount %s may get %s: %w", account, id, err)
	default:
		return Review{Allowed: status.Allowed && !status.Denied}, nil
	}
}

// followedResources are the resources of the kinds that can be followed.
var followedResources = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps"},
	{Kind: "Secret"}:    {Version: "v1", Resource: "secrets"},
}
