// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ladder are three versions of a bundle of two layers, each entered from the one
// before.
func ladder() []*v1alpha1.ApplicationBundle {
	return []*v1alpha1.ApplicationBundle{
		bundle("1.0.0", "", "base", "apps base"), bundle("1.1.0", "1.0.x", "base", "apps base"), bundle("1.2.0", "1.1.x", "base", "apps base"),
	}
}

func auto(p *v1alpha1.Platform) { p.Spec.Upgrade.Mode = v1alpha1.UpgradeAuto }

// fleet returns a world with so many clusters at a version, c0 and on.
func fleet(t *testing.T, n int, version string, changes ...func(*v1alpha1.Platform)) *world {
	t.Helper()
	w := newWorld(platform("p", version, changes...), ladder()...)
	for i := range n {
		name := fmt.Sprintf("c%d", i)
		w.cluster(name, map[string]string{"ring": fmt.Sprint(i)})
		on(name)(w.Platform)
	}
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Fatalf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
	return w
}

// versions returns the versions of the clusters, with a ! where not all is deployed.
func (w *world) versionsOf() string {
	var all []string
	for _, target := range Targets(w.Observation) {
		at := map[string]bool{}
		for _, layer := range w.Layers {
			if layer.Labels[v1alpha1.PlatformClusterLabel] != clusterValue(target) {
				continue
			}
			version := layer.Spec.Version
			if !isDeployed(layer) {
				version += "!"
			}
			at[version] = true
		}
		var versions []string
		for version := range at {
			versions = append(versions, version)
		}
		all = append(all, strings.Join(sorted(versions), "/"))
	}
	return strings.Join(all, " ")
}

func TestNeverBack(t *testing.T) {
	w := fleet(t, 2, "1.2.0")
	for _, version := range []string{"1.1.0", "<1.2"} {
		w.Platform.Spec.Bundle.Version = version
		d := w.settle(t)
		if got, want := w.versionsOf(), "1.2.0 1.2.0"; got != want || conditionsOf(d.Status) != "Ready=False/BundleNotFound Stalled=True/BundleNotFound" || d.Status.Version != "1.2.0" {
			t.Errorf("%s is asked for, and the clusters are at %s: %s: %s", version, got, conditionsOf(d.Status), said(d.Status))
		}
	}
}

func TestEndOfLife(t *testing.T) {
	w := fleet(t, 1, "1.0.x", func(p *v1alpha1.Platform) { p.Spec.Upgrade.ForceAfterEndOfLife = true })
	w.Platform.Spec.Bundle.Version = ""
	end := w.Now.Add(48 * time.Hour)
	w.Bundles[0].Spec.EndOfLife = &metav1.Time{Time: end}
	d := w.apply(t)
	if !d.Until.Equal(end) || w.versionsOf() != "1.0.0" {
		t.Errorf("it is looked at again at %s, not %s", d.Until, end)
	}
	w.Now = end
	w.settle(t)
	if got, want := w.versionsOf(), "1.1.0"; got != want {
		t.Errorf("past its end of life the cluster is at %s, not %s", got, want)
	}
}

func TestNewClusterGetsWhatTheOthersHave(t *testing.T) {
	w := fleet(t, 2, "1.1.0")
	w.Platform.Spec.Bundle.Version = ""
	w.cluster("new", nil)
	on("new")(w.Platform)
	d := w.settle(t)
	if got, want := w.versionsOf(), "1.1.0 1.1.0 1.1.0"; got != want || d.Status.Available != "1.2.0" {
		t.Errorf("the clusters are at %s, not %s, and %s is available", got, want, d.Status.Available)
	}
}

func TestUnreachableClusterCatchesUp(t *testing.T) {
	w := fleet(t, 3, "1.0.0", auto)
	w.answers("c1", false)
	w.Platform.Spec.Bundle.Version = "1.2.0"
	d := w.settle(t)
	if got, want := w.versionsOf(), "1.2.0 1.0.0 1.2.0"; got != want {
		t.Errorf("the clusters are at %s, not %s: %s", got, want, said(d.Status))
	}
	if got := d.Status.Worst; len(got) != 1 || got[0].Cluster != "fleet/c1" || conditionsOf(d.Status) != "Ready=Unknown/ClusterUnreachable Reconciling=True/ClusterUnreachable" {
		t.Errorf("%s: %+v", conditionsOf(d.Status), got)
	}
	w.answers("c1", true)
	if d = w.settle(t); w.versionsOf() != "1.2.0 1.2.0 1.2.0" || conditionsOf(d.Status) != installed {
		t.Errorf("the clusters are at %s: %s", w.versionsOf(), said(d.Status))
	}
}

