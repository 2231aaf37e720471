// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/ownwrites"
)

// A write may change nothing that a layer reads, such as who owns a field; the
// layer that waits for the cache to show it must be woken all the same.
func TestOwnWritesPassUntilTheyAreSeen(t *testing.T) {
	gk := schema.GroupKind{Kind: "ServiceAccount"}
	id := objects.ID{Kind: gk.Kind, Namespace: "default", Name: "deployer"}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := &AddonsLayerReconciler{Process: &Process{remembered: remembered{recent: ownwrites.NewObjects()}}}
	passes := func(namespace, version string) bool {
		was := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id.Name, ResourceVersion: "1"}}
		is := was.DeepCopy()
		is.ResourceVersion = version
		return r.ownWrites("", gk).Update(updated(was, is))
	}
	if passes("default", "100") {
		t.Error("an event passes although nothing was written")
	}
	r.recent.Wrote([]dependents.Result{{Action: dependents.Action{Verb: dependents.VerbWrite, ID: id}, ResourceVersion: "100"}}, noon)
	for _, test := range []struct {
		namespace, version string
		want               bool
	}{{"default", "99", false}, {"default", "100", true}, {"default", "101", true}, {"other", "100", false}} {
		if got := passes(test.namespace, test.version); got != test.want {
			t.Errorf("version %s in %s passes: %t", test.version, test.namespace, got)
		}
	}
	r.recent.IsStale(id, "100", noon)
	if passes("default", "101") {
		t.Error("an event passes although the write was seen")
	}
}
