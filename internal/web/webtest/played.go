// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webtest plays clusters to the page: snapshots that were recorded or made up.
package webtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/events"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/releases"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/answers/verdict"
	"github.com/strata-project/strata/internal/answers/why"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/platforms"
)

// Program is how the plug-in is called.
const Program = "kubectl strata"

// Played is a cluster of which everything is known. It is used as a live.Cluster is.
type Played struct {
	mu     sync.Mutex
	s      *snapshot.Snapshot
	below  *snapshot.Snapshot
	wanted labels.Selector
	broken *live.Break
	// previews have answers to requests.
	previews   map[live.Request]live.Preview
	denied     bool
	done       []acts.Intent
	repository live.Repository
	version    uint64
	changed    chan struct{}
}

// Play returns a cluster that shows a snapshot. below holds what lies below causes; it may
// be nil.
func Play(s, below *snapshot.Snapshot) *Played {
	return &Played{s: s, below: below, changed: make(chan struct{})}
}

// Answer has a request for a preview come to something.
func (p *Played) Answer(r live.Request, with live.Preview) {
	p.change(func() {
		if p.previews == nil {
			p.previews = map[live.Request]live.Preview{}
		}
		r.Again = ""
		p.previews[r] = with
	})
}

// Preview returns what Answer was given; what was not given is under way.
func (p *Played) Preview(r live.Request) live.Preview {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Again = ""
	if found, is := p.previews[r]; is {
		return found
	}
	return live.Preview{Says: "reads the cluster"}
}

// Deny has nothing be allowed any more.
func (p *Played) Deny() { p.change(func() { p.denied = true }) }

// May returns true until Deny was called.
func (p *Played) May(acts.Kind, string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.denied
}

// Intend says what an act comes to.
func (p *Played) Intend(s *snapshot.Snapshot, act acts.Act) (acts.Intent, error) {
	return acts.Intend(s, act, gather.DefaultNamespace, func(platform *v1alpha1.Platform) platforms.Observation {
		o, _ := p.Observe(s, platform, s.Now)
		return o
	})
}

// Do remembers what is to be done, and changes nothing.
func (p *Played) Do(_ context.Context, intent acts.Intent) error {
	p.change(func() { p.done = append(p.done, intent) })
	return nil
}

// Done returns what was to be done.
func (p *Played) Done() []acts.Intent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

// Offer has revisions of a repository be there to plan.
func (p *Played) Offer(r live.Repository) { p.change(func() { p.repository = r }) }

// Repository returns what Offer was given.
func (p *Played) Repository() live.Repository {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.repository
}

// Set shows another snapshot from now on.
func (p *Played) Set(s *snapshot.Snapshot) { p.change(func() { p.s = s }) }

// Break has what is shown be old from now on; nil has it be current again.
func (p *Played) Break(b *live.Break) { p.change(func() { p.broken = b }) }

func (p *Played) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	p.version++
	close(p.changed)
	p.changed = make(chan struct{})
}

// Ready returns at once.
func (p *Played) Ready(context.Context) error { return nil }

// Version returns how often something has changed.
func (p *Played) Version() (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version, p.changed
}

// Broken returns what Break was given.
func (p *Played) Broken() (live.Break, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		return live.Break{}, false
	}
	return *p.broken, true
}

// Want has layers with some labels be shown alone. It is called before anybody looks.
func (p *Played) Want(wanted labels.Selector) { p.wanted = wanted }

// Wanted returns what Want was given.
func (p *Played) Wanted() labels.Selector { return p.wanted }

// Snapshot returns what is played.
func (p *Played) Snapshot() *snapshot.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.s
}

// Verdict returns what the snapshot comes to.
func (p *Played) Verdict(s *snapshot.Snapshot) verdict.Verdict {
	v, _ := verdict.Of(s, p.wanted, gather.Lacking(s)).Follow(s, func(layer *v1alpha1.AddonsLayer) (why.Answer, error) {
		return p.Why(s, layer), nil
	})
	return v
}

// Observe returns what a Platform would be decided from. ConfigMaps lie below.
func (p *Played) Observe(s *snapshot.Snapshot, platform *v1alpha1.Platform, at time.Time) (platforms.Observation, []string) {
	return gather.Observation(gather.WorldOf(s, gather.DefaultNamespace), s.Version, platform, at, func(name types.NamespacedName) (map[string]string, error) {
		if p.below == nil {
			return nil, nil
		}
		if found := p.below.Objects[objects.ID{Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name}]; found != nil {
			return gather.DataOf(found), nil
		}
		return nil, nil
	}), gather.Missing(s)
}

// Events returns the events of objects that lie below.
func (p *Played) Events(subjects *events.Subjects) (found []events.Event, notes []string) {
	if p.below == nil {
		return nil, nil
	}
	subjects.Adopt(p.below)
	for _, object := range p.below.Of(snapshot.Events) {
		if event := events.Of(object); subjects.Has(event) {
			found = append(found, event)
		}
	}
	events.Sort(found)
	return found, nil
}

// Open returns the snapshot as it is.
func (p *Played) Open(s *snapshot.Snapshot, _ *v1alpha1.AddonsLayer) *snapshot.Snapshot { return s }

// Made returns the objects that lie below; nil where nothing does.
func (p *Played) Made(*snapshot.Snapshot, *v1alpha1.AddonsLayer) *releases.Live {
	if p.below == nil {
		return nil
	}
	return &releases.Live{Objects: p.below.Objects, Unread: map[string]string{}}
}

// Why returns why a layer is not deployed.
func (p *Played) Why(s *snapshot.Snapshot, layer *v1alpha1.AddonsLayer) why.Answer {
	answer := why.Of(s, layer)
	if place, deeper := answer.Deeper(s); deeper && p.below != nil {
		answer = answer.Deepen(s, p.below, place)
	}
	return answer.Conclude(s, Program)
}
