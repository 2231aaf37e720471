// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decisions keeps what was decided for an object, and what neither its
// specification nor anything else says, in its annotation DecidedAnnotation. Its
// status reports that, too; the annotation is what counts, because whoever may write
// it may change the object itself. It is signed for the very object, so that it does not go
// with a copy of it.
package decisions

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// Seal signs decisions, and tells whose they are. The zero value has no key: it tells objects
// apart by their UIDs alone, as commands do that have no key.
type Seal struct {
	// Key of the controller.
	Key digests.Key
	// Unsigned is true as long as decisions without a MAC are taken, which were made before
	// there was one. Without a key they are taken in any case.
	Unsigned bool
}

// Standing says how far decisions count for the object that they are on.
type Standing int

// What decisions may be.
const (
	// None has nothing decided: there is no annotation, it cannot be read, or it is that of
	// an object of another name.
	None Standing = iota
	// Restored has decisions of an object of the same kind and name that was there before,
	// or that nobody can have signed with this key. What keeps things as they are counts,
	// and what lets something happen does not.
	Restored
	// Whole has the decisions of this very object.
	Whole
)

// purpose of the MAC.
const purpose = "decisions of an object"

// signature is what is beside the decisions.
type signature struct {
	UID string `json:"uid,omitempty"`
	MAC string `json:"mac,omitempty"`
}

// The names of its fields, which decisions do not use.
const fieldUID, fieldMAC = "uid", "mac"

// Read returns what was decided for an object, and how far that counts; the zero value where
// nothing was, or where it cannot be read.
func Read[T any](obj metav1.Object, kind string, seal Seal) (T, Standing) {
	var kept, none T
	text := []byte(obj.GetAnnotations()[v1alpha1.DecidedAnnotation])
	var signed signature
	if json.Unmarshal(text, &kept) != nil || json.Unmarshal(text, &signed) != nil {
		return none, None
	}
	standing := seal.standing(obj, kind, signed, bare(text))
	if standing == None {
		return none, None
	}
	return kept, standing
}

func (s Seal) standing(obj metav1.Object, kind string, signed signature, of string) Standing {
	isIts := signed.UID == string(obj.GetUID())
	switch keyless := s.Key.Equal(digests.Key{}); {
	case signed.UID == "" && signed.MAC == "":
		if keyless || s.Unsigned {
			return Whole
		}
		return None
	case keyless && isIts:
		return Whole
	case keyless:
		return None
	case s.Key.IsMAC(signed.MAC, purpose, kind, obj.GetNamespace(), obj.GetName(), signed.UID, of):
		if isIts {
			return Whole
		}
		return Restored
	case isIts:
		return Restored // the key is another one, or somebody has changed it
	}
	return None
}

// Text returns the annotation's value for an object; empty for the zero value, which needs
// none. What is made must be written as a JSON object without the fields uid and mac.
func Text(made any, obj metav1.Object, kind string, seal Seal) string {
	if reflect.ValueOf(made).IsZero() {
		return ""
	}
	data, err := json.Marshal(made)
	if err != nil {
		return ""
	}
	of := bare(data)
	fields := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(of), &fields) != nil {
		return ""
	}
	uid := string(obj.GetUID())
	fields[fieldUID], _ = json.Marshal(uid) // a text
	if mac := seal.Key.MAC(purpose, kind, obj.GetNamespace(), obj.GetName(), uid, of); mac != "" {
		fields[fieldMAC], _ = json.Marshal(mac)
	}
	signed, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(signed)
}

// Sign returns the annotation of an object with a signature; false where it has one, or
// nothing to sign.
func Sign(obj metav1.Object, kind string, seal Seal) (string, bool) {
	text := []byte(obj.GetAnnotations()[v1alpha1.DecidedAnnotation])
	var signed signature
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &signed) != nil || json.Unmarshal(text, &fields) != nil || signed != (signature{}) || len(fields) == 0 {
		return "", false
	}
	made := Text(fields, obj, kind, seal)
	return made, made != ""
}

// bare returns decisions without their signature, in one form whatever way they were written.
func bare(text []byte) string {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(text, &fields) != nil {
		return ""
	}
	delete(fields, fieldUID)
	delete(fields, fieldMAC)
	data, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(data)
}
