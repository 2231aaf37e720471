// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/strata-project/strata/internal/accounts"
	"github.com/strata-project/strata/internal/kubeconfig"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/signals"
	"github.com/strata-project/strata/internal/terminal"
)

// defaultArtifactHost is source-controller's Service where Flux installs it.
const defaultArtifactHost = "source-controller.flux-system.svc"

// defaultNamespace is where the controller runs unless it is told otherwise.
const defaultNamespace = "strata-system"

// options are what the flags and the environment say. Their names are those
// that users of Flux and of Kraan know.
type options struct {
	kubeconfig       string
	runtimeNamespace string
	leaderNamespace  string
	ownName          string
	showVersion      bool
	looks
	served
	artifacts
	tenancy
	remotes
	// pluginFolder holds the programs of CapabilityProviders; empty where none is run.
	pluginFolder string
	// pluginImages are those whose programs may be fetched, and pluginCache is where they are kept.
	pluginImages []string
	pluginCache  string
	// pluginCredentials has what processes need outside of clusters; empty where none hands anything out.
	pluginCredentials string

	client fluxclient.Options
	log    logger.Options
	leader leaderelection.Options
}

// looks say which layers are looked at, how often, and how many side by side.
type looks struct {
	syncPeriod      time.Duration
	concurrent      int
	maxPrunePercent int
	selectorText    string
	selector        labels.Selector
}

// served is what is told, and where.
type served struct {
	metricsAddr    string
	metricsSecure  bool
	metricsCertDir string
	healthAddr     string
	eventsAddr     string
	pprof          bool
}

// artifacts say where artifacts come from and how many are kept.
type artifacts struct {
	cacheDir        string
	cacheSize       resource.Quantity
	artifactMaxSize resource.Quantity
	artifactNames   []string
	artifactHosts   *repos.Hosts
}

// tenancy is what layers may hold, and as whom.
type tenancy struct {
	defaultServiceAccount string
	requireServiceAccount bool
	reservedAccounts      []string
	noCrossNamespaceRefs  bool
	noSecretsInNames      bool
	sourceNamespaces      []string
	kindNames             []string
	layerKinds            layers.LayerKinds
}

// remotes are what kubeconfigs of other clusters may hold, and where these may be.
type remotes struct {
	allow         kubeconfig.Allow
	clusterRanges []string
	clusterHosts  []string
	reach         reach.Allowed
}

// parseFlags reads the flags; an error says which of them is wrong.
func parseFlags(args []string, getenv func(string) string) (*options, error) {
	o := &options{artifacts: artifacts{
		cacheSize:       *resource.NewQuantity(repos.DefaultMaxBytes, resource.BinarySI),
		artifactMaxSize: *resource.NewQuantity(repos.DefaultMaxArtifact, resource.BinarySI),
	}}
	flags := pflag.NewFlagSet("strata", pflag.ContinueOnError)
	flags.Usage = func() {
		environment := func(name string) (string, bool) { value := getenv(name); return value, value != "" }
		width := terminal.Of(os.Stderr, environment).Width
		for line := range strings.Lines(flags.FlagUsages()) {
			fmt.Fprintln(os.Stderr, terminal.Brief(strings.TrimRight(line, "\n"), width))
		}
	}
	flags.SortFlags = false
	namespace := getenv("RUNTIME_NAMESPACE")
	if namespace == "" {
		namespace = defaultNamespace
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; without it KUBECONFIG, the cluster it runs in, and the user's own are tried")
	flags.StringVar(&o.runtimeNamespace, "runtime-namespace", namespace, "namespace of sources that name none; RUNTIME_NAMESPACE gives the default")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "namespace of the leader's lease; defaults to --runtime-namespace")
	flags.StringVar(
		&o.ownName,
		"own-name",
		layers.DefaultOwnName,
		"name with which the controller's own Deployment, roles and bindings begin, which no layer writes",
	)
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	for _, bind := range []func(*pflag.FlagSet){
		o.looks.bind, o.served.bind, o.artifacts.bind, o.tenancy.bind, o.remotes.bind, o.bindPlugins, o.client.BindFlags, o.log.BindFlags, o.leader.BindFlags,
	} {
		bind(flags)
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("%q is no flag", strings.Join(rest, " "))
	}
	if flags.Changed("layer-kinds") {
		var err error
		if o.layerKinds, err = layers.ParseLayerKinds(o.kindNames); err != nil {
			return nil, fmt.Errorf("--layer-kinds: %w", err)
		}
	}
	return o, o.check()
}

