// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
)

// refusedSecrets adds layers with Secrets that somebody refuses: the API server, what
// reads YAML, or kustomize. Each has an error of its own, which may quote what it is
// about. Their names are returned.
func (a *aviary) refusedSecrets() []string {
	plain := map[string]string{
		"key":       "stringData: {'no key!': %s}",
		"base64":    "data: {password: '%s!'}",
		"deep":      "stringData: {password: {deep: %s}}",
		"list":      "data: {password: [%s]}",
		"scalar":    "data: %s",
		"unknown":   "strinData: {password: %s}",
		"docker":    "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: %s}",
		"tls":       "type: kubernetes.io/tls\nstringData: {tls.crt: %s}",
		"immutable": "immutable: %s",
		"open":      "stringData: {password: %s",
		"twice":     "stringData: {password: %[1]s, password: %[1]s}",
		"alias":     "stringData: {password: *%s}",
		"tagged":    "stringData: {password: !!int %s}",
		"indented":  "stringData:\n  password: %[1]s\n bad: %[1]s",
	}
	for name, lines := range plain {
		a.manifest(name, a.secretWith(name, fmt.Sprintf(lines, a.plant("a Secret that is refused: "+name))))
	}
	a.manifest("text", a.plant("a file that is no object")+"\n")
	a.manifest("texts", "- "+a.plant("a file that is a list")+"\n")
	kustomized := map[string]string{
		"literal":  "secretGenerator: [{name: a, literals: [%s]}]",
		"literals": "secretGenerator: [{name: a, literals: {password: %s}}]",
		"patch":    "patches: [{patch: 'stringData: {password: %s'}]",
		"nowhere":  "patches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: none}, stringData: {password: %s}}'}]",
		"tested":   "resources: [secret.yaml]\npatches: [{target: {kind: Secret}, patch: '[{op: test, path: /stringData/password, value: %s}]'}]",
		"missing":  "resources: [secret.yaml]\npatches: [{target: {kind: Secret}, patch: '[{op: replace, path: /stringData/none, value: %s}]'}]",
		"merge":    "patchesStrategicMerge: ['stringData: {password: %s']",
		"merged":   "patchesStrategicMerge: ['{apiVersion: v1, kind: Secret, metadata: {name: none}, stringData: {password: %s}}']",
		"plug-in":  "generators: ['{apiVersion: builtin, kind: SecretGenerator, metadata: {name: a}, literals: [%s]}']",
		"plug-ins": "generators: ['{apiVersion: builtin, kind: SecretGenerator, metadata: {name: a}, literals: {a: %s}}']",
		"unclosed": "secretGenerator: [{name: a, literals: [password=%s}]",
		"json":     "resources: [secret.json]",
		"env":      "secretGenerator: [{name: a, envs: [secret.env]}]",
	}
	for name, lines := range kustomized {
		if strings.Contains(lines, "%s") {
			lines = fmt.Sprintf(lines, a.plant("a kustomization that is refused: "+name))
		}
		a.files[name+"/kustomization.yaml"] = lines + "\n"
		a.files[name+"/secret.yaml"] = a.secretWith(name, "stringData: {password: "+a.plant("a Secret that is patched: "+name)+"}")
		a.files[name+"/secret.json"] = `{"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "` + a.plant("a file of JSON that is refused: "+name) + `"`
		a.files[name+"/secret.env"] = "no key! " + a.plant("an env file that is refused: "+name) + "\n"
	}
	names := slices.Concat(slices.Collect(maps.Keys(plain)), slices.Collect(maps.Keys(kustomized)), []string{"text", "texts"})
	slices.Sort(names)
	return names
}

