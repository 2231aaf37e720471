// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"reflect"
	"testing"

	"sigs.k8s.io/kustomize/api/types"
)

// Every field that kustomize decodes is in the list, with what kustomize does with it,
// and the list has no others: a field that a later kustomize adds fails this test until
// somebody has looked at what it opens.
func TestEveryFieldOfAKustomizationIsJudged(t *testing.T) {
	reached := map[reflect.Type]bool{}
	var reach func(of reflect.Type, from string)
	reach = func(of reflect.Type, from string) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			reach(of.Elem(), from)
			return
		case reflect.Map:
			if of.Key().Kind() != reflect.String || of.Elem().Kind() != reflect.String && of.Elem().Kind() != reflect.Bool {
				t.Errorf("%s is a map of %s, which nobody goes through", from, of.Elem())
			}
			return
		case reflect.Interface:
			t.Errorf("%s can hold anything", from)
			return
		case reflect.Struct:
		default:
			return
		}
		if reached[of] {
			return
		}
		reached[of] = true
		known, ok := allowed[of]
		if !ok {
			t.Errorf("%s is a %s, which is in no list", from, of)
			return
		}
		seen := 0
		for i := range of.NumField() {
			field := of.Field(i)
			if !field.IsExported() {
				continue
			}
			as, ok := known[field.Name]
			if !ok {
				t.Errorf("%s.%s is not in the list", of, field.Name)
				continue
			}
			seen++
			checkRole(t, of, field, as)
			if as == isValue {
				reach(field.Type, of.String()+"."+field.Name)
			}
		}
		if seen != len(known) {
			t.Errorf("the list of %s has fields that it does not have: %v", of, known)
		}
	}
	reach(reflect.TypeFor[types.Kustomization](), "a kustomization")
	for kind, told := range plugins {
		reach(reflect.TypeOf(told()).Elem(), kind)
	}
	for of := range allowed {
		if !reached[of] {
			t.Errorf("%s is in the list, and nothing has it", of)
		}
	}
}

// checkRole makes sure that a role can be given to the type of a field.
func checkRole(t *testing.T, of reflect.Type, field reflect.StructField, as role) {
	t.Helper()
	holds := field.Type
	switch as {
	case isValue, isChart:
		return
	case isSchema:
		if holds == reflect.TypeFor[map[string]string]() {
			return
		}
	case isPlugin:
		if holds == reflect.TypeFor[[]string]() {
			return
		}
	default:
		if holds.Kind() == reflect.Slice {
			holds = holds.Elem()
		}
		if holds.Kind() == reflect.String {
			return
		}
	}
	t.Errorf("%s.%s is a %s, whose names are not known", of, field.Name, field.Type)
}

// What is in no list is refused where it is met.
func TestUnknownFieldIsRefused(t *testing.T) {
	type later struct {
		Loads string `json:"loads"`
	}
	j := &judge{loading: &loading{}, file: "kustomization.yaml"}
	if _, message := mistake(j.value(reflect.ValueOf(later{Loads: "x"}))); message != "kustomization.yaml: holds a later, of which it is not known what it loads" {
		t.Errorf("says %q of a type in no list", message)
	}
	allowed[reflect.TypeFor[later]()] = all("Other")
	defer delete(allowed, reflect.TypeFor[later]())
	if _, message := mistake(j.value(reflect.ValueOf(later{Loads: "x"}))); message != "kustomization.yaml: loads: is a field of which it is not known what it loads: leave it out" {
		t.Errorf("says %q", message)
	}
}
