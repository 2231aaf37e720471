// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
)

func TestDeprovisionIsGolden(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		width int
		code  int
	}{
		"deprovision":          {"deprovision base mesh apps --plan", 0, 2},
		"deprovision-40":       {"deprovision base mesh apps --plan", 40, 2},
		"deprovision-outside":  {"deprovision base --plan", 0, 2},
		"deprovision-free":     {"deprovision apps --plan", 0, 0},
		"deprovision-cluster":  {"deprovision --cluster eu --plan", 0, 2},
		"deprovision-platform": {"deprovision --platform edge --plan", 0, 2},
		"deprovision-abandon":  {"deprovision --platform edge --abandon --plan", 0, 0},
		"deprovision.json":     {"deprovision base mesh apps --plan -o json", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			objects := apitest.Load(t, "testdata/departing.yaml")
			server := apitest.New(t, objects...)
			code, out, errOut := commandLine(t, server, terminalOf(c.width), c.args)
			if code != c.code || errOut != "" {
				t.Errorf("exit code %d: %s", code, errOut)
			}
			if !strings.Contains(name, ".") {
				name += ".txt"
			}
			golden(t, name, out)
			slices.Reverse(objects)
			if _, again, _ := commandLine(t, apitest.New(t, objects...), terminalOf(c.width), c.args); again != out {
				t.Errorf("the order of objects matters:\n%s\n%s", out, again)
			}
			if writes := server.Writes(); len(writes) > 0 {
				t.Errorf("it writes %v", writes)
			}
		})
	}
}

// A Platform that depends on another is in the way of what it has, whether it is on the same
// cluster or not.
func TestDeprovisionNamesWhoDependsOnThePlatform(t *testing.T) {
	objects := append(apitest.Load(t, "testdata/departing.yaml"), apitest.Parse(t, `
apiVersion: kraan.io/v1alpha1
kind: Platform
metadata: {name: shop}
spec: {bundle: {family: shop}, dependsOn: [{name: edge}]}
---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: shop-till, labels: {platform.kraan.io/name: shop, platform.kraan.io/cluster: "", platform.kraan.io/layer: till}}
spec: {version: 1.0.0}
`)...)
	code, out, _ := commandLine(t, apitest.New(t, objects...), terminalOf(0), "deprovision --platform edge --plan")
	if code != 2 || !strings.Contains(out, "Platform edge is not deleted: Platform shop depends on this one; delete that first") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestDeprovisionMistakes(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/departing.yaml")...)
	for args, words := range map[string]string{
		"deprovision --plan":                        "name the layers, or give one of --platform and --cluster",
		"deprovision base --platform edge --plan":   "name the layers, or give one of",
		"deprovision bases --plan":                  "there is no layer bases; did you mean base?",
		"deprovision base --abandon --plan":         "--abandon goes with --platform",
		"deprovision --platform egde --plan":        "there is no Platform egde",
		"deprovision --cluster fleet/eux --plan":    "there is no RemoteCluster fleet/eux; did you mean fleet/eu?",
		"deprovision base --plan --output markdown": "--output is",
	} {
		if code, out, errOut := commandLine(t, server, terminalOf(0), args); code != 1 || !strings.Contains(errOut, words) {
			t.Errorf("%s: exit code %d, %s%s", args, code, out, errOut)
		}
	}
	if code, _, errOut := commandLine(t, server, terminalOf(0), "deprovision apps"); code != 0 || !strings.Contains(errOut, "this only plans") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// What may not be listed is not known, and the rest is said.
func TestDeprovisionWithoutRights(t *testing.T) {
	server := apitest.New(t, apitest.Load(t, "testdata/departing.yaml")...)
	server.Refuse["certificates.example.dev"], server.Refuse["services"] = 403, 403
	code, out, _ := commandLine(t, server, terminalOf(0), "deprovision base mesh apps --plan")
	if code != 2 || !strings.Contains(out, "it is not known whether there are certificates.example.dev") || !strings.Contains(out, "how many is not known") {
		t.Errorf("exit code %d: %s", code, out)
	}
	server.Refuse["customresourcedefinitions.apiextensions.k8s.io"] = 403
	if _, out, _ := commandLine(t, server, terminalOf(0), "deprovision base mesh apps --plan"); !strings.Contains(out, "not known: which definitions would go") {
		t.Errorf("it says %s", out)
	}
	server.Refuse["helmreleases.helm.toolkit.fluxcd.io"] = 403
	code, out, errOut := commandLine(t, server, terminalOf(0), "deprovision base mesh apps --plan")
	if code != 0 || !strings.Contains(out, "not known: which releases it has") || !strings.Contains(errOut, "you may not list helmreleases") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	server.Refuse["addonslayers.kraan.io"] = 403
	if code, _, errOut := commandLine(t, server, terminalOf(0), "deprovision base --plan"); code != 1 || !strings.Contains(errOut, "strata-view") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
