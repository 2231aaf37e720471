// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command leaky is a plug-in that tells the passwords that it is given.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(leaky{}) }

type leaky struct{}

// Describe says that it has databases.
func (leaky) Describe() plugin.Description {
	return plugin.Description{Name: "leaky", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/postgresql", Passwords: []plugin.NewPassword{{Name: "app"}},
		Schema: []byte(`{"type": "object", "properties": {"do": {"type": "string"}}}`),
	}}}
}

// Plan makes nothing.
func (leaky) Plan(plugin.Request) (plugin.Plan, error) {
	return plugin.Plan{Publishes: []plugin.Value{{Key: "host", Text: "db"}}}, nil
}

// Ensure tells the password.
func (leaky) Ensure(_ context.Context, request plugin.EnsureRequest) (plugin.Ensured, error) {
	said := "the password is " + request.Passwords["app"] + ", and was " + request.Previous["app"]
	switch request.Parameters["do"] {
	case "fail":
		return plugin.Ensured{}, fmt.Errorf("%s", said)
	case "waits":
		return plugin.Ensured{Waits: said}, nil
	case "tells":
		return plugin.Ensured{Publishes: []plugin.Value{{Key: "password", Text: request.Passwords["app"]}}}, nil
	case "unsteady":
		return plugin.Ensured{Publishes: []plugin.Value{{Key: "port", Text: fmt.Sprint(time.Now().UnixNano())}}}, nil
	case "twice":
		return plugin.Ensured{Publishes: []plugin.Value{{Key: "host", Text: said}}}, nil
	}
	return plugin.Ensured{Publishes: []plugin.Value{{Key: "password", Text: plugin.Password("app")}}}, nil
}

// Release has nothing to do.
func (leaky) Release(context.Context, plugin.ReleaseRequest) error { return nil }
