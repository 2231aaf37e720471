// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import "github.com/strata-project/strata/internal/directories"

// directory returns what p is, with its manifests. They are shared with other
// callers as long as they are kept.
func (m *parsedCache) directory(p *parsed) (*directories.Directory, error) {
	directory, err := p.directory()
	if err != nil {
		return nil, err
	}
	manifests, ok := m.manifests(p)
	if !ok {
		// Several callers may do that at once, and the first one's are kept.
		if manifests, err = p.objects.expand(); err != nil {
			return nil, err
		}
		manifests = m.expand(p, manifests)
	}
	directory.Manifests = manifests
	return &directory, nil
}

// manifests returns those that need not be expanded.
func (m *parsedCache) manifests(p *parsed) ([]directories.Manifest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.expansion != nil {
		m.expanded.MoveToFront(p.expansion)
	}
	return p.manifests, p.expansion != nil || p.objects == nil
}

// expand keeps manifests, where there are none yet, and returns those to use.
func (m *parsedCache) expand(p *parsed, manifests []directories.Manifest) []directories.Manifest {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.expansion != nil {
		return p.manifests
	}
	if p.keys > 0 { // otherwise it is forgotten, and only its caller has it
		p.manifests = manifests
		m.keepExpanded(p)
	}
	return manifests
}

// keepExpanded keeps the manifests of p beside its objects, at the cost of those
// that were used longest ago. What is larger than all that may be kept is not.
func (m *parsedCache) keepExpanded(p *parsed) {
	if p.expanded > m.maxExpanded {
		p.manifests = nil
		return
	}
	p.expansion = m.expanded.PushFront(p)
	m.expandedSize += p.expanded
	for m.expandedSize > m.maxExpanded {
		m.dropExpanded(m.expanded.Back().Value.(*parsed))
	}
}

// dropExpanded leaves p with its objects alone.
func (m *parsedCache) dropExpanded(p *parsed) {
	if p.expansion == nil {
		return
	}
	m.expanded.Remove(p.expansion)
	m.expandedSize -= p.expanded
	p.expansion, p.manifests = nil, nil
}
