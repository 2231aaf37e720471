// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/snapshot"
)

func TestReadAsksOnceForEachKind(t *testing.T) {
	var objects []string
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: "+name+"}\n",
			"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: "+name+", namespace: apps}\n")
	}
	server := apitest.New(t, apitest.Parse(t, strings.Join(objects, "---\n"))...)
	server.Refuse["pods"], server.Refuse["externalartifacts.source.toolkit.fluxcd.io"] = http.StatusForbidden, http.StatusNotFound
	var warned bytes.Buffer
	with := newTool(&bytes.Buffer{}, &warned)
	*with.Flags.APIServer = server.URL
	s, err := with.Cluster.Read(t.Context(), append([]snapshot.Part{snapshot.Layers, snapshot.Releases, snapshot.Pods}, snapshot.Sources...)...)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.LayerNames(), " "); got != "a b c" || len(s.Of(snapshot.Releases)) != 3 {
		t.Errorf("layers %q, releases %v", got, s.Of(snapshot.Releases))
	}
	if requests := server.Requests(); len(requests) != 7 {
		t.Errorf("%d requests for 7 kinds: %q", len(requests), requests)
	}
	with.WarnUnread(s, "why is not known")
	if got, want := warned.String(), "kubectl strata: you may not list pods, so why is not known\n"; got != want {
		t.Errorf("warns %q, want %q", got, want)
	}
	server.Refuse["addonslayers.kraan.io"] = http.StatusForbidden
	if _, err := with.Cluster.Read(t.Context(), snapshot.Layers); err == nil || !strings.Contains(err.Error(), "ask for the role strata-view") {
		t.Errorf("without rights: %v", err)
	}
}
