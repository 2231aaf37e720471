// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugindeploy says of which objects the Deployment of a plug-in is made, and makes the
// certificates of both sides. It asks nobody.
package plugindeploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/pkg/plugin"
)

const (
	// Port that a plug-in listens at.
	Port = 8443
	// certificatesFolder has its certificates, and temporaryFolder is what it may write to.
	certificatesFolder = "/etc/strata/certificates"
	temporaryFolder    = "/tmp"
	// credentialsFolder has what it needs outside of the cluster.
	credentialsFolder = "/etc/strata/credentials" //nolint:gosec // it is a folder
	// user is as whom it runs: nobody that an image has.
	user = 65532
	// container is its name in the Pod.
	container = "plugin"
)

var (
	defaultMemory = resource.MustParse("256Mi")
	temporary     = resource.MustParse("64Mi")
	leastMemory   = resource.MustParse("32Mi")
	leastCPU      = resource.MustParse("10m")
)

// Plugin is one that the cluster runs.
type Plugin struct {
	// Provider that it serves, and the UID of that, with which it goes.
	Provider    string
	ProviderUID types.UID
	// Namespace that it runs in, and the Controller's, from which alone it is asked.
	Namespace, Controller string
	// Credentials is the Secret of the namespace with what it needs outside of the cluster; empty
	// for none.
	Credentials string
	v1alpha1.CapabilityPlugin
}

// Name returns the name of all its objects.
func (p Plugin) Name() string { return reserved.PluginName(p.Provider, p.Digest) }

// Host returns the name by which it is asked.
func (p Plugin) Host() string { return p.Name() + "." + p.Namespace + ".svc" }

// Address returns where it is asked, as HOST:PORT.
func (p Plugin) Address() string { return p.Host() + ":" + strconv.Itoa(Port) }

// Selects returns the labels of what is there for a provider's plug-ins.
func Selects(provider string) map[string]string {
	sum := sha256.Sum256([]byte(provider)) // a label is shorter than a name may be
	return map[string]string{v1alpha1.PluginLabel: hex.EncodeToString(sum[:16])}
}

func (p Plugin) meta() metav1.ObjectMeta {
	labels := Selects(p.Provider)
	labels["app.kubernetes.io/name"], labels["app.kubernetes.io/managed-by"] = p.Name(), "strata"
	yes := true
	return metav1.ObjectMeta{Name: p.Name(), Namespace: p.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.CapabilityProviderKind, Name: p.Provider, UID: p.ProviderUID, Controller: &yes,
	}}}
}

// pod selects its Pods.
func (p Plugin) pod() map[string]string { return map[string]string{"app.kubernetes.io/name": p.Name()} }

// Objects returns the objects beside the Secret, the Deployment last. All of them carry in an
// annotation what identifies them, and who must have signed the image.
func (p Plugin) Objects() ([]client.Object, error) {
	objects := []client.Object{p.service(), p.policy(), p.deployment()}
	data, err := json.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("cannot write the objects of a plug-in: %w", err)
	}
	if p.Verify != nil {
		data = append(data, strings.Join(p.Verify.Keys, "\n")...)
	}
	sum := sha256.Sum256(data)
	for _, object := range objects {
		object.SetAnnotations(map[string]string{v1alpha1.PluginAnnotation: hex.EncodeToString(sum[:])})
	}
	return objects, nil
}

