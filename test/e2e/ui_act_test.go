// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net/url"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/browser"
)

// originOf returns an address without its path.
func originOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return address
	}
	return at.Scheme + "://" + at.Host
}

// revisionOf returns the revision that a GitRepository of the test holds.
func (f *fixture) revisionOf(name string) string {
	f.Helper()
	source := &sourcev1.GitRepository{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, source))
	if source.Status.Artifact == nil {
		return ""
	}
	return source.Status.Artifact.Revision
}

// What somebody confirms on the page is done as that user, and seen in the stream: a hold,
// its end, a look with a fetched source, and the way back to an earlier deployment.
func TestThePageActs(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	first := f.push(map[string]string{"base/release.yaml": f.configMapRelease("base", "one")})
	f.layer("base", f.labelled)
	f.deployed("base", first)
	base := f.name("base")
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	tab := browser.Open(t)
	tab.Go(admin.ui("--act", "-l", "team="+f.prefix))
	tab.Says("h1", "1 layer: 1 deployed")
	tab.Until("location.hash === '' && localStorage.getItem('act') !== null")
	tab.Click(fmt.Sprintf("[data-layer=%q]", base))

	// The dialog says what it does before anything is done, and lets nothing pass without a
	// reason. All of it is done by the keyboard.
	tab.Expect("422 (Unprocessable Entity)")
	tab.Button("Hold")
	tab.Says("dialog", "the reason is missing")
	tab.Until("document.activeElement.name === 'reason' && document.querySelector('dialog .go').disabled")
	tab.Press("driver <b>freeze</b> & 'more'")
	tab.Says("dialog", "Nothing of layer "+base+" is applied, removed, adopted or corrected until it is resumed.")
	tab.Says("dialog .commands", "kubectl strata hold "+base+` --reason 'driver <b>freeze</b> & '\''more'\'''`)
	tab.Accessible("the dialog of a hold")
	if f.get("base").Annotations[v1alpha1.HoldAnnotation] != "" {
		t.Error("it is held before that was confirmed")
	}
	tab.Press(browser.Enter)
	tab.Until("!document.querySelector('dialog')")
	tab.Says(".panel .facts", "Hold")
	tab.Says(".panel .chain", "driver <b>freeze</b> & 'more'")
	f.state("base", v1alpha1.StateHold, "driver <b>freeze</b> & 'more'")

	second := f.commit(map[string]string{"base/release.yaml": f.configMapRelease("base", "two")})
	tab.Button("Look at it now")
	// The dialog grows when it says what the act does: a click of the mouse would hit something else.
	tab.Until("(document.querySelector('dialog input[name=source]:not(:checked)')?.click(), document.querySelector('dialog input[name=source]')?.checked)")
	tab.Says("dialog", "GitRepository "+f.prefix+"/addons is fetched now")
	tab.Until("(document.querySelector('dialog .go')?.click(), !document.querySelector('dialog'))")
	f.eventually("the source is fetched", func() error {
		if revision := f.revisionOf("addons"); revision != "main@sha1:"+second {
			return fmt.Errorf("it is at %s", revision)
		}
		return nil
	})

	// What the end of the hold changes is shown before it is ended.
	tab.Button("Resume")
	tab.Says("dialog .actions", "change HelmRelease")
	tab.Says("dialog .diff", "data.value: one -> two")
	tab.Until("(document.querySelector('dialog .go')?.click(), !document.querySelector('dialog'))")
	f.deployed("base", "main@sha1:"+second)
	tab.Says(".panel .facts", "Deployed")
	tab.Says(".line .deployment", "deployment 2")

	tab.Expect("422 (Unprocessable Entity)")
	tab.Button("Hold")
	tab.Until("document.activeElement.name === 'reason'")
	tab.Press(browser.Escape)
	tab.Until("!document.querySelector('dialog')")
	tab.Until(`(() => {
		const at = [...document.querySelectorAll(".line .deployment")].find((one) => one.textContent.includes("deployment 1"));
		at?.querySelector("button")?.click();
		return !!at;
	})()`)
	tab.Says("dialog", "goes back to deployment 1: version 1.0.0 of revision "+first)
	tab.Says("dialog .diff", "data.value: two -> one")
	tab.Until("(document.querySelector('dialog .go')?.click(), !document.querySelector('dialog'))")
	f.eventually("the layer is back", func() error {
		data, err := f.configMapOn(stack.client, f.prefix, "base")
		if err != nil || data["value"] != "one" {
			return fmt.Errorf("it holds %v, %w", data, err)
		}
		return nil
	})

	// Whoever may not act is offered nothing, although the page offers it; and neither is
	// anybody without --act.
	viewer := plugin{fixture: f, path: path}.of("viewer", "view")
	tab.Expect("405 (Method Not Allowed)")
	for _, address := range []string{viewer.ui("--act", "-l", "team="+f.prefix), admin.ui("-l", "team="+f.prefix)} {
		tab.Go("about:blank")
		tab.Go(address)
		tab.Says("h1", "1 layer: ")
		tab.Click(fmt.Sprintf("[data-layer=%q]", base))
		tab.Says(".panel .line", "deployment 2")
		if browser.Value[bool](tab, `[...document.querySelectorAll("button")].some((button) => /Hold|Resume|Go back|Look at/.test(button.textContent))`) {
			t.Error("acts are offered")
		}
		if status := browser.Value[int](tab, fmt.Sprintf(`fetch("/act", {method: "POST", headers: {"Content-Type": "application/json", "X-Strata-Act": localStorage.getItem("act")},
			body: JSON.stringify({act: "hold", layer: %q, reason: "x"})}).then((answer) => answer.status)`, base)); status < 400 {
			t.Errorf("an act that is not offered is answered with %d", status)
		}
	}
	if f.get("base").Annotations[v1alpha1.HoldAnnotation] != "" {
		t.Error("somebody has held it who may not")
	}
	tab.Go("about:blank") // The tab outlives what serves the page.
}

