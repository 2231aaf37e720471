// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"sync"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"

	"github.com/strata-project/strata/internal/ownwrites"
)

// madeFor is how long a layer counts as there that was just made and that the cache does
// not have yet. A cache lags behind by much less; one that has been deleted meanwhile is
// made again after that.
const madeFor = 5 * time.Second

// Platforms remembers Platforms as this process has written them last, and the layers that
// it has made for them a moment ago: what the cache does not show yet would be written, and
// made, once more. The zero value remembers none. It is safe for concurrent use.
type Platforms struct {
	mu   sync.Mutex
	last map[string]*v1alpha1.Platform
	made map[string]map[string]madeLayer
}

type madeLayer struct {
	layer *v1alpha1.AddonsLayer
	until time.Time
}

// Wrote records a Platform as it was after a write.
func (p *Platforms) Wrote(platform *v1alpha1.Platform) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]*v1alpha1.Platform{}
	}
	p.last[platform.Name] = platform.DeepCopy()
}

// Newest returns the newer of a Platform in the cache and the last one written. It is the
// cache's own or a copy of the memory's.
func (p *Platforms) Newest(cached *v1alpha1.Platform) *v1alpha1.Platform {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.last[cached.Name]
	if last == nil {
		return cached
	}
	if last.UID != cached.UID || !ownwrites.Older(cached.ResourceVersion, last.ResourceVersion) {
		delete(p.last, cached.Name)
		return cached
	}
	return last.DeepCopy()
}

// Made records a layer that was made for a Platform.
func (p *Platforms) Made(platform string, layer *v1alpha1.AddonsLayer, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = map[string]map[string]madeLayer{}
	}
	if p.made[platform] == nil {
		p.made[platform] = map[string]madeLayer{}
	}
	p.made[platform][layer.Name] = madeLayer{layer.DeepCopy(), now.Add(madeFor)}
}

// Unseen returns the layers that were made for a Platform a moment ago and are not among
// those that the cache has. They are the memory's own, and must not be changed. One that was
// deleted before any cache has shown it counts until then, and is made again at the next
// look after that.
func (p *Platforms) Unseen(platform string, seen []*v1alpha1.AddonsLayer, now time.Time) (unseen []*v1alpha1.AddonsLayer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made[platform]
	for _, layer := range seen {
		delete(made, layer.Name)
	}
	for name, one := range made {
		if !now.Before(one.until) || one.until.Sub(now) > madeFor { // the clock was set back
			delete(made, name)
			continue
		}
		unseen = append(unseen, one.layer)
	}
	if len(made) == 0 {
		delete(p.made, platform)
	}
	return unseen
}

// Forget drops a Platform that is gone, with its layers.
func (p *Platforms) Forget(platform string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, platform)
	delete(p.made, platform)
}
