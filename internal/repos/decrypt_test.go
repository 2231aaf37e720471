// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package repos

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/builds"
	"github.com/strata-project/strata/internal/sops"
	"github.com/strata-project/strata/internal/sops/sopstest"
)

const only = "^(data|stringData)$"

// sealedTree is a repository with encrypted files as Flux users have them.
func sealedTree(t *testing.T, recipient sopstest.Recipient) map[string]string {
	t.Helper()
	object := func(kind, name, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n    name: " + name + "\n    namespace: b\n" + rest
	}
	return map[string]string{
		"apps/kustomization.yaml": "resources: [secret.yaml, mixed.yaml, settings.yaml, open.yaml]\npatches: [{path: patch.yaml}]\n" +
			"secretGenerator: [{name: made, namespace: b, envs: [env.enc], files: [blob=blob.enc, app.json], options: {disableNameSuffixHash: true}}]\n",
		"apps/open.yaml":     object("ServiceAccount", "open", ""),
		"apps/patch.yaml":    sopstest.Encrypt(t, object("ServiceAccount", "open", "data:\n    token: p4tch\n"), sops.YAML, only, recipient),
		"apps/secret.yaml":   sopstest.Encrypt(t, object("Secret", "secret", "stringData:\n    token: t0k3n\n"), sops.YAML, only, recipient),
		"apps/mixed.yaml":    object("ConfigMap", "plain", "data:\n    a: b\n") + "---\n" + sopstest.Encrypt(t, object("Secret", "second", "stringData:\n    token: ${region}\n"), sops.YAML, only, recipient),
		"apps/settings.yaml": sopstest.Encrypt(t, object("ConfigMap", "settings", "data:\n    domain: s3cr3t.example.com\n"), sops.YAML, only, recipient),
		"apps/env.enc":       sopstest.Encrypt(t, "TOKEN=t0k3n\n", sops.Dotenv, "", recipient),
		"apps/blob.enc":      sopstest.Encrypt(t, "t0k3n\x00", sops.Binary, "", recipient),
		"apps/app.json":      sopstest.Encrypt(t, "{\n\t\"token\": \"t0k3n\"\n}", sops.JSON, "", recipient),
	}
}

func opening(t *testing.T, recipient sopstest.Recipient, change func(*v1alpha1.AddonsLayerSpec)) builds.Build {
	t.Helper()
	keys, err := sops.KeysOf(map[string]string{recipient.Name: recipient.Private})
	if err != nil {
		t.Fatal(err)
	}
	return buildOf(t, change).With(keys)
}

