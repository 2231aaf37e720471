// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever plans a change of somebody else, with all rights, tells its author nothing
// of the cluster's Secrets: not in what is shown, and not by asking a server.
func TestThePluginGivesAChangeNoSecrets(t *testing.T) {
	f := newFixture(t)
	path, err := builtPlugin()
	f.must(err)
	const secret = "hunter2-of-the-cluster"
	for name, data := range map[string]map[string]string{"db": {"password": secret}, "token": {"username": "robot", "password": secret}} {
		f.must(stack.client.Create(f.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: name}, StringData: data}))
	}
	f.must(stack.client.Create(f.ctx, &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "private"},
		Spec: sourcev1.HelmRepositorySpec{
			URL: stack.charts.URL(), Interval: metav1.Duration{Duration: time.Hour}, SecretRef: &meta.LocalObjectReference{Name: "token"},
		},
	}))
	withSecret := func(name string) string {
		return f.configMapRelease(name, "a") + "  valuesFrom: [{kind: Secret, name: db, valuesKey: password, targetPath: data.value}]\n"
	}
	revision := f.push(map[string]string{"base/one.yaml": f.configMapRelease("one", "a"), "base/two.yaml": withSecret("two")})
	f.layer("base")
	f.deployed("base", revision)
	admin := plugin{fixture: f, path: path}.of("admin", "cluster-admin")
	base := f.name("base")

	var mu sync.Mutex
	asked, told := 0, []string{}
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if header := r.Header.Get("Authorization"); header != "" {
			told = append(told, header)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="give"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(evil.Close)
	folder := t.TempDir()
	f.write(folder, map[string]string{
		"base/one.yaml": withSecret("one"), "base/two.yaml": withSecret("two"),
		"base/private.yaml": fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: private, namespace: %s}\nspec: {url: %q, interval: 1h, secretRef: {name: token}}\n", f.prefix, evil.URL),
		"base/new.yaml":     fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: new, namespace: %s}\nspec: {url: %q, interval: 1h, secretRef: {name: token}}\n", f.prefix, evil.URL),
		"base/three.yaml":   strings.Replace(f.configMapRelease("three", "a"), "name: charts", "name: private", 1),
		"base/four.yaml":    strings.Replace(f.configMapRelease("four", "a"), "name: charts", "name: new", 1),
	})
	for _, output := range []string{"json", "yaml", "markdown", ""} {
		args := []string{"plan", base, "--source", f.prefix + "/addons", "--from-dir", folder}
		if output != "" {
			args = append(args, "-o", output)
		}
		code, text := admin.run(args...)
		for _, want := range []string{"stand-in-", "--trust-sources", "private", "the cluster has no HelmRepository " + f.prefix + "/new"} {
			// A comment on a pull request is in Markdown.
			if code != 2 || output != "markdown" && !strings.Contains(text, want) {
				t.Errorf("-o %q: exit code %d, and no %q in\n%s", output, code, want, text)
			}
		}
		if strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("-o %q shows a Secret:\n%s", output, text)
		}
	}
	mu.Lock()
	if asked == 0 || len(told) > 0 {
		t.Errorf("the server of the change was asked %d times, and told %q", asked, told)
	}
	mu.Unlock()

	// What is deployed holds the value, and what drifts of it is seen all the same.
	admin.expect(0, []string{"What could be compared is as it is wanted."}, "diff", base)
	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "two"}}, `{"data":{"value":"by hand, `+secret+`"}}`)
	admin.expect(2, []string{"~ ConfigMap " + f.prefix + "/two data.value: *** -> *** (changed) (release " + f.prefix + "/two)"}, "diff", base)
	if _, text := admin.run("diff", base); strings.Contains(text, secret) {
		t.Errorf("diff shows a Secret:\n%s", text)
	}
}
