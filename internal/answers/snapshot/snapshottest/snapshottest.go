// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshottest makes snapshots for tests. Nothing but tests may import it.
package snapshottest

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/internal/answers/snapshot"
)

// Noon is when snapshots of tests are read.
var Noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// Objects reads objects from YAML.
func Objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, each := range strings.Split(text, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(each), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object != nil {
			found = append(found, object)
		}
	}
	return found
}

// New returns a snapshot of objects in YAML, read at Noon.
func New(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.New(Noon, Objects(t, text)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