func TestEncryptedFilesAreDecrypted(t *testing.T) {
	for name, recipient := range map[string]sopstest.Recipient{"age": sopstest.Age(t), "PGP": sopstest.PGP(t)} {
		t.Run(name, func(t *testing.T) {
			how := opening(t, recipient, func(spec *v1alpha1.AddonsLayerSpec) {
				spec.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"region": "north"}}
			})
			directory, err := ParseAs(t.Context(), fluxTree(sealedTree(t, recipient)), "./apps", how)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, m := range directory.Manifests {
				got[m.Object.GetName()] = fmt.Sprint(m.Object.Object["data"], m.Object.Object["stringData"], m.Confidential, m.Decrypted)
			}
			want := map[string]string{
				"secret": "<nil> map[token:t0k3n] true true", "second": "<nil> map[token:north] true true", "plain": "map[a:b] <nil> true true",
				"settings": "map[domain:s3cr3t.example.com] <nil> true true", "open": "map[token:p4tch] <nil> true true",
				"made": "map[TOKEN:dDBrM24= app.json:ewoJInRva2VuIjogInQwazNuIgp9Cg== blob:dDBrM24A] <nil> true true",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What kustomize carries from what was decrypted into an object of another kind is kept
// as what was decrypted.
func TestDecryptedValuesAreFollowed(t *testing.T) {
	recipient := sopstest.Age(t)
	object := func(kind, name, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n    name: " + name + "\n    namespace: b\n" + rest
	}
	files := map[string]string{
		"apps/secret.yaml": sopstest.Encrypt(t, object("Secret", "secret", "stringData:\n    token: t0k3n\n"), sops.YAML, only, recipient),
		"apps/open.yaml":   object("ConfigMap", "open", "data: {token: none}\n"),
	}
	for name, test := range map[string]struct {
		kustomization, more string
		want                bool
	}{
		"nothing is carried":  {"resources: [secret.yaml, open.yaml]\n", "", false},
		"a patch of its kind": {"resources: [secret.yaml, open.yaml]\npatches: [{path: patch.yaml}]\n", object("Secret", "secret", "stringData:\n    token: t0k3n\n"), false},
		"a replacement": {"resources: [secret.yaml, open.yaml]\nreplacements: [{source: {kind: Secret, fieldPath: stringData.token}, " +
			"targets: [{select: {kind: ConfigMap}, fieldPaths: [data.token]}]}]\n", "", true},
		"a patch of another target": {
			"resources: [secret.yaml, open.yaml]\npatches: [{path: patch.yaml, target: {kind: ConfigMap}}]\n",
			object("Any", "any", "data:\n    token: t0k3n\n"), true,
		},
		"a plug-in": {"resources: [secret.yaml, open.yaml]\ntransformers: [plugin.yaml]\n", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			all := maps.Clone(files)
			all["apps/kustomization.yaml"] = test.kustomization
			all["apps/plugin.yaml"] = "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: a}\nreplacements: [{source: {kind: Secret, fieldPath: stringData.token}, " +
				"targets: [{select: {kind: ConfigMap}, fieldPaths: [data.token]}]}]\n"
			if test.more != "" {
				all["apps/patch.yaml"] = sopstest.Encrypt(t, test.more, sops.YAML, only, recipient)
			}
			directory, err := ParseAs(t.Context(), fluxTree(all), "./apps", opening(t, recipient, func(*v1alpha1.AddonsLayerSpec) {}))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range directory.Manifests {
				carried := strings.Contains(fmt.Sprint(m.Object.Object), "t0k3n")
				if m.Object.GetName() == "open" && (m.Decrypted != test.want || carried != test.want) || carried && !m.Decrypted {
					t.Errorf("%v: decrypted is %v", m.Object.Object, m.Decrypted)
				}
			}
		})
	}
}

// A name that is made of a Secret's value is told of as such, however little of the value it
// has; one that is made of other variables is not.
func TestNamesThatTellSecrets(t *testing.T) {
	object := func(name, namespace string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '" + name + "', namespace: '" + namespace + "'}\ndata: {a: '${token}'}\n"
	}
	how := buildOf(t, func(spec *v1alpha1.AddonsLayerSpec) { spec.PostBuild = &v1alpha1.PostBuild{} },
		builds.Variables{Values: map[string]string{"token": "t0k3n", "pin": "1234"}, Secret: true}, builds.Variables{Values: map[string]string{"region": "north"}})
	for name, test := range map[string]struct {
		object string
		want   []string
	}{
		"a part of a value":    {object("a-${token:0:2}", "b"), []string{"token"}},
		"a whole value":        {object("a-${pin}", "b"), []string{"pin"}},
		"in the namespace":     {object("a", "b-${pin}"), []string{"pin"}},
		"replaced":             {object("a-${token/0/o}", "b"), []string{"token"}},
		"of another variable":  {object("a-${region}", "b"), nil},
		"in what it holds":     {object("a", "b"), nil},
		"of a default of both": {object("a-${nothing:=${pin}}", "b"), []string{"pin"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"apps/kustomization.yaml": "resources: [a.yaml]\n", "apps/a.yaml": test.object}
			directory, err := ParseAs(t.Context(), fluxTree(files), "./apps", how)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, directory.Manifests[0].Named); diff != "" || !directory.Manifests[0].Confidential {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What a generator makes that reads an encrypted file, or is one, is kept as what was
// decrypted, and so is whatever holds a decrypted value as text or base64; nothing else is.
func TestWhatGeneratorsReadIsFollowed(t *testing.T) {
	recipient := sopstest.Age(t)
	object := func(kind, name, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n    name: " + name + "\n    namespace: b\n" + rest
	}
	const value = "t0k3n-of-the-database"
	generator := "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: made, namespace: b}\noptions: {disableNameSuffixHash: true}\n"
	const listed = "configMapGenerator: [{name: made, namespace: b, options: {disableNameSuffixHash: true}, "
	for name, test := range map[string]struct {
		kustomization, file string
		want                bool
	}{
		"of an encrypted Secret":         {listed + "files: [secret.yaml]}]\n", "", true},
		"under another name":             {listed + "files: [a=secret.yaml]}]\n", "", true},
		"listed as a resource, too":      {"resources: [secret.yaml]\n" + listed + "files: [secret.yaml]}]\n", "", true},
		"of encrypted variables":         {listed + "envs: [env.enc]}]\n", "", true},
		"of an encrypted file":           {listed + "files: [blob.enc]}]\n", "", true},
		"of a plain file":                {"resources: [secret.yaml]\n" + listed + "files: [plain.txt]}]\n", "", false},
		"by a plug-in":                   {"generators: [plugin.yaml]\n", generator + "files: [secret.yaml]\n", true},
		"by a plug-in, of variables":     {"generators: [plugin.yaml]\n", generator + "envs: [env.enc]\n", true},
		"by a plug-in, of a plain file":  {"resources: [secret.yaml]\ngenerators: [plugin.yaml]\n", generator + "files: [plain.txt]\n", false},
		"copied by hand":                 {"resources: [secret.yaml, plugin.yaml]\n", object("ConfigMap", "made", "data: {a: 'postgres://"+value+"@db'}\n"), true},
		"copied by hand, in base64":      {"resources: [secret.yaml, plugin.yaml]\n", object("ConfigMap", "made", "binaryData: {a: dDBrM24tb2YtdGhlLWRhdGFiYXNl}\n"), true},
		"something that only looks like": {"resources: [secret.yaml, plugin.yaml]\n", object("ConfigMap", "made", "data: {a: t0k3n-of-the-data}\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{
				"apps/kustomization.yaml": test.kustomization,
				"apps/secret.yaml":        sopstest.Encrypt(t, object("Secret", "secret", "stringData:\n    token: "+value+"\n"), sops.YAML, only, recipient),
				"apps/env.enc":            sopstest.Encrypt(t, "TOKEN="+value+"\n", sops.Dotenv, "", recipient),
				"apps/blob.enc":           sopstest.Encrypt(t, value, sops.Binary, "", recipient),
				"apps/plain.txt":          "nothing",
				"apps/plugin.yaml":        test.file,
			}
			directory, err := ParseAs(t.Context(), fluxTree(files), "./apps", opening(t, recipient, func(*v1alpha1.AddonsLayerSpec) {}))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range directory.Manifests {
				if m.Object.GetName() == "made" && (m.Decrypted != test.want || m.Confidential != test.want) {
					t.Errorf("%v: decrypted is %v, want %v", m.Object.Object, m.Decrypted, test.want)
				}
			}
		})
	}
}

// What nobody has the key of is taken as it is written where only a look is wanted, and
// refused by name where it is to be applied. Messages tell nothing of what was decrypted.
func TestEncryptedFilesAreNotTold(t *testing.T) {
	one, other := sopstest.Age(t), sopstest.Age(t)
	files := sealedTree(t, one)
	sealed, err := ParseAs(t.Context(), fluxTree(files), "./apps", buildOf(t, func(spec *v1alpha1.AddonsLayerSpec) {
		spec.Decryption = &v1alpha1.Decryption{Provider: "sops", SecretRef: v1alpha1.SecretName{Name: "keys"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"apps/app.json", "apps/blob.enc", "apps/env.enc", "apps/mixed.yaml", "apps/patch.yaml", "apps/secret.yaml", "apps/settings.yaml"}
	if diff := cmp.Diff(want, sealed.Sealed); diff != "" || len(sealed.Manifests) != 6 {
		t.Errorf("-want +got:\n%s; there are %d objects", diff, len(sealed.Manifests))
	}
	broken := sealedTree(t, one)
	broken["apps/settings.yaml"] = sopstest.Encrypt(t, "apiVersion: s3cr3t/s3cr3t/v1\nkind: ConfigMap\nmetadata:\n    name: settings\n", sops.YAML, "", one)
	env := sealedTree(t, one)
	env["apps/env.enc"] = sopstest.Encrypt(t, "KEY=a\n\xfft0k3n=1\n", sops.Binary, "", one)
	for name, test := range map[string]struct {
		files map[string]string
		key   sopstest.Recipient
		want  string
	}{
		"another key":  {files, other, "EncryptedManifest: apps/app.json: cannot be decrypted: none of the keys opens it: it is encrypted for age "},
		"wrong object": {broken, one, "InvalidManifest: apps/kustomization.yaml: "},
		"wrong lines":  {env, one, "KustomizeFailed: apps/kustomization.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAs(t.Context(), fluxTree(test.files), "./apps", opening(t, test.key, func(*v1alpha1.AddonsLayerSpec) {}))
			reason, message := mistake(err)
			if got := reason + ": " + message; !strings.HasPrefix(got, test.want) || strings.Contains(got, "s3cr3t") || strings.Contains(got, "t0k3n") || strings.Contains(got, "116 48") {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

// Without a key all files that are encrypted are named at once.
func TestEncryptedFilesAreAllNamed(t *testing.T) {
	tree := map[string]string{"apps/kustomization.yaml": "resources: ["}
	sealed := sopstest.Encrypt(t, "apiVersion: v1\nkind: Secret\nmetadata:\n    name: a\nstringData:\n    a: b\n", sops.YAML, only, sopstest.Age(t))
	for i := range 30 {
		tree["apps/kustomization.yaml"] += fmt.Sprintf("s%02d.yaml, ", i)
		tree[fmt.Sprintf("apps/s%02d.yaml", i)] = sealed
	}
	tree["apps/kustomization.yaml"] += "]\n"
	_, err := Parse(t.Context(), fluxTree(tree), "./apps")
	reason, message := mistake(err)
	if reason != v1alpha1.ReasonEncryptedManifest || !strings.HasPrefix(message, "apps/s00.yaml: is encrypted") || !strings.HasSuffix(message, "apps/s10.yaml and 19 more files") {
		t.Errorf("it says %s: %s", reason, message)
	}
}
