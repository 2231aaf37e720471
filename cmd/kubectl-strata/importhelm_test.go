// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/answers/adoption"
	"github.com/strata-project/strata/internal/terminal"
)

const template = "kind: ConfigMap\n"

func zipped(write func(*gzip.Writer)) []byte {
	var data bytes.Buffer
	writer := gzip.NewWriter(&data)
	write(writer)
	_ = writer.Close()
	return data.Bytes()
}

// helmSecret returns the Secret of a revision of a release of chart podinfo 1.2.3.
func helmSecret(namespace, name string, revision int, status, values string) *unstructured.Unstructured {
	release := fmt.Sprintf(`{"name":%q,"namespace":%q,"version":%d,"info":{"status":%q},"config":%s,"manifest":"",
"chart":{"metadata":{"name":"podinfo","version":"1.2.3"},"templates":[{"name":"templates/a.yaml","data":%q}],"values":{"replicas":1}}}`,
		name, namespace, revision, status, values, base64.StdEncoding.EncodeToString([]byte(template)))
	packed := base64.StdEncoding.EncodeToString(zipped(func(w *gzip.Writer) { _, _ = w.Write([]byte(release)) }))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": adoption.StoredType,
		"metadata": map[string]any{
			"name": fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision), "namespace": namespace,
			"labels": map[string]any{"owner": "helm", "name": name, "version": fmt.Sprint(revision), "status": status},
		},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(packed))},
	}}
}

