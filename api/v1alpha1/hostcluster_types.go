// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// HostClusterKind is the kind of HostCluster.
const HostClusterKind = "HostCluster"

// HostClusterSpec says of which hosts a cluster is made, and how.
// +kubebuilder:validation:XValidation:rule="!has(self.workers) || self.workers.all(w, !self.controlPlane.exists(c, c.name == w.name))",message="a host must be listed once: workers and controlPlane must not have the same name"
// +kubebuilder:validation:XValidation:rule="!has(self.workers) || self.workers.all(w, !self.controlPlane.exists(c, c.address == w.address))",message="a host must be listed once: workers and controlPlane must not have the same address"
type HostClusterSpec struct {
	// Version of Kubernetes, such as v1.36.3.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`
	// +required
	Version string `json:"version"`

	// Endpoint is where people and hosts reach the API server: a load balancer, or an
	// address that moves. It is that of the first host of the control plane where it is not
	// given, and then the cluster cannot outlive that host.
	// +optional
	Endpoint HostEndpoint `json:"endpoint,omitempty,omitzero"`

	// Network of Pods and Services.
	// +optional
	Network HostNetwork `json:"network,omitempty,omitzero"`

	// SSH says how hosts are reached, where they do not say otherwise.
	// +optional
	SSH HostSSH `json:"ssh,omitempty,omitzero"`

	// ControlPlane are the hosts that run the API server and etcd. An odd number survives
	// the loss of the smaller half.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.address == b.address))",message="two hosts must not have the same address"
	// +listType=map
	// +listMapKey=name
	// +required
	ControlPlane []ClusterHost `json:"controlPlane"`

	// Workers are the hosts that run Pods alone.
	// +kubebuilder:validation:MaxItems=500
	// +listType=map
	// +listMapKey=name
	// +optional
	Workers []ClusterHost `json:"workers,omitempty"`

	// APIServer has settings of the API servers. They start again, one after another, when
	// it changes.
	// +optional
	APIServer HostAPIServer `json:"apiServer,omitempty,omitzero"`

	// Kubelets has settings of the kubelets of all hosts.
	// +optional
	Kubelets HostKubelets `json:"kubelets,omitempty,omitzero"`

	// Containerd of all hosts.
	// +optional
	Containerd HostContainerd `json:"containerd,omitempty,omitzero"`

	// Packages says where the programs come from.
	// +optional
	Packages HostPackages `json:"packages,omitempty,omitzero"`

	// Upgrade says how hosts go from one version to the next.
	// +optional
	Upgrade HostUpgrade `json:"upgrade,omitempty,omitzero"`

	// Snapshots says where etcd is saved before its members change and before upgrades.
	// +optional
	Snapshots HostSnapshots `json:"snapshots,omitempty,omitzero"`

	// Bootstrap says what a new cluster needs before Flux and Strata can run in it.
	// +optional
	Bootstrap HostBootstrap `json:"bootstrap,omitempty,omitzero"`

	HostKeeping `json:",inline"`
}

