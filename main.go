// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Strata keeps the add-ons of a Kubernetes cluster in layers, over Flux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/strata-project/strata/internal/reserved"

	fluxclient "github.com/fluxcd/pkg/runtime/client"
	"github.com/fluxcd/pkg/runtime/leaderelection"
	"github.com/fluxcd/pkg/runtime/logger"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/controllers"
	"github.com/strata-project/strata/internal/digests"
	"github.com/strata-project/strata/internal/images"
	"github.com/strata-project/strata/internal/informers"
	"github.com/strata-project/strata/internal/layers"
	"github.com/strata-project/strata/internal/providers"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/repos"
	"github.com/strata-project/strata/internal/signals"
	"github.com/strata-project/strata/internal/signed"
)

// version is set by the linker.
var version = "dev"

// shutdownTimeout is how long writes that are under way may take to finish
// after the signal to stop.
const shutdownTimeout = 20 * time.Second

// gcPercent is how much the heap may grow between two collections, in percent of
// what is in use, where GOGC does not say. Nearly all that is in use are caches,
// which stay: Go's own 100 would keep as much again for nothing.
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	options, err := parseFlags(os.Args[1:], os.Getenv)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "strata: %v\nusage: strata [flags]; strata --help lists them\n", err)
		os.Exit(2)
	case options.showVersion:
		fmt.Println("strata", version)
		return
	}
	logger.SetLogger(withoutAddresses(logger.NewLogger(options.log)))
	if err := run(ctrl.SetupSignalHandler(), options); err != nil {
		ctrl.Log.WithName("setup").Error(err, "cannot go on")
		os.Exit(1)
	}
}

// run starts the controller and returns when the context ends.
func run(ctx context.Context, o *options) error {
	serving, err := o.metricsOptions()
	if err != nil {
		return err
	}
	writes := signals.NewWriteMeter()
	config, err := o.config(writes)
	if err != nil {
		return err
	}
	clusterVersion, err := o.clusterVersion(config)
	if err != nil {
		return err
	}
	statuses := &signed.Keeper{}
	mgr, err := ctrl.NewManager(config, o.managerOptions(clusterVersion, statuses, serving))
	if err != nil {
		return fmt.Errorf("cannot make the manager: %w", err)
	}
	mgr = statuses.Over(mgr)
	account, err := controllers.WhoAmI(ctx, mgr.GetClient())
	if err != nil {
		return err
	}
	if o.layerKinds == nil {
		setup := ctrl.Log.WithName("setup")
		setup.Info("layers without an account may hold every kind that the controller may write, because --layer-kinds is not given; the chart gives it")
	}
	key, err := controllers.DigestKey(ctx, mgr.GetAPIReader(), mgr.GetClient(), o.runtimeNamespace)
	if err != nil {
		return err
	}
	fetches, meters := signals.NewFetchMeter(), signals.NewMeters()
	store, err := o.store(fetches, key)
	if err != nil {
		return err
	}
	process, err := o.process(mgr, clusterVersion, statuses, o.settings(account, key), meters)
	if err != nil {
		return err
	}
	if err := process.Setup(ctx, mgr); err != nil {
		return err
	}
	if err := o.addReconcilers(mgr, process, store); err != nil {
		return err
	}
	if err := mgr.Add(clusterVersion); err != nil {
		return fmt.Errorf("cannot add what asks for the cluster's version: %w", err)
	}
	if err := addChecks(mgr); err != nil {
		return err
	}
	if err := o.addSignals(mgr, process, meters, fetches, writes); err != nil {
		return err
	}
	ctrl.Log.WithName("setup").Info("starting", "version", version, "kubernetes", clusterVersion.Version())
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager has stopped: %w", err)
	}
	return nil
}

// config says how the API server is reached. All requests that write are counted.
func (o *options) config(writes *signals.WriteMeter) (*rest.Config, error) {
	if o.kubeconfig != "" {
		if err := flag.CommandLine.Set("kubeconfig", o.kubeconfig); err != nil {
			return nil, fmt.Errorf("cannot set --kubeconfig: %w", err)
		}
	}
	config := fluxclient.GetConfigOrDie(o.client)
	reach.Home(config)
	config.Wrap(writes.Wrap)
	config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return config, nil
}

// clusterVersion asks the API server for its version now and then.
func (o *options) clusterVersion(config *rest.Config) (*controllers.ClusterVersion, error) {
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}
	return controllers.NewClusterVersion(asks, o.syncPeriod)
}

// store fetches and keeps artifacts.
func (o *options) store(fetches *signals.FetchMeter, key digests.Key) (*repos.Store, error) {
	return repos.New(repos.Options{
		Dir: o.cacheDir, MaxBytes: o.cacheSize.Value(), MaxArtifact: o.artifactMaxSize.Value(),
		Log: ctrl.Log.WithName("artifacts"), Fetched: fetches.Fetched, Hosts: o.artifactHosts, DigestKey: key,
	})
}

