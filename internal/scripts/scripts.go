// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/versions"
)

//go:embed shell/*.sh
var shell embed.FS

// Busy is the status of a script that finds another one at work on its host.
const Busy = 75

// Log says what the last actions on a host have written.
var Log = part("log")

// Receive writes what etcd is to begin with, which is its input, and says its SHA-256.
var Receive = part("receive")

// patchDir is where kubeadm finds what is different about a host.
const patchDir = "/etc/kubernetes/patches"

// Job is what a script is rendered for.
type Job struct {
	// Cluster with its defaults, and its ID.
	Cluster *v1alpha1.HostCluster
	ID      string
	// Action that is done.
	Action hosts.Action
	// Secrets that the action needs; a reset needs none.
	Secrets Secrets
	// Configuration is kubeadm's ClusterConfiguration, by which an update writes the manifest
	// of the host's API server; empty where that stays.
	Configuration string
	// Encryption is the EncryptionConfiguration of the host's API server, whose file is written;
	// its zero value for none. Kept are the paths of those that an update leaves on the host
	// besides.
	Encryption encryption.Configuration
	Kept       []string
	// Forget has a reset take the journal away, too: the host is of no cluster then. Keep has
	// it keep what etcd has on the host.
	Forget, Keep bool
}

// Secrets are handed from one host to another. They are in no command line and no log.
type Secrets struct {
	// Token with which a host joins: abcdef.0123456789abcdef.
	Token string
	// AuthorityHash is that of the cluster's certificate authority: sha256:HEX.
	AuthorityHash string
	// CertificateKey decrypts the authorities that a host of the control plane gets: 32 bytes
	// in hex.
	CertificateKey string
}

// value is a variable of a script.
type value struct{ name, text string }

// render puts values before the parts of a script.
func render(values []value, parts ...string) []byte {
	text := &strings.Builder{}
	for _, each := range values {
		fmt.Fprintf(text, "%s=%s\n", each.name, quote(each.text))
	}
	for _, each := range parts {
		text.WriteString(each)
	}
	return []byte(text.String())
}

// part returns one of the parts, without the lines about its licence.
func part(name string) string {
	data, err := shell.ReadFile("shell/" + name + ".sh")
	if err != nil {
		panic(err) // it is built in
	}
	_, text, _ := strings.Cut(string(data), "\n\n")
	return text
}

// flag is a value that sh takes for true unless it is empty.
func flag(is bool) string {
	if is {
		return "1"
	}
	return ""
}

// quote quotes a text for sh.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Render returns the script for an action on its host. The error says that there is none.
func Render(job Job) ([]byte, error) {
	host, isWorker, err := hostclusters.ByName(job.Cluster, job.Action.Host)
	if err != nil {
		return nil, err
	}
	values := []value{{"CLUSTER", job.ID}, {"ACTION", string(job.Action.Verb)}, {"VERSION", job.Action.Version}, {"DIRECT", direct(job.Cluster.Spec)}}
	var document, body string
	switch job.Action.Verb {
	case hosts.VerbInit:
		document, body = initDocuments(job, host), part("init")
	case hosts.VerbJoin, hosts.VerbJoinWorker:
		document, body = joinDocument(job, host, isWorker), part("join")
	case hosts.VerbReset:
		return render(append(values, value{"FORGET", flag(job.Forget)}, value{"KEEP", flag(job.Keep)}), part("begin"), part("park"), part("reset")), nil
	case hosts.VerbRestore:
		return render(values, part("begin"), part("park"), part("static"), part("restore")), nil
	case hosts.VerbRenew:
		return render(values, part("begin"), part("static"), part("modes"), part("renew")), nil
	case hosts.VerbUpdate:
		if job.Configuration != "" {
			document = apiDocuments(job, host)
		}
		values = append(values, value{"ENCRYPTION_KEPT", strings.Join(append(slices.Clone(job.Kept), job.Encryption.File), " ")})
		body = part("static") + part("update")
	case hosts.VerbUpgradeContainerd:
		body = part("containerd")
	case hosts.VerbUpgrade:
		values = append(values, value{"LEADS", flag(job.Action.Leads)}, value{"IGNORED", strings.Join(ignored(host), ",")})
		body = part("upgrade")
	default:
		return nil, errors.New("there is no script for " + string(job.Action.Verb))
	}
	values = append(values, value{"KUBEADM", document})
	values = append(values, preparation(job.Cluster, host, job.Action.Version)...)
	values = append(values, addressValues(job.Cluster.Spec.Endpoint, isWorker)...)
	files := apiFiles(job, isWorker)
	sources := part("apt") + part("dnf") + part("binaries")
	return render(values, part("begin"), part("prepare"), sources, part("address"), mirrors(job.Cluster.Spec.Containerd.Mirrors), files, part("modes"), body), nil
}

// Certificates returns the script by which a host of the control plane offers its
// authorities to one that joins.
func Certificates(job Job, from v1alpha1.ClusterHost) []byte {
	return render([]value{{"DIRECT", direct(job.Cluster.Spec)}, {"KUBEADM", initDocuments(job, from)}}, part("begin"), part("certificates"))
}