func TestOneBrokenCluster(t *testing.T) {
	for _, test := range []struct {
		failures int32
		want     string
	}{{0, "1.1.0!/1.1.0 1.0.0 1.0.0"}, {1, "1.1.0!/1.1.0 1.1.0 1.1.0"}} {
		w := fleet(t, 3, "1.0.0")
		limit := intstr.FromInt32(test.failures)
		w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{
			{Name: "canary", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}, MaxFailures: &limit},
		}
		w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c0"}, "apps")+"@1.1.0"] = true
		w.Platform.Spec.Bundle.Version = "1.1.0"
		d := w.settle(t)
		got := w.versionsOf()
		if strings.ReplaceAll(got, "1.1.0/1.1.0!", "1.1.0!/1.1.0") != test.want {
			t.Errorf("%d may fail, and the clusters are at %s, not %s: %s", test.failures, got, test.want, said(d.Status))
		}
		if d.Status.Clusters.Failed != 1 || !strings.Contains(said(d.Status), "it broke") || !strings.HasPrefix(conditionsOf(d.Status), "Ready=False/") {
			t.Errorf("%s: %+v", said(d.Status), d.Status.Clusters)
		}
		if stage := d.Status.Stages[0]; stage.Failed != 1 || (stage.State == "Halted") != (test.failures == 0) {
			t.Errorf("the stage is %+v", stage)
		}
	}
}

// A version on the way may have no layers on a cluster. What is removed for it counts
// as unavailable as long as it is there.
func TestVersionWithoutLayers(t *testing.T) {
	w := fleet(t, 3, "1.0.0")
	w.Bundles[1] = withInputs(bundle("1.1.0", "1.0.x", "base when:inputs.on"), v1alpha1.BundleInput{Name: "on", Type: v1alpha1.InputBoolean, Default: jsonOf("false")})
	w.Platform.Spec.Bundle.Version = "1.2.0"
	emptied := 0
	for w.versionsOf() != "1.2.0 1.2.0 1.2.0" {
		d := w.apply(t)
		leaving := map[string]bool{}
		for _, layer := range w.Layers {
			if layer.DeletionTimestamp != nil {
				leaving[layer.Labels[v1alpha1.PlatformClusterLabel]] = true
			}
		}
		if len(leaving) > 1 || len(leaving) == 1 && len(Decide(w.Observation).Delete) > 0 {
			t.Fatalf("more than one cluster loses its layers at a time: %s: %s", w.names(), said(d.Status))
		}
		emptied += min(1, len(d.Delete))
		w.engine()
		if w.Now = w.Now.Add(time.Second); w.Now.After(testNow.Add(time.Hour)) {
			t.Fatalf("the clusters are at %s: %s", w.versionsOf(), said(d.Status))
		}
	}
	if d := w.settle(t); conditionsOf(d.Status) != installed || emptied != 3 {
		t.Errorf("%d clusters were emptied, %s: %s", emptied, conditionsOf(d.Status), said(d.Status))
	}
}

func TestRollback(t *testing.T) {
	w := fleet(t, 2, "1.0.0")
	w.Platform.Spec.Rollout.OnFailure = v1alpha1.RolloutRollback
	w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c0"}, "apps")+"@1.1.0"] = true
	w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c1"}, "apps")+"@1.1.0"] = true
	w.Platform.Spec.Bundle.Version = "1.1.0"
	d := w.settle(t)
	if got, want := w.versionsOf(), "1.0.0 1.0.0"; got != want || d.Status.Rollout.RolledBack == "" || d.Status.Version != "1.1.0" {
		t.Errorf("the clusters are at %s, not %s: %+v: %s", got, want, d.Status.Rollout, said(d.Status))
	}
	if got := conditionsOf(d.Status); got != "Ready=False/Halted Reconciling=True/ProgressingWithRetry" {
		t.Errorf("%s: %s", got, said(d.Status))
	}
}

