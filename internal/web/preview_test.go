// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/strata-project/strata/internal/answers/drift"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/web/webtest"
)

// What is asked for becomes part of a command that somebody may copy: what could mean
// something to a shell, or be a flag, is refused.
func TestHostileRequests(t *testing.T) {
	server := served(t, webtest.Play(layers(t, "Deployed", "a"), nil))
	ask := func(values url.Values) int {
		t.Helper()
		values.Set("once", "1")
		answer, err := http.Get(server.URL + "/stream?" + values.Encode())
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for of, want := range map[string]int{
		"": 204, "sources": 204, "drift": 204, "folder": 204, "git:main": 204, "git:origin/feature-1": 204, "git:v1.2.0^": 204, "git:3f2c1ab": 204,
		"platform:edge": 204, "platform:edge@1.1.0": 204, "platform:edge@>=1.2 <2": 204, "rollback:base@11": 204,
		"git:": 400, "git": 400, "git:--upload-pack=x": 400, "git:$(reboot)": 400, "git:a;b": 400, "git:a b": 400, "git:`x`": 400, "git:a'b": 400, "git:../x": 400,
		"git:" + strings.Repeat("a", 300): 400, "platform:": 400, "platform:a b": 400, "platform:edge@$(x)": 400, "platform:edge@1'; reboot '": 400,
		"rollback:base": 400, "rollback:base@$x": 400, "rollback:-x@1": 400, "secrets": 400, "drift:base": 400, "sources:": 400,
	} {
		if got := ask(url.Values{"view": {"plan"}, "of": {of}}); got != want {
			t.Errorf("%q is answered with %d, want %d", of, got, want)
		}
	}
	for _, bad := range []url.Values{
		{"only": {"a;b"}}, {"only": {"-o"}}, {"again": {strings.Repeat("1", 40)}}, {"again": {"<"}},
	} {
		bad.Set("view", "plan")
		bad.Set("of", "drift")
		if got := ask(bad); got != http.StatusBadRequest {
			t.Errorf("%v is answered with %d", bad, got)
		}
	}
	for _, version := range []string{"$(x)", "1;2", "'", strings.Repeat("1", 200), "1\n2"} {
		if got := ask(url.Values{"view": {"platforms"}, "platform": {"edge"}, "plan": {version}}); got != http.StatusBadRequest {
			t.Errorf("version %q is answered with %d", version, got)
		}
	}
}

// sentPreview is what a tab is sent of a preview.
type sentPreview struct {
	Done    bool
	Says    string
	Error   string
	Verdict string
	Command string
	Actions []struct {
		Action string
		Lines  []struct{ Sign, Text string }
	}
	Layers []struct{ Lines []struct{ Sign, Text string } }
	Left   []string
}

// A plan that is very large is shown by its beginning, with words for the rest, and so is a
// comparison: neither what is sent nor what is drawn grows with it.
func TestPreviewsAreBounded(t *testing.T) {
	cluster := webtest.Play(layers(t, "Deployed", "a"), nil)
	var changes []preview.ObjectChange
	for i := range 100 {
		object := preview.Object{Kind: "ConfigMap", Namespace: "a", Name: fmt.Sprint(i)}
		changes = append(changes, preview.ObjectChange{Verb: "change", Object: object, Lines: []string{"~ ConfigMap a/" + fmt.Sprint(i), "+ " + strings.Repeat("x", 100_000), "  more", ""}})
	}
	p := &preview.Plan{Counts: map[preview.Verb]int{preview.Change: 1000}, Notes: []string{strings.Repeat("n", 100_000)}}
	for i := range 1000 {
		p.Actions = append(p.Actions, preview.Action{Wave: 1, Layer: "a", Action: preview.Change, Object: preview.Object{Kind: "HelmRelease", Name: fmt.Sprint(i)}, Changes: changes})
	}
	cluster.Answer(live.Request{Of: live.OfSources}, live.Preview{Done: true, At: time.Now(), Plan: p})
	cluster.Answer(live.Request{Of: live.OfDrift}, live.Preview{Done: true, Drift: []drift.Layer{{Layer: "a", Objects: []drift.Object{{ObjectChange: changes[0]}}}, {Layer: "b"}}})
	cluster.Answer(live.Request{Of: live.OfFolder}, live.Preview{Done: true, Err: errors.New("it is no folder")})
	server := served(t, cluster)
	ask := func(of string) (sent sentPreview, size int) {
		t.Helper()
		m := stream(t, server, "view=plan&of="+of).next()
		if err := json.Unmarshal(m.Set["preview"], &sent); err != nil {
			t.Fatal(err)
		}
		return sent, len(m.Set["preview"])
	}
	sent, size := ask("sources")
	lines := 0
	for _, action := range sent.Actions {
		lines += len(action.Lines)
	}
	if lines != 600 || len(sent.Actions) != 100 || size > 400_000 {
		t.Errorf("%d lines of %d actions are sent, %d bytes", lines, len(sent.Actions), size)
	}
	if left := strings.Join(sent.Left, ", "); left != "900 actions, 39400 lines of changes" || sent.Command != "kubectl strata plan" || sent.Verdict != "1000 to change." {
		t.Errorf("left are %s; %s: %s", left, sent.Command, sent.Verdict)
	}
	if first := sent.Actions[0].Lines[1]; first.Sign != "+" || len(first.Text) > 500 {
		t.Errorf("a line is %.20q", first)
	}
	sent, _ = ask("drift")
	if len(sent.Layers) != 1 || len(sent.Layers[0].Lines) != 4 || sent.Verdict != "Objects that are not as they are wanted: 1, of layers: 1." || sent.Command != "kubectl strata diff" {
		t.Errorf("it is %+v", sent)
	}
	if sent, _ = ask("folder"); sent.Error != "it is no folder" || !sent.Done {
		t.Errorf("it is %+v", sent)
	}
	if sent, _ = ask("git:main"); sent.Done || sent.Says != "reads the cluster" || sent.Command != "kubectl strata plan --from-git main" {
		t.Errorf("it is %+v", sent)
	}
}
