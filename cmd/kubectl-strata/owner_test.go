// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/gather"
	"github.com/strata-project/strata/internal/terminal"
)

func TestOwnerIsGolden(t *testing.T) {
	server := seen(t)
	for _, test := range []struct {
		name, args string
		screen     terminal.Screen
		code       int
	}{
		{"owner.txt", "owner deployment/metrics-server -n kube-system", terminal.Screen{}, exitFine},
		{"owner-pod.txt", "owner pod istiod-7d9c5b8f6-x2x4z -n mesh", terminal.Screen{}, exitFine},
		{"owner-40.txt", "owner pods/istiod-7d9c5b8f6-x2x4z -n mesh", narrow, exitFine},
		{"owner.json", "owner deployments.apps/istiod --namespace mesh -o json", terminal.Screen{}, exitFine},
		{"owner-release.txt", "owner HelmRelease/istiod -n mesh", terminal.Screen{}, exitFine},
		{"owner-nobody.txt", "owner pod/istiod-old -n mesh", terminal.Screen{}, exitBlocked},
		{"owner-nobody.yaml", "owner pod/istiod-old -n mesh -o yaml", terminal.Screen{}, exitBlocked},
	} {
		code, out, errOut := commandLine(t, server, test.screen, test.args)
		if code != test.code || errOut != "" {
			t.Errorf("%s: exit code %d: %s", test.args, code, errOut)
		}
		golden(t, test.name, out)
		if test.screen == narrow {
			fits(t, out)
		}
	}
}

func TestOwnerOfWhatIsNotThere(t *testing.T) {
	server := seen(t)
	for args, want := range map[string]string{
		"owner deploymnt/x":              "the cluster has no kind deploymnt; kubectl api-resources lists those it has",
		"owner pod/istiod-odl -n mesh":   "there is no Pod istiod-odl in namespace mesh (--namespace chooses another); did you mean istiod-old?",
		"owner clusterrole/x":            "there is no ClusterRole x\n",
		"owner pod":                      "name one object, as KIND/NAME or KIND NAME",
		"owner pod/a/b":                  "name one object",
		"owner a b c":                    "accepts between 1 and 2 arg(s)",
		"owner pod/istiod-old -o banana": `--output is "banana": it must be json or yaml`,
	} {
		if code, _, errOut := commandLine(t, server, terminal.Screen{}, args); code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s", args, code, errOut)
		}
	}
	server.Refuse["pods"] = http.StatusForbidden
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "owner pod/istiod-old -n mesh"); code != exitError || !strings.Contains(errOut, "your rights do not suffice") {
		t.Errorf("without rights: exit code %d: %s", code, errOut)
	}
}

// Owners that own each other are followed for a while, and owners that are gone, or
// are other objects by that name, not at all.
func TestOwnerEnds(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, `
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ns, uid: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: b, controller: true}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: ns, uid: b, ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: a, controller: true}]}
---
apiVersion: v1
kind: Pod
metadata: {name: c, namespace: ns, uid: c, ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: old, controller: true}]}
`)...)
	for args, pods := range map[string]int{"owner pod/a -n ns": gather.MostOwners, "owner pod/c -n ns": 1} {
		if code, out, errOut := commandLine(t, server, terminal.Screen{}, args); code != exitBlocked || strings.Count(out, "Pod ns/") != pods {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, errOut)
		}
	}
}
