// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/layers"
)

// env returns the environment of NAME=VALUE pairs.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, found := strings.CutPrefix(pair, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestFlagDefaults(t *testing.T) {
	o, err := parseFlags(nil, env())
	if err != nil {
		t.Fatal(err)
	}
	type defaults struct {
		Kubeconfig, Metrics, Health, Namespace, LeaderNamespace, CacheDir, CacheSize, ArtifactMaxSize, LogLevel, LogEncoding string
		Sync                                                                                                                 time.Duration
		Concurrent, MaxPrunePercent                                                                                          int
		Leader, Selects, Version                                                                                             bool
	}
	got := defaults{
		Kubeconfig: o.kubeconfig, Metrics: o.metricsAddr, Health: o.healthAddr, Namespace: o.runtimeNamespace,
		LeaderNamespace: o.leaderNamespace, CacheDir: o.cacheDir, CacheSize: o.cacheSize.String(), ArtifactMaxSize: o.artifactMaxSize.String(),
		LogLevel: o.log.LogLevel, LogEncoding: o.log.LogEncoding, Sync: o.syncPeriod, Concurrent: o.concurrent,
		MaxPrunePercent: o.maxPrunePercent, Leader: o.leader.Enable, Selects: o.selector != nil, Version: o.showVersion,
	}
	want := defaults{
		Metrics: ":8080", Health: ":9440", Namespace: "strata-system", LeaderNamespace: "strata-system",
		CacheDir: "/tmp/strata/artifacts", CacheSize: "2Gi", ArtifactMaxSize: "50Mi", LogLevel: "info", LogEncoding: "json",
		Sync: time.Minute, Concurrent: 10, MaxPrunePercent: 50,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestFlagValues(t *testing.T) {
	tests := map[string]struct {
		args string
		env  func(string) string
		got  func(*options) any
		want any
	}{
		"namespace of the environment":  {"", env("RUNTIME_NAMESPACE=addons"), func(o *options) any { return o.runtimeNamespace }, "addons"},
		"namespace of the flag":         {"--runtime-namespace=mine", env("RUNTIME_NAMESPACE=addons"), func(o *options) any { return o.runtimeNamespace }, "mine"},
		"lease where it runs":           {"--enable-leader-election", env("RUNTIME_NAMESPACE=addons"), func(o *options) any { return o.leaderNamespace }, "addons"},
		"lease elsewhere":               {"--enable-leader-election --leader-election-namespace=leases", env(), func(o *options) any { return o.leaderNamespace }, "leases"},
		"sync period":                   {"--sync-period 90s", env(), func(o *options) any { return o.syncPeriod }, 90 * time.Second},
		"artifact hosts":                {"--artifact-hosts=a.b.svc,127.0.0.1:80", env(), func(o *options) any { return len(o.artifactNames) }, 2},
		"concurrent":                    {"--concurrent=1", env(), func(o *options) any { return o.concurrent }, 1},
		"guard turned off":              {"--max-prune-percent=0", env(), func(o *options) any { return o.maxPrunePercent }, 0},
		"qps":                           {"--kube-api-qps=7", env(), func(o *options) any { return o.client.QPS }, float32(7)},
		"burst":                         {"--kube-api-burst=8", env(), func(o *options) any { return o.client.Burst }, 8},
		"level and encoding":            {"--log-level=debug --log-encoding=console", env(), func(o *options) any { return o.log.LogLevel + o.log.LogEncoding }, "debugconsole"},
		"sizes":                         {"--artifact-max-size=1Gi --artifact-cache-size=1Gi", env(), func(o *options) any { return o.artifactMaxSize.Value() + o.cacheSize.Value() }, int64(2 << 30)},
		"selector":                      {"--watch-label-selector=team=a,stage!=test", env(), func(o *options) any { return o.selector.String() }, "stage!=test,team=a"},
		"metrics and health turned off": {"--metrics-addr=0 --health-addr=0", env(), func(o *options) any { return o.metricsAddr + o.healthAddr }, "00"},
		"any free port twice":           {"--metrics-addr=127.0.0.1:0 --health-addr=127.0.0.1:0", env(), func(o *options) any { return o.healthAddr }, "127.0.0.1:0"},
		"kubeconfig":                    {"--kubeconfig=/a/b", env(), func(o *options) any { return o.kubeconfig }, "/a/b"},
		"account":                       {"--default-service-account=layers.v1", env(), func(o *options) any { return o.defaultServiceAccount }, "layers.v1"},
		"no account":                    {"", env(), func(o *options) any { return o.defaultServiceAccount }, ""},
		"references":                    {"--no-cross-namespace-refs", env(), func(o *options) any { return o.noCrossNamespaceRefs }, true},
		"references as in Flux":         {"", env(), func(o *options) any { return o.noCrossNamespaceRefs }, false},
		"open namespaces":               {"--no-cross-namespace-refs --source-namespaces=team-a,team-b", env(), func(o *options) any { return strings.Join(o.sourceNamespaces, " ") }, "team-a team-b"},
		"accounts required":             {"--require-service-account", env(), func(o *options) any { return o.requireServiceAccount }, true},
		"plug-ins":                      {"--plugin-processes=.", env(), func(o *options) any { return o.pluginFolder }, "."},
		"ranges of clusters":            {"--allowed-cluster-ranges=10.0.0.0/8,::1/128 --allowed-cluster-ranges=192.0.2.1", env(), func(o *options) any { return fmt.Sprint(o.reach.Ranges) }, "[10.0.0.0/8 ::1/128 192.0.2.1/32]"},
		"names of clusters":             {"--allowed-cluster-hosts=api.example.com,*.example.org", env(), func(o *options) any { return fmt.Sprint(o.reach.Hosts) }, "[api.example.com *.example.org]"},
		"clusters anywhere":             {"", env(), func(o *options) any { return len(o.reach.Ranges) + len(o.reach.Hosts) }, 0},
		"kinds of layers":               {"--layer-kinds=configmaps,issuers.cert-manager.io", env(), func(o *options) any { return o.layerKinds }, layers.LayerKinds{{Resource: "configmaps"}, {Group: "cert-manager.io", Resource: "issuers"}}},
		"no further kinds":              {"--layer-kinds=", env(), func(o *options) any { return o.layerKinds }, layers.LayerKinds{}},
		"any kinds":                     {"", env(), func(o *options) any { return o.layerKinds }, layers.LayerKinds(nil)},
		"reserved accounts":             {"--reserved-service-accounts=robot,team-a/admin", env(), func(o *options) any { return o.reservedAccounts }, []string{"robot", "team-a/admin"}},
		"accounts of Flux":              {"", env(), func(o *options) any { return o.reservedAccounts }, accounts.OfFlux},
		"own name":                      {"--own-name=blue-strata", env(), func(o *options) any { return o.ownName }, "blue-strata"},
		"events":                        {"--events-addr=http://events/", env(), func(o *options) any { return o.eventsAddr }, "http://events/"},
		"profiles":                      {"--pprof --metrics-addr=127.0.0.1:8080", env(), func(o *options) any { return o.pprof }, true},
		"profiles at localhost":         {"--pprof --metrics-addr=localhost:8080", env(), func(o *options) any { return o.pprof }, true},
		"profiles at loopback of IPv6":  {"--pprof --metrics-addr=[::1]:8080", env(), func(o *options) any { return o.pprof }, true},
		"profiles for those who may":    {"--pprof --metrics-secure", env(), func(o *options) any { return o.pprof && o.metricsSecure }, true},
		"metrics for everybody":         {"", env(), func(o *options) any { return o.metricsSecure }, false},
		"certificate":                   {"--metrics-secure --metrics-cert-dir=/certs", env(), func(o *options) any { return o.metricsCertDir }, "/certs"},
		"no profiles":                   {"", env(), func(o *options) any { return o.pprof }, false},
		"version":                       {"--version", env(), func(o *options) any { return o.showVersion }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parseFlags(strings.Fields(test.args), test.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.got(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.args, diff)
			}
		})
	}
}

