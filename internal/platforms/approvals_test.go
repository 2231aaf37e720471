// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
	"github.com/strata-project/strata/internal/digests"
)

// sealed is a world whose platform has what was decided in its annotation, as a controller
// writes it.
type sealed struct {
	*world
	seal decisions.Seal
}

func newSealed(t *testing.T, w *world) *sealed {
	key, err := digests.NewKey([]byte("0123456789abcdefghijklmnopqrstuv"))
	if err != nil {
		t.Fatal(err)
	}
	return &sealed{w, decisions.Seal{Key: key}}
}

// look decides once, from what is trusted, and keeps what was decided.
func (s *sealed) look(t *testing.T) Decision {
	t.Helper()
	s.Platform = Trusted(s.Platform, s.seal)
	d := s.apply(t)
	s.Platform = s.Platform.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.Platform.ObjectMeta, v1alpha1.DecidedAnnotation, Decided(s.Platform, d.Status, s.seal))
	return d
}

// run looks until nothing moves any more.
func (s *sealed) run(t *testing.T) Decision {
	t.Helper()
	d := s.look(t)
	for range 20 {
		s.engine()
		s.Now = s.Now.Add(time.Minute)
		d = s.look(t)
	}
	return d
}

// asked returns what a stage waits for.
func asked(d Decision, stage string) string {
	for _, each := range d.Status.Stages {
		if each.Name == stage {
			return each.Approval
		}
	}
	return "(no stage)"
}

func (s *sealed) approve(values ...string) {
	metav1.SetMetaDataAnnotation(&s.Platform.ObjectMeta, v1alpha1.ApproveAnnotation, strings.Join(values, ","))
}

// approvedWorld is one whose platform is on two clusters, of which the stage first, with an
// approval for 1.1.0, has one.
func approvedWorld(t *testing.T) *sealed {
	p := platform("p", "1.0.0")
	s := newSealed(t, newWorld(p, bundle("1.0.0", "", "a"), bundle("1.1.0", "1.0.x", "a")))
	s.cluster("c0", map[string]string{"ring": "first"})
	s.cluster("c1", map[string]string{"ring": "second"})
	on("c0", "c1")(p)
	p.Spec.Rollout.Stages = []v1alpha1.RolloutStage{
		{Name: "first", Approval: true, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "first"}}},
		{Name: "second", Approval: true, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "second"}}},
	}
	s.run(t)
	s.approve("first@1.0.0", "second@1.0.0")
	s.run(t)
	s.Platform.Spec.Bundle.Version = "1.1.0"
	s.run(t)
	return s
}

// versionsOf returns what clusters have, by their names.
func (s *sealed) versionsOf() map[string]string {
	found := map[string]string{}
	for _, layer := range s.Layers {
		found[layer.Spec.Cluster.Name] = layer.Spec.Version
	}
	return found
}

func TestApprovalCoversItsSelectorAlone(t *testing.T) {
	s := approvedWorld(t)
	s.approve("first@1.1.0")
	d := s.run(t)
	if got := s.versionsOf(); got["c0"] != "1.1.0" || got["c1"] != "1.0.0" || asked(d, "second") != "second@1.1.0" {
		t.Fatalf("%v; the second stage asks for %s", got, asked(d, "second"))
	}
	// The first stage, which is over, gets the other cluster, too.
	s.Platform.Spec.Rollout.Stages[0].Selector.MatchLabels = nil
	d = s.run(t)
	value := asked(d, "first")
	if got := s.versionsOf(); got["c1"] != "1.0.0" || !strings.HasPrefix(value, "first@1.1.0#") {
		t.Fatalf("%v, although the selector was widened after the approval; it asks for %q", got, value)
	}
	s.approve("first@1.1.0", value)
	s.run(t)
	if s.versionsOf()["c1"] != "1.1.0" {
		t.Errorf("%v after the approval for the new selector", s.versionsOf())
	}
	if !slices.ContainsFunc(s.Platform.Status.Approvals, func(a v1alpha1.StageApproval) bool { return a.Approval == value }) {
		t.Errorf("%v", s.Platform.Status.Approvals)
	}
}