// settings are what the rules ask for.
func (o *options) settings(account types.NamespacedName, key digests.Key) layers.Settings {
	return layers.Settings{
		Interval: o.syncPeriod, Namespace: o.runtimeNamespace, MaxPrunePercent: o.maxPrunePercent,
		DefaultServiceAccount: o.defaultServiceAccount, NoCrossNamespaceRefs: o.noCrossNamespaceRefs,
		NoSecretsInNames: o.noSecretsInNames,
		DigestKey:        key,
		SourceNamespaces: o.sourceNamespaces, RequireServiceAccount: o.requireServiceAccount,
		OwnName: o.ownName, Account: account, ReservedAccounts: o.reservedAccounts, LayerKinds: o.layerKinds,
		FluxNamespaces: layers.FluxNamespacesOf(o.artifactNames),
	}
}

// process is what all reconcilers share.
func (o *options) process(
	mgr manager.Manager,
	version *controllers.ClusterVersion,
	statuses *signed.Keeper,
	settings layers.Settings,
	meters *signals.Meters,
) (*controllers.Process, error) {
	process := &controllers.Process{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Cache: mgr.GetCache(),
		Cluster: version, Events: mgr.GetEventRecorder("strata"), Statuses: statuses, Settings: settings,
		Concurrent: o.concurrent, Selector: o.selector, Meters: meters,
	}
	if !o.leader.Enable {
		return process, nil
	}
	process.PlanValid = max(o.leader.LeaseDuration-o.leader.RenewDeadline, time.Second)
	process.Fence = controllers.NewFence(process.PlanValid)
	if err := mgr.Add(process.Fence); err != nil {
		return nil, fmt.Errorf("cannot add the fence: %w", err)
	}
	return process, nil
}

// addReconcilers adds a reconciler for each kind.
func (o *options) addReconcilers(mgr manager.Manager, process *controllers.Process, store *repos.Store) error {
	for _, reconciler := range []interface{ SetupWithManager(ctrl.Manager) error }{
		&controllers.AddonsLayerReconciler{Process: process, Artifacts: store},
		&controllers.RemoteClusterReconciler{Process: process, Allow: o.allow, Reach: o.reach},
		&controllers.HelmApplicationReconciler{Process: process},
		&controllers.ApplicationBundleReconciler{Process: process},
		&controllers.PlatformReconciler{Process: process},
		&controllers.ClusterDiscoveryReconciler{Process: process},
		process.Claims(o.plugins()),
	} {
		if err := reconciler.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// plugins returns what runs the programs of CapabilityProviders.
func (o *options) plugins() *providers.Host {
	return providers.NewHost(providers.Options{
		Folder: o.pluginFolder, Images: images.NewStore(o.pluginCache), ImagesFrom: o.pluginImages,
		Credentials: o.pluginCredentials, Log: ctrl.Log.WithName("plugins"),
	})
}

func (o *options) managerOptions(clusterVersion *controllers.ClusterVersion, statuses *signed.Keeper, serving metricsserver.Options) ctrl.Options {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, sourcev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types are constant
		}
	}
	cacheOptions := informers.CacheOptions()
	cacheOptions.DefaultTransform = statuses.Transform(cacheOptions.DefaultTransform)
	cacheOptions.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		clusterVersion.Ask()
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
	}
	timeout := shutdownTimeout
	leader := leaderelection.GenerateID(reserved.LeaseName, o.selectorText)
	return ctrl.Options{
		Scheme:                        scheme,
		Logger:                        ctrl.Log,
		Cache:                         cacheOptions,
		Metrics:                       serving,
		Client:                        informers.ClientOptions(),
		HealthProbeBindAddress:        o.healthAddr,
		LeaderElection:                o.leader.Enable,
		LeaderElectionID:              leader,
		LeaderElectionNamespace:       o.leaderNamespace,
		LeaderElectionReleaseOnCancel: o.leader.ReleaseOnCancel,
		LeaseDuration:                 &o.leader.LeaseDuration,
		RenewDeadline:                 &o.leader.RenewDeadline,
		RetryPeriod:                   &o.leader.RetryPeriod,
		GracefulShutdownTimeout:       &timeout,
	}
}

// addChecks makes the controller alive when it answers, and ready when its
// caches are.
func addChecks(mgr manager.Manager) error {
	alive := func(*http.Request) error { return nil }
	if err := mgr.AddHealthzCheck("ping", alive); err != nil {
		return fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cachesReady(mgr.GetCache())); err != nil {
		return fmt.Errorf("cannot add the readiness check: %w", err)
	}
	return nil
}

func cachesReady(c cache.Cache) func(*http.Request) error {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
