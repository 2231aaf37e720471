// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package kustomizations

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// AccountFlag is the flag of kustomize-controller that names the account of Kustomizations
// which name none.
const AccountFlag = "default-service-account"

// DefaultAccount is the value of kustomize-controller's --default-service-account, so far
// as it is known. The zero value is a controller without that flag.
type DefaultAccount struct {
	// Name of the account; empty where the controller applies with its own rights.
	Name string
	// Unknown says why the name is not known; empty where it is.
	Unknown string
}

// DefaultAccountIn returns the account that the arguments of a controller name. The last
// one counts; it is empty where there is none.
func DefaultAccountIn(arguments []string) string {
	account := ""
	for i, argument := range arguments {
		flag, isFlag := strings.CutPrefix(argument, "--")
		name, value, hasValue := strings.Cut(flag, "=")
		switch {
		case !isFlag || name != AccountFlag:
		case hasValue:
			account = value
		case i+1 < len(arguments):
			account = arguments[i+1]
		}
	}
	return account
}

// DefaultAccountOf returns what the accounts of all controllers that were found come to.
// Several that differ leave open which one applies a Kustomization.
func DefaultAccountOf(names []string) DefaultAccount {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case len(names) == 0:
		return DefaultAccount{}
	case len(names) > 1:
		return DefaultAccount{Unknown: "kustomize-controllers have different values of --" + AccountFlag + ": " + strings.Join(quoted(names), ", ")}
	case names[0] != "" && len(validation.ValidateServiceAccountName(names[0], false)) > 0:
		return DefaultAccount{Unknown: "--" + AccountFlag + " of kustomize-controller is " + quoted(names)[0] + ", which is no name of a ServiceAccount"}
	default:
		return DefaultAccount{Name: names[0]}
	}
}

// account gives the layer the account that applies the Kustomization. A layer without one
// is written with the rights of Strata's controller, which may be more.
func (c *Conversion) account(own string, by DefaultAccount) string {
	switch {
	case own != "":
	case by.Unknown != "":
		c.problem("spec.serviceAccountName: is empty, and %s: the layer would be written with the rights of Strata's controller, which may be more than it has now: "+
			"write the account into the Kustomization, or give its name by --%s, which is empty where kustomize-controller has no such flag", by.Unknown, AccountFlag)
	case by.Name != "":
		c.note("spec.serviceAccountName: is %s, the --%s of kustomize-controller", by.Name, AccountFlag)
		return by.Name
	}
	return own
}

func quoted(names []string) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return all
}
