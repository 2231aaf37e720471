// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Denial is a right that the API server's authorizer has missed. What an
// admission plug-in or a webhook refuses is none, although it is Forbidden too.
type Denial struct {
	// User who lacks the right.
	User string
	// Verb, Resource (with its subresource) and Group of what was tried.
	Verb, Resource, Group string
	// Namespace of it; empty at the cluster scope.
	Namespace string
	// Why is what the authorizer had to say of it; mostly empty.
	Why string
}

// denied is the sentence of the API server's authorization. It is the only
// place that has the verb: the details of the status name the resource alone.
var denied = regexp.MustCompile(`(?s)forbidden: User ("(?:[^"\\]|\\.)*") cannot (\S+) resource "([^"]*)" in API group "([^"]*)" ` +
	`(?:in the namespace "([^"]*)"|at the cluster scope)(?:: (.*))?$`)

// DenialOf returns the right that an error says is missing; false where the
// error says something else.
func DenialOf(err error) (Denial, bool) {
	if !apierrors.IsForbidden(err) {
		return Denial{}, false
	}
	found := denied.FindStringSubmatch(err.Error())
	if found == nil {
		return Denial{}, false
	}
	return Denial{
		User: strings.Trim(found[1], `"`), Verb: found[2], Resource: found[3], Group: found[4], Namespace: found[5], Why: found[6],
	}, true
}

// escalation is how the API server refuses a role that grants more than who writes it has.
const escalation = "is attempting to grant RBAC permissions not currently held"

// IsEscalation tells whether a role was refused because it grants rights that who writes it
// does not have. That is about all that the role would say afterwards, and not about what the
// request changes of it.
func IsEscalation(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), escalation)
}

// OfImpersonation tells whether acting as somebody else was refused, and not
// what that one tried to do.
func (d Denial) OfImpersonation() bool {
	return strings.HasPrefix(d.Verb, "impersonate")
}

// String says what may not be done, to follow "may not".
func (d Denial) String() string {
	where := "at the cluster scope"
	if d.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", d.Namespace)
	}
	text := fmt.Sprintf("%s resource %q in API group %q %s", d.Verb, d.Resource, d.Group, where)
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}
