// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostclusters_test

import (
	"strings"
	"testing"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostclusters"
)

// ofKubeOne is what kubeadm has of a cluster whose API servers somebody else has given
// something.
const ofKubeOne = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
apiServer:
  certSANs: [api.example.com]
  extraArgs:
  - {name: enable-admission-plugins, value: NodeRestriction}
  - {name: audit-log-path, value: /old/audit.log}
  extraVolumes:
  - {name: theirs, hostPath: /srv, mountPath: /srv, pathType: Directory}
  - {name: strata-audit, hostPath: /old, mountPath: /old, pathType: DirectoryOrCreate}
`

// What the manifest says of API servers takes the place of what it said before. What
// somebody else has given them stays, and so does everything where nothing changes.
func TestWithAPIServer(t *testing.T) {
	audit := v1alpha1.HostAPIServer{Audit: &v1alpha1.HostAudit{Policy: "a", Directory: "/var/log/kubernetes/audit", MaxAge: 1, MaxBackups: 2, MaxSize: 3}}
	made, err := hostclusters.WithAPIServer(ofKubeOne, audit, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- name: enable-admission-plugins\n    value: NodeRestriction", "certSANs:\n  - api.example.com", "name: theirs", "kubernetesVersion: v1.36.3",
		"- name: audit-log-path\n    value: /var/log/kubernetes/audit/audit.log", "mountPath: /var/log/kubernetes/audit", "value: /etc/kubernetes/strata/audit-policy-ca978112.yaml",
		"mountPath: /etc/kubernetes/strata\n    name: strata\n    pathType: DirectoryOrCreate\n    readOnly: true",
	} {
		if !strings.Contains(made, want) {
			t.Errorf("%q is not in\n%s", want, made)
		}
	}
	if strings.Contains(made, "/old") {
		t.Errorf("what was ours before is in\n%s", made)
	}
	spec := v1alpha1.HostClusterSpec{APIServer: audit, ControlPlane: []v1alpha1.ClusterHost{{Name: "cp-0"}, {Name: "cp-1"}}}
	if changes := hostclusters.APIServerDrift(made, spec); len(changes) > 0 {
		t.Errorf("%+v", changes)
	}
	changes := hostclusters.APIServerDrift(ofKubeOne, spec)
	if len(changes) != 1 || !changes[0].API || !changes[0].OnHost ||
		!strings.HasPrefix(changes[0].String(), "apiServer: audit-log-path=/old/audit.log -> audit-log-maxage=1 audit-log-maxbackup=2") {
		t.Errorf("%+v", changes)
	}
	// Another policy is another argument: an API server reads it when it starts.
	other := audit
	other.Audit = &v1alpha1.HostAudit{Policy: "b"}
	if a, b := hostclusters.APIServerOf(audit, "").Arguments, hostclusters.APIServerOf(other, "").Arguments; a[len(a)-1] == b[len(b)-1] {
		t.Errorf("%v is that of both policies", a[len(a)-1])
	}

	// What kubeadm leaves when it upgrades a cluster without settings is none.
	if changes := hostclusters.APIServerDrift("apiVersion: kubeadm.k8s.io/v1beta4\napiServer: {}\n", v1alpha1.HostClusterSpec{}); len(changes) > 0 {
		t.Errorf("%+v", changes)
	}

	// Without settings there is nothing to say of a configuration of before.
	old := strings.Replace(ofKubeOne, "v1beta4", "v1beta3", 1)
	if changes := hostclusters.APIServerDrift(old, v1alpha1.HostClusterSpec{ControlPlane: spec.ControlPlane}); len(changes) > 0 {
		t.Errorf("%+v", changes)
	}
	if _, err := hostclusters.WithAPIServer(old, audit, ""); err == nil || !strings.Contains(err.Error(), "is of kubeadm.k8s.io/v1beta3") {
		t.Error(err)
	}
	for _, wrong := range []string{"{", "apiVersion: kubeadm.k8s.io/v1beta4\napiServer: 3\n", "apiVersion: kubeadm.k8s.io/v1beta4\napiServer: {extraArgs: {a: b}}\n"} {
		if _, err := hostclusters.WithAPIServer(wrong, audit, ""); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestMistakesAboutAPIServers(t *testing.T) {
	for text, want := range map[string]string{
		"audit: {policy: 'kind: Policy'}": "spec.apiServer.audit.policy: ",
		"audit: {policy: \"apiVersion: audit.k8s.io/v1\\nkind: Policy\\nrules: [{level: Everything}]\"}": "spec.apiServer.audit.policy: ",
		"oidc: {issuerURL: 'https://me:pw@issuer.example.com', clientID: a}":                             "spec.apiServer.oidc.issuerURL: must be https://",
		"oidc: {issuerURL: 'http://issuer.example.com', clientID: a}":                                    "spec.apiServer.oidc.issuerURL",
		"oidc: {issuerURL: 'https://issuer.example.com', clientID: a, groupsPrefix: b}":                  "spec.apiServer.oidc.groupsPrefix: has nothing",
		"oidc: {issuerURL: 'https://issuer.example.com', clientID: a, requiredClaims: {a: 'b,c=d'}}":     "spec.apiServer.oidc.requiredClaims",
		"oidc: {issuerURL: 'https://issuer.example.com', clientID: a, certificateAuthority: b}":          "spec.apiServer.oidc.certificateAuthority: has no certificate",
	} {
		manifest := "apiVersion: kraan.io/v1alpha1\nkind: HostCluster\nmetadata: {name: edge}\nspec:\n  version: v1.36.3\n  controlPlane: [{name: cp-0, address: 10.0.0.10}]\n  apiServer:\n    " + text + "\n"
		_, err := hostclusters.Read(t.Context(), "hosts.yaml", []byte(manifest))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
