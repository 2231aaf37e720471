// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/strata-project/strata/cmd/kubectl-strata/apitest"
	"github.com/strata-project/strata/internal/terminal"
)

// askedServer is a server that remembers what it was asked, and as whom.
type askedServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newAskedServer(t *testing.T, to http.Handler) *askedServer {
	t.Helper()
	c := &askedServer{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.requests = append(c.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Authorization")))
		c.mu.Unlock()
		if to == nil {
			http.NotFound(w, r)
			return
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *askedServer) asked() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.requests...)
}

const tokenOfTheCluster = `
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: platform}
data: {username: cm9ib3Q=, password: aHVudGVyMg==}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: base}
data: {password: aHVudGVyMi1zZWNyZXQ=, values.yaml: c2VjcmV0OiBodW50ZXIyLXNlY3JldA==}
`

// Whoever opens a pull request chooses addresses, and not who is told passwords.
func TestPlanSendsNoCredentialsWhereAChangeSays(t *testing.T) {
	r := newPlannedRepository(t)
	repository := func(name, address, secret string) string {
		return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: %s, namespace: platform}\nspec: {url: %q, interval: 1h, passCredentials: true%s}\n---\n", name, address, secret)
	}
	good := newAskedServer(t, r.charts)
	evil := newAskedServer(t, r.charts)
	const secretRef = ", secretRef: {name: token}"
	live := r.files["base/charts.yaml"]
	r.files["base/charts.yaml"] = repository("charts", good.URL, secretRef)
	server := r.deployed(apitest.Parse(t, tokenOfTheCluster)...)
	const basic = "Basic cm9ib3Q6aHVudGVyMg=="

	r.release("base/gateway", "1.1.0", "hello")
	if code, out, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER"); code != exitBlocked || strings.Contains(out, "not known") || strings.Contains(out, "not sent") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	if got := good.asked(); len(got) == 0 || !strings.HasSuffix(got[0], basic) {
		t.Fatalf("the source of the cluster was asked %q: it has credentials", got)
	}
	for reason, c := range map[string]struct{ charts, note string }{
		"another address": {repository("charts", evil.URL, secretRef), "the credentials of HelmRepository platform/charts are not sent: HelmRepository platform/charts of the cluster is at "},
		"another source": {
			repository("charts", good.URL, secretRef) + repository("new", evil.URL, secretRef),
			"the credentials of HelmRepository platform/new are not sent: the cluster has no HelmRepository platform/new (--trust-sources sends them)",
		},
	} {
		r.files["base/charts.yaml"] = c.charts
		r.release("base/gateway", "1.1.0", "hello")
		if reason == "another source" {
			r.files["base/gateway.yaml"] = strings.Replace(r.files["base/gateway.yaml"], "name: charts", "name: new", 1)
		}
		before := len(evil.asked())
		code, out, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER")
		if code != exitBlocked || !strings.Contains(out, c.note) {
			t.Errorf("%s: exit code %d: %s%s", reason, code, out, errOut)
		}
		asked := evil.asked()[before:]
		if len(asked) == 0 {
			t.Errorf("%s: it was not asked at all", reason)
		}
		for _, request := range asked {
			if strings.Contains(request, " ") {
				t.Errorf("%s: it was sent %q", reason, request)
			}
		}
		before = len(evil.asked())
		if _, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER --trust-sources"); strings.Contains(out, "not sent") {
			t.Errorf("%s: %s", reason, out)
		}
		if got := evil.asked()[before:]; len(got) == 0 || !strings.HasSuffix(got[0], basic) {
			t.Errorf("%s: with --trust-sources it was asked %q", reason, got)
		}
	}
	// Credentials of the cluster for a source that had none.
	r.files["base/charts.yaml"] = live
	r.release("base/gateway", "1.1.0", "hello")
	server = r.deployed(apitest.Parse(t, tokenOfTheCluster)...)
	r.files["base/charts.yaml"] = strings.Replace(live, "interval: 1h", "interval: 1h, secretRef: {name: token}", 1)
	r.release("base/gateway", "1.1.0", "changed")
	if _, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER"); !strings.Contains(out, "has another spec.secretRef (--trust-sources sends them)") {
		t.Errorf("a Secret of late: %s", out)
	}
}

