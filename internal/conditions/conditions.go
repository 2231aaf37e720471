// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions builds the conditions of a status.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/address"
)

// maxMessage bounds the message of a condition, in bytes; the API server allows 32768.
const maxMessage = 4096

// Set builds the conditions of a status anew, so that none of an earlier
// kind is left behind. One whose status is as it was keeps its transition time.
type Set struct {
	// List holds what was put so far.
	List []metav1.Condition

	last       []metav1.Condition
	generation int64
	now        metav1.Time
}

// New returns an empty set for an object of a generation, whose
// conditions were the last ones until now.
func New(last []metav1.Condition, generation int64, now time.Time) *Set {
	return &Set{last: last, generation: generation, now: metav1.NewTime(now)}
}

// Put adds a condition. Its message becomes one printable line of a bounded length,
// and has of addresses what may be shown.
func (c *Set) Put(kind string, status metav1.ConditionStatus, reason, message string) {
	since := c.now.Rfc3339Copy()
	if was := meta.FindStatusCondition(c.last, kind); was != nil && was.Status == status && !was.LastTransitionTime.IsZero() {
		since = was.LastTransitionTime
	}
	c.List = append(c.List, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: address.Line(message, maxMessage),
		ObservedGeneration: c.generation, LastTransitionTime: since,
	})
}

// Number returns what a condition says as a number, for metrics: 1, 0, or -1 for unknown and
// for none.
func Number(condition *metav1.Condition) float64 {
	switch {
	case condition == nil:
	case condition.Status == metav1.ConditionTrue:
		return 1
	case condition.Status == metav1.ConditionFalse:
		return 0
	}
	return -1
}
