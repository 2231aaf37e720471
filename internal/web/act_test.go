// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/strata-project/strata/internal/web"
	"github.com/strata-project/strata/internal/web/webtest"
)

// acting serves a page that something may be done on.
func acting(t *testing.T, cluster *webtest.Played, actor web.Actor, told *[]string) *httptest.Server {
	t.Helper()
	page, err := web.New(web.Options{
		Cluster: cluster, Actor: actor, Program: webtest.Program, Told: func(what string) { *told = append(*told, what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	return server
}

func post(t *testing.T, server *httptest.Server, kind, body string) (int, string) {
	t.Helper()
	answer, err := http.Post(server.URL+"/act", kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// An act is what was confirmed, or nothing: what cannot be understood, or may not be done,
// changes nothing, and says why.
func TestActs(t *testing.T) {
	const kind = "application/json"
	for name, test := range map[string]struct {
		kind, body string
		want       int
		says       string
		done       bool
	}{
		"asked about":           {kind, `{"act":"hold","layer":"a","reason":"x","dry":true}`, 200, `"command":"kubectl strata hold a --reason x"`, false},
		"done":                  {kind + "; charset=utf-8", `{"act":"hold","layer":"a","reason":"x"}`, 200, `"done":"layer a is held: x"`, true},
		"a command with quotes": {kind, `{"act":"hold","layer":"a","reason":"it's; reboot","until":"1h","dry":true}`, 200, `--reason 'it'\\''s; reboot' --until 1h`, false},
		"no reason":             {kind, `{"act":"hold","layer":"a"}`, 422, "the reason is missing", false},
		"no such layer":         {kind, `{"act":"hold","layer":"b","reason":"x"}`, 422, "there is no layer b", false},
		"no such act":           {kind, `{"act":"delete","layer":"a"}`, 422, `nothing that is called "delete"`, false},
		"what there is not":     {kind, `{"act":"hold","layer":"a","reason":"x","force":true}`, 400, `unknown field`, false},
		"a form":                {"application/x-www-form-urlencoded", `{"act":"hold","layer":"a","reason":"x"}`, 415, "written as JSON", false},
		"a text":                {"text/plain", `{"act":"hold","layer":"a","reason":"x"}`, 415, "written as JSON", false},
		"half":                  {kind, `{"act":"hold","layer":"a","rea`, 400, "cannot be understood", false},
		"nothing":               {kind, ``, 400, "cannot be understood", false},
		"very much":             {kind, `{"act":"hold","layer":"a","reason":"` + strings.Repeat("x", 20_000) + `"}`, 400, "too large", false},
		"a long reason":         {kind, `{"act":"hold","layer":"a","reason":"` + strings.Repeat("x", 1001) + `"}`, 422, "more than 1000 characters", false},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			cluster := webtest.Play(layers(t, "Deployed", "a"), nil)
			server := acting(t, cluster, cluster, &told)
			status, text := post(t, server, test.kind, test.body)
			if status != test.want || !strings.Contains(text, test.says) {
				t.Errorf("it is answered with %d, %s; want %d, %s", status, text, test.want, test.says)
			}
			if done := len(cluster.Done()); (done > 0) != test.done || len(told) != done {
				t.Errorf("%d acts are done, and %q is told", done, told)
			}
		})
	}
}

// Without an actor nothing can be done, whatever is sent; and nothing is done that may not be.
func TestNobodyActs(t *testing.T) {
	const body = `{"act":"hold","layer":"a","reason":"x"}`
	var told []string
	cluster := webtest.Play(layers(t, "Deployed", "a"), nil)
	if status, _ := post(t, acting(t, cluster, nil, &told), "application/json", body); status != http.StatusMethodNotAllowed {
		t.Errorf("a page that is only looked at answers with %d", status)
	}
	server := acting(t, cluster, cluster, &told)
	if has := string(stream(t, server, "layer=a").next().Set["layer"]); !strings.Contains(has, `"acts":["hold","reconcile"]`) {
		t.Errorf("the layer offers nothing: %s", has)
	}
	cluster.Deny()
	if status, text := post(t, server, "application/json", body); status != http.StatusUnprocessableEntity || !strings.Contains(text, "you may not change it") {
		t.Errorf("it is answered with %d, %s", status, text)
	}
	if has := string(stream(t, server, "layer=a").next().Set["layer"]); strings.Contains(has, `"acts"`) {
		t.Errorf("the layer offers what may not be done: %s", has)
	}
	if done := cluster.Done(); len(done)+len(told) > 0 {
		t.Errorf("%v was done", done)
	}
}
