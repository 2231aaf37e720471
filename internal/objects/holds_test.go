// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"testing"
)

func TestHolds(t *testing.T) {
	for name, c := range map[string]struct {
		live, wanted string
		want         bool
	}{
		"the same":                  {`{"spec":{"hard":{"pods":"10"}}}`, `{"spec":{"hard":{"pods":"10"}}}`, true},
		"more besides":              {`{"spec":{"hard":{"pods":"10"},"a":1},"status":{"used":{"pods":"3"}}}`, `{"spec":{"hard":{"pods":"10"}}}`, true},
		"another value":             {`{"spec":{"hard":{"pods":"11"}}}`, `{"spec":{"hard":{"pods":"10"}}}`, false},
		"a field that is gone":      {`{"spec":{}}`, `{"spec":{"hard":{"pods":"10"}}}`, false},
		"all of it gone":            {`{}`, `{"spec":{"hard":{"pods":"10"}}}`, false},
		"nothing wanted of a field": {`{}`, `{"metadata":{"creationTimestamp":null}}`, false},
		"null and not there":        {`{"metadata":{}}`, `{"metadata":{"creationTimestamp":null}}`, true},
		"more labels of a selector": {`{"a":{"selector":{"matchLabels":{"x":"1","y":"2"}}}}`, `{"a":{"selector":{"matchLabels":{"x":"1"}}}}`, false},
		"a selector of all":         {`{"podSelector":{"matchLabels":{"x":"1"}}}`, `{"podSelector":{}}`, false},
		"the same selector":         {`{"selector":{"x":"1"},"type":"ClusterIP"}`, `{"selector":{"x":"1"}}`, true},
		"an empty map":              {`{"a":{"b":1}}`, `{"a":{}}`, true},
		"an empty map not there":    {`{}`, `{"a":{}}`, false},
		"a list":                    {`{"a":[{"b":1,"c":2},{"d":1}]}`, `{"a":[{"b":1},{"d":1}]}`, true},
		"a longer list":             {`{"a":[1,2,3]}`, `{"a":[1,2]}`, false},
		"another order":             {`{"a":[2,1]}`, `{"a":[1,2]}`, false},
		"a map for a list":          {`{"a":{}}`, `{"a":[]}`, false},
		"a text for a number":       {`{"a":"1"}`, `{"a":1}`, false},
		"a quantity written anew":   {`{"a":"500m"}`, `{"a":"0.5"}`, false},
		"false and not there":       {`{}`, `{"a":false}`, false},
	} {
		var live, wanted any
		if err := json.Unmarshal([]byte(c.live), &live); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.wanted), &wanted); err != nil {
			t.Fatal(err)
		}
		if got := Holds(live, wanted); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !Holds(map[string]any{"a": int64(1)}, map[string]any{"a": 1.0}) || !Holds(map[string]any{"a": 1.0}, map[string]any{"a": int64(1)}) || Holds(1.5, int64(1)) {
		t.Error("a whole number is the same however it was read")
	}
}