// brokenKubeconfigs returns what Secrets of RemoteClusters hold, by the RemoteCluster.
// All but one are refused; that one's token is.
func (a *aviary) brokenKubeconfigs(config *rest.Config) map[string]string {
	a.Helper()
	a.must(rest.LoadTLSFiles(config))
	made := func(server, cluster, user string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
			"clusters: [{name: a, cluster: {server: '%s', %s}}]\nusers: [{name: a, user: {%s}}]\n", server, cluster, user)
	}
	authority := "certificate-authority-data: " + base64.StdEncoding.EncodeToString(config.CAData)
	const away = "https://127.0.0.1:1"
	texts := map[string]string{
		"token":    made(config.Host, authority, "token: WORD"),
		"gone":     made(away, authority, "token: WORD"),
		"basic":    made(config.Host, authority, "username: robot, password: WORD"),
		"exec":     made(away, "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [WORD], env: [{name: A, value: WORD}]}"),
		"provider": made(away, "", "auth-provider: {name: oidc, config: {id-token: WORD}}"),
		"file":     made(away, "", "tokenFile: /WORD"),
		"user":     made("https://robot:WORD@127.0.0.1:1", "", "token: WORD"),
		"query":    made(away+"/?token=WORD", "", "token: WORD"),
		"url":      made("https://WORD:[", "", "token: WORD"),
		"proxy":    made(config.Host, authority+", proxy-url: 'http://robot:WORD@127.0.0.1:1'", "token: WORD"),
		"noproxy":  made(away, authority+", proxy-url: 'http://robot:WORD@[::1'", "token: WORD"),
		"key":      made(away, "", "client-certificate-data: '"+base64.StdEncoding.EncodeToString([]byte("WORD"))+"', client-key-data: '"+base64.StdEncoding.EncodeToString([]byte("WORD"))+"'"),
		"nokey":    made(away, "", "client-key-data: 'WORD!'"),
		"typed":    made(away, "", "token: [WORD]"),
		"open":     made(away, "", "token: {WORD"),
		"context":  strings.Replace(made(away, "", "token: WORD"), "current-context: a", "current-context: b", 1),
		"password": "WORD",
		"json":     `{"password": "WORD"}`,
		"values":   "password: WORD\n",
	}
	for name, text := range texts {
		word := a.plant("a kubeconfig: " + name)
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte("WORD")), base64.StdEncoding.EncodeToString([]byte(word)))
		texts[name] = strings.ReplaceAll(text, "WORD", word)
	}
	return texts
}

// isJudged waits until a layer has failed, or is deployed where its mistake brings no
// more than a warning, and people were told so.
func (a *aviary) isJudged(layer string) {
	a.Helper()
	a.eventually("layer "+layer+" is judged", func() error {
		status := a.get(layer).Status
		if status.State != v1alpha1.StateFailed && status.State != v1alpha1.StateDeployed {
			return fmt.Errorf("it is %+v", status)
		}
		if !strings.Contains(a.box.text(), `"`+a.name(layer)+`"`) || a.eventsOf(layer) == "" {
			return fmt.Errorf("nobody is told")
		}
		return nil
	})
}

// closedClusters are those that refuse what is asked of them, each at another step.
var closedClusters = []string{"token", "basic", "proxy"}

