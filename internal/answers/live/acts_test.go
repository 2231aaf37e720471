// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/acts"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

// An act is done as whoever asks: the API server says beforehand whether they may, and once
// more when they do.
func TestActsOfWhoeverAsks(t *testing.T) {
	f := newFixture(t)
	f.put(fmt.Sprintf(layer, "acted", "Deployed", "True", ""))
	cluster, _ := f.open(plane.Config())
	if cluster.May(acts.Hold, "acted") {
		t.Error("it may be held before the API server has said so")
	}
	f.until(cluster, "the right", func() error {
		if !cluster.May(acts.Hold, "acted") {
			return errors.New("there is none")
		}
		return nil
	})
	intent, err := cluster.Intend(cluster.Snapshot(), acts.Act{Kind: acts.Hold, Layer: "acted", Reason: "freeze"})
	f.must(err)
	f.must(cluster.Do(t.Context(), intent))
	f.until(cluster, "the hold", func() error {
		if reason := cluster.Snapshot().Layer("acted").Annotations[v1alpha1.HoldAnnotation]; reason != "freeze" {
			return fmt.Errorf("it is %q", reason)
		}
		return nil
	})
	// What was changed meanwhile is not written over.
	stale := intent
	stale.Patches[0].Version = "1"
	if err := cluster.Do(t.Context(), stale); err == nil || !strings.Contains(err.Error(), "acted was changed at the same moment; nothing is done") {
		t.Errorf("over a change of somebody else: %v", err)
	}

	user, err := plane.User("live-looker")
	f.must(err)
	looker, _ := f.open(user.Config)
	intent, err = looker.Intend(cluster.Snapshot(), acts.Act{Kind: acts.Resume, Layer: "acted"})
	f.must(err)
	if err := looker.Do(t.Context(), intent); err == nil || !strings.Contains(err.Error(), "you may not change acted; ask for the right to patch addonslayers.kraan.io") {
		t.Errorf("without the right: %v", err)
	}
	if looker.May(acts.Resume, "acted") {
		t.Error("it may be resumed by somebody without the right")
	}
	found, err := f.admin.Resource(snapshot.Layers.GroupVersionResource).Get(t.Context(), "acted", metav1.GetOptions{})
	f.must(err)
	if found.GetAnnotations()[v1alpha1.HoldAnnotation] != "freeze" {
		t.Error("the hold is gone")
	}
}
