// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/strata-project/strata/internal/objects"
)

// Verbs of a Change.
const (
	Create = "create"
	Update = "change"
	Delete = "delete"
)

// Change is what happens to one object.
type Change struct {
	// Verb is create, change or delete.
	Verb string
	ID   objects.ID
	// APIVersion of the object as it will be, or as it was where it is deleted.
	APIVersion string
	// Fields that change, by their paths; none where all of the object comes or goes.
	Fields []FieldChange
}

// FieldChange is what happens to one field.
type FieldChange struct {
	// Path such as spec.template.spec.containers[web].image. What stands in brackets
	// is the name of a thing in a list, its place, or a key that has a dot in it.
	Path string
	// From and To are nil where the field is not there, and otherwise as in JSON.
	// Values of Secrets are masked.
	From, To any
	// Default is true where git leaves the field out, and To is the default of the API server.
	Default bool
}

// Masked returns the change without what the field held and holds.
func (f FieldChange) Masked() FieldChange {
	masked := FieldChange{Path: f.Path, Default: f.Default}
	if f.From != nil {
		masked.From = Masked
	}
	if f.To != nil {
		masked.To = Masked
	}
	if f.From != nil && f.To != nil {
		masked.To = MaskedChanged
	}
	return masked
}

// Masks stand for values of Secrets: nothing of a value is seen, not its length, but
// whether it is another one.
const (
	Masked        = "***"
	MaskedChanged = "*** (changed)"
)

// Diff returns what has to happen to one set of objects for another to be there, in
// the order of their IDs. An object is the same one where group, kind, namespace and
// name are, whatever its API version. Lists of things that have names, such as
// containers, are compared by these; a null counts as nothing.
func Diff(before, after []*unstructured.Unstructured) []Change {
	was, will := byID(before), byID(after)
	ids := slices.Collect(maps.Keys(will))
	for id := range was {
		if will[id] == nil {
			ids = append(ids, id)
		}
	}
	var changes []Change
	for _, id := range objects.SortIDs(ids) {
		from, to := was[id], will[id]
		switch {
		case from == nil:
			changes = append(changes, Change{Verb: Create, ID: id, APIVersion: to.GetAPIVersion()})
		case to == nil:
			changes = append(changes, Change{Verb: Delete, ID: id, APIVersion: from.GetAPIVersion()})
		default:
			if fields := diffObject(from, to); len(fields) > 0 {
				changes = append(changes, Change{Verb: Update, ID: id, APIVersion: to.GetAPIVersion(), Fields: fields})
			}
		}
	}
	return changes
}

func byID(objs []*unstructured.Unstructured) map[objects.ID]*unstructured.Unstructured {
	all := make(map[objects.ID]*unstructured.Unstructured, len(objs))
	for _, object := range objs {
		all[objects.IDOf(object)] = object
	}
	return all
}

func diffObject(from, to *unstructured.Unstructured) []FieldChange {
	before, after := from.Object, to.Object
	if to.GetKind() == "Secret" && to.GroupVersionKind().Group == "" {
		before, after = masked(before, after)
	}
	var d differ
	d.tables("", before, after)
	slices.SortStableFunc(d.found, func(a, b FieldChange) int { return strings.Compare(a.Path, b.Path) })
	return d.found
}

// lastApplied is the annotation in which kubectl keeps all of an object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// masked returns two states of a Secret without their values, but with what differs
// still different.
func masked(before, after map[string]any) (map[string]any, map[string]any) {
	before, after = withData(before), withData(after)
	for _, path := range [][]string{{"data"}, {"metadata", "annotations"}} {
		was, will := table(before, path...), table(after, path...)
		for _, key := range union(was, will) {
			if path[0] != "data" && key != lastApplied {
				continue
			}
			from, had := was[key]
			to, has := will[key]
			if had {
				was[key] = Masked
			}
			if has {
				will[key] = Masked
			}
			if had && has && !reflect.DeepEqual(from, to) {
				will[key] = MaskedChanged
			}
		}
	}
	return before, after
}

// withData returns a copy of a Secret with its stringData as the API server has it.
func withData(secret map[string]any) map[string]any {
	secret = runtime.DeepCopyJSON(secret)
	texts, _ := secret["stringData"].(map[string]any)
	delete(secret, "stringData")
	data, is := secret["data"].(map[string]any)
	if !is {
		// Every API server refuses a value that is no object, and such a value may hold anything.
		delete(secret, "data")
		data = map[string]any{}
	}
	for key, value := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
	}
	if len(data) > 0 {
		secret["data"] = data
	}
	return secret
}

// table returns the object at a path, or nil.
func table(in map[string]any, path ...string) map[string]any {
	for _, key := range path {
		in, _ = in[key].(map[string]any)
	}
	return in
}

