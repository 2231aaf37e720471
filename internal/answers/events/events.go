// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events says what happened to a layer and to what it has made. It may import
// snapshot and releases, and reads nothing but objects that it is given.
package events

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/internal/answers/snapshot"
)

// Event is something that happened to an object.
type Event struct {
	// First and Last are when it was seen, as RFC 3339.
	First string `json:"first"`
	Last  string `json:"last"`
	Type  string `json:"type"`
	// Kind, Namespace and Name of the object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Count     int64  `json:"count"`
	Message   string `json:"message"`
}

// Object names the object as messages do.
func (e Event) Object() string { return e.Kind + " " + snapshot.Named(e.Namespace, e.Name) }

// Of reads an event of v1, which is also how those of events.k8s.io are stored.
func Of(object *unstructured.Unstructured) Event {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, fields...)
		return value
	}
	created := snapshot.Stamp(object.GetCreationTimestamp().Time)
	event := Event{
		Type: text("type"), Kind: text("involvedObject", "kind"), Namespace: text("involvedObject", "namespace"), Name: text("involvedObject", "name"),
		Reason: text("reason"), Message: text("message"),
		First: snapshot.Stamp(snapshot.FirstTime(text("firstTimestamp"), text("eventTime"), created).Time),
		Last:  snapshot.Stamp(snapshot.FirstTime(text("series", "lastObservedTime"), text("lastTimestamp"), text("eventTime"), created).Time),
	}
	series, _, _ := unstructured.NestedFieldNoCopy(object.Object, "series", "count")
	count, _, _ := unstructured.NestedFieldNoCopy(object.Object, "count")
	event.Count = max(1, cmp.Or(snapshot.Number(series), snapshot.Number(count)))
	return event
}

// Sort sorts events, the newest last. Those of one second keep an order, too.
func Sort(events []Event) {
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Or(strings.Compare(a.Last, b.Last), strings.Compare(a.First, b.First), strings.Compare(a.Object(), b.Object()),
			strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
}

// Telling returns the warning of an object that says most: the newest that does not
// merely repeat the reason that the Pod has already.
func Telling(below *snapshot.Snapshot, of *unstructured.Unstructured) (Event, bool) {
	var found []Event
	for _, object := range below.Of(snapshot.Events) {
		event := Of(object)
		uid, _, _ := unstructured.NestedString(object.Object, "involvedObject", "uid")
		same := event.Kind == of.GetKind() && event.Namespace == of.GetNamespace() && event.Name == of.GetName()
		if same && event.Type == "Warning" && (uid == "" || uid == string(of.GetUID())) {
			found = append(found, event)
		}
	}
	if len(found) == 0 {
		return Event{}, false
	}
	Sort(found)
	for _, event := range slices.Backward(found) {
		if !strings.HasPrefix(event.Message, "Error: ") && event.Reason != "BackOff" {
			return event, true
		}
	}
	return found[len(found)-1], true
}
