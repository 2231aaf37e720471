// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/capabilities"
	"github.com/strata-project/strata/internal/terminal"
)

// The command shows what is signed, and asks for that very record alone, beside what was asked for
// before.
func TestCapabilitySigns(t *testing.T) {
	const data = `{"claim":"shop/db","provider":"cnpg","version":"16.4","spec":{"capability":"database/postgresql","serviceAccountName":"databases"}}`
	record := func(number int) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: claim.uid-1.%d, namespace: strata-system, labels: {kraan.io/claim: uid-1}}\nrevision: %d\ndata: %s\n", number, number, data)
	}
	claim := "apiVersion: kraan.io/v1alpha1\nkind: CapabilityClaim\nmetadata: {name: db, namespace: shop, uid: uid-1}\nspec: {capability: database/postgresql}\n"
	note := "---\napiVersion: v1\nkind: Secret\nmetadata: {name: strata-records, namespace: strata-system, annotations: {kraan.io/sign-records: claim.other.1=x}}\n"
	server := apitest.New(t, apitest.Parse(t, claim+note+record(1)+strings.ReplaceAll(record(2), "16.4", "17.0"))...)
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "capability sign shop/db --yes"); code != 1 || !strings.Contains(errOut, "name one with --record: claim.uid-1.2, claim.uid-1.1") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if code, _, errOut := commandLine(t, server, terminal.Screen{}, "capability sign shop/db --yes --record claim.uid-1.7"); code != 1 || !strings.Contains(errOut, "has no record claim.uid-1.7") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "capability sign shop/db --yes --record claim.uid-1.2")
	for _, want := range []string{"cnpg 17.0", "strata-system/databases", "strata-system/claim.uid-1.2", "is to be signed"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q: %s%s", code, want, out, errOut)
		}
	}
	digest := capabilities.Record{Data: []byte(strings.ReplaceAll(data, "16.4", "17.0"))}.Digest()
	want := "claim.other.1=x claim.uid-1.2=" + digest
	if writes := server.Writes(); len(writes) != 1 || !strings.Contains(writes[0], "PATCH /api/v1/namespaces/strata-system/secrets/strata-records") || !strings.Contains(writes[0], want) {
		t.Errorf("it has written %q, and not %s", writes, want)
	}
}
