// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"time"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestPlatformsAreAsTheyWereWritten(t *testing.T) {
	platform := func(version string) *v1alpha1.Platform {
		p := &v1alpha1.Platform{}
		p.Name, p.UID, p.ResourceVersion = "edge", "one", version
		return p
	}
	var memory Platforms
	if got := memory.Newest(platform("5")); got.ResourceVersion != "5" {
		t.Errorf("what was never written is %s", got.ResourceVersion)
	}
	memory.Wrote(platform("8"))
	if got := memory.Newest(platform("5")); got.ResourceVersion != "8" {
		t.Errorf("the cache lags behind, and it is %s", got.ResourceVersion)
	}
	if got := memory.Newest(platform("9")); got.ResourceVersion != "9" {
		t.Errorf("the cache is newer, and it is %s", got.ResourceVersion)
	}
	memory.Wrote(platform("20"))
	other := platform("15")
	other.UID = "two"
	if got := memory.Newest(other); got != other {
		t.Error("one that was made again is taken for the one before")
	}
}

func TestLayersJustMadeAreThere(t *testing.T) {
	now := time.Now()
	layer := &v1alpha1.AddonsLayer{}
	layer.Name = "edge-base"
	var memory Platforms
	memory.Made("edge", layer, now)
	if unseen := memory.Unseen("edge", nil, now); len(unseen) != 1 || unseen[0].Name != layer.Name {
		t.Errorf("%v", unseen)
	}
	if unseen := memory.Unseen("other", nil, now); len(unseen) != 0 {
		t.Errorf("another Platform has %v", unseen)
	}
	if unseen := memory.Unseen("edge", []*v1alpha1.AddonsLayer{layer}, now); len(unseen) != 0 {
		t.Errorf("the cache has it, and it counts twice: %v", unseen)
	}
	if unseen := memory.Unseen("edge", nil, now); len(unseen) != 0 {
		t.Error("one that was seen and is gone counts as there")
	}
	for name, at := range map[string]time.Time{"later": now.Add(madeFor), "before": now.Add(-time.Minute)} {
		memory.Made("edge", layer, now)
		if unseen := memory.Unseen("edge", nil, at); len(unseen) != 0 {
			t.Errorf("%s it counts as there", name)
		}
	}
	memory.Made("edge", layer, now)
	memory.Forget("edge")
	if unseen := memory.Unseen("edge", nil, now); len(unseen) != 0 {
		t.Error("what is forgotten counts")
	}
}

func TestDue(t *testing.T) {
	now := time.Now()
	var due Due[string]
	for _, step := range []struct {
		after, want time.Duration
	}{{0, 2 * time.Second}, {time.Second, time.Second}, {3 * time.Second, 0}} {
		if got := due.PutOff("edge", now.Add(step.after), 2*time.Second); got != step.want {
			t.Errorf("after %s it waits %s, want %s", step.after, got, step.want)
		}
	}
	due.Forget("edge")
	if got := due.PutOff("edge", now, 2*time.Second); got != 2*time.Second {
		t.Errorf("after it was told it waits %s", got)
	}
	if got := due.PutOff("edge", now.Add(-time.Hour), 2*time.Second); got != 2*time.Second {
		t.Errorf("where the clock was set back it waits %s", got)
	}
}
