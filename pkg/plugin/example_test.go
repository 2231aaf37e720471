// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/strata-project/strata/pkg/plugin"
)

type databases struct{}

func (databases) Describe() plugin.Description {
	return plugin.Description{Name: "databases", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/postgresql", Versions: []string{"15.8"}, Passwords: []plugin.NewPassword{{Name: "app"}},
	}}}
}

func (databases) Plan(request plugin.Request) (plugin.Plan, error) {
	users := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: request.Claim.Name + "-users"},
		StringData: map[string]string{"app": plugin.Password("app")},
	}
	return plugin.Plan{
		Objects:   []plugin.Object{{ID: "users", Object: users}},
		Publishes: []plugin.Value{{Key: "password", Text: plugin.Password("app")}},
	}, nil
}

// A program serves a type with two functions, until whoever has started it ends it.
func ExampleServe() { plugin.Serve(databases{}) }