// A platform that was exported, renamed and applied again has approved nothing, and no stage
// of it is over, although its stages have the same names and it goes to the same version.
func TestCopyOfAPlatformSkipsNothing(t *testing.T) {
	s := approvedWorld(t)
	s.approve("first@1.1.0", "second@1.1.0")
	s.run(t)
	copied := s.Platform.DeepCopy()
	copied.Name, copied.UID = "copy", types.UID("copy")
	copied.Spec.Bundle.Version = "1.0.0"
	c := newSealed(t, newWorld(copied, s.Bundles...))
	c.Clusters = s.Clusters
	copied.UID = "copy"
	c.run(t)
	for _, stage := range []string{"first@1.0.0", "second@1.0.0"} {
		c.approve(stage, "first@1.1.0", "second@1.1.0")
	}
	d := c.look(t)
	c.approve(asked(d, "first"), "first@1.0.0", "first@1.1.0", "second@1.1.0")
	d = c.run(t)
	c.approve(asked(d, "first"), asked(d, "second"), "first@1.1.0", "second@1.1.0")
	c.run(t)
	copied = c.Platform
	if copied.Status.Rollout == nil || len(c.Layers) == 0 && asked(d, "first") == "" {
		t.Fatalf("%+v", copied.Status)
	}
	for _, value := range []string{"first@1.1.0", "second@1.1.0"} {
		if !slices.ContainsFunc(copied.Status.Approvals, func(a v1alpha1.StageApproval) bool { return a.Approval == value && a.Selector == notCovered }) {
			t.Errorf("%s counts for the copy: %+v", value, copied.Status.Approvals)
		}
	}
	c.Platform.Spec.Bundle.Version = "1.1.0"
	d = c.run(t)
	if !strings.HasPrefix(asked(d, "first"), "first@1.1.0#") {
		t.Errorf("the copy asks for %q", asked(d, "first"))
	}
	for cluster, version := range c.versionsOf() {
		if version == "1.1.0" {
			t.Errorf("%s has 1.1.0, which nobody has approved for the copy", cluster)
		}
	}
}

// A platform that is restored from a backup has another UID: what it is locked to stays, and
// each approval is asked for again.
func TestRestoredPlatform(t *testing.T) {
	s := approvedWorld(t)
	s.approve("first@1.1.0")
	s.run(t)
	lock := &v1alpha1.PlatformLock{Digest: "sha256:1", Bundle: "own", Applications: []v1alpha1.LockedApplication{{Name: "db", Version: "1.0.0"}}}
	status := s.Platform.Status.DeepCopy()
	status.Lock = lock
	backup := s.Platform.DeepCopy()
	metav1.SetMetaDataAnnotation(&backup.ObjectMeta, v1alpha1.DecidedAnnotation, Decided(backup, *status, s.seal))
	backup.UID, backup.Status = "another", v1alpha1.PlatformStatus{}
	trusted := Trusted(backup, s.seal)
	if trusted.Status.Lock == nil || trusted.Status.Lock.Applications[0].Version != "1.0.0" || trusted.Status.Rollout != nil {
		t.Fatalf("%+v", trusted.Status)
	}
	s.Platform = backup.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.Platform.ObjectMeta, v1alpha1.DecidedAnnotation, Decided(&v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}, *status, s.seal))
	s.Platform.Status.Lock = nil
	d := s.run(t)
	if value := asked(d, "second"); !strings.HasPrefix(value, "second@1.1.0") || s.versionsOf()["c1"] != "1.0.0" {
		t.Errorf("%v; it asks for %q", s.versionsOf(), value)
	}
	if value := asked(d, "first"); value != "" {
		t.Errorf("the first stage, whose cluster is there, asks for %q", value)
	}
	s.Platform.Spec.Rollout.Stages[0].Selector = metav1.LabelSelector{}
	if value := asked(s.run(t), "first"); !strings.HasPrefix(value, "first@1.1.0#") {
		t.Errorf("what was approved before the backup is approved after it: it asks for %q", value)
	}
}

// Of two approvals between two looks both persons are told.
func TestTwoPersonsApprove(t *testing.T) {
	s := approvedWorld(t)
	s.approve("first@1.1.0", "second@1.1.0")
	metav1.SetMetaDataAnnotation(&s.Platform.ObjectMeta, v1alpha1.ApprovedByAnnotation, `{"first@1.1.0":"ann","second@1.1.0":"bo"}`)
	metav1.SetMetaDataAnnotation(&s.Platform.ObjectMeta, v1alpha1.ApproveReasonAnnotation, `{"second@1.1.0":"seen"}`)
	s.look(t)
	got := map[string]string{}
	for _, a := range s.Platform.Status.Approvals {
		got[a.Approval] = a.By + "/" + a.Reason
	}
	if got["first@1.1.0"] != "ann/" || got["second@1.1.0"] != "bo/seen" {
		t.Error(got)
	}
}
