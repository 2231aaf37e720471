// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// platformReader lists Platforms.
type platformReader struct {
	client.Reader
	items []v1alpha1.Platform
	err   error
}

func (r *platformReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.PlatformList).Items = r.items
	return r.err
}

func TestPlatformMetrics(t *testing.T) {
	edge := v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	edge.Spec.Bundle = &v1alpha1.PlatformBundle{Family: "base"}
	since := metav1.Unix(1000, 0)
	stage := v1alpha1.StageStatus{Name: "production", State: "Active", Total: 4, Updated: 1, Approval: "production@1.1.0", WaitingSince: &since}
	edge.Status = v1alpha1.PlatformStatus{
		Version: "1.1.0", Clusters: v1alpha1.ClusterCount{Total: 5, Ready: 2, Waiting: 3}, Layers: v1alpha1.LayerCount{Deployed: 9, Total: 10},
		Stages:     []v1alpha1.StageStatus{{Name: "canary", State: "Done", Total: 1, Updated: 1}, stage, stage},
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: "Waiting"}},
	}
	reader := &platformReader{items: []v1alpha1.Platform{edge, {ObjectMeta: metav1.ObjectMeta{Name: "new"}}}}
	collector := NewPlatformMetrics(reader)
	const want = `
# HELP strata_platform_clusters How many clusters of each Platform are in each state.
# TYPE strata_platform_clusters gauge
strata_platform_clusters{platform="edge",state="failed"} 0
strata_platform_clusters{platform="edge",state="progressing"} 0
strata_platform_clusters{platform="edge",state="ready"} 2
strata_platform_clusters{platform="edge",state="unreachable"} 0
strata_platform_clusters{platform="edge",state="waiting"} 3
strata_platform_clusters{platform="new",state="failed"} 0
strata_platform_clusters{platform="new",state="progressing"} 0
strata_platform_clusters{platform="new",state="ready"} 0
strata_platform_clusters{platform="new",state="unreachable"} 0
strata_platform_clusters{platform="new",state="waiting"} 0
# HELP strata_platform_info The bundle of each Platform, and the version that its clusters are moved to.
# TYPE strata_platform_info gauge
strata_platform_info{family="base",platform="edge",version="1.1.0"} 1
# HELP strata_platform_layers How many layers each Platform has.
# TYPE strata_platform_layers gauge
strata_platform_layers{platform="edge"} 10
strata_platform_layers{platform="new"} 0
# HELP strata_platform_layers_deployed How many of the layers of each Platform are deployed.
# TYPE strata_platform_layers_deployed gauge
strata_platform_layers_deployed{platform="edge"} 9
strata_platform_layers_deployed{platform="new"} 0
# HELP strata_platform_ready Whether each Platform is Ready: 1, 0, or -1 for unknown.
# TYPE strata_platform_ready gauge
strata_platform_ready{platform="edge"} -1
strata_platform_ready{platform="new"} -1
# HELP strata_platform_reason The reason of each Platform's Ready condition: 1 for the one it has.
# TYPE strata_platform_reason gauge
strata_platform_reason{platform="edge",reason="Waiting"} 1
# HELP strata_platform_stage The state of each stage of each Platform: 1 for the one it is in.
# TYPE strata_platform_stage gauge
strata_platform_stage{platform="edge",stage="canary",state="Done"} 1
strata_platform_stage{platform="edge",stage="production",state="Active"} 1
# HELP strata_platform_stage_approval_since_timestamp_seconds Since when each stage of each Platform has waited for an approval, in seconds since 1970.
# TYPE strata_platform_stage_approval_since_timestamp_seconds gauge
strata_platform_stage_approval_since_timestamp_seconds{platform="edge",stage="production"} 1000
# HELP strata_platform_stage_clusters How many clusters each stage of each Platform has.
# TYPE strata_platform_stage_clusters gauge
strata_platform_stage_clusters{platform="edge",stage="canary"} 1
strata_platform_stage_clusters{platform="edge",stage="production"} 4
# HELP strata_platform_stage_clusters_updated How many clusters of each stage of each Platform are well at its version.
# TYPE strata_platform_stage_clusters_updated gauge
strata_platform_stage_clusters_updated{platform="edge",stage="canary"} 1
strata_platform_stage_clusters_updated{platform="edge",stage="production"} 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
		t.Errorf("lint says %v, %v", problems, err)
	}
	reader.err = errors.New("the cache has not started")
	if got := testutil.CollectAndCount(collector); got != 0 {
		t.Errorf("%d metrics although the cache cannot answer", got)
	}
}