// chartServer serves the charts podinfo 1.2.3, and counts what it is asked for.
func chartServer(t *testing.T, body string) (address string, asked map[string]int) {
	t.Helper()
	archive := zipped(func(w *gzip.Writer) {
		tarred := tar.NewWriter(w)
		for name, text := range map[string]string{"Chart.yaml": "name: podinfo\nversion: 1.2.3\n", "values.yaml": "replicas: 1\n", "templates/a.yaml": body} {
			_ = tarred.WriteHeader(&tar.Header{Name: "podinfo/" + name, Mode: 0o600, Size: int64(len(text))})
			_, _ = tarred.Write([]byte(text))
		}
		_ = tarred.Close()
	})
	asked = map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = w.Write([]byte("entries: {podinfo: [{version: 1.2.3, urls: [podinfo-1.2.3.tgz]}]}\n"))
		case "/podinfo-1.2.3.tgz":
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// written returns all files below a folder.
func written(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func shop(t *testing.T) []*unstructured.Unstructured {
	return append(apitest.Parse(t, `
apiVersion: v1
kind: Namespace
metadata: {name: ending, deletionTimestamp: "2026-12-01T11:00:00Z"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: flux, namespace: shop}
spec: {chart: {spec: {chart: podinfo, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: had, namespace: shop, labels: {kraan/layer: base}}
spec: {chart: {spec: {chart: podinfo, version: 1.2.3}}}
`),
		helmSecret("shop", "web", 9, "superseded", `{"old":true}`), helmSecret("shop", "web", 10, "deployed", `{"replicas":9007199254740993}`),
		helmSecret("shop", "db", 1, "deployed", `{"auth":{"user":"me","password":"hunter2"}}`),
		helmSecret("shop", "flux", 1, "deployed", `{}`), helmSecret("shop", "had", 1, "deployed", `{}`),
		helmSecret("shop", "stuck", 2, "pending-upgrade", `{}`), helmSecret("shop", "stuck", 1, "deployed", `{}`),
		helmSecret("ending", "late", 1, "deployed", `{}`),
	)
}

func TestImportHelmIsGolden(t *testing.T) {
	address, asked := chartServer(t, template)
	server := apitest.New(t, shop(t)...)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	apart := filepath.Join(t.TempDir(), "secrets")
	line := "import helm --source flux-system/fleet --repository charts=" + address
	code, out, errOut := commandLine(t, server, terminal.Screen{}, line)
	if code != exitBlocked || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	files := written(t, filepath.Join(here, "addons"))
	_, narrow, _ := commandLine(t, server, terminal.Screen{Width: 40}, line)
	jsonCode, asJSON, _ := commandLine(t, server, terminal.Screen{}, line+" -o json --secrets-into "+apart)
	if jsonCode != exitFine {
		t.Errorf("exit code %d with the Secrets written: %s", jsonCode, asJSON)
	}
	if asked["/podinfo-1.2.3.tgz"] != 3 || asked["/index.yaml"] != 3 {
		t.Errorf("three runs have asked for %v", asked)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("it has written %q", writes)
	}
	for name, text := range files {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s holds a password", name)
		}
	}
	if !strings.Contains(files["imported/shop/helmrelease-web.yaml"], "replicas: 9007199254740993") {
		t.Errorf("the files are %v", files)
	}
	secrets := written(t, apart)
	if info, err := os.Stat(filepath.Join(apart, "shop", "secret-db-secret-values.yaml")); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(secrets["shop/secret-db-secret-values.yaml"], "hunter2") {
		t.Errorf("%v, %v: %v", info, err, secrets)
	}
	chdirBack(t)
	golden(t, "import-helm.txt", out)
	golden(t, "import-helm-40.txt", narrow)
	golden(t, "import-helm.json", asJSON)
}

// chdirBack goes back to where the golden files are.
func chdirBack(t *testing.T) {
	t.Helper()
	t.Chdir(packageFolder)
}

var packageFolder, _ = os.Getwd()

func TestImportHelmCompletesNothingByGuessing(t *testing.T) {
	address, _ := chartServer(t, "kind: Secret\n")
	into := filepath.Join(t.TempDir(), "addons")
	server := apitest.New(t, helmSecret("shop", "web", 1, "deployed", `{}`))
	for name, test := range map[string]struct{ args, want string }{
		"nothing is given":       {"", "none was given with --repository"},
		"the chart is another":   {" --repository charts=" + address, "templates/a.yaml differs"},
		"the repository is away": {" --repository charts=http://127.0.0.1:1", "cannot be reached from here"},
		"it is no repository":    {" --repository charts=" + address + "/deeper", "answers with 404"},
		"it is a registry":       {" --repository charts=oci://example.com/charts", "is not asked"},
		"it is a file":           {" --repository charts=file:///etc", "must begin with http"},
	} {
		code, out, _ := commandLine(t, server, terminal.Screen{}, "import helm --force --into "+into+test.args)
		if code != exitBlocked || !strings.Contains(out, test.want) || !strings.Contains(out, "complete "+into) {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
		files := written(t, into)
		if len(files) != 1 || !strings.Contains(files["incomplete/shop/helmrelease-web.yaml"], adoption.Unknown) {
			t.Errorf("%s: %v", name, files)
		}
	}
}

func TestImportHelmNamesWhatItCannotRead(t *testing.T) {
	broken := helmSecret("shop", "broken", 1, "deployed", `{}`)
	broken.Object["data"] = map[string]any{"release": "AAAA"}
	lying := helmSecret("shop", "lying", 1, "deployed", `{}`)
	lying.Object["data"] = helmSecret("shop", "other", 1, "deployed", `{}`).Object["data"]
	unlabelled := helmSecret("shop", "unlabelled", 1, "deployed", `{}`)
	unlabelled.SetLabels(map[string]string{"owner": "helm", "status": "deployed", "version": "x"})
	escape := helmSecret("shop", "escape", 1, "deployed", `{}`)
	escape.Object["data"] = helmSecret("shop", "../../escape", 1, "deployed", `{}`).Object["data"]
	escape.SetLabels(map[string]string{"owner": "helm", "status": "deployed", "version": "1", "name": "../\x1b[31mescape"})
	into := filepath.Join(t.TempDir(), "addons")
	code, out, errOut := commandLine(t, apitest.New(t, broken, lying, unlabelled, escape), terminal.Screen{}, "import helm --into "+into)
	if code != exitBlocked || errOut != "" || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d: %q %q", code, out, errOut)
	}
	for _, want := range []string{"sh.helm.release.v1.broken.v1: it is", "holds revision 1 of shop/other, other than its labels say", "v1.unlabelled.v1: it has no labels", "a name that Helm does not allow"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q: %s", want, out)
		}
	}
	if _, err := os.Stat(into); err == nil {
		t.Error("it has written something")
	}
}

