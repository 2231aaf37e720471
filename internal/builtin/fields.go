// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/internal/near"
)

// walk looks through a value as the API server decodes it, and notes all that it refuses,
// where the API server ends at the first.
type walk struct{ found []Mistake }

// object looks through an object of a Go type. Its status is the API server's.
func (w *walk) object(value map[string]any, of any) {
	fields := jsonFields(reflect.TypeOf(of))
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if name != "status" {
			w.field(fields, name, value[name], "")
		}
	}
}

func (w *walk) field(fields map[string]reflect.Type, name string, value any, below string) {
	at := below + name
	of, is := fields[name]
	if !is {
		w.found = append(w.found, Mistake{Unknown: true, Field: at, Message: "there is no such field" + near.Meant(name, slices.Sorted(maps.Keys(fields)))})
		return
	}
	w.look(value, of, at)
}

var reader = reflect.TypeFor[json.Unmarshaler]()

func (w *walk) look(value any, of reflect.Type, at string) {
	if value == nil || isOpen(value) {
		return // the first is as if it were not there, and the second not known
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if reflect.PointerTo(of).Implements(reader) {
		w.decode(value, of, at)
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		w.mapping(value, of, at)
	case reflect.Map:
		w.entries(value, of.Elem(), at)
	case reflect.Slice:
		w.items(value, of.Elem(), at)
	default:
		w.scalar(value, of, at)
	}
}

// isOpen tells a value of which it is not known what it will be: SOPS has encrypted it, or a
// variable is in it.
func isOpen(value any) bool {
	text, _ := value.(string)
	return strings.HasPrefix(text, "ENC[AES256_GCM,") || strings.Contains(text, "${")
}

func (w *walk) mapping(value any, of reflect.Type, at string) {
	written, is := value.(map[string]any)
	if !is {
		w.found = append(w.found, wrong(at, mapping, value))
		return
	}
	fields := jsonFields(of)
	for _, name := range slices.Sorted(maps.Keys(written)) {
		w.field(fields, name, written[name], at+".")
	}
	switch of {
	case reflect.TypeFor[metav1.LabelSelector]():
		w.found = append(w.found, checkSelector(written, at)...)
	case reflect.TypeFor[corev1.PodTemplateSpec]():
		metadata, _ := written["metadata"].(map[string]any)
		w.found = append(w.found, checkLabels(metadata["labels"], at+".metadata.labels")...)
		w.found = append(w.found, checkAnnotations(metadata["annotations"], at+".metadata.annotations")...)
	}
}

func (w *walk) entries(value any, of reflect.Type, at string) {
	written, is := value.(map[string]any)
	if !is {
		w.found = append(w.found, wrong(at, mapping, value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		w.look(written[name], of, at+"["+name+"]")
	}
}

func (w *walk) items(value any, of reflect.Type, at string) {
	if of.Kind() == reflect.Uint8 {
		w.bytes(value, at)
		return
	}
	written, is := value.([]any)
	if !is {
		w.found = append(w.found, wrong(at, list, value))
		return
	}
	for i, item := range written {
		w.look(item, of, at+"["+strconv.Itoa(i)+"]")
	}
}

// bytes looks at what is base64 in JSON.
func (w *walk) bytes(value any, at string) {
	written, is := value.(string)
	if !is {
		w.found = append(w.found, wrong(at, text, value))
		return
	}
	// encoding/json leaves out line breaks, as this does.
	if _, err := base64.StdEncoding.DecodeString(written); err != nil {
		advice := "encode it"
		if strings.HasPrefix(at, "data[") {
			advice = "encode it, or write it in stringData"
		}
		w.found = append(w.found, Mistake{Field: at, Message: "is no base64: " + advice})
	}
}

func (w *walk) scalar(value any, of reflect.Type, at string) {
	var ok bool
	want := text
	switch of.Kind() {
	case reflect.String:
		_, ok = value.(string)
	case reflect.Bool:
		_, ok = value.(bool)
		want = truth
	case reflect.Float32, reflect.Float64:
		_, whole := value.(int64)
		_, broken := value.(float64)
		ok, want = whole || broken, number
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Int16, reflect.Int8, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		ok = fits(value, of)
		want = "a whole number of " + strconv.Itoa(of.Bits()) + " bits"
	default:
		ok = true // anything
	}
	if !ok {
		w.found = append(w.found, wrong(at, want, value))
	}
}

func fits(value any, of reflect.Type) bool {
	var whole int64
	switch value := value.(type) {
	case int64:
		whole = value
	case float64:
		if value != math.Trunc(value) || math.Abs(value) > 1<<53 {
			return false
		}
		whole = int64(value)
	default:
		return false
	}
	if of.Kind() >= reflect.Uint && of.Kind() <= reflect.Uint64 {
		return whole >= 0 && !reflect.Zero(of).OverflowUint(uint64(whole))
	}
	return !reflect.Zero(of).OverflowInt(whole)
}

// decode has a type read a value that knows itself how: a quantity, a time, a port.
func (w *walk) decode(value any, of reflect.Type, at string) {
	data, err := json.Marshal(value)
	if err != nil {
		return // no JSON has it
	}
	if json.Unmarshal(data, reflect.New(of).Interface()) != nil {
		w.found = append(w.found, Mistake{Field: at, Message: fmt.Sprintf("is no %s", plainName(of))})
	}
}

// plainName says what a type is that reads itself.
func plainName(of reflect.Type) string {
	switch of.Name() {
	case "Quantity":
		return "quantity: write one such as 500m or 1Gi"
	case "Time", "MicroTime":
		return "time: write one such as 2026-12-24T18:00:00Z"
	case "Duration":
		return "duration: write one such as 90s"
	case "IntOrString":
		return "number of 32 bits, and no text"
	}
	return of.Name()
}

// jsonFields returns the fields of a type under their names in JSON.
func jsonFields(of reflect.Type) map[string]reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	found := map[string]reflect.Type{}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(found, jsonFields(field.Type))
		case name != "" && name != "-":
			found[name] = field.Type
		}
	}
	return found
}
