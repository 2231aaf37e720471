// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package joining says what joins a cluster: what is made there and here, and which
// kubeconfig leads there. It reads nothing but what it is given.
package joining

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/bundles"
	"github.com/strata-project/strata/internal/clusters"
	"github.com/strata-project/strata/internal/kubeconfig"
)

// The labels of what is made to join a cluster.
const (
	// ManagedByLabel says who makes and removes an object.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// Manager is its value on what joins a cluster.
	Manager = "kubectl-strata"
	// JoinedLabel names the account that an object on the other cluster is of.
	JoinedLabel = v1alpha1.JoinedLabel
)

// Join is what it takes for a cluster to be reached.
type Join struct {
	// Namespace and Name of the RemoteCluster, and its labels.
	Namespace, Name string
	Labels          map[string]string
	// AccountNamespace is where on the other cluster the account is.
	AccountNamespace string
	// Role is the ClusterRole that the account gets.
	Role string
	// Former is true for a cluster that was joined with an account of FormerAccount.
	Former bool
}

// Account returns the name of the ServiceAccount, and of its ClusterRoleBinding. It
// is another one for each RemoteCluster: a namespace with a dash in it has dots around
// it, which neither it nor the cluster can have in their names.
func (j Join) Account() string {
	if j.Former || !strings.Contains(j.Namespace, "-") {
		return j.FormerAccount()
	}
	return bundles.Name(strings.Join([]string{"strata", j.Namespace, j.Name}, "."))
}

// FormerAccount returns the name that the account once had, which may be that of
// another RemoteCluster, too.
func (j Join) FormerAccount() string { return bundles.Name("strata", j.Namespace, j.Name) }

// SecretName returns the name of the Secret with the kubeconfig.
func (j Join) SecretName() string { return bundles.Name(j.Name, "kubeconfig") }

// Check says what is wrong with names and labels.
func (j Join) Check() error {
	for what, name := range map[string]string{"namespace": j.Namespace, "account namespace": j.AccountNamespace} {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
			return fmt.Errorf("%q is no name of a %s: %s", name, what, wrong[0])
		}
	}
	if wrong := validation.IsDNS1123Label(j.Name); len(wrong) > 0 {
		return fmt.Errorf("%q is no name of a cluster: %s", j.Name, wrong[0])
	}
	for _, key := range slices.Sorted(maps.Keys(j.Labels)) {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(j.Labels[key])...); len(wrong) > 0 {
			return fmt.Errorf("%s=%s is no label: %s", key, j.Labels[key], wrong[0])
		}
	}
	return nil
}

func object(apiVersion, kind, namespace, name string, labels map[string]string, fields map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(made.Object, fields)
	made.SetAPIVersion(apiVersion)
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetLabels(labels)
	return made
}

func (j Join) labels() map[string]string {
	return map[string]string{ManagedByLabel: Manager, JoinedLabel: j.Account()}
}

// Administrator is the ClusterRole that has all rights.
const Administrator = "cluster-admin"

// There returns what the other cluster gets, in the order in which it is made:
// namespace, account and rights. An account that is no administrator also gets those
// that it takes to know which cluster it is, and to claim it.
func (j Join) There() []*unstructured.Unstructured {
	there := []*unstructured.Unstructured{
		object("v1", "Namespace", "", j.AccountNamespace, nil, nil),
		object("v1", "ServiceAccount", j.AccountNamespace, j.Account(), j.labels(), nil),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", j.Account(), j.labels(), map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": j.Role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": j.AccountNamespace, "name": j.Account()}},
		}),
	}
	if j.Role == Administrator {
		return there
	}
	name := bundles.Name(j.Account(), "identity")
	return append(there,
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", name, j.labels(), map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"namespaces"}, "resourceNames": []any{clusters.SystemNamespace}, "verbs": []any{"get", "patch"},
		}}}),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", name, j.labels(), map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": j.AccountNamespace, "name": j.Account()}},
		}))
}

// TokenSecret returns a Secret that the other cluster puts a token of the account
// into. Each has a suffix of its own, so that a token can be replaced by a new one.
func (j Join) TokenSecret(suffix string) *unstructured.Unstructured {
	secret := object(
		"v1",
		"Secret",
		j.AccountNamespace,
		bundles.Name(j.Account(), "token", suffix),
		j.labels(),
		map[string]any{"type": "kubernetes.io/service-account-token"},
	)
	secret.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": j.Account()})
	return secret
}

// Here returns the Secret with the kubeconfig, and the RemoteCluster.
func (j Join) Here(config []byte) (secret, cluster *unstructured.Unstructured) {
	secret = object("v1", "Secret", j.Namespace, j.SecretName(), j.labels(), map[string]any{
		"type": "Opaque", "data": map[string]any{"value": base64.StdEncoding.EncodeToString(config)},
	})
	cluster = object(v1alpha1.GroupVersion.String(), v1alpha1.RemoteClusterKind, j.Namespace, j.Name, j.Labels, map[string]any{
		"spec": map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": j.SecretName(), "key": "value"}}},
	})
	return secret, cluster
}

// IsJoined tells whether somebody's object was made to join a cluster, and is not
// somebody else's.
func IsJoined(obj metav1.Object) bool {
	labels := obj.GetLabels()
	return labels[ManagedByLabel] == Manager && labels[JoinedLabel] != ""
}

// Endpoint is where the other cluster's API server is.
type Endpoint struct {
	Server, TLSServerName, ProxyURL string
	CA                              []byte
	// Insecure is true where the certificate is not to be looked at, which no
	// kubeconfig that is joined with may ask for.
	Insecure bool
}

// KubeConfig returns a kubeconfig that holds all that it needs: a token, the
// certificate of the authority, and no files and programs. It is read as the
// controller reads it, so that what that would refuse is refused here.
func KubeConfig(of Endpoint, token string) ([]byte, error) {
	config := clientcmdapi.Config{
		CurrentContext: "remote",
		Contexts:       map[string]*clientcmdapi.Context{"remote": {Cluster: "remote", AuthInfo: "strata"}},
		Clusters: map[string]*clientcmdapi.Cluster{"remote": {
			Server: of.Server, CertificateAuthorityData: of.CA, TLSServerName: of.TLSServerName, ProxyURL: of.ProxyURL, InsecureSkipTLSVerify: of.Insecure,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"strata": {Token: token}},
	}
	data, err := clientcmd.Write(config)
	if err != nil {
		return nil, fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	if _, err := kubeconfig.Parse(data, kubeconfig.Allow{}); err != nil {
		return nil, fmt.Errorf("the controller would refuse the kubeconfig: %w", err)
	}
	return data, nil
}

// IsLoopback tells whether a server has an address that means another machine on
// each machine.
func IsLoopback(server string) bool {
	parsed, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
