// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"filippo.io/age"
	cryptossh "golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/versions"
)

// Oldest is the first minor version of Kubernetes that hosts can be given. Its kubeadm adds
// members of etcd as learners, and reads kubeadm.k8s.io/v1beta4.
const Oldest = "v1.33.0"

// Default fills in what a manifest leaves out.
func Default(cluster *v1alpha1.HostCluster) {
	spec := &cluster.Spec
	cluster.Namespace = cmp.Or(cluster.Namespace, "default")
	if spec.Endpoint.Host == "" && len(spec.ControlPlane) > 0 {
		spec.Endpoint.Host = spec.ControlPlane[0].Address
	}
	spec.Endpoint.Port = cmp.Or(spec.Endpoint.Port, APIPort)
	if len(spec.Network.Pods) == 0 {
		spec.Network.Pods = []string{"10.244.0.0/16"}
	}
	if len(spec.Network.Services) == 0 {
		spec.Network.Services = []string{"10.96.0.0/12"}
	}
	spec.Network.Domain = cmp.Or(spec.Network.Domain, "cluster.local")
	spec.SSH.User, spec.SSH.Port = cmp.Or(spec.SSH.User, "root"), cmp.Or(spec.SSH.Port, 22)
	if bastion := spec.SSH.Bastion; bastion != nil {
		bastion.User, bastion.Port = cmp.Or(bastion.User, spec.SSH.User), cmp.Or(bastion.Port, 22)
	}
	for _, list := range [][]v1alpha1.ClusterHost{spec.ControlPlane, spec.Workers} {
		for i := range list {
			host := &list[i]
			host.SSHAddress = cmp.Or(host.SSHAddress, host.Address)
			host.SSHPort, host.SSHUser = cmp.Or(host.SSHPort, spec.SSH.Port), cmp.Or(host.SSHUser, spec.SSH.User)
		}
	}
	spec.Packages.Kubernetes.URL = cmp.Or(spec.Packages.Kubernetes.URL, "https://pkgs.k8s.io/core:/stable:/{minor}/{format}")
	spec.Packages.Containerd.URL = cmp.Or(spec.Packages.Containerd.URL, "https://download.docker.com/linux")
	spec.Packages.Binaries.URL = cmp.Or(spec.Packages.Binaries.URL, "https://dl.k8s.io/release/{version}/bin/linux/{arch}")
	spec.Packages.ContainerdPackage = cmp.Or(spec.Packages.ContainerdPackage, "containerd.io")
	if encryption := spec.APIServer.Encryption; encryption != nil {
		encryption.KeyGeneration = cmp.Or(encryption.KeyGeneration, 1)
	}
	if audit := spec.APIServer.Audit; audit != nil {
		audit.Directory = cmp.Or(audit.Directory, "/var/log/kubernetes/audit")
		audit.MaxAge, audit.MaxBackups, audit.MaxSize = cmp.Or(audit.MaxAge, 30), cmp.Or(audit.MaxBackups, 10), cmp.Or(audit.MaxSize, 100)
	}
	if KeepsSnapshots(*spec) {
		spec.Snapshots.Keep = cmp.Or(spec.Snapshots.Keep, 10)
	}
	for i := range spec.ControlPlane {
		if host := &spec.ControlPlane[i]; host.Taints == nil {
			host.Taints = []v1alpha1.HostTaint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}
		}
	}
}

// KeepsSnapshots tells whether a manifest says where etcd is saved.
func KeepsSnapshots(spec v1alpha1.HostClusterSpec) bool {
	return spec.Snapshots.Directory != "" || spec.Snapshots.S3 != nil
}

// defaultQuota is how many bytes the snapshots of a cluster may have that says nothing of it.
const defaultQuota = 20 << 30

// Quota returns how many bytes the snapshots of a cluster may have, at most as many as
// somebody allows; 0 allows all.
func Quota(snapshots v1alpha1.HostSnapshots, most int64) int64 {
	quota := int64(defaultQuota)
	if snapshots.Quota != nil {
		quota = snapshots.Quota.Value()
	}
	if most > 0 {
		quota = min(quota, most)
	}
	return quota
}

// checker gathers problems.
type checker struct{ found []Problem }

func (c *checker) add(field, format string, values ...any) {
	c.found = append(c.found, Problem{field, fmt.Sprintf(format, values...)})
}

