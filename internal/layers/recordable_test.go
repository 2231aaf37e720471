// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/directories"
	"github.com/strata-project/strata/internal/directories/directoriestest"
)

func manyConfigMaps(prefix string, n int) *directories.Directory {
	manifests := make([]directories.Manifest, n)
	for i := range manifests {
		manifests[i] = directoriestest.Any("v1", "ConfigMap", "default", fmt.Sprintf("%s-%05d", prefix, i))
	}
	return directoriestest.Of(newRevision, manifests...)
}

func TestInventoryThatCannotBeRecorded(t *testing.T) {
	small, large, larger := manyConfigMaps("a", 2000), manyConfigMaps("a", 10000), manyConfigMaps("a", 10001)
	for _, tc := range []struct {
		reason  string
		has     *directories.Directory
		lists   *directories.Directory
		refused bool
	}{
		{"2000 objects have room", nil, small, false},
		{"10000 objects do not", nil, large, true},
		{"what is recorded already goes on", large, large, false},
		{"it may become smaller", large, manyConfigMaps("a", 9000), false},
		{"but not larger", large, larger, true},
		{"others are a part of it until they have left", manyConfigMaps("b", 4000), manyConfigMaps("a", 4000), true},
	} {
		l := layer()
		if tc.has != nil {
			isDeployed(tc.has)(l)
		}
		d, report, _ := decide(t, observation(l, tc.lists))
		refused := d.Reason == v1alpha1.ReasonInventoryTooLarge
		if refused != tc.refused || refused && (!d.Stalled || len(d.Plan.Of(dependents.VerbWrite)) > 0 || !strings.Contains(d.Message, "layer base ")) {
			t.Errorf("%s: %s, %d writes: %s", tc.reason, d.Reason, len(d.Plan.Of(dependents.VerbWrite)), d.Message)
		}
		if size := len(mustJSON(t, report)); !tc.refused && tc.has == nil && size > 3<<19 {
			t.Errorf("%s: a status of %d bytes", tc.reason, size)
		}
	}
}

// What is counted is no less than what is written in the end.
func TestInventoryIsNotUnderrated(t *testing.T) {
	dir := manyConfigMaps("a", 3500)
	l := layer()
	isDeployed(dir)(l)
	content, err := Content(dir, l.Name, l.Spec.Version, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]dependents.Entry, len(content))
	for i := range content {
		entries[i] = recorded(&content[i])
	}
	if size := sizeOf(l, entries); size < len(mustJSON(t, l.Status.Resources)) {
		t.Errorf("%d bytes are counted, and %d are written", size, len(mustJSON(t, l.Status.Resources)))
	}
}

func mustJSON(t *testing.T, of any) []byte {
	t.Helper()
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
