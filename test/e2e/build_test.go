// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/sops"
	"github.com/strata-project/strata/internal/sops/sopstest"
)

// plainSettings is a ConfigMap as Flux users write it: no namespace, and variables.
const plainSettings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {region: "${region}", size: "${size:=small}", token: "${token}", other: "${nobody}"}
`

// A directory whose Kustomization says the namespace, the components and the variables
// becomes a layer as it is: no file changes, and a changed variable rolls out at once.
func TestLayerSaysWhatAKustomizationSays(t *testing.T) {
	f, _ := newIdentityFixture(t)
	f.account(deployer)
	account := f.accountKey(deployer)
	f.bind("deployer", f.prefix, account, mayDeploy, mayOn("", "configmaps", "get", "list", "watch", "create", "patch", "delete"))
	revision := f.push(map[string]string{
		"base/settings.yaml":                 plainSettings,
		"base/untouched.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: untouched, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {text: \"${region}\"}\n",
		"base/refused.yaml":                  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused}\ndata: {\"${key:=none}\": x}\n",
		"base/release.yaml":                  strings.Replace(f.configMapRelease("base", "one"), ", namespace: "+f.prefix+"}\nspec", "}\nspec", 1),
		"components/loud/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{target: {kind: ConfigMap, name: settings}, patch: \"- {op: add, path: /data/loud, value: very}\"}]\n",
	})
	f.make(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "cluster"}, Data: map[string]string{"region": "north", "size": "large"}},
	)
	f.layer("base", as(deployer), func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.TargetNamespace = f.prefix
		layer.Spec.Components = []string{"../components/loud", "../components/none"}
		layer.Spec.IgnoreMissingComponents = true
		layer.Spec.CommonMetadata = &v1alpha1.CommonMetadata{Labels: map[string]string{"team": "platform"}}
		layer.Spec.Patches = []kustomize.Patch{{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {patched: \"yes\"}\n"}}
		layer.Spec.PostBuild = &v1alpha1.PostBuild{
			Substitute: map[string]string{"size": "huge"},
			SubstituteFrom: []v1alpha1.SubstituteReference{
				{Kind: "ConfigMap", Name: "cluster"}, {Kind: "Secret", Name: "tokens", Optional: true}, {Kind: "Secret", Name: "none", Optional: true},
			},
		}
	})

	// The account may not read Secrets: that is said, and nothing is made of the rest.
	f.reason("base", v1alpha1.ReasonVariablesUnavailable, "spec.postBuild.substituteFrom[1]", deployer, "may not get, list and watch", "secrets named tokens")
	f.bind("reader", f.prefix, account, mayOn("", "secrets", "get", "list", "watch"))
	f.deployed("base", revision)
	f.expectSettings(map[string]string{"region": "north", "size": "huge", "token": "", "other": "", "loud": "very", "patched": "yes"})
	f.eventually("the layer names the variables that nobody gives", func() error {
		found := meta.FindStatusCondition(f.get("base").Status.Conditions, v1alpha1.VariablesUnsetCondition)
		if want := "nobody, token in ConfigMap " + f.prefix + "/settings"; found == nil || !strings.Contains(found.Message, want) {
			return fmt.Errorf("the condition is %v, want %s", found, want)
		}
		return nil
	})
	if got := f.configMap("untouched")["text"]; got != "${region}" {
		t.Errorf("what is marked is substituted: %q", got)
	}
	if got := f.release("base"); got.Labels["team"] != "platform" || got.Namespace != f.prefix {
		t.Errorf("the release has the labels %v", got.Labels)
	}

	// What is given changes, comes, and goes: each wakes the layer.
	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "cluster"}}, `{"data":{"region":"south"}}`)
	f.expectSettings(map[string]string{"region": "south", "size": "huge", "token": "", "other": "", "loud": "very", "patched": "yes"})
	tokens := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "tokens"}}
	f.make(&corev1.Secret{ObjectMeta: tokens.ObjectMeta, StringData: map[string]string{"token": "t0k3n"}})
	f.expectSettings(map[string]string{"region": "south", "size": "huge", "token": "t0k3n", "other": "", "loud": "very", "patched": "yes"})
	f.deployed("base", revision)

	// The API server quotes what it refuses: of a Secret's value nothing is told.
	f.patch(tokens, `{"stringData":{"key":"47/11"}}`)
	f.reason("base", v1alpha1.ReasonApplyFailed, "ConfigMap", "refused", "withheld")
	if status, err := json.Marshal(f.get("base")); err != nil || strings.Contains(string(status), "47/11") || strings.Contains(string(status), "t0k3n") {
		t.Errorf("the layer tells what a Secret holds: %s, %v", status, err)
	}
	f.patch(tokens, `{"data":{"key":null}}`)
	f.deployed("base", revision)

	// Strict, the variable that nobody gives is refused by name.
	f.edit("base", `{"spec":{"postBuild":{"strict":true}}}`)
	f.stalled("base", v1alpha1.ReasonKustomizeFailed, "settings", `"nobody"`)
	f.edit("base", `{"spec":{"postBuild":{"substitute":{"nobody":"somebody"}}}}`)
	f.deployed("base", revision)
	f.expectSettings(map[string]string{"region": "south", "size": "huge", "token": "t0k3n", "other": "somebody", "loud": "very", "patched": "yes"})
}

// expectSettings waits until the ConfigMap settings holds something.
func (f *fixture) expectSettings(want map[string]string) {
	f.Helper()
	f.eventually("the settings are as they should be", func() error {
		if diff := cmp.Diff(want, f.configMap("settings")); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
}

// What a Kustomization says of how its objects are applied, judged and removed, a layer
// says in the same words, and so do the annotations of Flux on objects.
func TestLayerRollsOutAsAKustomizationDoes(t *testing.T) {
	f := newFixture(t)
	plain := func(name, metadata, rest string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + f.prefix + metadata + "}\n" + rest + "\n"
	}
	f.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "own"}, Data: map[string]string{"by": "somebody"}})
	revision := f.push(map[string]string{
		"base/never.yaml": f.releaseWithoutChart("never", "one"),
		"base/fixed.yaml": plain("fixed", ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}", "immutable: true\ndata: {value: one}"),
		"base/stiff.yaml": plain("stiff", "", "immutable: true\ndata: {value: one}"),
		"base/own.yaml":   plain("own", ", annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}", "data: {by: us}"),
		"base/made.yaml":  plain("made", ", annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}", "data: {by: us}"),
		"base/not.yaml":   plain("not", ", annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", "data: {by: us}"),
		"base/free.yaml":  plain("free", "", "data: {by: us}"),
	})
	no := false
	f.layer("base", func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.Wait, layer.Spec.Prune, layer.Spec.Namespace = &no, &no, f.prefix
	})

	// Applied is enough. What is there stays as it is, where a manifest says so.
	f.deployed("base", revision)
	for name, by := range map[string]string{"own": "somebody", "made": "us", "free": "us"} {
		if got := f.configMap(name)["by"]; got != by {
			t.Errorf("%s is %s's", name, got)
		}
	}
	if !f.absent(&corev1.ConfigMap{}, "not") {
		t.Error("what is to be ignored is applied")
	}

	// A health check holds the layer up, by rules of its own.
	f.edit("base", `{"spec":{"healthChecks":[{"apiVersion":"v1","kind":"ConfigMap","name":"state"}],`+
		`"healthCheckExprs":[{"apiVersion":"v1","kind":"ConfigMap","failed":"data.state == 'broken'","current":"data.state == 'up'"}]}}`)
	f.reason("base", v1alpha1.ReasonApplying, "ConfigMap", "state", "does not exist")
	f.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "state"}, Data: map[string]string{"other": "x"}})
	f.reason("base", v1alpha1.ReasonApplying, "ConfigMap", "state", "there is no state")
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "state"}}
	f.patch(state, `{"data":{"state":"broken"}}`)
	f.reason("base", v1alpha1.ReasonApplying, "state", "has failed, as spec.healthCheckExprs has it")
	f.patch(state, `{"data":{"state":"up"}}`)
	f.deployed("base", revision)

	// Somebody keeps an object for a while, and gives it back.
	free := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "free"}}
	f.patch(free, `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":"disabled"}}}`)
	f.eventually("the layer says that it leaves the object alone", func() error {
		for _, resource := range f.get("base").Status.Resources {
			if resource.Name == "free" && resource.Status == "Kept" {
				return nil
			}
		}
		return fmt.Errorf("resources are %v", f.get("base").Status.Resources)
	})
	f.patch(free, `{"data":{"by":"hand"}}`)
	f.throughout(2*time.Second, "the object stays as it is", func() error {
		if got := f.configMap("free")["by"]; got != "hand" {
			return fmt.Errorf("it is %s's", got)
		}
		return nil
	})
	f.patch(free, `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/reconcile":null}}}`)
	f.eventually("the object is repaired", func() error {
		if got := f.configMap("free")["by"]; got != "us" {
			return fmt.Errorf("it is %s's", got)
		}
		return nil
	})

	// What cannot be changed is created again only where somebody says so.
	fixed := f.uid("fixed")
	f.push(map[string]string{
		"base/fixed.yaml": plain("fixed", ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}", "immutable: true\ndata: {value: two}"),
		"base/stiff.yaml": plain("stiff", "", "immutable: true\ndata: {value: two}"),
	})
	f.reason("base", v1alpha1.ReasonConflictsWithLiveState, "ConfigMap", "stiff", "immutable")
	f.eventually("the object is recreated", func() error {
		if f.uid("fixed") == fixed || f.configMap("fixed")["value"] != "two" {
			return fmt.Errorf("it is %v", f.configMap("fixed"))
		}
		return nil
	})
	stiff := f.uid("stiff")
	f.edit("base", `{"spec":{"force":true}}`)
	f.eventually("the other one is recreated, too", func() error {
		if f.uid("stiff") == stiff || f.configMap("stiff")["value"] != "two" {
			return fmt.Errorf("it is %v", f.configMap("stiff"))
		}
		return nil
	})

	// One that is wrong is not deleted: it could not be created again.
	fixed = f.uid("fixed")
	f.push(map[string]string{
		"base/fixed.yaml": plain("fixed", ", annotations: {kustomize.toolkit.fluxcd.io/force: enabled}", "immutable: true\ndata: {\"not a key\": two}"),
	})
	f.reason("base", v1alpha1.ReasonInvalidManifest, "ConfigMap", "fixed", "not a key")
	if f.uid("fixed") != fixed {
		t.Error("an object was deleted for one that is wrong")
	}

	// What leaves a layer that prunes nothing stays, and is nobody's.
	revision = f.remove("base/fixed.yaml", "base/free.yaml", "base/own.yaml")
	f.deployed("base", revision)
	f.eventually("what has left is nobody's", func() error {
		for _, name := range []string{"fixed", "free", "own"} {
			found := &corev1.ConfigMap{}
			if err := stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: name}, found); err != nil {
				return err
			}
			if owner := found.Labels[v1alpha1.LayerLabel]; owner != "" {
				return fmt.Errorf("%s belongs to %s", name, owner)
			}
		}
		return nil
	})
	f.deleteLayer("base")
	f.layerGone("base")
	if f.uid("made") == "" || f.configMap("made")["by"] != "us" {
		t.Error("a layer that prunes nothing has removed what it had")
	}
}