func TestImportHelmGoesOnWithWhatMayBeRead(t *testing.T) {
	address, _ := chartServer(t, template)
	objects := append(shop(t), apitest.Parse(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: closed}\n")...)
	back := apitest.New(t, objects...)
	// Secrets may be listed in shop alone.
	guard := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/secrets") && r.URL.Path != "/api/v1/namespaces/shop/secrets" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})
			return
		}
		back.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(guard.Close)
	into := filepath.Join(t.TempDir(), "addons")
	code, out, errOut := commandLine(t, &apitest.Server{Server: guard}, terminal.Screen{}, "import helm --dry-run --secret-values inline --repository charts="+address+" --into "+into)
	if code != exitBlocked || errOut != "" || !strings.Contains(out, "get the rights to get and list Secrets in ending, closed") || !strings.Contains(out, "shop/web") || !strings.Contains(out, "password: hunter2") {
		t.Errorf("exit code %d: %s %s", code, out, errOut)
	}
	if _, err := os.Stat(into); err == nil {
		t.Error("a dry run has written something")
	}
}

// A list of many pages is read page by page.
func TestImportHelmReadsPages(t *testing.T) {
	var objects []*unstructured.Unstructured
	for n := range 7 {
		objects = append(objects, helmSecret("shop", fmt.Sprintf("web%d", n), 1, "deployed", `{}`))
	}
	back := apitest.New(t, objects...)
	var pages []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/secrets") {
			back.Config.Handler.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		back.Config.Handler.ServeHTTP(answer, r)
		var list struct {
			Items []any `json:"items"`
		}
		_ = json.Unmarshal(answer.Body.Bytes(), &list)
		at := len(pages)
		pages = append(pages, r.URL.Query().Get("limit")+r.URL.Query().Get("continue"))
		next := ""
		if at < len(list.Items)-1 {
			next = fmt.Sprintf("-%d", at+1)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "SecretList", "metadata": map[string]any{"continue": next}, "items": list.Items[at : at+1]})
	}))
	t.Cleanup(server.Close)
	_, out, errOut := commandLine(t, &apitest.Server{Server: server}, terminal.Screen{}, "import helm --dry-run -o json")
	if errOut != "" || strings.Count(out, `"name": "web`) != 7 {
		t.Errorf("%s %s", out, errOut)
	}
	if diff := cmp.Diff([]string{"500", "500-1", "500-2", "500-3", "500-4", "500-5", "500-6"}, pages); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestImportHelmRefusesWhatItCannotDo(t *testing.T) {
	server := apitest.New(t, append(shop(t), apitest.Parse(t, "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}\nspec: {version: 1.0.0}\n")...)...)
	for args, want := range map[string]string{
		"-A -n shop":                           "exclude each other",
		"--split x":                            "must be none or namespace",
		"--secret-values x":                    "must be split or inline",
		"--path ./a/../../b":                   "stay inside",
		"--source a/b/c":                       "NAME or NAMESPACE/NAME",
		"--repository x":                       "must be NAME=URL",
		"--repository X=http://a":              "cannot be the name",
		"--repository x=http://me:pw@a":        "without a user and a password",
		"--helm-repositories none":             "cannot read --helm-repositories",
		"--secrets-into ./addons/secrets":      "not apart from --into",
		"--into ./a/b --secrets-into ./a":      "not apart from --into",
		"--layer base --dry-run":               "there is a layer base already",
		"--layer Base --dry-run":               "cannot be the name of a layer",
		"-l =x":                                "--selector cannot be read",
		"-o wide":                              "--output is",
		"--layer incomplete --dry-run":         "import itself uses",
		"--into /dev/null/x --layer elsewhere": "",
	} {
		code, out, errOut := commandLine(t, server, terminal.Screen{}, "import helm "+args)
		if code != exitError || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s %s", args, code, out, errOut)
		}
	}
}
