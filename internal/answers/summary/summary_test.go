// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
)

var update = flag.Bool("update", false, "write the golden files again")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	release  = "helmreleases.helm.toolkit.fluxcd.io"
	revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"
)

// layer returns a deployed layer, changed as the options say.
func layer(name string, options ...func(*v1alpha1.AddonsLayer)) *v1alpha1.AddonsLayer {
	l := &v1alpha1.AddonsLayer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-49 * time.Hour))},
		Spec: v1alpha1.AddonsLayerSpec{
			Version: "1.0.0",
			Source:  v1alpha1.SourceSpec{Name: "addons", Namespace: "gotk-system", Path: "./addons/" + name},
		},
		Status: v1alpha1.AddonsLayerStatus{
			State: v1alpha1.StateDeployed, Version: "1.0.0", Revision: revision, ObservedGeneration: 2,
			Resources: []v1alpha1.Resource{
				{Kind: "Namespace", Name: "platform", Status: "Deployed"},
				{Kind: release, Namespace: "platform", Name: "a", Status: "Deployed"},
				{Kind: release, Namespace: "platform", Name: "b", Status: "Deployed"},
			},
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonDeployed,
				Message:            "version 1.0.0 of revision " + revision + " is deployed: 2 releases",
				LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute)),
			}},
		},
	}
	for _, option := range options {
		option(l)
	}
	return l
}

// at puts a layer into a state with a Ready condition.
func at(state v1alpha1.State, ready metav1.ConditionStatus, reason, message string) func(*v1alpha1.AddonsLayer) {
	return func(l *v1alpha1.AddonsLayer) {
		l.Status.State = state
		c := &l.Status.Conditions[0]
		c.Status, c.Reason, c.Message = ready, reason, message
	}
}

func status(of, status string) func(*v1alpha1.AddonsLayer) {
	return func(l *v1alpha1.AddonsLayer) {
		for i := range l.Status.Resources {
			if l.Status.Resources[i].Name == of {
				l.Status.Resources[i].Status = status
			}
		}
	}
}

var cases = []struct {
	layer   *v1alpha1.AddonsLayer
	blocked bool
	reason  string
}{
	{layer("deployed"), false, "a deployed layer has nothing to explain"},
	{
		layer("suspended", status("b", "Suspended")), false,
		"a suspended release neither blocks nor counts, but is named",
	},
	{
		layer("source-away", func(l *v1alpha1.AddonsLayer) {
			l.Status.Conditions = append(l.Status.Conditions, metav1.Condition{
				Type: v1alpha1.SourceReadyCondition, Status: metav1.ConditionFalse, Message: "the last artifact is used: no route to host",
			})
		}), false, "a source that cannot be updated blocks nothing yet, but is worth a word",
	},
	{
		layer("new", func(l *v1alpha1.AddonsLayer) {
			l.Generation = 1
			l.Status = v1alpha1.AddonsLayerStatus{ObservedGeneration: -1}
		}), true, "without a status nobody looks after the layer yet",
	},
	{
		layer("edited", func(l *v1alpha1.AddonsLayer) { l.Generation, l.Spec.Version = 3, "1.1.0" }), true,
		"an old status must not pass for the new specification's",
	},
	{
		layer("rolling", at(v1alpha1.StateApplying, metav1.ConditionUnknown, v1alpha1.ReasonApplying, "HelmRelease platform/b Running 'upgrade' action"),
			status("b", "Progressing"), func(l *v1alpha1.AddonsLayer) { l.Spec.Version = "1.1.0" }), false,
		"a roll-out gets on by itself; both versions are shown",
	},
	{
		layer("pending", at(v1alpha1.StatePending, metav1.ConditionUnknown, v1alpha1.ReasonSourceNotFound, "waits for GitRepository gotk-system/addons, which does not exist"),
			func(l *v1alpha1.AddonsLayer) { l.Status.Resources, l.Status.Version, l.Status.Revision = nil, "", "" }), true,
		"a layer that never had releases counts none",
	},
	{
		layer("waiting", at(v1alpha1.StateApplyPending, metav1.ConditionUnknown, v1alpha1.ReasonDependencyVersion, "waits for base@1.1.0: base is at 1.0.1, Deployed")), true,
		"another layer blocks this one",
	},
	{
		layer("behind", at(v1alpha1.StateApplyPending, metav1.ConditionUnknown, v1alpha1.ReasonDependencyNotDeployed, "waits for mid@1.0.0: mid has deployed no version yet, ApplyPending"),
			func(l *v1alpha1.AddonsLayer) {
				l.Status.BlockedBy = []v1alpha1.Cause{
					{Kind: "AddonsLayer", Name: "mid", Reason: v1alpha1.ReasonDependencyNotDeployed, Message: "mid is new"},
					{Depth: 1, Kind: "AddonsLayer", Name: "base", Reason: v1alpha1.ReasonDependencyNotDeployed, Message: "base is Failed"},
					{Depth: 2, Kind: "HelmRelease", Namespace: "platform", Name: "web", Reason: "InstallFailed", Message: "no\nsuch chart"},
				}
			}), true,
		"what is at the root says more than the next layer",
	},
	{
		layer("too-old", at(v1alpha1.StateK8sVersion, metav1.ConditionUnknown, v1alpha1.ReasonK8sVersion, "waits for Kubernetes v99.0: the cluster is at v1.36.3")), true,
		"the cluster blocks this one",
	},
	{
		layer("held", at(v1alpha1.StateHold, metav1.ConditionUnknown, v1alpha1.ReasonHold, "is on hold: driver freeze")), true,
		"somebody blocks this one",
	},
	{
		layer("failed", at(v1alpha1.StateFailed, metav1.ConditionFalse, v1alpha1.ReasonReleaseFailed, "HelmRelease platform/b:\n  no chart\tversion\n found "+strings.Repeat("x", 200)),
			status("b", "InstallFailed")), true,
		"a long message of several lines becomes one, cut where the table is not wide",
	},
	{
		layer("pruning", at(v1alpha1.StatePruning, metav1.ConditionUnknown, v1alpha1.ReasonPruning, "removes HelmRelease platform/b"), status("b", "Orphaned")), false,
		"what is about to go does not count, and goes by itself",
	},
	{
		layer("kept-alive", at(v1alpha1.StatePruning, metav1.ConditionUnknown, v1alpha1.ReasonDeletionBlocked, "is not deleted while layer apps depends on it")), true,
		"a deletion that waits for another layer is blocked",
	},
	{
		layer("flux", func(l *v1alpha1.AddonsLayer) {
			l.Status.Resources = append(l.Status.Resources, v1alpha1.Resource{Kind: "Kustomization.kustomize.toolkit.fluxcd.io", Name: "c", Status: "NotDeployed"})
			l.Spec.Source.Namespace = ""
		}), false, "Flux Kustomizations count like releases",
	},
	{layer("remote", on("fleet", "prod", "fleet/prod")), false, "a layer of another cluster names it"},
	{layer("remote-brief", on("", "prod", "strata-system/prod")), false, "the namespace that the layer leaves out is in its status"},
	{
		layer("remote-new", on("", "prod", ""), at(v1alpha1.StatePending, metav1.ConditionUnknown, v1alpha1.ReasonClusterNotReady, "waits for RemoteCluster strata-system/prod"),
			func(l *v1alpha1.AddonsLayer) { l.Status.Digest = "" }), true,
		"a layer that is nowhere yet does not move",
	},
	{layer("moves", on("fleet", "b", "fleet/a")), false, "both clusters are shown of a layer on its way"},
	{layer("moves-out", on("fleet", "b", "")), false, "this cluster has no name"},
	{layer("moves-home", on("", "", "fleet/a")), false, "nor has it as the one where the layer belongs"},
	{
		layer("lost", on("fleet", "prod", "fleet/prod"), status("a", "Suspended"), status("b", "Suspended"),
			at(v1alpha1.StateUnknown, metav1.ConditionUnknown, v1alpha1.ReasonClusterUnreachable, "RemoteCluster fleet/prod has not answered since noon: no route to host")), true,
		"its cluster is away",
	},
	{
		layer("behind-there", on("fleet", "prod", "fleet/prod"), at(v1alpha1.StateApplyPending, metav1.ConditionUnknown, v1alpha1.ReasonDependencyNotDeployed, "waits for mid"),
			func(l *v1alpha1.AddonsLayer) {
				l.Status.BlockedBy = []v1alpha1.Cause{
					{Kind: "AddonsLayer", Name: "mid", Reason: v1alpha1.ReasonDependencyNotDeployed, Message: "mid is Applying"},
					{Depth: 1, Kind: "Deployment", Cluster: "fleet/prod", Namespace: "platform", Name: "web", Reason: "NotReady", Message: "0 of 2 replicas"},
				}
			}), true,
		"what is at the root is on another cluster, and is looked for there",
	},
}

