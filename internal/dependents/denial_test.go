// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDenialOf(t *testing.T) {
	releases := schema.GroupResource{Group: "helm.toolkit.fluxcd.io", Resource: "helmreleases"}
	const account = "system:serviceaccount:team-a:deployer"
	cases := map[string]struct {
		reason string
		err    error
		want   Denial
		none   bool
		says   string
	}{
		"namespaced": {
			reason: "all parts of the sentence are taken",
			err: apierrors.NewForbidden(releases, "podinfo", errors.New(
				`User "`+account+`" cannot patch resource "helmreleases" in API group "helm.toolkit.fluxcd.io" in the namespace "default"`)),
			want: Denial{User: account, Verb: "patch", Resource: "helmreleases", Group: "helm.toolkit.fluxcd.io", Namespace: "default"},
			says: `patch resource "helmreleases" in API group "helm.toolkit.fluxcd.io" in the namespace "default"`,
		},
		"cluster scope": {
			reason: "a resource without a namespace, of the core group, without a name",
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", errors.New(`User "a" cannot list resource "namespaces" in API group "" at the cluster scope`)),
			want:   Denial{User: "a", Verb: "list", Resource: "namespaces"},
			says:   `list resource "namespaces" in API group "" at the cluster scope`,
		},
		"why": {
			reason: "what the authorizer adds is kept: a role that is bound and not there explains a lot",
			err: apierrors.NewForbidden(releases, "a", errors.New(
				`User "a" cannot get resource "helmreleases/status" in API group "x" in the namespace "n": RBAC: role.rbac.authorization.k8s.io "writer" not found`)),
			want: Denial{User: "a", Verb: "get", Resource: "helmreleases/status", Group: "x", Namespace: "n", Why: `RBAC: role.rbac.authorization.k8s.io "writer" not found`},
			says: `get resource "helmreleases/status" in API group "x" in the namespace "n": RBAC: role.rbac.authorization.k8s.io "writer" not found`,
		},
		"wrapped": {
			reason: "context around it changes nothing",
			err:    fmt.Errorf("cannot do it: %w", apierrors.NewForbidden(releases, "a", errors.New(`User "a" cannot delete resource "r" in API group "g" at the cluster scope`))),
			want:   Denial{User: "a", Verb: "delete", Resource: "r", Group: "g"},
			says:   `delete resource "r" in API group "g" at the cluster scope`,
		},
		"quota": {
			reason: "an admission plug-in is no authorizer: more rights would not help",
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota: compute")), none: true,
		},
		"escalation": {
			reason: "nobody grants what they lack; the message has a form of its own and is long",
			err: apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "a", errors.New(
				`user "a" (groups=["b"]) is attempting to grant RBAC permissions not currently held`)), none: true,
		},
		"path": {
			reason: "what is no resource is not a part of any layer",
			err:    apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "a" cannot get path "/metrics"`)), none: true,
		},
		"other status": {
			reason: "only a Forbidden is one, whatever its words",
			err:    apierrors.NewBadRequest(`x is forbidden: User "a" cannot get resource "r" in API group "g" at the cluster scope`), none: true,
		},
		"nothing": {reason: "no error, no denial", none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := DenialOf(tc.err)
			if found == tc.none {
				t.Fatalf("%s: found is %t: %+v", tc.reason, found, got)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if found && got.String() != tc.says {
				t.Errorf("%s: it says %s", tc.reason, got)
			}
		})
	}
}

// The API server names what was to be done, and not the account, when a
// constrained impersonation is refused.
func TestDenialOfImpersonation(t *testing.T) {
	for verb, want := range map[string]bool{
		"impersonate": true, "impersonate:serviceaccount": true, "impersonate-on:serviceaccount:create": true, "create": false,
	} {
		if got := (Denial{Verb: verb}).OfImpersonation(); got != want {
			t.Errorf("%s is of impersonation: %t, want %t", verb, got, want)
		}
	}
}
