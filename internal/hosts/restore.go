// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Wish is what somebody wants restored from a snapshot.
type Wish struct {
	// ClusterID and Version are those of the snapshot.
	ClusterID, Version string
	// Host that etcd begins on; empty leaves the choice.
	Host string
	// Without are hosts that cannot be reached, and will not come back with what they have.
	Without []string
	// AlthoughItAnswers has a cluster go back that has a majority.
	AlthoughItAnswers bool
}

// Restoration is what is done to restore a cluster. The control plane begins on one host
// again, and the others join it.
type Restoration struct {
	// Host that gets what was saved.
	Host string `json:"host"`
	// Reset are the other hosts of the control plane that have something of the cluster, in
	// their order: their etcd must not run beside the new one.
	Reset []string `json:"reset,omitempty"`
	// Gone are those that cannot be reached.
	Gone []string `json:"gone,omitempty"`
}

// Restore returns what is done to restore a cluster. The error says why it cannot be, and
// what to do.
func Restore(o Observation, wish Wish) (Restoration, error) {
	d := &decider{Observation: o, classes: Classes(o), ring: ringOf(o.Cluster.Members)}
	for _, rule := range []func() *Decision{d.refused, d.foreign} {
		if decision := rule(); decision != nil {
			return Restoration{}, errors.New(decision.Message)
		}
	}
	if o.ClusterID != wish.ClusterID {
		return Restoration{}, fmt.Errorf("the snapshot is of the cluster %s, and that of these hosts is %s", wish.ClusterID, orNone(o.ClusterID))
	}
	if o.Cluster.Answers && d.ring.HasQuorum() && !wish.AlthoughItAnswers {
		return Restoration{}, fmt.Errorf("%d of %d members of etcd are healthy, and the cluster answers: kubectl strata hosts apply repairs it. "+
			"To have it go back to the snapshot all the same, give --although-it-answers", d.ring.Healthy, d.ring.Members)
	}
	if dirty := d.each(false, Dirty); len(dirty) > 0 {
		return Restoration{}, fmt.Errorf("there are remains of a cluster on %s: see what they are, and reset them with kubectl strata hosts reset --host",
			d.names(dirty))
	}
	made := Restoration{}
	for _, name := range wish.Without {
		if i := slices.IndexFunc(o.Hosts, func(h Host) bool { return h.Name == name && !h.Worker }); i < 0 || d.classes[i] != Unreachable {
			return Restoration{}, fmt.Errorf("%s is no host of the control plane that cannot be reached: --without is for those alone", name)
		}
	}
	for _, i := range d.each(false, Unreachable) {
		name := o.Hosts[i].Name
		if !slices.Contains(wish.Without, name) {
			return Restoration{}, fmt.Errorf("%s cannot be reached: with what it has of etcd it must not come back beside the restored cluster. "+
				"Make it reachable, or see to it that it does not, and give --without %s", name, name)
		}
		made.Gone = append(made.Gone, name)
	}
	begins, err := d.beginsOn(wish)
	if err != nil {
		return Restoration{}, err
	}
	made.Host = o.Hosts[begins].Name
	for _, i := range d.each(false, Healthy, Broken, InProgress) {
		if i != begins {
			made.Reset = append(made.Reset, o.Hosts[i].Name)
		}
	}
	return made, nil
}

// beginsOn returns the host that gets what was saved: the one that is wanted, the one where
// that has begun, or the first that has the authorities of the cluster.
func (d *decider) beginsOn(wish Wish) (int, error) {
	var able, why []string
	found := -1
	for i, host := range d.Hosts {
		if host.Worker {
			continue
		}
		switch {
		case !host.Initialised:
			why = append(why, host.Name+" has not the authorities of the cluster")
			continue
		case d.classes[i] == InProgress && host.Journal.Action != VerbRestore:
			why = append(why, fmt.Sprintf("%s of %s has not ended", host.Journal.Action, host.Name))
			continue
		case host.Version != "" && minorsAbove(wish.Version, host.Version) > 0:
			why = append(why, fmt.Sprintf("%s has %s, and the snapshot is of %s", host.Name, host.Version, wish.Version))
			continue
		}
		able = append(able, host.Name)
		switch {
		case wish.Host == host.Name:
			return i, nil
		case found < 0, d.classes[i] == InProgress && d.classes[found] != InProgress:
			found = i
		}
	}
	switch {
	case wish.Host != "":
		return -1, fmt.Errorf("the cluster cannot begin on %s: it can on %s (%s)", wish.Host, orNone(strings.Join(able, ", ")), strings.Join(why, "; "))
	case found < 0:
		return -1, fmt.Errorf("the cluster can begin on no host (%s): a snapshot has no authorities", strings.Join(why, "; "))
	}
	return found, nil
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
