// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What secures the metrics goes together: the flag, the rights that it takes, the
// role of those who read, and how Prometheus asks. Where it is not asked for, nothing
// of it is there.
func TestMetricsAreSecuredAsAWhole(t *testing.T) {
	const (
		monitor = `serviceMonitor: {enabled: true}`
		token   = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	)
	type secured struct {
		Args     []string
		Roles    map[string][]rbacv1.PolicyRule
		Bound    string
		Endpoint map[string]any
	}
	open := secured{Roles: map[string][]rbacv1.PolicyRule{}, Endpoint: map[string]any{}}
	roles := map[string][]rbacv1.PolicyRule{
		"strata-metrics-auth": {
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		},
		"strata-metrics-reader": {{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	unchecked := map[string]any{"scheme": "https", "bearerTokenFile": token, "tlsConfig": map[string]any{"insecureSkipVerify": true}}
	checked := map[string]any{"scheme": "https", "bearerTokenFile": token, "tlsConfig": map[string]any{
		"ca":         map[string]any{"secret": map[string]any{"name": "metrics-tls", "key": "ca.crt"}},
		"serverName": "strata-metrics.strata-system.svc",
	}}
	const account = "strata-system/strata"
	for _, tc := range []struct {
		reason, values string
		want           secured
	}{
		{"an upgrade changes nothing", `{` + monitor + `}`, open},
		{"it is one value", `{metrics: {secure: true}, ` + monitor + `}`, secured{[]string{"--metrics-secure"}, roles, account, unchecked}},
		{"lockdown sets it", `{lockdown: true, ` + monitor + `}`, secured{[]string{"--metrics-secure"}, roles, account, unchecked}},
		{
			"whoever is shown a certificate checks it", `{metrics: {secure: true, certSecret: metrics-tls}, ` + monitor + `}`,
			secured{[]string{"--metrics-secure", "--metrics-cert-dir=/certs"}, roles, account, checked},
		},
		{
			"roles are somebody else's", `{metrics: {secure: true}, rbac: {create: false}, ` + monitor + `}`,
			secured{[]string{"--metrics-secure"}, open.Roles, "", unchecked},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := secured{Roles: map[string][]rbacv1.PolicyRule{}, Endpoint: map[string]any{}}
			objects := render(t, tc.values)
			for _, arg := range only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args {
				if strings.HasPrefix(arg, "--metrics-") && !strings.HasPrefix(arg, "--metrics-addr=") {
					got.Args = append(got.Args, arg)
				}
			}
			for _, obj := range objects {
				if !strings.HasPrefix(obj.GetName(), "strata-metrics-") {
					continue
				}
				switch obj := obj.(type) {
				case *rbacv1.ClusterRole:
					got.Roles[obj.Name] = obj.Rules
				case *rbacv1.ClusterRoleBinding:
					if obj.RoleRef.Name != "strata-metrics-auth" || len(obj.Subjects) != 1 {
						t.Errorf("%s gives %v to %v", obj.Name, obj.RoleRef, obj.Subjects)
					}
					got.Bound = obj.Subjects[0].Namespace + "/" + obj.Subjects[0].Name
				default:
					t.Errorf("there is a %T %s", obj, obj.GetName())
				}
			}
			endpoints, _, _ := unstructured.NestedSlice(only[*unstructured.Unstructured](t, objects).Object, "spec", "endpoints")
			for _, key := range []string{"scheme", "bearerTokenFile", "tlsConfig"} {
				if value, found := endpoints[0].(map[string]any)[key]; found {
					got.Endpoint[key] = value
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("what secures the metrics (-want +got):\n%s", diff)
			}
		})
	}
}

// The controller is shown the folder that the flag names, and cannot write there.
func TestCertificateOfMetricsIsMounted(t *testing.T) {
	spec := only[*appsv1.Deployment](t, render(t, `{metrics: {secure: true, certSecret: metrics-tls}}`)).Spec.Template.Spec
	want := corev1.VolumeMount{Name: "certs", MountPath: "/certs", ReadOnly: true}
	mounts := spec.Containers[0].VolumeMounts
	if diff := cmp.Diff(want, mounts[len(mounts)-1]); diff != "" {
		t.Errorf("mount (-want +got):\n%s", diff)
	}
	source := spec.Volumes[len(spec.Volumes)-1].Secret
	if source == nil || source.SecretName != "metrics-tls" {
		t.Errorf("the volume is %v, want the Secret metrics-tls", spec.Volumes)
	}
}