// Check returns what is wrong with a cluster that the definition of its kind allows. Its
// defaults are filled in.
func Check(cluster *v1alpha1.HostCluster) []Problem {
	c := &checker{}
	c.version(cluster.Spec.Version)
	c.network(cluster.Spec.Network)
	for _, list := range []struct {
		field string
		hosts []v1alpha1.ClusterHost
	}{{"spec.controlPlane", cluster.Spec.ControlPlane}, {"spec.workers", cluster.Spec.Workers}} {
		for i, host := range list.hosts {
			c.host(fmt.Sprintf("%s[%d]", list.field, i), host, cluster.Spec.Network)
		}
	}
	if bastion := cluster.Spec.SSH.Bastion; bastion != nil {
		c.hostKeys("spec.ssh.bastion", bastion.HostKeys)
	}
	if most := cluster.Spec.Upgrade.MaxUnavailable; most != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(most, 100, false); err != nil || n < 1 {
			c.add("spec.upgrade.maxUnavailable", "must be a number from 1 on, or a part such as 25%%")
		}
	}
	c.apiServer(cluster.Spec.APIServer)
	c.kubeVIP(cluster.Spec)
	if _, err := Recipients(cluster.Spec.Snapshots); err != nil {
		c.add("spec.snapshots.encryption.age", "%s", err)
	}
	if quota := cluster.Spec.Snapshots.Quota; quota != nil && quota.Value() <= 0 {
		c.add("spec.snapshots.quota", "must be more than 0, such as 20Gi")
	}
	return c.found
}

// kubeVIP checks the address that hosts take turns with.
func (c *checker) kubeVIP(spec v1alpha1.HostClusterSpec) {
	if spec.Endpoint.KubeVIP == nil {
		return
	}
	address, err := netip.ParseAddr(spec.Endpoint.Host)
	isTaken := slices.ContainsFunc(Hosts(spec), func(h v1alpha1.ClusterHost) bool { return err == nil && isOf(address.Unmap(), h) })
	if err != nil || isTaken {
		c.add("spec.endpoint.host", "must be an address of the hosts' network that no machine has, for kubeVIP brings it to one of them")
	}
}

// Recipients returns for whom snapshots are encrypted; none where they are not.
func Recipients(snapshots v1alpha1.HostSnapshots) ([]age.Recipient, error) {
	var found []age.Recipient
	for _, key := range snapshots.Encryption.Age {
		read, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil || len(read) != 1 || strings.Contains(key, "\n") {
			return nil, errors.New("must be public keys of age, such as age1ABC")
		}
		found = append(found, read...)
	}
	return found, nil
}

// Warnings are what may be meant, and is seldom good.
func Warnings(cluster *v1alpha1.HostCluster) []string {
	var found []string
	if n := len(cluster.Spec.ControlPlane); n%2 == 0 {
		found = append(found, fmt.Sprintf("spec.controlPlane has %d hosts: they survive the loss of as many as %d do", n, n-1))
	}
	if endpoint, hosts := cluster.Spec.Endpoint.Host, cluster.Spec.ControlPlane; len(hosts) > 1 &&
		slices.ContainsFunc(hosts, func(h v1alpha1.ClusterHost) bool { return h.Address == endpoint }) {
		found = append(found, "spec.endpoint.host is the address of one host: nobody reaches the cluster while that one is down. Name a load balancer")
	}
	if oidc := cluster.Spec.APIServer.OIDC; oidc != nil && oidc.GroupsClaim != "" && oidc.GroupsPrefix == "" {
		found = append(found, "spec.apiServer.oidc has no groupsPrefix: whoever the issuer puts into system:masters may do everything")
	}
	if snapshots := cluster.Spec.Snapshots; KeepsSnapshots(cluster.Spec) && len(snapshots.Encryption.Age) == 0 && cluster.Spec.APIServer.Encryption == nil {
		place := snapshots.Directory
		if snapshots.S3 != nil {
			place = "the bucket " + snapshots.S3.Bucket
		}
		found = append(found, "spec.snapshots has no encryption: every Secret of the cluster is in clear in "+place)
	}
	return found
}

func (c *checker) version(version string) {
	wanted := versions.Semantic(version)
	switch {
	case wanted == nil:
		c.add("spec.version", "must be a version such as v1.36.3")
	case wanted.LessThan(versions.Semantic(Oldest)):
		c.add("spec.version", "is %s: the oldest that hosts can be given is %s", version, Oldest)
	}
}

