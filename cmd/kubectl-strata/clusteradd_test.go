// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/kubeconfig"
)

// otherCluster is an API server with TLS that gives tokens, and a kubeconfig of it.
type otherCluster struct {
	*apitest.Server
	front      *httptest.Server
	kubeconfig string
	// tokens that it gave, the last of which counts unless it refuses them.
	tokens  int
	refuses bool
}

func newOtherCluster(t *testing.T, objects ...string) *otherCluster {
	t.Helper()
	objects = append(objects, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cluster-admin}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: other}}",
		"{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: none}}")
	other := &otherCluster{Server: apitest.New(t, apitest.Parse(t, strings.Join(objects, "\n---\n"))...)}
	other.front = httptest.NewTLSServer(http.HandlerFunc(other.serve))
	t.Cleanup(other.front.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.front.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "ca.crt")
	other.kubeconfig = filepath.Join(t.TempDir(), "other")
	// The context has its certificate in a file, and a program for credentials.
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: unused
contexts: [{name: other, context: {cluster: c, user: u}}, {name: careless, context: {cluster: careless, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority: %s}}, {name: careless, cluster: {server: %[1]q, insecure-skip-tls-verify: true}}]
users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: echo, args: ['{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"bootstrap"}}']}}
`, other.front.URL, file)
	for name, data := range map[string][]byte{file: ca, other.kubeconfig: []byte(text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

func (o *otherCluster) serve(w http.ResponseWriter, r *http.Request) {
	answer := func(value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value) // the client will tell
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case bearer != "bootstrap" && (bearer != fmt.Sprintf("token-%d", o.tokens) || o.refuses):
		w.WriteHeader(http.StatusUnauthorized)
		answer(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"})
	case strings.HasSuffix(r.URL.Path, "/token"):
		o.tokens++
		answer(map[string]any{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{
			"token": fmt.Sprintf("token-%d", o.tokens), "expirationTimestamp": noon.Add(24 * time.Hour).Format(time.RFC3339),
		}})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		answer(map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": true}})
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets"):
		// The token controller puts one into the Secret.
		var secret map[string]any
		_ = json.NewDecoder(r.Body).Decode(&secret)
		o.tokens++
		secret["data"] = map[string]any{"token": base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "token-%d", o.tokens))}
		data, _ := json.Marshal(secret)
		r.Body, r.ContentLength = http.NoBody, 0
		again := r.Clone(r.Context())
		again.Body = readCloser{bytes.NewReader(data)}
		o.Config.Handler.ServeHTTP(w, again)
	default:
		o.Config.Handler.ServeHTTP(w, r)
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

const joinedCluster = `
apiVersion: kraan.io/v1alpha1
kind: RemoteCluster
metadata: {namespace: fleet, name: eu}
spec: {kubeConfig: {secretRef: {name: eu-kubeconfig, key: value}}}
status: {observedGeneration: 0, version: v1.36.3, conditions: [{type: Ready, status: "True", reason: Reachable, message: it answers, lastTransitionTime: "2026-12-01T00:00:00Z"}]}
`

func TestClusterAdd(t *testing.T) {
	other := newOtherCluster(t)
	management := apitest.New(t)
	run := func(args string) (int, string, string) {
		t.Helper()
		code, out, errOut := commandLine(t, management, terminalOf(0), args+" --kubeconfig-of "+other.kubeconfig)
		return code, strings.ReplaceAll(out, other.front.URL, "URL"), errOut
	}
	code, out, errOut := run("cluster add fleet/eu --from-context other -l region=eu --wait=false")
	if code != 0 || !strings.Contains(out, "RemoteCluster fleet/eu is made") || !strings.Contains(errOut, "is an address of this machine") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	writes := strings.Join(other.Writes(), "\n")
	for _, want := range []string{"/namespaces/strata-system ", "/serviceaccounts/strata-fleet-eu ", "/clusterrolebindings/strata-fleet-eu ", `"name":"cluster-admin"`, "kubernetes.io/service-account-token"} {
		if !strings.Contains(writes, want) {
			t.Errorf("the other cluster lacks %s:\n%s", want, writes)
		}
	}
	here := management.Writes()
	if len(here) != 3 || !strings.Contains(here[0], "/namespaces/fleet ") || !strings.Contains(here[1], "/secrets/eu-kubeconfig ") || !strings.Contains(here[2], `"labels":{"region":"eu"}`) {
		t.Fatalf("the management cluster gets %v", here)
	}
	access := storedAccess(t, here[1])
	if access.Config.BearerToken != "token-1" || access.Endpoint != other.front.URL || len(access.Config.CAData) == 0 || access.Config.ExecProvider != nil {
		t.Errorf("the kubeconfig is %+v", access.Config)
	}

	// Again: another token, no second account, and the first token goes.
	if code, _, errOut := run("cluster add fleet/eu --from-context other --wait=false"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	again := other.Writes()[strings.Count(writes, "\n")+1:]
	if got := strings.Join(again, "\n"); strings.Count(got, "POST ") != 1 || strings.Count(got, "DELETE ") != 1 {
		t.Errorf("again it writes\n%s", got)
	}
	if access := storedAccess(t, management.Writes()[3]); access.Config.BearerToken != "token-2" {
		t.Errorf("the token is %s", access.Config.BearerToken)
	}
	if code, _, errOut := run("cluster add fleet/eu --from-context other --wait=false --token-duration 24h"); code != 0 || other.tokens != 3 {
		t.Errorf("exit code %d, %d tokens: %s", code, other.tokens, errOut)
	}

	// Plan, and go.
	code, out, errOut = run("cluster forget fleet/eu --plan --from-context other")
	if code != 0 || !strings.Contains(out, "would delete Secret fleet/eu-kubeconfig") || !strings.Contains(out, "would delete ServiceAccount strata-system/strata-fleet-eu on") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	code, out, errOut = run("cluster forget fleet/eu --from-context other")
	want := "RemoteCluster fleet/eu is deleted\nSecret fleet/eu-kubeconfig is deleted\ndeleted on the cluster of context other: ClusterRoleBinding strata-fleet-eu, ServiceAccount strata-system/strata-fleet-eu\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut = run("cluster forget fleet/eu --from-context other"); code != 1 || !strings.Contains(errOut, "there is no RemoteCluster fleet/eu") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// storedAccess reads the kubeconfig in what was written as the controller does.
func storedAccess(t *testing.T, write string) *kubeconfig.Access {
	t.Helper()
	text := regexp.MustCompile(`"value":"([^"]+)"`).FindStringSubmatch(write)
	if len(text) == 0 {
		t.Fatalf("it has no kubeconfig: %s", write)
	}
	data, err := base64.StdEncoding.DecodeString(text[1])
	if err != nil {
		t.Fatal(err)
	}
	access, err := kubeconfig.Parse(data, kubeconfig.Allow{})
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func TestClusterAddWaits(t *testing.T) {
	other := newOtherCluster(t)
	ready := apitest.New(t, apitest.Parse(t, joinedCluster)...)
	// The test's server forgets a status that is applied over, so that it is not
	// ready any more.
	code, out, errOut := commandLine(t, ready, terminalOf(0), "cluster add fleet/eu --from-context other --timeout 400ms --kubeconfig-of "+other.kubeconfig)
	if code != 2 || !strings.Contains(out, "is made, but is not ready within 400ms: it has not been looked at yet") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

func TestClusterAddDryRun(t *testing.T) {
	other := newOtherCluster(t)
	management := apitest.New(t)
	code, out, errOut := commandLine(t, management, terminalOf(0), "cluster add eu -n fleet --from-context other -l region=eu --address https://eu.example.com:6443 --dry-run --kubeconfig-of "+other.kubeconfig)
	if code != 0 || errOut != "" || len(management.Writes())+len(other.Requests()) > 0 {
		t.Fatalf("exit code %d: %s%s %v", code, out, errOut, other.Requests())
	}
	out = regexp.MustCompile(`certificate-authority-data: .*`).ReplaceAllString(out, "certificate-authority-data: CA")
	golden(t, "cluster-add-dry-run.txt", out)
}

func TestClusterAddFailsHalfWay(t *testing.T) {
	other := newOtherCluster(t)
	management := apitest.New(t)
	management.Refuse["secrets"] = 403
	run := func(args string) (int, string) {
		t.Helper()
		code, out, errOut := commandLine(t, management, terminalOf(0), args+" --kubeconfig-of "+other.kubeconfig)
		return code, out + errOut
	}
	if code, said := run("cluster add fleet/eu --from-context other"); code != 1 || !strings.Contains(said, "you may not read Secrets of namespace fleet") || len(other.Writes()) > 0 {
		t.Errorf("exit code %d: %s %v", code, said, other.Writes())
	}
	delete(management.Refuse, "secrets")
	management.Refuse["namespaces"] = 500
	if code, said := run("cluster add fleet/eu --from-context other"); code != 1 || !strings.Contains(said, "until then there was made: Namespace strata-system on the cluster of context other, ServiceAccount strata-system/strata-fleet-eu") || !strings.Contains(said, "Run the same command again") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if writes := management.Writes(); len(writes) > 0 {
		t.Errorf("the management cluster gets %v", writes)
	}
	delete(management.Refuse, "namespaces")
	for args, words := range map[string]string{
		"cluster add eu": "--from-context is missing",
		"cluster add fleet/eu --from-context othr":                        "there is no context othr; did you mean other?",
		"cluster add fleet/eu --from-context careless":                    "the controller would refuse the kubeconfig: cluster.insecure-skip-tls-verify",
		"cluster add fleet/eu --from-context other --role cluster-admi":   "has no ClusterRole cluster-admi; did you mean cluster-admin?",
		"cluster add fleet/eu --from-context other -l x":                  "--labels has \"x\"",
		"cluster add fleet/eu --from-context other -l x=a/b":              "is no label",
		"cluster add fleet/Eu --from-context other":                       "\"Eu\" is no name of a cluster",
		"cluster add fleet/eu -n edge --from-context other":               "is not in the namespace edge",
		"cluster add fleet/eu --from-context other --token-duration 1m":   "--token-duration is 1m0s",
		"cluster add fleet/eu --from-context other --address http://here": "cluster.server: must begin with https://",
	} {
		if code, said := run(args); code != 1 || !strings.Contains(said, words) {
			t.Errorf("%s: exit code %d, %s", args, code, said)
		}
	}
}

// Nothing is written on the management cluster while the token does not work.
func TestClusterAddTriesTheToken(t *testing.T) {
	other := newOtherCluster(t)
	other.refuses = true
	management := apitest.New(t)
	code, _, errOut := commandLine(t, management, terminalOf(0), "cluster add fleet/eu --from-context other --timeout 1s --kubeconfig-of "+other.kubeconfig)
	if code != 1 || !strings.Contains(errOut, "the new token does not work: ") || !strings.Contains(errOut, "Unauthorized") && !strings.Contains(errOut, "provide credentials") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if writes := management.Writes(); len(writes) > 0 {
		t.Errorf("it writes %v", writes)
	}
	if strings.Contains(errOut, "token-1") {
		t.Errorf("it shows the token: %s", errOut)
	}
}

func TestClusterAddLeavesWhatOthersMade(t *testing.T) {
	other := newOtherCluster(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: strata-system, name: strata-fleet-eu}}")
	run := func(management *apitest.Server) string {
		t.Helper()
		code, out, errOut := commandLine(t, management, terminalOf(0), "cluster add fleet/eu --from-context other --kubeconfig-of "+other.kubeconfig)
		if code != 1 {
			t.Errorf("exit code %d: %s", code, out)
		}
		return errOut
	}
	if said := run(apitest.New(t, apitest.Parse(t, strings.ReplaceAll(joinedCluster, "eu-kubeconfig", "mine"))...)); !strings.Contains(said, "that reads Secret mine") {
		t.Error(said)
	}
	if said := run(apitest.New(t, apitest.Parse(t, "{apiVersion: v1, kind: Secret, metadata: {namespace: fleet, name: eu-kubeconfig}}")...)); !strings.Contains(said, "there is a Secret fleet/eu-kubeconfig that was made in another way") {
		t.Error(said)
	}
	if said := run(apitest.New(t)); !strings.Contains(said, "there is a ServiceAccount strata-system/strata-fleet-eu on the cluster of context other that was made in another way") {
		t.Error(said)
	}
}

