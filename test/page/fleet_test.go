// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/web/webtest"
	"github.com/strata-project/strata/test/browser"
)

// kinds of layers that clusters of a fleet have.
var layerNames = []string{"bootstrap", "network", "storage", "ingress", "monitoring", "logging", "policy", "mesh", "database", "apps"}

// fleet returns a snapshot of clusters by layers, of which some are in trouble.
func fleet(clusters, layers int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Now: now, Unread: map[snapshot.Part]error{}}
	at := metav1.NewTime(now.Add(-time.Hour))
	condition := func(kind string, good bool, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: map[bool]metav1.ConditionStatus{true: "True", false: "False"}[good], Reason: reason, Message: message, LastTransitionTime: at}
	}
	for c := range clusters {
		name := fmt.Sprintf("edge-%04d", c)
		ends := metav1.NewTime(now.Add(time.Duration(c+1) * 24 * time.Hour))
		cluster := &v1alpha1.RemoteCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Generation: 1, Labels: map[string]string{"region": []string{"eu", "us", "ap"}[c%3]}},
			Status: v1alpha1.RemoteClusterStatus{
				ObservedGeneration: 1, Version: []string{"v1.36.3", "v1.35.7"}[c%2], CredentialsExpire: &ends,
				Conditions: []metav1.Condition{condition(v1alpha1.ReadyCondition, true, v1alpha1.ReasonReachable, "the API server answers")},
			},
		}
		if c%50 == 7 {
			cluster.Status.Conditions[0] = condition(v1alpha1.ReadyCondition, false, v1alpha1.ReasonUnreachable, "the cluster cannot be reached: no route to host")
			seen := metav1.NewTime(now.Add(-2 * time.Hour))
			cluster.Status.LastSeen = &seen
		}
		if c == 0 {
			cluster.Status.Conditions = append(cluster.Status.Conditions, condition(v1alpha1.CredentialsExpiringCondition, true, v1alpha1.ReasonCredentialsExpiring, "the credentials end tomorrow"))
		}
		s.Clusters = append(s.Clusters, cluster)
		for l := range layers {
			layer := &v1alpha1.AddonsLayer{
				ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("main-%s-%s", name, layerNames[l%len(layerNames)]), Generation: 1,
					Labels: map[string]string{v1alpha1.PlatformLabel: "main", v1alpha1.PlatformLayerLabel: layerNames[l%len(layerNames)]},
				},
				Spec: v1alpha1.AddonsLayerSpec{Version: "1.4.0", Cluster: &v1alpha1.ClusterReference{Namespace: "fleet", Name: name}},
				Status: v1alpha1.AddonsLayerStatus{
					State: v1alpha1.StateDeployed, Version: "1.4.0", ObservedGeneration: 1,
					Conditions: []metav1.Condition{condition(v1alpha1.ReadyCondition, true, v1alpha1.ReasonDeployed, "version 1.4.0 is deployed")},
				},
			}
			if l > 0 {
				layer.Spec.Prereqs.DependsOn = []string{fmt.Sprintf("main-%s-%s", name, layerNames[(l-1)%len(layerNames)])}
			}
			switch {
			case c%40 == 3 && l == 3:
				layer.Status.State = v1alpha1.StateFailed
				layer.Status.Conditions[0] = condition(v1alpha1.ReadyCondition, false, v1alpha1.ReasonReleaseFailed, "HelmRelease ingress has failed")
				layer.Status.BlockedBy = []v1alpha1.Cause{{Kind: "HelmRelease", Namespace: "fleet", Name: name + "-ingress", Reason: "InstallFailed", Message: "context deadline exceeded"}}
			case c%40 == 3 && l > 3:
				layer.Status.State = v1alpha1.StateApplyPending
				layer.Status.Conditions[0] = condition(v1alpha1.ReadyCondition, false, v1alpha1.ReasonDependencyNotDeployed, "waits for the layer before it")
				layer.Status.BlockedBy = []v1alpha1.Cause{{Kind: v1alpha1.AddonsLayerKind, Name: layer.Spec.Prereqs.DependsOn[0], Reason: v1alpha1.ReasonDependencyNotDeployed}}
			case c%40 == 5 && l == layers-1:
				layer.Status.State = v1alpha1.StateApplying
				layer.Status.Conditions[0].Status = metav1.ConditionUnknown
			}
			s.Layers = append(s.Layers, layer)
		}
	}
	s.HostClusters = []*v1alpha1.HostCluster{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "rack-1", Generation: 1},
		Status: v1alpha1.HostClusterStatus{
			ObservedGeneration: 1, Version: "v1.36.3", Healthy: "4/5", Etcd: "2/3", CertificatesEnd: &at,
			Hosts:      []v1alpha1.HostStatus{{Name: "cp-2", Role: "control-plane", Class: "Unreachable", Note: "no route to host"}},
			Conditions: []metav1.Condition{condition(v1alpha1.ReadyCondition, false, "HostAway", "cp-2 does not answer; etcd has 2 of 3 members, and no other may go")},
		},
	}}
	s.Claims = []*v1alpha1.CapabilityClaim{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-db", Generation: 1},
		Status:     v1alpha1.CapabilityClaimStatus{Conditions: []metav1.Condition{condition(v1alpha1.ReadyCondition, false, v1alpha1.ReasonNoProvider, "there is no provider of database/postgresql")}},
	}}
	return s
}

