// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/memory"
	"github.com/strata-project/strata/internal/ownwrites"
	"github.com/strata-project/strata/internal/round"
)

const (
	// workers is how many layers a process looks at side by side.
	workers = 3
	// minRetry and maxRetry bound the back-off after errors.
	minRetry = 200 * time.Millisecond
	maxRetry = 2 * time.Minute
)

// process is one life of the layer controller: what it remembers is lost with it.
type process struct {
	*simulation
	caches      [kindsOfObjects]*cache
	writes      *ownwrites.Objects
	layerWrites *memory.Layers
	waits       *memory.Waits
	listings    *memory.Listings
	// artifacts holds the contents that were read, by digest.
	artifacts map[string]*directories.Directory
	// kubernetes is the version of the cluster as it was last asked for.
	kubernetes string
	// connections to other clusters, and what asks whether they answer; looked
	// holds the clusters that this process has looked at.
	connections map[string]*connection
	probes      map[string]*probe
	looked      map[string]bool
	// recorded and mistaken hold what is known of which clusters they are, as the
	// controller's do.
	recorded, mistaken map[string]string
	// queue holds layers that are due, later those that will be, and failures
	// how often a layer has failed in a row.
	queue    []string
	later    map[string]moment
	failures map[string]int
	// looks are under way.
	looks []*look
}

// look is one reconcile of a layer or a RemoteCluster, which goes on from one write to the next.
type look struct {
	*coroutine
	layer string
	after time.Duration
	err   error
}

// crashed ends a look whose process has died.
type crashed struct{}

// begin starts a life. Its caches are filled, and every layer is looked at.
func (s *simulation) begin() {
	born := s.now
	p := &process{
		simulation: s, writes: ownwrites.NewObjects(), layerWrites: memory.NewLayers(), listings: memory.NewListings(),
		connections: map[string]*connection{}, probes: map[string]*probe{}, looked: map[string]bool{}, recorded: map[string]string{}, mistaken: map[string]string{},
		artifacts: map[string]*directories.Directory{}, later: map[string]moment{}, failures: map[string]int{}, kubernetes: s.cluster.kubernetes,
	}
	p.waits = memory.NewWaits(func() time.Duration { return time.Duration(s.now - born) })
	for kind := range p.caches {
		p.caches[kind] = &cache{kind: kind, of: s.cluster}
		p.caches[kind].sync()
	}
	p.enqueue(sortedKeys(p.caches[kindRemote].objects)...)
	p.enqueue(p.layerNames()...)
	s.process = p
}

// crash ends the life, wherever its looks are.
func (s *simulation) crash() {
	for _, l := range s.process.looks {
		l.stop()
	}
	s.note("crash with %d looks under way", len(s.process.looks))
	s.people.crashes++
	s.dying, s.dieIn = false, 0
	s.begin()
}

func (p *process) enqueue(names ...string) {
	for _, name := range names {
		if !slices.Contains(p.queue, name) {
			p.queue = append(p.queue, name)
		}
	}
}

func (p *process) enqueueLater(name string, after time.Duration) {
	due := p.now + moment(after)
	if last, known := p.later[name]; !known || due < last {
		p.later[name] = due
	}
}

// tick moves what has become due into the queue.
func (p *process) tick() {
	for _, name := range sortedKeys(p.later) {
		if p.later[name] <= p.now {
			delete(p.later, name)
			p.enqueue(name)
		}
	}
}

// startable returns the layers in the queue that nobody is looking at.
func (p *process) startable() []string {
	if len(p.looks) >= workers {
		return nil
	}
	var found []string
	for _, name := range p.queue {
		if !slices.ContainsFunc(p.looks, func(l *look) bool { return l.layer == name }) {
			found = append(found, name)
		}
	}
	return found
}

// start begins a look at a layer.
func (p *process) start(name string) {
	p.queue = slices.DeleteFunc(p.queue, func(queued string) bool { return queued == name })
	l := &look{layer: name}
	l.coroutine = newCoroutine(func(yield func() bool) {
		defer func() {
			if died := recover(); died != nil {
				if _, is := died.(crashed); !is {
					panic(died)
				}
			}
		}()
		pause := func() {
			if p.dieIn > 0 {
				p.dieIn--
				p.dying = p.dieIn == 0
			}
			if !yield() {
				panic(crashed{})
			}
		}
		if p.remotes[name] != nil {
			l.after, l.err = round.Outcome(p.keep(name, pause))
		} else {
			l.after, l.err = round.Outcome(p.reconcile(name, pause))
		}
	})
	p.looks = append(p.looks, l)
	p.step(l)
}

// step goes on with a look, up to its next write.
func (p *process) step(l *look) {
	p.counted++
	if l.next() {
		return
	}
	p.looks = slices.DeleteFunc(p.looks, func(other *look) bool { return other == l })
	switch {
	case l.err != nil:
		delay := min(minRetry<<min(p.failures[l.layer], 20), maxRetry)
		p.failures[l.layer]++
		p.enqueueLater(l.layer, delay)
		p.note("%s: look fails: %v", l.layer, l.err)
	default:
		delete(p.failures, l.layer)
		if l.after > 0 {
			p.enqueueLater(l.layer, l.after)
		}
	}
}

// reconcile is one look at a layer, as the controller's.
func (p *process) reconcile(name string, pause func()) (time.Duration, error) {
	cached := p.cachedLayer(name)
	if cached == nil {
		p.listings.Forget(name)
		p.layerWrites.Forget(name)
		p.waits.Forget(name)
		p.wakeWaiting()
		return 0, nil
	}
	layer := p.layerWrites.Newest(cached).DeepCopy()
	h := &hands{process: p, pause: pause}
	if !slices.Contains(layer.Finalizers, v1alpha1.Finalizer) {
		if layer.DeletionTimestamp != nil {
			return 0, nil
		}
		var err error
		if layer, err = h.writeLayer(layer, "is new", "gets the finalizer", func(l *v1alpha1.AddonsLayer) {
			l.Finalizers = append(l.Finalizers, v1alpha1.Finalizer)
		}); err != nil {
			return 0, err
		}
	}
	h.stored = layer
	observation := h.observe(p.layerWrites.WithWithheld(layers.Trusted(layer, decisions.Seal{Key: settings.DigestKey})))
	if r := observation.Remote; r != nil && r.Object != nil && !r.Connected && !p.looked[r.Name.String()] {
		return time.Second, nil
	}
	return round.Run(context.Background(), h, observation)
}

func (p *process) wakeWaiting() {
	waiting := p.listings.WhoWaits()
	slices.Sort(waiting)
	p.enqueue(waiting...)
}
