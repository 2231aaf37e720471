// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/summary"
)

// cluster returns a RemoteCluster that answers, changed as the options say.
func cluster(name string, options ...func(*v1alpha1.RemoteCluster)) *v1alpha1.RemoteCluster {
	seen, expire := metav1.NewTime(now.Add(-72*time.Hour)), metav1.NewTime(now.Add(90*24*time.Hour))
	c := &v1alpha1.RemoteCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Generation: 2, CreationTimestamp: metav1.NewTime(now.Add(-49 * time.Hour))},
		Spec:       v1alpha1.RemoteClusterSpec{KubeConfig: v1alpha1.KubeConfigSource{SecretRef: v1alpha1.SecretKeyReference{Name: name + "-kubeconfig"}}},
		Status: v1alpha1.RemoteClusterStatus{
			ObservedGeneration: 2, Version: "v1.30.1", Endpoint: "https://" + name + ".example.com:6443", LastSeen: &seen, CredentialsExpire: &expire,
			ClusterUID: "uid-of-" + name,
			Layers:     v1alpha1.LayerCount{Deployed: 2, Total: 3},
		},
	}
	says(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable, "the API server answers")(c)
	says(v1alpha1.ReachableCondition, metav1.ConditionTrue, v1alpha1.ReasonReachable, "the API server answers")(c)
	says(v1alpha1.CredentialsExpiringCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsValid, "the credentials end later")(c)
	for _, option := range options {
		option(c)
	}
	return c
}

// says gives a RemoteCluster a condition.
func says(kind string, status metav1.ConditionStatus, reason, message string) func(*v1alpha1.RemoteCluster) {
	return func(c *v1alpha1.RemoteCluster) {
		c.Status.Conditions = slices.DeleteFunc(c.Status.Conditions, func(other metav1.Condition) bool { return other.Type == kind })
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

var clusterCases = []struct {
	cluster *v1alpha1.RemoteCluster
	blocked bool
	reason  string
}{
	{cluster("prod"), false, "a cluster that answers has nothing to explain, and was seen now whatever its status has written"},
	{
		cluster("new", func(c *v1alpha1.RemoteCluster) {
			c.Status = v1alpha1.RemoteClusterStatus{ObservedGeneration: -1}
		}), true, "without conditions nobody looks after it yet",
	},
	{cluster("edited", func(c *v1alpha1.RemoteCluster) { c.Generation = 3 }), true, "an old status must not pass for the new specification's"},
	{
		cluster("pending", func(c *v1alpha1.RemoteCluster) { c.Status = v1alpha1.RemoteClusterStatus{ObservedGeneration: 2} },
			says(v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "waits for Secret fleet/pending-kubeconfig, which does not exist"),
			says(v1alpha1.ReachableCondition, metav1.ConditionUnknown, v1alpha1.ReasonPending, "the cluster has not been asked yet")), true,
		"of a cluster that is yet to come nothing is known",
	},
	{
		cluster("away", says(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "the cluster cannot be reached:\n no route "+strings.Repeat("x", 200)),
			says(v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "no route")), true,
		"a long message of several lines becomes one, cut where the table is not wide",
	},
	{
		cluster("never", func(c *v1alpha1.RemoteCluster) {
			c.Status.LastSeen, c.Status.Version, c.Status.ClusterUID = nil, "", ""
		},
			says(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "the cluster cannot be reached: wrong authority"),
			says(v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "wrong authority")), true,
		"one that has never answered",
	},
	{
		cluster("ending", says(v1alpha1.CredentialsExpiringCondition, metav1.ConditionTrue, v1alpha1.ReasonCredentialsExpiring, "the credentials end at 2026-03-03T12:00:00Z"),
			func(c *v1alpha1.RemoteCluster) {
				c.Status.CredentialsExpire = &metav1.Time{Time: now.Add(48 * time.Hour)}
			}), false, "credentials that end block nothing yet, but are worth a word",
	},
	{
		cluster("ended", says(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRefused, "the cluster cannot be reached: the credentials are not accepted"),
			says(v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonCredentialsRefused, "the credentials are not accepted"),
			func(c *v1alpha1.RemoteCluster) { c.Status.CredentialsExpire = &metav1.Time{Time: now} }), true,
		"credentials that have ended are said to have",
	},
	{
		cluster("behind", func(c *v1alpha1.RemoteCluster) {
			c.Spec.KubeConfig.ClusterRef, c.Status.CredentialsExpire = &v1alpha1.LocalClusterReference{Name: "edge"}, nil
			c.Spec.KubeConfig.SecretRef.Namespace = "tenants"
		}), false, "the Secret may lie on another cluster; a password has no end",
	},
}

func TestClusterBlocked(t *testing.T) {
	for _, c := range clusterCases {
		if got := summary.OfCluster(c.cluster, now).Blocked; got != c.blocked {
			t.Errorf("%s: blocked is %t: %s", c.cluster.Name, got, c.reason)
		}
	}
}

func TestClusterTables(t *testing.T) {
	for _, wide := range []bool{false, true} {
		t.Run(fmt.Sprintf("wide=%t", wide), func(t *testing.T) {
			var rows [][]string
			for _, c := range clusterCases {
				rows = append(rows, summary.OfCluster(c.cluster, now).Cells(wide))
			}
			name := "clusters.txt"
			if wide {
				name = "clusters-wide.txt"
			}
			golden(t, name, table(t, summary.ClusterHeader(wide), rows))
		})
	}
}

// The order in which a status lists its conditions is no part of the answer.
func TestTheOrderOfConditionsDoesNotMatter(t *testing.T) {
	for _, c := range clusterCases {
		other := c.cluster.DeepCopy()
		slices.Reverse(other.Status.Conditions)
		if diff := cmp.Diff(summary.OfCluster(c.cluster, now), summary.OfCluster(other, now)); diff != "" {
			t.Errorf("%s (-listed +reversed):\n%s", c.cluster.Name, diff)
		}
	}
}

// Whoever follows clusters is told of changes, and not of the time that passes.
func TestLastingDoesNotCountTime(t *testing.T) {
	for _, c := range clusterCases {
		before, after := summary.OfCluster(c.cluster, now), summary.OfCluster(c.cluster, now.Add(time.Hour))
		if before == after || before.Lasting() != after.Lasting() {
			t.Errorf("%s: an hour later, %+v is not %+v", c.cluster.Name, after.Lasting(), before.Lasting())
		}
	}
	well := summary.OfCluster(cluster("prod"), now)
	for what, other := range map[string]*v1alpha1.RemoteCluster{
		"the loss of a cluster": cluster("prod", says(v1alpha1.ReachableCondition, metav1.ConditionFalse, v1alpha1.ReasonUnreachable, "no route")),
		"another count":         cluster("prod", func(c *v1alpha1.RemoteCluster) { c.Status.Layers.Deployed = 3 }),
		"the end of credentials": cluster("prod", func(c *v1alpha1.RemoteCluster) {
			c.Status.CredentialsExpire = &metav1.Time{Time: now.Add(-time.Hour)}
		}),
	} {
		if summary.OfCluster(other, now).Lasting() == well.Lasting() {
			t.Errorf("%s is no change", what)
		}
	}
}
