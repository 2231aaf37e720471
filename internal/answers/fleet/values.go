// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Flat returns the leaves of a value by their paths, such as image.tag and hosts[0].
func Flat(value any) map[string]string {
	found := map[string]string{}
	Flatten("", value, found)
	return found
}

// Flatten adds the leaves of a value below a path.
func Flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			Flatten(strings.TrimPrefix(path+"."+key, "."), inner, into)
		}
		if len(value) == 0 && path != "" {
			into[path] = "{}"
		}
	case []any:
		for i, inner := range value {
			Flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
		if len(value) == 0 && path != "" {
			into[path] = "[]"
		}
	default:
		into[path] = JSON(value)
		if into[path] == "" {
			into[path] = "null"
		}
	}
}

// JSON writes a value as JSON; empty for nothing.
func JSON(value any) string {
	data, err := json.Marshal(value)
	if text := string(data); err == nil && text != "null" {
		return text
	}
	return ""
}

// Union returns the names of two sets of texts, sorted.
func Union[T any](a, b map[string]T) []string {
	names := Set{}
	for name := range a {
		names.Add(name)
	}
	for name := range b {
		names.Add(name)
	}
	return names.Sorted()
}

// Compare orders versions, the older first. One that cannot be understood is older
// than all others.
func Compare(a, b string) int {
	left, errLeft := semver.NewVersion(a)
	right, errRight := semver.NewVersion(b)
	switch {
	case errLeft != nil && errRight != nil:
		return cmp.Compare(a, b)
	case errLeft != nil:
		return -1
	case errRight != nil:
		return 1
	}
	return left.Compare(right)
}

// Ended tells whether an end of life has passed.
func Ended(end *metav1.Time, now time.Time) bool { return end != nil && !now.Before(end.Time) }
