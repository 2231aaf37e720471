// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"time"

	"github.com/strata-project/strata/internal/decisions"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/strata-project/strata/api/v1alpha1"
)

// ProgressLag is how long a status waits that differs only in how clusters and layers get
// on: a roll-out changes that with each step of each layer.
const ProgressLag = 2 * time.Second

// OnlyProgress tells whether a decision says nothing new of a platform but how clusters
// and layers get on. A cluster that fails or answers no more, a stage that ends, a version
// and whatever was decided are no matter of progress, and neither is a condition that
// becomes another one.
func OnlyProgress(platform *v1alpha1.Platform, decision Decision, seal decisions.Seal) bool {
	return !decision.Gone && platform.Annotations[v1alpha1.DecidedAnnotation] == Decided(platform, decision.Status, seal) &&
		!equality.Semantic.DeepEqual(platform.Status, decision.Status) &&
		equality.Semantic.DeepEqual(settled(platform.Status), settled(decision.Status))
}

// settled returns of a status what is no matter of progress.
func settled(s v1alpha1.PlatformStatus) v1alpha1.PlatformStatus {
	s.Clusters.Ready, s.Clusters.Progressing, s.Clusters.Waiting = 0, 0, 0
	s.Layers.Deployed = 0
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].Updated, s.Stages[i].Moving, s.Stages[i].Waiting = 0, 0, 0
	}
	s.Worst = slices.Clone(s.Worst)
	for i := range s.Worst {
		s.Worst[i].Reason = ""
	}
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	return s
}
