// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/reach"
)

// Connection is one connection to a cluster.
type Connection struct {
	// Access is how the cluster is reached.
	Access *kubeconfig.Access
	// Kinds of the cluster that are watched.
	Kinds *Kinds
	// Accounts of the cluster, and what they may do there.
	Accounts *Accounts
	Reviews  *Reviews
	// dynamic follows single objects of it.
	dynamic dynamic.Interface
	// Connection reaches it; every client of the cluster is made of it. plain is its
	// Web without the gate that writes pass.
	*reach.Connection
	plain *http.Client
	stop  context.CancelFunc
	// watching makes a cache of the cluster, which ends with the connection.
	watching func(View) (cache.Cache, error)
	// Gate lets writes through while it is known which cluster it is.
	Gate *Gate

	mu sync.Mutex
	// err is why the cluster has not answered last; nil where it has.
	err error
	// answering is closed when the cluster answers again; nil where it does. doubted holds a
	// doubt whether it does.
	answering, doubted chan struct{}
	// views holds the kinds of the cluster as others watch them, by their names.
	views map[string]*Kinds
}
