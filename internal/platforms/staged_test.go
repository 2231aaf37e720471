// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// sized is a Platform on three clusters whose bundle has the input size, with a stage of the
// first one.
func sized(t *testing.T, changes ...func(*v1alpha1.Platform)) *world {
	t.Helper()
	w := newWorld(platform("p", "1.0.0", inputs(`{"size": 1}`)), bundle("1.0.0", "", "base"), bundle("1.1.0", "1.0.x", "base"))
	for i, b := range w.Bundles {
		w.Bundles[i] = withInputs(b, v1alpha1.BundleInput{Name: "size", Type: v1alpha1.InputInteger, Required: true}, v1alpha1.BundleInput{Name: "name"})
	}
	for i := range 3 {
		name := fmt.Sprintf("c%d", i)
		w.cluster(name, map[string]string{"ring": fmt.Sprint(i)})
		on(name)(w.Platform)
	}
	w.Platform.Spec.Rollout.Stages = []v1alpha1.RolloutStage{{Name: "first", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}}}
	for _, change := range changes {
		change(w.Platform)
	}
	if d := w.settle(t); conditionsOf(d.Status) != installed {
		t.Fatalf("%s: %s", conditionsOf(d.Status), said(d.Status))
	}
	return w
}

func staged(p *v1alpha1.Platform) { p.Spec.Rollout.StageInputs = true }

// sizes returns the sizes of the clusters, with a ! where not all is deployed.
func (w *world) sizes() string {
	var all []string
	for _, layer := range w.Layers {
		said := strings.TrimSuffix(strings.TrimPrefix(string(layer.Spec.Inputs.Raw), `{"name":null,"size":`), "}")
		if !isDeployed(layer) {
			said += "!"
		}
		all = append(all, said)
	}
	return strings.Join(all, " ")
}

func overridden(ring, raw string) v1alpha1.InputsOverride {
	return v1alpha1.InputsOverride{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}, Inputs: *jsonOf(raw)}
}

// An override is for the clusters that it selects, and the last of several wins.
func TestOverridesOfInputs(t *testing.T) {
	w := sized(t)
	w.Platform.Spec.Overrides = []v1alpha1.InputsOverride{overridden("1", `{"size": 2}`), overridden("1", `{"size": 3}`), overridden("9", `{"size": 9}`)}
	w.apply(t)
	if got := w.sizes(); got != "1 3! 1" {
		t.Errorf("the sizes are %s", got)
	}
	w.settle(t)
	w.Clusters[Targets(w.Observation)[2]].Labels["ring"] = "9"
	w.settle(t)
	if got := w.sizes(); got != "1 3 9" {
		t.Errorf("with another label the sizes are %s", got)
	}
	for want, one := range map[string]v1alpha1.InputsOverride{
		"spec.overrides[0].inputs.colour: is no input of the bundle at 1.0.0":   overridden("1", `{"colour": "red"}`),
		"spec.overrides[0].inputs: must be an object":                           overridden("1", `[]`),
		"spec.inputs with spec.overrides[0]: input size is the String":          overridden("1", `{"size": "large"}`),
		`spec.overrides[0].selector: "Near" is not a valid label selector oper`: {Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}, Inputs: *jsonOf("{}")},
	} {
		w.Platform.Spec.Overrides = []v1alpha1.InputsOverride{one}
		before := w.names()
		d := w.settle(t)
		if !strings.Contains(said(d.Status), want) || !strings.Contains(conditionsOf(d.Status), "Stalled=True/InvalidSpec") || w.names() != before {
			t.Errorf("%s: %s; %s", want, said(d.Status), w.names())
		}
	}
}

// Inputs that go in stages take the way of a version: the first stage, and when that is well
// one cluster after the other. What needs nothing is not touched.
func TestStagedInputs(t *testing.T) {
	w := sized(t, staged)
	inputs(`{"size": 2}`)(w.Platform)
	w.Platform.Spec.Overrides = []v1alpha1.InputsOverride{overridden("2", `{"size": 1}`)}
	var way []string
	look := Look(w.Observation).Clusters
	if !look[0].Begins || len(look[0].Hops) != 1 || !strings.HasPrefix(look[0].Hops[0], "1.0.0+") || len(look[1].Hops) != 1 || len(look[2].Hops) != 0 {
		t.Errorf("they are to go %v, %v and %v", look[0].Hops, look[1].Hops, look[2].Hops)
	}
	for range 8 {
		w.apply(t)
		if got := w.sizes(); len(way) == 0 || way[len(way)-1] != got {
			way = append(way, got)
		}
		w.engine()
		w.Now = w.Now.Add(time.Second)
	}
	if got := strings.Join(way, ", "); got != "2! 1 1, 2 1 1, 2 2! 1, 2 2 1" && got != "2! 1 1, 2 2! 1, 2 2 1" {
		t.Errorf("they go %s", got)
	}
	if d := w.settle(t); conditionsOf(d.Status) != installed || d.Status.Clusters.Ready != 3 || d.Status.Version != "1.0.0" {
		t.Errorf("%s: %s, %+v", conditionsOf(d.Status), said(d.Status), d.Status.Clusters)
	}
}

