// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/test/controlplane"
)

// issuer is one of OpenID Connect, which API servers of a lab reach.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T, address string) *issuer {
	t.Helper()
	i := &issuer{}
	var err error
	if i.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	answer := func(content any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content)
		}
	}
	plain := base64.RawURLEncoding.EncodeToString
	mux := http.NewServeMux()
	i.Server = httptest.NewUnstartedServer(mux)
	if i.Listener, err = net.Listen("tcp", address+":0"); err != nil {
		t.Fatal(err)
	}
	i.TLS = &tls.Config{Certificates: []tls.Certificate{certificateFor(t, address)}}
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.StartTLS()
	t.Cleanup(i.Close)
	mux.HandleFunc("/.well-known/openid-configuration", answer(map[string]any{
		"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
	}))
	mux.HandleFunc("/keys", answer(map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "one", "n": plain(i.key.N.Bytes()), "e": plain(big.NewInt(int64(i.key.E)).Bytes()),
	}}}))
	return i
}

// certificateFor makes a certificate of a server at an address, which nobody else has signed.
func certificateFor(t *testing.T, address string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(address)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: key}
}

// token returns one of the issuer's.
func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	claims["iss"], claims["exp"], claims["iat"] = i.URL, time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Minute).Unix()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	plain := base64.RawURLEncoding.EncodeToString
	text := plain([]byte(`{"alg":"RS256","kid":"one"}`)) + "." + plain(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + plain(signature)
}

// as returns who an API server takes the bearer of a token for.
func (u *user) as(token string) (authenticationv1.UserInfo, error) {
	u.Helper()
	config := u.config()
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		u.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(u.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// API servers write down what they are asked and let people of an issuer in, as soon as the
// manifest says so, though apply is killed at every step; a host that joins does the same,
// and all of it goes when the manifest says so no more.
func TestAPIServersGetTheirSettings(t *testing.T) {
	t.Parallel()
	u := newUser(t, 3)
	cp := u.lab.Hosts()
	u.write("edge", cp[:2]...)
	u.must(0, []string{"apply", "--yes"}, "Done: ")
	plain := u.read()
	from := newIssuer(t, u.lab.IP())
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: from.Certificate().Raw}))
	settings := fmt.Sprintf(`  apiServer:
    audit:
      directory: /var/lib/audit
      policy: |
        apiVersion: audit.k8s.io/v1
        kind: Policy
        omitStages: [RequestReceived]
        rules: [{level: Metadata, resources: [{group: authentication.k8s.io}]}]
    oidc:
      issuerURL: %s
      clientID: kubernetes
      usernamePrefix: "oidc:"
      groupsClaim: groups
      groupsPrefix: "oidc:"
      requiredClaims: {site: north}
      certificateAuthority: |
        %s
`, from.URL, strings.ReplaceAll(strings.TrimSpace(authority), "\n", "\n        "))
	u.add(settings)
	u.want(hosts.Update, "", "changes settings: apiServer: - -> audit-log-maxage=30", "Update")
	u.eachStep(0, "apply", "--yes")
	u.must(0, []string{"plan"}, "Done: there is nothing to do")
	alice := map[string]any{"aud": "kubernetes", "sub": "alice", "site": "north", "groups": []string{"edge", "system:masters"}}
	err := controlplane.WaitFor(t.Context(), time.Minute, func(context.Context) error {
		who, err := u.as(from.token(t, alice))
		if err == nil && (who.Username != "oidc:alice" || !strings.Contains(strings.Join(who.Groups, " "), "oidc:edge oidc:system:masters")) {
			err = fmt.Errorf("%+v", who)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v%s", err, u.logs())
	}
	for claim, value := range map[string]any{"aud": "other", "site": "south"} {
		wrong := map[string]any{"aud": "kubernetes", "sub": "alice", "site": "north"}
		wrong[claim] = value
		if who, err := u.as(from.token(t, wrong)); err == nil {
			t.Errorf("with %s=%v it is %+v", claim, value, who)
		}
	}
	if said := cp[0].File("/var/lib/audit/audit.log"); !strings.Contains(said, "oidc:alice") || strings.Contains(said, `"resource":"nodes"`) {
		t.Errorf("the log has %.2000s", said)
	}

	// A host that joins has them from the start.
	u.write("edge", cp...)
	u.add(settings)
	u.must(0, []string{"apply", "--yes", "--without-snapshot"}, "cp-2 has joined", "Done: ")
	if manifest := cp[2].File("/etc/kubernetes/manifests/kube-apiserver.yaml"); !strings.Contains(manifest, "--oidc-issuer-url="+from.URL) || !strings.Contains(manifest, "--audit-log-path=/var/lib/audit/audit.log") {
		t.Errorf("its API server has %s", manifest)
	}

	// They go with the manifest's words.
	u.save(plain)
	u.add(listed(cp[2]))
	u.must(0, []string{"apply", "--yes"}, "starts its API server again", "Done: ")
	for _, host := range cp {
		if manifest := host.File("/etc/kubernetes/manifests/kube-apiserver.yaml"); strings.Contains(manifest, "oidc") || strings.Contains(manifest, "audit") {
			t.Errorf("%s has %s", host.Name, manifest)
		}
	}
	if who, err := u.as(from.token(t, alice)); err == nil {
		t.Errorf("it is still %+v", who)
	}
}
