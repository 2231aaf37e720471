// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
)

// FromKubeOne makes a manifest of KubeOne's, of kind KubeOneCluster, and of what terraform
// output -json has written, which may be nil. left says what is not carried over, and what
// to do about it. An error says what cannot be read.
func FromKubeOne(manifest, terraform []byte) (text string, left []string, err error) {
	if len(manifest) > MaxSize || len(terraform) > MaxSize {
		return "", nil, fmt.Errorf("a file has more than %d bytes", MaxSize)
	}
	rest := fields{}
	if err := yaml.UnmarshalStrict(manifest, &rest); err != nil {
		return "", nil, fmt.Errorf("the manifest of KubeOne cannot be read: %s", strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if kind, version := rest.text("kind"), rest.text("apiVersion"); kind != "KubeOneCluster" || !strings.HasPrefix(version, "kubeone.k8c.io/") {
		return "", nil, errors.New("the manifest is no KubeOneCluster of kubeone.k8c.io")
	}
	c := &conversion{}
	if err := c.mergeTerraform(rest, terraform); err != nil {
		return "", nil, err
	}
	c.convert(rest)
	for _, path := range rest.paths("", 3) {
		c.left = append(c.left, path+" is not carried over")
	}
	if len(c.made.Spec.ControlPlane) == 0 {
		return "", nil, errors.New("the manifest has no hosts for the control plane: give what terraform output -json has written with -t")
	}
	data, err := yaml.Marshal(c.made)
	if err != nil {
		return "", nil, err
	}
	comments := &strings.Builder{}
	for _, each := range c.left {
		fmt.Fprintf(comments, "# - %s\n", strings.Join(strings.Fields(each), " "))
	}
	if comments.Len() > 0 {
		text = "# Made of a manifest of KubeOne. To do:\n" + comments.String()
	}
	return text + string(data), c.left, nil
}

// conversion is one FromKubeOne.
type conversion struct {
	made v1alpha1.HostCluster
	left []string
}

// fields are what is left of a part of KubeOne's manifest: what is read is taken out.
type fields map[string]any

func (f fields) take(name string) any {
	value := f[name]
	delete(f, name)
	return value
}

// text takes a text. What is none is left, here and in all that follows, and is named with
// what is not carried over.
func (f fields) text(name string) string {
	switch f[name].(type) {
	case string, float64, bool:
		return fmt.Sprint(f.take(name))
	}
	return ""
}

func (f fields) number(name string) int32 {
	// YAML's numbers have come through JSON.
	value, is := f[name].(float64)
	if !is || value <= 0 || value >= 1<<31 {
		return 0
	}
	f.take(name)
	return int32(value)
}

// below returns a part; what it has is left until it is taken out of it.
func (f fields) below(name string) fields {
	part, _ := f[name].(map[string]any)
	return part
}

// list takes a list of parts.
func (f fields) list(name string) []fields {
	values, _ := f[name].([]any)
	var parts []fields
	var others []any
	for _, each := range values {
		if part, is := each.(map[string]any); is {
			parts = append(parts, part)
		} else {
			others = append(others, each)
		}
	}
	f.take(name)
	if len(others) > 0 {
		f[name] = others
	}
	return parts
}

// texts takes a list of texts, or one of them.
func (f fields) texts(name string) []string {
	values, is := f[name].([]any)
	if !is {
		if text := f.text(name); text != "" {
			return []string{text}
		}
		return nil
	}
	var found []string
	for _, each := range values {
		text, is := each.(string)
		if !is {
			return nil
		}
		found = append(found, text)
	}
	f.take(name)
	return found
}

// pairs takes names with their texts.
func (f fields) pairs(name string) map[string]string {
	part := f.below(name)
	found := map[string]string{}
	for _, key := range slices.Collect(maps.Keys(part)) {
		if text := part.text(key); text != "" {
			found[key] = text
		}
	}
	return found
}

// paths names what is left, down to a depth.
func (f fields) paths(at string, depth int) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		part, is := f[name].(map[string]any)
		switch {
		case is && len(part) == 0:
		case is && depth > 1:
			found = append(found, fields(part).paths(at+name+".", depth-1)...)
		default:
			found = append(found, at+name)
		}
	}
	return found
}

