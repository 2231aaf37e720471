// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser drives a real Chromium, without a window, for tests of the page. Where
// there is none, it installs Debian's, where it may.
package browser

import (
	"context"
	_ "embed" // of axe-core
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// EnvChromium names the program of a Chromium to take.
const EnvChromium = "CHROMIUM"

// patience is how long a page is waited for.
const patience = 30 * time.Second

// axe finds what keeps people from using a page; it is the published build of axe-core.
//
//go:embed axe/axe.min.js
var axe string

// find returns the Chromium of this machine, which it installs once where it may.
var find = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvChromium); path != "" {
		return path, nil
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	lacking := fmt.Errorf("there is no Chromium: install Debian's package chromium, or name one in %s", EnvChromium)
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", lacking
	}
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", "chromium"}} {
		command := exec.Command(apt, args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w; apt-get %s: %w\n%s", lacking, args[0], err, output)
		}
	}
	return exec.LookPath("chromium")
})

// Tab is a tab of a Chromium of the test's own. What the page complains about fails the
// test at its end.
type Tab struct {
	testing.TB
	ctx context.Context
	// profile is the folder of the browser.
	profile string

	mu       sync.Mutex
	problems []string
	expected []string
}

// Open starts a Chromium with one tab, which ends with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Fatal(err)
	}
	profile := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(ctx)
	b := &Tab{TB: t, ctx: ctx, profile: profile}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // The browser is told to end, and waited for.
		cancel()
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Errorf("the page complains: %s", problem)
		}
	})
	messages, err := chromedp.Console(ctx), chromedp.Do(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.note(message)
		}
	}()
	return b
}

func (b *Tab) note(message chromedp.ConsoleMessage) {
	if !message.IsException() && message.Type != "error" && message.Type != "warning" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, words := range b.expected {
		if strings.Contains(message.String(), words) {
			return
		}
	}
	b.problems = append(b.problems, message.String())
}

// Expect has complaints with some words be none.
func (b *Tab) Expect(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, words)
}

// Do does things one after the other.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// Go opens an address.
func (b *Tab) Go(address string) { b.Helper(); b.Do(chromedp.Navigate(address)) }

// Click clicks on the first element that a selector finds.
func (b *Tab) Click(selector string) {
	b.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Button clicks on the first button with a text, once there is one that can be pressed.
func (b *Tab) Button(text string) {
	b.Helper()
	b.Until(fmt.Sprintf(`(() => {
		const at = [...document.querySelectorAll("button")].find((button) => button.textContent === %s && !button.disabled);
		at?.click();
		return !!at;
	})()`, quoted(text)))
}

// Choose has an element that offers choices be at one of them, once it offers that.
func (b *Tab) Choose(selector, value string) {
	b.Helper()
	b.Until(fmt.Sprintf(`(() => {
		const at = document.querySelector(%q);
		if (!at || ![...at.options].some((option) => option.value === %q)) return false;
		at.value = %q;
		at.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	})()`, selector, value, value))
}

// Press presses keys one after the other.
func (b *Tab) Press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		b.Do(chromedp.KeyEvent(key))
	}
}

// Enter is a key that has no character, as are those below.
const Enter = kb.Enter

// Escape closes what is open.
const Escape = kb.Escape

// Right goes to what is further on.
const Right = kb.ArrowRight

// Control presses a key with Ctrl.
func (b *Tab) Control(key string) {
	b.Helper()
	b.Do(chromedp.KeyEvent(key, chromedp.KeyModifiers(kb.ModifierCtrl)))
}

// Value returns what an expression of JavaScript comes to; promises are waited for.
func Value[T any](b *Tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return value
}

// Until waits until an expression of JavaScript is true.
func (b *Tab) Until(expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		// While a page gives way to another one, nothing can be asked.
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if is && err == nil {
			return
		}
		select {
		case <-ticker.C:
			continue
		case <-ctx.Done():
		}
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.Fatalf("waits for %s: %v; the page has\n%s", expression, err, text)
	}
}