// A fleet is looked at in windows, those in trouble first, and what the document holds does
// not grow with it.
func TestFleetIsShownInWindows(t *testing.T) {
	cluster := webtest.Play(fleet(1000, 10), nil)
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "1000 clusters, 10000 layers")
	tab.Says(".graph .left", "and 9800 more")
	tab.Click("nav a[href='/clusters']")
	tab.Says("#map-title", "Clusters by layers")
	tab.Says(".bar", "45 failed, 25 under way, 930 well")
	tab.Until("document.querySelectorAll('.map tbody tr').length === 50")
	tab.Until("document.querySelector('.map tbody tr').textContent.includes('edge-0003')")
	if nodes := tab.Nodes(); nodes > 5000 {
		t.Errorf("the document has %d nodes", nodes)
	}
	tab.Click(".pages a")
	tab.Says(".pages", "51 to 100 of 1000")
	tab.Until("location.search.includes('from=50')")

	// Clusters by their labels; a selector that cannot be understood is said to be one.
	tab.Click(".bar input")
	tab.Press("region=eu", browser.Enter)
	tab.Says(".bar", "334 clusters")
	tab.Until("location.search === '?labels=region%3Deu'")
	tab.Expect("400 (Bad Request)")
	tab.Click(".bar input")
	tab.Press("=(", browser.Enter)
	tab.Says(".fresh", "the labels cannot be understood")
	tab.Go(address[:len(address)-len(pathOf(address))] + "/clusters?labels=region%3Dus")
	tab.Says(".bar", "333 clusters")

	// One cell is one click from its answer, beside the map, and by an address that can be sent.
	tab.Click(".cell.Failed")
	tab.Says(".panel .chain", "InstallFailed")
	tab.Until("document.querySelector('.map') !== null && location.search.includes('layer=')")
	tab.Click(".panel .close")
	tab.Until("!document.querySelector('.panel') && document.querySelector('.map') !== null")

	// What changes is drawn where it is.
	calm := fleet(1000, 10)
	for _, layer := range calm.Layers {
		layer.Status.State, layer.Status.BlockedBy = v1alpha1.StateDeployed, nil
		layer.Status.Conditions[0].Status = metav1.ConditionTrue
	}
	cluster.Set(calm)
	tab.Until("document.querySelectorAll('.cell.Failed').length === 1") // That of the legend.
}

// Ten thousand layers that change at once, again and again, are drawn as they are in the
// end; the page is used meanwhile, and neither its document nor its scripts grow.
func TestAllChangesAtOnce(t *testing.T) {
	s := fleet(1000, 10)
	cluster := webtest.Play(s, nil)
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "1000 clusters, 10000 layers")
	tab.Press("2")
	tab.Says(".bar", "45 failed, 25 under way, 930 well")
	before := tab.Heap()
	for round := range 20 {
		cluster.Set(all(s, []v1alpha1.State{v1alpha1.StateFailed, v1alpha1.StateApplying, v1alpha1.StateDeployed}[round%3]))
		if browser.Value[int](tab, "document.querySelectorAll('.map tbody tr').length") != 50 {
			t.Error("the map is gone while it changes")
		}
	}
	cluster.Set(all(s, v1alpha1.StateHold))
	tab.Says("h1", "10000 layers: 10000 waiting")
	tab.Until("document.querySelectorAll('.map .cell.Waiting').length === 500")
	if nodes, heap := tab.Nodes(), tab.Heap(); nodes > 5000 || heap > before+8<<20 {
		t.Errorf("the document has %d nodes, and the scripts hold %d bytes more", nodes, heap-before)
	}
}

// all returns a snapshot with all layers in one state.
func all(s *snapshot.Snapshot, state v1alpha1.State) *snapshot.Snapshot {
	next := *s
	next.Layers = make([]*v1alpha1.AddonsLayer, len(s.Layers))
	ready := map[v1alpha1.State]metav1.ConditionStatus{v1alpha1.StateDeployed: "True", v1alpha1.StateApplying: "Unknown"}[state]
	for i, layer := range s.Layers {
		layer = layer.DeepCopy()
		layer.Status.State, layer.Status.BlockedBy = state, nil
		layer.Status.Conditions[0].Status, layer.Status.Conditions[0].Reason = metav1.ConditionStatus(cmp.Or(string(ready), "False")), string(state)
		next.Layers[i] = layer
	}
	return &next
}

