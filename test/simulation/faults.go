// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// crash has the process die at one of its next writes: before it, or when it has
// taken effect and nobody has heard of it.
func crash(s *simulation, _ string) bool {
	s.dieIn = 1 + s.random.IntN(12)
	return true
}

func loseEvents(s *simulation, _ string) bool {
	s.people.lose = 1 + s.random.IntN(4)
	return true
}

func repeatEvents(s *simulation, _ string) bool {
	s.people.repeat = 1 + s.random.IntN(4)
	return true
}

// freezeCache has one cache see nothing for a while.
func freezeCache(s *simulation, _ string) bool {
	c := pick(s, s.process.allCaches())
	c.frozenUntil = s.now + moment(s.between(100*time.Millisecond, 6*time.Second))
	return true
}

// relist has a watch break: what was between is never seen.
func relist(s *simulation, _ string) bool {
	c := pick(s, s.process.allCaches())
	for _, next := range c.relist() {
		s.process.wake(c, next)
	}
	return true
}

func outage(s *simulation, _ string) bool {
	s.outage = s.now + moment(s.between(100*time.Millisecond, 3*time.Second))
	return true
}

// clusterVersions are what clusters say of themselves.
var clusterVersions = []string{"v1.30.2", "v1.30.5-gke.100", "v1.31.1", "v1.29.0", "v1.31.0-eks-1234"}

// upgradeCluster changes the version of the cluster, which is asked for now and
// then.
func upgradeCluster(s *simulation, _ string) bool {
	upgraded := pick(s, []*cluster{s.cluster, s.remotes[remoteNames[0]].cluster, s.remotes[remoteNames[1]].cluster})
	upgraded.kubernetes = pick(s, clusterVersions)
	s.after(s.between(0, 10*time.Second), s.askVersion)
	return true
}

func (s *simulation) askVersion() {
	if p := s.process; p.kubernetes != s.cluster.kubernetes {
		p.kubernetes = s.cluster.kubernetes
		p.enqueue(p.layerNames()...)
	}
}

// breakSource has source-controller fetch nothing; sometimes the artifact goes.
func breakSource(s *simulation, _ string) bool {
	name := pick(s, sortedKeys(s.repositories))
	s.unready[name] = true
	gone := s.chance(50)
	s.changeSource(name, func(is *source) {
		is.seen.Ready, is.seen.Message = false, "cannot fetch"
		if gone {
			is.seen.Revision, is.seen.Digest, is.seen.URL = "", "", ""
		}
	})
	return true
}

func loseArtifact(s *simulation, _ string) bool {
	name := pick(s, sortedKeys(s.repositories))
	s.changeSource(name, func(is *source) { is.away = true })
	return true
}

// refetchSource changes the source's own specification.
func refetchSource(s *simulation, _ string) bool {
	name := pick(s, sortedKeys(s.repositories))
	s.changeSource(name, func(is *source) { is.seen.Generation++ })
	s.push(name)
	return true
}

func healSource(s *simulation, _ string) bool {
	for _, name := range sortedKeys(s.repositories) {
		delete(s.unready, name)
		s.changeSource(name, func(is *source) { is.away = false })
		s.push(name)
	}
	return true
}
