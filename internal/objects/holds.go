// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import "reflect"

// Holds tells whether an object says all that was wanted of it: every field with its
// value, and lists item by item. What it says besides does not count, but in a selector, which
// is one value to the API server. Values that the API server writes in another way than they
// were wanted, such as quantities, are not the same here: the answer is then no, which is safe.
func Holds(live, wanted any) bool {
	switch want := wanted.(type) {
	case nil:
		return live == nil
	case map[string]any:
		has, is := live.(map[string]any)
		if !is {
			return false
		}
		for key, value := range want {
			if isSelector(key) && !reflect.DeepEqual(has[key], value) {
				return false
			}
			// A field without a value is one that is not there.
			if !Holds(has[key], value) {
				return false
			}
		}
		return true
	case []any:
		has, is := live.([]any)
		if !is || len(has) != len(want) {
			return false
		}
		for i := range want {
			if !Holds(has[i], want[i]) {
				return false
			}
		}
		return true
	case int64:
		number, is := live.(float64)
		return live == want || is && number == float64(want)
	case float64:
		number, is := live.(int64)
		return live == want || is && float64(number) == want
	default:
		return reflect.DeepEqual(live, wanted)
	}
}

// isSelector tells fields that the API server takes as one value, although they are maps: more
// labels select something else.
func isSelector(field string) bool {
	switch field {
	case "selector", "podSelector", "namespaceSelector", "labelSelector", "objectSelector", "nodeSelector", "matchLabels":
		return true
	}
	return false
}
