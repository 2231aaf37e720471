// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/web/webtest"
)

// planned has a cluster answer what a commit would change, and what now differs.
func planned(cluster *webtest.Played) {
	cluster.Offer(live.Repository{Folder: "/home/me/addons", Revisions: []repository.Revision{
		{Name: "HEAD", Commit: "3f2c1ab49e0d", Title: "Raise the mesh to 2.1.0", At: "2026-12-01T11:00:00Z"},
		{Name: "gateway-4", Commit: "77ab01c2d3e4", Title: "Go to gateway 4 and drop the old adapter", At: "2026-12-01T11:40:00Z"},
	}})
	of := func(kind, namespace, name string) preview.Object {
		return preview.Object{Kind: kind, Namespace: namespace, Name: name}
	}
	changes := func(objects ...[]string) (found []preview.ObjectChange) {
		for _, lines := range objects {
			found = append(found, preview.ObjectChange{Verb: map[byte]string{'+': "create", '-': "delete", '~': "change"}[lines[0][0]], Object: of("X", "", ""), Lines: lines})
		}
		return found
	}
	p := &preview.Plan{
		From: "gateway-4@sha1:77ab01c2d3e4", Cluster: "https://main.example.com:6443", Kubernetes: "v1.36.3",
		Actions: []preview.Action{
			{
				Wave: 1, Layer: "mesh", Version: "2.2.0", Action: preview.Upgrade, Object: of("HelmRelease", "mesh", "gateway"), From: "3.9.1", To: "4.0.0", File: "mesh/gateway.yaml",
				Changes: changes(
					[]string{"~ Deployment/mesh/gateway", "  spec.replicas: 2 -> 3", `  spec.template.spec.containers[gateway].image: "gateway:3.9.1" -> "gateway:4.0.0"`},
					[]string{"+ PodDisruptionBudget/mesh/gateway"}, []string{"- ConfigMap/mesh/gateway-legacy"},
					[]string{"~ Secret/mesh/gateway-tls", "  data.tls.key: (hidden)"},
				),
			},
			{Wave: 2, Layer: "mesh", Version: "2.2.0", Action: preview.Install, Object: of("HelmRelease", "mesh", "telemetry"), To: "1.2.0", File: "mesh/telemetry.yaml"},
			{Wave: 3, Layer: "mesh", Version: "2.2.0", Action: preview.Prune, Object: of("HelmRelease", "mesh", "adapter"), From: "0.4.2", Note: "after its grace", After: "10m0s"},
		},
		Blocked: []preview.Layer{{Layer: "apps", Version: "0.9.0", Verdict: preview.Refuse, Reason: "WouldBreakDependants", Message: "apps allows mesh >=2.1.0 <2.2"}},
		Counts:  map[preview.Verb]int{preview.Upgrade: 1, preview.Install: 1, preview.Prune: 1, preview.Refuse: 1},
		Notes:   []string{"charts never see values of Secrets, but what stands in for them"},
	}
	cluster.Answer(live.Request{Of: live.OfGit, Revision: "gateway-4"}, live.Preview{Done: true, At: now, Plan: p})
	back := *p
	back.From, back.Actions = "going back to deployment 4 of layer mesh", p.Actions[:1]
	back.Blocked, back.Counts = nil, map[preview.Verb]int{preview.Upgrade: 1}
	cluster.Answer(live.Request{Of: live.OfRollback, Layer: "mesh", To: "4"}, live.Preview{Done: true, At: now, Plan: &back})
	cluster.Answer(live.Request{Of: live.OfDrift}, live.Preview{Done: true, At: now, Drift: []drift.Layer{
		{Layer: "base", Objects: []drift.Object{
			{Release: "kube-system/metrics-server", ObjectChange: changes([]string{"~ Deployment/kube-system/metrics-server", "  spec.replicas: 2 -> 1"})[0]},
			{Release: "kube-system/adapter", ObjectChange: changes([]string{"- Service/kube-system/adapter"})[0]},
		}},
		{Layer: "mesh", Unknown: []string{"HelmRelease mesh/gateway: its chart cannot be had: the registry does not answer"}},
	}})
}