func (o *looks) bind(flags *pflag.FlagSet) {
	flags.IntVar(&o.concurrent, "concurrent", 10, "how many layers are looked at side by side")
	flags.IntVar(
		&o.maxPrunePercent,
		"max-prune-percent",
		50,
		"how many percent of a layer's releases one revision may remove without being allowed; 0 turns the guard off",
	)
	flags.StringVar(
		&o.selectorText,
		"watch-label-selector",
		"",
		"look after layers, RemoteClusters, HelmApplications and ApplicationBundles with these labels only; the others are seen and respected",
	)
	flags.DurationVar(
		&o.syncPeriod,
		"sync-period",
		time.Minute,
		"how often layers that name no interval are looked at although nothing happened, and the cluster is asked for its version",
	)
}

func (o *served) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.metricsAddr, "metrics-addr", ":8080", "address of the metrics; 0 turns them off")
	flags.BoolVar(
		&o.metricsSecure,
		"metrics-secure",
		false,
		"serve metrics over TLS, and to those alone whom the API server knows by their token and lets get the path /metrics",
	)
	flags.StringVar(
		&o.metricsCertDir,
		"metrics-cert-dir",
		"",
		"folder with the certificate of --metrics-secure, as tls.crt and tls.key; without it each start makes a new one that nobody has signed",
	)
	flags.StringVar(&o.healthAddr, "health-addr", ":9440", "address of /healthz and /readyz; 0 turns them off")
	flags.StringVar(&o.eventsAddr, "events-addr", "", "URL of Flux's notification-controller, which is told what happens to layers; empty turns that off")
	flags.BoolVar(&o.pprof, "pprof", false, "serve Go's profiles below /debug/pprof/ at --metrics-addr; without --metrics-secure that must be a loopback address")
}

func (o *artifacts) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.cacheDir, "artifact-cache-dir", "/tmp/strata/artifacts", "folder of the artifact cache, of one process alone")
	flags.Var(quantity{&o.cacheSize}, "artifact-cache-size", "how much the artifact cache may hold, unpacked")
	flags.Var(quantity{&o.artifactMaxSize}, "artifact-max-size", "how large one artifact may be, packed and unpacked")
	flags.StringSliceVar(
		&o.artifactNames,
		"artifact-hosts",
		[]string{defaultArtifactHost},
		"hosts that artifacts of sources are fetched from, with or without a port: Services as NAME.NAMESPACE.svc; * stands for every host",
	)
}

func (o *tenancy) bind(flags *pflag.FlagSet) {
	flags.StringVar(
		&o.defaultServiceAccount,
		"default-service-account",
		"",
		"write the objects of layers that name no serviceAccountName as this account of their source's namespace, and not as the controller",
	)
	flags.BoolVar(
		&o.noCrossNamespaceRefs,
		"no-cross-namespace-refs",
		false,
		"refuse sources outside --runtime-namespace and --source-namespaces, clusters outside the namespace of the source, and objects of layers that refer to another namespace than their own",
	)
	flags.BoolVar(
		&o.noSecretsInNames,
		"no-secrets-in-names",
		false,
		"refuse objects of layers whose names are made of values of Secrets, which statuses and messages tell",
	)
	flags.StringSliceVar(
		&o.sourceNamespaces,
		"source-namespaces",
		nil,
		"further namespaces whose sources, and with them accounts, layers may name under --no-cross-namespace-refs",
	)
	flags.BoolVar(
		&o.requireServiceAccount,
		"require-service-account",
		false,
		"refuse layers that no account writes: neither spec.serviceAccountName nor --default-service-account names one",
	)
	flags.StringSliceVar(
		&o.kindNames,
		"layer-kinds",
		nil,
		"further kinds that layers without an account may hold on this cluster, such as configmaps or clusterissuers.cert-manager.io; * is every kind, and without the flag every kind may be held that the controller may write",
	)
	flags.StringSliceVar(
		&o.reservedAccounts,
		"reserved-service-accounts",
		accounts.OfFlux,
		"accounts, by NAME in every namespace or by NAMESPACE/NAME, that no layer and no release of one may act as, beside the controller's own",
	)
}