func TestWhatMendsItIsGoneTo(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c0"}, "apps")+"@1.1.0"] = true
	w.Platform.Spec.Bundle.Version = "1.1.0"
	w.settle(t)
	w.Platform.Spec.Bundle.Version = "1.2.0"
	if d := w.settle(t); w.versionsOf() != "1.2.0" || conditionsOf(d.Status) != installed {
		t.Errorf("the cluster is at %s: %s", w.versionsOf(), said(d.Status))
	}
}

func TestApproval(t *testing.T) {
	w := fleet(t, 2, "1.0.0")
	w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{{Name: "all", Approval: true}}
	w.Platform.Spec.Bundle.Version = "1.1.0"
	d := w.settle(t)
	if got := conditionsOf(d.Status); w.versionsOf() != "1.0.0 1.0.0" || got != "Ready=Unknown/Waiting Reconciling=True/Waiting" || !strings.Contains(said(d.Status), "all@1.1.0") {
		t.Errorf("%s %s: %s", w.versionsOf(), got, said(d.Status))
	}
	w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "other@1.0.0, all@1.1.0"}
	w.settle(t)
	if w.versionsOf() != "1.1.0 1.1.0" {
		t.Errorf("approved, and the clusters are at %s", w.versionsOf())
	}
}

func TestBundleIsGone(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	w.Bundles = w.Bundles[1:]
	inputs(`{}`)(w.Platform)
	d := w.apply(t)
	if len(d.Write)+len(d.Delete) > 0 || len(d.Status.Worst) != 1 || !strings.Contains(d.Status.Worst[0].Reason, "there is no bundle of version 1.0.0") {
		t.Errorf("%d writes, %d deletions: %+v", len(d.Write), len(d.Delete), d.Status.Worst)
	}
	w.Platform.Spec.Bundle.Version = "1.1.0"
	w.settle(t)
	if w.versionsOf() != "1.1.0" {
		t.Errorf("the cluster is at %s", w.versionsOf())
	}
}

func TestTwoBundlesOfOneVersion(t *testing.T) {
	w := newWorld(platform("p", "1.0.0"), ladder()...)
	again := bundle("v1.0.0", "", "base")
	w.Bundles = append(w.Bundles, again)
	d := w.apply(t)
	if got := conditionsOf(d.Status); len(d.Write) > 0 || got != "Ready=False/BundleNotFound Stalled=True/BundleNotFound" || !strings.Contains(said(d.Status), "base-v1-0-0") {
		t.Errorf("%s: %s", got, said(d.Status))
	}
}

func TestCrashBetweenTwoWrites(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	w.Platform.Spec.Bundle.Version = "1.1.0"
	d := Decide(w.Observation)
	w.Platform.Status = d.Status
	w.put(t, d.Write[0])
	w.Now = w.Now.Add(time.Second)
	if d := w.settle(t); w.versionsOf() != "1.1.0" || conditionsOf(d.Status) != installed {
		t.Errorf("the cluster is at %s: %s", w.versionsOf(), said(d.Status))
	}
}

func TestAnotherFamily(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	other := bundle("1.0.0", "", "base", "more base")
	other.Name, other.Spec.Family = "other", "other"
	w.Bundles = append(w.Bundles, other)
	w.Platform.Spec.Bundle = &v1alpha1.PlatformBundle{Family: "nowhere"}
	if d := w.apply(t); len(d.Write)+len(d.Delete) > 0 || conditionsOf(d.Status) != "Ready=False/BundleNotFound Stalled=True/BundleNotFound" {
		t.Errorf("there is no such family, and it is %s: %s", conditionsOf(d.Status), said(d.Status))
	}
	w.Platform.Spec.Bundle = &v1alpha1.PlatformBundle{Family: "other"}
	d := w.settle(t)
	if got := len(w.Layers); got != 2 || conditionsOf(d.Status) != installed || w.Layers[0].Spec.Source.Name != "other" {
		t.Errorf("%s: %s", w.names(), said(d.Status))
	}
}

