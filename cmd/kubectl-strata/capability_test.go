// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// What there is, who claims it, and why a claim is where it is, as people read it.
func TestCapabilityIsGolden(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/capabilities.yaml")...)
	for name, test := range map[string]struct {
		args string
		code int
	}{
		"capability-list":          {"capability list", 0},
		"capability-list-wide":     {"capability list database -o wide", 0},
		"capability-list-name":     {"capability list -o name", 0},
		"capability-list-none":     {"capability list queue/amqp", 0},
		"capability-claims":        {"capability claims", 2},
		"capability-claims-wide":   {"capability claims -o wide -n shop", 2},
		"capability-why":           {"capability why shop/shop-db", 2},
		"capability-why-none":      {"capability why reports -n lab", 2},
		"capability-why-new":       {"capability why lab/new", 2},
		"capability-why-mistyped":  {"capability why lab/report", 1},
		"capability-why-shop.json": {"capability why shop/shop-db -o json", 2},
		"capability-why-rotating":  {"capability why lab/orders", 0},
		"capability-why-shared":    {"capability why shop/audit", 0},
		"capability-why-unshared":  {"capability why shop/spy", 2},
		"capability-move-shared":   {"capability move shop/audit shared --dry-run", 0},
		"capability-move-spy":      {"capability move shop/audit cnpg --dry-run", 1},
		"capability-tree":          {"tree", 2},
		"capability-tree-objects":  {"tree --objects", 2},
		"capability-move":          {"capability move shop/shop-db cnpg --dry-run", 0},
		"capability-move-other":    {"capability move shop/shop-db other --dry-run", 2},
		"capability-move-refused":  {"capability move shop/shop-db shared", 1},
		"capability-move-unasked":  {"capability move shop/shop-db cnpg", 1},
		"capability-move-unbound":  {"capability move lab/reports shared", 1},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := commandLine(t, server, terminal.Screen{}, test.args)
			if code != test.code {
				t.Errorf("exit code %d, and not %d: %s", code, test.code, errOut)
			}
			if !strings.Contains(name, ".") {
				name += ".txt"
			} else if !json.Valid([]byte(out)) {
				t.Error("it is no JSON")
			}
			golden(t, name, out+errOut)
		})
	}
}

// A user who may not list something is shown the rest.
func TestCapabilityWithoutRights(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/capabilities.yaml")...)
	server.Refuse["capabilityclaims.kraan.io"] = 403
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "capability list")
	if code != 0 || !strings.Contains(out, "cnpg") || !strings.Contains(errOut, "you may not list capabilityclaims.kraan.io, so claims are counted as far as that goes") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "capability claims"); code != 1 || !strings.Contains(errOut, "capabilityclaims.kraan.io") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	server.Refuse["capabilityproviders.kraan.io"] = 404
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "capability list"); code != 1 || !strings.Contains(errOut, "this cluster has no Strata that knows CapabilityProviders") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// A move writes the annotation, and nothing else, where somebody wants it.
func TestCapabilityMoves(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/capabilities.yaml")...)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "capability move shop-db cnpg -n shop --yes")
	if code != 0 || !strings.Contains(out, "claim shop/shop-db is to be bound to cnpg") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if writes := server.Writes(); len(writes) != 1 || !strings.Contains(writes[0], "PATCH /apis/kraan.io/v1alpha1/namespaces/shop/capabilityclaims/shop-db") {
		t.Errorf("it has written %q", writes)
	}
	_, out, _ = commandLine(t, server, terminal.Screen{}, "capability move shop/shop-db cnpg --dry-run")
	if writes := server.Writes(); len(writes) != 1 {
		t.Errorf("it has written %q: %s", writes, out)
	}
}
