// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/objects"
	"github.com/strata-project/strata/internal/reserved"
)

const (
	secretKind    = "Secret"
	configMapKind = "ConfigMap"
)

// KubeConfigKey is the key of Strata's own copy of a kubeconfig, which is the
// first one that Flux looks for.
const KubeConfigKey = "value"

// What a Secret is kept for by what refers to it, as messages say it.
const (
	KeptForLogin      = "what HostClusters log in with, at their hosts or at a bucket"
	KeptForProvider   = "what the plug-in of a CapabilityProvider logs in with"
	KeptForDecryption = "what a layer decrypts with"
)

// KubeConfigSecret returns the Secret that a RemoteCluster has its kubeconfig from.
func KubeConfigSecret(cluster *v1alpha1.RemoteCluster) objects.ID {
	id := objects.ID{Kind: secretKind, Namespace: cluster.Namespace, Name: cluster.Spec.KubeConfig.SecretRef.Name}
	if on := cluster.Spec.KubeConfig.ClusterRef; on != nil {
		id.Namespace = cmp.Or(cluster.Spec.KubeConfig.SecretRef.Namespace, cluster.Namespace)
		id.Cluster = types.NamespacedName{Namespace: cluster.Namespace, Name: on.Name}.String()
	}
	return id
}

// LoginSecrets returns the Secrets by which a HostCluster logs in: at its hosts, at the
// bastion, and at the bucket of its snapshots.
func LoginSecrets(cluster *v1alpha1.HostCluster) []objects.ID {
	var refs []*v1alpha1.HostSecretReference
	refs = append(refs, cluster.Spec.SSH.SecretRef)
	if bastion := cluster.Spec.SSH.Bastion; bastion != nil {
		refs = append(refs, bastion.SecretRef)
	}
	if snapshots := cluster.Spec.Snapshots; snapshots.S3 != nil {
		refs = append(refs, snapshots.S3.SecretRef)
	}
	var found []objects.ID
	for _, ref := range refs {
		if ref != nil && ref.Name != "" {
			found = append(found, objects.ID{Kind: secretKind, Namespace: cluster.Namespace, Name: ref.Name})
		}
	}
	return found
}

// PluginSecrets returns the Secrets that the plug-in of a provider logs in with: at the
// server that exists outside of the cluster, and at the registry of its image.
func PluginSecrets(provider *v1alpha1.CapabilityProvider) []objects.ID {
	refs := []*v1alpha1.LocalSecretReference{provider.Spec.CredentialsRef}
	if plugin := provider.Spec.Plugin; plugin != nil {
		refs = append(refs, plugin.PullSecretRef)
	}
	var found []objects.ID
	for _, ref := range refs {
		if ref != nil && ref.Name != "" {
			found = append(found, objects.ID{Kind: secretKind, Namespace: provider.Spec.Namespace, Name: ref.Name})
		}
	}
	return found
}

// PluginNames returns the names of the objects by which the plug-in of a provider runs, as
// NAMESPACE/NAME: one, or none where it has no plug-in with a digest.
func PluginNames(provider *v1alpha1.CapabilityProvider) []string {
	if plugin := provider.Spec.Plugin; plugin != nil && plugin.Digest != "" {
		return []string{provider.Spec.Namespace + "/" + reserved.PluginName(provider.Name, plugin.Digest)}
	}
	return nil
}

// Referrers are what may refer to Secrets that are given to nobody.
type Referrers struct {
	Clusters  []*v1alpha1.RemoteCluster
	Hosts     []*v1alpha1.HostCluster
	Providers []*v1alpha1.CapabilityProvider
	Layers    []*v1alpha1.AddonsLayer
	// NamespaceOf returns the namespace that a layer reads from.
	NamespaceOf func(*v1alpha1.AddonsLayer) string
}

// Kept says what a Secret is kept for by what refers to it; empty where nothing does.
func (r Referrers) Kept(secret objects.ID) string {
	for _, cluster := range r.Clusters {
		if KubeConfigSecret(cluster) == secret {
			return reserved.KeptSource
		}
	}
	for _, cluster := range r.Hosts {
		if slices.Contains(LoginSecrets(cluster), secret) {
			return KeptForLogin
		}
	}
	for _, provider := range r.Providers {
		if slices.Contains(PluginSecrets(provider), secret) {
			return KeptForProvider
		}
	}
	for _, layer := range r.Layers {
		if secret.Cluster == "" && DecryptionSecret(layer) == secret.Name && r.NamespaceOf(layer) == secret.Namespace {
			return KeptForDecryption
		}
	}
	return ""
}

// DecryptionSecret returns the name of the Secret with a layer's private keys; empty for
// none. It is in the namespace that the layer reads from.
func DecryptionSecret(layer *v1alpha1.AddonsLayer) string {
	if layer.Spec.Decryption == nil {
		return ""
	}
	return layer.Spec.Decryption.SecretRef.Name
}
