// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/reach"
)

// errNotConnected says that this process has no connection to a cluster.
var errNotConnected = errors.New("the cluster is not connected")

// remotes holds the connections to other clusters, one for each RemoteCluster. It
// is safe for concurrent use.
type remotes struct {
	remoting
	mu     sync.Mutex
	byName map[string]*connection
	// looked holds the clusters that this process has looked at.
	looked map[string]bool
	// uids holds what each cluster is known by, the one that the controller runs in
	// under an empty name, and recorded what Strata's own copies of kubeconfigs have
	// said last.
	uids     map[string]string
	recorded map[string]recordedUID
	// known holds the twins that follow from uids; nil where that is to be found out.
	known layers.Twins
	// mistaken says why nothing may be written to clusters that people have to
	// decide on.
	mistaken map[string]string
	// changes counts what was connected and disconnected, and what connections
	// that have gone had counted.
	changes int
}

// remoting is what connections need of whoever makes them.
type remoting struct {
	// scheme of the clients.
	scheme *runtime.Scheme
	watching
	// wake looks at a RemoteCluster again.
	wake func(types.NamespacedName)
}

// connection is one connection to a cluster.
type connection struct {
	// access is how the cluster is reached.
	access *kubeconfig.Access
	kinds  *kinds
	// accounts of the cluster, what they may do there, and what follows single
	// objects of it.
	accounts *accounts
	reviews  *reviews
	dynamic  dynamic.Interface
	// Connection reaches it; every client of the cluster is made of it. plain is its
	// Web without the gate that writes pass.
	*reach.Connection
	plain *http.Client
	stop  context.CancelFunc
	// gate lets writes through while it is known which cluster it is.
	gate *gate

	mu sync.Mutex
	// err is why the cluster has not answered last; nil where it has.
	err error
}

// setError notes whether the cluster answers.
func (c *connection) setError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// answers returns why the cluster does not answer; nil where it does, as far as is
// known. Nobody waits for a cluster of which it is known.
func (c *connection) answers() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("the cluster does not answer: %w", c.err)
	}
	return nil
}

// answers returns why a cluster does not answer, as far as is known.
func (r *remotes) answers(cluster string) error {
	if found := r.get(cluster); found != nil {
		return found.answers()
	}
	return errNotConnected
}

func newRemotes(of remoting) *remotes {
	return &remotes{
		remoting: of, byName: map[string]*connection{}, looked: map[string]bool{},
		uids: map[string]string{}, recorded: map[string]recordedUID{}, mistaken: map[string]string{},
	}
}

// connect sees to it that a cluster is connected in the way that access says. It
// asks the cluster nothing. ctx ends the connection.
func (r *remotes) connect(ctx context.Context, cluster string, access *kubeconfig.Access, allowed reach.Allowed) (*connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byName[cluster]; known != nil && known.access.Digest == access.Digest && !known.gate.isSpoiled() {
		return known, nil
	}
	made, err := r.dial(ctx, cluster, access, allowed)
	if err != nil {
		return nil, err
	}
	r.drop(cluster)
	r.byName[cluster] = made
	r.changes++
	return made, nil
}

// see notes that this process has looked at a cluster, and seen tells whether it
// has.
func (r *remotes) see(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked[cluster] = true
}

func (r *remotes) seen(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked[cluster]
}

// disconnect gives up the connection to a cluster.
func (r *remotes) disconnect(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
	delete(r.uids, cluster)
	delete(r.mistaken, cluster)
	delete(r.looked, cluster)
	delete(r.recorded, cluster)
	r.drop(cluster)
}

func (r *remotes) drop(cluster string) {
	known := r.byName[cluster]
	if known == nil {
		return
	}
	known.stop()
	utilnet.CloseIdleConnectionsFor(known.Web.Transport)
	r.changes += known.kinds.changed() + 1
	delete(r.byName, cluster)
}

func (r *remotes) dial(ctx context.Context, cluster string, access *kubeconfig.Access, allowed reach.Allowed) (*connection, error) {
	made, err := guardedConnection(access, allowed, r.wakerOf(cluster))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	config, web := made.Config, made.Web
	mapper, err := newGroupMapper(config, web)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	scheme := r.scheme
	direct, err := client.New(config, client.Options{HTTPClient: web, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdVersion)
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceVersion)
	everything := cache.ByObject{Label: labels.Everything()}
	options := cache.Options{
		HTTPClient: web, Scheme: scheme, Mapper: withoutAsking(mapper), NewInformer: reach.NewInformer,
		DefaultLabelSelector: CacheOptions().DefaultLabelSelector, DefaultTransform: strip,
		ByObject: map[client.Object]cache.ByObject{crd: everything, namespace: everything},
	}
	cached, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { _ = cached.Start(ctx) }()
	k := newKinds(reached{cluster: cluster, client: direct, past: direct, cache: cached, reader: cached}, r.watching)
	if err := r.begin(source.Kind(cached, client.Object(crd), r.handleDefinitions(k))); err != nil {
		stop()
		return nil, fmt.Errorf("cannot watch the definitions of RemoteCluster %s: %w", cluster, err)
	}
	following, err := dynamic.NewForConfigAndClient(config, web)
	if err != nil {
		stop()
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	made.kinds, made.dynamic, made.stop = k, following, stop
	made.accounts = accountsOf(config, web, client.Options{Scheme: scheme, Mapper: mapper}, direct)
	made.reviews = newRemoteReviews(made.accounts, made.answers)
	return made, nil
}

// withoutAsking returns a mapper that knows the kinds of which a cache is told when
// it is made: it would ask the cluster for them, which may not answer.
func withoutAsking(mapper meta.RESTMapper) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(crdVersion, meta.RESTScopeRoot)
	known.Add(namespaceVersion, meta.RESTScopeRoot)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, mapper}}
}

// get returns the connection to a cluster that may be written to, or nil. What is
// on another one than the right one is read by nobody, either: an object that is not
// there would be taken for one that has gone.
func (r *remotes) get(cluster string) *connection {
	if found := r.raw(cluster); found != nil && found.gate.isOpen() {
		return found
	}
	return nil
}

// raw returns the connection to a cluster, whichever that is, or nil.
func (r *remotes) raw(cluster string) *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[cluster]
}

// judged tells whether it has been found out whether a cluster may be written to.
func (r *remotes) judged(cluster string) bool {
	if !r.seen(cluster) {
		return false
	}
	found := r.raw(cluster)
	return found == nil || found.gate.isJudged()
}

// wakerOf returns what looks at a RemoteCluster again.
func (r *remotes) wakerOf(cluster string) func() {
	namespace, name, _ := strings.Cut(cluster, "/")
	return func() { r.wake(types.NamespacedName{Namespace: namespace, Name: name}) }
}

// dynamic returns a client that follows single objects of a cluster as an account of it
// may read them, or as the kubeconfig may without one; nil where it is not connected.
func (r *remotes) dynamic(cluster string, account types.NamespacedName) dynamic.Interface {
	found := r.get(cluster)
	switch {
	case found == nil:
		return nil
	case account.Name != "":
		return found.accounts.dynamic(account)
	}
	return found.dynamic
}

// changed returns how often it may have changed how kinds are served, anywhere.
func (r *remotes) changed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	for _, connection := range r.byName {
		changes += connection.kinds.changed()
	}
	return changes
}