func TestBadSpecificationTouchesNothing(t *testing.T) {
	for _, test := range []struct {
		field  string
		change func(*v1alpha1.PlatformSpec)
	}{
		{"spec.clusterSelector", func(s *v1alpha1.PlatformSpec) {
			s.ClusterSelector = &v1alpha1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "wrong"}}}}
			s.Clusters = nil
		}},
		{"spec.upgrade.maintenanceWindows", func(s *v1alpha1.PlatformSpec) {
			s.Upgrade.MaintenanceWindows = []v1alpha1.UpgradeWindow{{Start: "22:00", TimeZone: "Nowhere/Land", Duration: metav1.Duration{Duration: time.Hour}}}
		}},
		{"spec.rollout.stages[0].selector", func(s *v1alpha1.PlatformSpec) {
			s.Rollout.Stages = []v1alpha1.RolloutStage{{Name: "a", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "not valid"}}}}
		}},
		{"spec.rollout.maxUnavailable", func(s *v1alpha1.PlatformSpec) {
			s.Rollout.MaxUnavailable = &intstr.IntOrString{Type: intstr.String, StrVal: "many"}
		}},
		{"spec.bundle.version", func(s *v1alpha1.PlatformSpec) { s.Bundle.Version = "newest" }},
	} {
		w := fleet(t, 2, "1.0.0")
		w.Platform.Spec.Bundle.Version = "1.1.0"
		test.change(&w.Platform.Spec)
		d := w.apply(t)
		if len(d.Write)+len(d.Delete) > 0 || conditionsOf(d.Status)[:11] != "Ready=False" || !strings.HasPrefix(said(d.Status), test.field) {
			t.Errorf("%s: %d writes, %d deletions, %s: %s", test.field, len(d.Write), len(d.Delete), conditionsOf(d.Status), said(d.Status))
		}
		if d.Status.Version == "" || d.Status.Clusters.Total != 2 {
			t.Errorf("%s: the status forgets: %+v", test.field, d.Status)
		}
	}
}