func (p Plugin) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: p.meta(),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: p.pod(),
			Ports: []corev1.ServicePort{{Name: "grpc", Port: Port, TargetPort: intstr.FromInt32(Port), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// policy lets nobody in but the controller, and out to nothing but what the provider says, and to
// where names are looked up where it says something.
func (p Plugin) policy() *networkingv1.NetworkPolicy {
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	port := func(number int32, protocol *corev1.Protocol) networkingv1.NetworkPolicyPort {
		at := intstr.FromInt32(number)
		return networkingv1.NetworkPolicyPort{Port: &at, Protocol: protocol}
	}
	namespace := func(name string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}}
	}
	egress := []networkingv1.NetworkPolicyEgressRule{}
	for _, to := range p.Egress {
		peer := namespace(to.Namespace)
		if to.CIDR != "" {
			peer = networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: to.CIDR}}
		}
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{peer}, Ports: []networkingv1.NetworkPolicyPort{port(to.Port, &tcp)},
		})
	}
	if len(egress) > 0 {
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{namespace(metav1.NamespaceSystem)},
			Ports: []networkingv1.NetworkPolicyPort{port(53, &udp), port(53, &tcp)},
		})
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}, ObjectMeta: p.meta(),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: p.pod()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{namespace(p.Controller)}, Ports: []networkingv1.NetworkPolicyPort{port(Port, &tcp)},
			}},
			Egress: egress,
		},
	}
}

func (p Plugin) deployment() *appsv1.Deployment {
	replicas, history := int32(1), int32(0)
	unavailable, surge := intstr.FromInt32(0), intstr.FromInt32(1)
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: p.meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, RevisionHistoryLimit: &history, Selector: &metav1.LabelSelector{MatchLabels: p.pod()},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable, MaxSurge: &surge},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: p.meta().Labels},
				Spec:       p.podSpec(),
			},
		},
	}
}

// podSpec has the program run with the rights of nobody: no token, no root, nothing to write to
// but a small folder in memory.
func (p Plugin) podSpec() corev1.PodSpec {
	yes, no, id, mode := true, false, int64(user), int32(0o440)
	memory := defaultMemory
	if p.Memory != nil {
		memory = *p.Memory
	}
	least := leastMemory
	if memory.Cmp(least) < 0 {
		least = memory
	}
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &id, RunAsGroup: &id, FSGroup: &id,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: p.image(), ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: Port, Protocol: corev1.ProtocolTCP}},
			Env: []corev1.EnvVar{
				{Name: plugin.ListenVariable, Value: ":" + strconv.Itoa(Port)},
				{Name: plugin.CertificatesVariable, Value: certificatesFolder},
				{Name: "TMPDIR", Value: temporaryFolder},
				{Name: "HOME", Value: temporaryFolder},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: leastCPU, corev1.ResourceMemory: least},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(Port)}}, PeriodSeconds: 5,
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "certificates", MountPath: certificatesFolder, ReadOnly: true},
				{Name: "temporary", MountPath: temporaryFolder},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "certificates", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: p.Name(), DefaultMode: &mode,
				// The controller's own certificate is in the Secret, too, and not for the program.
				Items: []corev1.KeyToPath{
					{Key: plugin.CertificateFile, Path: plugin.CertificateFile},
					{Key: plugin.KeyFile, Path: plugin.KeyFile},
					{Key: plugin.AuthorityFile, Path: plugin.AuthorityFile},
				},
			}}},
			{Name: "temporary", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory, SizeLimit: &temporary,
			}}},
		},
	}
	if p.Credentials != "" {
		of := &spec.Containers[0]
		of.Env = append(of.Env, corev1.EnvVar{Name: plugin.CredentialsVariable, Value: credentialsFolder})
		of.VolumeMounts = append(of.VolumeMounts, corev1.VolumeMount{Name: "credentials", MountPath: credentialsFolder, ReadOnly: true})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "credentials", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: p.Credentials, DefaultMode: &mode},
		}})
	}
	if p.PullSecretRef != nil {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: p.PullSecretRef.Name}}
	}
	return spec
}

// image names the image as the kubelet does: by its digest, whatever tag people see.
func (p Plugin) image() string {
	repository := strings.TrimPrefix(p.Image, "oci://")
	if slash, colon := strings.LastIndex(repository, "/"), strings.LastIndex(repository, ":"); colon > slash {
		repository = repository[:colon]
	}
	return repository + "@" + p.Digest
}
