// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A refusal of a role says what the API server says, and what to do: the rights that are missing
// are those that the role grants.
func TestEscalationSaysWhatToDo(t *testing.T) {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "readers", errors.New(
		"user \"a\" is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"))
	for actor, account := range map[string]types.NamespacedName{
		"the account": {Namespace: "shop", Name: "deployer"}, "the controller": {},
	} {
		want := err.Error() + "; bind these rights to " + actor + ", or the verb escalate on this kind"
		if got := FailureOf(account, err); got.Message != want || got.Reason != "" {
			t.Errorf("%s: %+v, want the message %q", actor, got, want)
		}
	}
	if got := FailureOf(types.NamespacedName{Name: "deployer"}, errors.New("busy")); got.Message != "busy" {
		t.Errorf("of another error it says %q", got.Message)
	}
}
