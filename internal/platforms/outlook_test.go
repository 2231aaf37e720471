// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

func TestLookSaysWhereClustersGo(t *testing.T) {
	w := newWorld(platform("p", "1.0.0", on("eu", "us")), bundle("1.0.0", "", "base"), bundle("1.1.0", ">=1.0 <1.1", "base"), bundle("1.2.0", ">=1.1 <1.2", "base"))
	w.cluster("eu", map[string]string{"stage": "canary"})
	w.cluster("us", nil)
	w.settle(t)
	w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{
		{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}, Soak: &metav1.Duration{Duration: time.Hour}},
		{Name: "all", Approval: true},
	}
	w.Platform.Spec.Bundle.Version = "1.2.0"
	hops := func(look Outlook, cluster int) []string { return look.Clusters[cluster].Hops }

	look := Look(w.Observation)
	if diff := cmp.Diff(Decide(w.Observation), look.Decision); diff != "" {
		t.Errorf("looking is not deciding: %s", diff)
	}
	if eu := look.Clusters[0]; !eu.Begins || eu.Moving || eu.Stage != "canary" || eu.Version != "1.0.0" || !slices.Equal(eu.Hops, []string{"1.1.0", "1.2.0"}) {
		t.Errorf("what begins is %+v", eu)
	}
	if us := look.Clusters[1]; us.Begins || us.Stage != "all" || !slices.Equal(us.Hops, []string{"1.1.0", "1.2.0"}) {
		t.Errorf("what waits is %+v", us)
	}
	if look.Stages[0].Approval != "" || look.Stages[1].Approval != "all@1.2.0" || look.Stage != "canary" {
		t.Errorf("the stages are %+v", look.Stages)
	}

	w.apply(t)
	if look = Look(w.Observation); !look.Clusters[0].Moving || look.Clusters[0].Begins || !slices.Equal(hops(look, 0), []string{"1.1.0", "1.2.0"}) {
		t.Errorf("on its way it is %+v", look.Clusters[0])
	}
	w.settle(t)
	look = Look(w.Observation)
	if len(hops(look, 0)) != 0 || look.Stages[0].Soaked.IsZero() || look.Why == "" {
		t.Errorf("at the target it is %+v of stage %+v: %s", look.Clusters[0], look.Stages[0], look.Why)
	}
}

func TestLookAtADeletion(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base", "apps base"))
	w.settle(t)
	w.Platform.DeletionTimestamp = &metav1.Time{Time: w.Now}
	if look := Look(w.Observation); len(look.Delete) != 2 || len(look.Clusters) != 1 {
		t.Errorf("it deletes %d layers of %d clusters", len(look.Delete), len(look.Clusters))
	}
}

func TestOrderIsOfDependencies(t *testing.T) {
	b := bundle("1.0.0", "", "a c", "b", "c b")
	if got, want := Order(b), []string{"b", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	if got := Releases(Observation{Bundles: []*v1alpha1.ApplicationBundle{b}}, "base"); len(got) != 1 || got[0].Uninstallable == "" {
		t.Errorf("a bundle of applications that do not exist is %+v", got)
	}
}
