// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heldacts decides which annotations of people Strata owns, too, so that they stay
// where Flux applies the object they are on. kustomize-controller takes over what managers
// named kubectl* have, and drops of it what git does not have. It is pure.
package heldacts

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Manager is the field manager by which Strata owns the acts of others. It has nothing else.
const Manager = "strata-acts"

// PeopleManager is the field manager by which the plug-in and the page decide something for
// people: a hold, an approval, a suspension. Flux leaves alone what it has, whatever git says.
const PeopleManager = "strata-cli"

// settles is how long another manager must have an act before Strata leaves it to that one:
// while kustomize-controller takes over what kubectl has, it has for a moment what it is about
// to drop.
const settles = time.Minute

// isAct has all annotations that are acts.
var isAct = func() map[string]bool {
	found := map[string]bool{}
	for _, act := range v1alpha1.Acts() {
		found[act.Annotation] = true
	}
	return found
}()

// Trimmed returns of the managers of an object no more than who has which of its acts; nil
// where it has none. Trimmed twice they are the same.
func Trimmed(annotations map[string]string, fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	if len(fields) == 0 || !hasActs(annotations) {
		return nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range fields {
		if acts := actsOf(entry); len(acts) > 0 {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, FieldsType: "FieldsV1", FieldsV1: fieldsOf(acts)})
		}
	}
	return kept
}

func hasActs(annotations map[string]string) bool {
	for name := range annotations {
		if isAct[name] {
			return true
		}
	}
	return false
}

// actsOf returns the acts that an entry owns, sorted.
func actsOf(entry metav1.ManagedFieldsEntry) []string {
	if entry.FieldsV1 == nil || entry.Subresource != "" || !strings.Contains(entry.FieldsV1.GetRawString(), "f:annotations") {
		return nil
	}
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	var found []string
	for _, field := range slices.Sorted(maps.Keys(fields.Metadata.Annotations)) {
		if name := strings.TrimPrefix(field, "f:"); isAct[name] {
			found = append(found, name)
		}
	}
	return found
}

func fieldsOf(acts []string) *metav1.FieldsV1 {
	owned := map[string]struct{}{}
	for _, act := range acts {
		owned["f:"+act] = struct{}{}
	}
	raw, _ := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:annotations": owned}}) // of texts alone
	return metav1.NewFieldsV1(string(raw))
}

// isTakenOver tells whether kustomize-controller takes over what a manager has.
func isTakenOver(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || strings.HasPrefix(manager, "before-first-apply")
}

// Since remembers, of one object, since when another manager has an act that Strata has, too.
type Since map[string]time.Time

// Decision says what is to be owned.
type Decision struct {
	// Own has the acts that Strata is to own, with their values as they are.
	Own map[string]string
	// Write is true where it owns others now.
	Write bool
	// Since is what is to be remembered, and Until when to decide again; zero for never.
	Since Since
	Until time.Time
}

// Decide says which acts of an object Strata owns, too: those that only managers have that
// Flux takes over, and those of before that nobody else has come to own for good. What is not
// there any more is not brought back.
func Decide(object metav1.Object, since Since, now time.Time) Decision {
	annotations := object.GetAnnotations()
	ours, theirs, others := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		owners := others
		switch {
		case entry.Manager == Manager:
			owners = ours
		case isTakenOver(entry.Manager):
			owners = theirs
		}
		for _, act := range actsOf(entry) {
			owners[act] = true
		}
	}
	decision := Decision{Own: map[string]string{}, Since: Since{}}
	for act, value := range annotations {
		switch {
		case !isAct[act] || !ours[act] && (!theirs[act] || others[act]):
			continue
		case ours[act] && others[act]:
			began, known := since[act]
			if !known {
				began = now
			}
			if end := began.Add(settles); end.After(now) {
				decision.Since[act] = began
				if decision.Until.IsZero() || end.Before(decision.Until) {
					decision.Until = end
				}
			} else {
				decision.Write = true // it is left to who has it
				continue
			}
		case !ours[act]:
			decision.Write = true
		}
		decision.Own[act] = value
	}
	return decision
}
