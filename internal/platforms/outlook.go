// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/rollout"
)

// Outlook is a decision with what it was made from, for people who ask why.
type Outlook struct {
	Decision
	// Target is the version that the clusters are to be at in the end; empty for a
	// platform without a bundle, and where there is none to go to.
	Target string
	// Stages of the roll-out, and the one of them that is at work; none where there
	// is no roll-out.
	Stages []rollout.StageProgress
	Stage  string
	// Why says why no cluster begins to move; empty where one does.
	Why string
	// Clusters that are meant, by their names.
	Clusters []ClusterOutlook
}

// ClusterOutlook is what becomes of one cluster.
type ClusterOutlook struct {
	// Cluster is the RemoteCluster; the zero value is the cluster that Strata runs
	// in.
	Cluster types.NamespacedName
	// Stage that it is in; empty where the platform has none.
	Stage string
	// Version that it has been at; empty where it has none yet.
	Version string
	// Hops are the versions that it goes to from there, one after the other. The
	// first is the one that it is on its way to, where it is.
	Hops []string
	// Begins is true where it is sent to the first of them now, and Moving where it
	// was before.
	Begins, Moving bool
	// Problem says why there is no way to the target; empty where there is.
	Problem string
	// Condition of the cluster, and what there is to say of it.
	Condition rollout.Condition
	Message   string
	// Deployed and Total count layers.
	Deployed, Total int32
}

// Look decides as Decide does, and says what the decision was made from.
func Look(o Observation) Outlook {
	d := decided(o)
	look := Outlook{Decision: d.decision, Target: d.target, Stages: d.plan.Stages, Stage: d.plan.Stage, Why: d.plan.Why}
	for _, m := range d.members {
		look.Clusters = append(look.Clusters, ClusterOutlook{
			Cluster: m.target, Stage: d.stageName(m), Version: m.current, Hops: d.hops(m), Begins: m.begins, Moving: m.moving != "" && !m.begins,
			Problem: m.stuck, Condition: m.Condition, Message: m.trouble(d.target), Deployed: m.deployed, Total: m.total,
		})
	}
	slices.SortFunc(look.Clusters, func(a, b ClusterOutlook) int { return compareNames(a.Cluster, b.Cluster) })
	return look
}

// hops returns the versions that a cluster goes to from the one that it has been at. Other
// inputs at the same version are named as the roll-out names them.
func (d *decider) hops(m *member) []string {
	switch {
	case d.stagesInputs() && m.begins && m.moving == versionIn(m.from):
		return append([]string{d.goalAt(m.moving)}, m.path...)
	case m.stale && !m.begins && len(m.path) == 0:
		return []string{d.goalAt(m.current)}
	case m.begins && (len(m.path) == 0 || m.path[0] != m.moving):
		return []string{m.moving} // back to what it had
	case m.begins, m.moving == "", len(m.path) > 0 && m.path[0] == m.moving:
		return slices.Clone(m.path)
	}
	return append([]string{m.moving}, m.path...)
}

// Releases returns the versions of a family as the rules of roll-outs see them, each
// once. Only the bundles and the catalogue of the observation matter.
func Releases(o Observation, name string) []rollout.Bundle { return familyOf(o, name).releases }

// Order returns the names of a bundle's layers, each behind those that it depends
// on, and otherwise by name.
func Order(bundle *v1alpha1.ApplicationBundle) []string {
	names, _ := orderOf(bundle)
	return names
}
