// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

const (
	// superAdmin is the kubeconfig that has all rights from the first moment, on the host that
	// makes the cluster; admin has them once kubeadm has bound its group.
	superAdmin = "/etc/kubernetes/super-admin.conf"
	admin      = "/etc/kubernetes/admin.conf"
)

// addressValues are the Pods of kube-vip of a host: that before the cluster is made, and that
// which stays.
func addressValues(endpoint v1alpha1.HostEndpoint, isWorker bool) []value {
	if isWorker {
		return []value{{"VIRTUAL", ""}}
	}
	return []value{{"VIRTUAL", virtualAddress(endpoint, admin)}, {"VIRTUAL_FIRST", virtualAddress(endpoint, superAdmin)}}
}

// virtualAddress is the Pod of kube-vip on a host of the control plane, by which the address
// of the endpoint is at one of them; empty where the manifest has none. It asks the API
// server of its own host, with a kubeconfig of the host.
func virtualAddress(endpoint v1alpha1.HostEndpoint, kubeconfig string) string {
	vip := endpoint.KubeVIP
	if vip == nil {
		return ""
	}
	env := []corev1.EnvVar{
		{Name: "vip_arp", Value: "true"},
		{Name: "vip_interface", Value: vip.Interface},
		{Name: "address", Value: endpoint.Host},
		{Name: "port", Value: strconv.Itoa(int(endpoint.Port))},
		{Name: "cp_enable", Value: "true"},
		{Name: "cp_namespace", Value: metav1.NamespaceSystem},
		{Name: "svc_enable", Value: "false"},
		{Name: "vip_leaderelection", Value: "true"},
		{Name: "vip_leasename", Value: "plndr-cp-lock"},
		{Name: "vip_leaseduration", Value: "5"},
		{Name: "vip_renewdeadline", Value: "3"},
		{Name: "vip_retryperiod", Value: "1"},
	}
	isFile := corev1.HostPathFile
	return document(corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-vip", Namespace: metav1.NamespaceSystem},
		Spec: corev1.PodSpec{
			HostNetwork: true,
			// The name in its kubeconfig is that of the address which it is there to bring.
			HostAliases:       []corev1.HostAlias{{IP: "127.0.0.1", Hostnames: []string{"kubernetes"}}},
			PriorityClassName: "system-node-critical",
			Containers: []corev1.Container{{
				Name: "kube-vip", Image: vip.Image, Args: []string{"manager"}, Env: env,
				SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{
					Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}, Drop: []corev1.Capability{"ALL"},
				}},
				VolumeMounts: []corev1.VolumeMount{{Name: "kubeconfig", MountPath: admin, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: kubeconfig, Type: &isFile},
			}}},
		},
	})
}
