// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin says of objects of Kubernetes' own kinds what an API server would refuse of
// them, without one: fields that do not exist, values of another type, entries that are there
// twice, and names, labels and sizes that no object may have. It knows the kinds of the version
// of Kubernetes that Strata is built with.
package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Version is that of the kinds that are known. Later ones may have further fields.
const Version = "1.36"

// Mistake is what is wrong with one object. It never says a value, which may be a secret.
type Mistake struct {
	// Unknown is true for a field that the kind does not have. A later version of Kubernetes
	// may have it.
	Unknown bool
	// Field is its path, such as spec.containers[0].env[PATH]; Message says what is wrong
	// with it.
	Field, Message string
}

// Error names the field.
func (m Mistake) Error() string { return m.Field + ": " + m.Message }

// Check returns what the API server would refuse of an object, in the order of its fields:
// nothing but its metadata where its kind is not one of Kubernetes' own.
func Check(object *unstructured.Unstructured) []Mistake {
	found := checkMetadata(object)
	typedObject, err := known().New(object.GroupVersionKind())
	if err == nil {
		w := &walk{}
		w.object(object.Object, typedObject)
		found = append(found, w.found...)
		found = append(found, checkNames(object)...)
		// What is of another type, or no field, has been said.
		if len(w.found) == 0 {
			found = append(found, twice(object)...)
		}
	}
	slices.SortStableFunc(found, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(found)
}

// Refusal returns what an API server that creates an object takes, and refuses once the object
// is applied: entries of a list that are there twice. It is the API server's error for a
// manifest that is wrong; nil where there is none, and for kinds that are not Kubernetes' own.
// Whatever else is wrong a strict creation refuses, by the version of Kubernetes that the
// cluster has.
func Refusal(object *unstructured.Unstructured) error {
	var found field.ErrorList
	for _, mistake := range twice(object) {
		found = append(found, field.Invalid(field.NewPath(mistake.Field), field.OmitValueType{}, mistake.Message))
	}
	if len(found) == 0 {
		return nil
	}
	return apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), found)
}

// known are Kubernetes' own kinds.
var known = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two of them would have one name
		}
	}
	return scheme
})

// converter is what the API server reads objects with that are applied.
var converter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientgoscheme.Scheme)
})

// appliedTwice is how structured-merge-diff begins to tell of an entry that is there twice; it
// has no other way to say so.
const appliedTwice = "duplicate entries for key "

// twice returns the entries of lists that are there twice, which server-side apply refuses. What
// it refuses of fields and their types is left to others, who say more.
func twice(object *unstructured.Unstructured) []Mistake {
	if !clientgoscheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return nil
	}
	// Fields that the kind does not have are left out: at one of them structured-merge-diff
	// ends, and what stands beside it is looked at or not, by the order of a Go map. What is
	// of another type cannot be read, and is refused for that.
	known, err := withoutUnknown(object)
	if err != nil {
		return nil
	}
	_, err = converter().ObjectToTyped(known)
	var all typed.ValidationErrors
	if !errors.As(err, &all) {
		return nil
	}
	var found []Mistake
	for _, each := range all {
		if key, is := strings.CutPrefix(each.ErrorMessage, appliedTwice); is {
			found = append(found, Mistake{Field: asPath(each.Path), Message: "has two entries with " + keyOf(key) + ": remove one"})
		}
	}
	return found
}

// withoutUnknown returns an object of a kind of Kubernetes with the fields alone that its Go type
// has; an error where a value is of another type.
func withoutUnknown(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	as, err := clientgoscheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, as); err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(as)
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{Object: content}
	found.SetGroupVersionKind(object.GroupVersionKind())
	return found, nil
}

var (
	appliedKey  = regexp.MustCompile(`\[(?:name|ip|containerPort|port|topologyKey|key)="?([^"\],]*)"?[^\]]*\]`)
	appliedKeys = regexp.MustCompile(`^\[(.*)\]$`)
)

// asPath returns a path of structured-merge-diff as others write paths.
func asPath(path string) string {
	return strings.TrimPrefix(appliedKey.ReplaceAllString(path, "[$1]"), ".")
}

// keyOf returns the key of an entry as a message shows it.
func keyOf(key string) string {
	if inside := appliedKeys.FindStringSubmatch(key); inside != nil {
		key = strings.ReplaceAll(inside[1], ",", " and ")
	}
	return strings.TrimPrefix(key, "=")
}

// wrong says that a value is of another type.
func wrong(at, want string, value any) Mistake {
	message := fmt.Sprintf("must be %s, and is %s", want, described(value))
	switch value.(type) {
	case bool, int64, float64:
		if want == text {
			message += ": quote it"
		}
	case string:
		if want != list && want != mapping {
			message += ": write it without quotes"
		}
	}
	return Mistake{Field: at, Message: message}
}

// What values are, in messages.
const (
	text    = "a text"
	number  = "a number"
	truth   = "true or false"
	list    = "a list"
	mapping = "a mapping"
)

func described(value any) string {
	switch value.(type) {
	case string:
		return text
	case bool:
		return truth
	case int64, float64:
		return number
	case []any:
		return list
	case map[string]any:
		return mapping
	default:
		return fmt.Sprintf("%T", value)
	}
}