// A stage is approved on the page, and the roll-out goes on before the eyes of whoever did.
func TestThePageApproves(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	f.twoStages("edge")
	edge := f.name("edge")
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	tab := browser.Open(t)
	address := admin.ui("--act")
	tab.Go(address)
	tab.Says("h1", "cluster")
	tab.Go(originOf(address) + "/platforms/" + edge)
	tab.Says(".stage.now", "needs approval: production@1.0.0")
	tab.Says(".stages", "1 done of 1")
	tab.Button("Approve")
	tab.Says("dialog", "Stage production of platform "+edge+" may go to version 1.0.0.")
	tab.Says("dialog", "Clusters that may begin: "+f.prefix+"/south.")
	tab.Press("canary was well", browser.Enter)
	tab.Until("!document.querySelector('dialog')")
	f.platformReady("edge", "1.0.0")
	tab.Says("article", "2 of 2 clusters up to date")
	tab.Says(".line .deployment", "production@1.0.0")
	tab.Says(".line", "canary was well")
	if said := f.getPlatform("edge").Status.Approvals[0]; said.By != f.prefix+"-admin" || said.Reason != "canary was well" {
		t.Errorf("it remembers of the approval %+v", said)
	}

	// What the next version would do is planned, layer by layer and object by object, and is
	// what then happens.
	f.bundle("1.1.0", fmt.Sprintf(twoLayers, "2.0.0"))
	tab.Choose(".bar select", "1.1.0")
	tab.Says("section[aria-labelledby=plan-title]", "2 layers would be written now, 0 deleted.")
	tab.Click("section[aria-labelledby=plan-title] .padded a")
	tab.Says(".says", "2 to upgrade")
	tab.Says(".actions", "1.0.0 -> 2.0.0")
	tab.Says(".actions", edge)
	f.moveTo("edge", "1.1.0")
	f.platformSays("edge", v1alpha1.ReadyCondition, metav1.ConditionUnknown, "waits for approval: production@1.1.0")
	tab.Go("about:blank") // The tab outlives what serves the page.
}
