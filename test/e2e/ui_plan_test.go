// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/test/browser"
)

// A commit that nobody has merged is planned on the page, object by object, and nothing of
// it is done; what somebody has changed by hand is shown as what differs.
func TestThePagePlansACommit(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	const secret = "hunter2-of-the-page"
	f.must(stack.client.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "db"}, StringData: map[string]string{"password": secret}}))
	withSecret := func(name string) string {
		return f.configMapRelease(name, "a") + "  valuesFrom: [{kind: Secret, name: db, valuesKey: password, targetPath: data.value}]\n"
	}
	files := map[string]string{
		"base/one.yaml": f.configMapRelease("one", "a"), "base/two.yaml": f.configMapRelease("two", "a"), "base/secret.yaml": withSecret("secret"),
	}
	revision := f.push(files)
	f.layer("base", f.labelled)
	f.deployed("base", revision)

	clone := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if output, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone, "-c", "user.name=test", "-c", "user.email=test@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	git("clone", "--quiet", f.repo.URL(), ".")
	git("switch", "--quiet", "--create", "next")
	f.write(clone, map[string]string{"base/one.yaml": f.configMapRelease("one", "<b>b</b>"), "base/three.yaml": f.configMapRelease("three", "c"), "base/four.yaml": withSecret("four")})
	git("rm", "--quiet", "base/two.yaml")
	git("add", ".")
	git("commit", "--quiet", "--message=Change one, add three")
	git("switch", "--quiet", "-")

	// The user may read everything, and is shown no value of a Secret all the same.
	address := plugin{fixture: f, path: path}.of("admin", "cluster-admin").ui("-l", "team="+f.prefix, "--git", clone, "--source", f.prefix+"/addons")
	tab := browser.Open(t)
	tab.Go(address)
	tab.Says("h1", "1 layer: 1 deployed")
	tab.Press("4")
	tab.Says(".empty", "Choose a revision")
	tab.Choose(".chooser select", "git:next")
	tab.Says(".says", "2 to install, 1 to change, 1 to prune")
	for _, said := range []string{"install HelmRelease", "change HelmRelease", "prune HelmRelease", "<b>b</b>"} {
		tab.Says(".actions", said)
	}
	tab.Says(".diff .tilde", "ConfigMap")
	tab.Says(".actions", "data.value: a -> ")
	tab.Says(".commands", "kubectl strata plan --from-git next -l team="+f.prefix)
	tab.Accessible("a plan of a commit")
	if got := f.release("one"); got.Generation != 1 {
		t.Errorf("the release was written: it has generation %d", got.Generation)
	}
	tab.Click(".chooser button")
	tab.Until("location.search.includes('again=')")
	tab.Says(".says", "2 to install, 1 to change, 1 to prune")

	// One that is not there is said to be not there, and its name is never more than a name.
	tab.Click(".chooser input")
	tab.Press("nowhere", browser.Enter)
	tab.Says(".bad", "has no nowhere")

	config := &corev1.ConfigMap{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "one"}, config))
	config.Data["value"] = "by hand"
	f.must(stack.client.Update(f.ctx, config))
	tab.Choose(".chooser select", "drift")
	tab.Says(".says", "Objects that are not as they are wanted: 1, of layers: 1.")
	tab.Says(".drift", "1 object differs")
	tab.Says(".diff", "by hand")
	tab.Says(".commands", "kubectl strata diff")
	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "secret"}}, `{"data":{"value":"by hand, `+secret+`"}}`)
	tab.Click(".chooser button")
	tab.Says(".diff", "data.value: *** -> *** (changed)")
	for _, of := range []string{"drift", "git:next"} {
		sent := browser.Value[string](tab, fmt.Sprintf(`(async () => {
			const reader = (await fetch("/stream?view=plan&of=%s&again=x")).body.getReader();
			let text = "";
			while (!text.includes('"done":true')) text += new TextDecoder().decode((await reader.read()).value);
			reader.cancel();
			return text;
		})()`, of))
		if strings.Contains(sent, secret) || strings.Contains(sent, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("the page is sent a value of a Secret with %s:\n%s", of, sent)
		}
	}
	tab.Go("about:blank") // The tab outlives what serves the page.
}
