// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hosts"
)

// Change is one field of the manifest that is not yet so.
type Change struct {
	// Host that it is about; empty for all.
	Host string
	// Field of the manifest, and what it was and is to be; a value that there is not is "-".
	Field, From, To string
	// OnHost is true where files of the host change, and false where only its Node does.
	OnHost bool
	// API is true where the host's API server starts again.
	API bool
	// Serving is true where the host's kubelet gets a serving certificate.
	Serving bool
	// Encryption is true where keys change that encrypt what is in etcd.
	Encryption bool
}

// String says the change in a line.
func (c Change) String() string {
	text := c.Field + ": " + c.From + " -> " + c.To
	if c.Host != "" {
		return c.Host + " " + text
	}
	return text
}

// Saved is the field of a Change that saves a manifest which was not saved before.
const Saved = "the saved manifest"

// IsCordoned tells whether a Node is cordoned for an upgrade.
func IsCordoned(node *corev1.Node) bool {
	_, marked := node.Annotations[v1alpha1.UpgradingAnnotation]
	return marked
}

// Drift returns what of a manifest is not yet so, by what was last applied and by the Nodes
// that there are. saved is nil where nothing was applied yet.
func Drift(saved *v1alpha1.HostClusterSpec, wanted v1alpha1.HostClusterSpec, nodes []corev1.Node) []Change {
	var changes []Change
	if saved == nil {
		changes, saved = append(changes, Change{Field: Saved, From: "-", To: "written"}), &v1alpha1.HostClusterSpec{}
	} else {
		changes = allHostsChanges(*saved, wanted)
	}
	before := map[string]v1alpha1.ClusterHost{}
	for _, host := range Hosts(*saved) {
		before[host.Name] = host
	}
	for _, host := range Hosts(wanted) {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == host.Name })
		if i < 0 {
			continue // it is not there yet
		}
		if IsCordoned(&nodes[i]) {
			changes = append(changes, Change{Host: host.Name, Field: "Pods", From: "kept away for an upgrade", To: "let in"})
		}
		was, known := before[host.Name]
		changes = append(changes, labelChanges(host, was, nodes[i])...)
		changes = append(changes, taintChanges(host, was, nodes[i])...)
		if from, to := plainly(was.Kubelet), plainly(host.Kubelet); known && from != to {
			changes = append(changes, Change{Host: host.Name, Field: "kubelet", From: from, To: to, OnHost: true})
		}
	}
	if len(changes) == 0 && plainly(Lasting(*saved)) != plainly(Lasting(wanted)) {
		changes = append(changes, Change{Field: Saved, From: "an earlier one", To: "this one"})
	}
	return changes
}

// allHostsChanges compares settings of all hosts, which are written into their files. Hosts of
// a new cluster have them from the start.
func allHostsChanges(saved, wanted v1alpha1.HostClusterSpec) []Change {
	var changes []Change
	for _, each := range []struct {
		field    string
		was, are any
	}{
		{"containerd", saved.Containerd, wanted.Containerd},
		{"endpoint.kubeVIP", saved.Endpoint.KubeVIP, wanted.Endpoint.KubeVIP},
		{"kubelets", saved.Kubelets, wanted.Kubelets},
	} {
		if from, to := plainly(each.was), plainly(each.are); from != to {
			changes = append(changes, Change{Field: each.field, From: from, To: to, OnHost: true})
		}
	}
	return changes
}

// TakenOver returns what of a manifest a cluster that is taken over as it is has for sure:
// the settings of all hosts are another plan.
func TakenOver(spec v1alpha1.HostClusterSpec) v1alpha1.HostClusterSpec {
	spec.Containerd, spec.Kubelets = v1alpha1.HostContainerd{}, v1alpha1.HostKubelets{}
	return spec
}

// Lasting returns what of a manifest stays when it is applied: all but the consent to take
// hosts out, which is for once, and how a controller keeps the cluster.
func Lasting(spec v1alpha1.HostClusterSpec) v1alpha1.HostClusterSpec {
	without := func(hosts []v1alpha1.ClusterHost) []v1alpha1.ClusterHost {
		kept := slices.Clone(hosts)
		for i := range kept {
			kept[i].Replace = false
		}
		return kept
	}
	spec.ControlPlane, spec.Workers = without(spec.ControlPlane), without(spec.Workers)
	spec.HostKeeping, spec.SSH.SecretRef = v1alpha1.HostKeeping{}, nil
	if spec.SSH.Bastion != nil {
		bastion := *spec.SSH.Bastion
		bastion.SecretRef = nil
		spec.SSH.Bastion = &bastion
	}
	if spec.Snapshots.S3 != nil {
		bucket := *spec.Snapshots.S3
		bucket.SecretRef = nil
		spec.Snapshots.S3 = &bucket
	}
	return spec
}

// Left returns the Nodes of hosts that were in a manifest, and are in another one no more.
func Left(saved, wanted v1alpha1.HostClusterSpec, nodes []corev1.Node) []hosts.LeftNode {
	var found []hosts.LeftNode
	for i := range nodes {
		isIn := func(spec v1alpha1.HostClusterSpec) bool {
			return slices.ContainsFunc(Hosts(spec), func(h v1alpha1.ClusterHost) bool { return h.Name == nodes[i].Name })
		}
		if isIn(saved) && !isIn(wanted) {
			found = append(found, hosts.LeftNode{Name: nodes[i].Name, Runs: Runs(&nodes[i])})
		}
	}
	return found
}

