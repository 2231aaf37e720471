// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
)

const (
	kubeletConf   = "/etc/kubernetes/kubelet.conf"
	bootstrapConf = "/etc/kubernetes/bootstrap-kubelet.conf"
	kubeletKey    = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	kubeletConfig = "/var/lib/kubelet/config.yaml"
)

// client returns a client by kubelet.conf; where that is missing it is asked for, by
// bootstrap-kubelet.conf, as a kubelet does it.
func client(ctx context.Context, node string) (kubernetes.Interface, error) {
	if _, err := os.Stat(kubeletConf); errors.Is(err, fs.ErrNotExist) {
		if err := bootstrap(ctx, node); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeletConf)
	if err != nil {
		return nil, err
	}
	config.Timeout = 10 * time.Second
	return kubernetes.NewForConfig(config)
}

// bootstrap asks for a certificate and writes kubelet.conf.
func bootstrap(ctx context.Context, node string) error {
	raw, err := clientcmd.LoadFromFile(bootstrapConf)
	if err != nil {
		return err
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return err
	}
	asks, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	request, err := cert.MakeCSR(key, &pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		return err
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	name, uid, err := csr.RequestCertificateWithContext(ctx, asks, request, "", certificatesv1.KubeAPIServerClientKubeletSignerName, nil, usages, key)
	if err != nil {
		return fmt.Errorf("cannot ask for a certificate: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	signed, err := csr.WaitForCertificate(ctx, asks, name, uid)
	if err != nil {
		return fmt.Errorf("the certificate was not signed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(kubeletKey), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(kubeletKey, append(signed, keyPEM...), 0o600); err != nil {
		return err
	}
	cluster := raw.Clusters[raw.Contexts[raw.CurrentContext].Cluster]
	made := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default": {ClientCertificate: kubeletKey, ClientKey: kubeletKey}},
		Contexts:       map[string]*clientcmdapi.Context{"default": {Cluster: "default", AuthInfo: "default"}},
		CurrentContext: "default",
	}
	return clientcmd.WriteToFile(made, kubeletConf)
}