func (o *options) bindPlugins(flags *pflag.FlagSet) {
	flags.StringVar(
		&o.pluginFolder,
		"plugin-processes",
		"",
		"folder with the programs of CapabilityProviders, each in a file sha256-HEX; they run as processes of the controller's user, so that only programs belong there that are trusted as the controller is. Without it none is run as a process",
	)
	flags.StringSliceVar(
		&o.pluginImages,
		"plugin-process-images",
		nil,
		"registries as HOST, or repositories as HOST/PATH, whose images may run as processes, too, where --plugin-processes is given: they are trusted as the controller is",
	)
	flags.StringVar(
		&o.pluginCredentials,
		"plugin-process-credentials",
		"",
		"folder with a folder for each CapabilityProvider, by its name, whose process hands out what is outside of clusters, with the credentials for that. Without it no process hands anything out",
	)
	flags.StringVar(
		&o.pluginCache,
		"plugin-cache",
		filepath.Join(os.TempDir(), "strata-plugins"),
		"folder for programs that were fetched, and for the signatures of images; it is the controller's own",
	)
}

// checkPlugins refuses what is no folder, and images without one.
func (o *options) checkPlugins() error {
	if o.pluginFolder == "" {
		if len(o.pluginImages) > 0 || o.pluginCredentials != "" {
			return errors.New("--plugin-process-images and --plugin-process-credentials need --plugin-processes")
		}
		return nil
	}
	if info, err := os.Stat(o.pluginFolder); err != nil || !info.IsDir() {
		return fmt.Errorf("--plugin-processes is %q: it must be a folder", o.pluginFolder)
	}
	return nil
}

func (o *remotes) bind(flags *pflag.FlagSet) {
	flags.BoolVar(&o.allow.Exec, "insecure-kubeconfig-exec", false, "let the kubeconfig of a RemoteCluster run a program for credentials")
	flags.BoolVar(&o.allow.Files, "insecure-kubeconfig-files", false, "let the kubeconfig of a RemoteCluster name files of the controller")
	flags.BoolVar(&o.allow.Insecure, "insecure-kubeconfig-tls", false, "let the kubeconfig of a RemoteCluster leave the API server's certificate unchecked")
	flags.StringSliceVar(
		&o.clusterRanges,
		"allowed-cluster-ranges",
		nil,
		"ranges of addresses, such as 10.0.0.0/8, in which API servers of RemoteClusters and their proxies must be; without any they may be everywhere. Loopback, link-local and other special addresses are refused unless a range is of such addresses alone",
	)
	flags.StringSliceVar(
		&o.clusterHosts,
		"allowed-cluster-hosts",
		nil,
		"names, such as api.example.com or *.example.com, that API servers of RemoteClusters behind a proxy may have; without any, and without --allowed-cluster-ranges, they may have all",
	)
}

// check refuses values that make no sense, or not together.
func (o *options) check() error {
	switch {
	case o.runtimeNamespace == "":
		return errors.New("--runtime-namespace is empty")
	case len(validation.IsDNS1123Subdomain(o.ownName)) > 0:
		return fmt.Errorf("--own-name is %q: it must be the name that the chart gave the controller's Deployment", o.ownName)
	case o.leaderNamespace != "" && !o.leader.Enable:
		return errors.New("--leader-election-namespace is given without --enable-leader-election")
	case o.log.LogEncoding != "json" && o.log.LogEncoding != "console":
		return fmt.Errorf("--log-encoding is %q: it must be json or console", o.log.LogEncoding)
	}
	switch o.log.LogLevel {
	case "trace", "debug", "info", "error":
	default:
		return fmt.Errorf("--log-level is %q: it must be trace, debug, info or error", o.log.LogLevel)
	}
	for _, check := range []func() error{o.looks.check, o.served.check, o.artifacts.check, o.tenancy.check, o.checkPlugins} {
		if err := check(); err != nil {
			return err
		}
	}
	if o.leaderNamespace == "" {
		o.leaderNamespace = o.runtimeNamespace
	}
	var err error
	o.reach, err = allowedOf(o.clusterRanges, o.clusterHosts)
	return err
}

func (o *looks) check() error {
	switch {
	case o.syncPeriod < time.Second:
		return fmt.Errorf("--sync-period is %s: it must be at least 1s", o.syncPeriod)
	case o.concurrent < 1:
		return fmt.Errorf("--concurrent is %d: it must be at least 1", o.concurrent)
	case o.maxPrunePercent < 0 || o.maxPrunePercent > 100:
		return fmt.Errorf("--max-prune-percent is %d: it must be from 0 to 100", o.maxPrunePercent)
	}
	if o.selectorText == "" {
		return nil
	}
	var err error
	if o.selector, err = labels.Parse(o.selectorText); err != nil {
		return fmt.Errorf("--watch-label-selector: %w", err)
	}
	return nil
}

