// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forged puts into each field of a status, in turn, what somebody who may write nothing
// else could put there.
package forged

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/api/v1alpha1"
)

// Forgery is a status with one field that is forged.
type Forgery[S any] struct {
	// Name is the path of the field, and how it was forged.
	Name   string
	Status S
}

// Each returns a status with each field forged that is in a class of which nothing follows, or no
// more than that something is left out. It fails a test where that is not one field at least.
// Texts, lists of them, and the reasons of conditions, are forged by each of the plausible values, too: those that
// others wait for.
func Each[S any](t testing.TB, kind string, status S, copies func(S) S, plausible ...string) []Forgery[S] {
	t.Helper()
	var all []Forgery[S]
	for path, class := range v1alpha1.StatusFields(kind) {
		if class.IsForgeable() {
			all = append(all, Of(t, kind, path, status, copies, plausible...)...)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no field of the status of %s can be forged", kind)
	}
	slices.SortFunc(all, func(a, b Forgery[S]) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Of returns a status with one field forged, whatever its class is.
func Of[S any](t testing.TB, kind, path string, status S, copies func(S) S, plausible ...string) []Forgery[S] {
	t.Helper()
	var all []Forgery[S]
	add := func(how string, forge func(reflect.Value)) {
		changed := copies(status)
		if !put(reflect.ValueOf(&changed).Elem(), strings.Split(path, "."), forge) {
			t.Fatalf("%s: there is no %s", kind, path)
		}
		all = append(all, Forgery[S]{path + ", " + how, changed})
	}
	add("odd", func(field reflect.Value) { forge(field, true) })
	add("cleared", func(field reflect.Value) { forge(field, false) })
	for _, value := range plausible {
		add("as "+value, func(field reflect.Value) {
			switch of := field.Addr().Interface().(type) {
			case *[]metav1.Condition:
				*of = allTrue(value)
			case *[]string:
				*of = []string{value}
			default:
				if field.Kind() == reflect.String {
					field.SetString(value)
				}
			}
		})
	}
	return all
}

// put forges the field of a path. It returns false where there is none.
func put(in reflect.Value, path []string, forge func(reflect.Value)) bool {
	for in.Kind() == reflect.Pointer {
		if in.IsNil() {
			in.Set(reflect.New(in.Type().Elem()))
		}
		in = in.Elem()
	}
	name, isList := strings.CutSuffix(path[0], "[]")
	for i := range in.NumField() {
		tag, _, _ := strings.Cut(in.Type().Field(i).Tag.Get("json"), ",")
		if tag != name {
			continue
		}
		field := in.Field(i)
		switch {
		case len(path) == 1:
			forge(field)
			return true
		case !isList:
			return put(field, path[1:], forge)
		}
		if field.Len() == 0 {
			field.Set(reflect.Append(field, reflect.Zero(field.Type().Elem())))
		}
		found := true
		for j := range field.Len() {
			found = found && put(field.Index(j), path[1:], forge)
		}
		return found
	}
	return false
}

// forge puts something odd into a field, or nothing.
func forge(field reflect.Value, odd bool) {
	if !odd {
		field.SetZero()
		return
	}
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	moment := metav1.NewTime(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC))
	switch value := field.Addr().Interface().(type) {
	case *metav1.Time:
		*value = moment
	case *metav1.Duration:
		value.Duration = time.Hour
	case *apiextensionsv1.JSON:
		value.Raw = []byte(`{"type":"object"}`)
	case *[]string:
		*value = []string{"forged"}
	case *[]metav1.Condition:
		*value = conditions(*value, moment)
	default:
		odden(field)
	}
}

// odden puts something odd into a field of a plain kind.
func odden(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString("forged")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int32, reflect.Int64:
		field.SetInt(99)
	default:
		panic("nobody knows how to forge a " + field.Type().String())
	}
}

// conditions turns each condition round, and adds those that Strata's kinds have.
func conditions(had []metav1.Condition, at metav1.Time) []metav1.Condition {
	forged := slices.Clone(had)
	for i := range forged {
		if forged[i].Status = metav1.ConditionTrue; had[i].Status == metav1.ConditionTrue {
			forged[i].Status = metav1.ConditionFalse
		}
	}
	for _, kind := range conditionTypes() {
		if !slices.ContainsFunc(forged, func(c metav1.Condition) bool { return c.Type == kind }) {
			forged = append(forged, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Forged", Message: "forged", LastTransitionTime: at})
		}
	}
	return forged
}

// allTrue returns all conditions that Strata's kinds have, each True for a reason.
func allTrue(reason string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range conditionTypes() {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "forged", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
		})
	}
	return all
}

// conditionTypes returns the types of conditions that Strata's kinds have.
func conditionTypes() []string {
	return []string{
		v1alpha1.ReadyCondition, v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition, v1alpha1.DeployedCondition, v1alpha1.DeletingCondition,
		v1alpha1.HealthyCondition, v1alpha1.ReachableCondition, v1alpha1.BoundCondition, v1alpha1.RotatingCondition, v1alpha1.BindingOutdatedCondition,
	}
}
