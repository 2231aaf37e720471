// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/platforms"
	"github.com/strata-project/strata/internal/web/webtest"
	"github.com/strata-project/strata/test/browser"
)

// rolling is a fleet whose Platform is decided by the controller's own rules, and whose
// layers do what they are told.
type rolling struct {
	*testing.T
	s *snapshot.Snapshot
}

// newRolling returns a fleet of clusters at version 1.0.0 of a bundle: two for the stage
// canary, a third of the others for europe, which needs approval, and the rest.
func newRolling(t *testing.T, clusters int) *rolling {
	t.Helper()
	half, all := intstr.FromString("50%"), intstr.FromString("100%")
	stage := func(name, label string, change func(*v1alpha1.RolloutStage)) v1alpha1.RolloutStage {
		s := v1alpha1.RolloutStage{Name: name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": label}}, MaxUnavailable: &half}
		change(&s)
		return s
	}
	platform := &v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "edge", Generation: 1, Annotations: map[string]string{v1alpha1.ApproveAnnotation: "europe@1.0.0"}},
		Spec: v1alpha1.PlatformSpec{
			Bundle:          &v1alpha1.PlatformBundle{Family: "edge", Version: "1.0.0"},
			ClusterSelector: &v1alpha1.ClusterSelector{Namespace: "fleet"},
			Rollout: v1alpha1.RolloutSpec{MaxUnavailable: &all, Stages: []v1alpha1.RolloutStage{
				stage("canary", "canary", func(s *v1alpha1.RolloutStage) { s.Soak = &metav1.Duration{Duration: 6 * time.Hour} }),
				stage("europe", "eu", func(s *v1alpha1.RolloutStage) { s.Approval = true }),
			}},
		},
	}
	r := &rolling{t, &snapshot.Snapshot{Now: now.Add(-72 * time.Hour), Version: "v1.36.3", Unread: map[snapshot.Part]error{}, Platforms: []*v1alpha1.Platform{platform}}}
	for i, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		bundle := &v1alpha1.ApplicationBundle{
			ObjectMeta: metav1.ObjectMeta{Name: "edge-" + strings.ReplaceAll(version, ".", "-")},
			Spec:       v1alpha1.ApplicationBundleSpec{Family: "edge", Version: version, Preview: i == 2},
		}
		for l, name := range []string{"network", "ingress", "monitoring"} {
			layer := v1alpha1.BundleLayer{Name: name, Applications: []v1alpha1.BundleApplication{{Name: name, Application: "app", Version: "1.0.0"}}}
			if l > 0 {
				layer.DependsOn = []string{"network"}
			}
			bundle.Spec.Layers = append(bundle.Spec.Layers, layer)
		}
		if i > 0 {
			bundle.Spec.UpgradesFrom = []string{"1.x"}
		}
		r.s.Bundles = append(r.s.Bundles, bundle)
	}
	r.s.Applications = []*v1alpha1.HelmApplication{{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.HelmApplicationSpec{
		Versions: []v1alpha1.HelmApplicationVersion{{Version: "1.0.0", ApplicationContent: v1alpha1.ApplicationContent{
			Chart: v1alpha1.ChartSource{Repository: &v1alpha1.ChartRepository{URL: "https://charts.example.com", Chart: "app"}},
		}}},
	}}}
	for c := range clusters {
		label := "canary"
		if c > 1 {
			label = []string{"eu", "us", "ap"}[c%3]
		}
		cluster := &v1alpha1.RemoteCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprintf("edge-%03d", c), Labels: map[string]string{"stage": label}}}
		cluster.Status.Version = "v1.36.3"
		cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: "True"}, {Type: v1alpha1.ReachableCondition, Status: "True"}}
		r.s.Clusters = append(r.s.Clusters, cluster)
	}
	r.settle()
	r.at(r.s.Now.Add(7 * time.Hour)) // over the soak
	r.settle()
	return r
}

// decide has the controller's rules decide once, and what they say be done. Layers become
// deployed, but for those that fail says.
func (r *rolling) decide(fails func(*v1alpha1.AddonsLayer) bool) platforms.Decision {
	r.Helper()
	platform := r.s.Platforms[0].DeepCopy()
	d := platforms.Decide(gather.Observation(gather.WorldOf(r.s, gather.DefaultNamespace), r.s.Version, platform, r.s.Now, func(types.NamespacedName) (map[string]string, error) {
		return map[string]string{}, nil
	}))
	next := *r.s
	platform.Status = *d.Status.DeepCopy()
	next.Platforms = []*v1alpha1.Platform{platform}
	next.Layers = slices.Clone(r.s.Layers)
	for _, layer := range d.Write {
		layer = layer.DeepCopy()
		layer.ResourceVersion, layer.Generation = "1", layer.Generation+1
		r.ends(layer, fails != nil && fails(layer))
		at := slices.IndexFunc(next.Layers, func(l *v1alpha1.AddonsLayer) bool { return l.Name == layer.Name })
		if at < 0 {
			next.Layers = append(next.Layers, layer)
		} else {
			next.Layers[at] = layer
		}
	}
	r.s = &next
	return d
}

