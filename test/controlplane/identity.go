// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// admin is the name of the user behind Config and Kubeconfig.
const admin = "strata-tests"

// Identity is a way to talk to the API server as somebody.
type Identity struct {
	// Config is not throttled on the client's side.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file that says the same.
	Kubeconfig string
}

// ServiceAccount returns the identity of an existing ServiceAccount, so that a
// controller can run outside the cluster with only the rights it would have
// inside. Its token is good for a day.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (Identity, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return Identity{}, err
	}
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return Identity{}, fmt.Errorf("cannot request a token for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = answer.Status.Token
	return c.identity("serviceaccount-"+namespace+"-"+name, config)
}

// User returns the identity of any user and groups, by impersonation.
func (c *ControlPlane) User(name string, groups ...string) (Identity, error) {
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return c.identity("user-"+name, config)
}

// Certificate returns the identity of any user and groups, by a client certificate
// that ends after a while.
func (c *ControlPlane) Certificate(name string, life time.Duration, groups ...string) (Identity, error) {
	if c.keys == nil {
		return Identity{}, errors.New("cannot make a certificate: the cluster was not started here")
	}
	template := certificate(time.Now().UnixNano(), name)
	template.Subject.Organization = groups
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Second), time.Now().Add(life)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	made, key, err := c.keys.issue(template)
	if err != nil {
		return Identity{}, fmt.Errorf("cannot make a certificate for user %s: %w", name, err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.CertData, config.KeyData = made, key
	return c.identity("certificate-"+name, config)
}

func (c *ControlPlane) identity(name string, config *rest.Config) (Identity, error) {
	config.QPS = -1
	path := filepath.Join(c.dir, "kubeconfigs", fileName(name))
	if err := writeKubeconfig(path, config); err != nil {
		return Identity{}, err
	}
	return Identity{Config: config, Kubeconfig: path}, nil
}

// fileName makes a file name out of a user's name.
func fileName(name string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(name)
}

// kubeconfig writes the kubeconfig of a user with a static token and returns
// its path.
func (l *launcher) kubeconfig(name string) (string, error) {
	if l.given != "" {
		return l.given, nil
	}
	path := filepath.Join(l.dir, "kubeconfigs", fileName(name))
	return path, writeKubeconfig(path, l.config(name))
}

func (l *launcher) config(name string) *rest.Config {
	return &rest.Config{
		Host:            l.server,
		BearerToken:     l.pki.users[name].token,
		TLSClientConfig: rest.TLSClientConfig{CAData: l.pki.ca},
		QPS:             -1,
	}
}

// writeKubeconfig writes what config says as a kubeconfig file.
func writeKubeconfig(path string, config *rest.Config) error {
	const name = "strata"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host + config.APIPath,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify:    config.Insecure,
		TLSServerName:            config.ServerName,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token:                 config.BearerToken,
		TokenFile:             config.BearerTokenFile,
		Username:              config.Username,
		Password:              config.Password,
		ClientCertificate:     config.CertFile,
		ClientCertificateData: config.CertData,
		ClientKey:             config.KeyFile,
		ClientKeyData:         config.KeyData,
		Exec:                  config.ExecProvider,
		Impersonate:           config.Impersonate.UserName,
		ImpersonateGroups:     config.Impersonate.Groups,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	data, err := clientcmd.Write(*kubeconfig)
	if err == nil {
		err = replaceFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("cannot write kubeconfig %s: %w", path, err)
	}
	return nil
}

// replaceFile writes a file that others may read at any time: they find what it
// was or what it is now, and nothing between.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
