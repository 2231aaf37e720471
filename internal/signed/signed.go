// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signed signs what a status says and others act on. Nobody but the controller can make
// the MAC, so that nothing follows from a status that was written by anything else.
package signed

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/digests"
)

// purpose of the MAC.
const purpose = "status of an object"

// Object is one whose status is signed.
type Object interface {
	metav1.Object
	SignedStatus() v1alpha1.StatusParts
}

// plan says what is signed in the status of a kind.
type plan struct {
	// fields of the status that the MAC is of.
	fields []string
	// gone are those that are left out where it does not match, and parts what is left out
	// of the entries of lists that stay.
	gone  []string
	parts map[string][]string
}

// plans of the kinds whose statuses are signed.
var plans = sync.OnceValue(func() map[string]plan { //nolint:gochecknoglobals // it is constant
	found := map[string]plan{}
	for _, kind := range v1alpha1.SignedKinds() {
		found[kind] = planOf(v1alpha1.StatusFields(kind))
	}
	return found
})

// planOf returns the plan of classes. A list of which every part is signed goes as a whole, and
// so does what is not a list.
func planOf(classes map[string]v1alpha1.StatusClass) plan {
	p := plan{parts: map[string][]string{}}
	others := map[string]bool{}
	for path, class := range classes {
		top, part, isList := strings.Cut(path, "[].")
		if !isList {
			top, _, _ = strings.Cut(path, ".")
		}
		switch {
		case class != v1alpha1.Signed:
			others[top] = others[top] || isList
			continue
		case isList:
			p.parts[top] = append(p.parts[top], part)
		default:
			p.gone = append(p.gone, top)
		}
		p.fields = append(p.fields, top)
	}
	for top := range p.parts {
		if !others[top] {
			p.gone = append(p.gone, top)
			delete(p.parts, top)
		}
	}
	slices.Sort(p.fields)
	p.fields = slices.Compact(p.fields)
	return p
}

// signedOf returns what the MAC of an object's status is of, by field. A status that the API
// server gives to each new object has nothing of that.
func signedOf(kind string, status any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("cannot read a status: %w", err)
	}
	found := map[string]any{}
	for _, field := range plans()[kind].fields {
		if value := fields[field]; value != nil && (field != observed || value != int64(-1)) {
			found[field] = value
		}
	}
	return found, nil
}

// observed is the field that is -1 before the first look.
const observed = "observedGeneration"

// macOf returns the MAC of an object's status, which is empty without a key, and whether there
// is anything to sign.
func macOf(key digests.Key, object Object) (mac string, some bool, err error) {
	of := object.SignedStatus()
	signed, err := signedOf(of.Kind, of.Status)
	if err != nil {
		return "", false, err
	}
	text, err := json.Marshal(signed) // which writes the keys of a mapping in order
	if err != nil {
		return "", false, fmt.Errorf("cannot write a status: %w", err)
	}
	return key.MAC(purpose, of.Kind, string(object.GetUID()), string(text)), len(signed) > 0, nil
}

// HasAny tells whether an object's status has anything that is signed.
func HasAny(object Object) bool {
	_, some, err := macOf(digests.Key{}, object)
	return err != nil || some
}

// standing is what an object's status is.
type standing int

const (
	// whole is as the controller has written it, or empty and of an object that no controller
	// has looked at.
	whole standing = iota
	// unlooked is empty, of an object that a controller has begun to look after: nothing was
	// written yet, or somebody has emptied it.
	unlooked
	// unsigned has no MAC.
	unsigned
	// wrong is none of these.
	wrong
)

// standingOf judges an object's status. One that cannot be encoded is wrong. Without a MAC it is
// whole where known says that the one it would have was seen, or made, by this very process.
func standingOf(key digests.Key, object Object, known func(types.UID, string) bool) standing {
	has := *object.SignedStatus().MAC
	want, some, err := macOf(key, object)
	switch {
	case err != nil:
		return wrong
	case has == "" && !some && !slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer):
		return whole
	case has == "" && !some:
		return unlooked
	case has == "" && known(object.GetUID(), want):
		return whole
	case has == "":
		return unsigned
	case subtle.ConstantTimeCompare([]byte(has), []byte(want)) == 1:
		return whole
	}
	return wrong
}

// What the Ready condition of an object says whose status does not count, after its name.
const (
	saysForeign = "has a status that was not written with this controller's key, and has to be looked at again " +
		"(controllers of one cluster share the Secret " + v1alpha1.DigestKeyName + ")"
	saysUnlooked = "has not been looked at yet"
)

// isStripped tells whether an object's status is one that strip has made.
func isStripped(object Object) bool {
	of := object.SignedStatus()
	conditions := *of.Conditions
	return *of.MAC == "" && len(conditions) == 1 && conditions[0].Reason == v1alpha1.ReasonForeignStatus &&
		conditions[0].LastTransitionTime.IsZero() && (conditions[0].Message == saysForeign || conditions[0].Message == saysUnlooked)
}

// strip leaves out of an object's status what others act on, and says so in its Ready condition;
// all of it where it cannot be encoded. It changes nothing of what was there, which may be in use
// elsewhere.
func strip(object Object, says string) {
	parts := object.SignedStatus()
	bare := reflect.New(reflect.TypeOf(parts.Status).Elem())
	if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parts.Status); err == nil {
		leaveOut(fields, plans()[parts.Kind])
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, bare.Interface()) != nil {
			bare = reflect.New(reflect.TypeOf(parts.Status).Elem())
		}
	}
	reflect.ValueOf(parts.Status).Elem().Set(bare.Elem())
	reflect.ValueOf(parts.Status).Elem().FieldByName("ObservedGeneration").SetInt(-1)
	*parts.Conditions = []metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonForeignStatus, Message: says,
	}}
}

// leaveOut removes what is signed of the fields of a status.
func leaveOut(fields map[string]any, of plan) {
	for _, field := range append([]string{"mac"}, of.gone...) {
		delete(fields, field)
	}
	for field, gone := range of.parts {
		entries, _ := fields[field].([]any)
		for _, entry := range entries {
			if one, is := entry.(map[string]any); is {
				for _, part := range gone {
					delete(one, part)
				}
			}
		}
	}
}

// newObject returns an object of a kind whose statuses are signed; nil for another one.
func newObject(kind string) Object {
	switch kind {
	case v1alpha1.AddonsLayerKind:
		return &v1alpha1.AddonsLayer{}
	case v1alpha1.PlatformKind:
		return &v1alpha1.Platform{}
	case v1alpha1.RemoteClusterKind:
		return &v1alpha1.RemoteCluster{}
	case v1alpha1.HelmApplicationKind:
		return &v1alpha1.HelmApplication{}
	case v1alpha1.ApplicationBundleKind:
		return &v1alpha1.ApplicationBundle{}
	}
	return nil
}