// hostileChart shows what it is given in every way that it knows.
var hostileChart = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: hostile\nversion: 1.0.0\n",
	"templates/all.yaml": `{{ $v := .Values.secret | default "hello" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  value: {{ $v | quote }}
  base64: {{ $v | b64enc | quote }}
  reversed: {{ $r := "" }}{{ range $c := splitList "" $v }}{{ $r = print $c $r }}{{ end }}{{ $r | quote }}
  sha256: {{ $v | sha256sum | quote }}
  length: {{ $v | len | quote }}
  bit: {{ hasPrefix "hunter" $v | quote }}
`,
}

// leaks are the ways in which the hostile chart could tell hunter2-secret.
var leaks = []string{"hunter2", base64.StdEncoding.EncodeToString([]byte("hunter2-secret")), "terces", "93848fb7", "length: 14", "\"14\"", "length: 5 -> 14", "bit: true"}

func TestPlanShowsNoValuesOfSecrets(t *testing.T) {
	r := newPlannedRepository(t)
	if err := r.charts.AddFiles(hostileChart); err != nil {
		t.Fatal(err)
	}
	hostile := func(name string) {
		r.files[name] = strings.Replace(r.files[name], "chart: configmap", "chart: hostile", 1)
	}
	hostile("base/gateway.yaml")
	server := r.deployed(apitest.Parse(t, tokenOfTheCluster)...)
	for reason, from := range map[string]string{
		"at a path": "{kind: Secret, name: db, valuesKey: password, targetPath: secret}",
		"whole":     "{kind: Secret, name: db}",
		"as it is":  "{kind: Secret, name: db, valuesKey: password, targetPath: secret, literal: true}",
	} {
		r.release("base/gateway", "1.0.0", "hello")
		hostile("base/gateway.yaml")
		r.files["base/gateway.yaml"] = strings.Replace(r.files["base/gateway.yaml"], "  values:", "  valuesFrom: ["+from+"]\n  values:", 1)
		for _, output := range []string{"", "-o json", "-o yaml", "-o markdown"} {
			code, out, errOut := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER "+output)
			if code != exitBlocked || !strings.Contains(out, "data.value: hello -> stand-in-") && output == "" || !strings.Contains(out, "stand-in-") || !strings.Contains(out, "values of Secrets are not shown") {
				t.Errorf("%s %s: exit code %d: %s%s", reason, output, code, out, errOut)
			}
			for _, leak := range leaks {
				if strings.Contains(out+errOut, leak) {
					t.Errorf("%s %s: it shows %q:\n%s", reason, output, leak, out)
				}
			}
		}
		if _, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER --show-secrets"); !strings.Contains(out, "hello -> hunter2-secret") || !strings.Contains(out, "do not show this to whoever may not read them") {
			t.Errorf("%s: --show-secrets does not: %s", reason, out)
		}
	}
	// What refuses is said, and neither quoted nor taken for a failure of the release.
	r.files["base/gateway.yaml"] = strings.Replace(r.files["base/gateway.yaml"], "chart: hostile", "chart: refusing", 1)
	refusing := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: refusing\nversion: 1.0.0\n", "templates/all.yaml": `{{ fail (printf "%s is none of ours" .Values.secret) }}`,
	}
	if err := r.charts.AddFiles(refusing); err != nil {
		t.Fatal(err)
	}
	_, out, _ := r.plan(server, terminal.Screen{}, "plan --from-dir FOLDER")
	if strings.Contains(out, "hunter2") || !strings.Contains(out, "--show-secrets renders it with the true ones") || strings.Contains(out, "has failed") {
		t.Errorf("a chart that refuses: %s", out)
	}
}