// uid returns that of a ConfigMap; empty while there is none.
func (f *fixture) uid(name string) types.UID {
	f.Helper()
	found := &corev1.ConfigMap{}
	if f.absent(found, name) {
		return ""
	}
	return found.UID
}

// A directory of files that SOPS has encrypted becomes a layer as it is. What is decrypted
// is told nowhere, and a key that is missing changes nothing of what is deployed.
func TestLayerDecryptsItsFiles(t *testing.T) {
	f, _ := newIdentityFixture(t)
	f.account(deployer)
	account := f.accountKey(deployer)
	f.bind("deployer", f.prefix, account, mayOn("", "configmaps", "get", "list", "watch", "create", "patch", "delete"),
		mayOn("", "secrets", "get", "list", "watch", "create", "patch", "delete"))
	recipient := sopstest.Age(t)
	const only = "^(data|stringData)$"
	object := func(kind, name, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n    name: " + name + "\n" + rest
	}
	files := map[string]string{
		"base/token.yaml":    sopstest.Encrypt(t, object("Secret", "token", "stringData:\n    token: t0k3n-one\n"), sops.YAML, only, recipient),
		"base/settings.yaml": sopstest.Encrypt(t, object("ConfigMap", "settings", "data:\n    domain: t0k3n.example.com\n"), sops.YAML, only, recipient),
	}
	revision := f.push(files)
	f.layer("base", as(deployer), func(layer *v1alpha1.AddonsLayer) {
		layer.Spec.TargetNamespace = f.prefix
		layer.Spec.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.SecretName{Name: "sops-age"}}
	})
	f.reason("base", v1alpha1.ReasonDecryptionKeysUnavailable, "spec.decryption.secretRef", "there is no Secret "+f.prefix+"/sops-age")
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "sops-age"}}
	f.make(&corev1.Secret{ObjectMeta: keys.ObjectMeta, StringData: map[string]string{"other.agekey": sopstest.Age(t).Private}})
	f.stalled("base", v1alpha1.ReasonEncryptedManifest, "base/settings.yaml", "none of the keys opens it: it is encrypted for age")
	f.patch(keys, `{"stringData":{"identity.agekey":"`+strings.TrimSpace(strings.TrimPrefix(recipient.Private, "# a comment\n"))+`"}}`)
	f.deployed("base", revision)
	f.expectSettings(map[string]string{"domain": "t0k3n.example.com"})
	token := &corev1.Secret{}
	if f.absent(token, "token") || string(token.Data["token"]) != "t0k3n-one" {
		t.Errorf("the Secret holds %q", token.Data)
	}

	// A plan of whoever may read the key tells what changes, and no value.
	path, err := builtPlugin()
	f.must(err)
	admin, folder := plugin{fixture: f, path: path}.of("admin", "cluster-admin"), t.TempDir()
	plan := []string{"plan", f.name("base"), "--source", f.prefix + "/addons", "--from-dir", folder}
	f.write(folder, files)
	admin.expect(0, nil, plan...)
	files["base/settings.yaml"] = sopstest.Encrypt(t, object("ConfigMap", "settings", "data:\n    domain: t0k3n.example.org\n"), sops.YAML, only, recipient)
	f.write(folder, files)
	code, text := admin.run(plan...)
	if code != 2 || !strings.Contains(text, "data.domain") || !strings.Contains(text, "***") || strings.Contains(text, "t0k3n") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	f.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "settings"}}, `{"data":{"domain":"by hand"}}`)
	f.expectSettings(map[string]string{"domain": "t0k3n.example.com"})

	// Without the key nothing changes, and nothing is lost.
	if err := stack.client.Delete(f.ctx, keys); err != nil {
		t.Fatal(err)
	}
	f.reason("base", v1alpha1.ReasonDecryptionKeysUnavailable, "there is no Secret")
	if f.absent(token, "token") {
		t.Error("the Secret has gone with the key")
	}
	if text, err := json.Marshal(f.get("base")); err != nil || strings.Contains(string(text), "t0k3n") {
		t.Errorf("the layer tells what is encrypted: %s, %v", text, err)
	}
}
