// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// fluxCluster is a tree of three, as Flux has it on a cluster.
const fluxCluster = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: top, namespace: flux-system}
spec: {interval: 1h, path: ./top, prune: true, sourceRef: {kind: GitRepository, name: platform}}
status: {inventory: {entries: [{id: flux-system_middle_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}, {id: _shop__Namespace, v: v1}]}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: middle, namespace: flux-system, labels: {kustomize.toolkit.fluxcd.io/name: top, kustomize.toolkit.fluxcd.io/namespace: flux-system}}
spec: {interval: 1h, path: ./middle, prune: true, sourceRef: {kind: GitRepository, name: platform}, serviceAccountName: deployer, targetNamespace: shop}
status: {inventory: {entries: [{id: shop_settings__ConfigMap, v: v1}]}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: edge, namespace: flux-system}
spec: {interval: 1h, path: ./edge, prune: true, sourceRef: {kind: Bucket, name: charts}, kubeConfig: {secretRef: {name: edge}}, ignore: [{paths: [/spec/replicas]}]}
`

// fluxController is kustomize-controller with further arguments, each with a comma behind it.
func fluxController(arguments string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kustomize-controller, namespace: flux-system}\n" +
		`spec: {template: {spec: {containers: [{name: manager, image: "ghcr.io/fluxcd/kustomize-controller:v1.9.1", args: [` + arguments + `--log-level=info]}]}}}` + "\n"
}

func TestImportFluxIsGolden(t *testing.T) {
	example, err := filepath.Abs("../../examples/flux")
	if err != nil {
		t.Fatal(err)
	}
	server := apitest.New(t, apitest.Parse(t, fluxCluster+fluxController(""))...)
	t.Chdir(t.TempDir())

	// From a repository, without a cluster: the files, their comments and their order.
	code, text, errOut := commandLine(t, nil, terminal.Screen{}, "import flux --from-dir "+example)
	if code != exitFine || errOut != "" {
		t.Errorf("exit code %d: %s %s", code, text, errOut)
	}
	files := written(t, "layers")
	if len(files) != 4 {
		t.Errorf("there are the files %v", files)
	}
	_, again, _ := commandLine(t, nil, terminal.Screen{}, "import flux --from-dir "+example)
	if !strings.Contains(again, "./layers holds all layers already.") {
		t.Errorf("once more: %s", again)
	}
	_, asJSON, _ := commandLine(t, nil, terminal.Screen{}, "import flux --dry-run -o json --from-dir "+example)
	code, printed, errOut := commandLine(t, nil, terminal.Screen{}, "import flux shop flux-system/blog --into - --from-dir "+example)
	if code != exitFine || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if want := files["apps/blog/ks.yaml"] + "---\n" + files["apps/shop/ks.yaml"]; cmp.Diff(want, printed) != "" {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, printed))
	}

	// From a cluster.
	code, live, errOut := commandLine(t, server, terminal.Screen{}, "import flux --into live")
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	liveFiles := written(t, "live")
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
	chdirBack(t)
	golden(t, "import-flux.txt", text)
	golden(t, "import-flux.json", asJSON)
	golden(t, "import-flux-shop.yaml", files["apps/shop/ks.yaml"])
	golden(t, "import-flux-live.txt", live)
	golden(t, "import-flux-live.yaml", liveFiles["top.yaml"]+"---\n"+liveFiles["middle.yaml"]+"---\n"+liveFiles["edge.yaml"]+"---\n"+liveFiles["clusters.yaml"])
}

func TestImportFluxOfHostileInput(t *testing.T) {
	ks := func(name, rest string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: a}\n" +
			"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: g}, " + rest + "}\n"
	}
	for name, test := range map[string]struct {
		files map[string]string
		args  string
		code  int
		want  string
	}{
		"nothing":               {map[string]string{"a.yaml": "a: b\n"}, "", exitFine, "No Kustomizations found."},
		"no such folder":        {nil, "--from-dir gone", exitError, "gone"},
		"a folder of a cluster": {nil, "--below x", exitError, "give that with --from-dir"},
		"two outputs":           {map[string]string{}, "--into - -o json", exitError, "choose one"},
		"no such name":          {map[string]string{"a.yaml": ks("shop", "path: ./x")}, "shpo", exitError, "did you mean shop"},
		"an older version": {
			map[string]string{
				"a.yaml": strings.Replace(ks("a", "path: ./x"), "io/v1", "io/v1beta2", 1), "x/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			}, "", exitFine, "apiVersion: v1beta2 is read as Flux migrates it to v1",
		},
		"a mistyped field":       {map[string]string{"a.yaml": ks("a", "pahth: ./x")}, "", exitBlocked, `unknown field "spec.pahth"`},
		"a path that leaves":     {map[string]string{"a.yaml": ks("a", "path: ../../etc")}, "", exitBlocked, "leads out of the source"},
		"a name that is none":    {map[string]string{"a.yaml": ks("'A B'", "path: ./x")}, "", exitBlocked, "is no name of a layer"},
		"a directory broken":     {map[string]string{"a.yaml": ks("a", "path: ./x"), "x/b.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: [\n"}, "--below a.yaml", exitBlocked, "its directory cannot be built"},
		"a name with a sequence": {map[string]string{"a.yaml": ks(`"a\e[31m"`, "path: ./x")}, "", exitBlocked, "is no name of a layer"},
		"circles": {
			map[string]string{"x/a.yaml": ks("a", "path: ./y"), "y/b.yaml": ks("b", "path: ./x")}, "", exitFine, "0 layers of 2 Kustomizations",
		},
		"several clusters": {
			map[string]string{"clusters/one/a.yaml": ks("a", "path: ./x"), "clusters/two/a.yaml": ks("a", "path: ./y")},
			"", exitBlocked,
			"The repository has 2 clusters, and nothing was written. Choose one by --cluster NAME",
		},
		"no such cluster":        {map[string]string{"a.yaml": ks("a", "path: ./x")}, "--cluster shop", exitError, "the repository has no cluster shop"},
		"a cluster of a cluster": {nil, "--cluster shop", exitError, "give that with --from-dir"},
		"nothing applies it": {
			map[string]string{
				"gotk-sync.yaml": ks("root", "path: ./c"), "c/kustomization.yaml": "resources: [a.yaml]\n", "c/a.yaml": ks("a", "path: ./x"), "c/old.yaml": ks("old", "path: ./x"),
				"x/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			}, "", exitFine, "a/old in c/old.yaml",
		},
		"two owners": {
			map[string]string{"a.yaml": ks("a", "path: ./x"), "b.yaml": ks("b", "path: ./x"), "x/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
			"", exitBlocked,
			"ConfigMap a would be of layer a and of layer b: take it out of one of them",
		},
		"a broken file": {
			map[string]string{"a.yaml": ks("a", "path: ./x"), "b.yaml": ks("b", "path: ./x") + "bad: [\n"}, "", exitBlocked, "b.yaml:5: cannot be read as YAML",
		},
		"a folder that Flux applies":  {map[string]string{"c/kustomization.yaml": "resources: [../a.yaml]\n", "a.yaml": ks("a", "path: ./c")}, "--path ./c", exitFine, "applies Flux itself"},
		"no folder that Flux applies": {map[string]string{"a.yaml": ks("a", "path: ./x")}, "--path gone", exitError, "the repository has no gone"},
		"a source that is no folder":  {map[string]string{"a.yaml": ks("a", "path: ./x")}, "--source other=/gone", exitError, "--source other: there is no folder"},
		"many of a kind": {
			map[string]string{"a.yaml": ks("a", "path: ./x, decryption: {provider: sops}") + "---\n" + ks("b", "path: ./x, decryption: {provider: sops}")},
			"", exitBlocked,
			"2 Kustomizations (a/a, a/b): spec.decryption: without secretRef",
		},
		"itself": {map[string]string{"x/a.yaml": ks("a", "path: ./x"), "x/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, "", exitFine, "1 layer of 1 Kustomization."},
	} {
		t.Run(name, func(t *testing.T) {
			args := "import flux --dry-run " + test.args
			if test.files != nil {
				args += " --from-dir " + checkedOut(t, test.files)
			}
			code, out, errOut := commandLine(t, nil, terminal.Screen{}, args)
			if all := out + errOut; code != test.code || !strings.Contains(all, test.want) || strings.Contains(all, "\x1b") {
				t.Errorf("exit code %d: %s", code, all)
			}
		})
	}
}

// A Kustomization that kustomize-controller applies as its default account becomes a layer
// of that account, and one whose account cannot be seen is refused: no layer has more rights
// than its Kustomization.
func TestImportFluxUnderADefaultAccount(t *testing.T) {
	for name, test := range map[string]struct {
		reason, cluster, args string
		code                  int
		want                  []string
		account               string
	}{
		"the default": {
			"the layers have the account", fluxController("--default-service-account=tenant, "), "", exitBlocked,
			[]string{"serviceAccountName: is tenant, the --default-service-account of kustomize-controller"},
			"tenant",
		},
		"another tool's": {
			"helm-controller has a flag of that name, which is not this one",
			fluxController("") + strings.ReplaceAll(fluxController("--default-service-account=tenant, "), "kustomize-controller", "helm-controller"), "", exitBlocked,
			[]string{"2 layers have no serviceAccountName"},
			"",
		},
		"unseen": {
			"no Deployment says it", "", "", exitBlocked,
			[]string{
				"2 Kustomizations (flux-system/edge, flux-system/top): spec.serviceAccountName: is empty, and kustomize-controller's --default-service-account is not known, because no Deployment of it is seen",
				"write the account into the Kustomization, or give its name by --default-service-account",
			},
			"",
		},
		"shards that differ": {
			"it is not known which one applies it",
			fluxController("--default-service-account=a, ") + strings.Replace(fluxController(""), "name: kustomize-controller,", "name: shard,", 1), "", exitBlocked,
			[]string{`kustomize-controllers have different values of --default-service-account: "", "a"`},
			"",
		},
		"unseen and given": {
			"the flag says it", "", "--default-service-account=tenant", exitBlocked, []string{"serviceAccountName: is tenant"}, "tenant",
		},
		"unseen and none": {
			"the flag says that there is none", "", "--default-service-account=", exitBlocked, []string{"2 layers have no serviceAccountName"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.New(t, apitest.Parse(t, fluxCluster+test.cluster)...)
			t.Chdir(t.TempDir())
			code, out, errOut := commandLine(t, server, terminal.Screen{}, "import flux "+test.args)
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q (%s): %s%s", want, test.reason, out, errOut)
				}
			}
			files := written(t, "layers")
			if code != test.code || strings.Contains(files["top.yaml"], "serviceAccountName") != (test.account != "") ||
				!strings.Contains(files["top.yaml"]+files["edge.yaml"], test.account) || !strings.Contains(files["middle.yaml"], "serviceAccountName: deployer") {
				t.Errorf("exit code %d (%s), layers %s%s%s", code, test.reason, files["top.yaml"], files["middle.yaml"], files["edge.yaml"])
			}
		})
	}
}

// What is refused is not handed over either, and nothing is changed.
func TestTakeOverNeedsTheAccount(t *testing.T) {
	server := apitest.New(t, apitest.Parse(t, fluxCluster)...)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "import flux --take-over top --yes")
	if code != exitError || !strings.Contains(errOut, "Kustomization flux-system/top cannot become a layer as it is: spec.serviceAccountName: is empty") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
}

// What two Kustomizations apply would have two owners: it is not handed over.
func TestTakeOverOfAnObjectOfTwo(t *testing.T) {
	twin := strings.ReplaceAll(strings.SplitAfter(strings.SplitN(fluxCluster, "---", 3)[1], "\n---")[0], "name: middle,", "name: twin,")
	server := apitest.New(t, apitest.Parse(t, fluxCluster+"---"+twin+fluxController(""))...)
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "import flux --take-over middle --yes")
	if code != exitError || !strings.Contains(errOut, "Kustomization flux-system/middle is not handed over: it applies shop_settings__ConfigMap, which Kustomization flux-system/twin applies, too") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
}

// A repository may say how kustomize-controller is started, in the patch of its lockdown.
func TestImportFluxFindsTheAccountInARepository(t *testing.T) {
	const ks = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: a}\n" +
		"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: g}, path: ./x}\n"
	const patch = "resources: [gotk-components.yaml]\npatches:\n- patch: |\n    - op: add\n      path: /spec/template/spec/containers/0/args/-\n" +
		"      value: --default-service-account=tenant\n  target: {kind: Deployment, name: (kustomize-controller|helm-controller)}\n"
	dir := checkedOut(t, map[string]string{"a.yaml": ks, "flux/kustomization.yaml": patch, "x/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "import flux --into - --from-dir "+dir)
	if code != exitFine || !strings.Contains(out, "serviceAccountName: tenant") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	dir = checkedOut(t, map[string]string{"a.yaml": ks})
	_, out, _ = commandLine(t, nil, terminal.Screen{}, "import flux --dry-run --from-dir "+dir)
	if !strings.Contains(out, "Where kustomize-controller has --default-service-account, name its value by --default-service-account") {
		t.Errorf("it does not ask for the account: %s", out)
	}
}

// Each cluster of a repository has a folder of its own, and one that is chosen has the one that
// is named.
func TestImportFluxOfSeveralClusters(t *testing.T) {
	ks := func(path string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
			"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, path: " + path + "}\n"
	}
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	dir := checkedOut(t, map[string]string{
		"clusters/one/apps.yaml": ks("./apps/one"), "clusters/two/apps.yaml": ks("./apps/two"), "apps/one/a.yaml": object, "apps/two/a.yaml": object,
	})
	t.Chdir(t.TempDir())
	code, out, errOut := commandLine(t, nil, terminal.Screen{}, "import flux --all --from-dir "+dir)
	if code != exitFine || !strings.Contains(out, "written to layers/one.") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	files := written(t, "layers")
	if !strings.Contains(files["one/clusters/one/apps.yaml"], "path: ./apps/one") || !strings.Contains(files["two/clusters/two/apps.yaml"], "path: ./apps/two") {
		t.Errorf("there are %v", files)
	}
	code, out, errOut = commandLine(t, nil, terminal.Screen{}, "import flux --cluster two --into - --from-dir "+dir)
	if code != exitFine || !strings.Contains(out, "path: ./apps/two") || strings.Contains(out, "./apps/one") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	code, out, _ = commandLine(t, nil, terminal.Screen{}, "import flux -o json --from-dir "+dir)
	if code != exitBlocked || !strings.Contains(out, `"kustomizations": 1`) || !strings.Contains(out, `"name": "one"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// With a cluster at hand, what it has in another way than the repository is listed.