// HostUpgrade says how hosts go from one version to the next: those of the control plane
// first, one at a time.
type HostUpgrade struct {
	// DrainTimeout is how long Pods may take to leave a host before it is upgraded, such as
	// 15m. It is 10m where it is not given. PodDisruptionBudgets are kept to.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than 0s"
	// +optional
	DrainTimeout *metav1.Duration `json:"drainTimeout,omitempty"`
	// MaxUnavailable is how many workers are upgraded side by side: a number, or a part of
	// them such as 25%, of which at least one is. It is 1 where it is not given. Hosts of the
	// control plane go one at a time.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// HostSnapshots says where etcd is saved. A snapshot has every Secret of the cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.directory) || !has(self.s3)",message="directory and s3 must not both be given"
type HostSnapshots struct {
	// Directory on the machine that runs kubectl strata, and on no host of the cluster. It
	// begins where the manifest is, unless it begins with a slash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Directory string `json:"directory,omitempty"`
	// S3 is a bucket, in place of a directory.
	// +optional
	S3 *HostSnapshotBucket `json:"s3,omitempty"`
	// Keep is how many snapshots of the cluster are kept, the newest ones; 10 where it is
	// not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Keep int32 `json:"keep,omitempty"`
	// Quota is how many bytes the snapshots of the cluster may have, such as 20Gi, which it is
	// where it is not given: those that are kept in the directory together, and each one in a
	// bucket. A member of etcd that would hand out more is not saved. The controller may allow
	// less.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`
	// Encryption says for whom snapshots are encrypted. Without it they are in clear.
	// +optional
	Encryption HostSnapshotEncryption `json:"encryption,omitempty,omitzero"`
}

// HostSnapshotBucket is a bucket of S3, or of a server that speaks S3.
type HostSnapshotBucket struct {
	// Bucket by its name.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]+[a-z0-9]$`
	// +required
	Bucket string `json:"bucket"`
	// Prefix of the objects' keys, such as edge/etcd; none where it is not given.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z._/-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// Endpoint is the URL of a server other than Amazon's.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[0-9A-Za-z][0-9A-Za-z.:-]*$`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// Region of the bucket; us-east-1 where it is not given.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	// +optional
	Region string `json:"region,omitempty"`
	// SecretRef names the Secret that has the credentials for the controller, in its keys
	// accesskey and secretkey, as Flux has them for a Bucket. The plug-in has credentials of
	// its own, from where AWS's programs have them.
	// +optional
	SecretRef *HostSecretReference `json:"secretRef,omitempty"`
}

// HostSnapshotEncryption says for whom snapshots are encrypted.
type HostSnapshotEncryption struct {
	// Age has public keys of age, such as age1...: any of their private keys decrypts.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=set
	// +optional
	Age []string `json:"age,omitempty"`
}

// HostBootstrap says what a new cluster needs before Flux and Strata can run in it.
type HostBootstrap struct {
	// Layers are the names of AddonsLayers without which no Pods run, such as that of the
	// network plug-in. Their releases are installed in this order as soon as there is a
	// cluster, and are the layers' own once Strata runs.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	// +optional
	Layers []string `json:"layers,omitempty"`
}

// HostEndpoint is where an API server is reached.
type HostEndpoint struct {
	// Host is a name or an address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z.:-]*$`
	// +optional
	Host string `json:"host,omitempty"`
	// Port is 6443 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// AlternativeNames are other names and addresses for which the API servers'
	// certificates are valid.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z][0-9A-Za-z.:-]*$`
	// +listType=set
	// +optional
	AlternativeNames []string `json:"alternativeNames,omitempty"`
	// KubeVIP has the hosts of the control plane take turns with the address of the endpoint,
	// by Pods of kube-vip. The host must be an address of their network that no machine has.
	// +optional
	KubeVIP *HostKubeVIP `json:"kubeVIP,omitempty"`
}

// HostKubeVIP has settings of kube-vip, which answers for the address with ARP.
type HostKubeVIP struct {
	// Interface of the network on each host of the control plane, such as eth0.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z._-]*$`
	// +required
	Interface string `json:"interface"`
	// Image of kube-vip, best with its digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[0-9a-z][0-9A-Za-z._:/@-]*$`
	// +required
	Image string `json:"image"`
}

// HostNetwork says which addresses Pods and Services have.
type HostNetwork struct {
	// Pods is the range of the addresses of Pods; one for IPv4, one for IPv6, or both.
	// It is 10.244.0.0/16 where it is not given.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="must be ranges of addresses such as 10.244.0.0/16"
	// +listType=atomic
	// +optional
	Pods []string `json:"pods,omitempty"`
	// Services is that of Services, of the same families. It is 10.96.0.0/12 where it is
	// not given.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="must be ranges of addresses such as 10.96.0.0/12"
	// +listType=atomic
	// +optional
	Services []string `json:"services,omitempty"`
	// Domain of Services; cluster.local where it is not given.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9a-z]([0-9a-z.-]*[0-9a-z])?$`
	// +optional
	Domain string `json:"domain,omitempty"`
}

// HostSSH says how a host is reached. Keys and certificates are never in a manifest.
type HostSSH struct {
	// User that logs in; root where it is not given. Another one needs sudo without a
	// password.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]*$`
	// +optional
	User string `json:"user,omitempty"`
	// Port of the SSH server; 22 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// Bastion is the machine through which hosts are reached; none where it is not given.
	// +optional
	Bastion *HostBastion `json:"bastion,omitempty"`
	// SecretRef names the Secret that has the keys for the controller: identity is the
	// private key, identity-cert.pub its certificate where there is one, and known_hosts the
	// keys of hosts that hostKeys do not name. The plug-in has keys of its own.
	// +optional
	SecretRef *HostSecretReference `json:"secretRef,omitempty"`
}

// HostBastion is a machine through which hosts are reached.
type HostBastion struct {
	// Address of the machine: a name or an address.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z.:-]*$`
	// +required
	Address string `json:"address"`
	// User that logs in; that of hosts where it is not given.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]*$`
	// +optional
	User string `json:"user,omitempty"`
	// Port of the SSH server; 22 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// HostKeys as those of hosts.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	// +optional
	HostKeys []string `json:"hostKeys,omitempty"`
	// SecretRef as that of hosts; theirs where it is not given.
	// +optional
	SecretRef *HostSecretReference `json:"secretRef,omitempty"`
}

// ClusterHost is a host of a cluster.
type ClusterHost struct {
	// Name of the host and of its Node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// Address at which the other hosts of the cluster reach it.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self) && !ip(self).isLoopback() && !ip(self).isUnspecified()",message="must be an address such as 10.0.0.11, at which other hosts reach this one"
	// +required
	Address string `json:"address"`
	// SecondAddress is that of the other family, where Pods have both.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an address such as fd00::11"
	// +optional
	SecondAddress string `json:"secondAddress,omitempty"`
	// SSHAddress is where the SSH server is reached: a name or an address. It is the
	// address where it is not given.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z.:-]*$`
	// +optional
	SSHAddress string `json:"sshAddress,omitempty"`
	// SSHPort and SSHUser, where they are others than those of ssh.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	SSHPort int32 `json:"sshPort,omitempty"`
	// SSHUser that logs in.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]*$`
	// +optional
	SSHUser string `json:"sshUser,omitempty"`
	// HostKeys of the SSH server, as in a line of authorized_keys: "ssh-ed25519 AAAA...".
	// Where none is given, the one that is seen first is kept, and another one is refused.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	// +optional
	HostKeys []string `json:"hostKeys,omitempty"`
	// Labels of the Node.
	// +kubebuilder:validation:MaxProperties=50
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints of the Node. A host of the control plane has its usual one where it is not
	// given, and none where it is empty.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Taints []HostTaint `json:"taints,omitzero"`
	// Kubelet has settings of the host's kubelet.
	// +optional
	Kubelet HostKubelet `json:"kubelet,omitempty,omitzero"`
	// Replace lets the host be taken out of the cluster where it is broken or cannot be
	// reached, as long as etcd keeps its majority. Where it can be reached it is reset, and
	// joins again.
	// +optional
	Replace bool `json:"replace,omitempty"`
}

// HostTaint keeps Pods off a Node that do not tolerate it.
type HostTaint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	Key string `json:"key"`
	// Value of the taint.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Value string `json:"value,omitempty"`
	// Effect on Pods that do not tolerate it.
	// +kubebuilder:validation:XValidation:rule="self in ['NoSchedule', 'PreferNoSchedule', 'NoExecute']",message="effect must be NoSchedule, PreferNoSchedule or NoExecute"
	// +required
	Effect HostTaintEffect `json:"effect"`
}