// union returns the keys of two objects, sorted.
func union(a, b map[string]any) []string {
	keys := slices.Collect(maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// differ collects the fields that differ.
type differ struct{ found []FieldChange }

func (d *differ) add(path string, from, to any) {
	d.found = append(d.found, FieldChange{Path: path, From: from, To: to})
}

func (d *differ) tables(path string, from, to map[string]any) {
	for _, key := range union(from, to) {
		d.values(below(path, key), from[key], to[key])
	}
}

func (d *differ) values(path string, from, to any) {
	fromTable, wasTable := from.(map[string]any)
	toTable, isTable := to.(map[string]any)
	fromList, wasList := from.([]any)
	toList, isList := to.([]any)
	switch {
	case wasTable && isTable && len(fromTable) > 0 && len(toTable) > 0:
		d.tables(path, fromTable, toTable)
	case wasList && isList && len(fromList) > 0 && len(toList) > 0:
		d.lists(path, fromList, toList)
	case !same(from, to):
		d.add(path, from, to)
	}
}

func (d *differ) lists(path string, from, to []any) {
	if naming := namingOf(from, to); naming != nil {
		d.named(path, naming, from, to)
		return
	}
	if all(from, isScalar) && all(to, isScalar) {
		d.scalars(path, from, to)
		return
	}
	for i := range max(len(from), len(to)) {
		var was, will any
		if i < len(from) {
			was = from[i]
		}
		if i < len(to) {
			will = to[i]
		}
		d.values(path+"["+strconv.Itoa(i)+"]", was, will)
	}
}

// named compares lists of things by their names. Where those of both lists are in
// another order, that is a change, too: it counts for init containers.
func (d *differ) named(path string, naming func(any) string, from, to []any) {
	was, will := map[string]any{}, map[string]any{}
	var order, newOrder []any
	for _, each := range from {
		was[naming(each)] = each
	}
	for _, each := range to {
		name := naming(each)
		will[name] = each
		if _, had := was[name]; had {
			newOrder = append(newOrder, name)
		}
	}
	for _, each := range from {
		if _, has := will[naming(each)]; has {
			order = append(order, naming(each))
		}
	}
	for _, name := range union(was, will) {
		d.values(path+"["+readable(name)+"]", was[name], will[name])
	}
	if !reflect.DeepEqual(order, newOrder) {
		d.add(path+"[]", order, newOrder)
	}
}

// scalars compares lists of plain values: which come, which go, or else their order.
func (d *differ) scalars(path string, from, to []any) {
	gone, come := without(from, to), without(to, from)
	for i := range max(len(gone), len(come)) {
		var was, will any
		if i < len(gone) {
			was = gone[i]
		}
		if i < len(come) {
			will = come[i]
		}
		d.add(path+"[]", was, will)
	}
	if len(gone)+len(come) == 0 && !same(from, to) {
		d.add(path+"[]", from, to)
	}
}

// without returns the values of a list that are not in another one as often.
func without(list, other []any) []any {
	count := map[string]int{}
	for _, value := range other {
		count[encoded(value)]++
	}
	var rest []any
	for _, value := range list {
		if key := encoded(value); count[key] > 0 {
			count[key]--
			continue
		}
		rest = append(rest, value)
	}
	return rest
}

// namings are the fields by which things in lists are told apart, the first that
// does it for all of both lists counts.
var namings = [][]string{{"name"}, {"mountPath"}, {"containerPort", "protocol"}, {"port", "protocol"}, {"key"}, {"ip"}, {"topologyKey", "whenUnsatisfiable"}}

// namingOf returns what names the things of two lists, or nil where they have no
// names of their own.
func namingOf(from, to []any) func(any) string {
	for _, fields := range namings {
		naming := func(thing any) string {
			table, _ := thing.(map[string]any)
			name := ""
			for i, field := range fields {
				value := table[field]
				if i == 0 && (value == nil || !isScalar(value) || value == "") {
					return ""
				}
				if value != nil {
					name = strings.TrimPrefix(name+"/"+fmt.Sprint(value), "/")
				}
			}
			return name
		}
		if unique(naming, from) && unique(naming, to) {
			return naming
		}
	}
	return nil
}

func unique(naming func(any) string, list []any) bool {
	seen := map[string]bool{}
	for _, each := range list {
		name := naming(each)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func all(list []any, is func(any) bool) bool {
	return !slices.ContainsFunc(list, func(value any) bool { return !is(value) })
}

// same tells whether two values are the same JSON.
func same(a, b any) bool { return reflect.DeepEqual(a, b) || encoded(a) == encoded(b) }

// encoded returns a value as JSON, without what is null in objects.
func encoded(value any) string {
	data, err := json.Marshal(withoutNulls(value))
	if err != nil {
		return fmt.Sprintf("%#v", value) // no JSON: nothing of an API server
	}
	return string(data)
}

func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		rest := make(map[string]any, len(value))
		for key, each := range value {
			if each != nil {
				rest[key] = withoutNulls(each)
			}
		}
		return rest
	case []any:
		rest := make([]any, len(value))
		for i, each := range value {
			rest[i] = withoutNulls(each)
		}
		return rest
	}
	return value
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// below returns the path of a key of an object.
func below(path, key string) string {
	if !plainKey.MatchString(key) {
		return path + "[" + readable(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// readable returns a text for a place where only what can be printed may be.
func readable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