// Says waits until an element has a text.
func (b *Tab) Says(selector, text string) {
	b.Helper()
	where, what := quoted(selector), quoted(text)
	b.Until(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))", where, what))
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // Texts can be written.
	}
	return string(data)
}

// Nodes returns how many nodes the document has, texts among them, once what is gone was
// collected.
func (b *Tab) Nodes() int {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		b.Fatal(err)
	}
	counted, err := chromedp.Call(b.ctx, memory.GetDOMCounters, cdp.Empty{})
	if err != nil {
		b.Fatal(err)
	}
	return int(counted.Nodes)
}

// Heap returns how many bytes the scripts of the page hold, once what is gone was collected.
func (b *Tab) Heap() int64 {
	b.Helper()
	b.Nodes()
	used, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		b.Fatal(err)
	}
	return int64(used.UsedSize)
}

// counts has a page count what is to run later: it keeps what was asked of each clock of the
// browser until it has run, or was called off.
const counts = `(() => {
	const later = globalThis.later = new Set();
	for (const [ask, callOff, again] of [
		["setTimeout", "clearTimeout"], ["setInterval", "clearInterval", true],
		["requestAnimationFrame", "cancelAnimationFrame"], ["requestIdleCallback", "cancelIdleCallback"],
	]) {
		const [asks, callsOff] = [globalThis[ask].bind(globalThis), globalThis[callOff].bind(globalThis)];
		globalThis[ask] = (run, ...rest) => {
			const id = asks((...given) => { if (!again) later.delete(ask + id); return run(...given); }, ...rest);
			later.add(ask + id);
			return id;
		};
		globalThis[callOff] = (id) => { later.delete(ask + id); callsOff(id); };
	}
})()`

// Count has the pages that are opened from now on tell what they have left to run, which
// AtRest needs.
func (b *Tab) Count() {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: counts}); err != nil {
		b.Fatal(err)
	}
}

// AtRest waits until no clock brings a script of the page to run, however late: none was asked,
// or it has run. What runs later is begun by the user or the server.
func (b *Tab) AtRest() {
	b.Helper()
	b.Until("later.size === 0")
}

// Resident returns the share of memory, in bytes, that the processes of the test's own
// Chromium that draw pages have.
func (b *Tab) Resident() int64 {
	b.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		b.Fatal(err)
	}
	var sum int64
	for _, path := range commands {
		command, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(command), "--type=renderer") || !strings.Contains(string(command), b.profile) ||
			strings.Contains(string(command), "--top-chrome-webui") {
			continue // It has ended, is somebody else's, or draws the browser's own window.
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(rollup)) {
			var kilobytes int64
			if _, err := fmt.Sscanf(line, "Pss: %d kB", &kilobytes); err == nil {
				sum += kilobytes << 10
			}
		}
	}
	return sum
}

// Size sets the size of the window in pixels.
func (b *Tab) Size(width, height int64) { b.Helper(); b.Do(chromedp.EmulateViewport(width, height)) }

// Dark has the system prefer dark colours, or light ones.
func (b *Tab) Dark(is bool) {
	b.Helper()
	scheme := "light"
	if is {
		scheme = "dark"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// Shoot writes a picture of what is on the screen to a file, as WebP.
func (b *Tab) Shoot(path string) {
	b.Helper()
	quality := int64(80)
	picture, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, picture.Data, 0o644))
	}
	if err != nil {
		b.Fatal(err)
	}
}

// Accessible has axe-core look at the page, and fails the test for each thing that it finds.
func (b *Tab) Accessible(view string) {
	b.Helper()
	Value[bool](b, axe+"; true")
	found := Value[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html + " " + n.failureSummary)))`)
	for _, problem := range found {
		b.Errorf("%s: %s", view, problem)
	}
}
