// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objectstest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// Bare draws a copy of an observation that lacks any of its optional parts: what a
// pointer, map, list or interface has, entries of maps, statuses, and fields of live
// objects but their identity. What is never absent is named in kept, as Type.Field. It
// goes by the types, so that a field that is added later is drawn, too.
func Bare[T any](t *rapid.T, of T, kept ...string) T {
	s := stripper{
		random:  rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "what is missing"), 1)), //nolint:gosec // a test
		percent: rapid.SampledFrom([]int{0, 3, 10, 30}).Draw(t, "how much is missing"),
		kept:    kept,
	}
	return s.value(reflect.ValueOf(&of).Elem(), true).Interface().(T)
}

type stripper struct {
	random  *rand.Rand
	percent int
	kept    []string
}

func (s stripper) lacks() bool { return s.random.IntN(100) < s.percent }

var (
	isWhole        = map[reflect.Type]bool{reflect.TypeFor[time.Time](): true, reflect.TypeFor[metav1.Time](): true}
	anUnstructured = reflect.TypeFor[unstructured.Unstructured]()
)

// value returns a copy of a value without some of its parts, and the zero value in place of
// it where that may be.
func (s stripper) value(of reflect.Value, stays bool) reflect.Value {
	made := reflect.New(of.Type()).Elem()
	switch of.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if of.IsNil() || !stays && s.lacks() {
			return made
		}
	}
	switch of.Kind() {
	case reflect.Pointer:
		made.Set(reflect.New(of.Type().Elem()))
		made.Elem().Set(s.value(of.Elem(), true))
	case reflect.Map:
		made.Set(reflect.MakeMap(of.Type()))
		keys := of.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			if !s.lacks() {
				made.SetMapIndex(key, s.value(of.MapIndex(key), true))
			}
		}
	case reflect.Slice:
		made.Set(reflect.MakeSlice(of.Type(), of.Len(), of.Len()))
		for i := range of.Len() {
			made.Index(i).Set(s.value(of.Index(i), true))
		}
	case reflect.Struct:
		s.fields(made, of)
	default:
		made.Set(of)
	}
	return made
}

func (s stripper) fields(made, of reflect.Value) {
	made.Set(of)
	if of.Type() == anUnstructured {
		object, _ := s.object(of.Field(0).Interface(), true).(map[string]any)
		made.Field(0).Set(reflect.ValueOf(object))
		return
	}
	if isWhole[of.Type()] {
		return
	}
	for i := range of.NumField() {
		field := of.Type().Field(i)
		name := of.Type().Name() + "." + field.Name
		switch {
		case !field.IsExported():
		case strings.HasSuffix(field.Type.Name(), "Status") && field.Type.Kind() == reflect.Struct && s.lacks():
			made.Field(i).SetZero()
		default:
			made.Field(i).Set(s.value(of.Field(i), slices.Contains(s.kept, name)))
		}
	}
}

// identity is what every object has that an API server hands out.
var identity = []string{"apiVersion", "kind", "metadata", "name", "namespace", "uid", "resourceVersion"}

func (s stripper) object(of any, top bool) any {
	switch of := of.(type) {
	case map[string]any:
		made := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			value := of[key]
			if top && slices.Contains(identity, key) || !s.lacks() {
				made[key] = s.object(value, top && key == "metadata")
			}
		}
		return made
	case []any:
		made := make([]any, len(of))
		for i := range of {
			made[i] = s.object(of[i], false)
		}
		return made
	}
	return of
}
