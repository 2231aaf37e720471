// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package capabilities

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/dependents"
	"github.com/strata-project/strata/internal/primaries"
	"github.com/strata-project/strata/internal/reserved"
)

// How long a password is, in characters: by default, and as the API allows it.
const (
	defaultPassword = 32
	minPassword     = 16
	maxPassword     = 256
)

// PasswordAlphabet is what passwords are made of: nothing that has to be escaped in an address, a
// shell or YAML.
const PasswordAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

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

// Unmade refuses passwords that the controller would not have made: whoever may write Secrets in
// the claim's namespace can change them, and templates and plug-ins are promised that nothing of
// a password has to be escaped. have is what the Secret holds. Where the claim was moved, its
// passwords may be those of the provider of before, of another length.
func (i Instance) Unmade(have map[string][]byte, moved bool) *Problem {
	var wrong []string
	for _, password := range i.Blueprint.spec.Passwords {
		for _, key := range []string{password.Name, password.Name + previousSuffix} {
			if len(have[key]) > 0 && !isMade(string(have[key]), int(cmp.Or(password.Length, defaultPassword)), moved) {
				wrong = append(wrong, key)
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	var removals []string
	for _, key := range wrong {
		removals = append(removals, fmt.Sprintf(`{"op":"remove","path":"/data/%s"}`, key))
	}
	name := PasswordsName(i.Claim)
	return &Problem{
		Reason: v1alpha1.ReasonInvalidPasswords, Stalled: true,
		Message: fmt.Sprintf("Secret %s/%s has in %s what Strata would not have made, and it is not used: "+
			"Strata makes letters and digits of the length that the provider gives. Put back what it was, or have another one made: "+
			"kubectl patch secret -n %s %s --type json -p '[%s]'",
			i.Claim.Namespace, name, strings.Join(wrong, ", "), i.Claim.Namespace, name, strings.Join(removals, ",")),
	}
}

// isMade tells whether a password of a length is as Strata makes them; of any length that there
// may be, where it was moved.
func isMade(password string, length int, moved bool) bool {
	if strings.Trim(password, PasswordAlphabet) != "" {
		return false
	}
	if moved {
		return len(password) >= minPassword && len(password) <= maxPassword
	}
	return len(password) == length
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