// Runs tells whether the kubelet of a Node says how it is, ready or not: otherwise the
// condition is Unknown.
func Runs(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionUnknown
	})
}

// IsReady tells whether the kubelet of a Node says that it is ready.
func IsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// labelChanges compares the labels of a Node: with those of the manifest, and of those
// that an earlier one had.
func labelChanges(host, was v1alpha1.ClusterHost, node corev1.Node) []Change {
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(host.Labels)) {
		if is, has := node.Labels[key]; !has || is != host.Labels[key] {
			changes = append(changes, Change{Host: host.Name, Field: "label " + key, From: shown(is, has), To: shown(host.Labels[key], true)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was.Labels)) {
		_, wanted := host.Labels[key]
		if is, has := node.Labels[key]; has && !wanted && is == was.Labels[key] {
			changes = append(changes, Change{Host: host.Name, Field: "label " + key, From: shown(is, true), To: "-"})
		}
	}
	return changes
}

// TaintsOf returns the taints of a host's Node.
func TaintsOf(host v1alpha1.ClusterHost) []corev1.Taint {
	taints := make([]corev1.Taint, len(host.Taints))
	for i, each := range host.Taints {
		taints[i] = corev1.Taint{Key: each.Key, Value: each.Value, Effect: corev1.TaintEffect(each.Effect)}
	}
	return taints
}

// taintChanges compares the taints of a Node in the same way.
func taintChanges(host, was v1alpha1.ClusterHost, node corev1.Node) []Change {
	var changes []Change
	for _, taint := range TaintsOf(host) {
		i := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		if i < 0 || node.Spec.Taints[i].Value != taint.Value {
			from := "-"
			if i >= 0 {
				from = shown(node.Spec.Taints[i].Value, true)
			}
			changes = append(changes, Change{Host: host.Name, Field: "taint " + taint.Key + ":" + string(taint.Effect), From: from, To: shown(taint.Value, true)})
		}
	}
	for _, taint := range TaintsOf(was) {
		matches := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
		if slices.ContainsFunc(node.Spec.Taints, matches) && !slices.ContainsFunc(TaintsOf(host), matches) {
			changes = append(changes, Change{Host: host.Name, Field: "taint " + taint.Key + ":" + string(taint.Effect), From: shown(taint.Value, true), To: "-"})
		}
	}
	return changes
}

// Renew brings the labels and taints of a Node to what the manifest says, and tells whether
// that changed it. What neither manifest has stays.
func Renew(node *corev1.Node, host, was v1alpha1.ClusterHost) bool {
	changes := append(labelChanges(host, was, *node), taintChanges(host, was, *node)...)
	if len(changes) == 0 {
		return false
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for key, value := range was.Labels {
		if _, wanted := host.Labels[key]; !wanted && node.Labels[key] == value {
			delete(node.Labels, key)
		}
	}
	maps.Copy(node.Labels, host.Labels)
	ours := slices.Concat(TaintsOf(was), TaintsOf(host))
	kept := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool {
		return slices.ContainsFunc(ours, func(o corev1.Taint) bool { return o.MatchTaint(&t) })
	})
	node.Spec.Taints = slices.Concat(kept, TaintsOf(host))
	return true
}

// Unchangeable returns which fields differ from what the cluster was made with, of those
// that no action can change.
func Unchangeable(saved *v1alpha1.HostClusterSpec, wanted v1alpha1.HostClusterSpec) []string {
	if saved == nil {
		return nil
	}
	var found []string
	add := func(field string, from, to any) {
		if was, is := plainly(from), plainly(to); was != is {
			found = append(found, fmt.Sprintf("%s is %s in the cluster, and cannot become %s", field, was, is))
		}
	}
	was, is := saved.Endpoint, wanted.Endpoint
	if was.KubeVIP != nil && is.KubeVIP != nil {
		was.KubeVIP, is.KubeVIP = nil, nil // another image, or another name of the network, is no other address
	}
	add("spec.endpoint", was, is)
	add("spec.network", saved.Network, wanted.Network)
	for _, host := range Hosts(wanted) {
		for i, was := range Hosts(*saved) {
			if was.Name != host.Name {
				continue
			}
			add("the address of "+host.Name, was.Address, host.Address)
			isWorker := slices.ContainsFunc(wanted.Workers, func(h v1alpha1.ClusterHost) bool { return h.Name == host.Name })
			if wasWorker := i >= len(saved.ControlPlane); wasWorker != isWorker {
				found = append(found, host.Name+" cannot change between control plane and workers: take it out of the manifest first")
			}
		}
	}
	return found
}

// shown is a value in a message.
func shown(value string, has bool) string {
	if !has {
		return "-"
	}
	return cmp.Or(value, `""`)
}

// plainly is a part of a specification in a line.
func plainly(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.Trim(string(data), `"`)
}

// EncryptionDrift returns what of a manifest's encryption is not yet so. has are the providers
// of each API server, and written the one with which all Secrets are known to be written.
func EncryptionDrift(has map[string][]string, written string, wanted v1alpha1.HostClusterSpec) []Change {
	from, to := encryption.Drift(has, written, wanted.APIServer)
	if to == "" {
		return nil
	}
	return []Change{{Field: "apiServer.encryption", From: from, To: to, Encryption: true}}
}