// ends has a layer become deployed, or fail.
func (r *rolling) ends(layer *v1alpha1.AddonsLayer, fails bool) {
	status := &layer.Status
	status.ObservedGeneration, status.StateSince = layer.Generation, metav1.NewTime(r.s.Now)
	entry := v1alpha1.HistoryEntry{
		ID: fmt.Sprint(len(status.History) + 1), Version: layer.Spec.Version, Revision: layer.Spec.Version, Result: v1alpha1.ResultDeployed,
		Started: metav1.NewTime(r.s.Now), Duration: metav1.Duration{Duration: 41 * time.Second},
	}
	ready := metav1.Condition{Type: v1alpha1.ReadyCondition, Status: "True", Reason: v1alpha1.ReasonDeployed, Message: "version " + layer.Spec.Version + " is deployed", LastTransitionTime: entry.Started}
	status.State, status.Version = v1alpha1.StateDeployed, layer.Spec.Version
	if fails {
		entry.Result, entry.Message = v1alpha1.ResultFailed, "HelmRelease app has failed: context deadline exceeded"
		ready.Status, ready.Reason, ready.Message = "False", v1alpha1.ReasonReleaseFailed, entry.Message
		status.State, status.Version = v1alpha1.StateFailed, "1.0.0"
	}
	status.History = append([]v1alpha1.HistoryEntry{entry}, status.History...)
	status.Conditions = []metav1.Condition{ready}
}

// settle decides until nothing is done any more.
func (r *rolling) settle() {
	r.Helper()
	for range 50 {
		if d := r.decide(nil); len(d.Write)+len(d.Delete) == 0 {
			return
		}
	}
	r.Fatal("it does not come to an end")
}

// to has the Platform go to a version from a moment on.
func (r *rolling) to(version string, at time.Time) {
	next := *r.s
	platform := r.s.Platforms[0].DeepCopy()
	platform.Spec.Bundle.Version = version
	platform.Generation++
	next.Platforms, next.Now = []*v1alpha1.Platform{platform}, at
	r.s = &next
}

// at has it be another time.
func (r *rolling) at(moment time.Time) {
	next := *r.s
	next.Now = moment
	r.s = &next
}

// A roll-out is shown as it gets on: what soaks and until when, what waits for approval, what
// has failed; and what another version would do is what the plug-in plans.
func TestRolloutIsShown(t *testing.T) {
	r := newRolling(t, 20)
	cluster := webtest.Play(r.s, nil)
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "20 clusters, 60 layers")
	tab.Press("3")
	tab.Says(".cards", "20 of 20 clusters up to date")
	tab.Until("document.querySelector('.cards .icon.Well') !== null")

	// What a version would do, without anything being done.
	tab.Click(".cards h2 a")
	tab.Says("#plan-title", "What would be done")
	tab.Choose(".bar select", "1.1.0")
	tab.Until("location.pathname === '/platforms/edge' && location.search === '?plan=1.1.0'")
	tab.Says("section[aria-labelledby=plan-title]", "layers would be written now, 0 deleted")
	tab.Says(".rows tr.change", "1.0.0 → 1.1.0")
	tab.Says("section[aria-labelledby=plan-title] .commands", "kubectl strata platform plan edge --version 1.1.0")
	tab.Until("document.querySelectorAll('.rows tr.change').length <= 6")

	r.to("1.1.0", now.Add(-2*time.Hour))
	r.settle()
	r.at(now)
	r.decide(nil)
	cluster.Set(r.s)
	tab.Press("3")
	tab.Says(".stage.now", "canary")
	tab.Says(".stage.now", "2 done of 2")
	tab.Click(".cards h2 a")
	tab.Says(".stage.now", "soaks until")
	tab.Until(fmt.Sprintf("document.querySelector('.stage.now time').dateTime === %q", now.Add(4*time.Hour).Format(time.RFC3339)))

	r.at(now.Add(5 * time.Hour))
	r.decide(nil)
	cluster.Set(r.s)
	tab.Says(".stage.now", "needs approval: europe@1.1.0")
	tab.Until("document.querySelector('nav .icon.Waiting') !== null")
	tab.Says(".commands", "kubectl strata platform approve edge --stage europe")
	tab.Until("!document.querySelector('.stage time')")
	tab.Says("table.rows", "edge-000")
	tab.Says(".line", "edge-000-network")

	// Somebody thinks about an approval, and the Platform goes to another version meanwhile:
	// that one is not approved.
	tab.Button("Approve")
	tab.Says("dialog", "Stage europe of platform edge may go to version 1.1.0.")
	r.to("1.2.0", now.Add(5*time.Hour))
	r.decide(nil)
	cluster.Set(r.s)
	tab.Says(".stages", "europe@1.2.0")
	tab.Expect("422 (Unprocessable Entity)")
	tab.Press("canary was well", browser.Enter)
	tab.Says("dialog", "what platform edge asks for by now is europe@1.2.0")
	tab.Press(browser.Escape)
	tab.Button("Approve")
	tab.Says("dialog", "may go to version 1.2.0.")
	tab.Press(browser.Enter)
	tab.Until("!document.querySelector('dialog')")
	if done := cluster.Done(); len(done) != 1 || done[0].Patches[0].Annotations[v1alpha1.ApproveAnnotation] != "europe@1.0.0,europe@1.2.0" {
		t.Errorf("what is done is %+v", done)
	}

	// Nobody is told of a Platform that is not there, nor of another's plan.
	tab.Go(strings.TrimSuffix(address, pathOf(address)) + "/platforms/edg")
	tab.Says(".empty", "Did you mean edge?")
	tab.Expect("400 (Bad Request)")
	tab.Go(strings.TrimSuffix(address, pathOf(address)) + "/platforms/edge?plan=$(reboot)")
	tab.Says(".fresh", "the version to plan cannot be understood")
}