func TestClusterForgetIsRefused(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, joinedCluster+`---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: base}
spec: {version: 1.0.0, cluster: {namespace: fleet, name: eu}}
`)...)
	want := "RemoteCluster fleet/eu is not deleted while something is there:\n- AddonsLayer base\n"
	for _, args := range []string{"cluster forget fleet/eu", "cluster forget eu -n fleet --plan", "cluster forget eu -n fleet --plan --force"} {
		if code, out, errOut := commandLine(t, server, terminalOf(0), args); code != 2 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errOut)
		}
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it writes %v", writes)
	}
	code, out, errOut := commandLine(t, server, terminalOf(0), "cluster forget fleet/eu --force --wait=false")
	if code != 0 || !strings.Contains(out, "is given up") || !strings.Contains(strings.Join(server.Writes(), "\n"), `{"metadata":{"annotations":{"kraan.io/abandon":"true"}}}`) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := commandLine(t, server, terminalOf(0), "cluster forget fleet/eux"); code != 1 || !strings.Contains(errOut, "there is no RemoteCluster fleet/eux") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestClusterList(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, joinedCluster)...)
	for _, args := range []string{"cluster list", "clusters", "cluster fleet/eu", "cluster list fleet/eu"} {
		if code, out, errOut := commandLine(t, server, terminalOf(0), args); code != 0 || !strings.Contains(out, "fleet/eu") {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errOut)
		}
	}
}