// Windows are for what moves: one that cannot be read keeps nobody from being installed,
// is told, and never opens.
func TestAWindowThatCannotBeReadKeepsNoFirstInstallation(t *testing.T) {
	w := fleet(t, 2, "1.0.0")
	w.Platform.Spec.Upgrade.MaintenanceWindows = []v1alpha1.UpgradeWindow{{Days: []v1alpha1.Weekday{"Mo"}, Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}}
	w.Platform.Spec.Bundle.Version = "1.1.0"
	w.cluster("new", nil)
	on("new")(w.Platform)
	d := w.settle(t)
	if got, want := w.versionsOf(), "1.0.0 1.0.0 1.1.0"; got != want {
		t.Errorf("the clusters are at %s, want %s", got, want)
	}
	if conditionsOf(d.Status)[:11] != "Ready=False" || !strings.HasPrefix(said(d.Status), `spec.upgrade.maintenanceWindows[0].days[0]: "Mo" is no day of the week`) {
		t.Errorf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
}

func TestInputsOfTheNextVersion(t *testing.T) {
	must := func(name string) v1alpha1.BundleInput { return v1alpha1.BundleInput{Name: name, Required: true} }
	w := newWorld(platform("p", "1.0.0", inputs(`{"old": "x"}`)), withInputs(bundle("1.0.0", "", "base"), must("old")), withInputs(bundle("1.1.0", "1.0.x", "base"), must("new")))
	w.settle(t)
	w.Platform.Spec.Bundle.Version = "1.1.0"
	if d := w.settle(t); w.versionsOf() != "1.0.0" || !strings.Contains(said(d.Status), "new is required") {
		t.Errorf("at %s: %s", w.versionsOf(), said(d.Status))
	}
	inputs(`{"new": "y"}`)(w.Platform)
	if d := w.settle(t); w.versionsOf() != "1.1.0" || conditionsOf(d.Status) != installed {
		t.Errorf("at %s: %s", w.versionsOf(), said(d.Status))
	}
}

func TestFailureIsShownWhileItsMendingWaits(t *testing.T) {
	w := fleet(t, 1, "1.0.0")
	w.breaks[layerName("p", types.NamespacedName{Namespace: "fleet", Name: "c0"}, "apps")+"@1.1.0"] = true
	w.Platform.Spec.Bundle.Version = "1.1.0"
	w.settle(t)
	w.Platform.Spec.Bundle.Version = "1.2.0"
	w.Platform.Spec.Upgrade.MaintenanceWindows = []v1alpha1.UpgradeWindow{{Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}}
	opens := time.Date(2026, 3, 4, 22, 0, 0, 0, time.UTC)
	d := w.apply(t)
	if d.Status.Clusters.Failed != 1 || !strings.Contains(said(d.Status), "it broke") || !d.Until.Equal(opens) || !d.Status.NextChange.Time.Equal(opens) {
		t.Errorf("until %s: %s", d.Until, said(d.Status))
	}
	w.Now = opens
	w.settle(t)
	if w.versionsOf() != "1.2.0" {
		t.Errorf("at %s", w.versionsOf())
	}
}

func TestSelectedClusters(t *testing.T) {
	w := newWorld(platform("p", "1.0.0"), ladder()...)
	w.cluster("a", map[string]string{"env": "prod"})
	w.cluster("b", map[string]string{"env": "test"})
	w.Platform.Spec.ClusterSelector = &v1alpha1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	w.Platform.Spec.Clusters = []v1alpha1.ClusterReference{{Namespace: "fleet", Name: "a"}}
	w.settle(t)
	if got := Targets(w.Observation); len(got) != 1 || got[0].Name != "a" || w.versionsOf() != "1.0.0" {
		t.Errorf("the clusters are %v, at %s", got, w.versionsOf())
	}
	// A RemoteCluster that is being deleted, or is gone, although it is named.
	for _, remote := range []*v1alpha1.RemoteCluster{w.Clusters[types.NamespacedName{Namespace: "fleet", Name: "a"}].DeepCopy(), nil} {
		name := types.NamespacedName{Namespace: "fleet", Name: "a"}
		if remote == nil {
			delete(w.Clusters, name)
		} else {
			remote.DeletionTimestamp = &metav1.Time{Time: w.Now}
			w.Clusters[name] = remote
		}
		w.Platform.Spec.Bundle.Version = "1.1.0"
		if d := w.apply(t); len(d.Write)+len(d.Delete) > 0 || d.Status.Clusters.Unreachable != 1 || !strings.Contains(said(d.Status), "RemoteCluster fleet/a") {
			t.Errorf("%d writes, %d deletions: %s", len(d.Write), len(d.Delete), said(d.Status))
		}
	}
	w.Platform.Spec.Clusters = nil
	d := w.settle(t)
	if len(Targets(w.Observation)) > 0 || len(w.Layers) > 0 || !strings.HasPrefix(conditionsOf(d.Status), "Ready=Unknown/"+v1alpha1.ReasonNoClusters) {
		t.Errorf("no cluster is selected, and there are %s: %s", w.names(), said(d.Status))
	}
}

// Without any bundle a platform cannot go on, and its clusters are no worse for it.
func TestFamilyIsGone(t *testing.T) {
	w := newWorld(platform("p", ""), bundle("1.0.0", "", "base", "apps base"))
	w.settle(t)
	w.Bundles = nil
	d := w.apply(t)
	if len(d.Write)+len(d.Delete) > 0 {
		t.Errorf("it writes %d layers and deletes %d", len(d.Write), len(d.Delete))
	}
	if got := said(d.Status); !strings.Contains(got, "there is no ApplicationBundle of family base") {
		t.Errorf("it says %s", got)
	}
	if d.Status.Version != "1.0.0" || d.Status.Clusters.Ready != 1 {
		t.Errorf("it is at %q, with %+v", d.Status.Version, d.Status.Clusters)
	}
}

// Since when somebody is waited for stays until it is another approval, or none.
func TestSinceWhenAnApprovalIsWaitedFor(t *testing.T) {
	w := newWorld(platform("p", "1.0.0"), bundle("1.0.0", "", "base"), bundle("1.1.0", ">=1.0", "base"))
	w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{{Name: "all", Selector: metav1.LabelSelector{}, Approval: true}}
	waits := func(approval string, since time.Time) {
		t.Helper()
		w.apply(t)
		stage := w.Platform.Status.Stages[0]
		if stage.Approval != approval || (stage.WaitingSince != nil) != (approval != "") || approval != "" && !stage.WaitingSince.Time.Equal(since.Truncate(time.Second)) {
			t.Errorf("the stage waits for %q since %v, want %q since %s", stage.Approval, stage.WaitingSince, approval, since)
		}
	}
	began := w.Now
	waits("all@1.0.0", began)
	w.Now = w.Now.Add(time.Hour)
	waits("all@1.0.0", began)
	w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "all@1.0.0"}
	w.settle(t)
	waits("", time.Time{})
	w.Platform.Spec.Bundle.Version = "1.1.0"
	waits("all@1.1.0", w.Now)
}