// HostTaintEffect is what a taint does.
type HostTaintEffect string

// HostKubelet has settings of a kubelet.
type HostKubelet struct {
	// MaxPods is how many Pods it runs; 110 where it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxPods int32 `json:"maxPods,omitempty"`
	// CgroupV1 lets the kubelet run on the first version of control groups, which it refuses
	// since v1.35.
	// +optional
	CgroupV1 bool `json:"cgroupV1,omitempty"`
	// SystemReserved is what is kept for the host's own programs, such as cpu: 500m.
	// +optional
	SystemReserved map[string]resource.Quantity `json:"systemReserved,omitempty"`
	// KubeReserved is what is kept for the kubelet and containerd.
	// +optional
	KubeReserved map[string]resource.Quantity `json:"kubeReserved,omitempty"`
}

// HostKubelets has settings of the kubelets of all hosts.
type HostKubelets struct {
	// ServerTLSBootstrap has kubelets serve with a certificate that the cluster's authority
	// has signed, in place of one of their own. Whoever applies the manifest approves what
	// they ask for, where it names their own host and nothing else. A controller does so
	// when they ask for the next one; without a controller, the manifest has to be applied
	// again before the certificates end, which is after a year.
	// +optional
	ServerTLSBootstrap bool `json:"serverTLSBootstrap,omitempty"`
}

