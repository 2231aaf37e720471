// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ready returns the condition Ready of an object.
func Ready(object *unstructured.Unstructured) (status, reason, message string) {
	found := Condition(object, "Ready")
	return found["status"], found["reason"], found["message"]
}

// Condition returns the texts of a condition; nothing where there is none.
func Condition(object *unstructured.Unstructured, kind string) map[string]string {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, item := range conditions {
		fields, _ := item.(map[string]any)
		if fields["type"] != kind {
			continue
		}
		texts := map[string]string{}
		for key, value := range fields {
			if text, is := value.(string); is {
				texts[key] = text
			}
		}
		return texts
	}
	return nil
}

// Named returns namespace/name, or the name alone.
func Named(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}

// Stamp writes a time; nothing for none.
func Stamp(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}
	return moment.UTC().Format(time.RFC3339)
}

// Moment reads what Stamp has written, or an object says; zero where it is no time.
func Moment(text string) time.Time {
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// FirstTime returns the first time of several texts that is one.
func FirstTime(texts ...string) metav1.Time {
	for _, text := range texts {
		if at := Moment(text); !at.IsZero() {
			return metav1.NewTime(at)
		}
	}
	return metav1.Time{}
}

// Age returns how long ago a time was.
func Age(text string, now time.Time) time.Duration {
	at := Moment(text)
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at))
}

// Number reads a number of JSON or YAML.
func Number(value any) int64 {
	switch is := value.(type) {
	case int64:
		return is
	case float64:
		return int64(is)
	}
	return 0
}