// on puts a layer on a cluster, or on this one where there is no name, and says
// which one it is deployed on.
func on(namespace, name, has string) func(*v1alpha1.AddonsLayer) {
	return func(l *v1alpha1.AddonsLayer) {
		if name != "" {
			l.Spec.Cluster = &v1alpha1.ClusterReference{Namespace: namespace, Name: name}
		}
		l.Status.Digest, l.Status.Cluster = "sha256:0", has
	}
}

func TestBlocked(t *testing.T) {
	for _, c := range cases {
		t.Run(c.layer.Name, func(t *testing.T) {
			if got := summary.Of(c.layer, now).Blocked; got != c.blocked {
				t.Errorf("blocked is %t: %s", got, c.reason)
			}
		})
	}
}

func TestTables(t *testing.T) {
	for _, wide := range []bool{false, true} {
		t.Run(fmt.Sprintf("wide=%t", wide), func(t *testing.T) {
			var rows [][]string
			for _, c := range cases {
				rows = append(rows, summary.Of(c.layer, now).Cells(wide))
			}
			name := "table.txt"
			if wide {
				name = "table-wide.txt"
			}
			golden(t, name, table(t, summary.Header(wide), rows))
		})
	}
}

// table aligns columns.
func table(t *testing.T, header []string, rows [][]string) string {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, cells := range rows {
		if len(cells) != len(header) {
			t.Errorf("%d cells below %d columns", len(cells), len(header))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// golden compares text with a file, but for spaces at the ends of lines.
func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n")
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), go test -update writes it again:\n%s", path, diff)
	}
}

// The order in which a status lists its resources is no part of the answer.
func TestTheOrderOfResourcesDoesNotMatter(t *testing.T) {
	for _, c := range cases {
		other := c.layer.DeepCopy()
		slices.Reverse(other.Status.Resources)
		slices.Reverse(other.Status.Conditions)
		if diff := cmp.Diff(summary.Of(c.layer, now), summary.Of(other, now)); diff != "" {
			t.Errorf("layer %s (-listed +reversed):\n%s", c.layer.Name, diff)
		}
	}
}

func TestChangedDoesNotCountTime(t *testing.T) {
	l := layer("base")
	before, after := summary.Of(l, now), summary.Of(l, now.Add(time.Hour))
	if before == after || after.Changed(before) {
		t.Errorf("an hour later, %+v is not %+v", after, before)
	}
	l.Status.State = v1alpha1.StateHold
	if !summary.Of(l, now).Changed(before) {
		t.Error("another state is no change")
	}
}
