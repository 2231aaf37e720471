// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/strata-project/strata/internal/claimkeeper"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/ownwrites"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/signals"
	"github.com/strata-project/strata/internal/signed"
)

// Process is what all reconcilers of one controller share: how they read and write, by
// which rules, whom they tell, and what they remember. It is made and set up once,
// before any of them.
type Process struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Cache that Client reads from.
	Cache cache.Cache
	// Cluster knows the API server's version.
	Cluster *ClusterVersion
	// Events receives what happens to layers.
	Events events.EventRecorder
	// Notifier receives the same, for people; nil means that nobody listens.
	Notifier Notifier
	// Instance names this process in what Notifier receives.
	Instance string
	// Meters count what is done; nil means that nobody does.
	Meters *signals.Meters
	// Statuses judges and signs those of Strata's own objects; Client, Reader and Cache are
	// those of a manager that it is over.
	Statuses *signed.Keeper
	// Settings of the rules.
	Settings layers.Settings
	// Selector narrows the layers, RemoteClusters, HelmApplications and
	// ApplicationBundles that this controller looks after; nil means all. It sees
	// the others, and takes nothing from them.
	Selector labels.Selector
	// Concurrent is how many layers are looked at side by side, and RemoteClusters.
	Concurrent int
	// PlanValid is how long after it was made a plan may be acted on. With
	// leader election it is the time between giving up the lead and losing it,
	// so that a process that was stopped meanwhile writes nothing old; 0 is no
	// limit.
	PlanValid time.Duration
	// Fence says whether the process may still act; nil means that it may.
	Fence *Fence
	// Now returns the time; nil means time.Now.
	Now func() time.Time

	sight
	remembered
	wakeups
	// watch begins a watch that wakes layers.
	watch func(source.Source) error
	// unsigned is true as long as decisions and statuses without a MAC are taken.
	unsigned atomic.Bool
	// started is closed when the controller of layers starts; what that is to watch
	// from then on it does not wait for.
	started chan struct{}
}

// sight is what a process reads of this cluster and of others.
type sight struct {
	kinds   *informers.Kinds
	sources *informers.Kinds
	remotes *informers.Remotes
	follows *informers.Follows
	// metas follows the metadata of what may be given to other clusters, and reviews
	// knows what accounts may.
	metas    *informers.Follows
	accounts *informers.Accounts
	reviews  *informers.Reviews
}

// remembered is what a process knows of layers from one look to the next.
type remembered struct {
	listings    *memory.Listings
	knownBuilds memory.Builds
	// recent are the writes of objects, and recentLayers those of layers.
	recent       *ownwrites.Objects
	recentLayers *memory.Layers
	waits        *memory.Waits
	begun        *begun
	untold       untold
	lastLooks    *lastLooks
	lostVolumes  lostVolumes
	// cacheEvents counts what the caches of all clusters tell of.
	cacheEvents cacheEvents
}

// Setup makes what the reconcilers share, with the indexes that they read by.
func (p *Process) Setup(ctx context.Context, mgr ctrl.Manager) error {
	p.remembered = remembered{
		listings:     memory.NewListings(),
		recent:       ownwrites.NewObjects(),
		recentLayers: memory.NewLayers(),
		waits:        memory.NewWaits(steady()),
		lastLooks:    newLastLooks(),
		begun:        &begun{},
	}
	p.wakeups = wakeups{
		layerWakeups: make(chan event.GenericEvent, maxWakeups), clusterWakeups: make(chan event.GenericEvent, maxWakeups),
		platformWakeups: make(chan event.GenericEvent, maxWakeups),
	}
	p.started = make(chan struct{})
	if err := setupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := p.setupSeal(ctx); err != nil {
		return err
	}
	if err := mgr.Add(leading(p.signAll)); err != nil {
		return fmt.Errorf("cannot add what signs decisions: %w", err)
	}
	return p.setupSight(mgr)
}

// setupSight begins to read this cluster, and makes ready to read others.
func (p *Process) setupSight(mgr ctrl.Manager) error {
	wiring := p.wiring()
	p.kinds = informers.NewKinds(p.home(), wiring)
	p.remotes = informers.NewRemotes(informers.Options{Scheme: p.Client.Scheme(), Wiring: wiring, Wake: p.wakeCluster})
	p.accounts = informers.NewAccounts(mgr, p.Reader)
	p.reviews = informers.NewReviews(p.Client, p.accounts)
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	p.follows = informers.NewFollows(func(cluster string, account types.NamespacedName) dynamic.Interface {
		switch {
		case cluster != "":
			return p.remotes.Dynamic(cluster, account)
		case account.Name != "":
			return p.accounts.Dynamic(account)
		}
		return objects
	}, p.wakeReaders)
	p.follows.Connections = p.remotes.Raw
	metas, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	p.metas = informers.NewMetadataFollows(metas, p.wakeReaders)
	for _, run := range []manager.RunnableFunc{p.follows.UntilDone, p.metas.UntilDone} {
		if err := mgr.Add(run); err != nil {
			return fmt.Errorf("cannot set the process up: %w", err)
		}
	}
	sources, err := newSourceCache(mgr, p.sourcesUnserved)
	if err != nil {
		return err
	}
	p.sources = newSources(p, sources)
	return nil
}

// Claims returns what keeps CapabilityClaims, by the rules and the rights of the process. It is
// for after Setup. plugins runs the programs of providers; nil where none is run.
func (p *Process) Claims(plugins *providers.Host) *claimkeeper.Keeper {
	return claimkeeper.New(claimkeeper.Options{
		Client: p.Client, Reader: p.Reader, Settings: p.Settings, Accounts: p.accounts, Remotes: p.remotes, Plugins: plugins,
		Selector: p.Selector, Concurrent: p.Concurrent, PlanValid: p.PlanValid, Holds: p.Fence.Holds, Events: p.Events, Tell: p.tellReady, Now: p.now,
	})
}

// isOwn tells whether an object is this controller's to look after.
func (p *Process) isOwn(obj client.Object) bool {
	return p.Selector == nil || p.Selector.Matches(labels.Set(obj.GetLabels()))
}

func (p *Process) now() time.Time {
	if p.Now != nil {
		return p.Now()
	}
	return time.Now()
}

// steady returns a clock that nobody sets.
func steady() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
