// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs that somebody else has written: what may
// stand in one, and when its credentials end. It reads no file, asks nobody, and
// imports of Strata what cleans texts alone.
package kubeconfig

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/strata-project/strata/internal/address"
	"github.com/strata-project/strata/internal/printable"
)

// secretKeys are the keys of a Secret that are tried for a kubeconfig, in order, where
// none is named: Flux's and Cluster API's, vcluster's, the word itself, and that of KEP-4322.
var secretKeys = []string{"value", "config", "kubeconfig", "Config"}

// maxURL bounds an address, in bytes.
const maxURL = 2048

// Allow opens what a kubeconfig may otherwise not do, because whoever writes the
// Secret would make this process do it.
type Allow struct {
	// Exec lets it run a program for credentials.
	Exec bool
	// Files lets it read files of this process.
	Files bool
	// Insecure lets it leave the API server's certificate unchecked.
	Insecure bool
}

// Access is how a cluster is reached.
type Access struct {
	Facts
	// Config for clients.
	Config *rest.Config
}

// Facts are what a kubeconfig says of itself.
type Facts struct {
	// KubeConfig as it was written.
	KubeConfig []byte
	// Digest identifies KubeConfig.
	Digest string
	// Endpoint is the URL of the API server.
	Endpoint string
	// Issued is when the credentials began, and Expires when they end; zero where
	// they do not say.
	Issued, Expires time.Time
}

// KeyError says that a Secret has no kubeconfig under the keys that count.
type KeyError struct {
	// Tried are the keys, and Found those under which the Secret has something.
	Tried, Found []string
}

// IsEmpty tells whether the Secret holds nothing at all: what fills it may have yet to come.
func (e *KeyError) IsEmpty() bool { return len(e.Found) == 0 }

// Error names both.
func (e *KeyError) Error() string {
	if e.IsEmpty() {
		return "is empty"
	}
	found := "it has " + strings.Join(e.Found, ", ")
	if len(e.Tried) == 1 {
		return fmt.Sprintf("has no key %s, which spec.kubeConfig.secretRef.key names: %s", e.Tried[0], found)
	}
	return fmt.Sprintf("has no key %s: %s; name the key in spec.kubeConfig.secretRef.key", strings.Join(e.Tried, ", "), found)
}

// Find returns the kubeconfig in the data of a Secret: under key, or under the
// first of secretKeys where key is empty. The error is a *KeyError.
func Find(data map[string][]byte, key string) ([]byte, error) {
	tried := secretKeys
	if key != "" {
		tried = []string{key}
	}
	for _, name := range tried {
		if value := data[name]; len(value) > 0 {
			return value, nil
		}
	}
	found := make([]string, 0, len(data))
	for name, value := range data {
		if len(value) > 0 {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return nil, &KeyError{Tried: tried, Found: found}
}

// Parse reads a kubeconfig. Only its current context counts. The error names the
// field that is wrong, and quotes no credentials.
func Parse(data []byte, allow Allow) (*Access, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("is no kubeconfig: it cannot be read as YAML or JSON of the kind Config")
	}
	cluster, user, err := current(config)
	if err != nil {
		return nil, err
	}
	if err := checkCluster(cluster, allow); err != nil {
		return nil, err
	}
	if err := checkUser(user, allow); err != nil {
		return nil, err
	}
	made, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot be used: %w", err)
	}
	made.Timeout = 0
	sum := sha256.Sum256(data)
	begins, ends := lifetime(user)
	access := &Access{Config: made, Facts: Facts{
		KubeConfig: data, Digest: hex.EncodeToString(sum[:8]), Endpoint: address.Show(cluster.Server), Issued: begins, Expires: ends,
	}}
	if _, err := rest.TLSConfigFor(made); err != nil {
		return nil, errors.New("has certificates or keys that cannot be read")
	}
	return access, nil
}

