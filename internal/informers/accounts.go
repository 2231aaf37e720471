// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/accounts"
)

// askTimeout bounds the wait for what is asked about an account.
const askTimeout = 15 * time.Second

// MaxAccounts is how many accounts' clients are kept. One that is used again
// after it was dropped is made anew, which costs no request.
const MaxAccounts = 256

// Accounts hands out clients that act as ServiceAccounts. They share the
// manager's connections and what it knows of kinds, and have one rate limit
// among them. It is safe for concurrent use.
type Accounts struct {
	config  *rest.Config
	web     *http.Client
	options client.Options
	reader  client.Reader

	mu      sync.Mutex
	clients *lru.Cache
}

// NewAccounts returns accounts of the manager's cluster. They are looked up
// with reader, as the controller.
func NewAccounts(mgr ctrl.Manager, reader client.Reader) *Accounts {
	return accountsOf(mgr.GetConfig(), mgr.GetHTTPClient(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}, reader)
}

// accountsOf returns accounts of a cluster, over a connection to it.
func accountsOf(config *rest.Config, web *http.Client, options client.Options, reader client.Reader) *Accounts {
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
	}
	return &Accounts{
		config: config, web: web, reader: reader, clients: lru.New(MaxAccounts), options: options,
	}
}

// Client returns a client that reads past the cache and writes as an account,
// with the groups that a token of that account has: the API server adds them
// where only the user is named, and asks for the right to impersonate that one
// account alone.
func (a *Accounts) Client(account types.NamespacedName) (client.Client, error) {
	if err := accounts.Check(account); err != nil {
		return nil, fmt.Errorf("cannot act as a ServiceAccount: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, found := a.clients.Get(account); found {
		return known.(client.Client), nil
	}
	options := a.options
	options.HTTPClient = a.webOf(account)
	made, err := client.New(a.config, options)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client that acts as ServiceAccount %s: %w", account, err)
	}
	a.clients.Add(account, made)
	return made, nil
}

// Kept returns of how many accounts the clients are kept.
func (a *Accounts) Kept() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients.Len()
}

// webOf returns what asks as an account.
func (a *Accounts) webOf(account types.NamespacedName) *http.Client {
	user := transport.ImpersonationConfig{UserName: serviceaccount.MakeUsername(account.Namespace, account.Name)}
	web := *a.web
	web.Transport = transport.NewImpersonatingRoundTripper(user, a.web.Transport)
	return &web
}

// Dynamic returns a client for single objects of any kind that reads as an account;
// nil where it can be none.
func (a *Accounts) Dynamic(account types.NamespacedName) dynamic.Interface {
	if accounts.Check(account) != nil {
		return nil
	}
	made, err := dynamic.NewForConfigAndClient(a.config, a.webOf(account))
	if err != nil {
		return nil
	}
	return made
}

// Check makes sure that an account exists. RBAC gives rights to names, so that
// those of an account that was deleted would still be there. Where the
// controller may impersonate the account but not read it, it goes ahead.
func (a *Accounts) Check(ctx context.Context, account types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(serviceAccountVersion)
	switch err := a.reader.Get(ctx, account, found); {
	case apierrors.IsNotFound(err):
		return &accounts.MissingError{Account: account}
	case err == nil, apierrors.IsForbidden(err):
		return nil
	default:
		return fmt.Errorf("cannot look up ServiceAccount %s: %w", account, err)
	}
}
