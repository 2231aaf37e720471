// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/strata-project/strata/pkg/plugin"
)

func request(parameters map[string]any) plugin.Request {
	for name, value := range map[string]any{"database": "app", "size": "1Gi", "port": float64(5432)} {
		if parameters[name] == nil {
			parameters[name] = value
		}
	}
	return plugin.Request{Claim: plugin.Claim{Name: "shop-db", Namespace: "shop", Version: "16.4"}, Parameters: parameters}
}

// A claim has a server of its version, whose data stay until somebody confirms that they may go.
func TestServerOfAClaim(t *testing.T) {
	plan, err := postgres{}.Plan(request(map[string]any{"size": "5Gi"}))
	if err != nil {
		t.Fatal(err)
	}
	servers := 0
	for _, object := range plan.Objects {
		set, is := object.Object.(*appsv1.StatefulSet)
		if !is {
			continue
		}
		servers++
		size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
		if image := set.Spec.Template.Spec.Containers[0].Image; image != "docker.io/library/postgres:16.4" || size != "5Gi" || !object.HoldsData {
			t.Errorf("the server is %s with %s", image, size)
		}
	}
	if servers != 1 {
		t.Errorf("there are %d servers", servers)
	}
}

// A size that is none is refused before anything is made.
func TestSizesThatAreNone(t *testing.T) {
	for size, want := range map[string]int{"10Gi": 0, "0": 1, "-1Gi": 1, "much": 1} {
		if problems := (postgres{}).Validate(request(map[string]any{"size": size})); len(problems) != want {
			t.Errorf("%s: %v", size, problems)
		}
	}
}