// What Secrets hold is in Secrets and nowhere else, whatever is done with them and
// whoever refuses them.
func TestCanariesStayInSecrets(t *testing.T) {
	a := newAviary(t)
	f := a.fixture
	for _, name := range []string{"values", "far", "charts", "git"} {
		a.secret(a.client, a.namespace, name, "password: "+a.plant("the Secret "+name), v1alpha1.ShareWithAnnotation, v1alpha1.ShareWithClusters)
	}
	valuesFrom := "  valuesFrom: [{kind: Secret, name: NAME}]\n"
	a.manifest("base", a.release("base")+strings.ReplaceAll(valuesFrom, "NAME", "values"))
	a.manifest("base", a.secretWith("plain", "stringData: {password: "+a.plant("stringData")+"}\ndata: {token: "+base64.StdEncoding.EncodeToString([]byte(a.plant("data")))+"}"))
	a.manifest("remote", a.release("remote")+strings.ReplaceAll(valuesFrom, "NAME", "far"))
	a.manifest("remote", a.secretWith("there", "stringData: {password: "+a.plant("a Secret of another cluster")+"}"))
	a.manifest("remote", fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {namespace: %s, name: charts}\n"+
		"spec: {interval: 1m, url: 'https://charts.example', secretRef: {name: charts}}\n", a.namespace))
	for _, cluster := range closedClusters {
		a.manifest("on-"+cluster, a.secretWith(cluster, "stringData: {password: "+a.plant("a Secret of a cluster that refuses: "+cluster)+"}"))
	}
	refused := a.refusedSecrets()
	// The control: the name of this layer goes everywhere, and what its release says
	// goes to people.
	shown := strings.ToLower(canaries{}.plant("the control"))
	said := canaries{}.plant("the control")
	a.manifest(shown, a.release("shown"))
	a.must(a.client.Create(a.ctx, &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "addons"},
		Spec: sourcev1.GitRepositorySpec{
			URL: "https://git.example/addons.git", Interval: metav1.Duration{Duration: time.Hour}, SecretRef: &fluxmeta.LocalObjectReference{Name: "git"},
		},
	}))
	a.must(a.far.Create(a.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}))
	a.publish("main@sha1:1", a.files)
	a.start()

	a.joinBroken(f)
	f.layer("base")
	f.layer(shown)
	f.layerWith("remote", f.onCluster("prod"))
	for _, cluster := range closedClusters {
		f.layerWith("on-"+cluster, f.onCluster("cluster-"+cluster))
	}
	for _, name := range refused {
		f.layer(name)
	}
	f.ready("base")
	f.deployed("base", "main@sha1:1")
	a.failRelease("shown", said)
	for _, name := range append(refused, shown) {
		a.isJudged(name)
	}
	a.eventually("the values are copied", func() error {
		if copies := a.copies(); copies[a.namespace+"/far"] == "" {
			return fmt.Errorf("copied are %d; the layer is %+v", len(copies), a.get("remote").Status)
		}
		return nil
	})
	// What somebody has written over is put right, and people are told.
	overwritten := a.secretIs("plain")
	overwritten.Data["password"] = []byte(a.plant("a Secret that is put right"))
	a.must(a.client.Update(a.ctx, overwritten))
	a.eventually("the Secret is put right", func() error {
		if got := string(a.secretIs("plain").Data["password"]); got != a.canaries["stringData"] {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})

	left := a.collect()
	for where, text := range left {
		if found := a.in(text); len(found) > 0 {
			t.Errorf("%s has what Secrets hold:\n%s", where, strings.Join(found, "\n"))
		}
	}
	for _, where := range []string{"AddonsLayer", "events", "log", "metrics", "notifications"} {
		if !strings.Contains(left[where], shown) {
			t.Errorf("%s lacks the control, so that nothing would be found there", where)
		}
	}
	for _, where := range []string{"AddonsLayer", "HelmRelease", "events", "notifications"} {
		if found := (canaries{"control": said}).in(left[where]); len(found) == 0 {
			t.Errorf("%s lacks what is shown there", where)
		}
	}
}

// joinBroken makes the RemoteCluster prod, and one for each kubeconfig that is refused.
func (a *aviary) joinBroken(f *fixture) {
	f.Helper()
	a.joinProd()
	for name, text := range a.brokenKubeconfigs(a.other.Config()) {
		f.newCluster("cluster-"+name, []byte(text))
	}
	f.eventually("all kubeconfigs were tried", func() error {
		list := &v1alpha1.RemoteClusterList{}
		f.must(f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
		for i := range list.Items {
			if ready := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ReadyCondition); ready == nil || ready.Status == metav1.ConditionUnknown {
				return fmt.Errorf("RemoteCluster %s says %+v", list.Items[i].Name, ready)
			}
		}
		return nil
	})
}

// failRelease plays helm-controller, which cannot install a release.
func (a *aviary) failRelease(name, message string) {
	a.Helper()
	release := &helmv2.HelmRelease{}
	a.eventually("release "+name, func() error {
		return a.client.Get(a.ctx, types.NamespacedName{Namespace: a.namespace, Name: name}, release)
	})
	release.Status.ObservedGeneration = release.Generation
	release.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "InstallFailed", Message: message, ObservedGeneration: release.Generation, LastTransitionTime: metav1.Now()},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "InstallFailed", Message: message, ObservedGeneration: release.Generation, LastTransitionTime: metav1.Now()},
	}
	a.must(a.client.Status().Update(a.ctx, release))
}
