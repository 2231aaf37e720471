// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page_test looks at the page in a real Chromium, with clusters that are played
// to it.
package page_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/answers/live"
	"github.com/strata-project/strata/internal/answers/preview"
	"github.com/strata-project/strata/internal/answers/repository"
	"github.com/strata-project/strata/internal/answers/snapshot"
	"github.com/strata-project/strata/internal/web"
	"github.com/strata-project/strata/internal/web/webtest"
	"github.com/strata-project/strata/test/browser"
)

var pictures = flag.String("pictures", "", "a folder to write pictures of the views to")

// now is when everything is played.
var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// played returns a snapshot of documents of YAML.
func played(t testing.TB, text string) *snapshot.Snapshot {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
	s, err := snapshot.New(now, all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded returns the snapshots of a file of testdata: what is read at once, and what lies
// below causes.
func recorded(t testing.TB, name string) *webtest.Played {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	s := played(t, string(data))
	return webtest.Play(s, s)
}

// serve serves a played cluster, and returns the address that opens the page.
func serve(t testing.TB, cluster *webtest.Played) string {
	t.Helper()
	page, err := web.New(web.Options{Cluster: cluster, Actor: cluster, Program: webtest.Program, Name: "main"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	local, err := web.NewLocal(page, server.Listener.Addr().String(), false)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = local
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + local.Path()
}

// A browser tells of a dialog that was closed in a task of its own. A stroke that comes
// before that opens the next dialog all the same, and what was closed does not close it.
func TestStrokesRightAfterEsc(t *testing.T) {
	tab := browser.Open(t)
	tab.Go(serve(t, recorded(t, "platform.yaml")))
	tab.Says("h1", "5 layers")
	for key, opens := range map[string]string{"/": ".palette", "?": ".keys"} {
		for _, between := range []string{"", "await null"} {
			tab.Press("/")
			tab.Until("document.querySelector('dialog.palette[open]')")
			open := browser.Value[bool](tab, fmt.Sprintf(`(async () => {
				const told = new Promise((done) => document.querySelector("dialog").addEventListener("close", () => setTimeout(done)));
				document.querySelector("dialog").requestClose();
				%s;
				document.body.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}));
				await Promise.race([told, new Promise((done) => setTimeout(done, 200))]);
				return !!document.querySelector("dialog%s[open]");
			})()`, between, key, opens))
			if !open {
				t.Errorf("%s right after Esc, with %q between, opens nothing", key, between)
			}
			tab.Press(browser.Escape)
			tab.Until("!document.querySelector('dialog')")
		}
	}
}

// Each view is looked at in light and dark, on a telephone, a laptop and a wall: nobody is
// kept from using it, and nothing sticks out to the side.
func TestViews(t *testing.T) {
	cluster := recorded(t, "platform.yaml")
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "5 layers")
	look := func(view string) {
		for _, dark := range []bool{false, true} {
			tab.Dark(dark)
			for _, size := range []struct {
				name          string
				width, height int64
			}{{"laptop", 1440, 900}, {"telephone", 320, 640}, {"wall", 3840, 2160}} {
				tab.Size(size.width, size.height)
				name := fmt.Sprintf("ui-%s-%s-%s", view, size.name, map[bool]string{false: "light", true: "dark"}[dark])
				if wide := browser.Value[int](tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
					t.Errorf("%s: %d pixels stick out to the side", name, wide)
				}
				if size.name != "wall" {
					tab.Accessible(name)
				}
				if *pictures != "" {
					tab.Shoot(filepath.Join(*pictures, name+".webp"))
				}
			}
		}
		tab.Size(1440, 900)
	}
	views := []struct {
		name string
		show func()
	}{
		{"overview", func() { tab.Press(browser.Escape); tab.Until("!document.querySelector('.panel')") }},
		{"layer", func() {
			tab.Click("a[data-layer=mesh]")
			tab.Says(".panel h2", "mesh")
			tab.Says(".chain", "istiod")
			tab.Says(".line", "RolledBack")
			tab.Says(".line", "Stopping container")
		}},
		{"act", func() {
			planned(cluster)
			tab.Button("Go back to this")
			tab.Says("dialog", "goes back to deployment 4")
			tab.Says("dialog .diff", "spec.replicas")
		}},
		{"hold", func() {
			tab.Press(browser.Escape)
			tab.Until("!document.querySelector('dialog')")
			tab.Expect("422 (Unprocessable Entity)")
			tab.Button("Hold")
			tab.Until("document.activeElement.name === 'reason'")
			tab.Press("driver freeze")
			tab.Says("dialog", "Nothing of layer mesh is applied")
		}},
		{"palette", func() {
			tab.Press(browser.Escape)
			tab.Until("!document.querySelector('dialog')")
			tab.Control("k")
			tab.Until("document.querySelectorAll('.palette [role=option]').length > 4")
		}},
		{"keys", func() {
			tab.Press(browser.Escape)
			tab.Until("!document.querySelector('dialog')")
			tab.Press("?")
			tab.Says("dialog h2", "Keys")
		}},
	}
	for _, view := range views {
		view.show()
		look(view.name)
	}
	tab.Press(browser.Escape)
	tab.Until("!document.querySelector('dialog')")
	planned(cluster)
	tab.Press("4")
	tab.Choose(".chooser select", "git:gateway-4")
	tab.Says(".actions", "upgrade HelmRelease")
	look("plan")
	tab.Choose(".chooser select", "drift")
	tab.Says(".drift", "2 objects differ")
	look("drift")
	cluster.Set(fleet(40, 10))
	tab.Press("2")
	tab.Says(".bar", "40 clusters")
	look("clusters")
	tab.Click(".map tbody th a")
	tab.Says(".panel", "main-edge-0003-ingress Failed")
	look("cluster")
	tab.Press(browser.Escape)
	r := newRolling(t, 20)
	r.to("1.1.0", now.Add(-2*time.Hour))
	r.settle()
	r.at(now)
	r.decide(nil)
	cluster.Set(r.s)
	tab.Press("3")
	tab.Says(".cards", "canary")
	look("rollouts")
	tab.Click(".cards h2 a")
	tab.Choose(".bar select", "1.2.0")
	tab.Says(".rows", "1.2.0")
	look("rollout")
}

// What a cluster says is shown as it is written, and does nothing: neither markup, nor
// addresses, nor names that mean something to scripts.
func TestHostileWords(t *testing.T) {
	const evil = `<img src=x onerror="document.body.dataset.evil=1"><script>document.body.dataset.evil=1</script>`
	s := played(t, `apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: __proto__, generation: 1}
spec: {version: "1"}
status: {state: Failed, observedGeneration: 1, conditions: [{type: Ready, status: "False", reason: X, message: x}]}
---
apiVersion: kraan.io/v1alpha1
kind: AddonsLayer
metadata: {name: constructor, generation: 1}
spec: {version: "1", prereqs: {dependsOn: [__proto__]}, source: {path: "javascript:alert(1)"}}
status:
  state: Failed
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: X, message: x}]
  blockedBy: [{kind: "</script>", namespace: ns, name: m, reason: r}]
`)
	long := strings.Repeat("very long ", 10_000)
	s.Layers[0].Status.Conditions[0].Message = evil + long
	s.Layers[1].Status.Conditions[0].Message = evil
	s.Layers[1].Status.BlockedBy[0].Message = evil + "\u202egnp.exe\x00\u2028"
	cluster := webtest.Play(s, nil)
	address := serve(t, cluster)
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "2 failed")
	tab.Says("h1", "<img src=x")
	for _, name := range []string{"constructor", "__proto__"} {
		tab.Click(fmt.Sprintf("a[data-layer=%s]", name))
		tab.Says(".panel h2", name)
		tab.Says(".chain", "<script>")
		tab.Press(browser.Escape)
	}
	// Each other view, too: what a Platform, a cluster, a commit and a plan say.
	s.Platforms = []*v1alpha1.Platform{{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Status: v1alpha1.PlatformStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: "False", Reason: evil, Message: evil}}, Stages: []v1alpha1.StageStatus{{Name: evil, State: evil, Approval: evil}},
	}}}
	s.Clusters = []*v1alpha1.RemoteCluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "x", Labels: map[string]string{"a": evil}}, Status: v1alpha1.RemoteClusterStatus{
		Version: evil, Conditions: []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: "False", Reason: evil, Message: evil}},
	}}}
	cluster.Offer(live.Repository{Folder: evil, Revisions: []repository.Revision{{Name: "HEAD", Commit: "x", Title: evil}}})
	cluster.Answer(live.Request{Of: live.OfSources}, live.Preview{Done: true, Plan: &preview.Plan{
		Notes: []string{evil}, Counts: map[preview.Verb]int{preview.Change: 1}, Blocked: []preview.Layer{{Layer: evil, Verdict: preview.Wait, Message: evil}},
		Actions: []preview.Action{{Layer: evil, Object: preview.Object{Kind: evil, Name: evil}, Action: preview.Change, Note: evil, Changes: []preview.ObjectChange{{Verb: "change", Lines: []string{"~ " + evil}}}}},
	}})
	for path, selector := range map[string]string{
		"/platforms": ".cards", "/platforms/edge": "article", "/clusters?cluster=fleet%2Fx": ".panel", "/plan?of=sources": ".diff",
	} {
		tab.Go(strings.TrimSuffix(address, pathOf(address)) + path)
		tab.Says(selector, "<script>")
	}
	if browser.Value[bool](tab, "'evil' in document.body.dataset || document.querySelectorAll('main img, main script, main iframe, [href^=javascript]').length > 0") {
		t.Error("what a layer says has become markup")
	}
	if length := browser.Value[int](tab, "document.body.innerText.length"); length > 20_000 {
		t.Errorf("%d characters are shown", length)
	}
	// What the page itself must not be able to do, whatever its script.
	for what, try := range map[string]string{
		"ask somebody else": `fetch("http://127.0.0.1:9/").then(() => "it may", () => "")`,
		"be framed or send": `(() => { const f = document.createElement("form"); f.action = "http://127.0.0.1:9/"; document.body.append(f); let sent = false; try { f.submit(); } catch { sent = false; } f.remove(); return sent ? "it may" : ""; })()`,
		"write markup":      `(() => { try { document.createElement("div").innerHTML = "<b>x</b>"; return "it may"; } catch { return ""; } })()`,
		"evaluate text":     `(() => { const s = document.createElement("script"); try { s.text = "1"; return "it may"; } catch { return ""; } })()`,
	} {
		tab.Expect("Content Security Policy")
		tab.Expect("TrustedScript")
		tab.Expect("TrustedHTML")
		if got := browser.Value[string](tab, try); got != "" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// A command that is copied has what the address names, which somebody else may have made, in
// one word of a shell.
func TestCopiedCommandIsMadeOfWords(t *testing.T) {
	address := serve(t, recorded(t, "platform.yaml"))
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "5 layers")
	tab.Go(strings.TrimSuffix(address, pathOf(address)) + "/?layer=" + url.QueryEscape("x'; reboot #"))
	tab.Says("h1", "5 layers")
	tab.Press("c")
	tab.Says(".said", `kubectl strata why 'x'\''; reboot #'`)
}