func TestImportFluxComparesWithTheCluster(t *testing.T) {
	ks := func(name, path string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
			"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: flux-system}, path: " + path + "}\n"
	}
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"
	dir := checkedOut(t, map[string]string{
		"flux/a.yaml": ks("a", "./apps/a"), "flux/b.yaml": ks("b", "./apps/b"), "flux/c.yaml": ks("c", "./apps/c"),
		"apps/a/a.yaml": strings.Replace(object, "NAME", "a", 1), "apps/b/b.yaml": strings.Replace(object, "NAME", "b", 1), "apps/c/c.yaml": strings.Replace(object, "NAME", "c", 1),
	})
	server := apitest.New(t, apitest.Parse(t, ks("a", "apps/a")+"---\n"+ks("b", "./elsewhere")+"---\n"+ks("made-by-hand", "./x")+fluxController(""))...)
	t.Chdir(t.TempDir())
	code, out, errOut := commandLine(t, server, terminal.Screen{}, "import flux --compare --from-dir "+dir)
	if code != exitBlocked {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	for _, want := range []string{
		"The cluster has 1 Kustomization in the same way, and 3 in another:",
		"Kustomization flux-system/b has another path on the cluster",
		"Kustomization flux-system/c is in flux/c.yaml, and not on the cluster",
		"Kustomization flux-system/made-by-hand is on the cluster, and was not found in the repository",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q: %s%s", want, out, errOut)
		}
	}
	if code, out, _ = commandLine(t, server, terminal.Screen{}, "import flux --compare --dry-run -o json --from-dir "+dir); code != exitBlocked ||
		!strings.Contains(out, `"only": "cluster"`) || !strings.Contains(out, `"same": 1`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	same := apitest.New(t, apitest.Parse(t, ks("a", "apps/a")+"---\n"+ks("b", "./apps/b")+"---\n"+ks("c", "./apps/c"))...)
	if code, out, errOut = commandLine(t, same, terminal.Screen{}, "import flux --compare --from-dir "+dir); code != exitFine ||
		!strings.Contains(out, "The cluster has the same 3 Kustomizations.") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, out, errOut = commandLine(t, nil, terminal.Screen{}, "import flux --from-dir "+dir); code != exitFine {
		t.Errorf("no cluster is asked: exit code %d: %s%s", code, out, errOut)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
}