// What is deployed holds the true values, and diff does not show them.
func TestDiffShowsNoValuesOfSecrets(t *testing.T) {
	r := newPlannedRepository(t)
	if err := r.charts.AddFiles(hostileChart); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(r.files["base/gateway.yaml"], "chart: configmap", "chart: hostile", 1)
	text = strings.Replace(text, "  values:", "  valuesFrom: [{kind: Secret, name: db, valuesKey: password, targetPath: secret}]\n  values:", 1)
	r.files["base/gateway.yaml"] = text
	server := r.deployed(apitest.Parse(t, tokenOfTheCluster+`---
apiVersion: v1
kind: ConfigMap
metadata: {name: gateway, namespace: base, uid: u, labels: {helm.toolkit.fluxcd.io/name: gateway, helm.toolkit.fluxcd.io/namespace: hunter2-secret}}
data: {value: hunter2-secret, base64: aHVudGVyMi1zZWNyZXQ=, reversed: terces-2retnuh, sha256: 93848fb777ef715ea302425d271c5039a9261bcc615a2ada2dd942c1aa3f0aa3, length: "5", bit: "true"}
`)...)
	for _, output := range []string{"", "-o json", "-o yaml"} {
		code, out, errOut := r.plan(server, terminal.Screen{}, "diff base "+output)
		if code != exitBlocked || !strings.Contains(out, "helm.toolkit.fluxcd.io/namespace") || !strings.Contains(out, "data.length") || strings.Contains(out, "data.value") || strings.Contains(out, "data.bit") || !strings.Contains(out, "***") {
			t.Errorf("%s: exit code %d: drift beside is not shown: %s%s", output, code, out, errOut)
		}
		for _, leak := range leaks {
			if strings.Contains(out+errOut, leak) {
				t.Errorf("%s: it shows %q:\n%s", output, leak, out)
			}
		}
	}
	if _, out, _ := r.plan(server, terminal.Screen{}, "diff base --show-secrets"); !strings.Contains(out, "hunter2-secret") {
		t.Errorf("--show-secrets does not: %s", out)
	}
}

