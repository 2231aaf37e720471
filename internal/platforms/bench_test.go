// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/strata-project/strata/api/v1alpha1"
)

// BenchmarkSteady looks at 500 clusters of 20 layers each on which nothing is to be
// done.
func BenchmarkSteady(b *testing.B) {
	var written []string
	for i := range 20 {
		text := fmt.Sprintf("layer%02d", i)
		if i > 0 {
			text += fmt.Sprintf(" layer%02d when:!inputs.mesh", i-1)
		}
		written = append(written, text)
	}
	all := intstr.FromString("100%")
	w := newWorld(platform("p", "", inputs(`{"mesh": false}`), func(p *v1alpha1.Platform) { p.Spec.Rollout.MaxUnavailable = &all }),
		withInputs(bundle("1.0.0", "", written...), meshInput))
	for i := range 500 {
		name := fmt.Sprintf("c%03d", i)
		w.cluster(name, nil)
		on(name)(w.Platform)
	}
	d := Decide(w.Observation)
	w.Platform.Status = d.Status
	for i, layer := range d.Write {
		layer = w.state(layer, v1alpha1.StateDeployed, "all is well")
		layer.ResourceVersion, layer.Status.Version = fmt.Sprint(i), layer.Spec.Version
		w.Layers = append(w.Layers, layer)
	}
	for b.Loop() {
		if d := Decide(w.Observation); len(d.Write) > 0 || conditionsOf(d.Status) != installed {
			b.Fatalf("%d writes, %s", len(d.Write), said(d.Status))
		}
	}
}
