// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/decisions"
)

// decidedFor gives a layer the annotation that goes with its status.
func decidedFor(l *v1alpha1.AddonsLayer) {
	l.Annotations = map[string]string{v1alpha1.DecidedAnnotation: Decided(l, decisions.Seal{})}
}

// What was decided counts, and not what a status says of it: whoever may write the
// status of a layer may report, and bring about nothing.
func TestTrusted(t *testing.T) {
	back := func(changes ...layerChange) *v1alpha1.AddonsLayer {
		return failingLayer(0, append([]layerChange{goingBack, decidedFor}, changes...)...)
	}
	judgedAttempt := func(l *v1alpha1.AddonsLayer) {
		l.Status.Attempt.Allowed, l.Status.Attempt.Refused = []string{allowedPrune}, true
	}
	cases := map[string]struct {
		reason string
		layer  *v1alpha1.AddonsLayer
		want   func(*v1alpha1.AddonsLayerStatus)
	}{
		"nothing decided": {"most layers have nothing of the kind", failingLayer(0), nil},
		"decided":         {"what was decided is as the status says", back(), nil},
		"guard":           {"the same for a guard that was opened", failingLayer(0, judgedAttempt, decidedFor), nil},
		"forged": {
			"a status alone takes no layer back", failingLayer(0, goingBack),
			func(s *v1alpha1.AddonsLayerStatus) { s.Rollback = nil },
		},
		"taken away": {
			"a status alone lets no layer move on",
			back(func(l *v1alpha1.AddonsLayer) { l.Status.Rollback = nil }),
			func(s *v1alpha1.AddonsLayerStatus) { s.Rollback = failingLayer(0, goingBack).Status.Rollback },
		},
		"another deployment": {
			"what a layer is back at is not another one under the same name",
			back(func(l *v1alpha1.AddonsLayer) {
				l.Status.History[0].Digest, l.Status.History[0].Version = "sha256:evil", "9"
			}),
			func(s *v1alpha1.AddonsLayerStatus) {
				s.History[0].Digest, s.History[0].Version = firstDir.Digest, "1.0.0"
			},
		},
		"no history": {
			"it is known what the layer is back at",
			back(func(l *v1alpha1.AddonsLayer) { l.Status.History = nil }),
			func(s *v1alpha1.AddonsLayerStatus) {
				started := back().Status.History[0].Started
				s.History = []v1alpha1.HistoryEntry{{ID: "4", Version: "1.0.0", Revision: firstDir.Revision, Digest: firstDir.Digest, Result: v1alpha1.ResultDeployed, Started: started}}
			},
		},
		"forged guard": {
			"a status alone opens no guard, and has nothing been refused", failingLayer(0, judgedAttempt),
			func(s *v1alpha1.AddonsLayerStatus) { s.Attempt.Allowed, s.Attempt.Refused = nil, false },
		},
		"guard of another content": {
			"a guard is opened for one content",
			failingLayer(0, judgedAttempt, decidedFor, func(l *v1alpha1.AddonsLayer) { l.Status.Attempt.Digest = "sha256:other" }),
			func(s *v1alpha1.AddonsLayerStatus) { s.Attempt.Allowed, s.Attempt.Refused = nil, false },
		},
		"deletion that has begun": {"nothing stops it half way", failingLayer(0, deleted, begun, decidedFor), nil},
		"forged beginning of a deletion": {
			"a status alone takes no guard of a deletion away", failingLayer(0, deleted, begun),
			func(s *v1alpha1.AddonsLayerStatus) {
				meta.RemoveStatusCondition(&s.Conditions, v1alpha1.DeletingCondition)
			},
		},
		"no annotation that could be read": {
			"what cannot be read decides nothing",
			back(func(l *v1alpha1.AddonsLayer) { l.Annotations[v1alpha1.DecidedAnnotation] = "{" }),
			func(s *v1alpha1.AddonsLayerStatus) { s.Rollback = nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.layer.Status.DeepCopy()
			if tc.want != nil {
				tc.want(want)
			}
			got := Trusted(tc.layer, decisions.Seal{})
			if diff := cmp.Diff(*want, got.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if (got == tc.layer) != (tc.want == nil) {
				t.Errorf("%s: the layer is copied without need, or changed", tc.reason)
			}
			if again := Trusted(got, decisions.Seal{}); again != got {
				t.Errorf("%s: what is trusted is not", tc.reason)
			}
		})
	}
}
