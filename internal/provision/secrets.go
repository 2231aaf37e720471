// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// tokenTime is how long a host may take to join with its token.
const tokenTime = actionTime + 5*time.Minute

// newID returns the ID of a cluster that is made now.
func newID(namespace, name string) string { return namespace + "/" + name + "/" + newHex(5) }

func newHex(n int) string {
	data := make([]byte, n)
	_, _ = rand.Read(data) // which never fails
	return hex.EncodeToString(data)
}

// newCertificateKey returns a key as kubeadm wants it.
func newCertificateKey() string { return newHex(32) }

// newToken returns a token as kubeadm wants it: abcdef.0123456789abcdef.
func newToken() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	token := make([]byte, 22)
	for i := range token {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(letters))))
		if err != nil {
			panic(err) // crypto/rand never fails
		}
		token[i] = letters[n.Int64()]
	}
	return string(token[:6]) + "." + string(token[6:])
}

// authorityHash returns the hash by which kubeadm knows a certificate authority.
func authorityHash(pem []byte) (string, error) {
	certificates, err := cert.ParseCertsPEM(pem)
	if err != nil || len(certificates) == 0 {
		return "", errors.New("the certificate authority of the cluster cannot be read")
	}
	sum := sha256.Sum256(certificates[0].RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// makeToken has the cluster accept a token for a while.
func makeToken(ctx context.Context, client kubernetes.Interface, token string, now time.Time) error {
	id, secret, _ := strings.Cut(token, ".")
	_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "expiration": now.Add(tokenTime).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", "description": "made by Strata, for a host that joins",
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("cannot make a token to join with: %w", err)
	}
	return nil
}

// dropSecrets takes away what a host has joined with.
func dropSecrets(ctx context.Context, client kubernetes.Interface, token string) {
	id, _, _ := strings.Cut(token, ".")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	for _, name := range []string{"bootstrap-token-" + id, "kubeadm-certs"} {
		_ = client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, name, metav1.DeleteOptions{})
	}
}