func (o *served) check() error {
	switch {
	case o.metricsAddr == o.healthAddr && o.metricsAddr != "0" && !strings.HasSuffix(o.metricsAddr, ":0"):
		return fmt.Errorf("--metrics-addr and --health-addr are both %s", o.metricsAddr)
	case o.pprof && o.metricsAddr == "0":
		return errors.New("--pprof is given and --metrics-addr is 0: the profiles are served there")
	case o.pprof && !o.metricsSecure && !isLoopback(o.metricsAddr):
		return fmt.Errorf(
			"--pprof is given without --metrics-secure, and --metrics-addr is %s: give --metrics-secure, or a loopback address such as 127.0.0.1:8080, for whoever reaches the profiles can keep the controller busy",
			o.metricsAddr,
		)
	case o.metricsCertDir != "" && !o.metricsSecure:
		return errors.New("--metrics-cert-dir is given without --metrics-secure")
	}
	if o.eventsAddr != "" {
		if err := signals.CheckURL(o.eventsAddr); err != nil {
			return fmt.Errorf("--events-addr is no URL to post events to: %w", err)
		}
	}
	return nil
}

func (o *artifacts) check() error {
	switch {
	case o.cacheDir == "":
		return errors.New("--artifact-cache-dir is empty")
	case o.artifactMaxSize.Sign() <= 0:
		return fmt.Errorf("--artifact-max-size is %s: it must be more than 0", &o.artifactMaxSize)
	case o.cacheSize.Cmp(o.artifactMaxSize) < 0:
		return fmt.Errorf(
			"--artifact-cache-size is %s, less than --artifact-max-size, which is %s: it must hold at least one artifact",
			&o.cacheSize,
			&o.artifactMaxSize,
		)
	}
	var err error
	if o.artifactHosts, err = repos.ParseHosts(o.artifactNames); err != nil {
		return fmt.Errorf("--artifact-hosts: %w", err)
	}
	return nil
}

func (o *tenancy) check() error {
	switch {
	case o.defaultServiceAccount != "" && len(validation.IsDNS1123Subdomain(o.defaultServiceAccount)) > 0:
		return fmt.Errorf("--default-service-account is %q: it must be the name of a ServiceAccount, without its namespace", o.defaultServiceAccount)
	case len(o.sourceNamespaces) > 0 && !o.noCrossNamespaceRefs:
		return errors.New("--source-namespaces is given without --no-cross-namespace-refs: layers may use the sources of all namespaces")
	case slices.Contains(o.reservedAccounts, o.defaultServiceAccount) && o.defaultServiceAccount != "":
		return fmt.Errorf("--default-service-account is %q, which is one of --reserved-service-accounts", o.defaultServiceAccount)
	}
	for _, namespace := range o.sourceNamespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("--source-namespaces has %q: it must be the name of a namespace", namespace)
		}
	}
	for _, account := range o.reservedAccounts {
		namespace, name, hasNamespace := strings.Cut(account, "/")
		if !hasNamespace {
			namespace, name = "default", account
		}
		if err := accounts.Check(types.NamespacedName{Namespace: namespace, Name: name}); err != nil {
			return fmt.Errorf("--reserved-service-accounts: %w", err)
		}
	}
	return nil
}

// allowedOf reads where other clusters may be.
func allowedOf(ranges, hosts []string) (reach.Allowed, error) {
	var allowed reach.Allowed
	for _, text := range ranges {
		parsed, err := reach.ParseRange(strings.TrimSpace(text))
		if err != nil {
			return allowed, fmt.Errorf("--allowed-cluster-ranges: %w", err)
		}
		allowed.Ranges = append(allowed.Ranges, parsed)
	}
	for _, text := range hosts {
		name := strings.TrimSpace(text)
		if err := reach.CheckHost(name); err != nil {
			return allowed, fmt.Errorf("--allowed-cluster-hosts: %w", err)
		}
		allowed.Hosts = append(allowed.Hosts, name)
	}
	return allowed, nil
}

// quantity is a flag's value in the words of Kubernetes: 50Mi, 2Gi.
type quantity struct{ *resource.Quantity }

// longExponent is one that no size has, and that takes minutes to write out.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3,}`)

// Set parses a value.
func (q quantity) Set(text string) error {
	if longExponent.MatchString(text) {
		return fmt.Errorf("%q is no size such as 50Mi: its exponent has more than two digits", text)
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is no size such as 50Mi: %w", text, err)
	}
	*q.Quantity = parsed
	return nil
}

// Type names the kind of value in the help.
func (q quantity) Type() string { return "size" }