// convert takes what there is the same of.
func (c *conversion) convert(rest fields) {
	spec := &c.made.Spec
	c.made.APIVersion, c.made.Kind = v1alpha1.GroupVersion.String(), v1alpha1.HostClusterKind
	c.made.Name, c.made.Namespace = cmp.Or(rest.text("name"), "cluster"), "default"
	if version := rest.below("versions").text("kubernetes"); version != "" {
		spec.Version = "v" + strings.TrimPrefix(version, "v")
	}
	endpoint := rest.below("apiEndpoint")
	spec.Endpoint = v1alpha1.HostEndpoint{Host: endpoint.text("host"), Port: endpoint.number("port"), AlternativeNames: endpoint.texts("alternativeNames")}
	network := rest.below("clusterNetwork")
	spec.Network.Domain = network.text("serviceDomainName")
	family := network.text("ipFamily")
	spec.Network.Pods = ranges(family, cmp.Or(network.text("podSubnet"), "10.244.0.0/16"), cmp.Or(network.text("podSubnetIPv6"), "fd01::/48"))
	spec.Network.Services = ranges(family, cmp.Or(network.text("serviceSubnet"), "10.96.0.0/12"), cmp.Or(network.text("serviceSubnetIPv6"), "fd02::/120"))
	if cni := network.take("cni"); cni != nil {
		c.left = append(c.left, "clusterNetwork.cni: have a layer bring the network plug-in, and name it in spec.bootstrap.layers")
	}
	if packages, has := rest.below("systemPackages")["configureRepositories"].(bool); has {
		delete(rest.below("systemPackages"), "configureRepositories")
		spec.Packages.LeaveRepositories = !packages
	}
	containerd := rest.below("containerRuntime").below("containerd")
	registries := containerd.below("registries")
	for _, name := range slices.Sorted(maps.Keys(registries)) {
		if name == "*" {
			continue // a mirror of all registries
		}
		if mirrors := registries.below(name).texts("mirrors"); len(mirrors) > 0 {
			spec.Containerd.Mirrors = append(spec.Containerd.Mirrors, v1alpha1.RegistryMirror{Registry: name, Endpoints: mirrors})
		}
	}
	for _, host := range rest.below("controlPlane").list("hosts") {
		spec.ControlPlane = append(spec.ControlPlane, c.host(host, fmt.Sprintf("cp-%d", len(spec.ControlPlane))))
	}
	for _, host := range rest.below("staticWorkers").list("hosts") {
		spec.Workers = append(spec.Workers, c.host(host, fmt.Sprintf("worker-%d", len(spec.Workers))))
	}
	if provider := rest.take("cloudProvider"); provider != nil && len(fields(asMap(provider)).paths("", 2)) > 0 {
		if _, none := asMap(provider)["none"]; !none {
			c.left = append(c.left, "cloudProvider: have a layer bring the controllers of the cloud")
		}
	}
}

func asMap(value any) map[string]any {
	found, _ := value.(map[string]any)
	return found
}

// ranges are those of the families of a cluster, in their order.
func ranges(family, four, six string) []string {
	switch family {
	case "IPv6":
		return []string{six}
	case "IPv4+IPv6":
		return []string{four, six}
	case "IPv6+IPv4":
		return []string{six, four}
	}
	return []string{four}
}

// host converts a host; KubeOne asks a host that has no name for one.
func (c *conversion) host(h fields, fallback string) v1alpha1.ClusterHost {
	public, private := h.text("publicAddress"), h.text("privateAddress")
	host := v1alpha1.ClusterHost{
		Name: strings.ToLower(h.text("hostname")), Address: cmp.Or(private, public), SSHAddress: public,
		SSHPort: h.number("sshPort"), SSHUser: h.text("sshUsername"), Labels: h.pairs("labels"),
	}
	if host.Name == "" {
		host.Name = fallback
		c.left = append(c.left, fmt.Sprintf("%s has no hostname in the manifest: its Node is called so; give its own name if the cluster is there already", fallback))
	}
	if host.SSHAddress == host.Address {
		host.SSHAddress = ""
	}
	if six := h.texts("ipv6Addresses"); len(six) > 0 && len(c.made.Spec.Network.Pods) == 2 {
		host.SecondAddress, _, _ = strings.Cut(six[0], "/")
	}
	if address := h.text("bastion"); address != "" {
		bastion := &v1alpha1.HostBastion{Address: address, Port: h.number("bastionPort"), User: h.text("bastionUser")}
		if known := c.made.Spec.SSH.Bastion; known != nil && known.Address != address {
			c.left = append(c.left, fmt.Sprintf("%s has a bastion of its own, %s: there is one for all hosts", host.Name, address))
		} else {
			c.made.Spec.SSH.Bastion = bastion
		}
	}
	for _, name := range []string{"sshPrivateKeyFile", "sshCertFile", "sshAgentSocket", "bastionPrivateKeyFile"} {
		if file := h.text(name); file != "" {
			c.once(fmt.Sprintf("%s: give it with the flags of the commands (--ssh-key, --ssh-certificate, --bastion-key) or SSH_AUTH_SOCK", name))
		}
	}
	for _, name := range []string{"isLeader", "operatingSystem", "id"} {
		h.take(name) // found out when hosts are looked at
	}
	if taints, has := h["taints"]; has && taints != nil {
		host.Taints = []v1alpha1.HostTaint{}
		for _, taint := range h.list("taints") {
			effect := v1alpha1.HostTaintEffect(taint.text("effect"))
			host.Taints = append(host.Taints, v1alpha1.HostTaint{Key: taint.text("key"), Value: taint.text("value"), Effect: effect})
		}
	}
	kubelet := h.below("kubelet")
	host.Kubelet = v1alpha1.HostKubelet{
		MaxPods: kubelet.number("maxPods"), SystemReserved: quantities(kubelet.below("systemReserved")), KubeReserved: quantities(kubelet.below("kubeReserved")),
	}
	for _, path := range h.paths("", 2) {
		c.left = append(c.left, host.Name+": "+path+" is not carried over")
	}
	return host
}

