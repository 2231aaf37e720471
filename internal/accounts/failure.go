// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
)

// Failure is what a failed action says of itself.
type Failure struct {
	// Reason is empty where the action's own applies.
	Reason string
	// As is the account that acted, to follow what it acted on.
	As string
	// Message says what went wrong.
	Message string
}

// FailureOf explains the error of an action that an account has tried, or the
// controller itself.
func FailureOf(account types.NamespacedName, err error) Failure {
	var missing *MissingError
	if errors.As(err, &missing) {
		account = missing.Account // without it nothing is written at all
	}
	failed, actor := Failure{Message: err.Error()}, "the controller"
	if account.Name != "" {
		failed.As, actor = fmt.Sprintf(" as ServiceAccount %s", account), "the account"
	}
	if dependents.IsEscalation(err) {
		failed.Message += "; bind these rights to " + actor + ", or the verb escalate on this kind"
	}
	if account.Name == "" {
		return failed
	}
	denial, denied := dependents.DenialOf(err)
	switch {
	case missing != nil:
		failed.Reason, failed.Message = v1alpha1.ReasonServiceAccountNotFound, "that account does not exist"
	case denied && denial.OfImpersonation():
		failed.Reason = v1alpha1.ReasonImpersonationDenied
		failed.Message = "the controller may not impersonate that account; add it to rbac.impersonate of the chart"
	case denied:
		failed.Message = "it may not " + denial.String()
	}
	return failed
}
