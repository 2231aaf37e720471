// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// repository makes files of texts.
func repository(texts map[string]string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return files
}

// run looks at files, and returns what was found as lines of text.
func run(t *testing.T, o Options) (lines []string, report *Report) {
	t.Helper()
	o.Now = today
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		lines = append(lines, finding.String())
	}
	return lines, report
}

// addonsLayer is a layer as a file has it; more stands below spec.
func addonsLayer(name, path, more string) string {
	text := "---\napiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata:\n  name: " + name +
		"\nspec:\n  version: 1.0.0\n  source: {name: platform, path: " + path + "}\n"
	return text + more
}

// release is a HelmRelease as a file has it; more stands below spec.
func release(name, more string) string {
	return "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name +
		", namespace: platform}\nspec:\n  interval: 1m\n  chartRef: {kind: OCIRepository, name: charts}\n" + more
}

func TestRules(t *testing.T) {
	dependsOn := func(list string) string { return "  prereqs:\n    dependsOn: [" + list + "]\n" }
	for name, test := range map[string]struct {
		files   map[string]string
		options Options
		want    []string
	}{
		"a clean repository": {
			files: map[string]string{
				"layers.yaml":        addonsLayer("base", "./addons/base", "") + addonsLayer("apps", "./addons/apps", dependsOn(`"base@^1"`)),
				"addons/base/a.yaml": release("a", ""), "addons/apps/b.yaml": release("b", "  dependsOn: [{name: a}]\n"),
				"charts/echo/Chart.yaml": "name: echo\n", "charts/echo/templates/a.yaml": "{{ if }}", ".github/a.yaml": "[",
				"binary.yaml": "a\x00b: [", "template.yaml": "{{ range }}\na: [", "tsconfig.json": "{ // comment\n}",
			},
		},
		"all broken files": {
			files: map[string]string{
				"layers.yaml":        addonsLayer("base", "./addons/base", ""),
				"addons/base/a.yaml": "a: [", "addons/base/b.yaml": "\n\nb: [", "c.yaml": "c: [",
				"addons/base/d.yaml": "apiVersion: v1\nkind: ConfigMap\n",
			},
			want: []string{
				"addons/base/a.yaml:1: error syntax: cannot be read as YAML: did not find expected node content",
				"addons/base/b.yaml:3: error syntax: cannot be read as YAML: did not find expected node content",
				"addons/base/d.yaml:1: error manifest: metadata: is missing or no mapping: an object needs metadata.name",
				"c.yaml:1: error syntax: cannot be read as YAML: did not find expected node content",
			},
		},
		"objects of directories that Flux's way is built in": {
			files: map[string]string{
				"layers.yaml":  addonsLayer("one", "./one", "  build: Flux\n") + addonsLayer("two", "./two", "  targetNamespace: b\n  commonMetadata: {labels: {a: b}}\n"),
				"one/a/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n", "one/r.yaml": release("r", ""),
				"two/b/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n", "two/r.yaml": release("r", ""),
			},
			want: []string{"one/a/x.yaml:3: error manifest: metadata.namespace: ConfigMap settings has none: name the namespace it belongs in, or spec.targetNamespace of its layer"},
		},
		"what lint cannot know": {
			files: map[string]string{
				"layers.yaml": addonsLayer("base", "./base", "  decryption: {provider: sops, secretRef: {name: keys}}\n") +
					addonsLayer("apps", "./apps", "  postBuild: {substitute: {A: b}}\n") + addonsLayer("more", "./more", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: a}]}\n"),
				"base/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: a\nstringData:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: ENC[AES256_GCM,data:x]\n",
				"apps/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: a\ndata:\n  a: ${A} ${B} ${C:=d}\n",
				"more/d.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${D}-config\n  namespace: a\n",
			},
			want: []string{
				"apps/c.yaml:1: warning variables: ConfigMap a/c reads B, which nobody gives",
				"base/s.yaml: warning encrypted: is encrypted, and is not looked into without its key",
			},
		},
		"names that may tell Secrets, and documents that nobody reads": {
			files: map[string]string{
				"layers.yaml": addonsLayer("apps", "./apps", "  postBuild: {substitute: {A: b}, substituteFrom: [{kind: Secret, name: s}]}\n") +
					addonsLayer("more", "./more", ""),
				"apps/c.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a-${token:0:6}\n  namespace: a\n",
				"more/kustomization.yaml": "resources: [d.yaml]\n---\nresources: [e.yaml]\n",
				"more/d.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d\n  namespace: a\n",
			},
			want: []string{
				"apps/c.yaml:1: warning secret-in-name: ConfigMap a/a-${token:0:6} has a name with a variable that a Secret may give, and statuses and messages tell names: give it from a ConfigMap, or name the object otherwise",
				"more/kustomization.yaml: warning ignored-document: has several documents, and kustomize reads the first alone: make it one",
			},
		},
		"variables that files know": {
			files: map[string]string{
				"layers.yaml": addonsLayer("a", "./base", "  namespace: flux-system\n  postBuild: {substitute: {APP: a}, substituteFrom: [{kind: ConfigMap, name: s}]}\n") +
					addonsLayer("b", "./base", "  namespace: flux-system\n  postBuild: {substitute: {APP: b}, substituteFrom: [{kind: ConfigMap, name: elsewhere}]}\n") +
					addonsLayer("c", "./one", "  namespace: flux-system\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: s}]}\n") +
					addonsLayer("d", "./two", "  namespace: flux-system\n  postBuild: {substituteFrom: [{kind: ConfigMap, name: s}]}\n"),
				"base/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${APP}-config\n  namespace: a\ndata: {domain: '${DOMAIN}'}\n",
				"one/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${CLASS}\n  namespace: a\n",
				"two/cm.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fast\n  namespace: a\n",
				"flux/s.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n  namespace: flux-system\ndata: {CLASS: fast, DOMAIN: example.com}\n",
			},
			want: []string{"two/cm.yaml:1: error duplicate-object: ConfigMap a/fast of layer d is listed by layer c, too, in one/kustomization.yaml: remove one"},
		},
		"a circle through releases": {
			files: map[string]string{
				"layers.yaml": addonsLayer("apps", "./apps", "") + addonsLayer("db", "./db", dependsOn("apps")) + addonsLayer("calm", "./calm", "  wait: false\n") + addonsLayer("late", "./late", dependsOn("calm")),
				"apps/r.yaml": release("web", "  dependsOn: [{name: db}]\n"),
				"db/r.yaml":   release("db", ""),
				"calm/r.yaml": release("calm", "  dependsOn: [{name: late}]\n"),
				"late/r.yaml": release("late", ""),
			},
			want: []string{
				"layers.yaml:6: error dependency-cycle: spec.prereqs.dependsOn: layers wait for each other through their releases: layer apps -> HelmRelease platform/web -> HelmRelease platform/db -> layer apps: remove one of the dependencies, or say wait: false where it is not needed",
			},
		},
		"what the controller refuses": {
			files: map[string]string{
				"layers.yaml":              addonsLayer("empty", "./empty", "") + addonsLayer("token", "./token", "  serviceAccountName: kustomize-controller\n"),
				"empty/kustomization.yaml": "resources: []\n",
				"token/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: a\n  annotations: {kubernetes.io/service-account.name: s}\n" +
					"type: kubernetes.io/service-account-token\n",
			},
			want: []string{
				"layers.yaml:8: warning path: spec.source.path: ./empty holds no objects: a layer that never had any is deployed so, and one that had some waits for the annotation kraan.io/allow-empty",
				"layers.yaml:17: error manifest: spec.serviceAccountName: ServiceAccount kustomize-controller is reserved for Flux (--reserved-service-accounts): name one that has the rights of this layer only",
				"token/s.yaml:1: error manifest: Secret a/s is a token of a ServiceAccount, which the cluster itself makes, and no layer writes it: remove it from the directory, or give it another name, type or label",
			},
		},
		"inputs of a Platform": {
			files: map[string]string{
				"bundle.yaml": "apiVersion: kraan.io/v1alpha1\nkind: ApplicationBundle\nmetadata:\n  name: web\nspec:\n  family: web\n  version: 1.0.0\n" +
					"  inputs: [{name: size, type: Integer, schema: {minimum: 1}}, {name: domain, required: true}]\n" +
					"  layers:\n  - name: a\n    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}]\n",
				"one.yaml": "apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata:\n  name: one\nspec:\n  bundle: {family: web}\n" +
					"  inputs:\n    size: 0\n    domain: a\n    colour: red\n  overrides:\n  - selector: {matchLabels: {a: b}}\n    inputs: {size: large}\n",
				"own.yaml": "apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata:\n  name: own\nspec:\n  inputs: {text: a}\n  layers:\n" +
					"  - name: a\n    when: inputs.other\n    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}]\n",
				"two.yaml":   "apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata:\n  name: two\nspec:\n  bundle: {family: web, version: ^1}\n",
				"three.yaml": "apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata:\n  name: three\nspec:\n  bundle: {family: web}\n  inputsFrom: [{name: settings}]\n",
				"four.yaml":  "apiVersion: kraan.io/v1alpha1\nkind: Platform\nmetadata:\n  name: four\nspec:\n  bundle: {family: elsewhere}\n  inputs: {a: b}\n",
			},
			want: []string{
				"one.yaml:5: error platform: spec.inputs with spec.overrides[0]: input size is the String \"large\", and must be of the type Integer",
				"one.yaml:7: error platform: spec.inputs: input size does not match its schema: size: should be greater than or equal to 1",
				"one.yaml:10: error platform: spec.inputs.colour: is no input of the bundle at 1.0.0",
				"own.yaml:9: error platform: spec.layers[a].when: there is no input other: there are text",
				"two.yaml:5: error platform: spec.inputs: input domain is required, and has no value",
			},
		},
		"words of before": {
			files: map[string]string{
				"bundle.yaml": "apiVersion: kraan.io/v1alpha1\nkind: ApplicationBundle\nmetadata:\n  name: web\nspec:\n  family: web\n  version: 1.0.0\n" +
					"  kubernetes: '>=1.30'\n  layers:\n  - name: a\n    objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}]\n",
				"app.yaml": "apiVersion: kraan.io/v1alpha1\nkind: HelmApplication\nmetadata:\n  name: web\nspec:\n  licence: MIT\n  versions:\n" +
					"  - {version: 1.0.0, chart: {oci: {url: 'oci://a/b'}}}\n",
				"layers.yaml": addonsLayer("base", "./base", "  deleteAfter: [apps]\n"), "base/a.yaml": release("a", ""),
			},
			want: []string{
				"app.yaml:6: error schema: spec.licence: Invalid value: \"MIT\": licence is now license: write that",
				"bundle.yaml:8: error schema: spec.kubernetes: Invalid value: \">=1.30\": kubernetes is now kubeVersion: write that",
				"layers.yaml:9: error schema: spec.deleteAfter: Invalid value: deleteAfter is now teardownAfter: write that",
			},
		},
		"a version that is a number": {
			files: map[string]string{"layers.yaml": strings.Replace(addonsLayer("base", "./base", ""), "version: 1.0.0", "version: 1.0", 1), "base/a.yaml": release("a", "")},
			want:  []string{"layers.yaml:7: error schema: spec.version: must be a text, and YAML reads it as a number: quote it"},
		},
		"what the API server refuses": {
			files: map[string]string{
				"layers.yaml": addonsLayer("base", "./base", ""),
				"base/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: none\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: none\n",
				"base/b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: one\n  namespace: two\n---\napiVersion: acme.io/v1\nkind: Gadget\nmetadata:\n  name: none\n",
				"base/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Foo_Bar\n  namespace: a\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: a.b\n",
				"base/d.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: acme:Reader\n",
				"base/e.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${APP}-config\n  namespace: a\n",
				"base/f.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\n  namespace: a\ndata:\n  a: " + strings.Repeat("x", 2<<20) + "\n",
				"base/g.yaml": "apiVersion: helm.fluxcd.io/v1\nkind: HelmRelease\nmetadata:\n  name: old\n  namespace: a\n",
				"base/h.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n  namespace: a\nspec:\n  externalName: shop.${DOMAIN}\n",
				"crd.yaml":    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: gadgets.acme.io\nspec:\n  group: acme.io\n  scope: Namespaced\n  names: {kind: Gadget}\n",
			},
			want: []string{
				"base/a.yaml:3: error manifest: metadata.namespace: ConfigMap none has none: name the namespace it belongs in, or spec.targetNamespace of its layer",
				"base/a.yaml:8: error manifest: metadata.namespace: Deployment none has none: name the namespace it belongs in, or spec.targetNamespace of its layer",
				"base/b.yaml:5: warning namespace: metadata.namespace: Namespace two/one is of a kind without namespaces, and it is dropped: remove it",
				"base/b.yaml:9: error manifest: metadata.namespace: Gadget none has none: name the namespace it belongs in, or spec.targetNamespace of its layer",
				"base/c.yaml:4: error manifest: metadata.name: \"Foo_Bar\" is no name: it has small letters, digits, dashes and dots",
				"base/c.yaml:11: error manifest: metadata.namespace: \"a.b\" is no name of a namespace: it has small letters, digits and dashes, and at most 63 characters",
				"base/e.yaml:4: error manifest: metadata.name: \"${APP}-config\" is no name: it has small letters, digits, dashes and dots; its variables are put in where the layer says spec.postBuild",
				"base/f.yaml:7: error manifest: data: has 2048 KiB, and a ConfigMap may have 1024: split it",
				"base/g.yaml:1: error helmrelease: apiVersion: is of the Helm Operator, which Flux has replaced: nothing installs it; write it as HelmRelease of helm.toolkit.fluxcd.io/v2",
				"base/h.yaml:1: warning variables: Service a/s holds ${DOMAIN}, and no value is put in: give the layer spec.postBuild, if that is a variable",
			},
		},
		"folders of clusters are apart": {
			files: map[string]string{
				"east/layers.yaml": addonsLayer("base", "./addons/base", ""), "west/layers.yaml": addonsLayer("base", "./addons/base", ""),
				"east/more.yaml": addonsLayer("apps", "./addons/apps", dependsOn("base@1.0.0")), "shared.yaml": addonsLayer("extra", "./addons/extra", dependsOn("base")),
				"addons/base/a.yaml": release("a", ""), "addons/apps/b.yaml": release("b", ""), "addons/extra/c.yaml": release("c", ""),
			},
		},
		"two layers with one directory": {
			files: map[string]string{
				"layers.yaml": addonsLayer("a", "./addons", "") + addonsLayer("b", "./addons/", ""), "addons/a.yaml": release("a", "") + release("b", ""),
			},
			want: []string{"layers.yaml:16: error duplicate-object: spec.source.path: the layer a has the same directory: every object in it would belong to both"},
		},
		"layers of different clusters": {
			files: map[string]string{
				"layers.yaml":     addonsLayer("a", "./addons/a", "") + addonsLayer("b", "./addons/b", "  cluster: {name: edge, namespace: fleet}\n"),
				"addons/a/a.yaml": release("a", ""), "addons/b/a.yaml": release("a", ""),
			},
		},
		"another source": {
			files: map[string]string{
				"layers.yaml":     addonsLayer("a", "./addons/a", "") + strings.ReplaceAll(addonsLayer("b", "./b", "")+addonsLayer("c", "./c", ""), "platform", "other"),
				"addons/a/a.yaml": release("a", ""),
			},
			want: []string{"layers.yaml:16: warning other-source: spec.source.name: GitRepository other is taken for another repository: what it has for b, c is not checked; --source other says that it is this one"},
		},
		"the source is said": {
			files: map[string]string{
				"layers.yaml": addonsLayer("a", "./a", "") + strings.ReplaceAll(addonsLayer("b", "./b", ""), "platform", "other"),
				"a/a.yaml":    release("a", ""),
			},
			options: Options{Source: "GitRepository/other"},
			want: []string{
				"layers.yaml:8: warning other-source: spec.source.name: GitRepository platform is taken for another repository: what it has for a is not checked; --source platform says that it is this one",
				"layers.yaml:16: error path: spec.source.path: the repository has no directory ./b",
			},
		},
		"a root below": {
			files: map[string]string{"examples/layers.yaml": addonsLayer("a", "./addons/a", ""), "examples/addons/a/a.yaml": release("a", "")},
			want:  []string{"examples/layers.yaml:8: error path: spec.source.path: the repository has no directory ./addons/a: there is examples/addons/a, so --root examples may say where the repository begins"},
		},
		"patches of kustomizations are no objects": {
			files: map[string]string{
				"layers.yaml":                  addonsLayer("a", "./overlay", ""),
				"base/kustomization.yaml":      "resources: [a.yaml]\n",
				"base/a.yaml":                  release("a", "  installl: {}\n"),
				"overlay/kustomization.yaml":   "resources: [../base]\npatches: [{path: patch.yaml}]\n",
				"overlay/patch.yaml":           "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: platform}\nspec: {timeout: 5m}\n",
				"clusters/kustomization.yaml":  "resources: [https://example.com/a.yaml]\n",
				"elsewhere/base/b.yaml":        addonsLayer("b", "./overlay", ""),
				"elsewhere/kustomization.yaml": "resources: [base/b.yaml]\npatches:\n- patch: |\n    apiVersion: kraan.io/v1alpha1\n    kind: AddonsLayer\n    metadata: {name: b}\n    spec: {version: 2.0.0, prereqs: {dependsOn: [a@9]}}\n",
			},
			want: []string{
				"base/a.yaml:8: error unknown-field: spec.installl: there is no such field: do you mean install?",
				"clusters/kustomization.yaml: warning kustomization: resources: https://example.com/a.yaml is not in the artifact: remote bases are not allowed, so copy it into the source or add a source of its own",
				"elsewhere/base/b.yaml:6: error dependency-version: spec.prereqs.dependsOn[0]: wants a@9, and a is at 1.0.0",
				"elsewhere/base/b.yaml:8: error duplicate-object: spec.source.path: the layer a has the same directory: every object in it would belong to both",
			},
		},
		"the older versions of Flux": {
			files: map[string]string{
				"layers.yaml": addonsLayer("a", "./a", ""),
				"a/a.yaml":    strings.Replace(release("a", "  intervall: 1m\n"), "io/v2", "io/v2beta2", 1), "old/b.yaml": strings.Replace(release("b", ""), "io/v2", "io/v2beta1", 1),
			},
			want: []string{
				"a/a.yaml:8: error unknown-field: spec.intervall: there is no such field: do you mean interval?",
				"old/b.yaml:2: warning unused-directory: no layer names the directory old, which has HelmRelease b: nobody would install it",
			},
		},
		"a kubernetes version": {
			files: map[string]string{
				"layers.yaml": addonsLayer("a", "./a", "  prereqs: {k8sVersion: '>=1.35'}\n"),
				"a/a.yaml":    "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a, namespace: b}\n",
			},
			options: Options{Kubernetes: "1.34"},
			want: []string{
				"a/a.yaml:1: error removed-api: apiVersion: Kubernetes 1.34 does not serve batch/v1beta1 of CronJob b/a, which was removed in 1.25: write batch/v1/CronJob",
				"layers.yaml:9: error kubernetes-version: spec.prereqs.k8sVersion: the layer wants Kubernetes >=1.35, and not 1.34",
			},
		},
		"disabled rules": {
			files:   map[string]string{"a.yaml": "a: [", "layers.yaml": addonsLayer("a", "./a", "")},
			options: Options{Disabled: []string{"syntax", "path"}},
		},
		"layers in a list": {
			files: map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: kraan.io/v1alpha1\n  kind: AddonsLayer\n  metadata: {name: a}\n  spec:\n    version: 1.0.0\n    source: {name: a, path: ./a}\n    hodl: true\n", "a/b.yaml": release("b", "")},
			want:  []string{"a.yaml:10: error unknown-field: spec.hodl: there is no such field: do you mean hold?"},
		},
		"hostile text": {
			files: map[string]string{
				"a\x1b[2J.yaml":  "a: [",
				"layers.yaml":    "apiVersion: kraan.io/v1alpha1\nkind: \"Add\\u001b[31monsLayer\"\nmetadata: [a]\n",
				"noname.yaml":    "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: {a: b}}\nspec: text\n",
				"release.yaml":   "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: 1\nspec: [1]\n",
				"empty.yaml":     "",
				"latin.yaml":     "a: \xff\n",
				"recursive.yaml": "a: &a [*a]\n",
			},
			want: []string{
				"a [2J.yaml:1: error syntax: cannot be read as YAML: did not find expected node content",
				"latin.yaml: error manifest: is not UTF-8 text",
				`layers.yaml:2: error schema: kind: there is no kind Add [31monsLayer in kraan.io: do you mean AddonsLayer?`,
				"noname.yaml:3: error schema: metadata.name: Required value: name or generateName is required",
				`noname.yaml:4: error schema: spec: Invalid value: "string": spec in body must be of type object: "string"`,
				`recursive.yaml:1: error manifest: the anchor "a" contains itself`,
				"release.yaml:3: error helmrelease: metadata: must be a mapping, and is a number",
				"release.yaml:4: error helmrelease: spec: must be a mapping, and is a list",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Files = repository(test.files)
			got, _ := run(t, test.options)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"big.yaml": strings.Repeat("# much\n", maxFile/7+1), "good.yaml": release("a", "")} {
		if err := os.WriteFile(root+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out.yaml": "/etc/passwd", "up.yaml": "../../a.yaml", "none.yaml": "b.yaml", "in.yaml": "good.yaml", "folder": "/etc"} {
		if err := os.Symlink(target, root+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	got, _ := run(t, Options{Files: opened.FS()})
	const link = "is a link that leads out of the repository, or nowhere: it is not followed"
	want := []string{
		"big.yaml: error unreadable-file: is larger than 8 MiB: split it", "folder: warning unreadable-file: " + link,
		"in.yaml: warning unreadable-file: is a symbolic link: source-controller leaves those out of artifacts, and nothing of it is deployed from here",
		"none.yaml: error unreadable-file: " + link, "out.yaml: error unreadable-file: " + link, "up.yaml: error unreadable-file: " + link,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	if _, err := Run(t.Context(), Options{Files: fstest.MapFS{}, Below: []string{"none"}}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Errorf("want an error that names it, got %v", err)
	}
}

func TestEveryBrokenFileIsCounted(t *testing.T) {
	files := map[string]string{"layers.yaml": addonsLayer("a", "./a", "")}
	for i := range 500 {
		files[fmt.Sprintf("a/%03d.yaml", i)] = "a: ["
	}
	_, report := run(t, Options{Files: repository(files)})
	if report.Errors != 500 || len(report.Findings) != 500 {
		t.Errorf("found %d errors, %d findings", report.Errors, len(report.Findings))
	}
}

func TestUnknownRules(t *testing.T) {
	if err := CheckRules([]string{"path", "sintax"}); err == nil || !strings.Contains(err.Error(), `no rule "sintax": do you mean syntax?`) {
		t.Errorf("got %v", err)
	}
	names := map[string]bool{}
	for _, rule := range Rules() {
		if names[rule.Name] || rule.Help == "" || rule.Short == "" || rule.Level == "" {
			t.Errorf("%+v is there twice, or says too little", rule)
		}
		names[rule.Name] = true
	}
}

// BenchmarkRun is for 200 layers with 1000 releases.
func BenchmarkRun(b *testing.B) {
	texts := map[string]string{}
	for i := range 200 {
		depends := ""
		if i > 0 {
			depends = fmt.Sprintf("  prereqs: {dependsOn: [layer-%d@1.0.0]}\n", i-1)
		}
		texts[fmt.Sprintf("layers/%d.yaml", i)] = addonsLayer(fmt.Sprintf("layer-%d", i), fmt.Sprintf("./addons/%d", i), depends)
		for j := range 5 {
			texts[fmt.Sprintf("addons/%d/%d.yaml", i, j)] = release(fmt.Sprintf("release-%d-%d", i, j), "  values: {a: {b: c}, list: [1, 2, 3]}\n")
		}
	}
	files := repository(texts)
	for b.Loop() {
		report, err := Run(b.Context(), Options{Files: files, Now: today})
		if err != nil || len(report.Findings) > 0 || report.Releases != 1000 {
			b.Fatal(err, report)
		}
	}
}

// BenchmarkBuilds is for 250 layers that are made in the ways of Kustomizations, with 160
// releases: what a repository of Flux is after import flux.
func BenchmarkBuilds(b *testing.B) {
	texts := map[string]string{
		"components/alerts/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [alerts.yaml]\n",
		"components/alerts/alerts.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alerts}\ndata: {to: \"${TO:=nobody}\"}\n",
	}
	for i := range 250 {
		name := fmt.Sprintf("app-%d", i)
		how := fmt.Sprintf("  targetNamespace: ns-%d\n  commonMetadata: {labels: {app.kubernetes.io/name: %s}}\n  components: [../../components/alerts]\n  postBuild: {substitute: {APP: %s, TO: team}}\n", i, name, name)
		texts[fmt.Sprintf("layers/%s.yaml", name)] = addonsLayer(name, "./apps/"+name, how)
		if i < 160 {
			texts["apps/"+name+"/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [release.yaml]\n"
			texts["apps/"+name+"/release.yaml"] = strings.ReplaceAll(release(name, "  values: {a: {b: \"${APP}\"}, list: [1, 2, 3]}\n"), "namespace: ", "labels: {of: a}, namespace: ")
			continue
		}
		texts["apps/"+name+"/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${APP}\"}\ndata: {k: v}\n"
	}
	files := repository(texts)
	for b.Loop() {
		report, err := Run(b.Context(), Options{Files: files, Now: today})
		if err != nil || len(report.Findings) > 0 || report.Layers != 250 {
			b.Fatal(err, report)
		}
	}
}