// While nothing changes, no script of the page runs, whatever view is open: no clock begins one.
func TestNothingRunsAtRest(t *testing.T) {
	cluster := recorded(t, "platform.yaml")
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Count()
	tab.Go(address)
	tab.Says("h1", "5 layers")
	for _, path := range []string{"/layers/mesh", "/clusters", "/platforms", "/plan"} {
		tab.Go(strings.TrimSuffix(address, pathOf(address)) + path)
		tab.Says("h1", "5 layers")
		tab.Says(".fresh", "live")
		tab.AtRest()
	}
}

// pathOf returns what is behind the host of an address.
func pathOf(address string) string {
	for i := len("http://"); i < len(address); i++ {
		if address[i] == '/' {
			return address[i:]
		}
	}
	return ""
}

// BenchmarkFleet says what a landing on a fleet costs: the time to the verdict on the screen
// and to the first paint, what is sent, what the document and its scripts hold, and how much
// more memory the tab has than an empty one, at rest and after much has changed.
func BenchmarkFleet(b *testing.B) {
	for _, size := range []struct{ clusters, layers, rounds int }{{100, 10, 0}, {1000, 10, 0}, {1000, 10, 20}} {
		for _, view := range []string{"/", "/clusters"} {
			b.Run(fmt.Sprintf("clusters=%d/changes=%d/view=%s", size.clusters, size.rounds*size.clusters*size.layers, view), func(b *testing.B) {
				s := fleet(size.clusters, size.layers)
				cluster := webtest.Play(s, nil)
				address := serve(b, cluster)
				at := address[:len(address)-len(pathOf(address))] + view
				var tab *browser.Tab
				var empty int64
				// One landing each: a document of before would be counted, too.
				for b.Loop() {
					if tab != nil {
						b.Fatal("run it with -benchtime 1x")
					}
					tab = browser.Open(b)
					tab.Go("about:blank")
					tab.Nodes()
					empty = settled(tab)
					tab.Go(address)
					tab.Until("document.cookie === '' && location.search === ''")
					tab.Go(at)
					tab.Until(`performance.getEntriesByName("verdict").length > 0 && performance.getEntriesByType("paint").length > 1`)
				}
				for round := range size.rounds {
					cluster.Set(all(s, []v1alpha1.State{v1alpha1.StateFailed, v1alpha1.StateDeployed}[round%2]))
					time.Sleep(100 * time.Millisecond) // As fast as changes are told of.
				}
				took := func(expression string) float64 { return browser.Value[float64](tab, expression) }
				b.ReportMetric(took(`performance.getEntriesByName("verdict")[0].startTime`), "verdict-ms")
				b.ReportMetric(took(`performance.getEntriesByName("first-contentful-paint")[0].startTime`), "paint-ms")
				b.ReportMetric(took(`performance.getEntriesByType("resource").length + 1`), "requests")
				b.ReportMetric(took(`performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).reduce((sum, e) => sum + e.transferSize, 0)`)/1024, "files-kB")
				b.ReportMetric(sentFirst(tab, at)/1024, "stream-kB")
				b.ReportMetric(float64(tab.Nodes()), "nodes")
				b.ReportMetric(float64(tab.Heap())/(1<<20), "heap-MB")
				b.ReportMetric(float64(settled(tab)-empty)/(1<<20), "more-MB")
			})
		}
	}
}

// settled returns the memory of a tab once the browser has given back what drawing took.
func settled(tab *browser.Tab) int64 {
	least := tab.Resident()
	for range 10 {
		time.Sleep(200 * time.Millisecond)
		least = min(least, tab.Resident())
	}
	return least
}

// sentFirst returns how many bytes the first message of a stream has, as it is sent.
func sentFirst(tab *browser.Tab, at string) float64 {
	view := ""
	if pathOf(at) == "/clusters" {
		view = "view=clusters"
	}
	return browser.Value[float64](tab, fmt.Sprintf(`(async () => {
		const reader = (await fetch("/stream?%s")).body.getReader();
		const parts = [];
		for (let text = ""; !text.includes("\n\n");) {
			const read = (await reader.read()).value;
			parts.push(read);
			text += new TextDecoder().decode(read);
		}
		reader.cancel();
		const packed = new Response(new Blob(parts).stream().pipeThrough(new CompressionStream("gzip")));
		return (await packed.arrayBuffer()).byteLength;
	})()`, view))
}