// A word that was stored once and means nothing any more stops everything but a deletion.
func TestStoredModeThatIsNone(t *testing.T) {
	w := fleet(t, 2, "1.0.0")
	before := w.names()
	w.Platform.Spec.Upgrade.Mode, w.Platform.Spec.Bundle.Version = v1alpha1.UpgradeNotify, "1.1.0"
	w.Platform.Spec.Clusters = w.Platform.Spec.Clusters[:1]
	d := w.settle(t)
	if w.names() != before || !strings.Contains(said(d.Status), "spec.upgrade.mode: Notify is no mode any more: write mode Manual and forceAfterEndOfLife: true") ||
		!strings.Contains(conditionsOf(d.Status), "Stalled=True/InvalidSpec") || d.Status.Clusters.Total != 2 {
		t.Errorf("there are %s: %s, %s", w.names(), said(d.Status), conditionsOf(d.Status))
	}
	w.Platform.Spec.Upgrade = v1alpha1.UpgradeSpec{ForceAfterEndOfLife: true}
	w.settle(t)
	if got := w.versionsOf(); got != "1.1.0" {
		t.Errorf("mended, its clusters are at %s", got)
	}
	w.Platform.Spec.Upgrade.Mode = v1alpha1.UpgradeNotify
	w.doomed()
	w.settle(t)
	if len(w.Layers) > 0 {
		t.Errorf("a deletion leaves %s", w.names())
	}
}

// What no cluster can run is not available, and what one of several can is.
func TestAvailableIsWhatCanBeGoneTo(t *testing.T) {
	later := bundle("1.1.0", ">=1.0", "base")
	later.Spec.KubeVersion = ">=1.99"
	w := newWorld(platform("p", "1.0.0"), bundle("1.0.0", "", "base"), later)
	if d := w.settle(t); d.Status.Available != "" {
		t.Errorf("%s is available, which nothing can run: %s", d.Status.Available, said(d.Status))
	}
	fleet := newWorld(platform("p", "1.0.0", on("old", "new")), bundle("1.0.0", "", "base"), later)
	fleet.cluster("old", nil)
	fleet.cluster("new", nil).Status.Version = "v1.99.0"
	if d := fleet.settle(t); d.Status.Available != "1.1.0" {
		t.Errorf("%q is available, and one of two clusters can run 1.1.0", d.Status.Available)
	}
}

// A cluster counts as up to date where it has what the specification says: not while what that
// says of inputs is refused, whatever is wrong with it.
func TestRefusedInputsAreNotUpToDate(t *testing.T) {
	b := withInputs(bundle("1.0.0", "", "base"), v1alpha1.BundleInput{Name: "size", Type: v1alpha1.InputInteger})
	for _, wrong := range []string{`{"size": "large"}`, `{"sise": 3}`} {
		w := newWorld(platform("p", "", inputs(`{"size": 3}`)), b)
		if d := w.settle(t); d.Status.Clusters.Ready != 1 {
			t.Fatalf("it is %+v: %s", d.Status.Clusters, said(d.Status))
		}
		inputs(wrong)(w.Platform)
		if d := w.settle(t); d.Status.Clusters.Ready != 0 || d.Status.Clusters.Total != 1 {
			t.Errorf("%s: it is %+v: %s", wrong, d.Status.Clusters, said(d.Status))
		}
		inputs(`{"size": 3}`)(w.Platform)
		if d := w.settle(t); d.Status.Clusters.Ready != 1 {
			t.Errorf("mended, it is %+v: %s", d.Status.Clusters, said(d.Status))
		}
	}
}