func TestFlagMistakes(t *testing.T) {
	tests := map[string]string{
		"--unknown":               "unknown flag: --unknown",
		"--concurent=3":           "unknown flag",
		"run":                     `"run" is no flag`,
		"--concurrent=0":          "--concurrent is 0: it must be at least 1",
		"--concurrent=many":       "--concurrent",
		"--sync-period=10ms":      "--sync-period is 10ms: it must be at least 1s",
		"--sync-period=-1m":       "--sync-period",
		"--max-prune-percent=101": "--max-prune-percent is 101: it must be from 0 to 100",
		"--max-prune-percent=-1":  "--max-prune-percent",
		"--runtime-namespace=":    "--runtime-namespace is empty",
		"--artifact-cache-dir=":   "--artifact-cache-dir is empty",
		"--default-service-account=team-a/deployer":                   `--default-service-account is "team-a/deployer": it must be the name of a ServiceAccount, without its namespace`,
		"--default-service-account=a:b":                               "--default-service-account",
		"--no-cross-namespace-refs=perhaps":                           "--no-cross-namespace-refs",
		"--plugin-processes=none":                                     "--plugin-processes is \"none\": it must be a folder",
		"--source-namespaces=team-a":                                  "--source-namespaces is given without --no-cross-namespace-refs",
		"--no-cross-namespace-refs --source-namespaces=team-a,team:b": `--source-namespaces has "team:b"`,
		"--artifact-max-size=0":                                       "--artifact-max-size is 0: it must be more than 0",
		"--artifact-max-size=large":                                   `"large" is no size such as 50Mi`,
		"--artifact-max-size=1e99999999":                              `"1e99999999" is no size such as 50Mi: its exponent has more than two digits`,
		"--artifact-cache-size=10Mi":                                  "--artifact-cache-size is 10Mi, less than --artifact-max-size, which is 50Mi",
		"--pprof --metrics-addr=0":                                    "--pprof is given and --metrics-addr is 0: the profiles are served there",
		"--pprof":                                                     "--pprof is given without --metrics-secure, and --metrics-addr is :8080: give --metrics-secure, or a loopback address such as 127.0.0.1:8080",
		"--pprof --metrics-addr=0.0.0.0:8080":                         "--pprof is given without --metrics-secure",
		"--pprof --metrics-addr=127.0.0.1.example.com:8080":           "--pprof is given without --metrics-secure",
		"--pprof --metrics-addr=[::]:8080":                            "--pprof is given without --metrics-secure",
		"--metrics-cert-dir=/certs":                                   "--metrics-cert-dir is given without --metrics-secure",
		"--metrics-addr=:9440":                                        "--metrics-addr and --health-addr are both :9440",
		"--events-addr=events:80":                                     "--events-addr is no URL to post events to: it must begin with http:// or https://",
		"--leader-election-namespace=a":                               "--leader-election-namespace is given without --enable-leader-election",
		"--log-encoding=xml":                                          `--log-encoding is "xml": it must be json or console`,
		"--log-level=loud":                                            `--log-level is "loud": it must be trace, debug, info or error`,
		"--watch-label-selector=a=b=c":                                "--watch-label-selector",
		"--enable-leader-election --concurrent=0 now":                 `"now" is no flag`,
		"--allowed-cluster-ranges=10.0.0.1/8":                         `--allowed-cluster-ranges: "10.0.0.1/8" is no range of addresses: did you mean 10.0.0.0/8?`,
		"--allowed-cluster-ranges=example.com":                        `--allowed-cluster-ranges: "example.com" is no range of addresses such as 10.0.0.0/8 or fd00::/8`,
		"--allowed-cluster-ranges=::ffff:127.0.0.0/104":               "--allowed-cluster-ranges: ",
		"--allowed-cluster-ranges=fe80::1%eth0":                       "--allowed-cluster-ranges: ",
		"--allowed-cluster-hosts=https://example.com":                 `--allowed-cluster-hosts: "https://example.com" is no name of a host`,
		"--allowed-cluster-hosts=a.*.example.com":                     "--allowed-cluster-hosts: ",
		"--artifact-hosts=":                                           "--artifact-hosts: it is empty",
		"--artifact-hosts=http://x":                                   "--artifact-hosts: \"http://x\" is no host",
		"--layer-kinds=Secret,s":                                      `--layer-kinds: "Secret" is no kind such as configmaps`,
		"--reserved-service-accounts=a:b":                             `--reserved-service-accounts: "a:b" is no name of a ServiceAccount`,
		"--reserved-service-accounts=a/b/c":                           "--reserved-service-accounts",
		"--own-name=":                                                 "--own-name is",
		"--default-service-account=helm-controller":                   `--default-service-account is "helm-controller", which is one of --reserved-service-accounts`,
	}
	for args, want := range tests {
		t.Run(args, func(t *testing.T) {
			if _, err := parseFlags(strings.Fields(args), env()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q in it", err, want)
			}
		})
	}
}