// once says something that is true of many hosts.
func (c *conversion) once(text string) {
	if !slices.Contains(c.left, text) {
		c.left = append(c.left, text)
	}
}

// quantities takes those of a part that are some.
func quantities(part fields) map[string]resource.Quantity {
	found := map[string]resource.Quantity{}
	for _, name := range slices.Collect(maps.Keys(part)) {
		if quantity, err := resource.ParseQuantity(fmt.Sprint(part[name])); err == nil {
			found[name] = quantity
			part.take(name)
		}
	}
	return found
}

// mergeTerraform puts into a manifest what terraform says of hosts and endpoint, as KubeOne
// does.
func (c *conversion) mergeTerraform(manifest fields, output []byte) error {
	if len(output) == 0 {
		return nil
	}
	var outputs map[string]struct {
		Value any `json:"value"`
	}
	if err := json.Unmarshal(output, &outputs); err != nil {
		return errors.New("the output of terraform cannot be read: write it with terraform output -json")
	}
	api := fields(asMap(outputs["kubeone_api"].Value))
	if endpoint := api.text("endpoint"); endpoint != "" {
		manifest["apiEndpoint"] = map[string]any{"host": endpoint, "alternativeNames": api["apiserver_alternative_names"]}
	}
	control := fields(asMap(outputs["kubeone_hosts"].Value)).below("control_plane")
	if name := control.text("cluster_name"); name != "" && manifest["name"] == nil {
		manifest["name"] = name
	}
	if hosts := hostsOf(control); len(hosts) > 0 {
		manifest["controlPlane"] = map[string]any{"hosts": hosts}
	}
	workers := fields(asMap(outputs["kubeone_static_workers"].Value))
	var all []any
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		all = append(all, hostsOf(workers.below(name))...)
	}
	if len(all) > 0 {
		manifest["staticWorkers"] = map[string]any{"hosts": all}
	}
	if outputs["kubeone_workers"].Value != nil {
		c.left = append(c.left, "kubeone_workers: machines that are made are Cluster API's; a HostCluster is for hosts that exist")
	}
	return nil
}

// hostsOf are the hosts of one output of terraform, whose lists have an entry for each.
func hostsOf(output fields) []any {
	private, public, names := output.texts("private_address"), output.texts("public_address"), output.texts("hostnames")
	var hosts []any
	for i := range max(len(private), len(public)) {
		host := map[string]any{}
		for name, list := range map[string][]string{"privateAddress": private, "publicAddress": public, "hostname": names} {
			if i < len(list) && list[i] != "" {
				host[name] = list[i]
			}
		}
		for from, to := range map[string]string{
			"ssh_user": "sshUsername", "ssh_port": "sshPort", "ssh_private_key_file": "sshPrivateKeyFile", "ssh_agent_socket": "sshAgentSocket",
			"bastion": "bastion", "bastion_port": "bastionPort", "bastion_user": "bastionUser", "labels": "labels",
		} {
			if value, has := output[from]; has && value != "" && value != nil {
				host[to] = value
			}
		}
		hosts = append(hosts, host)
	}
	return hosts
}