// HostContainerd has settings of containerd.
type HostContainerd struct {
	// Mirrors of registries.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=registry
	// +optional
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
}

// RegistryMirror says where images of a registry are fetched instead.
type RegistryMirror struct {
	// Registry as in the names of images, such as docker.io.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z.-]*(:[0-9]+)?$`
	// +required
	Registry string `json:"registry"`
	// Endpoints are asked in their order, and then the registry itself.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^https?://[0-9A-Za-z][0-9A-Za-z.:/_-]*$`
	// +listType=atomic
	// +required
	Endpoints []string `json:"endpoints"`
}

// HostPackages says where the programs of hosts come from. A host that has kubeadm and
// kubelet of the wanted version, and containerd, gets none.
type HostPackages struct {
	// LeaveRepositories leaves the repositories of hosts as they are: their own must have
	// the packages.
	// +optional
	LeaveRepositories bool `json:"leaveRepositories,omitempty"`
	// Kubernetes has kubeadm and kubelet. {minor} in its URL stands for a minor
	// version such as v1.36, {format} for deb or rpm. It is
	// https://pkgs.k8s.io/core:/stable:/{minor}/{format} where it is not given.
	// +optional
	Kubernetes PackageRepository `json:"kubernetes,omitempty,omitzero"`
	// Containerd has containerd, in a folder for each distribution. {format} in its URL
	// stands for deb or rpm. It is https://download.docker.com/linux where it is not given.
	// +optional
	Containerd PackageRepository `json:"containerd,omitempty,omitzero"`
	// ContainerdPackage is the name of the package; containerd.io where it is not given.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.+-]+$`
	// +optional
	ContainerdPackage string `json:"containerdPackage,omitempty"`
	// Directory of each host that has the packages as files, for hosts that reach no
	// repository: kubeadm and kubelet in their versions, containerd, and what these need.
	// Whoever writes there is trusted: their signatures are not looked at.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[0-9A-Za-z._-]+)+$`
	// +optional
	Directory string `json:"directory,omitempty"`
	// Binaries has kubeadm and kubelet as programs, for systems without packages such as
	// Flatcar.
	// +optional
	Binaries ProgramsServer `json:"binaries,omitempty,omitzero"`
}

// ProgramsServer is where programs are fetched.
type ProgramsServer struct {
	// URL of the folder with the programs and, beside each one, its digest in a file that ends
	// with .sha256. {version} stands for a version such as v1.36.3, {arch} for amd64 or arm64.
	// It is https://dl.k8s.io/release/{version}/bin/linux/{arch} where it is not given.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[0-9A-Za-z][0-9A-Za-z.:/_{}-]*$`
	// +optional
	URL string `json:"url,omitempty"`
}

// PackageRepository is where packages are fetched.
type PackageRepository struct {
	// URL of the repository.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[0-9A-Za-z][0-9A-Za-z.:/_{}-]*$`
	// +optional
	URL string `json:"url,omitempty"`
	// Key is the public key of the repository, in ASCII. Where it is not given, it is
	// fetched from the repository, which is then trusted as it is found.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Key string `json:"key,omitempty"`
}
