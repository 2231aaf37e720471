// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Strata-hosts keeps the HostClusters of a management cluster. It runs beside Strata's
// controller, in a process and with an account of its own: it has SSH keys of hosts, and
// writes no layer.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"time"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/hostkeeper"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/reserved"
	"github.com/strata-project/strata/internal/trim"
)

// version is set by the linker.
var version = "dev"

// options are what the flags and the environment say.
type options struct {
	kubeconfig  string
	namespace   string
	namespaces  []string
	ranges      []string
	allowed     reach.Allowed
	snapshotDir string
	quotaText   string
	quota       int64
	concurrent  int
	retry       time.Duration
	metricsAddr string
	secure      bool
	healthAddr  string
	showVersion bool

	client fluxclient.Options
	log    logger.Options
	leader leaderelection.Options
}

func main() {
	o, err := parseFlags(os.Args[1:], os.Getenv)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "strata-hosts: %v\nusage: strata-hosts [flags]; strata-hosts --help lists them\n", err)
		os.Exit(2)
	case o.showVersion:
		fmt.Println("strata-hosts", version)
		return
	}
	logger.SetLogger(logger.NewLogger(o.log))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		ctrl.Log.WithName("setup").Error(err, "cannot go on")
		os.Exit(1)
	}
}

// parseFlags reads the flags; an error says which of them is wrong.
func parseFlags(args []string, getenv func(string) string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("strata-hosts", pflag.ContinueOnError)
	flags.SortFlags = false
	namespace := getenv("RUNTIME_NAMESPACE")
	if namespace == "" {
		namespace = "strata-system"
	}
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; without it KUBECONFIG, the cluster it runs in, and the user's own are tried")
	flags.StringVar(&o.namespace, "runtime-namespace", namespace, "namespace of the leader's lease; RUNTIME_NAMESPACE gives the default")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil, "namespaces whose HostClusters are kept; all where none is given")
	flags.StringSliceVar(&o.ranges, "allowed-host-ranges", nil,
		"ranges of addresses, such as 10.0.0.0/16, at which hosts and bastions may be reached; without any, none is")
	flags.StringVar(&o.snapshotDir, "snapshot-dir", "", "folder of the snapshots of all clusters, each in one of its own; without it none is taken")
	flags.StringVar(&o.quotaText, "snapshot-quota", "20Gi", "how many bytes the snapshots of one cluster may have at most, whatever its spec.snapshots.quota says")
	flags.IntVar(&o.concurrent, "concurrent", 4, "how many clusters are worked on side by side")
	flags.DurationVar(&o.retry, "retry-interval", time.Minute, "how soon hosts are looked at again that are not as they should be")
	flags.StringVar(&o.metricsAddr, "metrics-addr", ":8080", "address of the metrics; 0 turns them off")
	flags.BoolVar(&o.secure, "metrics-secure", false,
		"serve metrics over TLS, with a certificate of its own, and to those alone whom the API server knows by their token and lets get the path /metrics")
	flags.StringVar(&o.healthAddr, "health-addr", ":9440", "address of /healthz and /readyz; 0 turns them off")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	for _, bind := range []func(*pflag.FlagSet){o.client.BindFlags, o.log.BindFlags, o.leader.BindFlags} {
		bind(flags)
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("%q is no flag", rest[0])
	}
	return o, o.check()
}

// check checks what flags say together.
func (o *options) check() error {
	o.allowed.RangesFlag = hostkeeper.RangesFlag
	for _, each := range o.ranges {
		parsed, err := netip.ParsePrefix(each)
		if err != nil {
			return fmt.Errorf("%s: %w", hostkeeper.RangesFlag, err)
		}
		o.allowed.Ranges = append(o.allowed.Ranges, parsed)
	}
	quota, err := resource.ParseQuantity(o.quotaText)
	if err != nil || quota.Value() <= 0 {
		return fmt.Errorf("--snapshot-quota must be more than 0, such as 20Gi, and is %q", o.quotaText)
	}
	o.quota = quota.Value()
	if o.concurrent < 1 {
		return errors.New("--concurrent must be at least 1")
	}
	if o.retry < time.Second {
		return errors.New("--retry-interval must be at least 1s")
	}
	return nil
}

// run starts the controller and returns when the context ends.
func run(ctx context.Context, o *options) error {
	if o.kubeconfig != "" {
		if err := flag.CommandLine.Set("kubeconfig", o.kubeconfig); err != nil {
			return fmt.Errorf("cannot set --kubeconfig: %w", err)
		}
	}
	config := fluxclient.GetConfigOrDie(o.client)
	mgr, err := ctrl.NewManager(config, o.managerOptions())
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	home := &metav1.PartialObjectMetadata{}
	home.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, home); err != nil {
		return fmt.Errorf("cannot read which cluster this is: %w", err)
	}
	keeper := &hostkeeper.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("strata-hosts"),
		Allowed: o.allowed, SnapshotDir: o.snapshotDir, SnapshotQuota: o.quota, Hub: string(home.UID), Retry: o.retry, Concurrent: o.concurrent, Now: time.Now,
	}
	if err := keeper.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return fmt.Errorf("cannot add checks: %w", err)
	}
	if err := metrics.Registry.Register(hostkeeper.NewMetrics(mgr.GetCache())); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	ctrl.Log.WithName("setup").Info("starting", "version", version)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager has stopped: %w", err)
	}
	return nil
}

func (o *options) managerOptions() ctrl.Options {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types are constant
		}
	}
	cached := cache.Options{DefaultTransform: trim.Object}
	if len(o.namespaces) > 0 {
		cached.DefaultNamespaces = map[string]cache.Config{}
		for _, each := range o.namespaces {
			cached.DefaultNamespaces[each] = cache.Config{}
		}
	}
	return ctrl.Options{
		Scheme: scheme, Logger: ctrl.Log, Cache: cached,
		// Secrets are read past the cache, so that no key is kept in memory.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                       o.metricsOptions(),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                o.leader.Enable,
		LeaderElectionID:              reserved.HostsLease,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: o.leader.ReleaseOnCancel,
		LeaseDuration:                 &o.leader.LeaseDuration,
		RenewDeadline:                 &o.leader.RenewDeadline,
		RetryPeriod:                   &o.leader.RetryPeriod,
	}
}

// metricsOptions says where metrics are served, and to whom.
func (o *options) metricsOptions() metricsserver.Options {
	serving := metricsserver.Options{BindAddress: o.metricsAddr}
	if o.secure {
		serving.SecureServing, serving.FilterProvider = true, filters.WithAuthenticationAndAuthorization
		// One connection of HTTP/2 carries any number of requests, before it is known whose.
		serving.TLSOpts = []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }}
	}
	return serving
}