// network checks that Pods and Services have addresses of the same families, and not the
// same addresses.
func (c *checker) network(network v1alpha1.HostNetwork) {
	pods, services := c.ranges("spec.network.pods", network.Pods), c.ranges("spec.network.services", network.Services)
	if len(pods) != len(network.Pods) || len(services) != len(network.Services) {
		return
	}
	for i, pod := range pods {
		for _, service := range services {
			if pod.Overlaps(service) {
				c.add("spec.network", "pods %s and services %s have addresses in common", pod, service)
			}
		}
		if i >= len(services) || services[i].Addr().Is4() != pod.Addr().Is4() {
			c.add("spec.network.services", "must have the families of spec.network.pods, in the same order")
			return
		}
	}
	if len(services) > len(pods) {
		c.add("spec.network.services", "must have the families of spec.network.pods, in the same order")
	}
}

// ranges reads ranges of addresses.
func (c *checker) ranges(field string, texts []string) []netip.Prefix {
	var found []netip.Prefix
	for i, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			c.add(fmt.Sprintf("%s[%d]", field, i), "must be a range of addresses such as 10.244.0.0/16")
			continue
		case prefix != prefix.Masked():
			c.add(fmt.Sprintf("%s[%d]", field, i), "is an address and not a range: write %s", prefix.Masked())
			continue
		case len(found) > 0 && found[0].Addr().Is4() == prefix.Addr().Is4():
			c.add(field, "must have one range of IPv4 and one of IPv6 where it has two")
			continue
		}
		found = append(found, prefix)
	}
	return found
}

// host checks one host.
func (c *checker) host(field string, host v1alpha1.ClusterHost, network v1alpha1.HostNetwork) {
	address, err := netip.ParseAddr(host.Address)
	if err != nil {
		c.add(field+".address", "must be an address such as 10.0.0.11")
		return
	}
	is4 := false
	for i, text := range slices.Concat(network.Pods, network.Services) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			continue
		}
		if i == 0 {
			is4 = prefix.Addr().Is4()
		}
		if prefix.Contains(address) {
			c.add(field+".address", "is in %s, which Pods or Services have", prefix)
		}
	}
	if is4 != address.Is4() {
		c.add(field+".address", "must be of the family of the first range in spec.network.pods")
	}
	second, err := netip.ParseAddr(host.SecondAddress)
	switch both := len(network.Pods) == 2; {
	case both && host.SecondAddress == "":
		c.add(field+".secondAddress", "is missing: Pods have addresses of both families, and so must hosts")
	case !both && host.SecondAddress != "":
		c.add(field+".secondAddress", "must not be given where spec.network.pods has one family")
	case both && (err != nil || second.Is4() == address.Is4()):
		c.add(field+".secondAddress", "must be of the other family than address")
	}
	c.hostKeys(field, host.HostKeys)
	c.node(field, host)
}

// node checks what a host says of its Node and its kubelet.
func (c *checker) node(field string, host v1alpha1.ClusterHost) {
	for _, key := range slices.Sorted(maps.Keys(host.Labels)) {
		value := host.Labels[key]
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			c.add(field+".labels", "%q=%q is no label: %s", key, value, strings.Join(wrong, "; "))
		}
	}
	for i, taint := range host.Taints {
		at := fmt.Sprintf("%s.taints[%d]", field, i)
		if wrong := append(validation.IsQualifiedName(taint.Key), validation.IsValidLabelValue(taint.Value)...); len(wrong) > 0 {
			c.add(at, "%s", strings.Join(wrong, "; "))
		}
	}
	for _, each := range []struct {
		name string
		list map[string]resource.Quantity
	}{{"systemReserved", host.Kubelet.SystemReserved}, {"kubeReserved", host.Kubelet.KubeReserved}} {
		for _, name := range slices.Sorted(maps.Keys(each.list)) {
			if !slices.Contains([]string{"cpu", "memory", "ephemeral-storage", "pid"}, name) {
				c.add(field+".kubelet."+each.name, "has %s: it may have cpu, memory, ephemeral-storage and pid", name)
			} else if quantity := each.list[name]; quantity.Sign() < 0 {
				c.add(field+".kubelet."+each.name, "%s must not be negative", name)
			}
		}
	}
}

// hostKeys checks that host keys are some.
func (c *checker) hostKeys(field string, keys []string) {
	for i, key := range keys {
		if _, _, _, rest, err := cryptossh.ParseAuthorizedKey([]byte(key)); err != nil || len(rest) > 0 {
			c.add(fmt.Sprintf("%s.hostKeys[%d]", field, i), `must be a key such as "ssh-ed25519 AAAA...", as ssh-keyscan prints it behind the host's name`)
		}
	}
}
