// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"maps"
	"strconv"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/reserved"
)

// defaultPassword is how long a password is, in characters.
const defaultPassword = 32

// What the Secret with passwords has beside them. Names of passwords have no dot.
const (
	numberKey      = "rotation.number"
	previousSuffix = ".previous"
)

// PasswordsName returns the name of the Secret that keeps what was made for a claim.
func PasswordsName(claim *v1alpha1.CapabilityClaim) string { return reserved.PasswordsName(claim.Name) }

// PasswordsObject returns the Secret that keeps the passwords; false where the provider has
// none. have is what it holds; nil where it is not there yet. What is missing is made by
// fresh, of a length in characters; and what is there stays, until the claim asks for the
// next ones. Those of before stay beside them until they were taken by all.
func (i Instance) PasswordsObject(have map[string][]byte, taken bool, fresh func(length int) string) (primaries.Object, bool) {
	if len(i.Blueprint.spec.Passwords) == 0 {
		return primaries.Object{}, false
	}
	holds := maps.Clone(have)
	if holds == nil {
		holds = map[string][]byte{}
	}
	switch wanted := rotationOf(i.Claim); {
	case have == nil && wanted > 0:
		holds[numberKey] = strconv.AppendInt(nil, wanted, 10)
	case have == nil:
	case i.isRotating(have) && taken:
		for _, password := range i.Blueprint.spec.Passwords {
			delete(holds, password.Name+previousSuffix)
		}
	case !i.isRotating(have) && wanted > numberOf(have):
		for _, password := range i.Blueprint.spec.Passwords {
			if was := have[password.Name]; len(was) > 0 {
				holds[password.Name+previousSuffix] = was
				delete(holds, password.Name)
			}
		}
		holds[numberKey] = strconv.AppendInt(nil, wanted, 10)
	}
	for _, password := range i.Blueprint.spec.Passwords {
		if len(holds[password.Name]) == 0 {
			holds[password.Name] = []byte(fresh(int(cmp.Or(password.Length, defaultPassword))))
		}
	}
	content := make(map[string]any, len(holds))
	for name, value := range holds {
		content[name] = encoded(value)
	}
	made := primaries.Object{ID: PasswordsID, Of: i.Provider, Inherits: true, Confidential: true}
	made.Object = secretOf(i.Claim, PasswordsName(i.Claim), "Opaque", content)
	if have == nil {
		// One that was made a moment ago, and is not seen yet, must stay as it is.
		made.Mode = dependents.ModeCreateOnce
	}
	return made, true
}

// WithPasswords returns the instance with the passwords of what their Secret holds: with none
// where it lacks one. An instance without passwords has those that the claim asks for.
func (i Instance) WithPasswords(have map[string][]byte) Instance {
	if len(i.Blueprint.spec.Passwords) == 0 {
		i.Rotation = rotationOf(i.Claim)
		return i
	}
	i.Rotation = numberOf(have)
	i.Passwords, i.Previous = map[string]string{}, map[string]string{}
	for _, password := range i.Blueprint.spec.Passwords {
		value := have[password.Name]
		if len(value) == 0 {
			i.Passwords, i.Previous = nil, nil
			return i
		}
		i.Passwords[password.Name] = string(value)
		if was := have[password.Name+previousSuffix]; len(was) > 0 {
			i.Previous[password.Name] = string(was)
		}
	}
	return i
}

// isRotating tells whether passwords of before are still valid.
func (i Instance) isRotating(have map[string][]byte) bool {
	for _, password := range i.Blueprint.spec.Passwords {
		if len(have[password.Name+previousSuffix]) > 0 {
			return true
		}
	}
	return false
}

// rotationOf returns the number of the passwords that a claim asks for.
func rotationOf(claim *v1alpha1.CapabilityClaim) int64 {
	if claim.Spec.Rotation == nil {
		return 0
	}
	return claim.Spec.Rotation.Number
}

// numberOf returns the number of the passwords that a Secret holds. What is no number is
// none: with a higher one the next passwords are made, as they would be without it.
func numberOf(have map[string][]byte) int64 {
	number, err := strconv.ParseInt(string(have[numberKey]), 10, 64)
	if err != nil {
		return 0
	}
	return number
}
