// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

// Ring counts the members of etcd that vote. Learners are in neither number.
type Ring struct {
	// Members that vote.
	Members int `json:"members"`
	// Healthy ones of them.
	Healthy int `json:"healthy"`
}

// ringOf counts members.
func ringOf(members []Member) Ring {
	var ring Ring
	for _, member := range members {
		if member.Learner {
			continue
		}
		ring.Members++
		if member.Healthy {
			ring.Healthy++
		}
	}
	return ring
}

// HasQuorum tells whether more than half of the members are healthy.
func (r Ring) HasQuorum() bool { return r.Healthy > r.Members/2 }

// Allows tells whether the ring may become another one: it must be able to agree on the
// change, and to go on after it.
func (r Ring) Allows(next Ring) bool { return r.HasQuorum() && next.HasQuorum() }

// with returns the ring with one more member, which is healthy, since a learner gets its
// vote only when it has caught up.
func (r Ring) with() Ring { return Ring{r.Members + 1, r.Healthy + 1} }

// without returns the ring with one member less.
func (r Ring) without(healthy bool) Ring {
	next := Ring{r.Members - 1, r.Healthy}
	if healthy {
		next.Healthy--
	}
	return next
}
