// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
)

// Requests are requests to the API server. Those about leader leases and the
// question for the server's version are counted apart, because they come with
// the time that passes and not with the work that is done.
type Requests struct {
	// Counts are sorted by verb and then resource.
	Counts []RequestCount `json:"counts,omitempty"`
	// Leases are requests about leases of coordination.k8s.io, and the events
	// that tell of them.
	Leases int `json:"leases"`
	// Version are requests for /version.
	Version int `json:"version"`
}

// RequestCount is how often a verb was asked of a resource.
type RequestCount struct {
	// Verb is the API's: get, list, watch, create, update, patch, delete or
	// deletecollection. A watch counts once, however long it lasts.
	Verb string `json:"verb"`
	// Resource is its plural name with group and subresource, such as
	// helmreleases.helm.toolkit.fluxcd.io/status, or the path of a request
	// that is about no resource.
	Resource string `json:"resource"`
	Count    int    `json:"count"`
}

// NewRequests returns the counts in their order.
func NewRequests(counts []RequestCount, leases, version int) *Requests {
	counts = slices.Clone(counts)
	slices.SortFunc(counts, func(a, b RequestCount) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
	return &Requests{Counts: counts, Leases: leases, Version: version}
}

// Verb returns the number of requests with one of the verbs.
func (r *Requests) Verb(verbs ...string) int {
	sum := 0
	for _, c := range r.Counts {
		if slices.Contains(verbs, c.Verb) {
			sum += c.Count
		}
	}
	return sum
}

// Reads returns the number of requests that only read, without watches. Those
// that ask who somebody is or what he may do are created, but change nothing.
func (r *Requests) Reads() int { return r.Verb("get", "list", "head", "options") + r.reviews() }

// reviews returns the number of questions to the API server that are asked by
// creating an object that is never stored.
func (r *Requests) reviews() int {
	sum := 0
	for _, c := range r.Counts {
		_, group, _ := strings.Cut(c.Resource, ".")
		if c.Verb == "create" && (group == "authorization.k8s.io" || group == "authentication.k8s.io") {
			sum += c.Count
		}
	}
	return sum
}

// Watches returns the number of watches that were opened.
func (r *Requests) Watches() int { return r.Verb("watch") }

// Writes returns the number of requests that change something.
func (r *Requests) Writes() int {
	return r.Verb("create", "update", "patch", "delete", "deletecollection", "post", "put") - r.reviews()
}

// ByVerb returns the number of requests of each verb, sorted by verb.
func (r *Requests) ByVerb() []RequestCount {
	var verbs []RequestCount
	for _, c := range r.Counts {
		if n := len(verbs); n > 0 && verbs[n-1].Verb == c.Verb {
			verbs[n-1].Count += c.Count
			continue
		}
		verbs = append(verbs, RequestCount{Verb: c.Verb, Count: c.Count})
	}
	return verbs
}
