// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/trim"
)

// ErrNotConnected says that this process has no connection to a cluster.
var ErrNotConnected = errors.New("the cluster is not connected")

// Remotes holds the connections to other clusters, one for each RemoteCluster. It
// is safe for concurrent use.
type Remotes struct {
	options Options
	mu      sync.Mutex
	byName  map[string]*Connection
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
	// connected are told of new connections.
	connected []func(cluster string)
}

// Options are what connections need of whoever makes them.
type Options struct {
	// Scheme of the clients.
	Scheme *runtime.Scheme
	// Wiring of the kinds of each cluster.
	Wiring Wiring
	// Wake looks at a RemoteCluster again.
	Wake func(types.NamespacedName)
}

// Answers returns why a cluster does not answer, as far as is known.
func (r *Remotes) Answers(cluster string) error {
	if found := r.Get(cluster); found != nil {
		return found.Answers()
	}
	return ErrNotConnected
}

// NewRemotes returns no connections yet.
func NewRemotes(options Options) *Remotes {
	return &Remotes{
		options: options, byName: map[string]*Connection{}, looked: map[string]bool{},
		uids: map[string]string{}, recorded: map[string]recordedUID{}, mistaken: map[string]string{},
	}
}

// Connect sees to it that a cluster is connected in the way that access says. It
// asks the cluster nothing. ctx ends the connection.
func (r *Remotes) Connect(ctx context.Context, cluster string, access *kubeconfig.Access, allowed reach.Allowed) (*Connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.byName[cluster]; known != nil && known.Access.Digest == access.Digest && !known.Gate.isSpoiled() {
		return known, nil
	}
	made, err := r.dial(ctx, cluster, access, allowed)
	if err != nil {
		return nil, err
	}
	r.drop(cluster)
	r.byName[cluster] = made
	r.changes++
	for _, tell := range r.connected {
		tell(cluster)
	}
	return made, nil
}

// OnConnect has somebody told of each connection that is made from now on, by the name of its
// cluster. What is told must not wait, and must not ask for connections.
func (r *Remotes) OnConnect(tell func(cluster string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = append(r.connected, tell)
}

// Adopt has a cluster count as connected, and as the right one, that is read in a way
// of the caller's own: tests have no cluster to connect to.
func (r *Remotes) Adopt(cluster string, kinds *Kinds) *Connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	made := &Connection{Kinds: kinds, Gate: &Gate{open: true, judged: true}}
	r.byName[cluster] = made
	return made
}

// See notes that this process has looked at a cluster.
func (r *Remotes) See(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked[cluster] = true
}

// Seen tells whether this process has looked at a cluster.
func (r *Remotes) Seen(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looked[cluster]
}

// Disconnect gives up the connection to a cluster.
func (r *Remotes) Disconnect(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
	delete(r.uids, cluster)
	delete(r.mistaken, cluster)
	delete(r.looked, cluster)
	delete(r.recorded, cluster)
	r.drop(cluster)
}

func (r *Remotes) drop(cluster string) {
	known := r.byName[cluster]
	if known == nil {
		return
	}
	known.stop()
	utilnet.CloseIdleConnectionsFor(known.Web.Transport)
	r.changes += known.Kinds.Changed() + 1
	delete(r.byName, cluster)
}

func (r *Remotes) dial(ctx context.Context, cluster string, access *kubeconfig.Access, allowed reach.Allowed) (*Connection, error) {
	made, err := guardedConnection(access, allowed, r.wakerOf(cluster))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	config, web := made.Config, made.Web
	mapper, err := NewGroupMapper(config, web)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	scheme := r.options.Scheme
	direct, err := client.New(config, client.Options{HTTPClient: web, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	made.watching = func(view View) (cache.Cache, error) {
		cached, err := cache.New(config, cache.Options{
			HTTPClient: web, Scheme: scheme, Mapper: withoutAsking(mapper), NewInformer: made.newInformer,
			DefaultLabelSelector: view.Selector, DefaultTransform: trim.Object, ByObject: view.whole(),
		})
		if err != nil {
			return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
		}
		go func() { _ = cached.Start(ctx) }()
		return cached, nil
	}
	cached, err := made.watching(View{Selector: CacheOptions().DefaultLabelSelector, Whole: []schema.GroupVersionKind{namespaceVersion}})
	if err != nil {
		stop()
		return nil, err
	}
	k := NewKinds(Cluster{Name: cluster, Client: direct, Past: direct, Cache: cached, Reader: cached}, r.options.Wiring)
	if err := watchDefinitions(cached, r.options.Wiring, k); err != nil {
		stop()
		return nil, err
	}
	following, err := dynamic.NewForConfigAndClient(config, web)
	if err != nil {
		stop()
		return nil, fmt.Errorf("cannot connect to RemoteCluster %s: %w", cluster, err)
	}
	made.Kinds, made.dynamic, made.stop = k, following, stop
	made.Accounts = accountsOf(config, web, client.Options{Scheme: scheme, Mapper: mapper}, direct)
	made.Reviews = newRemoteReviews(made.Accounts, made.Answers)
	return made, nil
}

// newInformer returns an informer that lists in pages, and that waits while the cluster does
// not answer.
func (c *Connection) newInformer(lw toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	return reach.NewInformer(c.patiently(lw), of, resync, by)
}

// withoutAsking returns a mapper that knows the kinds of which a cache is told when
// it is made: it would ask the cluster for them, which may not answer.
func withoutAsking(mapper meta.RESTMapper) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(definitionVersion, meta.RESTScopeRoot)
	known.Add(namespaceVersion, meta.RESTScopeRoot)
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, mapper}}
}

// Get returns the connection to a cluster that may be written to, or nil. What is
// on another one than the right one is read by nobody, either: an object that is not
// there would be taken for one that has gone.
func (r *Remotes) Get(cluster string) *Connection {
	if found := r.Raw(cluster); found != nil && found.Gate.isOpen() {
		return found
	}
	return nil
}

// Connected returns the names of the clusters that there is a connection to, sorted.
func (r *Remotes) Connected() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.byName))
}

// Raw returns the connection to a cluster, whichever that is, or nil.
func (r *Remotes) Raw(cluster string) *Connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[cluster]
}

// Judged tells whether it has been found out whether a cluster may be written to.
func (r *Remotes) Judged(cluster string) bool {
	if !r.Seen(cluster) {
		return false
	}
	found := r.Raw(cluster)
	return found == nil || found.Gate.isJudged()
}

// wakerOf returns what looks at a RemoteCluster again.
func (r *Remotes) wakerOf(cluster string) func() {
	namespace, name, _ := strings.Cut(cluster, "/")
	return func() { r.options.Wake(types.NamespacedName{Namespace: namespace, Name: name}) }
}

// Dynamic returns a client that follows single objects of a cluster as an account of it
// may read them, or as the kubeconfig may without one; nil where it is not connected.
func (r *Remotes) Dynamic(cluster string, account types.NamespacedName) dynamic.Interface {
	found := r.Get(cluster)
	switch {
	case found == nil:
		return nil
	case account.Name != "":
		return found.Accounts.Dynamic(account)
	}
	return found.dynamic
}

// Changed returns how often it may have changed how kinds are served, anywhere.
func (r *Remotes) Changed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	for _, connection := range r.byName {
		changes += connection.Kinds.Changed()
	}
	return changes
}
