// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostplans says what would be done to the hosts of a cluster, for people and for
// programs. It asks nobody.
package hostplans

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
)

// Plan is what would be done.
type Plan struct {
	// Cluster is namespace/name of the manifest, and ID that of the cluster; empty where
	// none has begun.
	Cluster string `json:"cluster"`
	ID      string `json:"id,omitempty"`
	// Version of Kubernetes that the manifest asks for.
	Version string `json:"version"`
	// Digest is of all that decides what is done: a plan with the same one does the same.
	Digest string `json:"digest"`
	// Hosts as they are.
	Hosts []Host `json:"hosts"`
	// Members of etcd, where the cluster answers.
	Members []Member `json:"members,omitempty"`
	// NotQueried says why a cluster that may be there was not asked.
	NotQueried string `json:"notQueried,omitempty"`
	// Warnings are about the manifest, and about what comes soon.
	Warnings []string `json:"warnings,omitempty"`
	hosts.Decision
	// Steps are what is done in the cluster once no action is left.
	Steps []Step `json:"steps,omitempty"`
}

// Host is a host as it is.
type Host struct {
	Name    string      `json:"name"`
	Role    string      `json:"role"`
	Address string      `json:"address"`
	Class   hosts.Class `json:"class"`
	// Version of its kubelet, and what it runs on; empty where that is not known.
	Version    string `json:"version,omitempty"`
	OS         string `json:"os,omitempty"`
	Kernel     string `json:"kernel,omitempty"`
	Containerd string `json:"containerd,omitempty"`
	// Note says what there is to know of it, such as why it is unreachable.
	Note string `json:"note,omitempty"`
}

// Member of etcd.
type Member struct {
	Name    string `json:"name"`
	ID      string `json:"id"`
	Learner bool   `json:"learner,omitempty"`
	Healthy bool   `json:"healthy"`
}

// The roles of hosts.
const (
	ControlPlane = "control-plane"
	Worker       = "worker"
)

// New returns the plan for what was seen.
func New(cluster *v1alpha1.HostCluster, sight *observe.Sight) *Plan {
	seen := sight.Observation
	p := &Plan{
		Cluster: cluster.Namespace + "/" + cluster.Name, ID: seen.ClusterID, Version: seen.Target,
		NotQueried: sight.NotQueried, Warnings: hostclusters.Warnings(cluster), Decision: hosts.Decide(seen),
	}
	if sight.Endpoint != "" {
		p.Warnings = append(p.Warnings, "spec.endpoint: "+sight.Endpoint)
	}
	p.Warnings = append(append(p.Warnings, sight.Others...), sight.Refused...)
	classes := hosts.Classes(seen)
	for i, each := range seen.Hosts {
		host := Host{Name: each.Name, Role: ControlPlane, Class: classes[i], Version: each.Version, Note: noteOf(each, classes[i])}
		if found, isWorker, err := hostclusters.ByName(cluster, each.Name); err == nil {
			host.Address = found.Address
			if isWorker {
				host.Role = Worker
			}
		}
		facts := sight.Facts[each.Name]
		if facts.Busy {
			host.Note = strings.TrimPrefix(host.Note+"; an action goes on there now", "; ")
		}
		host.OS, host.Kernel, host.Containerd = facts.OS, facts.Kernel, facts.Containerd.Version
		p.Hosts = append(p.Hosts, host)
	}
	for _, each := range seen.Cluster.Members {
		p.Members = append(p.Members, Member{each.Name, each.ID, each.Learner, each.Healthy})
	}
	p.Warnings = append(p.Warnings, p.keepers(cluster)...)
	p.Digest = p.digest(cluster)
	return p
}

// keepers names the hosts of the control plane that leave the cluster with its keys: they are
// not in the manifest any more, so that nothing is done on them.
func (p *Plan) keepers(cluster *v1alpha1.HostCluster) []string {
	var found []string
	for _, each := range p.Actions {
		if _, _, err := hostclusters.ByName(cluster, each.Host); each.Verb != hosts.VerbRemoveMember || err == nil {
			continue
		}
		how := ""
		// Its member of etcd may call itself whatever it likes, and this is a command.
		if len(validation.IsDNS1123Subdomain(each.Host)) == 0 {
			how = "reset it with the manifest of before (kubectl strata hosts reset BEFORE.yaml --host " + each.Host + "), or "
		}
		found = append(found, each.Host+" leaves, and has the keys of the cluster: "+how+"wipe it")
	}
	return found
}

// noteOf says what there is to know of a host.
func noteOf(host hosts.Host, class hosts.Class) string {
	switch {
	case host.Refused != "":
		return host.Refused
	case host.Unreachable != "":
		return host.Unreachable
	case class == hosts.InProgress:
		return fmt.Sprintf("%s to %s has begun and not ended", host.Journal.Action, host.Journal.Version)
	case class == hosts.Dirty && len(host.Remains) > 0:
		return "has " + strings.Join(host.Remains, ", ")
	case class == hosts.Dirty:
		return fmt.Sprintf("its journal ends with %s, and nothing of that is left", host.Journal.Action)
	case class != hosts.Broken:
		return ""
	case !host.Running:
		return "its kubelet or its containerd does not run"
	case host.Version == "":
		return "its kubelet tells no version"
	case !host.Worker && !host.Serving:
		return "its API server is not ready"
	}
	return "it has no Node, or no healthy member of etcd"
}

// digest is over the manifest, what the hosts are, and what would be done.
func (p *Plan) digest(cluster *v1alpha1.HostCluster) string {
	type host struct {
		Name  string
		Class hosts.Class
	}
	decided := struct {
		Cluster  string
		Spec     v1alpha1.HostClusterSpec
		Hosts    []host
		Members  []Member
		Decision hosts.Decision
		Steps    []Step
	}{Cluster: p.Cluster, Spec: cluster.Spec, Members: p.Members, Decision: p.Decision, Steps: p.Steps}
	for _, each := range p.Hosts {
		decided.Hosts = append(decided.Hosts, host{each.Name, each.Class})
	}
	data, err := json.Marshal(decided)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Acts tells whether there is something to do.
func (p *Plan) Acts() bool { return len(p.Actions)+len(p.Steps) > 0 }