// direct is what is never reached through a proxy: the hosts, the endpoint, and what is in
// the cluster.
func direct(spec v1alpha1.HostClusterSpec) string {
	found := []string{"localhost", "127.0.0.1", "::1", spec.Endpoint.Host, ".svc", "." + spec.Network.Domain}
	found = slices.Concat(found, spec.Network.Pods, spec.Network.Services)
	for _, host := range hostclusters.Hosts(spec) {
		found = append(found, host.Address)
		if host.SecondAddress != "" {
			found = append(found, host.SecondAddress)
		}
	}
	return strings.Join(found, ",")
}

// preparation are the values of what every host is given.
func preparation(cluster *v1alpha1.HostCluster, host v1alpha1.ClusterHost, version string) []value {
	packages := cluster.Spec.Packages
	return []value{
		{"SYSCTLS", sysctls(cluster.Spec.Network)},
		{"CONTAINERD", containerd(host.Kubelet.CgroupV1)},
		{"KUBELET_PATCH_FILE", patchDir + "/kubeletconfiguration+merge.yaml"},
		{"KUBELET_PATCH", kubeletPatch(cluster.Spec.Kubelets, host.Kubelet)},
		{"CONFIGURE_REPOSITORIES", flag(!packages.LeaveRepositories)},
		{"PRELOADED", packages.Directory},
		{"BINARIES", packages.Binaries.URL},
		{"KUBERNETES_REPOSITORY", strings.ReplaceAll(packages.Kubernetes.URL, "{minor}", minor(version))},
		{"KUBERNETES_KEY", strings.TrimSpace(packages.Kubernetes.Key)},
		{"CONTAINERD_REPOSITORY", packages.Containerd.URL},
		{"CONTAINERD_KEY", strings.TrimSpace(packages.Containerd.Key)},
		{"CONTAINERD_PACKAGE", packages.ContainerdPackage},
		{"CONTAINERD_LEAST", strconv.FormatUint(hostclusters.LeastContainerd(cluster.Spec.Version), 10)},
	}
}

// apiFiles is the function that writes what the host's API server reads beside its arguments.
// What it has read before stays: it may still run with that.
func apiFiles(job Job, isWorker bool) string {
	text := &strings.Builder{}
	text.WriteString("\napi_files() {\n  :\n")
	if files := hostclusters.APIServerOf(job.Cluster.Spec.APIServer, "").Files; !isWorker {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(text, "  put %s %s 600\n", quote(hostclusters.APIFiles+"/"+name), quote(strings.TrimSpace(files[name])))
		}
		if job.Encryption.File != "" {
			fmt.Fprintf(text, "  put %s %s 600\n", quote(job.Encryption.File), quote(job.Encryption.Content))
		}
	}
	text.WriteString("}\n")
	return text.String()
}

// minor returns the minor version of a version, such as v1.36.
func minor(version string) string {
	parsed := versions.Semantic(version)
	if parsed == nil {
		return version
	}
	return fmt.Sprintf("v%d.%d", parsed.Major(), parsed.Minor())
}

// sysctls are settings of the kernel.
func sysctls(network v1alpha1.HostNetwork) string {
	lines := []string{"net.bridge.bridge-nf-call-iptables = 1", "net.bridge.bridge-nf-call-ip6tables = 1", "net.ipv4.ip_forward = 1"}
	if slices.ContainsFunc(network.Pods, func(r string) bool { return strings.Contains(r, ":") }) {
		lines = append(lines, "net.ipv6.conf.all.forwarding = 1")
	}
	return strings.Join(lines, "\n")
}

// containerd is its configuration, in the form that versions 1.6 to 2 read.
func containerd(cgroupV1 bool) string {
	const text = `# Written by Strata.
version = 2

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = %t`
	return fmt.Sprintf(text, !cgroupV1)
}

// mirrorMark begins the files about mirrors that are ours.
const mirrorMark = "# Written by Strata."

// mirrors is the function that writes where images are fetched, and takes away what is not
// in the manifest any more.
func mirrors(wanted []v1alpha1.RegistryMirror) string {
	text := &strings.Builder{}
	text.WriteString("mirrors() {\n  keep=\" \"\n")
	for _, each := range wanted {
		file := &strings.Builder{}
		fmt.Fprintf(file, "%s\nserver = \"https://%s\"\n", mirrorMark, each.Registry)
		for _, endpoint := range each.Endpoints {
			fmt.Fprintf(file, "\n[host.\"%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", endpoint)
		}
		fmt.Fprintf(text, "  put %s %s\n", quote("/etc/containerd/certs.d/"+each.Registry+"/hosts.toml"), quote(strings.TrimSpace(file.String())))
		fmt.Fprintf(text, "  keep=\"$keep\"%s\n", quote(each.Registry+" "))
	}
	text.WriteString(`  for folder in /etc/containerd/certs.d/*; do
    case "$keep" in *" ${folder##*/} "*) continue ;; esac
    if [ "$(head -n 1 "$folder/hosts.toml" 2>/dev/null)" = "` + mirrorMark + `" ]; then
      rm -r "$folder"
    fi
  done
}
`)
	return text.String()
}

// Lock holds the lock of a host while its input goes on.
var Lock = part("lock")