// hostileFolder names whatever can be named that something could be asked of, or run.
func hostileFolder(t *testing.T, address, marks string) string {
	t.Helper()
	dir := t.TempDir()
	host := strings.TrimPrefix(address, "http://")
	sources := ""
	for kind, spec := range map[string]string{
		"HelmRepository": "url: " + address, "OCIRepository": "insecure: true, url: 'oci://" + host + "/chart'",
		"GitRepository": "url: " + address + "/x.git", "Bucket": "bucketName: b, insecure: true, endpoint: '" + host + "'",
	} {
		sources += fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: %s\nmetadata: {name: s, namespace: base}\nspec: {interval: 1h, %s, secretRef: {name: s}, proxySecretRef: {name: proxy}}\n---\n", kind, spec)
	}
	sources += "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: oci, namespace: base}\nspec: {interval: 1h, type: oci, insecure: true, url: 'oci://" + host + "/charts', secretRef: {name: s}}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: base}\nstringData: {username: a, password: b}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: proxy, namespace: base}\nstringData: {address: '" + address + "'}\n"
	releases := ""
	for name, chart := range map[string]string{
		"http": "chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: s}}}", "oci": "chart: {spec: {chart: c, sourceRef: {kind: HelmRepository, name: oci}}}",
		"artifact": "chartRef: {kind: OCIRepository, name: s}", "git": "chart: {spec: {chart: ./c, sourceRef: {kind: GitRepository, name: s}}}",
		"bucket": "chart: {spec: {chart: ./c, sourceRef: {kind: Bucket, name: s}}}", "own": "chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: addons, namespace: flux-system}}}",
	} {
		releases += fmt.Sprintf("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: %s, namespace: base}\nspec: {interval: 1h, %s, kubeConfig: {secretRef: {name: s}}}\n---\n", name, chart)
	}
	config := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: '" + address + "'}}]\n" +
		"users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: kustomize, interactiveMode: Never}}}]\n"
	for name, text := range map[string]string{
		"layers.yaml": "apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: base}\nspec: {version: 1.0.0, source: {name: addons, namespace: flux-system, path: ./base}}\n---\n" +
			"apiVersion: kraan.io/v1alpha1\nkind: AddonsLayer\nmetadata: {name: built}\nspec: {version: 1.0.0, source: {name: addons, namespace: flux-system, path: ./built}}\n",
		"base/sources.yaml": sources, "base/releases.yaml": releases,
		"built/kustomization.yaml":  "resources: [" + address + "/x.yaml, 'git::" + address + "/x.git', a.yaml]\n",
		"built/a.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: base}\n",
		"chart/Chart.yaml":          "apiVersion: v2\nname: own\nversion: 1.0.0\n",
		"chart/templates/a.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ getHostByName \"" + strings.Split(host, ":")[0] + "\" | quote }}}\n",
		"chart/values.schema.json":  `{"$ref": "` + address + `/schema.json"}`,
		"kubeconfig":                config,
		".kube/config":              config,
		".sops.yaml":                "creation_rules: [{pgp: A}]\n",
		".gitattributes":            "* filter=mark diff=mark\n",
		".gitmodules":               "[submodule \"x\"]\n\tpath = x\n\turl = " + address + "/x.git\n\tupdate = !touch " + marks + "/submodule\n",
		".git/config":               "[core]\n\tfsmonitor = touch " + marks + "/fsmonitor\n\thooksPath = hooks\n\tsshCommand = touch " + marks + "/ssh\n[filter \"mark\"]\n\tsmudge = touch " + marks + "/smudge\n[remote \"origin\"]\n\turl = " + address + "/x.git\n",
		".git/HEAD":                 "ref: refs/heads/main\n",
		".git/hooks/post-checkout":  "#!/bin/sh\ntouch " + marks + "/hook\n",
		".git/objects/info/keep":    "",
		".git/refs/heads/keep.lock": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Without a cluster there is nothing to ask, and never anything to run: whatever a
// folder names, nobody is asked, and nothing is run.
func TestOfflineNothingIsAskedAndNothingIsRun(t *testing.T) {
	evil := newAskedServer(t, nil)
	var dials sync.WaitGroup
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan string, 100)
	dials.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- connection.RemoteAddr().String()
			_ = connection.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); dials.Wait() })

	marks, programs := t.TempDir(), t.TempDir()
	for _, name := range []string{"git", "helm", "kustomize", "gpg", "gpg2", "sops", "ssh", "sh", "bash", "age", "kubectl", "docker-credential-desktop", "docker-credential-evil", "aws", "gcloud", "az"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n: > "+marks+"/"+name+"\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{evil.URL, "http://" + listener.Addr().String()} {
		folder := hostileFolder(t, address, marks)
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, ".docker"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".docker", "config.json"), []byte(`{"credsStore": "evil", "credHelpers": {"`+strings.TrimPrefix(address, "http://")+`": "evil"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Chdir(folder)
		for name, value := range map[string]string{
			"PATH": programs, "HOME": home, "XDG_CACHE_HOME": filepath.Join(home, "cache"), "HTTP_PROXY": address, "HTTPS_PROXY": address, "http_proxy": address, "https_proxy": address, "NO_PROXY": "",
			"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": strings.TrimPrefix(strings.TrimPrefix(address, "http://127.0.0.1:"), "http://"),
			"GIT_SSH_COMMAND": "touch " + marks + "/ssh-command", "GIT_EXTERNAL_DIFF": "git",
		} {
			t.Setenv(name, value)
		}
		for _, args := range []string{
			"lint " + folder, "lint " + folder + " --k8s 1.34", "lint . --k8s 1.34 -o json",
			"plan --offline --from-dir " + folder, "plan --offline --from-dir . --k8s 1.34 -o markdown", "plan --offline --from-dir . --k8s 1.34 --show-secrets",
			"plan --offline --from-git .", "plan --offline --from-git --upload-pack=touch", "plan --offline --from-git ext::git", "plan --offline --from-git " + address + "/x.git",
		} {
			t.Setenv("KUBECONFIG", filepath.Join(folder, "kubeconfig"))
			code, out, errOut := offline(t, args)
			if strings.HasPrefix(args, "plan --offline --from-dir") && !strings.Contains(args, "-o") && !strings.Contains(out, "plan --offline opens no connection, unless --fetch-charts is given") {
				t.Errorf("%s: exit code %d, and it is not said why charts are not known: %s%s", args, code, out, errOut)
			}
			if strings.Contains(args, "--k8s") && !strings.Contains(args, "-o json") && strings.HasPrefix(args, "lint") && !strings.Contains(out, "lint opens no connection, unless --fetch-charts is given") {
				t.Errorf("%s: exit code %d, and it is not said why charts are not known: %s%s", args, code, out, errOut)
			}
		}
	}
	if got := evil.asked(); len(got) > 0 {
		t.Errorf("a server was asked %q", got)
	}
	select {
	case from := <-accepted:
		t.Errorf("a connection was opened from %s", from)
	default:
	}
	entries, err := os.ReadDir(marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s was run", entry.Name())
	}
}

// offline runs a command line as it is.
func offline(t *testing.T, args string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr strings.Builder
	with := newTool(&stdout, &stderr)
	code = with.run(t.Context(), strings.Fields(args))
	return code, stdout.String(), stderr.String()
}