// current returns the cluster and the user of the current context.
func current(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if config.CurrentContext == "" {
		return nil, nil, errors.New("current-context: is not set")
	}
	named := config.Contexts[config.CurrentContext]
	if named == nil {
		return nil, nil, fmt.Errorf("current-context: there is no context %q", config.CurrentContext)
	}
	cluster := config.Clusters[named.Cluster]
	if cluster == nil {
		return nil, nil, fmt.Errorf("contexts[%s].cluster: there is no cluster %q", config.CurrentContext, named.Cluster)
	}
	user := config.AuthInfos[named.AuthInfo]
	if user == nil {
		return nil, nil, fmt.Errorf("contexts[%s].user: there is no user %q", config.CurrentContext, named.AuthInfo)
	}
	return cluster, user, nil
}

func checkCluster(cluster *clientcmdapi.Cluster, allow Allow) error {
	server, err := url.Parse(cluster.Server)
	switch {
	case cluster.Server == "":
		return errors.New("cluster.server: is not set")
	case err != nil || server.Host == "" || printable.Line(cluster.Server, maxURL) != cluster.Server:
		return errors.New("cluster.server: is no URL such as https://[fd00::1]:6443")
	case server.User != nil:
		return errors.New("cluster.server: must not hold a user and a password")
	case server.Scheme != "https" && !allow.Insecure:
		return errors.New("cluster.server: must begin with https:// (--insecure-kubeconfig-tls allows others)")
	case cluster.InsecureSkipTLSVerify && !allow.Insecure:
		return errors.New("cluster.insecure-skip-tls-verify: is refused; give certificate-authority-data (--insecure-kubeconfig-tls allows it)")
	case cluster.CertificateAuthority != "" && !allow.Files:
		return errors.New("cluster.certificate-authority: a file is refused; give certificate-authority-data (--insecure-kubeconfig-files allows it)")
	}
	if cluster.ProxyURL != "" {
		if proxy, err := url.Parse(cluster.ProxyURL); err != nil || proxy.Host == "" || printable.Line(cluster.ProxyURL, maxURL) != cluster.ProxyURL {
			return errors.New("cluster.proxy-url: is no URL")
		}
	}
	return nil
}

func checkUser(user *clientcmdapi.AuthInfo, allow Allow) error {
	switch {
	case user.Exec != nil && !allow.Exec:
		return errors.New("user.exec: running a program for credentials is refused (--insecure-kubeconfig-exec allows it)")
	case user.AuthProvider != nil:
		return errors.New("user.auth-provider: is not supported; give a token or a client certificate")
	case user.TokenFile != "" && !allow.Files:
		return errors.New("user.tokenFile: a file is refused; give token (--insecure-kubeconfig-files allows it)")
	case user.ClientCertificate != "" && !allow.Files:
		return errors.New("user.client-certificate: a file is refused; give client-certificate-data (--insecure-kubeconfig-files allows it)")
	case user.ClientKey != "" && !allow.Files:
		return errors.New("user.client-key: a file is refused; give client-key-data (--insecure-kubeconfig-files allows it)")
	}
	return nil
}

// lifetime returns when the first of the credentials to end began, and when it
// ends; each is zero where they do not say.
func lifetime(user *clientcmdapi.AuthInfo) (begins, ends time.Time) {
	begins, ends = certificateLifetime(user.ClientCertificateData)
	if issued, end := tokenLifetime(user.Token); ends.IsZero() || !end.IsZero() && end.Before(ends) {
		return issued, end
	}
	return begins, ends
}

func certificateLifetime(data []byte) (begins, ends time.Time) {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}, time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, time.Time{}
	}
	return certificate.NotBefore, certificate.NotAfter
}

// tokenLifetime reads the claims iat and exp of a JSON web token; other tokens say
// nothing. The API server decides whose signature counts.
func tokenLifetime(token string) (begins, ends time.Time) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, time.Time{}
	}
	var claims struct {
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return time.Time{}, time.Time{}
	}
	return moment(claims.Issued), moment(claims.Expires)
}

// moment returns what a claim says; zero where that is no moment.
func moment(seconds float64) time.Time {
	const latest = 253402300799 // the end of the year 9999, the last that JSON times can say
	if seconds <= 0 || seconds > latest {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