// A stage waits for the approval of exactly these inputs, and what waits keeps what it has:
// also what somebody changes on a layer.
func TestStagedInputsWaitForApproval(t *testing.T) {
	w := sized(t, staged)
	w.Platform.Spec.Rollout.Stages[0].Approval = true
	w.Platform.Annotations = map[string]string{v1alpha1.ApproveAnnotation: "first@1.0.0"}
	inputs(`{"size": 2}`)(w.Platform)
	d := w.settle(t)
	asked := d.Status.Stages[0].Approval
	if w.sizes() != "1 1 1" || !strings.HasPrefix(asked, "first@1.0.0+") || d.Status.Clusters.Waiting != 3 {
		t.Fatalf("%s, %s: %+v", w.sizes(), asked, d.Status.Clusters)
	}
	for _, cluster := range Look(w.Observation).Clusters {
		if want := strings.TrimPrefix(asked, "first@"); len(cluster.Hops) != 1 || cluster.Hops[0] != want {
			t.Errorf("%s goes to %v, want %s", cluster.Cluster, cluster.Hops, want)
		}
	}
	w.Layers[1] = w.Layers[1].DeepCopy()
	w.Layers[1].Spec.Inputs = jsonOf(`{"name":null,"size":7}`)
	w.settle(t)
	if w.sizes() != "1 1 1" {
		t.Errorf("what was changed by hand stays: %s", w.sizes())
	}
	w.Platform.Annotations[v1alpha1.ApproveAnnotation] = asked
	inputs(`{"size": 3}`)(w.Platform)
	w.settle(t)
	if w.sizes() != "1 1 1" {
		t.Errorf("others were approved: %s", w.sizes())
	}
	inputs(`{"size": 2}`)(w.Platform)
	w.settle(t)
	if w.sizes() != "2 2 2" {
		t.Errorf("approved, the sizes are %s", w.sizes())
	}
}

// Inputs that break a stage halt the roll-out, and are taken back where it says so.
func TestStagedInputsThatFail(t *testing.T) {
	for _, onFailure := range []v1alpha1.RolloutFailure{v1alpha1.RolloutHalt, v1alpha1.RolloutRollback} {
		w := sized(t, staged, func(p *v1alpha1.Platform) { p.Spec.Rollout.OnFailure = onFailure })
		inputs(`{"size": 2}`)(w.Platform)
		w.apply(t)
		w.breaks[w.Layers[0].Name+"@1.0.0"] = true
		w.engine()
		d := w.apply(t)
		w.breaks = map[string]bool{}
		if onFailure == v1alpha1.RolloutHalt {
			if got := w.sizes(); got != "2! 1 1" || !strings.Contains(conditionsOf(d.Status), v1alpha1.ReasonHalted) {
				t.Errorf("%s: %s, %s", onFailure, got, said(d.Status))
			}
			continue
		}
		d = w.settle(t)
		if got := w.sizes(); got != "1 1 1" || !strings.Contains(conditionsOf(d.Status), v1alpha1.ReasonHalted) {
			t.Errorf("%s: %s, %s", onFailure, got, said(d.Status))
		}
		inputs(`{"size": 3}`)(w.Platform)
		w.settle(t)
		if got := w.sizes(); got != "3 3 3" {
			t.Errorf("with others: %s", got)
		}
	}
}

// A version and inputs that are asked for together arrive together, and inputs that cannot be
// read leave everything as it is.
func TestStagedInputsWithAVersion(t *testing.T) {
	w := sized(t, staged)
	inputs(`{"size": 2}`)(w.Platform)
	w.Platform.Spec.Bundle.Version = "1.1.0"
	w.apply(t)
	if got := w.sizes() + " at " + w.versionsOf(); got != "2! 1 1 at 1.1.0! 1.0.0 1.0.0" {
		t.Errorf("first there are %s", got)
	}
	d := w.settle(t)
	if w.sizes() != "2 2 2" || conditionsOf(d.Status) != installed {
		t.Errorf("then %s: %s", w.sizes(), said(d.Status))
	}
	w.Platform.Spec.InputsFrom = []v1alpha1.InputsReference{{Name: "lost"}}
	d = w.settle(t)
	if w.sizes() != "2 2 2" || !strings.Contains(said(d.Status), "ConfigMap strata-system/lost, which does not exist") || d.Status.Rollout == nil {
		t.Errorf("without a ConfigMap: %s, %s", w.sizes(), said(d.Status))
	}
	w.Platform.Spec.InputsFrom, w.Platform.Spec.Rollout.StageInputs = nil, false
	inputs(`{"size": 4}`)(w.Platform)
	w.apply(t)
	if got := w.sizes(); got != "4! 4! 4!" || w.Layers[0].Annotations[v1alpha1.PlatformInputsAnnotation] != "" {
		t.Errorf("not in stages: %s, %v", got, w.Layers[0].Annotations)
	}
}
